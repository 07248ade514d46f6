//! `yoi features`: what is on, what is off, and why.

use crate::cli::FeaturesArgs;
use crate::commands::out::{self, read_failure};
use crate::compose::compose;
use crate::config::Config;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::Pods;
use authority::Ambient;
use pod::feature::HostCapability;
use pod::session::record::Record;
use pod::session::restore::decode;
use serde_json::Value;
use session_store::Reader;

/// Shows the plan for this directory and configuration, or what a pod's newest start installed.
pub(crate) fn run(args: &FeaturesArgs, env: &Env) -> Result<Exit, Failure> {
    let document = match &args.name {
        Some(_) if args.plan => {
            return Err(Failure::new(Exit::Usage, "--plan is about the next start; leave out the name"));
        }
        Some(name) => recorded(name, env)?,
        None => {
            let config = Config::load(env)?;
            let plan = compose(&Ambient::claim(), &config, env, &[])?.plan();
            serde_json::to_value(plan).map_err(|e| Failure::new(Exit::Internal, e.to_string()))?
        }
    };
    if args.json {
        out::json(&document);
    } else {
        render(&document);
    }
    Ok(Exit::Done)
}

/// The newest report in a pod's journal.
fn recorded(name: &str, env: &Env) -> Result<Value, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(name)?;
    let reader = Reader::open(&pods.dir(&name)).map_err(|e| read_failure(&name, &e))?;
    let mut newest = None;
    for frame in reader.frames() {
        let frame = frame.map_err(|e| read_failure(&name, &e))?;
        if frame.kind == "features"
            && let Record::Features(features) =
                decode(&frame).map_err(|e| Failure::new(Exit::Data, format!("{name}: {e}")))?
        {
            newest = Some(features.report);
        }
    }
    newest.ok_or_else(|| Failure::new(Exit::Data, format!("{name} has no install report")))
}

/// The widest line of the table.
const WIDTH: usize = 80;

/// A plan and a report have the same shape where it matters here.
fn render(document: &Value) {
    let features = list(document, "features");
    let width = features.iter().map(|f| text(f, "feature_id").len()).max().unwrap_or(0);
    for feature in features {
        let outcome = text(feature, "outcome");
        let mark = match outcome {
            "installed" => "✓",
            "degraded" => "~",
            "disabled" => "-",
            _ => "✗",
        };
        let version = text(feature, "version");
        out::line(&format!("{mark} {:width$}  {version:8} {outcome}", text(feature, "feature_id")));
        for (what, words) in [("tools", tools(feature)), ("hooks", hooks(feature)), ("may", may(feature))] {
            if !words.is_empty() {
                wrapped(&format!("    {what:6} "), &words);
            }
        }
        for skipped in list(feature, "skipped_contributions") {
            wrapped("    ", &format!("without {}: {}", text(skipped, "name"), text(skipped, "reason")));
        }
        for diagnostic in list(feature, "diagnostics") {
            wrapped("    ", text(diagnostic, "message"));
        }
    }
    for diagnostic in list(document, "diagnostics") {
        wrapped("! ", text(diagnostic, "message"));
    }
    for unmet in list(document, "unmet") {
        let (id, by) = (text(unmet, "feature_id"), text(unmet, "required_by"));
        wrapped("! ", &format!("{id} is required by {by} and will not be there: {}", text(unmet, "reason")));
    }
    let rules = document.get("host").map_or(&[][..], |host| list(host, "rules"));
    if !rules.is_empty() {
        out::line("the host's rules:");
    }
    for rule in rules {
        wrapped("    ", &format!("{} ({})", text(rule, "text"), text(rule, "source")));
    }
}

/// Words behind `first`, broken before [`WIDTH`] columns; what follows stands below the first word.
fn wrapped(first: &str, words: &str) {
    let indent = first.chars().count();
    let (mut line, mut columns, mut empty) = (first.to_owned(), indent, true);
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if !empty && columns + 1 + length > WIDTH {
            out::line(&line);
            (line, columns, empty) = (" ".repeat(indent), indent, true);
        }
        if !empty {
            line.push(' ');
            columns += 1;
        }
        line.push_str(word);
        columns += length;
        empty = false;
    }
    out::line(&line);
}

fn tools(feature: &Value) -> String {
    let planned = list(feature, "tools").iter().map(|tool| text(tool, "name"));
    let installed = list(feature, "installed_tools").iter().filter_map(Value::as_str);
    planned.chain(installed).collect::<Vec<_>>().join(" ")
}

/// Each hook with what it is and where it stands.
fn hooks(feature: &Value) -> String {
    let hooks = list(feature, "hooks").iter().chain(list(feature, "installed_hooks"));
    let shown =
        hooks.map(|hook| format!("{} ({} at {})", text(hook, "name"), text(hook, "class"), text(hook, "point")));
    shown.collect::<Vec<_>>().join(", ")
}

/// What was granted beside its tools and hooks.
fn may(feature: &Value) -> String {
    let granted = feature.get("grants").unwrap_or(feature);
    let granted = list(granted, "granted").iter().filter_map(|held| serde_json::from_value(held.clone()).ok());
    let granted: Vec<HostCapability> = granted.collect();
    let writes = granted.contains(&HostCapability::WRITE_WORKSPACE);
    let said = granted.iter().filter(|held| !writes || **held != HostCapability::READ_WORKSPACE);
    said.filter_map(means).collect::<Vec<_>>().join(", ")
}

fn means(held: &HostCapability) -> Option<String> {
    match held {
        HostCapability::ContributeTool { .. } | HostCapability::ContributeHook { .. } => None,
        HostCapability::TransformResults { tools } => Some(format!("change what {} answers", tools.join(", "))),
        HostCapability::RewriteArguments { tools } => Some(format!("change arguments of {}", tools.join(", "))),
        HostCapability::ScopedFs { root, read, write, execute } => {
            let words = [(read, "read"), (write, "write"), (execute, "run")];
            let words: Vec<_> = words.into_iter().filter(|(on, _)| **on).map(|(_, word)| word).collect();
            Some(format!("{} the {root}", words.join(" and ")))
        }
        HostCapability::Process { programs } if programs.iter().any(|name| name == "*") => {
            Some("start any program".to_owned())
        }
        HostCapability::Process { programs } => Some(format!("start {}", programs.join(", "))),
        HostCapability::StateStore { scope } => Some(format!("keep {scope} state")),
        HostCapability::EmitModelNotification { max_bytes, per_turn } => {
            Some(format!("tell the model something ({max_bytes} bytes, {per_turn} a turn)"))
        }
        HostCapability::EmitUserAlert => Some("alert you".to_owned()),
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
