//! Every row of the table and every way to write a path, on a real tree with links.

use super::RuleDecision::{Allow, Ask, Deny};
use super::*;
use crate::feature::FeatureId;
use authority::{Access, SandboxMode, Workspace};
use llm_worker::ToolEffect::{self, Effectful, Idempotent, ReadOnly};
use llm_worker::tool::Touch;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

mod asked_parts;
mod escalation;
mod programs;

pub(crate) const TERMS: HostTerms = HostTerms {
    read: "Read",
    shell: "Bash",
    jobs: "JobStart",
    run: |command| serde_json::json!({ "command": command }).to_string(),
    remedy: |remedy| format!("{remedy:?}"),
};

const FEATURE: FeatureId = FeatureId::builtin("files");
const CONFINED: SandboxState = SandboxState {
    mode: SandboxMode::WorkspaceWrite,
    enforced: true,
};
const UNENFORCED: SandboxState = SandboxState {
    mode: SandboxMode::WorkspaceWrite,
    enforced: false,
};
const OFF: SandboxState = SandboxState {
    mode: SandboxMode::Off,
    enforced: true,
};
const LOCKED: SandboxState = SandboxState {
    mode: SandboxMode::ReadOnly,
    enforced: true,
};

/// project/, outside/, added/ (writable) and looked-at/ (read only) side by side.
struct World {
    dir: tempfile::TempDir,
    workspace: Workspace,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |p: &str| dir.path().join(p);
        for d in [
            "project/.git/hooks",
            "project/bare/objects",
            "project/bare/refs/heads",
            "project/sub",
            "project/secrets",
            "outside",
            "added",
            "kept/objects",
            "kept/refs",
            "looked-at",
        ] {
            std::fs::create_dir_all(at(d)).unwrap();
        }
        for f in [
            "project/a.rs",
            "project/bare/HEAD",
            "project/.git/config",
            "project/.env",
            "project/secrets/key",
            "outside/f",
            "added/f",
            "kept/HEAD",
        ] {
            std::fs::write(at(f), "x").unwrap();
        }
        symlink(at("outside"), at("project/out")).unwrap();
        symlink(at("outside/none"), at("project/dangling")).unwrap();
        symlink("dangling", at("project/chain")).unwrap();
        symlink(".git", at("project/innocent")).unwrap();
        symlink("a.rs", at("project/.envlink")).unwrap();
        symlink("secrets", at("project/open")).unwrap();
        symlink("a.rs", at("project/secrets/alias")).unwrap();
        symlink("loop", at("project/loop")).unwrap();
        let ambient = ambient::claim();
        let workspace =
            Workspace::open(&ambient, &at("project"), &at("project"), Access::ReadWrite)
                .and_then(|w| w.with_dir(&ambient, &at("added"), Access::ReadWrite))
                .and_then(|w| w.with_dir(&ambient, &at("kept"), Access::ReadWrite))
                .and_then(|w| w.with_dir(&ambient, &at("looked-at"), Access::Read))
                .unwrap();
        Self { dir, workspace }
    }

    fn path(&self, text: &str) -> PathBuf {
        text.strip_prefix('@').map_or_else(
            || text.into(),
            |rest| self.dir.path().canonicalize().unwrap().join(rest),
        )
    }

    fn judge(
        &self,
        policy: &Policy,
        tool: &str,
        effect: ToolEffect,
        touches: &[Touch],
        now: SandboxState,
    ) -> PolicyDecision {
        policy.judge(
            &CallFacts {
                tool,
                effect,
                touches,
                feature: &FEATURE,
            },
            &self.workspace,
            now,
        )
    }

    fn read(&self, policy: &Policy, path: &str, now: SandboxState) -> PolicyDecision {
        self.judge(
            policy,
            "Read",
            ReadOnly,
            &[Touch::Read(self.path(path))],
            now,
        )
    }

    fn write(&self, policy: &Policy, path: &str, now: SandboxState) -> PolicyDecision {
        self.judge(
            policy,
            "Write",
            Idempotent,
            &[Touch::Write(self.path(path))],
            now,
        )
    }
}

fn table() -> Policy {
    Policy::new(TERMS, Vec::new())
}

fn rule(tool: &str, path: Option<&str>, decision: RuleDecision) -> Rule {
    Rule {
        path: path.map(str::to_owned),
        ..Rule::new(tool, decision)
    }
}

fn layer(source: &str, rules: &[(&str, Option<&str>, RuleDecision)]) -> Layer {
    Layer::new(
        source,
        rules
            .iter()
            .map(|(tool, path, decision)| rule(tool, *path, *decision))
            .collect(),
    )
    .unwrap()
}

// covers: INV-07
#[test]
fn every_way_to_write_a_path_is_judged_by_where_it_leads() {
    let world = World::new();
    // path, reading, writing: what decides, or + for allowed.
    let cases = [
        ("a.rs", "+", "+"),
        ("./a.rs", "+", "+"),
        ("sub/../a.rs", "+", "+"),
        ("new/deep/file.rs", "+", "+"),
        ("sub/", "+", "+"),
        ("@project/a.rs", "+", "+"),
        ("@project", "+", "+"),
        ("@added/f", "+", "+"),
        ("../added/new", "+", "+"),
        ("@looked-at/f", "+", "added for reading"),
        ("..", "outside", "outside"),
        ("../outside/f", "outside", "outside"),
        ("sub/../../outside/f", "outside", "outside"),
        ("@outside/f", "outside", "outside"),
        ("@project/../outside/f", "outside", "outside"),
        ("@projectile/f", "outside", "outside"),
        ("out", "outside", "outside"),
        ("out/f", "outside", "outside"),
        ("out/../a.rs", "outside", "outside"),
        ("dangling", "outside", "outside"),
        ("chain", "outside", "outside"),
        ("/etc/passwd", "outside", "outside"),
        ("/proc/self/root/etc/passwd", "outside", "outside"),
        (".git/config", "+", ".git/**"),
        (".git/", "+", ".git/**"),
        ("bare/config", "+", ".git/**"),
        ("bare/refs/heads/main", "+", ".git/**"),
        ("bare/../sub/HEAD", "+", "+"),
        (".GIT/config", "+", ".git/**"),
        ("./.git/../.git/config", "+", ".git/**"),
        ("sub/.git/config", "+", ".git/**"),
        ("innocent/config", "+", ".git/**"),
        ("innocent/hooks/post-commit", "+", ".git/**"),
        ("@project/.git/hooks/x", "+", ".git/**"),
        ("@added/.git/config", "+", ".git/**"),
        ("@kept/config", "+", ".git/**"),
        ("@kept/hooks/pre-commit", "+", ".git/**"),
        (".env", "hold secrets", ".git/**"),
        (".env.local", "hold secrets", ".git/**"),
        (".ENV", "hold secrets", ".git/**"),
        ("sub/.env", "hold secrets", ".git/**"),
        (".envlink", "hold secrets", ".git/**"),
        (".env.example", "+", ".git/**"),
        ("sub/server.PEM", "hold secrets", "hold secrets"),
        ("yoi.toml", "+", ".git/**"),
        ("sub/Yoi.toml", "+", ".git/**"),
        (".gitignore", "+", "+"),
        (".github/workflows/ci.yml", "+", "+"),
        ("env", "+", "+"),
        ("loop", "cannot be resolved", "cannot be resolved"),
        ("a.rs/x", "cannot be resolved", "cannot be resolved"),
        (
            "missing/../a.rs",
            "cannot be resolved",
            "cannot be resolved",
        ),
        ("", "cannot be resolved", "cannot be resolved"),
    ];
    for (path, reading, writing) in cases {
        for (way, expected, decision) in [
            ("read", reading, world.read(&table(), path, CONFINED)),
            ("write", writing, world.write(&table(), path, CONFINED)),
        ] {
            let allowed = expected == "+";
            assert_eq!(
                decision.decision.allows(),
                allowed,
                "{way} {path}: {decision:?}"
            );
            assert_eq!(decision.rule.source, "default");
            assert!(
                expected == "+" || decision.rule.text.contains(expected),
                "{way} {path}: {decision:?}"
            );
        }
    }
}

#[test]
fn names_that_are_no_text_are_judged_too() {
    let world = World::new();
    for (bytes, allowed) in [
        (&b"\xff\xfe.rs"[..], true),
        (b".env\xff", false),
        (b"out/\xff", false),
    ] {
        let touch = Touch::Write(PathBuf::from(OsStr::from_bytes(bytes)));
        let decision = world.judge(&table(), "Write", Idempotent, &[touch], CONFINED);
        assert_eq!(decision.decision.allows(), allowed, "{decision:?}");
    }
}

#[test]
fn the_table_has_a_column_for_a_sandbox_that_is_not_there() {
    let world = World::new();
    let shell = [Touch::Shell("ls".into())];
    // circumstances: read inside, write inside, Bash, an effect without a name, a look without one, own state
    let cases = [
        (CONFINED, [true, true, true, true, true, true]),
        (UNENFORCED, [true, false, false, false, true, true]),
        (OFF, [true, false, false, false, true, true]),
        (LOCKED, [true, false, true, true, true, true]),
        (
            SandboxState {
                enforced: false,
                ..LOCKED
            },
            [true, false, false, false, true, true],
        ),
    ];
    for (now, expected) in cases {
        let decisions = [
            world.read(&table(), "a.rs", now),
            world.write(&table(), "a.rs", now),
            world.judge(&table(), "Bash", Effectful, &shell, now),
            world.judge(&table(), "Deploy", Effectful, &[], now),
            world.judge(&table(), "ReadOutput", ReadOnly, &[], now),
            world.judge(&table(), "TaskUpdate", Idempotent, &[Touch::Session], now),
        ];
        let allowed = decisions.map(|d| d.decision.allows());
        assert_eq!(allowed, expected, "{now:?}");
    }
}

#[test]
fn a_call_is_as_free_as_the_least_free_thing_it_names() {
    let world = World::new();
    let read = |p: &str| Touch::Read(world.path(p));
    let write = |p: &str| Touch::Write(world.path(p));
    let cases: [(ToolEffect, Vec<Touch>, Option<&str>); 7] = [
        (Idempotent, vec![read("a.rs"), write("a.rs")], None),
        (
            Idempotent,
            vec![write("a.rs"), read("@outside/f")],
            Some("reading outside"),
        ),
        (
            Idempotent,
            vec![read("@outside/f"), write("@outside/f")],
            Some("writing outside"),
        ),
        (
            Idempotent,
            vec![write("a.rs"), write(".env")],
            Some(".env*"),
        ),
        // Declares what it reads and not what it changes: judged like a command.
        (Effectful, vec![read("a.rs")], Some("commands")),
        (ReadOnly, vec![write("@outside/f")], Some("writing outside")),
        (
            Idempotent,
            vec![Touch::Session, Touch::Shell("ls".into())],
            Some("commands"),
        ),
    ];
    for (effect, touches, refused_by) in cases {
        let now = if refused_by == Some("commands") {
            OFF
        } else {
            CONFINED
        };
        let decision = world.judge(&table(), "Tool", effect, &touches, now);
        assert_eq!(
            !decision.decision.allows(),
            refused_by.is_some(),
            "{touches:?}: {decision:?}"
        );
        assert!(
            refused_by.is_none_or(|text| decision.rule.text.contains(text)),
            "{touches:?}: {decision:?}"
        );
    }
}

#[test]
fn the_last_match_of_a_layer_speaks_and_outer_refusals_stand() {
    let world = World::new();
    let any = |tool, decision| (tool, None, decision);
    let on = |tool, path, decision| (tool, Some(path), decision);
    // layers from outside in; path written; allowed?; who decided
    type Rules<'a> = &'a [(&'a str, Option<&'a str>, RuleDecision)];
    let cases: &[(&[Rules<'_>], &str, bool, &str)] = &[
        (&[&[any("Write", Deny)]], "a.rs", false, "layer 0"),
        (&[&[any("*", Deny)]], "a.rs", false, "layer 0"),
        (&[&[any("Edit", Deny)]], "a.rs", true, "default"),
        (&[&[any("write", Deny)]], "a.rs", true, "default"),
        (
            &[&[any("Write", Deny), any("Write", Allow)]],
            "a.rs",
            true,
            "layer 0",
        ),
        (
            &[&[any("Write", Allow), any("Write", Deny)]],
            "a.rs",
            false,
            "layer 0",
        ),
        (&[&[any("Write", Ask)]], "a.rs", false, "layer 0"),
        (
            &[&[any("Write", Ask)], &[any("Write", Allow)]],
            "a.rs",
            true,
            "layer 1",
        ),
        (
            &[&[any("Write", Allow)], &[any("Write", Ask)]],
            "a.rs",
            false,
            "layer 1",
        ),
        (
            &[&[any("Write", Deny)], &[any("Write", Allow)]],
            "a.rs",
            false,
            "layer 0",
        ),
        (
            &[
                &[any("Write", Allow)],
                &[any("Write", Deny)],
                &[any("Write", Allow)],
            ],
            "a.rs",
            false,
            "layer 1",
        ),
        // the table asks: a layer may answer; it refuses: that stands
        (
            &[&[on("Write", ".git/**", Allow)]],
            ".git/config",
            true,
            "layer 0",
        ),
        (
            &[&[on("Write", "**/.env*", Allow)]],
            "sub/.env.local",
            true,
            "layer 0",
        ),
        (&[&[any("Write", Allow)]], "@outside/f", false, "default"),
        // globs: relative to the project, absolute, by component
        (&[&[on("Write", "*.rs", Deny)]], "a.rs", false, "layer 0"),
        (&[&[on("Write", "*.rs", Deny)]], "sub/b.rs", true, "default"),
        (
            &[&[on("Write", "**/*.rs", Deny)]],
            "sub/b.rs",
            false,
            "layer 0",
        ),
        (
            &[&[on("Write", "**/*.rs", Deny)]],
            "@added/b.rs",
            false,
            "layer 0",
        ),
        (
            &[&[on("Write", "**/.env*", Deny)]],
            ".env",
            false,
            "layer 0",
        ),
        (
            &[&[on("Write", "sub/**", Deny)]],
            "sub/x/y",
            false,
            "layer 0",
        ),
        (&[&[on("Write", "sub/**", Deny)]], "sub", false, "layer 0"),
        (&[&[on("Write", "sub/**", Deny)]], "sub/", false, "layer 0"),
        (
            &[&[on("Write", "sub/**", Deny)]],
            "./x/../sub/y",
            false,
            "default",
        ),
        (&[&[on("Write", "sub/**", Deny)]], "subway", true, "default"),
        (
            &[&[on("Write", "f", Allow), on("Write", "f", Deny)]],
            "@added/f",
            true,
            "default",
        ),
        // a refusal holds for the link and for what it leads to; an allowance only for what it leads to
        (
            &[&[on("Write", "secrets/**", Deny)]],
            "open/key",
            false,
            "layer 0",
        ),
        (
            &[&[on("Write", "secrets/**", Deny)]],
            "secrets/alias",
            false,
            "layer 0",
        ),
        (
            &[&[on("Write", "open/**", Deny)]],
            "open/key",
            false,
            "layer 0",
        ),
        (
            &[&[any("Write", Ask), on("Write", "open/**", Allow)]],
            "open/key",
            false,
            "layer 0",
        ),
        (
            &[&[any("Write", Ask), on("Write", "secrets/**", Allow)]],
            "open/key",
            true,
            "layer 0",
        ),
        // nothing allows what cannot be resolved
        (&[&[any("*", Allow)]], "loop", false, "default"),
    ];
    for (layers, path, allowed, decided_by) in cases {
        let layers = layers
            .iter()
            .enumerate()
            .map(|(i, rules)| layer(&format!("layer {i}"), rules))
            .collect();
        let decision = world.write(&Policy::new(TERMS, layers), path, CONFINED);
        assert_eq!(decision.decision.allows(), *allowed, "{path}: {decision:?}");
        assert_eq!(decision.rule.source, *decided_by, "{path}: {decision:?}");
    }
    let absolute = world.path("@added/**");
    let by_absolute = layer("file", &[("Write", absolute.to_str(), Deny)]);
    assert!(
        !world
            .write(
                &Policy::new(TERMS, vec![by_absolute]),
                "../added/f",
                CONFINED
            )
            .decision
            .allows()
    );
}

#[test]
fn a_rule_about_paths_says_nothing_about_calls_without_one() {
    let world = World::new();
    let shell = [Touch::Shell("cat a.rs".into())];
    let policy = Policy::new(TERMS, vec![layer("file", &[("*", Some("**"), Deny)])]);
    assert!(
        world
            .judge(&policy, "Bash", Effectful, &shell, CONFINED)
            .decision
            .allows()
    );
    let policy = Policy::new(TERMS, vec![layer("file", &[("Bash", None, Deny)])]);
    assert!(
        !world
            .judge(&policy, "Bash", Effectful, &shell, CONFINED)
            .decision
            .allows()
    );
}

#[test]
fn read_only_mode_cannot_be_ruled_away() {
    let world = World::new();
    let policy = Policy::new(TERMS, vec![layer("file", &[("*", None, Allow)])]);
    let decision = world.write(&policy, "a.rs", LOCKED);
    assert!(!decision.decision.allows());
    assert!(
        decision.decision.reason().contains("LeaveReadOnly"),
        "{decision:?}"
    );
}

#[test]
fn reasons_name_the_path_and_the_next_step() {
    let world = World::new();
    let file = Policy::new(
        TERMS,
        vec![layer("/etc/yoi/config.toml", &[("Write", None, Deny)])],
    );
    let cases = [
        (
            world.read(&table(), "@outside/f", CONFINED),
            vec!["outside/f is refused by", "AddDir"],
        ),
        (
            world.read(&table(), "out/f", CONFINED),
            vec!["out/f", "which is", "outside/f"],
        ),
        (
            world.write(&table(), ".env", CONFINED),
            vec![
                ".env",
                "cannot ask for approval",
                r#"[RuleRemedy { tool: "Write", about: Some(".env") }], alternative: Nothing }"#,
            ],
        ),
        (
            world.write(&table(), "a.rs", OFF),
            vec!["alternative: Sandbox"],
        ),
        (
            world.write(&table(), "a.rs", UNENFORCED),
            vec!["alternative: Kernel"],
        ),
        (
            world.write(&file, "a.rs", CONFINED),
            vec!["/etc/yoi/config.toml", "deny Write", "ChangeRule"],
        ),
        (
            world.write(&table(), "a\nb\u{202e}.rs/../out/f", CONFINED),
            vec!["cannot be resolved", "FixPath"],
        ),
    ];
    for (decision, words) in cases {
        for word in words {
            assert!(
                decision.decision.reason().contains(word),
                "{word}: {decision:?}"
            );
        }
        let reason = decision.decision.reason();
        assert!(
            reason.lines().count() == 2 && !reason.contains('\u{202e}'),
            "{decision:?}"
        );
    }
}

/// A refusal named one option although the call named two files: the next start was refused for the other file.
#[test]
fn a_refusal_names_a_rule_for_each_thing_that_needs_one() {
    let world = World::new();
    let cases = [
        (
            vec![Touch::Read(".env".into()), Touch::Read(".env.local".into())],
            CONFINED,
            vec![("Read", ".env"), ("Read", ".env.local")],
        ),
        (
            vec![Touch::Shell("cat .env .env.local .env".into())],
            CONFINED,
            vec![("Read", ".env"), ("Read", ".env.local")],
        ),
        (
            vec![Touch::Shell("ls sub; git status; ls sub".into())],
            OFF,
            vec![("Bash", "ls sub"), ("Bash", "git status")],
        ),
        (
            vec![Touch::Shell("cat .env".into())],
            OFF,
            vec![("Bash", "cat"), ("Read", ".env")],
        ),
    ];
    for (touches, now, rules) in cases {
        let tool = if matches!(touches[..], [Touch::Shell(_)]) {
            "Bash"
        } else {
            "Read"
        };
        let effect = if tool == "Bash" { Effectful } else { ReadOnly };
        let said = world.judge(&table(), tool, effect, &touches, now);
        let named: Vec<_> = rules
            .iter()
            .map(|(tool, about)| RuleRemedy {
                tool: (*tool).to_owned(),
                about: Some((*about).to_owned()),
            })
            .collect();
        assert!(
            said.decision.reason().contains(&format!("{named:?}")),
            "{touches:?}: {said:?}"
        );
    }
}

/// "requires approval …, and this run cannot ask for approval" stood in a pod that could be asked: no answer adds a
/// directory, so what is outside of all directories is refused, whatever a rule in between says.
#[test]
fn what_no_answer_can_allow_is_refused_and_not_asked() {
    let world = World::new();
    let outside = world.path("@outside/f");
    for person in [Person::Never, Person::Later] {
        for now in [CONFINED, UNENFORCED, OFF, LOCKED] {
            let touches = [Touch::Read(outside.clone())];
            let call = CallFacts {
                tool: "Read",
                effect: ReadOnly,
                touches: &touches,
                feature: &FEATURE,
            };
            let said = table().judge_with(&call, &world.workspace, now, person);
            let reason = said.decision.reason();
            assert!(
                !said.decision.asks() && reason.contains("`reading outside the project: deny`"),
                "{now:?}: {reason}"
            );
            assert!(
                reason.contains("AddDir") && !reason.contains("approval"),
                "{reason}"
            );
        }
    }
    let described = table().describe(CONFINED);
    assert!(
        described
            .rules
            .iter()
            .any(|rule| rule.text == "reading outside the project: deny")
    );
    let expected = table().expect("Read", ReadOnly, CONFINED);
    let outside = expected
        .iter()
        .find(|met| met.what == "reading outside the project");
    assert_eq!(outside.map(|met| met.decision), Some(Deny));
}

#[test]
fn rules_that_cannot_work_are_refused_where_they_stand() {
    let cases = [
        (rule("", None, Allow), "`tool` is empty"),
        (rule("Write", Some(""), Allow), "0 bytes"),
        (rule("Write", Some("[a"), Allow), "`path`"),
        (rule("Write", Some("../x"), Allow), "never matches"),
        (rule("Write", Some("a/./b"), Allow), "never matches"),
        (rule("Write", Some("~/x"), Deny), "never matches"),
        (rule("Write", Some("x/"), Deny), "never matches"),
    ];
    for (bad, words) in cases {
        let error =
            Layer::new("user.toml", vec![rule("Read", None, Allow), bad.clone()]).unwrap_err();
        assert_eq!(error.kind(), llm_worker::ErrorKind::FixInput);
        assert!(
            error
                .to_string()
                .starts_with("user.toml: permissions.rules[1]:"),
            "{error}"
        );
        assert!(error.to_string().contains(words), "{bad:?}: {error}");
    }
    assert!(Layer::new("user.toml", vec![rule("Read", None, Allow); 1_025]).is_err());
    let unknown =
        serde_json::from_str::<Rule>(r#"{"tool":"Bash","programme":"git","decision":"allow"}"#);
    assert!(unknown.unwrap_err().to_string().contains("programme"));
}

#[test]
fn a_report_can_list_every_row_and_rule() {
    let policy = Policy::new(
        TERMS,
        vec![layer("user.toml", &[("Write", Some("docs/**"), Allow)])],
    );
    let lines: Vec<_> = policy
        .describe(OFF)
        .rules
        .into_iter()
        .map(|r| format!("{} | {}", r.source, r.text))
        .collect();
    assert!(
        lines.contains(&"default | writing inside the project: ask".to_owned()),
        "{lines:#?}"
    );
    assert_eq!(
        lines.last().map(String::as_str),
        Some("user.toml | allow Write on docs/**")
    );
}

#[test]
fn hosts_are_judged_by_their_names() {
    let world = World::new();
    let about = |host: &str, decision| Rule {
        host: Some(host.into()),
        ..Rule::new("Fetch", decision)
    };
    let fetch = |policy: &Policy, host: &str, now| {
        let touches = [Touch::Host(host.into())];
        world
            .judge(policy, "Fetch", ReadOnly, &touches, now)
            .decision
            .allows()
    };
    let none = Policy::new(TERMS, Vec::new());
    for now in [CONFINED, UNENFORCED, OFF, LOCKED] {
        assert!(
            fetch(&none, "example.org", now),
            "whoever granted the host meant it"
        );
    }
    let rules = vec![
        about("*", Deny),
        about("*.example.org", Allow),
        about("secret.example.org", Deny),
        rule("Fetch", Some("**"), Deny),
    ];
    let policy = Policy::new(TERMS, vec![Layer::new("test", rules).unwrap()]);
    let table = [
        ("docs.example.org", true),
        ("DOCS.Example.ORG.", true),
        ("example.org", false),
        ("badexample.org", false),
        ("Secret.example.org.", false),
        ("93.184.216.34", false),
        ("not a host", false),
    ];
    for (host, verdict) in table {
        assert_eq!(fetch(&policy, host, CONFINED), verdict, "{host}");
    }
    let said = world
        .judge(
            &policy,
            "Fetch",
            ReadOnly,
            &[Touch::Host("x.net".into())],
            CONFINED,
        )
        .decision;
    let said = said.reason();
    assert!(
        said.contains("Fetch from x.net") && said.contains("deny Fetch on *"),
        "{said}"
    );
    assert!(
        world
            .judge(
                &policy,
                "Read",
                ReadOnly,
                &[Touch::Read("a.rs".into())],
                CONFINED
            )
            .decision
            .allows()
    );

    let both = Rule {
        path: Some("a".into()),
        ..about("x.org", Deny)
    };
    for bad in [
        both,
        about("x.org:443", Deny),
        about("https://x.org", Deny),
        about("", Deny),
    ] {
        assert!(Layer::new("test", vec![bad]).is_err());
    }
}

#[test]
fn proposed_rules_do_in_the_configuration_unless_a_later_layer_asks() {
    let world = World::new();
    let touches = [Touch::Shell("git status && ls".into())];
    let call = CallFacts {
        tool: "Bash",
        effect: Effectful,
        touches: &touches,
        feature: &FEATURE,
    };
    let proposed = |layers| Policy::new(TERMS, layers).proposed(&call, &world.workspace, OFF);
    let texts = |rules: &[Rule]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
    let by_user = proposed(vec![layer("user.toml", &[("Bash", None, Ask)])]);
    assert_eq!(
        texts(&by_user.rules),
        ["allow Bash git status", "allow Bash ls"]
    );
    assert!(by_user.configurable, "they come last in the file");
    let project = || layer("yoi.toml", &[("Bash", None, Ask)]).tightening();
    let by_project = proposed(vec![layer("user.toml", &[("Read", None, Ask)]), project()]);
    assert_eq!(
        texts(&by_project.rules),
        ["allow Bash git status", "allow Bash ls"]
    );
    assert!(
        !by_project.configurable,
        "the file of the project comes after them"
    );
    assert_eq!(
        proposed(vec![layer("user.toml", &[("Bash", None, Deny)])]),
        Proposal::default()
    );
}

#[test]
fn a_trial_matches_calls_that_its_rules_would_let_through() {
    let world = World::new();
    let rules = vec![
        Rule {
            program: Some("git".into()),
            subcommand: Some(vec!["status".into()]),
            ..Rule::new("Bash", Allow)
        },
        rule("Read", Some(".env"), Allow),
    ];
    let policy = Policy::new(TERMS, vec![layer("user.toml", &[("Write", None, Deny)])]);
    let matches = |tool: &str, touches: &[Touch], now| {
        let call = CallFacts {
            tool,
            effect: Effectful,
            touches,
            feature: &FEATURE,
        };
        policy
            .trial(&rules)
            .unwrap()
            .matches(&call, &world.workspace, now)
    };
    let shell = |text: &str| [Touch::Shell(text.into())];
    for now in [OFF, CONFINED] {
        assert!(matches("Bash", &shell("git status -s"), now));
        assert!(
            !matches("Bash", &shell("git push"), now),
            "another subcommand"
        );
        assert!(!matches("Bash", &shell("git status > f"), OFF), "not plain");
    }
    assert!(
        !matches("Bash", &shell("git status; rm x"), OFF),
        "its other part still needs approval"
    );
    assert!(
        matches("Bash", &shell("git status; rm x"), CONFINED),
        "its other part needs none"
    );
    assert!(
        matches("Bash", &shell("cat .env"), CONFINED),
        "a rule about reading is one about commands, too"
    );
    assert!(!matches(
        "Write",
        &[Touch::Write(world.path(".env"))],
        CONFINED
    ));
}

// A path below the project was proposed as it is written there: a rule about `.env` of every project.
#[test]
fn a_proposed_rule_is_about_one_place() {
    let world = World::new();
    let policy = Policy::new(TERMS, vec![layer("user.toml", &[("*", None, Ask)])]);
    let proposed = |tool: &str, touch: Touch| {
        let touches = [touch];
        let call = CallFacts {
            tool,
            effect: Effectful,
            touches: &touches,
            feature: &FEATURE,
        };
        policy.clone().proposed(&call, &world.workspace, OFF)
    };
    let file = proposed("Write", Touch::Write("a.rs".into()));
    let path = file.rules[0].path.as_deref().unwrap();
    assert!(
        file.configurable && path.starts_with('/') && path.ends_with("/a.rs"),
        "{path}"
    );
    let own = proposed("Bash", Touch::Shell("./build".into()));
    assert_eq!(
        (own.rules[0].program.as_deref(), own.configurable),
        (Some("./build"), false)
    );
    assert!(proposed("Bash", Touch::Shell("/opt/tool/build".into())).configurable);
}

#[test]
fn a_later_rule_may_override_a_denial() {
    let program = |program: &str, subcommand: Option<&str>, decision| Rule {
        program: Some(program.to_owned()),
        subcommand: subcommand.map(|word| vec![word.to_owned()]),
        ..Rule::new("Bash", decision)
    };
    let path = |tool: &str, path: &str, decision| Rule {
        path: Some(path.to_owned()),
        ..Rule::new(tool, decision)
    };
    let host = |host: &str, decision| Rule {
        host: Some(host.to_owned()),
        ..Rule::new("Fetch", decision)
    };
    let git = program("git", None, Allow);
    for denial in [
        program("git", Some("push"), Deny),
        program("/usr/bin/git", Some("push"), Deny),
        program("nohup", None, Deny),
        Rule::new("*", Deny),
    ] {
        assert!(git.may_override(&denial), "{denial}");
    }
    for other in [
        program("ls", None, Deny),
        program("git", None, Ask),
        path("Bash", "**/.env", Deny),
        host("*", Deny),
    ] {
        assert!(!git.may_override(&other), "{other}");
    }
    // `nohup git push` is still another program's.
    assert!(!git.may_override(&program("nohup", Some("x"), Deny)));
    assert!(path("Read", "/p/.env", Allow).may_override(&path("Bash", "**/.env", Deny)));
    assert!(host("a.org", Allow).may_override(&host("*.org", Deny)));
    assert!(!host("a.org", Allow).may_override(&path("Read", "/p", Deny)));
}
