//! Meetings, what is known about them, and what was said.

use crate::MeetingAccount;
use crate::mapping::{NOTE, TRANSCRIPT, VENDOR_NAME, note, transcript};
use crate::question::Question;
use api_core::arguments::{MeetingQuery, MeetingSearch, TranscriptQuery};
use api_core::entity::{MeetingNote, MeetingTranscript};
use api_core::page::{ItemPage, Slice};
use api_core::provider::{Answer, MeetingNotesProvider};
use api_core::reading::each;
use api_core::walk::Piece;
use api_core::{ServiceFault, time, unfit};
use std::sync::{Arc, MutexGuard, PoisonError};

/// Meetings in one piece: more, Fireflies does not give.
const PIECE: usize = 50;
/// The longest words that Fireflies looks for, in characters.
const MAX_KEYWORD: usize = 255;
/// The last millisecond of a day.
const DAY: u64 = 24 * 60 * 60 * 1000 - 1;

impl MeetingNotesProvider for MeetingAccount {
    fn meetings(&self, wanted: MeetingQuery) -> Answer<'_, ItemPage<MeetingNote>> {
        Box::pin(async move {
            let list = || {
                let mut question = Question::new("transcripts", NOTE);
                for (name, key, date, is_end) in [
                    ("fromDate", "from_date", &wanted.from_date, false),
                    ("toDate", "to_date", &wanted.to_date, true),
                ] {
                    if let Some(date) = date.as_deref().filter(|date| !date.is_empty()) {
                        question = question.with(name, moment(key, date, is_end)?);
                    }
                }
                if !wanted.participants.is_empty() {
                    question = question.with("participants", wanted.participants.clone());
                }
                if let Some(host) = wanted.host_email.as_deref().filter(|of| !of.is_empty()) {
                    question = question.with("host_email", host);
                }
                Ok(question)
            };
            self.page(list, wanted.slice()).await
        })
    }

    fn transcript(&self, wanted: TranscriptQuery) -> Answer<'_, MeetingTranscript> {
        Box::pin(async move {
            let whole = self.whole_transcript(&wanted).await?;
            let offset = wanted.offset as usize;
            let limit = wanted.limit.clamp(1, 1000) as usize;
            let shown = whole.sentences.iter().skip(offset).take(limit).cloned();
            Ok(MeetingTranscript {
                meeting_id: whole.meeting_id.clone(),
                title: whole.title.clone(),
                sentences: shown.collect(),
                total_sentences: whole.total_sentences,
                has_more: whole.sentences.len() > offset.saturating_add(limit),
            })
        })
    }

    fn search_meetings(&self, wanted: MeetingSearch) -> Answer<'_, ItemPage<MeetingNote>> {
        Box::pin(async move {
            if wanted.query.chars().count() > MAX_KEYWORD {
                return Err(unfit(format!("`query` is over {MAX_KEYWORD} characters")));
            }
            // Without a scope only titles are searched.
            let list = || {
                let question = Question::new("transcripts", NOTE);
                Ok(question
                    .with("keyword", wanted.query.as_str())
                    .with("scope", "all"))
            };
            self.page(list, wanted.slice()).await
        })
    }
}

impl MeetingAccount {
    /// A page of a list, which Fireflies gives newest first and continues behind so many meetings.
    async fn page(
        &self,
        list: impl Fn() -> Result<Question, ServiceFault>,
        slice: Slice,
    ) -> Result<ItemPage<MeetingNote>, ServiceFault> {
        let query = list()?.text();
        let list = &list;
        let ask = |next: Option<String>| async move {
            let passed: usize = next.as_deref().and_then(|of| of.parse().ok()).unwrap_or(0);
            let question = list()?.with("limit", PIECE).with("skip", passed);
            let answer = question.ask(&self.http).await?;
            let items = each(&answer, VENDOR_NAME, note)?;
            let is_full = items.len() >= PIECE;
            Ok(Piece {
                items,
                next: is_full.then(|| (passed + PIECE).to_string()),
                total: None,
            })
        };
        self.meetings.page(&query, slice, ask).await
    }

    /// The transcript of the page before, if this one continues it.
    async fn whole_transcript(
        &self,
        wanted: &TranscriptQuery,
    ) -> Result<Arc<MeetingTranscript>, ServiceFault> {
        let id = wanted.meeting_id.trim();
        let known = self.known().clone();
        let known = known.filter(|known| wanted.offset > 0 && known.meeting_id == id);
        if let Some(known) = known {
            return Ok(known);
        }
        let question = Question::new("transcript", TRANSCRIPT).with("id", id);
        let whole = Arc::new(transcript(&question.ask(&self.http).await?)?);
        *self.known() = Some(Arc::clone(&whole));
        Ok(whole)
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<MeetingTranscript>>> {
        self.transcript
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time as Fireflies takes it; of a date, its beginning or its end.
fn moment(argument: &str, text: &str, is_end: bool) -> Result<String, ServiceFault> {
    let millis = time::millis(argument, text)?;
    match is_end && text.trim().len() == "2026-01-31".len() {
        true => Ok(time::shown(millis.saturating_add(DAY)).replace('Z', ".999Z")),
        false => Ok(time::shown(millis).replace('Z', ".000Z")),
    }
}
