//! A door for `crates/fuzz`: a project's file of any bytes beside a person's configuration.

use super::file::Mode;
use super::grants::Grants;
use super::{Config, PodLimitSettings, Sourced, read};
use crate::project::Project;
use pod::permission::RuleDecision;
use std::path::Path;

/// What the person configured; everything that a project could want to widen is set.
const PERSONS: &str = r#"
model = "local/small"
[providers.local]
api = "openai-chat"
base_url = "http://127.0.0.1:8080/v1"
[models."local/small"]
price = { input = 1.0, output = 2.0 }
[secrets]
tracker = { env = "TRACKER" }
[limits]
max_steps = 20
max_cost_usd = 1.0
max_tokens = 1000
max_wall_s = 600
tool_concurrency = 4
[limits.pod]
max_steps = 20
max_cost_usd = 1.0
max_tokens = 1000
max_wall_s = 600
[[permissions.rules]]
tool = "Write"
path = "**/.env*"
decision = "deny"
[features."builtin:write-policy"]
enabled = true
[features."builtin:web"]
enabled = false
[sandbox]
mode = "read-only"
network = "hosts"
hosts = ["preset:rust"]
"#;

/// Panics where the file widens anything although nobody granted it. What cannot be read, or cannot be meant, is
/// refused as a whole.
pub fn narrows(text: &str) {
    let Some(before) = layered(PERSONS, None) else {
        panic!("the person's file is read")
    };
    let Some(after) = layered(PERSONS, Some(text)) else {
        return;
    };
    assert!(
        after.max_steps.value <= before.max_steps.value,
        "more steps"
    );
    assert!(
        after.tool_concurrency.value <= before.tool_concurrency.value,
        "more calls at once"
    );
    let dollars = |config: &Config| config.max_cost.as_ref().map_or(f64::MAX, |cost| cost.value);
    assert!(dollars(&after) <= dollars(&before), "more dollars");
    let tokens = |config: &Config| {
        config
            .max_tokens
            .as_ref()
            .map_or(u64::MAX, |tokens| tokens.value)
    };
    assert!(tokens(&after) <= tokens(&before), "more tokens");
    let seconds = |config: &Config| {
        config
            .max_wall_s
            .as_ref()
            .map_or(u64::MAX, |seconds| seconds.value)
    };
    assert!(seconds(&after) <= seconds(&before), "more time");
    assert!(
        pod_limits(&after)
            .iter()
            .zip(pod_limits(&before))
            .all(|(now, was)| *now <= was),
        "more for the pod"
    );
    assert!(
        after.sandbox.value <= before.sandbox.value,
        "a laxer sandbox"
    );
    assert_ne!(after.sandbox.value, Mode::Off);
    assert!(
        after.network.value <= before.network.value,
        "more of the network"
    );
    assert!(
        super::hosts::is_within(&after.hosts.value, &before.hosts.value),
        "more hosts"
    );
    assert!(!after.any_file_system.value, "any file system");
    for (now, was) in [
        (
            format!("{:?}", after.providers),
            format!("{:?}", before.providers),
        ),
        (
            format!("{:?}", after.models),
            format!("{:?}", before.models),
        ),
        (
            format!("{:?}", after.named_secrets),
            format!("{:?}", before.named_secrets),
        ),
        (
            format!("{:?}", after.rules.first()),
            format!("{:?}", before.rules.first()),
        ),
    ] {
        assert_eq!(now, was);
    }
    let added = after
        .rules
        .iter()
        .skip(before.rules.len())
        .flat_map(|rules| &rules.rules);
    assert!(
        added
            .into_iter()
            .all(|written| written.rule.decision != RuleDecision::Allow),
        "a rule that allows"
    );
    for (id, switches) in &after.features {
        let was = before.features.get(id);
        assert!(
            !switches.on() || was.is_some_and(super::Switches::on),
            "{id} is switched on"
        );
        assert!(
            switches.off().is_some() || was.is_none_or(|was| was.off().is_none()),
            "{id} is no longer off"
        );
        assert!(switches.grants.is_empty(), "{id} is granted something");
        assert!(switches.settings.is_empty(), "{id} is set up");
    }
    if let Some(model) = &after.model {
        let known = [
            "offline",
            "local/",
            "openai/",
            "anthropic/",
            "openrouter/",
            "gemini/",
        ];
        assert!(
            known.iter().any(|name| model.value.starts_with(name)),
            "the model {} of nobody known",
            model.value
        );
    }
}

/// Dollars, steps, tokens and seconds.
fn pod_limits(config: &Config) -> [f64; 4] {
    let PodLimitSettings {
        max_steps,
        max_cost,
        max_tokens,
        max_wall_s,
    } = &config.pod_limits;
    let most =
        |limit: &Option<Sourced<u64>>| limit.as_ref().map_or(f64::MAX, |limit| limit.value as f64);
    let dollars = max_cost.as_ref().map_or(f64::MAX, |cost| cost.value);
    [dollars, most(max_steps), most(max_tokens), most(max_wall_s)]
}

fn layered(persons: &str, projects: Option<&str>) -> Option<Config> {
    let mut config = Config::built_in(Project::alone(Path::new("/p")));
    let mut text = read::parse(persons, "config.toml".to_owned()).ok()?;
    config.layer(std::mem::take(&mut text.file), &|key| text.place(key));
    if let Some(projects) = projects {
        let text = read::parse(projects, "yoi.toml".to_owned()).ok()?;
        config.narrow(text, &Grants::none());
    }
    config.check().ok()?;
    Some(config)
}
