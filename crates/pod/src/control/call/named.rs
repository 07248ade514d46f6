//! A call of a tool that requests leave out: the model names it and its arguments in a call of another tool. Everything behind
//! this file sees the named tool alone, so that no rule, gate or approval is about another call than the one that runs.

use super::verdict::Authorization;
use crate::control::limits::MAX_ARGUMENTS;
use crate::feature::{FeatureRegistry, NamedCall};
use llm_worker::effect::CallView;
use llm_worker::tool::parse_arguments;
use serde::Deserialize;
use serde_json::value::RawValue;

/// [`NamedCall`] without reading the arguments: the named tool does, and numbers keep their digits.
#[derive(Deserialize)]
struct UnreadCall<'a> {
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

/// The call itself, or the one that it names.
///
/// # Errors
/// It names none that requests leave out.
pub(super) fn named(
    registry: &FeatureRegistry,
    call: CallView,
) -> Result<CallView, Box<Authorization>> {
    let tools = registry.tools();
    if tools.caller.as_deref() != Some(&*call.name) {
        return Ok(call);
    }
    let invalid = |problem: &str| {
        let redactor = registry.redactor();
        Box::new(Authorization::invalid("host:arguments", problem, redactor))
    };
    if call.arguments.len() > MAX_ARGUMENTS {
        let bytes = call.arguments.len();
        let problem =
            format!("the arguments have {bytes} bytes; at most {MAX_ARGUMENTS} are allowed");
        return Err(invalid(&problem));
    }
    let parsed = parse_arguments::<NamedCall>(&call.name, &call.arguments);
    let (NamedCall { name, .. }, canonical) = parsed.map_err(|why| invalid(&why.to_string()))?;
    match tools.get(&name) {
        Some(tool) if tool.is_deferred => {}
        Some(_) => return Err(invalid(&format!("call {name} itself"))),
        None => return Err(invalid(&format!("there is no tool called `{name}`"))),
    }
    let unread = serde_json::from_str::<UnreadCall<'_>>(&canonical);
    let unread = unread.map_err(|why| invalid(&why.to_string()))?;
    let arguments = unread.arguments.map_or("{}", RawValue::get).to_owned();
    Ok(CallView {
        name,
        arguments,
        ..call
    })
}
