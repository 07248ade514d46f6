//! Panels that slide over the transcript: the keys, and what the pod is and runs.

use super::exchange::Reply;
use super::feature_panel::FeaturePanel;
use super::key_table::{FEATURES, KEYS, KeyRow, VI};
use super::pods::PodList;
use super::processes::Processes;
use super::status::{left, tokens};
use super::told::ToldPanel;
use crate::count::count;
use crate::line::Line;
use crate::note::labelled;
use crate::style::Tone;
use protocol::status::{ContextPart, ContextStatus, Status};

/// The panel that is open.
pub(super) struct Panel {
    pub(super) layer: Layer,
    /// Lines above the first one that is seen.
    pub(super) scroll: usize,
}

/// What a panel shows, with the state of its keys, which ends with it.
pub(super) enum Layer {
    Pods(PodList),
    Keys,
    Features(FeaturePanel),
    Status(Processes),
    Context,
    /// With its title.
    Told(&'static str, ToldPanel),
}

impl Layer {
    /// Takes what was asked for it; an answer to a panel that was closed meanwhile is dropped.
    pub(super) fn answered(&mut self, reply: Reply) {
        match (self, reply) {
            (Self::Pods(pods), Reply::Pods(known)) => pods.know(known),
            (Self::Features(panel), Reply::Features(features)) => panel.know(features),
            (Self::Features(panel), Reply::FeaturePreview { id, change, text }) => {
                panel.preview(&id, change, text);
            }
            (Self::Told(_, told), Reply::Shown(text)) => told.know(text),
            _ => {}
        }
    }

    /// Nobody has read what is confirmed here.
    pub(super) fn not_seen(&mut self) {
        match self {
            Self::Features(panel) => panel.not_seen(),
            Self::Status(processes) => processes.not_seen(),
            Self::Told(_, told) => told.not_seen(),
            Self::Pods(_) | Self::Keys | Self::Context => {}
        }
    }
}

/// The keys, and what identifies the state of this screen.
pub(super) fn keys(digest: &str, has_features: bool, has_vi: bool, width: usize) -> Vec<Line> {
    let is_there =
        |row: &&KeyRow| (row.shown != FEATURES || has_features) && (row.shown != VI || has_vi);
    let wide = KEYS.iter().map(|row| row.shown.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for row in KEYS.iter().filter(is_there) {
        let label = Line::of(&format!("{:<wide$}  ", row.shown), Tone::Strong);
        let rest = Line::of(&" ".repeat(label.width()), Tone::Plain);
        lines.extend(Line::of(row.about, Tone::Plain).wrap(width, &label, &rest));
    }
    lines.push(Line::default());
    lines.extend(labelled("state", Tone::Dim, digest, width));
    lines
}

/// The pod.
pub(super) fn status(status: &Status, now_ms: u64, width: usize) -> Vec<Line> {
    let host = &status.host;
    let ago = now_ms.saturating_sub(host.since_us / 1000);
    let mut lines = Vec::new();
    let mut say = |label: &str, text: &str| {
        lines.extend(labelled(&format!("{label:<9}"), Tone::Strong, text, width));
    };
    say("model", &status.model);
    say("directory", &host.cwd);
    say("sandbox", &host.sandbox);
    say(
        "process",
        &format!("{} · yoi {} · for {}", host.pid, host.version, left(ago)),
    );
    say(
        "so far",
        &format!(
            "{} · {}",
            count(status.turns, "turn"),
            count(status.requests, "request")
        ),
    );
    if !host.reload.next_start.is_empty() {
        say(
            "changed",
            &format!(
                "{}: counts from the next start on",
                host.reload.next_start.join(", ")
            ),
        );
    }
    host.reload
        .refused
        .iter()
        .for_each(|why| say("refused", &format!("the new configuration: {why}")));
    lines.push(Line::default());
    lines
}

/// The tokens of the next request, by contributor.
pub(super) fn context(status: &Status, width: usize) -> Vec<Line> {
    let Some(context) = &status.context else {
        return vec![Line::of("known once the first turn begins", Tone::Dim).cut(width)];
    };
    let window = context
        .window
        .map_or_else(String::new, |window| format!(" of {}", tokens(window)));
    let how = if context.measured {
        ""
    } else {
        " · estimated from the size of the texts"
    };
    let whole = format!(
        "{}{window}{how} · {} cached",
        tokens(context.used),
        tokens(context.cached)
    );
    let mut lines =
        Line::of(&whole, Tone::Strong).wrap(width, &Line::default(), &Line::of("  ", Tone::Plain));
    let row = |part: &ContextPart| {
        Line::of(&format!("{:>13}  ", tokens(part.tokens)), Tone::Dim)
            .with(&context_part(part), Tone::Plain)
            .cut(width)
    };
    let say = |text: &str| {
        Line::of(text, Tone::Dim).wrap(width, &Line::default(), &Line::of("  ", Tone::Plain))
    };
    lines.extend(say(&context_masking(context)));
    context_gain(context)
        .iter()
        .for_each(|gain| lines.extend(say(gain)));
    lines.extend(context.parts.iter().map(row));
    if !context.left.is_empty() {
        lines.extend(say("left the requests so far:"));
        lines.extend(context.left.iter().map(row));
    }
    if status.compact_due {
        lines.push(Line::of("old steps leave the next request", Tone::Waiting).cut(width));
    }
    for pin in &status.pins {
        lines.extend(labelled(
            &format!("pin {}", pin.pin),
            Tone::Strong,
            &pin.text,
            width,
        ));
    }
    lines
}

/// What people call a kind of context.
#[must_use]
pub fn context_kind(kind: &str) -> String {
    match kind {
        "schema" => "tool schemas".to_owned(),
        "system" => "system prompt".to_owned(),
        "notes" => "notes to the model".to_owned(),
        other => other.replace('_', " "),
    }
}

/// A contributor: its kind, the tool or the feature, and how much of it was cached.
#[must_use]
pub fn context_part(part: &ContextPart) -> String {
    let name = part
        .name
        .as_ref()
        .or(part.feature.as_ref())
        .map_or_else(String::new, |name| format!(": {name}"));
    // The provider counts the cached tokens of the whole request only.
    let cached = if part.cached > 0 {
        format!(", about {} cached", part.cached)
    } else {
        String::new()
    };
    format!("{}{name}{cached}", context_kind(&part.kind))
}

/// What pruning and compaction would win now; none if the pod does not say it.
#[must_use]
pub fn context_gain(context: &ContextStatus) -> Option<String> {
    let steps = context.steps_free?;
    if steps.max(context.masking_frees.unwrap_or(0)) == 0 {
        return Some("pruning and /compact would free nothing now".to_owned());
    }
    let masking = context.masking_frees.map_or_else(String::new, |masking| {
        format!("masking old results would free about {masking} tokens now; ")
    });
    Some(format!(
        "{masking}/compact, which drops old steps, would free about {steps} tokens now"
    ))
}

/// When old results leave the requests.
#[must_use]
pub fn context_masking(context: &ContextStatus) -> String {
    match context.window.filter(|window| *window > 0).zip(context.masks_above) {
        Some((window, above)) => {
            // To the nearest percent.
            let percent = above.saturating_mul(100).saturating_add(window / 2) / window;
            format!("old results leave before a request of more than {above} tokens ({percent}%)")
        }
        None if context.window.is_some() => "this pod does not say when old results leave".to_owned(),
        None => "the window of the model is unknown, so nothing leaves; `context` under [models.\"NAME\"] sets it"
            .to_owned(),
    }
}
