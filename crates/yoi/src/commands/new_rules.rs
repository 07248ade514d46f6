//! The scope `rule` of an answer: what is shown before, and what is written after the answer is recorded.
//!
//! A process that dies between the two leaves the call allowed in its pod and the file as it was: less is allowed than was
//! shown, and the same command writes the rules when it is given again.

use crate::show::progress::RuleFile;
use crate::show::question;
use crate::show::rule_preview;
use host::config::{Addition, UserRules, as_toml};
use host::exit::{Exit, Failure};
use pod::permission::Rule;
use protocol::method::{AllowScope, MatchedCalls, PodRule};
use protocol::record::ApprovalRequested;

/// Rules that an answer is to write.
pub(crate) struct NewRules {
    pub(crate) file: UserRules,
    rules: Vec<Rule>,
}

impl NewRules {
    /// The rules of a question that waits.
    ///
    /// # Errors
    /// This scope is not offered, or the file cannot take the rules.
    pub(crate) fn of_question(file: UserRules, asked: &ApprovalRequested) -> Result<Self, Failure> {
        Self::new(file, offered(asked)?)
    }

    /// The rules that an answer allowed before, of those that are allowed for the pod.
    ///
    /// # Errors
    /// The file cannot take the rules.
    pub(crate) fn of_answer(
        file: UserRules,
        allowed: &[PodRule],
        approval: u64,
    ) -> Result<Self, Failure> {
        let by_rule = allowed
            .iter()
            .filter(|rule| rule.approval == approval && rule.scope == AllowScope::Rule);
        Self::new(file, question::read_rules(by_rule.map(|rule| &rule.rule)))
    }

    fn new(file: UserRules, rules: Vec<Rule>) -> Result<Self, Failure> {
        file.addition(&rules)?;
        Ok(Self { file, rules })
    }

    /// As it is shown before the answer.
    pub(crate) fn preview(&self, past: &Result<MatchedCalls, String>) -> Result<String, String> {
        let addition = self
            .file
            .addition(&self.rules)
            .map_err(|failure| failure.message)?;
        Ok(rule_preview::before(&self.file.shown, &addition.toml, past))
    }

    /// Adds the rules to the file, if this is the answer that counts. The caller holds the lock of the file.
    ///
    /// # Errors
    /// The file cannot be written: the call is allowed in its pod only.
    pub(crate) fn write(
        &self,
        decision: &str,
        scope: Option<&str>,
    ) -> Result<Option<Addition>, Failure> {
        if decision != "allow" || scope != Some("rule") {
            return Ok(None);
        }
        if self.rules.is_empty() {
            let text = "the call was allowed, but the pod does not know its rules any more, so none was written";
            return Err(Failure::new(Exit::Config, text)
                .help(format!("add the rules to {} yourself", self.file.shown)));
        }
        self.file
            .add(&self.rules)
            .map(Some)
            .map_err(|Failure { message, .. }| {
                let text =
                    format!("{message}; the call is allowed in this pod, but no rule was written");
                let help = format!(
                    "add these lines to {}:\n{}",
                    self.file.shown,
                    as_toml(&self.rules)
                );
                Failure::new(Exit::Config, text).help(help)
            })
    }
}

/// The rules that a question offers for the configuration.
fn offered(asked: &ApprovalRequested) -> Result<Vec<Rule>, Failure> {
    let id = asked.approval;
    let why = match question::scopes(asked).len() {
        1 => format!("no rule can allow the call of approval {id}"),
        2 => format!(
            "no rule in your configuration would allow the call of approval {id}: other rules come after it"
        ),
        _ => return Ok(question::rules(asked)),
    };
    Err(Failure::new(Exit::Usage, why)
        .help("`yoi approve` shows the scopes of each call that waits"))
}

/// The user's configuration, for the questions of a run.
pub(crate) struct RunRules {
    pub(crate) file: UserRules,
    /// Those that were shown last.
    pub(crate) shown: Option<NewRules>,
}

impl RuleFile for RunRules {
    fn preview(
        &mut self,
        asked: &ApprovalRequested,
        past: &Result<MatchedCalls, String>,
    ) -> Result<String, String> {
        let new =
            NewRules::of_question(self.file.clone(), asked).map_err(|failure| failure.message)?;
        let text = new.preview(past)?;
        self.shown = Some(new);
        Ok(text)
    }

    fn write(&mut self, record: &mut dyn FnMut() -> bool) -> Result<Vec<String>, Failure> {
        let Some(new) = self.shown.take() else {
            return Ok(Vec::new());
        };
        let _lock = new.file.lock()?;
        let added = if record() {
            new.write("allow", Some("rule"))?
        } else {
            None
        };
        Ok(added
            .map(|added| rule_preview::after(&new.file.shown, &added.toml))
            .unwrap_or_default())
    }
}
