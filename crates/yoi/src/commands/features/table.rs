//! A plan or a report as a table: on, off, partly installed, and why. Both have the same shape where it matters here.

use super::availability::time;
use super::capability_text::{
    denied, granted, in_words, list, means, point, scope_text, text, words,
};
use super::page::Page;
use host::compose::packages::OFF;
use llm_worker::Cost;
use pod::feature::{Denial, DeniedCapability, FeatureId, GrantLimit, HostCapability};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tui::count as numbered;

/// What a source is called that no file holds.
const DEFAULT: &str = "default";

/// The whole document: features that are there or should be, those that are off, problems, the host's own part.
pub(crate) fn render(document: &Value) -> Page {
    let mut page = Page::default();
    let features = list(document, "features");
    let width = features
        .iter()
        .map(|f| text(f, "feature_id").len())
        .max()
        .unwrap_or(0);
    let (off, on): (Vec<_>, Vec<_>) = features
        .iter()
        .partition(|f| text(f, "outcome") == "disabled");
    let (never_on, off): (Vec<&Value>, Vec<_>) = off
        .into_iter()
        .partition(|f| text(f, "disabled_by") == DEFAULT);
    for feature in on.into_iter().chain(off) {
        row(&mut page, feature, width);
    }
    if !never_on.is_empty() {
        let ids: Vec<_> = never_on
            .iter()
            .map(|feature| text(feature, "feature_id"))
            .collect();
        page.wrapped("- ", &format!("disabled by default: {}", ids.join(", ")));
        page.wrapped("    ", "to enable one, set enabled = true under [features.\"ID\"], such as [features.\"builtin:jobs\"], in the configuration");
    }
    for diagnostic in list(document, "diagnostics") {
        page.wrapped("! ", text(diagnostic, "message"));
    }
    for unmet in list(document, "unmet") {
        let id = text(unmet, "feature_id");
        let by = text(unmet, "required_by");
        page.wrapped(
            "! ",
            &format!("{id} is required by {by} but is not installed"),
        );
    }
    if !features.is_empty() {
        page.wrapped("", &sum(document));
    }
    host(&mut page, document);
    page
}

/// The commands that it offers people, with whose words they are.
fn slash(feature: &Value) -> String {
    let command = |one: &Value| {
        let hint = match text(one, "argument_hint") {
            "" => String::new(),
            hint => format!(" {hint}"),
        };
        format!("/{}{hint} (of {})", text(one, "name"), text(one, "source"))
    };
    let all: Vec<_> = list(feature, "commands").iter().map(command).collect();
    all.join(", ")
}

fn row(page: &mut Page, feature: &Value, width: usize) {
    let outcome = text(feature, "outcome");
    let id = text(feature, "feature_id");
    let mark = match outcome {
        "installed" => "✓",
        "degraded" => "~",
        "disabled" => "-",
        _ => "✗",
    };
    // Those that are off say so below, with the switch.
    let shown = if outcome == "disabled" {
        ""
    } else {
        outcome_words(outcome)
    };
    page.line(format!("{mark} {id:width$}  {:8} {shown}", text(feature, "version")).trim_end());
    let deferred = deferred(feature);
    let defined = names(feature).filter(|name| !deferred.contains(name));
    let tools = defined.collect::<Vec<_>>().join(" ");
    let parts = [
        ("tools", tools),
        ("defer", defers(feature, deferred.len())),
        ("hooks", hooks(feature)),
        ("tasks", tasks(feature)),
        ("keeps", keeps(feature)),
        ("may", may(feature)),
        ("slash", slash(feature)),
    ];
    for (what, words) in parts {
        if !words.is_empty() {
            page.wrapped(&format!("    {what:6} "), &words);
        }
    }
    if outcome == "disabled" {
        page.wrapped("    ", &why_off(feature));
    }
    let left_out = left_out(feature);
    for (reason, (needed, names)) in &left_out {
        let needs = if names.len() == 1 {
            "it needs"
        } else {
            "they need"
        };
        let why = needed.as_ref().map_or_else(
            || in_words(reason, feature),
            |needed| {
                let why = cause(needed, feature);
                format!("{needs} to {}; {why}", words(&needed.capability))
            },
        );
        page.wrapped("    ", &format!("without {}: {why}", names.join(", ")));
    }
    for (message, denied) in diagnostics(feature) {
        let is_told = |denied: &DeniedCapability| {
            let mut needed = left_out.values().filter_map(|(needed, _)| needed.as_ref());
            needed.any(|needed| needed.capability == denied.capability)
        };
        // A denial that the parts left out have named is not told again.
        if !denied.as_ref().is_some_and(is_told) {
            let told = denied.map_or_else(
                || in_words(message, feature),
                |denied| {
                    let asked = words(&denied.capability);
                    let why = cause(&denied, feature);
                    format!("the feature requires permission to {asked}; {why}")
                },
            );
            page.wrapped("    ", &told);
        }
    }
    let grants = feature.get("grants").unwrap_or(feature);
    let mut all = toml::Table::new();
    for denied in list(grants, "denied").iter().filter_map(denied) {
        let written = denied.denial.remedy.map(toml::Table::try_from);
        add(&mut all, written.and_then(Result::ok).unwrap_or_default());
    }
    if !all.is_empty() {
        let place = format!("[features.\"{id}\"]");
        page.wrapped(
            "    ",
            &format!("to grant that, write under {place} of your own configuration:"),
        );
        // Whole, so that it can be copied.
        page.line(format!("    grant = {}", toml::Value::from(all)));
    }
}

/// Whether a message with this code is about a denial.
pub(super) fn is_denial(code: &str) -> bool {
    matches!(
        code,
        "required_capability_denied" | "optional_capability_denied"
    )
}

/// The messages about a feature; beside a denial, what was denied.
pub(super) fn diagnostics(
    feature: &Value,
) -> impl Iterator<Item = (&str, Option<DeniedCapability>)> {
    let grants = feature.get("grants").unwrap_or(feature);
    // The denials are in the same order.
    let mut denials = list(grants, "denied").iter();
    list(feature, "diagnostics").iter().map(move |diagnostic| {
        let of_denial = is_denial(text(diagnostic, "code")).then(|| denials.next());
        (
            text(diagnostic, "message"),
            of_denial.flatten().and_then(denied),
        )
    })
}

fn add(all: &mut toml::Table, more: toml::Table) {
    for (key, value) in more {
        match (all.get_mut(&key), value) {
            (Some(toml::Value::Table(all)), toml::Value::Table(more)) => add(all, more),
            (Some(toml::Value::Array(all)), toml::Value::Array(more)) => {
                let new: Vec<_> = more
                    .into_iter()
                    .filter(|value| !all.contains(value))
                    .collect();
                all.extend(new);
            }
            (_, value) => drop(all.insert(key, value)),
        }
    }
}

/// The outcome of a feature's installation, for people.
pub(super) fn outcome_words(outcome: &str) -> &str {
    if outcome == "degraded" {
        "partly installed"
    } else {
        outcome
    }
}

/// Why a capability is not granted, and what grants it.
pub(super) fn refusal(denied: &DeniedCapability, id: &FeatureId, feature: &Value) -> String {
    let remedy = denied.denial.remedy.as_ref();
    let table = remedy.and_then(|table| toml::Value::try_from(table).ok());
    let remedy = table.map(|table| format!("; set grant = {table} under [features.\"{id}\"]"));
    format!("{}{}", cause(denied, feature), remedy.unwrap_or_default())
}

/// Why a capability is not granted: a clause that begins with the source.
fn cause(denied: &DeniedCapability, feature: &Value) -> String {
    let Denial {
        limits,
        source,
        remedy,
    } = &denied.denial;
    let joined =
        |of: fn(&GrantLimit) -> String, by| limits.iter().map(of).collect::<Vec<_>>().join(by);
    match (source, remedy) {
        _ if !limits.is_empty() => {
            let source = joined(|limit| limit.source.clone(), " and ");
            let limit = joined(|limit| limit.granted.to_string(), ", ");
            let words = in_words(&limit, feature);
            if words == limit {
                format!("{source} allows less")
            } else {
                format!("{source} allows the feature only to {words}")
            }
        }
        (Some(source), Some(_)) => format!("{source} does not grant this permission"),
        (Some(source), None) => format!("{source} refuses it"),
        (None, Some(_)) => "no rule grants it".to_owned(),
        (None, None) => in_words(&denied.reason, feature),
    }
}

/// Where a setting is written; what no file holds has its default.
pub(crate) fn source_text(source: &str) -> &str {
    if source == "built-in" {
        DEFAULT
    } else {
        source
    }
}

/// What the sandbox does with commands.
pub(super) fn sandbox_text(mode: &str, enforced: bool) -> String {
    match (mode, enforced) {
        ("off", _) => "off; commands have all of your permissions".to_owned(),
        (mode, true) => format!("{mode}, enforced by the kernel"),
        (mode, false) => format!("{mode}, which this kernel cannot enforce"),
    }
}

/// The parts of a feature that are not installed, by reason.
fn left_out(feature: &Value) -> BTreeMap<&str, (Option<DeniedCapability>, Vec<&str>)> {
    let mut parts = BTreeMap::new();
    for skipped in list(feature, "skipped_contributions") {
        let needed = || (skipped.get("denied").and_then(denied), Vec::new());
        let (_, names) = parts.entry(text(skipped, "reason")).or_insert_with(needed);
        names.push(text(skipped, "name"));
    }
    parts
}

/// The switch, wherever it is.
pub(super) fn why_off(feature: &Value) -> String {
    match text(feature, "disabled_by") {
        DEFAULT => {
            format!(
                "disabled; to enable it, set enabled = true under [features.\"{}\"]",
                text(feature, "feature_id")
            )
        }
        "" => "disabled".to_owned(),
        source if source.starts_with(OFF) => {
            format!("disabled: {}", source.trim_start_matches(OFF))
        }
        source
            if ["--", "agent ", "profile "]
                .iter()
                .any(|layer| source.starts_with(layer)) =>
        {
            format!("disabled by {source}")
        }
        source => format!("disabled: enabled = false in {source}"),
    }
}

fn sum(document: &Value) -> String {
    let features = list(document, "features");
    let count = |outcome: &str| {
        features
            .iter()
            .filter(|f| text(f, "outcome") == outcome)
            .count()
    };
    let degraded = count("degraded");
    let on = count("installed") + degraded;
    let mut words = vec![format!("{on} installed")];
    words.extend((degraded > 0).then(|| format!("{degraded} of them partly")));
    words.extend(
        Some(count("skipped"))
            .filter(|n| *n > 0)
            .map(|n| format!("{n} skipped")),
    );
    words.push(format!("{} disabled", count("disabled")));
    format!(
        "{}; {}",
        words.join(", "),
        numbered(
            features.iter().map(|f| names(f).count() as u64).sum(),
            "tool"
        )
    )
}

/// Tool names of a plan or of a report.
fn names(feature: &Value) -> impl Iterator<Item = &str> {
    let planned = list(feature, "tools").iter().map(|tool| text(tool, "name"));
    planned.chain(
        list(feature, "installed_tools")
            .iter()
            .filter_map(Value::as_str),
    )
}

/// Those of them that requests leave out.
fn deferred(feature: &Value) -> BTreeSet<&str> {
    let tools = list(feature, "tools").iter();
    let planned = tools.filter(|tool| tool.get("deferred").is_some_and(|of| *of == true));
    let planned = planned.map(|tool| text(tool, "name"));
    let reported = list(feature, "deferred_tools").iter();
    planned.chain(reported.filter_map(Value::as_str)).collect()
}

fn defers(feature: &Value, deferred: usize) -> String {
    let all = numbered(names(feature).count() as u64, "tool");
    match deferred {
        0 => String::new(),
        many => format!("{many} of {all}: the model searches for them"),
    }
}

fn hooks(feature: &Value) -> String {
    let hooks = list(feature, "hooks")
        .iter()
        .chain(list(feature, "installed_hooks"));
    let shown = hooks.map(|hook| {
        format!(
            "{} (hook {})",
            text(hook, "name"),
            point(text(hook, "point"))
        )
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn tasks(feature: &Value) -> String {
    let shown = list(feature, "background_tasks").iter().map(|task| {
        let triggers: Vec<_> = list(task, "triggers").iter().map(trigger_text).collect();
        format!("{} ({})", text(task, "name"), triggers.join(", "))
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// When a background task runs.
pub(super) fn trigger_text(trigger: &Value) -> String {
    match text(trigger, "trigger") {
        "start" => "at each start".to_owned(),
        "interval" => {
            let ms = trigger
                .get("every_ms")
                .and_then(Value::as_u64)
                .unwrap_or_default();
            let units = [
                (86_400_000, "day"),
                (3_600_000, "hour"),
                (60_000, "minute"),
                (1_000, "second"),
            ];
            let whole = units.into_iter().find(|(unit, _)| ms.is_multiple_of(*unit));
            whole.map_or_else(
                || format!("every {ms} ms"),
                |(unit, name)| format!("every {}", numbered(ms / unit, name)),
            )
        }
        "cron" => format!(
            "at {} {}",
            text(trigger, "expression"),
            text(trigger, "time_zone")
        ),
        "request" => "on request of the feature".to_owned(),
        "service_event" => {
            let service = trigger
                .get("service")
                .map(|service| text(service, "name"))
                .unwrap_or_default();
            format!(
                "on the event `{}` of the service {service}",
                text(trigger, "event")
            )
        }
        "child_ended" => "after each job".to_owned(),
        "file_change" => "when files change".to_owned(),
        other => other.to_owned(),
    }
}

fn keeps(feature: &Value) -> String {
    let states = list(feature, "states").iter();
    states
        .map(|state| {
            format!(
                "{} {}",
                text(state, "name"),
                scope_text(text(state, "scope"))
            )
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// What was granted beside its tools, hooks and background tasks.
fn may(feature: &Value) -> String {
    let granted = granted(feature.get("grants").unwrap_or(feature));
    // Write access to a directory includes read access.
    let included = |held: &HostCapability| {
        match held {
        HostCapability::ScopedFs { root, read: true, write: false, execute: false } => granted.iter().any(
            |other| matches!(other, HostCapability::ScopedFs { root: same, read: true, write: true, .. } if same == root),
        ),
        _ => false,
    }
    };
    let said = granted.iter().filter(|held| !included(held));
    said.filter_map(means).collect::<Vec<_>>().join(", ")
}

fn host(page: &mut Page, document: &Value) {
    let Some(host) = document.get("host") else {
        return;
    };
    if let Some(sandbox) = host.get("sandbox") {
        let enforced = sandbox
            .get("enforced")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        let text_of = |key| text(sandbox, key);
        let words = sandbox_text(text_of("mode"), enforced);
        page.wrapped(
            "sandbox: ",
            &format!("{words} ({})", source_text(text_of("source"))),
        );
    }
    let rules = list(host, "rules");
    if !rules.is_empty() {
        page.line("permission rules (`ask`: the call needs your approval):");
    }
    for rule in rules {
        page.wrapped(
            "    ",
            &format!("{} ({})", text(rule, "text"), text(rule, "source")),
        );
    }
    let set = |limit: &&Value| text(limit, "source") != "built-in";
    let limits = list(host, "limits");
    let mut shown: Vec<&Value> = limits.iter().filter(set).collect();
    let known = [
        "turn.steps",
        "tool.concurrency",
        "tool.result_inline",
        "hook.deadline",
        "hook.chain",
    ];
    shown.extend(
        limits
            .iter()
            .filter(|limit| !set(limit) && known.contains(&text(limit, "name"))),
    );
    if !shown.is_empty() {
        let words: Vec<_> = shown.iter().map(|limit| bound(limit)).collect();
        page.line("limits (`yoi features --json` prints all limits):");
        page.wrapped("    ", &words.join(", "));
    }
}

fn bound(limit: &Value) -> String {
    let value = limit
        .get("value")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let source = match text(limit, "source") {
        "built-in" => String::new(),
        source => format!(" ({source})"),
    };
    let bound = match text(limit, "name") {
        "turn.steps" => format!("{} in a turn", numbered(value, "step")),
        "turn.cost" => format!("{} for a turn", Cost::billionths(value)),
        "tool.concurrency" => format!("{} at once", numbered(value, "call")),
        "tool.result_inline" => format!("{} of each tool result", numbered(value, "byte")),
        "hook.deadline" => format!("{} for a hook", time(value)),
        "hook.chain" => format!(
            "{} for all hooks of one event, such as a tool call",
            time(value)
        ),
        other => format!("{other}: {value} {}", text(limit, "unit")),
    };
    format!("{bound}{source}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_background_task_shows_when_it_runs() {
        let triggers = |triggers: Value| {
            tasks(&json!({"background_tasks": [{"name": "t", "triggers": triggers}]}))
        };
        let every = |ms: u64| json!({"trigger": "interval", "every_ms": ms});
        let cron =
            json!({"trigger": "cron", "expression": "0 9 * * 1-5", "time_zone": "Europe/Berlin"});
        for (trigger, words) in [
            (
                json!([{"trigger": "start"}, {"trigger": "request"}]),
                "t (at each start, on request of the feature)",
            ),
            (json!([cron]), "t (at 0 9 * * 1-5 Europe/Berlin)"),
            (json!([every(600_000)]), "t (every 10 minutes)"),
            (json!([every(86_400_000)]), "t (every 1 day)"),
            (json!([every(1_500)]), "t (every 1500 ms)"),
        ] {
            assert_eq!(triggers(trigger), words);
        }
        assert_eq!(tasks(&json!({})), "");
    }

    /// Denials were read back from their sentences: a file whose name had the words of one was cut there.
    /// They are told from their fields now; a report of an older program has only the sentence.
    #[test]
    fn a_denial_is_told_from_its_fields() {
        let alert = || json!({"capability": "emit_user_alert"});
        let remedy = || json!({"alerts": true});
        let limits = json!([{"granted": alert(), "source": "/by by/c.toml:2"}]);
        for (fields, told) in [
            (json!({"source": "a; set b:1"}), "a; set b:1 refuses it"),
            (
                json!({"source": "x does not grant it:1", "remedy": remedy()}),
                "x does not grant it:1 does not grant this permission",
            ),
            (
                json!({"limits": limits, "remedy": remedy()}),
                "/by by/c.toml:2 allows the feature only to alert you",
            ),
            (json!({"remedy": remedy()}), "no rule grants it"),
            (json!({}), "refused by c.toml:1"),
        ] {
            let mut one = alert();
            one["reason"] = "refused by c.toml:1".into();
            let more = fields.as_object().unwrap().clone();
            one.as_object_mut().unwrap().extend(more);
            let read = denied(&one).unwrap();
            assert_eq!(cause(&read, &json!({"denied": [one]})), told);
        }
    }

    #[test]
    fn what_grants_two_denials_is_one_setting() {
        let mut all = toml::Table::new();
        for one in [
            "tools = [\"B\"]",
            "tools = [\"A\", \"B\"]\nfs = { workspace = \"read\" }",
        ] {
            add(&mut all, one.parse().unwrap());
        }
        let both = toml::Value::from(all).to_string();
        assert_eq!(
            both,
            r#"{ fs = { workspace = "read" }, tools = ["B", "A"] }"#
        );
    }
}
