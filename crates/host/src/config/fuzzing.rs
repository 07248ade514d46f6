//! A door for `crates/fuzz`: a project's file of any bytes beside a person's configuration.

use super::file::Mode;
use super::grants::Grants;
use super::{Config, read};
use crate::limits::LIMITS;
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
        after.tool_concurrency.value <= before.tool_concurrency.value,
        "more calls at once"
    );
    for (now, was, of) in [
        (&after.limits, &before.limits, "a run"),
        (&after.pod_limits, &before.pod_limits, "the pod"),
    ] {
        for row in LIMITS {
            let [now, was] = [now, was].map(|limits| limits.get(row.kind).map(|limit| limit.value));
            assert!(now <= was && now.is_some(), "more {:?} for {of}", row.kind);
        }
    }
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
