//! What a person is told: which pod, what it waits for, how to attach. Does not depend on how it is sent.

use pod::feature::{PodActivity, PodAtRun};
use pod::record::HoldCause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most bytes of an answer in a message.
const MAX_ANSWER: usize = 500;

/// The body of a POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BodyFormat {
    /// An object with the text and its parts.
    Json,
    /// The text alone, without an object around it.
    Text,
}

/// Why the pod waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    Idle,
    Held,
    /// A call waits for approval.
    Waiting,
}

/// One event: a pod tells of it once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventKey {
    /// The newest turn; 0 before the first one.
    pub turn: u64,
    pub kind: WaitKind,
    /// Why the pod is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HoldCause>,
    /// The approval that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<u64>,
}

/// What a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    turn: u64,
    why: Why,
}

/// Why a pod waits, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    Idle,
    Held(HoldCause, String),
    Asks(u64, String),
}

impl Event {
    /// None while the pod works, and before its first turn.
    pub(super) fn of(pod: &PodAtRun) -> Option<Self> {
        let turn = pod.turns;
        match &pod.activity {
            PodActivity::Idle if turn > 0 => Some(Self {
                turn,
                why: Why::Idle,
            }),
            PodActivity::Held { cause, reason } => Some(Self {
                turn,
                why: Why::Held(*cause, reason.clone()),
            }),
            PodActivity::Waiting { approval, question } => Some(Self {
                turn,
                why: Why::Asks(*approval, question.clone()),
            }),
            _ => None,
        }
    }

    pub(super) fn key(&self) -> EventKey {
        let (kind, cause, approval) = match &self.why {
            Why::Idle => (WaitKind::Idle, None, None),
            Why::Held(cause, _) => (WaitKind::Held, Some(*cause), None),
            Why::Asks(approval, _) => (WaitKind::Waiting, None, Some(*approval)),
        };
        EventKey {
            turn: self.turn,
            kind,
            cause,
            approval,
        }
    }

    /// Whether a person did it, who knows.
    pub(super) fn is_by_person(&self) -> bool {
        matches!(
            self.why,
            Why::Held(HoldCause::Person | HoldCause::Cancel, _)
        )
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key())
    }
}

impl fmt::Display for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            WaitKind::Idle => "idle",
            WaitKind::Held => "held",
            WaitKind::Waiting => {
                return write!(
                    f,
                    "waiting for approval {}",
                    self.approval.unwrap_or_default()
                );
            }
        };
        match self.turn {
            0 => write!(f, "{kind} before the first turn"),
            turn => write!(f, "{kind} after turn {turn}"),
        }
    }
}

/// A message about one event.
#[derive(Debug, Serialize)]
pub(super) struct Message {
    /// All of it.
    pub(super) text: String,
    pod: String,
    state: WaitKind,
    turn: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    attach: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// The same for every attempt.
    #[serde(skip)]
    pub(super) id: String,
}

impl Message {
    pub(super) fn new(pod: &str, event: &Event, answer: Option<&str>) -> Self {
        let EventKey {
            turn, kind: state, ..
        } = event.key();
        let attach = format!("yoi attach {pod}");
        let (reason, what, id) = match &event.why {
            Why::Idle => (
                None,
                format!("is idle after turn {turn}; attach with `{attach}`"),
                "idle".to_owned(),
            ),
            Why::Held(_, reason) => (
                Some(reason.clone()),
                format!("is held: {reason}; attach with `{attach}`"),
                "held".to_owned(),
            ),
            Why::Asks(approval, question) => {
                let what = format!(
                    "waits for your approval; answer with `yoi approve {pod} {approval}`\n\n{question}"
                );
                (Some(question.clone()), what, format!("approval-{approval}"))
            }
        };
        let mut text = format!("pod {pod} {what}");
        let answer = answer.map(|answer| match answer.floor_char_boundary(MAX_ANSWER) {
            end if end < answer.len() => format!("{}…", answer.get(..end).unwrap_or_default()),
            _ => answer.to_owned(),
        });
        if let Some(answer) = &answer {
            text = format!("{text}\n\n{answer}");
        }
        // An argument and a header cannot have such bytes.
        text.retain(|c| c == '\n' || !c.is_control());
        let id = format!("{}-{turn}-{id}", plain(pod));
        Self {
            text,
            pod: pod.to_owned(),
            state,
            turn,
            reason,
            attach,
            answer,
            id,
        }
    }
}

impl Message {
    /// As it is sent.
    pub(super) fn body(&self, format: BodyFormat) -> String {
        match format {
            BodyFormat::Json => serde_json::to_string(self).unwrap_or_default(),
            BodyFormat::Text => self.text.clone(),
        }
    }
}

fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_which_pod_what_and_how() {
        let held = PodActivity::Held {
            cause: HoldCause::Budget,
            reason: "the limit of 3 steps was reached".to_owned(),
        };
        let of = |turns, activity| Event::of(&PodAtRun::new(turns, activity, None));
        assert_eq!(of(0, PodActivity::Idle), None);
        assert_eq!(of(4, PodActivity::Working), None);
        let idle = Message::new("demo", &of(4, PodActivity::Idle).unwrap(), None);
        assert_eq!(
            idle.text,
            "pod demo is idle after turn 4; attach with `yoi attach demo`"
        );
        let held = Message::new(
            "demo",
            &of(4, held).unwrap(),
            Some(&format!("{}ä\u{1b}[2J", "x".repeat(499))),
        );
        let long = format!("{}…", "x".repeat(499));
        assert_eq!(
            held.text,
            format!(
                "pod demo is held: the limit of 3 steps was reached; attach with `yoi attach demo`\n\n{long}"
            )
        );
        let json = serde_json::to_value(&held).unwrap();
        assert_eq!(
            (&json["state"], &json["turn"], &json["answer"]),
            (&"held".into(), &4.into(), &long.into())
        );
        assert_eq!(
            (idle.id.as_str(), held.id.as_str()),
            ("demo-4-idle", "demo-4-held")
        );
        let asks = PodActivity::Waiting {
            approval: 3,
            question: "Bash `rm x` needs approval".to_owned(),
        };
        let asks = Message::new("demo", &of(4, asks).unwrap(), None);
        let text = "pod demo waits for your approval; answer with `yoi approve demo 3`\n\nBash `rm x` needs approval";
        assert_eq!(
            (asks.text.as_str(), asks.id.as_str()),
            (text, "demo-4-approval-3")
        );
    }
}
