//! The arguments of a call, parsed by its tool: what hooks and permission see of it. Depends on neither.

use crate::control::limits::MAX_ARGUMENTS;
use crate::feature::{FeatureId, ForeignContract, RegisteredTool};
use crate::foreign::attribution;
use crate::hook::ToolCallView;
use crate::permission::{CallFacts, says_what_changes};
use crate::session::fold::GoingOn;
use authority::Shut;
use llm_worker::tool::{ArgumentError, Prepared, Touch};
use llm_worker::{CallId, ToolEffect};
use std::time::Duration;

/// How long parsing and judging one call may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// The reason why arguments cannot be run.
#[derive(Debug)]
pub(crate) enum Unfit {
    Revoked,
    Problem(String),
}

impl Unfit {
    pub(crate) fn said(self, tool: &RegisteredTool) -> String {
        match self {
            Self::Revoked => taken_back(&tool.definition.name, &tool.feature),
            Self::Problem(problem) => problem,
        }
    }
}

/// Parses arguments of the model or of a transform. Their canonical form is recorded, so it has the bound of the raw
/// one. Arguments of a foreign tool fit its schema before code of its feature runs.
///
/// Parsing counts as a use of the tool's grant. A revocation waits until parsing ends.
pub(crate) fn prepare(registered: &RegisteredTool, arguments: &str) -> Result<Prepared, Unfit> {
    let bounded = |what: &str, bytes: usize| match bytes > MAX_ARGUMENTS {
        true => Err(Unfit::Problem(format!(
            "{what} have {bytes} bytes; at most {MAX_ARGUMENTS} are allowed; split the work"
        ))),
        false => Ok(()),
    };
    let _pass = registered.door.enter().map_err(|Shut| Unfit::Revoked)?;
    bounded("the arguments", arguments.len())?;
    if let Some(enrichment) = &registered.enrichment {
        enrichment.check(arguments).map_err(unfit)?;
    }
    let _inside = attribution::inside(&registered.feature);
    if let Some(contract) = &registered.foreign {
        contract.check(arguments).map_err(unfit)?;
    }
    let mut prepared = registered.tool.prepare(arguments).map_err(unfit)?;
    if let Some(enrichment) = &registered.enrichment
        && *prepared.canonical != *arguments
    {
        enrichment.check(&prepared.canonical).map_err(unfit)?;
    }
    bounded(
        "the arguments with their defaults",
        prepared.canonical.len(),
    )?;
    if let Some(contract) = &registered.foreign {
        add_touches(registered, contract, &mut prepared, arguments)?;
    }
    Ok(prepared)
}

fn unfit(error: ArgumentError) -> Unfit {
    Unfit::Problem(error.to_string())
}

/// Adds what the arguments of a foreign tool touch. The arguments that its own parse returned are judged and run, so they
/// fit the schema, too.
fn add_touches(
    registered: &RegisteredTool,
    contract: &ForeignContract,
    prepared: &mut Prepared,
    arguments: &str,
) -> Result<(), Unfit> {
    if *prepared.canonical != *arguments {
        contract.check(&prepared.canonical).map_err(unfit)?;
    }
    prepared
        .touches
        .extend(contract.touches(&prepared.canonical).map_err(unfit)?);
    if registered.definition.effect != ToolEffect::ReadOnly && !says_what_changes(&prepared.touches)
    {
        // No sandbox of this machine bounds what it changes.
        prepared
            .touches
            .push(Touch::RemoteWrite(registered.feature.to_string()));
    }
    Ok(())
}

/// What hooks see of a call.
pub(crate) fn view(
    call: CallId,
    registered: &RegisteredTool,
    prepared: &Prepared,
    on: Option<GoingOn>,
    turn: u64,
) -> ToolCallView {
    ToolCallView {
        call,
        tool: registered.definition.name.clone(),
        feature: registered.feature.clone(),
        effect: registered.definition.effect,
        arguments: prepared.canonical.clone(),
        touches: prepared.touches.clone(),
        input: on.map(|on| on.input),
        turn,
        by_person: on.is_some_and(|on| on.run),
    }
}

/// What permission judges of a call.
pub(super) fn facts<'a>(registered: &'a RegisteredTool, prepared: &'a Prepared) -> CallFacts<'a> {
    CallFacts {
        tool: &registered.definition.name,
        effect: registered.definition.effect,
        touches: &prepared.touches,
        feature: &registered.feature,
    }
}

/// The problem of a call whose feature is disabled.
pub(crate) fn given_up_on(tool: &str, feature: &FeatureId) -> String {
    format!("{tool} is disabled: code of {feature} did not return")
}

/// The reason to refuse a call of a tool whose grant was revoked.
pub(super) fn taken_back(tool: &str, feature: &FeatureId) -> String {
    format!("{tool} was revoked: {feature} is no longer allowed to offer it")
}
