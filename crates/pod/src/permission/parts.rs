//! The parts of a command line for a question: as they are judged, with those because of which a rule asks.

use super::judge::{CallFacts, Policy, SandboxState};
use super::place::{self, Target};
use super::rule::RuleDecision;
use crate::record::{AskedCommand, CommandPart};
use authority::Workspace;
use llm_worker::tool::Touch;
use serde_json::Value;

/// Parts that a question lists.
const MAX_LISTED: usize = 32;

impl Policy {
    /// The parts of the call's command line, if it has one and `arguments` (JSON) has it as a text. Rules may parse it
    /// without looking at its parts; then none of them asks.
    #[must_use]
    pub fn asked_command(
        &self,
        call: &CallFacts<'_>,
        arguments: &str,
        workspace: &Workspace,
        now: SandboxState,
    ) -> Option<AskedCommand> {
        let shell = |touch: &Touch| {
            if let Touch::Shell(text) = touch {
                Some(text.clone())
            } else {
                None
            }
        };
        let mut texts = call.touches.iter().filter_map(shell);
        let (Some(text), None) = (texts.next(), texts.next()) else {
            return None;
        };
        let field = field(arguments, &text)?;
        let is_split = self.judges_parts(call, now);
        let targets = place::targets(
            call.effect,
            call.touches,
            workspace,
            Some(self.guarded_programs(call)),
        );
        let mut parts: Vec<CommandPart> = targets
            .iter()
            .filter_map(|target| {
                let Target::Part(part, _) = target else {
                    return None;
                };
                let place = part.program.as_ref().and_then(|program| program.place());
                let at = place.map(|place| [place.start as u64, place.end as u64]);
                let asks = is_split && self.decides(call, target, now) == RuleDecision::Ask;
                Some(CommandPart {
                    text: part.text.clone(),
                    at,
                    asks,
                })
            })
            .collect();
        if parts.is_empty() {
            return None;
        }
        let more = parts.len().saturating_sub(MAX_LISTED);
        if more > 0 {
            parts.sort_by_key(|part| !part.asks);
            parts.truncate(MAX_LISTED);
        }
        Some(AskedCommand {
            field,
            parts,
            more: more as u64,
        })
    }
}

/// The argument with this text.
fn field(arguments: &str, text: &str) -> Option<String> {
    let Ok(Value::Object(fields)) = serde_json::from_str(arguments) else {
        return None;
    };
    fields
        .into_iter()
        .find(|(_, value)| value.as_str() == Some(text))
        .map(|(name, _)| name)
}
