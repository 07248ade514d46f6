//! Where the arguments of a foreign tool name what a call touches: JSON pointers that the host follows. Do not depend
//! on running tools.

use super::text::{self, Lines};
use llm_worker::tool::Touch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Most rules of one tool.
const MAX_RULES: usize = 16;
/// Longest pointer or fixed text, in bytes.
const MAX_RULE: usize = 512;

/// The kind of a [`Touch`] that a foreign tool may declare. A command of a foreign tool never leaves the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TouchKind {
    /// Reads this path.
    Read,
    /// Writes this path.
    Write,
    /// Runs this shell command.
    Shell,
    /// Reads from this host.
    Host,
    /// Changes only the session's own state.
    Session,
    /// Changes something at this host or service.
    RemoteWrite,
}

/// One rule: what a call touches stands in the arguments, at a JSON pointer, or is the same for each call.
///
/// ```
/// use pod::feature::{TouchKind, TouchRule};
/// let rules = [TouchRule::at(TouchKind::Write, "/path"), TouchRule::fixed(TouchKind::Host, "api.example.org")];
/// assert_eq!(rules[0].at.as_deref(), Some("/path"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TouchRule {
    /// A JSON pointer to a text, or to a list of texts, below a property that the schema names. Where the arguments have
    /// nothing there, the rule means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The path, command, host or service of every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
    pub is: TouchKind,
}

impl TouchRule {
    /// What a call touches stands in its arguments, at this JSON pointer.
    #[must_use]
    pub fn at(is: TouchKind, pointer: impl Into<String>) -> Self {
        Self {
            at: Some(pointer.into()),
            fixed: None,
            is,
        }
    }

    /// Every call touches this.
    #[must_use]
    pub fn fixed(is: TouchKind, what: impl Into<String>) -> Self {
        Self {
            at: None,
            fixed: Some(what.into()),
            is,
        }
    }

    /// Every call changes only the session's own state.
    #[must_use]
    pub const fn session() -> Self {
        Self {
            at: None,
            fixed: None,
            is: TouchKind::Session,
        }
    }

    /// The problem of the rules of a tool with this schema, if any.
    pub(crate) fn problem(rules: &[Self], tool: &str, schema: &Value) -> Option<String> {
        if rules.len() > MAX_RULES {
            return Some(format!(
                "tool `{tool}` has {} rules of touches; at most {MAX_RULES} are allowed",
                rules.len()
            ));
        }
        rules
            .iter()
            .find_map(|rule| rule.fits(schema).err())
            .map(|why| format!("a touch of tool `{tool}`: {why}"))
    }

    fn fits(&self, schema: &Value) -> Result<(), String> {
        match (&self.at, &self.fixed, self.is) {
            (None, None, TouchKind::Session) => Ok(()),
            (_, _, TouchKind::Session) => Err("`session` has neither `at` nor `fixed`".to_owned()),
            (Some(pointer), None, _) => {
                text::check("`at`", pointer, MAX_RULE, Lines::One)?;
                let first = pointer
                    .strip_prefix('/')
                    .and_then(|rest| rest.split('/').next())
                    .unwrap_or_default();
                let first = first.replace("~1", "/").replace("~0", "~");
                // A pointer with an error would name nothing, and a call would escape the rules for what it touches.
                match schema
                    .get("properties")
                    .and_then(|properties| properties.get(&first))
                {
                    Some(_) => Ok(()),
                    None => Err(format!(
                        "`at` is `{pointer}`, but the schema names no such property"
                    )),
                }
            }
            (None, Some(fixed), _) => text::check("`fixed`", fixed, MAX_RULE, Lines::Many),
            (..) => Err("exactly one of `at` and `fixed` is needed".to_owned()),
        }
    }

    /// What a call with these arguments touches by this rule.
    ///
    /// # Errors
    /// The value at the pointer is no text.
    pub(crate) fn touches(&self, arguments: &Value) -> Result<Vec<Touch>, String> {
        let Some(pointer) = &self.at else {
            return Ok(vec![self.touch(self.fixed.as_deref().unwrap_or_default())]);
        };
        let unfit = || {
            format!(
                "{pointer}: expected a text or a list of texts, since it names what the call touches"
            )
        };
        match arguments.pointer(pointer) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![self.touch(text)]),
            Some(Value::Array(texts)) => texts
                .iter()
                .map(|text| text.as_str().map(|text| self.touch(text)).ok_or_else(unfit))
                .collect(),
            Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => Err(unfit()),
        }
    }

    fn touch(&self, text: &str) -> Touch {
        match self.is {
            TouchKind::Read => Touch::Read(PathBuf::from(text)),
            TouchKind::Write => Touch::Write(PathBuf::from(text)),
            TouchKind::Shell => Touch::Shell(text.to_owned()),
            TouchKind::Host => Touch::Host(text.to_owned()),
            TouchKind::Session => Touch::Session,
            TouchKind::RemoteWrite => Touch::RemoteWrite(text.to_owned()),
        }
    }
}
