//! The answers of Fireflies as the words of all providers.

use api_core::ServiceFault;
use api_core::entity::{MeetingNote, MeetingTranscript, Sentence};
use api_core::reading::{list, needed, number, text, texts};
use api_core::time;
use serde_json::Value;

pub(crate) const VENDOR_NAME: &str = "Fireflies";

/// What is asked about a meeting.
pub(crate) const NOTE: &str = "id title date dateString duration host_email organizer_email participants transcript_url \
     meeting_attendees { displayName email name } summary { overview short_summary gist action_items keywords }";
pub(crate) const TRANSCRIPT: &str = "id title sentences { text speaker_name start_time }";

pub(crate) fn note(of: &Value) -> Result<MeetingNote, ServiceFault> {
    let first = |all: &[&str]| all.iter().find_map(|at| text(of, at));
    let (id, title) = id_and_title(of)?;
    Ok(MeetingNote {
        id,
        title,
        date: number(of, "/date")
            .map(time::shown)
            .or_else(|| first(&["/dateString", "/date"])),
        duration_minutes: decimal(of, "/duration"),
        host: first(&["/host_email", "/organizer_email"]),
        participants: participants(of),
        summary: first(&[
            "/summary/overview",
            "/summary/short_summary",
            "/summary/gist",
        ]),
        action_items: lines(of, "/summary/action_items"),
        keywords: lines(of, "/summary/keywords"),
        url: text(of, "/transcript_url"),
    })
}

/// A meeting without a title has its id as one.
fn id_and_title(of: &Value) -> Result<(String, String), ServiceFault> {
    let id = needed(text(of, "/id"), VENDOR_NAME, "a meeting", "id")?;
    let title = text(of, "/title").unwrap_or_else(|| id.clone());
    Ok((id, title))
}

/// Addresses, which may stand in one text with commas; where there are none, the names of those who came.
fn participants(of: &Value) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in texts(of, "/participants", "") {
        for address in part.split(',').map(str::trim) {
            if !address.is_empty() && all.iter().all(|own| own != address) {
                all.push(address.to_owned());
            }
        }
    }
    if all.is_empty() {
        let names = ["/email", "/displayName", "/name"];
        let attendees = list(of, "/meeting_attendees").iter();
        all.extend(attendees.filter_map(|who| names.iter().find_map(|at| text(who, at))));
    }
    all
}

/// A list of texts, or the lines of a text.
fn lines(of: &Value, at: &str) -> Vec<String> {
    let whole = text(of, at);
    let lines = whole.iter().flat_map(|text| text.lines());
    let lines = lines.map(|line| line.trim().to_owned());
    let listed = texts(of, at, "").into_iter();
    lines
        .chain(listed)
        .filter(|line| !line.is_empty())
        .collect()
}

/// A number, or one in a text.
fn decimal(of: &Value, at: &str) -> Option<f64> {
    let found = of.pointer(at)?;
    let read = found.as_f64().or_else(|| found.as_str()?.parse().ok())?;
    read.is_finite().then_some(read)
}

/// A whole transcript.
pub(crate) fn transcript(of: &Value) -> Result<MeetingTranscript, ServiceFault> {
    let (meeting_id, title) = id_and_title(of)?;
    let sentences: Vec<Sentence> = list(of, "/sentences")
        .iter()
        .filter_map(|sentence| {
            Some(Sentence {
                text: text(sentence, "/text")?,
                speaker: text(sentence, "/speaker_name"),
                start: decimal(sentence, "/start_time"),
            })
        })
        .collect();
    Ok(MeetingTranscript {
        meeting_id,
        title,
        total_sentences: u64::try_from(sentences.len()).unwrap_or_default(),
        sentences,
        has_more: false,
    })
}
