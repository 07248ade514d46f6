//! Checks of a descriptor: the same each time, within bounds, with schemas that can be followed. Installs nothing.

use super::site::unless_it_panics;
use super::{CheckOutcome, Conformance, all, sample};
use pod::feature::FeatureModule;
use serde_json::Value;
use std::fs;
use std::sync::Arc;

/// Checks that `descriptor()` returns the same bytes each time, and reads and writes nothing.
pub(super) fn pure(conformance: &Conformance) -> CheckOutcome {
    let one = conformance.instance();
    let other = conformance.instance();
    let bytes = |feature: &Arc<dyn FeatureModule>| {
        unless_it_panics(|| {
            serde_json::to_string(&feature.descriptor()).expect("data that encodes")
        })
    };
    let mut answers = Vec::new();
    for feature in [&one, &one, &other] {
        match bytes(feature) {
            Ok(answer) => answers.push(answer),
            Err(words) => return CheckOutcome::No(format!("`descriptor()` panicked: {words}")),
        }
    }
    let first = answers.first().cloned().unwrap_or_default();
    let same = answers
        .iter()
        .find(|answer| **answer != first)
        .map_or(Ok(()), |other| {
            let at = first
                .bytes()
                .zip(other.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            Err(format!(
                "`descriptor()` answered two things, different from byte {at} on"
            ))
        });
    all([same, quiet(&one)])
}

/// Counts the reads and writes of this thread, where the kernel reports them.
fn quiet(feature: &Arc<dyn FeatureModule>) -> Result<(), String> {
    // The second pair measures the reads of the counting itself.
    let (Some(a), _, Some(b), Some(c)) = (calls(), feature.descriptor(), calls(), calls()) else {
        return Ok(());
    };
    if b - a > c - b {
        return Err(format!(
            "`descriptor()` did {} reads or writes",
            (b - a) - (c - b)
        ));
    }
    Ok(())
}

fn calls() -> Option<u64> {
    let io = fs::read_to_string("/proc/thread-self/io").ok()?;
    let number = |key: &str| {
        io.lines()
            .find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok())
    };
    Some(number("syscr:")? + number("syscw:")?)
}

/// Checks that the descriptor is within the limits of planning.
pub(super) fn bounded(conformance: &Conformance) -> CheckOutcome {
    match unless_it_panics(|| conformance.instance().descriptor().problems()) {
        Ok(problems) => {
            let wrong = wrong_schemas(conformance);
            // The check of schemas reports these.
            let of_schema = |problem: &String| {
                wrong
                    .iter()
                    .any(|(tool, _)| problem.contains(&schema_of(tool)))
            };
            all(problems
                .into_iter()
                .filter(|problem| !of_schema(problem))
                .map(Err))
        }
        // The check before reports this.
        Err(_) => CheckOutcome::NotTried("there is no descriptor".to_owned()),
    }
}

/// Checks that every schema is valid and its references resolve.
pub(super) fn schemas(conformance: &Conformance) -> CheckOutcome {
    all(wrong_schemas(conformance)
        .into_iter()
        .map(|(tool, problem)| Err(format!("the {}: {problem}", schema_of(&tool)))))
}

fn schema_of(tool: &str) -> String {
    format!("schema of tool `{tool}`")
}

/// The tools whose schemas have a problem.
fn wrong_schemas(conformance: &Conformance) -> Vec<(String, String)> {
    let tools = conformance.descriptor().declared_tools.into_iter();
    let problem = |schema: &str| match serde_json::from_str::<Value>(schema) {
        Ok(schema) => sample::problem(&schema, &schema),
        Err(error) => Some(error.to_string()),
    };
    tools
        .filter_map(|tool| Some((tool.name, problem(&tool.schema)?)))
        .collect()
}
