//! Scheduled prompts as a value: when each is due, and their limits. Reads no clock.

use crate::plain;
use llm_worker::{ErrorKind, ToolError};
use pod::schedule::{Cron, MAX_STEP_BACK_MS, Zone};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use tools::fail;

/// Most prompts that the model can set, and most that the configuration can have.
pub const MAX_PROMPTS: usize = 20;
/// Most bytes of a prompt. All of them, escaped as JSON, stay within what a state may have.
pub const MAX_TEXT: usize = 1000;
/// A prompt that comes later than this after its time says so.
const LATE_MS: u64 = 60 * 1000;

/// When a prompt is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Timing {
    /// Once, in milliseconds since 1970.
    At { at_ms: u64, time_zone: String },
    Cron {
        expression: String,
        time_zone: String,
    },
}

impl Timing {
    /// The first due time that was not delivered; may have passed.
    pub(super) fn next(&self, progress: &Progress, now: u64) -> Option<u64> {
        match self {
            Self::At { at_ms, .. } => Some(*at_ms),
            Self::Cron {
                expression,
                time_zone,
            } => Cron::parse(expression, time_zone)
                .ok()?
                .next_due(Some(progress.after_ms), now),
        }
    }

    /// The newest due time that has passed and was not delivered: missed ones are one.
    fn newest(&self, progress: &Progress, now: u64) -> Option<u64> {
        let first = self.next(progress, now).filter(|due| *due <= now)?;
        match self {
            Self::At { .. } => Some(first),
            Self::Cron {
                expression,
                time_zone,
            } => Cron::parse(expression, time_zone)
                .ok()?
                .newest(first.saturating_sub(1), now),
        }
    }

    /// A time by the clock of this prompt's time zone.
    pub(super) fn show(&self, at_ms: u64) -> String {
        let (Self::At { time_zone, .. } | Self::Cron { time_zone, .. }) = self;
        Zone::parse(time_zone).map_or_else(|why| why, |zone| zone.show(at_ms))
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At { .. } => f.write_str("once"),
            Self::Cron {
                expression,
                time_zone,
            } => write!(f, "cron {expression} {time_zone}"),
        }
    }
}

/// Which due times of a prompt were delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    /// Up to this time, in milliseconds since 1970.
    after_ms: u64,
    /// How many. Part of a notification's key, so that a due time that comes again because the clock was set back is
    /// delivered again.
    count: u64,
}

impl Progress {
    pub(super) fn since(now: u64) -> Self {
        Self {
            after_ms: now,
            count: 0,
        }
    }
}

/// A prompt that the model set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Prompt {
    timing: Timing,
    text: String,
    progress: Progress,
}

/// A prompt of the configuration.
#[derive(Clone, Debug)]
pub(super) struct ConfiguredPrompt {
    pub(super) name: String,
    pub(super) timing: Timing,
    pub(super) text: String,
}

/// A prompt that the model set, by number, or one of the configuration, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PromptId {
    Set(u32),
    Configured(String),
}

impl fmt::Display for PromptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(id) => id.fmt(f),
            Self::Configured(name) => name.fmt(f),
        }
    }
}

/// A prompt as it is listed.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) id: PromptId,
    pub(super) timing: &'a Timing,
    pub(super) text: &'a str,
    pub(super) next: Option<u64>,
}

/// A prompt whose time has come.
#[derive(Clone, Debug)]
pub(super) struct DuePrompt {
    id: PromptId,
    due_ms: u64,
    count: u64,
    notice: String,
}

impl DuePrompt {
    /// The key under which the due time is delivered once.
    pub(super) fn key(&self) -> String {
        let Self {
            id, due_ms, count, ..
        } = self;
        match id {
            PromptId::Set(id) => format!("set:{id}:{count}:{due_ms}"),
            PromptId::Configured(name) => format!("configured:{name}:{count}:{due_ms}"),
        }
    }

    pub(super) fn notice(&self) -> &str {
        &self.notice
    }
}

/// The prompts of a session: those that the model set, and what was delivered of those of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    /// The highest id assigned; ids are not reused.
    last: u32,
    set: BTreeMap<u32, Prompt>,
    configured: BTreeMap<String, Progress>,
}

impl Prompts {
    /// Every prompt with its next time, those of the configuration first.
    pub(super) fn entries<'a>(
        &'a self,
        configured: &'a [ConfiguredPrompt],
        now: u64,
    ) -> Vec<Entry<'a>> {
        let each = self.each(configured).into_iter();
        let entry = |(id, timing, text, progress): (_, &'a Timing, _, &Progress)| Entry {
            id,
            timing,
            text,
            next: timing.next(progress, now),
        };
        each.map(entry).collect()
    }

    /// The prompts of the configuration of which something is known.
    pub(super) fn configured_names(&self) -> impl Iterator<Item = &str> {
        self.configured.keys().map(String::as_str)
    }

    /// The first time at which one is due; may have passed.
    pub(super) fn next(&self, configured: &[ConfiguredPrompt], now: u64) -> Option<u64> {
        self.entries(configured, now)
            .iter()
            .filter_map(|entry| entry.next)
            .min()
    }

    /// What is due, the oldest due time first.
    pub(super) fn due(&self, configured: &[ConfiguredPrompt], now: u64) -> Vec<DuePrompt> {
        let each = self.each(configured).into_iter();
        let due = each.filter_map(|(id, timing, text, progress)| {
            let due_ms = timing.newest(progress, now)?;
            let late = if now - due_ms > LATE_MS {
                format!(", now {}", timing.show(now))
            } else {
                String::new()
            };
            let notice = format!(
                "Scheduled prompt {id}, due {}{late}:\n{text}",
                timing.show(due_ms)
            );
            Some(DuePrompt {
                id,
                due_ms,
                count: progress.count,
                notice,
            })
        });
        let mut due: Vec<DuePrompt> = due.collect();
        due.sort_by_key(|prompt| prompt.due_ms);
        due
    }

    /// A due time was delivered.
    pub(super) fn delivered(&mut self, due: &DuePrompt) {
        let progress = match &due.id {
            PromptId::Set(id) => match self.set.get_mut(id) {
                Some(Prompt {
                    timing: Timing::At { .. },
                    ..
                }) => return drop(self.set.remove(id)),
                other => other.map(|prompt| &mut prompt.progress),
            },
            PromptId::Configured(name) => self.configured.get_mut(name),
        };
        if let Some(progress) = progress {
            *progress = Progress {
                after_ms: due.due_ms,
                count: progress.count.saturating_add(1),
            };
        }
    }

    /// Adds a prompt. Returns its id.
    pub(super) fn create(
        &mut self,
        timing: Timing,
        text: String,
        now: u64,
    ) -> Result<u32, ToolError> {
        if self.set.len() >= MAX_PROMPTS {
            let what = format!("{MAX_PROMPTS} prompts are set; cancel one first");
            return Err(fail(ErrorKind::Exhausted, what));
        }
        self.last += 1;
        self.set.insert(
            self.last,
            Prompt {
                timing,
                text,
                progress: Progress::since(now),
            },
        );
        Ok(self.last)
    }

    /// Removes a prompt that the model set. Returns its text.
    pub(super) fn cancel(&mut self, id: u32) -> Result<String, ToolError> {
        self.set.remove(&id).map(|prompt| prompt.text).ok_or_else(|| {
            let what = format!(
                "no prompt {id} is set; the list of prompts has the ids, and prompts with a name are configured"
            );
            fail(ErrorKind::FixInput, what)
        })
    }

    /// Whether [`Self::refresh`] would change something.
    pub(super) fn is_stale(&self, configured: &[ConfiguredPrompt], now: u64) -> bool {
        let mut new = self.clone();
        new.refresh(configured, now);
        new != *self
    }

    /// Begins to count prompts that are new in the configuration, and forgets those that left it. Where the clock was set
    /// back, due times count from now on again.
    pub(super) fn refresh(&mut self, configured: &[ConfiguredPrompt], now: u64) {
        self.configured
            .retain(|name, _| configured.iter().any(|prompt| prompt.name == *name));
        for ConfiguredPrompt { name, .. } in configured {
            self.configured
                .entry(name.clone())
                .or_insert_with(|| Progress::since(now));
        }
        let set = self.set.values_mut().map(|prompt| &mut prompt.progress);
        for progress in set.chain(self.configured.values_mut()) {
            if progress.after_ms > now.saturating_add(MAX_STEP_BACK_MS) {
                progress.after_ms = now;
            }
        }
    }

    fn each<'a>(
        &'a self,
        configured: &'a [ConfiguredPrompt],
    ) -> Vec<(PromptId, &'a Timing, &'a str, &'a Progress)> {
        let known = configured
            .iter()
            .filter_map(|ConfiguredPrompt { name, timing, text }| {
                Some((
                    PromptId::Configured(name.clone()),
                    timing,
                    text.as_str(),
                    self.configured.get(name)?,
                ))
            });
        let set = self.set.iter();
        let set = set.map(
            |(
                id,
                Prompt {
                    timing,
                    text,
                    progress,
                },
            )| (PromptId::Set(*id), timing, text.as_str(), progress),
        );
        known.chain(set).collect()
    }
}

/// Checks the text of a prompt.
pub(super) fn check_text(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        Err("the text is empty".to_owned())
    } else {
        plain::text("text", text, MAX_TEXT)
    }
}
