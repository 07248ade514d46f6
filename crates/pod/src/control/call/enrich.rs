//! Enrichers of arguments: they change the arguments of a call before its tool parses them. Does not depend on permission.

use crate::control::limits::MAX_ARGUMENTS;
use crate::feature::{ArgumentEnricher, FeatureRegistry, millis, sanitize, secret};
use crate::foreign::{Broke, Callbacks, contained};
use crate::record::TransformNote;
use authority::Redactor;
use llm_worker::effect::CallView;
use llm_worker::tool::parse_arguments;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Bytes of the recorded problem of an enricher.
const MAX_PROBLEM: usize = 512;

type Arguments = Map<String, Value>;

/// Asks the enrichers of the tool, in install order. Arguments that are not one JSON object are left to the tool's
/// parse.
pub(super) async fn enrich(
    registry: &FeatureRegistry,
    callbacks: &Callbacks,
    mut call: CallView,
) -> (CallView, Vec<TransformNote>) {
    let mut notes = Vec::new();
    let tool = registry.tools().get(&call.name);
    let Some(enrichment) = tool.and_then(|tool| tool.enrichment.clone()) else {
        return (call, notes);
    };
    if call.arguments.len() > MAX_ARGUMENTS || enrichment.enrichers.is_empty() {
        return (call, notes);
    }
    let Ok((mut arguments, _)) = parse_arguments::<Arguments>(&call.name, &call.arguments) else {
        return (call, notes);
    };
    let redactor = registry.redactor();
    for enricher in &enrichment.enrichers {
        if enricher.is_suspended()
            || enricher.door.is_shut()
            || callbacks.is_disabled(&enricher.feature)
        {
            continue;
        }
        let began = Instant::now();
        let mut changed = arguments.clone();
        let own = enricher.own(&arguments);
        let answer = ask(callbacks, redactor, &call.name, enricher, own).await;
        let answer = answer
            .and_then(|own| enricher.put(own, &mut changed))
            .map(|()| changed);
        let ms = millis(began.elapsed());
        enricher.count(answer.is_err());
        let before = digest(&call.arguments);
        let (after, problem) = match answer {
            Ok(after) if after == arguments => continue,
            Ok(after) => {
                call.arguments = Value::Object(after.clone()).to_string();
                arguments = after;
                (Some(digest(&call.arguments)), None)
            }
            Err(why) => (None, Some(sanitize(&why, MAX_PROBLEM, redactor))),
        };
        notes.push(TransformNote {
            hook: enricher.name.clone(),
            feature: enricher.feature.to_string(),
            ms,
            before,
            after,
            problem,
        });
    }
    (call, notes)
}

/// The arguments of one enricher as it leaves them.
async fn ask(
    callbacks: &Callbacks,
    redactor: &Redactor,
    tool: &str,
    enricher: &Arc<ArgumentEnricher>,
    before: Arguments,
) -> Result<Arguments, String> {
    const DEADLINE: Duration = ArgumentEnricher::DEADLINE;
    let asked = Arc::clone(enricher);
    let tool = tool.to_owned();
    let mut after = before.clone();
    let work = async move {
        let began = Instant::now();
        let doors = std::slice::from_ref(&asked.door);
        let work = async { asked.code.arguments(&tool, &mut after).map(|()| after) };
        let answer = contained(&asked.feature, doors, work).await;
        (began.elapsed(), answer)
    };
    let (took, answer) = callbacks
        .run(DEADLINE, CancellationToken::new(), work)
        .await
        .map_err(|lost| format!("no arguments came back: {lost}"))?;
    if took > DEADLINE {
        return Err(format!(
            "it returned after {took:.1?}, later than its deadline of {DEADLINE:?}"
        ));
    }
    let answer = answer.map_err(|broke| match broke {
        Broke::Panicked(words) => format!("it panicked: {words}"),
        Broke::Revoked => "its grant was revoked".to_owned(),
    })?;
    let after = answer.map_err(|why| format!("it failed: {why}"))?;
    let changed = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value));
    let found = changed
        .filter_map(|(_, value)| secret(value, redactor))
        .next();
    found.map_or(Ok(after), |secret| Err(format!("it contains {secret}")))
}

fn digest(arguments: &str) -> String {
    blake3::hash(arguments.as_bytes()).to_hex().to_string()
}
