//! `write-policy`: where writing is refused.

use crate::rig::{pod, refused, turn};
use builtins::write_policy::ID;
use llm_worker::tool::Touch;
use llm_worker::{ToolEffect, ToolOutput};
use serde_json::json;
use testkit::FnTool;

#[test]
fn paths_are_followed_to_where_they_lead() {
    let write = |path: &str| {
        let touches = vec![Touch::Write(path.into())];
        FnTool::new("W", ToolEffect::Effectful, |_, _| async {
            Ok(ToolOutput::default())
        })
        .touching(touches)
    };
    let cases = [
        ("src/new.rs", false),
        ("src/deep/new.rs", false),
        ("src/none/new.rs", false),
        ("docs/../src/new.rs", false),
        ("src/../docs/x", true),
        ("docs/x", true),
        ("srcs/x", true),
        ("src/out/x", true),
    ];
    for (path, refuse) in cases {
        let (pod, _) = pod(&ID, json!({"scopes": ["./src"]}), vec![write(path)]);
        std::fs::create_dir_all(pod.project.join("src/deep")).unwrap();
        std::fs::create_dir(pod.project.join("docs")).unwrap();
        std::os::unix::fs::symlink("../docs", pod.project.join("src/out")).unwrap();
        let ended = turn(&pod, &[("W", "{}")]);
        assert_eq!(refused(&ended) == [0], refuse, "`{path}`: {ended:?}");
        let named =
            ended[0].1.contains("builtin:write-policy") && ended[0].1.contains("rule `scopes`");
        assert!(!refuse || named, "`{path}`: {ended:?}");
    }
}

#[test]
fn commands_are_refused_unless_told_otherwise() {
    let shell = || {
        let touches = vec![Touch::Shell("echo x > docs/x".to_owned())];
        FnTool::new("Bash", ToolEffect::Effectful, |_, _| async {
            Ok(ToolOutput::default())
        })
        .touching(touches)
    };
    for (commands, expected) in [(false, vec![0]), (true, vec![])] {
        let (pod, _) = pod(
            &ID,
            json!({"scopes": ["src"], "commands": commands}),
            vec![shell()],
        );
        assert_eq!(refused(&turn(&pod, &[("Bash", "{}")])), expected);
    }
}
