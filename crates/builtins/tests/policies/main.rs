//! Policy features and the model's own lists under a pod: what each does, and what is left of it after a restart.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand at the composition root"
)]

mod around;
mod circuit_breaker;
mod command_blocklist;
mod confirm_gate;
mod context;
mod format;
mod jobs;
mod landing;
mod list_features;
mod loop_detect;
mod output_validate;
mod phase_recorder;
mod redact;
mod refused_updates;
mod rig;
mod schedule;
mod step_tracer;
mod tasks;
mod watch;
mod write_policy;

use builtins::policies::{self, OPT_IN};
use rig::{BEGAN, clock, settings};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

#[test]
fn settings_out_of_bounds_and_unknown_keys_are_errors() {
    let [
        loops,
        breaker,
        writes,
        phases,
        items,
        memory,
        router,
        web,
        blocklist,
        confirm,
        schedule,
        person,
        intake,
        watch,
        jobs,
        features,
        redact,
        retry,
        dedup,
        format,
        github,
        gitlab,
        jira,
        slack,
        fireflies,
        clickup,
        validate,
        context,
        tracer,
    ] = OPT_IN;
    let cases = [
        (
            github.clone(),
            json!({"owner": "o", "repo": "a/b"}),
            "`repo`",
        ),
        (gitlab.clone(), json!({"project": "a/../b"}), "`project`"),
        (jira.clone(), json!({"project": "PROJ"}), "`base_url`"),
        (slack.clone(), json!({"kinds": ["room"]}), "`channel`"),
        (fireflies.clone(), json!({"key": "x"}), "key"),
        (clickup.clone(), json!({"list": "a/b"}), "`list`"),
        (items.clone(), json!({"author": ""}), "author"),
        (items, json!({"name": "x"}), "name"),
        (memory, json!({"author": "x"}), "author"),
        (router, json!({"author": "x"}), "author"),
        (web, json!({"hosts": []}), "hosts"),
        (blocklist.clone(), json!({"patterns": [" "]}), "patterns"),
        (
            blocklist.clone(),
            json!({"patterns": vec!["x"; 65]}),
            "patterns",
        ),
        (blocklist, json!({"warn": true}), "warn"),
        (
            confirm.clone(),
            json!({}),
            "`tools` and `patterns` are empty",
        ),
        (
            confirm.clone(),
            json!({"tools": [""]}),
            "`tools` has an empty name",
        ),
        (
            confirm.clone(),
            json!({"tools": vec!["x"; 65]}),
            "or more than 64",
        ),
        (
            confirm.clone(),
            json!({"patterns": ["("]}),
            "`patterns` has `(`: it is no regular expression",
        ),
        (
            confirm.clone(),
            json!({"patterns": vec!["x"; 65]}),
            "`patterns` has 65; expected 0 to 64",
        ),
        (
            confirm.clone(),
            json!({"tools": ["*"], "timeout": "10"}),
            "`timeout` must be a time from 1s to 30d",
        ),
        (
            confirm.clone(),
            json!({"tools": ["*"], "timeout": "0s"}),
            "`timeout`",
        ),
        (
            confirm.clone(),
            json!({"tools": ["*"], "timeout": "31d"}),
            "such as 90s, 10m or 2h, not `31d`",
        ),
        (
            confirm,
            json!({"tools": ["*"], "timeout_s": 9}),
            "timeout_s",
        ),
        (format.clone(), json!({"result": 499}), "`result` must be"),
        (
            format.clone(),
            json!({"result": 8001}),
            "`result` must be 500 to 8000, not 8001",
        ),
        (format.clone(), json!({"turn": 1_000_001}), "`turn` must be"),
        (
            format.clone(),
            json!({"by_tool": {"Bash": 49}}),
            "`by_tool` gives Bash 49 tokens",
        ),
        (
            format,
            json!({"tools": (0..33).map(|n| n.to_string()).collect::<Vec<_>>()}),
            "`tools` names 33",
        ),
        (
            schedule.clone(),
            json!({"time_zone": "Mars"}),
            "`time_zone`: `Mars` is not a time zone",
        ),
        (
            schedule.clone(),
            json!({"prompts": [{"name": "A", "cron": "0 9 * * *", "text": "x"}]}),
            "`A` is not a valid name",
        ),
        (
            schedule.clone(),
            json!({"prompts": [{"name": "a", "cron": "9", "text": "x"}]}),
            "`prompts`: a: ",
        ),
        (
            schedule.clone(),
            json!({"prompts": [{"name": "a", "cron": "0 9 * * *", "text": " "}]}),
            "the text is empty",
        ),
        (
            schedule,
            json!({"prompts": [{"name": "a", "at": "x", "cron": "0 9 * * *", "text": "x"}]}),
            "`at`",
        ),
        (person.clone(), json!({}), "command"),
        (person, json!({"url": "https://example.org"}), "url"),
        (intake.clone(), json!({"every_minutes": 1}), "every_minutes"),
        (intake, json!({"label": "A B"}), "labels"),
        (watch, json!({"wake": "yes"}), "boolean"),
        (context, json!({"index": "x"}), "index"),
        (tracer, json!({"kinds": []}), "kinds"),
        (redact, json!({"pattern": "x"}), "pattern"),
        (retry, json!({"times": 6}), "`times` must be 1 to 5, not 6"),
        (
            dedup,
            json!({"min_bytes": 0}),
            "`min_bytes` must be 1 to 32768, not 0",
        ),
        (
            validate,
            json!({"schema": {"type": "thing"}}),
            "`schema` is not a JSON Schema",
        ),
        (
            jobs.clone(),
            json!({"max_jobs": 9}),
            "`max_jobs` is 9; expected 1 to 8",
        ),
        (
            jobs,
            json!({"max_hours": 169}),
            "`max_hours` is 169; expected 1 to 168",
        ),
        (phases, json!({"most": 3}), "most"),
        (loops.clone(), json!({"window": 1}), "window"),
        (loops.clone(), json!({"windw": 3}), "windw"),
        (breaker.clone(), json!({"errors": 0}), "errors"),
        (breaker, json!({"rest_s": 4000}), "rest_s"),
        (writes.clone(), json!({}), "scopes"),
        (writes, json!({"scopes": ["../x"]}), "scopes"),
        (features, json!({"words": "x"}), "words"),
        (builtins::files::ID, json!({"speed": 3}), "speed"),
    ];
    let clock = clock(&Arc::new(AtomicU64::new(BEGAN)));
    for (id, keys, named) in cases {
        let all = BTreeMap::from([(id.clone(), settings(keys))]);
        let bad = policies::with_settings(&all, |other| *other == id, &clock)
            .err()
            .unwrap();
        assert!(bad.feature == id && bad.problem.contains(named), "{bad}");
    }
    let none = policies::with_settings(&BTreeMap::new(), |_| false, &clock).unwrap();
    assert!(none.is_empty());
}
