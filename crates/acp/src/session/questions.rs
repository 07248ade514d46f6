//! Questions of a pod: the client is asked, as every other client is, and the first answer counts.

use super::{Session, Stop};
use crate::asked::Question;
use crate::out::Gone;
use crate::pods::PodOpener;
use crate::requests::{Chosen, PermissionOutcome};
use client::ClientError;
use client::cmd_id::cmd_id;
use protocol::error::ErrorKind;
use protocol::event::AlertLevel;
use protocol::journal::ProposedRule;
use protocol::method::{AllowOrDeny, AllowScope, Approve};
use protocol::record::{ApprovalRequested, known};
use serde_json::{Value, json};

const ONCE: &str = "allow-once";
const POD: &str = "allow-pod";
const DENY: &str = "deny";

impl<P: PodOpener> Session<P> {
    /// Asks about the calls that wait, and takes back questions that were answered elsewhere.
    pub(super) async fn ask_person(&mut self) -> Result<(), Stop> {
        let open: Vec<ApprovalRequested> = self
            .transcript
            .open()
            .filter(|asked| !self.asked.contains_key(&asked.approval))
            .cloned()
            .collect();
        let is_open = |id: &u64| self.transcript.open().any(|asked| asked.approval == *id);
        let answered: Vec<(u64, u64)> = self
            .asked
            .iter()
            .filter(|(approval, _)| !is_open(approval))
            .map(|(approval, request)| (*approval, *request))
            .collect();
        for (approval, request) in answered {
            self.asked.remove(&approval);
            self.take_back(request).await?;
        }
        for asked in open {
            let params = json!({
                "sessionId": self.place.name,
                "toolCall": self.transcript.asked(&asked),
                "options": options(&asked),
            });
            let question = Question {
                approval: asked.approval,
                to: self.own_commands.clone(),
            };
            let method = "session/request_permission";
            let request = self.out.ask(method, &params, question).await?;
            self.asked.insert(asked.approval, request);
        }
        Ok(())
    }

    /// Tells the client that nobody waits for its answer, if it has not given one.
    pub(super) async fn take_back(&self, request: u64) -> Result<(), Gone> {
        match self.out.asked(|asked| asked.take(request)) {
            Some(_) => {
                let params = json!({ "requestId": request });
                self.out.tell("$/cancel_request", &params).await
            }
            None => Ok(()),
        }
    }

    /// Takes the answer of the client. One that decides nothing leaves the question to other clients.
    pub(super) async fn resolve(
        &mut self,
        approval: u64,
        outcome: Option<PermissionOutcome>,
    ) -> Result<(), Gone> {
        let open = self.transcript.open();
        let open = open.into_iter().find(|asked| asked.approval == approval);
        let Some(asked) = open.cloned() else {
            return Ok(());
        };
        let chosen = match outcome.map(|outcome| outcome.outcome) {
            Some(Chosen::Selected { option_id }) => decision(&option_id),
            Some(Chosen::Cancelled) => return Ok(()),
            None => None,
        };
        let name = &self.place.name;
        let Some((decision, scope)) = chosen else {
            let text = format!(
                "approval {approval} has no answer: `yoi approve {name} {approval}` allows the call once"
            );
            return self.say(AlertLevel::Warning, &text).await;
        };
        let approve = Approve {
            id: approval,
            decision,
            scope,
            arguments_digest: asked.arguments_digest,
            words: None,
            cmd_id: cmd_id(),
        };
        match self.asked_pod(&approve).await? {
            // Somebody else was first: the record tells how.
            Ok(_) => Ok(()),
            Err(ClientError::Refused(error)) if error.kind == ErrorKind::NoApproval => Ok(()),
            Err(error) => {
                let text = self.pods.explain(&self.place.name, error).message;
                self.say(AlertLevel::Error, &text).await
            }
        }
    }
}

/// The ways to answer: the rules of a question are offered for the pod, as they would count.
fn options(asked: &ApprovalRequested) -> Vec<Value> {
    let rules: Vec<String> = asked
        .rules
        .iter()
        .flatten()
        .filter_map(known::<ProposedRule>)
        .map(|rule| rule.to_string())
        .collect();
    let option =
        |id: &str, name: &str, kind: &str| json!({ "optionId": id, "name": name, "kind": kind });
    let mut options = vec![option(ONCE, "Allow once", "allow_once")];
    if !rules.is_empty() {
        let name = format!("Allow in this session: {}", rules.join("; "));
        options.push(option(POD, &name, "allow_always"));
    }
    options.push(option(DENY, "Deny", "reject_once"));
    options
}

fn decision(option: &str) -> Option<(AllowOrDeny, AllowScope)> {
    match option {
        ONCE => Some((AllowOrDeny::Allow, AllowScope::Once)),
        POD => Some((AllowOrDeny::Allow, AllowScope::Pod)),
        DENY => Some((AllowOrDeny::Deny, AllowScope::Once)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_without_rules_is_answered_for_this_call_alone() {
        let ids = |asked: &ApprovalRequested| {
            let ids = options(asked).into_iter();
            ids.map(|option| option["optionId"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let mut asked = ApprovalRequested::default();
        assert_eq!(ids(&asked), [ONCE, DENY]);
        let rule = json!({ "tool": "Bash", "program": "git", "decision": "allow" });
        asked.rules = Some(vec![rule]);
        assert_eq!(ids(&asked), [ONCE, POD, DENY]);
        assert!(
            options(&asked)[1]["name"]
                .as_str()
                .unwrap()
                .ends_with("Bash git")
        );
        assert!(ids(&asked).iter().all(|id| decision(id).is_some()));
        assert_eq!(decision("rule"), None);
    }
}
