//! The calls of the journal that proposed rules would have matched. They are judged as a new call is: their tool parses the
//! recorded arguments, and the rules match what it names. Runs nothing.

use super::authorize::Authorizer;
use super::named::named;
use super::parse::{DEADLINE, facts, prepare};
use crate::control::core::Core;
use crate::control::submit_error::SubmitError;
use crate::permission::{Rule, RuleTrial};
use crate::record::{ApprovalId, ApprovalRequested, Record};
use crate::session::restore::{RestoreError, decode};
use llm_worker::effect::CallView;
use llm_worker::{CallId, Item};
use protocol::method::{MatchedCall, MatchedCalls};
use session_store::Reader;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Calls that are shown of those that match.
pub const MAX_SHOWN_CALLS: usize = 10;

/// The newest calls that are looked at.
const MAX_CALLS: usize = 500;

/// Bytes of records that are looked at.
const MAX_BYTES: usize = 32 << 20;

/// Records and bytes that are read at a time.
const PAGE: (usize, usize) = (1000, 4 << 20);

/// How long the calls are judged; a part of [`DEADLINE`], behind which a tool counts as stuck.
const TIME: Duration = Duration::from_secs(3);

/// A call that ended.
struct PastCall {
    call: CallId,
    tool: String,
    /// As they ran; of a call that did not run, as they were asked about or as the model wrote them.
    arguments: Arc<str>,
}

/// The search for the calls that the rules of one question match.
pub(in crate::control) struct PastSearch {
    authorizer: Authorizer,
    rules: Vec<Rule>,
}

impl PastSearch {
    /// For the rules of a question that waits.
    pub(in crate::control) fn new(core: &Core, approval: ApprovalId) -> Result<Self, SubmitError> {
        let open: &ApprovalRequested = core
            .state
            .approvals
            .open
            .get(&approval)
            .ok_or(SubmitError::NoApproval(approval))?;
        let authorizer = Authorizer::new(core, core.state.surface_generation);
        let authorizer = authorizer.with_rules(&core.state.approvals.rules);
        Ok(Self {
            authorizer,
            rules: open.rules.iter().map(Rule::from).collect(),
        })
    }

    /// Searches the records of the session in `dir`, up to the newest that was folded.
    pub(in crate::control) async fn run(
        self,
        dir: &Path,
        newest: u64,
    ) -> Result<MatchedCalls, SubmitError> {
        let dir = dir.to_path_buf();
        let unread = |why: String| SubmitError::Disk(format!("the journal cannot be read: {why}"));
        let read = tokio::task::spawn_blocking(move || ended(&dir, newest));
        let (calls, complete) = read
            .await
            .map_err(|error| unread(error.to_string()))?
            .map_err(|error| unread(error.to_string()))?;
        let callbacks = self.authorizer.callbacks.clone();
        let work = async move { self.among(calls, complete) };
        let judged = callbacks
            .run(DEADLINE, CancellationToken::new(), work)
            .await;
        judged.map_err(|lost| SubmitError::Unjudged(lost.to_string()))
    }

    fn among(&self, calls: Vec<PastCall>, complete: bool) -> MatchedCalls {
        let Some(trial) = self.authorizer.permission.policy.trial(&self.rules) else {
            return MatchedCalls::default();
        };
        let until = Instant::now() + TIME;
        let mut past = MatchedCalls {
            complete,
            ..MatchedCalls::default()
        };
        for call in calls {
            if Instant::now() > until {
                past.complete = false;
                break;
            }
            past.searched += 1;
            let call = self.resolved(call);
            if self.matches(&trial, &call) {
                past.matched += 1;
                if past.calls.len() < MAX_SHOWN_CALLS {
                    past.calls.push(MatchedCall {
                        call: call.call.to_string(),
                        tool: call.tool,
                        arguments: call.arguments.chars().take(protocol::MAX_SHOWN).collect(),
                    });
                }
            }
        }
        past
    }

    /// The call itself, or the one that it names. No other record says so of one that was refused.
    fn resolved(&self, past: PastCall) -> PastCall {
        let registry = &self.authorizer.registry;
        if registry.tools().caller.as_deref() != Some(&*past.tool) {
            return past;
        }
        let written = CallView {
            id: past.call,
            name: past.tool.clone(),
            arguments: past.arguments.to_string(),
        };
        match named(registry, written) {
            Ok(CallView {
                id,
                name,
                arguments,
            }) => PastCall {
                call: id,
                tool: name,
                arguments: arguments.into(),
            },
            Err(_names_none) => past,
        }
    }

    fn matches(&self, trial: &RuleTrial, call: &PastCall) -> bool {
        let Some(tool) = self.authorizer.registry.tools().get(&call.tool) else {
            return false;
        };
        if self.authorizer.callbacks.is_disabled(&tool.feature) {
            return false;
        }
        let Ok(prepared) = prepare(tool, &call.arguments) else {
            return false;
        };
        let permission = &self.authorizer.permission;
        trial.matches(
            &facts(tool, &prepared),
            &permission.workspace,
            permission.sandbox,
        )
    }
}

/// The newest calls with a result, newest first, and whether these are all.
fn ended(dir: &Path, newest: u64) -> Result<(Vec<PastCall>, bool), RestoreError> {
    let reader = Reader::open(dir)?.upto(newest);
    let mut ended = BTreeSet::new();
    let mut called = BTreeMap::new();
    let mut calls = Vec::new();
    let mut before = newest + 1;
    let mut bytes = 0;
    while before > 1 {
        let page = reader.page(before, PAGE.0, PAGE.1)?;
        before = page.first().map_or(1, |frame| frame.seq);
        for frame in page.into_iter().rev() {
            bytes += frame.line.len();
            match frame.kind.as_str() {
                "item" | "approval_requested" | "tool_started" | "tool_finished" => {}
                _ => continue,
            }
            let record = decode(&frame)?;
            if let Record::ToolFinished(finished) = record {
                ended.insert(finished.call);
            } else if let Record::ToolStarted(started) = record {
                let ran = (started.name, started.arguments);
                called.entry(started.call).or_insert(ran);
            } else if let Record::ApprovalRequested(asked) = record {
                let shown = (asked.tool, asked.arguments);
                called.entry(asked.call).or_insert(shown);
            } else if let Record::ItemAdded(added) = record
                && let Item::ToolCall {
                    id,
                    name,
                    arguments: raw,
                } = added.item
                && ended.remove(&id)
            {
                // A call may have named the tool that it is for.
                let (tool, arguments) = called.remove(&id).unwrap_or((name, raw.into()));
                calls.push(PastCall {
                    call: id,
                    tool,
                    arguments,
                });
            }
            if calls.len() >= MAX_CALLS || bytes >= MAX_BYTES {
                return Ok((calls, frame.seq <= 1));
            }
        }
    }
    Ok((calls, true))
}
