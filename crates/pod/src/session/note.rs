//! The note that tells the model the state of the pod anew, once old steps have left its context. Pure.

use super::fold::SessionState;
use super::restore::utc;
use super::standing::{MAX_REPEATED, clip};
use crate::record::{InputId, ProposedDecision, ProposedRule};

/// Entries of each list in a note; more are counted.
const MAX_LISTED: usize = 16;

/// Bytes of a text in a list of a note.
const MAX_LINE: usize = 200;

impl SessionState {
    /// The note that tells the model the state of the pod. The turn is about to take the waiting inputs `taking`; `budget`
    /// says what is left of its limits.
    #[must_use]
    pub fn context_note(&self, now_us: u64, taking: &[InputId], budget: &str) -> String {
        let mut lines = vec![format!(
            "State of this pod at {}. It replaces earlier such notes; an input that comes later is newer than this.",
            utc(now_us)
        )];
        if !self.standing.pins.is_empty() {
            lines.push("Pinned by a person, always in force:".to_owned());
            lines.extend(
                self.standing
                    .pins
                    .iter()
                    .map(|(pin, text)| format!("[pin {pin}] {text}")),
            );
        }
        lines.extend(self.environment.iter().cloned());
        let taken = self.standing.inputs.iter().filter(|_| self.turn_open);
        lines.extend(taken.map(|it| working(it.input, it.since_us, &it.text)));
        let (taken, waiting): (Vec<_>, Vec<_>) = self
            .queued
            .iter()
            .partition(|it| taking.contains(&it.input));
        lines.extend(
            taken
                .into_iter()
                .map(|it| working(it.input, now_us, &it.text)),
        );
        listed(
            &mut lines,
            "Waiting for later turns",
            waiting.into_iter().map(|it| format!("input {}", it.input)),
        );
        let open = self.approvals.open.values();
        listed(
            &mut lines,
            "Waiting for a person",
            open.map(|asked| format!("approval {} of {}", asked.approval, asked.call)),
        );
        let tasks = self
            .open_tasks()
            .map(|((feature, task), _)| format!("{task} of {feature}"));
        listed(&mut lines, "Background tasks that run", tasks);
        let jobs = self
            .open_jobs()
            .map(|job| format!("job {}: {}", job.job, clip(&job.command, MAX_LINE)));
        listed(&mut lines, "Jobs that run", jobs);
        let rules = self
            .approvals
            .rules
            .iter()
            .map(|allowed| rule(&allowed.rule));
        listed(&mut lines, "Allowed by a person for this pod", rules);
        listed(
            &mut lines,
            "Files changed, newest first",
            self.standing.changed.iter().rev().cloned(),
        );
        if !budget.is_empty() {
            lines.push(format!("Budget: {budget}"));
        }
        lines.join("\n")
    }
}

fn working(input: InputId, since_us: u64, text: &str) -> String {
    let begin = clip(text, MAX_REPEATED);
    // A remembered text may end there, too.
    let more = if text.len() >= MAX_REPEATED {
        "…"
    } else {
        ""
    };
    format!(
        "Working on input {input} since {}: {begin}{more}",
        utc(since_us)
    )
}

/// A rule that a person allowed, for the model.
fn rule(rule: &ProposedRule) -> String {
    let ProposedRule {
        tool,
        path,
        host,
        program,
        subcommand,
        decision: ProposedDecision::Allow,
    } = rule;
    let about = [path, host, program]
        .into_iter()
        .flatten()
        .map(String::as_str);
    let words = about.chain(subcommand.iter().flatten().map(String::as_str));
    clip(
        &[tool.as_str()]
            .into_iter()
            .chain(words)
            .collect::<Vec<_>>()
            .join(" "),
        MAX_LINE,
    )
    .to_owned()
}

/// One line for a list that is not empty.
fn listed(lines: &mut Vec<String>, title: &str, entries: impl Iterator<Item = String>) {
    let mut all: Vec<String> = entries.collect();
    let more = all.len().saturating_sub(MAX_LISTED);
    all.truncate(MAX_LISTED);
    all.extend((more > 0).then(|| format!("{more} more")));
    if !all.is_empty() {
        lines.push(format!("{title}: {}", all.join("; ")));
    }
}

#[cfg(test)]
mod tests;
