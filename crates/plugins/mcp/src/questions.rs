//! Questions of servers in a call. One is kept in the session, and the call ends; when the model calls again with the same
//! arguments, a gate asks a person, and only then the answer goes to the server. So a question outlives a killed pod.

use crate::elicit::{Elicited, Prompt, digest};
use crate::pin::ServerPin;
use authority::text::escape_line;
use llm_worker::{CallId, ErrorKind, ToolError};
use pod::feature::{DurableState, HookKey, StateKey};
use pod::hook::{MAX_REASON, PreToolCall, ToolCallView, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

pub(crate) const GATE: HookKey<PreToolCall> = HookKey::new("questions");
pub(crate) const KEPT: StateKey<Kept> = StateKey::new("questions", 1);

/// Most questions of a server that wait, and most bytes of one as JSON: all of them fit into a state.
const MAX_KEPT: usize = 4;
const MAX_QUESTION: usize = 14 << 10;

/// The longest text of the questions of one call, in bytes: an approval shows `MAX_REASON`, of which [`Question::text`] takes
/// at most 128 for what stands before them.
const MAX_ASKED: usize = MAX_REASON - 128;

/// Most calls whose question was shown and that have not run.
const MAX_SHOWN: usize = 256;

/// The questions of a server that wait, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    questions: Vec<Question>,
}

/// What a server asked in a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Question {
    /// The call: [`Questions::about`].
    about: String,
    /// What a person is asked.
    asked: Vec<String>,
    /// What the server wants back beside the answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    /// What goes back if the person agrees: by the server's names of its questions, or in the older era by their digest.
    pub(crate) answers: BTreeMap<String, Value>,
}

impl Question {
    /// The questions of one answer.
    ///
    /// # Errors
    /// One cannot be answered with yes or no, or they are too long to be shown whole.
    pub(crate) fn of(about: &str, elicited: Elicited) -> Result<Self, String> {
        let mut question = Self {
            about: about.to_owned(),
            asked: Vec::new(),
            state: elicited.state,
            answers: BTreeMap::new(),
        };
        for (name, params) in elicited.questions {
            let Prompt { text, answer } = Prompt::of(&params)?;
            question.asked.push(text);
            question.answers.insert(name, answer);
        }
        if question.shown().len() > MAX_ASKED {
            return Err("what it asks is too long to be shown whole".to_owned());
        }
        let bytes = serde_json::to_string(&question).map_or(usize::MAX, |text| text.len());
        match bytes > MAX_QUESTION {
            true => Err("it is too large to be kept".to_owned()),
            false => Ok(question),
        }
    }

    /// What a person is asked, in one line: several questions have numbers.
    fn shown(&self) -> String {
        if let [only] = self.asked.as_slice() {
            return only.clone();
        }
        let numbered = self.asked.iter().zip(1..);
        let numbered = numbered.map(|(text, number)| format!("{number}. {text}"));
        numbered.collect::<Vec<_>>().join("; ")
    }

    fn text(&self, server: &str) -> String {
        let asked = self.shown();
        format!("the MCP server {server} asks, and calls this tool again with the answer: {asked}")
    }

    fn digest(&self) -> String {
        digest(&serde_json::to_string(self).unwrap_or_default())
    }
}

/// The questions of one server in a pod.
pub(crate) struct Questions {
    server: String,
    /// Which server has this name.
    identity: String,
    feature: pod::feature::FeatureId,
    kept: DurableState<Kept>,
    /// The questions that the gate showed, by the calls that wait for them.
    shown: Mutex<BTreeMap<CallId, String>>,
}

impl Questions {
    pub(crate) fn new(
        pin: &ServerPin,
        feature: pod::feature::FeatureId,
        kept: DurableState<Kept>,
    ) -> Self {
        Self {
            server: pin.name.clone(),
            identity: pin.identity(),
            feature,
            kept,
            shown: Mutex::default(),
        }
    }

    /// Names a call by its tool and its arguments, and by what the person pinned: what one server wants back goes to no other.
    pub(crate) fn about(&self, tool: &str, arguments: &str) -> String {
        digest(&format!("{}\0{tool}\0{arguments}", self.identity))
    }

    /// Asks a person before a call whose server asked.
    pub(crate) fn gate(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        if call.feature != self.feature {
            return Verdict::allow();
        }
        let kept = self.kept.newest();
        let about = self.about(&call.tool, &call.arguments);
        let Some(question) = kept.questions.iter().find(|of| of.about == about) else {
            return Verdict::allow();
        };
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() >= MAX_SHOWN {
            shown.pop_first();
        }
        shown.insert(call.call, question.digest());
        Verdict::ask(question.text(&self.server))
    }

    /// The question that a person answered before this call, which is then no question any more.
    ///
    /// # Errors
    /// Nobody was asked yet, or the answer cannot be written down.
    pub(crate) async fn answered(
        &self,
        call: CallId,
        about: &str,
    ) -> Result<Option<Question>, ToolError> {
        let shown = {
            let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            shown.remove(&call)
        };
        let newest = self.kept.newest();
        if newest.questions.iter().all(|of| of.about != about) {
            return Ok(None);
        }
        let taken = self.kept.update(|kept| {
            let at = kept.questions.iter().position(|of| of.about == about)?;
            let fits = kept.questions.get(at).map(Question::digest) == shown;
            // It came while this call was being judged: a person has not seen it.
            Some(fits.then(|| kept.questions.remove(at)))
        });
        let taken = taken
            .await
            .map_err(|error| ToolError::new(error.kind(), error.to_string()))?;
        match taken {
            None => Ok(None),
            Some(Some(question)) => Ok(Some(question)),
            Some(None) => Err(ToolError::new(
                ErrorKind::Denied,
                "nothing was called: the server asks a person first; call again to have the person asked",
            )),
        }
    }

    /// Keeps a question of a server that was told that nobody answered, and went on; gives what the person is told. A call
    /// with the same arguments asks the person first.
    pub(crate) async fn unanswered(&self, question: Result<Question, String>) -> String {
        let asked = match &question {
            Ok(question) => question.shown(),
            Err(why) => why.clone(),
        };
        if question.is_ok() {
            self.keep(question).await;
        }
        format!(
            "the MCP server {} asked a person, was told that nobody answered, and went on: {asked}",
            self.server
        )
    }

    /// Keeps a question until the model calls again; gives what the model is told.
    pub(crate) async fn keep(&self, question: Result<Question, String>) -> ToolError {
        let question = match question {
            Ok(question) => question,
            Err(why) => {
                let text = format!(
                    "the server asks a person before it goes on, and yoi cannot pass that on: {why}; the call was not completed"
                );
                return ToolError::new(ErrorKind::Unavailable, text);
            }
        };
        let asked = escape_line(&question.shown()).into_owned();
        let kept = self.kept.update(|kept| {
            kept.questions.retain(|of| of.about != question.about);
            let more = (kept.questions.len() + 1).saturating_sub(MAX_KEPT);
            kept.questions.drain(..more);
            kept.questions.push(question);
        });
        match kept.await {
            Ok(()) => ToolError::new(
                ErrorKind::Unavailable,
                format!(
                    "the server asks a person before it goes on: {asked}; call this tool again with the same arguments, and the person is asked"
                ),
            ),
            Err(error) => ToolError::new(
                error.kind(),
                format!("the question of the server was not kept: {error}"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(messages: &[&str]) -> Result<Question, String> {
        let named = messages.iter().zip(1..);
        let questions =
            named.map(|(message, at): (_, i32)| (at.to_string(), json!({ "message": message })));
        let elicited = Elicited {
            questions: questions.collect(),
            state: None,
        };
        Question::of("about", elicited)
    }

    #[test]
    fn several_questions_have_numbers() {
        let before = "the MCP server x asks, and calls this tool again with the answer: ";
        for (messages, shown) in [
            (&["Go on?"][..], "Go on?"),
            (&["Go on?", "Delete\nall?"], "1. Go on?; 2. Delete\\nall?"),
        ] {
            assert_eq!(of(messages).unwrap().text("x"), format!("{before}{shown}"));
        }
    }

    #[test]
    fn questions_that_an_approval_would_cut_are_refused() {
        let long = "x".repeat(MAX_ASKED / 2 - 8);
        let asked = of(&[&long, &long]).unwrap();
        let server = "x".repeat(crate::MAX_SERVER_NAME);
        assert!(asked.text(&server).len() <= MAX_REASON);
        let why = of(&[&long, &long, "And?"]).unwrap_err();
        assert_eq!(why, "what it asks is too long to be shown whole");
    }
}
