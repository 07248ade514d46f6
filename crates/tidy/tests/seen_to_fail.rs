//! Each check pointed at a small tree that it must refuse, beside one that it must accept.

#![allow(
    clippy::unwrap_used,
    reason = "tests: a scratch directory that fails is a failed test"
)]

use std::path::Path;

use tidy::finding::{Exception, Finding, except};
use tidy::homonyms::Homonym;
use tidy::source::{self, Source};
use tidy::{
    bindings, budget, dependencies, documents, homonyms, ignorance, invariants, layout, prose,
    public_docs, words,
};

type Check = fn(&Path) -> Vec<Finding>;

fn findings(check: Check, files: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    check(dir.path()).iter().map(|f| format!("{f}\n")).collect()
}

/// `good` gives nothing; each of `bad` gives one finding that contains the wanted text.
#[track_caller]
fn seen(check: Check, good: &[(&str, &str)], bad: &[(&[(&str, &str)], &str)]) {
    assert_eq!(findings(check, good), "");
    for (files, wanted) in bad {
        let found = findings(check, files);
        assert!(
            found.contains(wanted) && found.lines().count() == 1,
            "{files:?} gave {found:?}, wanted {wanted:?}"
        );
    }
}

fn lines(n: usize, line: &str) -> String {
    format!("{line}\n").repeat(n)
}

#[test]
fn sizes() {
    let file = |body: &str| format!("//! x\n{body}");
    let function = |n: usize| {
        file(&format!(
            "fn f(x: [u8; 3]) -> u8\nwhere\n{{\n{}}}\n",
            lines(n - 4, "    ;")
        ))
    };
    let tests = |n: usize| {
        file(&format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            lines(n - 3, "const A: u8 = 0;")
        ))
    };
    let place = "crates/a/src/lib.rs";
    seen(
        budget::sizes,
        &[
            (place, &function(90)),
            ("crates/a/tests/t.rs", &function(210)),
            ("crates/a/src/b.rs", &tests(260)),
            ("crates/a/src/c.rs", &lines(1000, "//! x")),
        ],
        &[
            (
                &[(place, &function(91))],
                "crates/a/src/lib.rs f:2: is 91 lines long",
            ),
            (
                &[("crates/a/tests/t.rs", &function(211))],
                "is 211 lines long",
            ),
            (
                &[("crates/a/src/b/tests.rs", &function(211))],
                "is 211 lines long",
            ),
            (
                &[(place, &tests(261))],
                "crates/a/src/lib.rs tests:2: 261 lines of inline tests",
            ),
            (&[(place, &lines(1001, "//! x"))], "has 1001 lines"),
        ],
    );
}

#[test]
fn exceptions() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("work-items/open/20260101-000000-x")).unwrap();
    let found = vec![Finding::new("a.rs f", 3, "is long")];
    let with = |place, reason, work_item| {
        except(
            dir.path(),
            found.clone(),
            &[Exception {
                place,
                reason,
                work_item,
            }],
        )
    };
    assert_eq!(with("a.rs f", "a routing match", "20260101-000000-x"), []);
    for (place, reason, item, wanted) in [
        (
            "a.rs g",
            "a routing match",
            "20260101-000000-x",
            "breaks no budget",
        ),
        ("a.rs f", " ", "20260101-000000-x", "without a reason"),
        (
            "a.rs f",
            "a routing match",
            "20260101-000000-y",
            "unknown work item",
        ),
        ("a.rs f", "a routing match", "", "unknown work item"),
    ] {
        assert!(
            with(place, reason, item)
                .iter()
                .any(|f| f.what.contains(wanted)),
            "{wanted}"
        );
    }
}

#[test]
fn prose() {
    let of = |body: &str| format!("//! x\nfn f(text: &str) -> bool {{\n    {body}\n}}\n");
    let place = "crates/yoi/src/a.rs";
    let good = [
        (
            place,
            of("text.starts_with(\"exit\") || text.contains(\", \")"),
        ),
        ("crates/pod/src/a.rs", of("text.contains(\"was denied\")")),
        ("crates/yoi/src/foreign.rs", of("text.contains(\"a b\")")),
    ];
    let good: Vec<(&str, &str)> = good.iter().map(|(path, text)| (*path, &**text)).collect();
    let parsed: Check = |root| prose::parsed(root, &[("crates/yoi/src/foreign.rs", "others")]);
    let bad: Vec<[(&str, String); 1]> = [
        "text.contains(\"was denied\")",
        "text.split_once(\n        \"; set \").is_some()",
        "text.strip_prefix(&format!(\"limited to {text}\")).is_some()",
    ]
    .map(|body| [(place, of(body))])
    .to_vec();
    for [(path, text)] in &bad {
        let all = [good[1], good[2], (*path, &**text)];
        seen(parsed, &good, &[(&all, "reads a sentence")]);
    }
    seen(parsed, &good, &[(&good[..2], "take it off the list")]);
}

#[test]
fn module_docs() {
    seen(
        budget::module_docs,
        &[
            ("crates/a/src/lib.rs", "//! A crate.\n"),
            ("crates/a/tests/t.rs", "#[test]\nfn t() {}\n"),
        ],
        &[
            (&[("crates/a/src/lib.rs", "pub mod b;\n")], "must open with"),
            (
                &[("crates/a/src/b/mod.rs", "// not a doc\n")],
                "must open with",
            ),
            (&[("crates/a/src/lib.rs", "")], "must open with"),
        ],
    );
}

#[test]
fn modules_beside_their_directories() {
    seen(
        layout::modules,
        &[
            ("crates/a/src/b.rs", "//! x\nmod c;\n"),
            ("crates/a/src/b/c.rs", "//! x\n"),
            ("crates/a/tests/cli/parts/mod.rs", "//! x\n"),
        ],
        &[(
            &[("crates/a/src/b/mod.rs", "//! x\n")],
            "`crates/a/src/b.rs`",
        )],
    );
}

#[test]
fn several_bindings() {
    let path = "crates/a/src/lib.rs";
    let of = |body: &str| format!("fn f() {{\n    {body}\n}}\n");
    let good = of(
        "let (a, b) = pair();\n    let (a, b) = (b, a);\n    let (c, _) = (1, 2);\n    \
         let (Some(a), Some(b)) = (c, d) else { return };\n    let d = (a, b);",
    );
    let bad = [
        "let (a, b) = (1, 2);",
        "let (a, mut b) = (\n        f(1, 2),\n        \"),\",\n    );",
        "let (x, y, z) = (a.x, [1, 2], (c, d));",
    ];
    for body in bad {
        seen(
            bindings::several,
            &[(path, &*good)],
            &[(&[(path, &*of(body))], "one `let`")],
        );
    }
}

#[test]
fn module_names() {
    seen(
        budget::module_names,
        &[(
            "crates/a/src/common_prefix.rs",
            "//! x\nmod utility {}\nlet util = 1; // mod util\n",
        )],
        &[
            (
                &[("crates/a/src/util.rs", "//! x\n")],
                "`util` names no idea",
            ),
            (
                &[("crates/a/tests/common/mod.rs", "//! x\n")],
                "`common` names no idea",
            ),
            (
                &[("crates/a/src/lib.rs", "//! x\npub(crate) mod helpers {}\n")],
                "src/lib.rs:2: `mod helpers`",
            ),
        ],
    );
}

#[test]
fn invariant_pairs() {
    let list = (
        "docs/ARCHITECTURE.md",
        "# x\n| INV-01 | a | b |\n| INV-02 | a | b |\nAs INV-09 says.\n",
    );
    let both = "// covers: INV-01\n#[test]\nfn a() {}\n\n// covers: INV-02\n#[tokio::test(start_paused = true)]\nasync fn b() {}\n";
    let one = "// covers: INV-01\n#[test]\nfn a() {}\n";
    let other = (
        "crates/a/tests/u.rs",
        "/// Story.\n// covers: INV-02\n#[test]\nfn a() {}\n",
    );
    let test = "crates/a/tests/t.rs";
    seen(
        invariants::pairs,
        &[
            list,
            (test, both),
            (
                "crates/a/src/lib.rs",
                "/// Or `// covers: INV-08`.\nconst A: &str = \"// covers: INV-07\";\n",
            ),
        ],
        &[
            (&[list, (test, one)], "INV-02 has no test"),
            (&[list, (test, both), other], "INV-02 is owned twice"),
            (
                &[
                    list,
                    (test, both),
                    (
                        "crates/a/src/l.rs",
                        "// covers: INV-03\n#[test]\nfn c() {}\n",
                    ),
                ],
                "covers INV-03, which",
            ),
            (
                &[
                    list,
                    other,
                    ("crates/a/src/l.rs", "// covers: INV-01\nfn no_test() {}\n"),
                ],
                "stands at no test",
            ),
            (
                &[
                    ("docs/ARCHITECTURE.md", "| INV-01 | a |\n| INV-01 | a |\n"),
                    (test, one),
                ],
                "docs/ARCHITECTURE.md:2: INV-01 is listed twice",
            ),
            (&[(test, "fn x() {}\n")], "cannot be read"),
        ],
    );
}

#[test]
fn one_acknowledged() {
    let proof = (
        "crates/pod/src/commit.rs",
        "//! x\nimpl llm_worker::Acknowledged<Host> for Ack {}\n",
    );
    let in_tests = "//! x\n#[cfg(test)]\nmod tests {\n    impl Acknowledged for Fake {}\n}\n";
    seen(
        invariants::one_acknowledged,
        &[
            proof,
            ("crates/a/src/lib.rs", in_tests),
            (
                "crates/a/src/turn/tests.rs",
                "impl Acknowledged for Fake {}",
            ),
            ("crates/a/tests/t.rs", "impl Acknowledged for Fake {}"),
            (
                "crates/a/src/b.rs",
                "pub trait Acknowledged: Sized {}\nimpl<P: Payload> Turn<P> where P::Proof: Acknowledged<P> {}\n",
            ),
        ],
        &[
            (
                &[
                    proof,
                    (
                        "crates/q/src/lib.rs",
                        "//! x\nimpl<T> Acknowledged\n    for Mine<T> {}\n",
                    ),
                ],
                "lib.rs:2: a second",
            ),
            (
                &[("crates/a/src/lib.rs", in_tests)],
                "nothing implements Acknowledged",
            ),
        ],
    );
}

#[test]
fn what_the_host_knows() {
    let tool = (
        "crates/tools/src/bash.rs",
        "//! x\npub const NAME: &str = \"Bash\";\n",
    );
    let key = (
        "crates/builtins/src/t.rs",
        "//! x\nconst K: ToolKey = ToolKey::new(\n    \"TaskGet\", 1);\n",
    );
    let place = "crates/pod/src/a.rs";
    let good = "//! --allow Bash\n/// `\"--allow Bash\"`\nconst A: &str = \"a--b -- Bashful --- builtin:NAME\"; // Bash\n\
                struct Bash(MemoryStore, session_store::Restored);\n#[cfg(test)]\nmod tests {\n    const T: &str = \"Bash --allow\";\n}\n";
    let bad = |line: &str| format!("//! x\n{line}\n");
    let flag = bad("const A: &str = \"start with --add-dir DIR\";");
    let named = bad("fn f(tool: &str) -> bool { tool == \"Bash\" }");
    let task = bad("const A: &str = \"\\\n  ask TaskGet\";");
    let id = bad("const A: &str = \"builtin:shell\";");
    let store = bad("fn f(_: &PhaseStore) {}");
    seen(
        ignorance::host,
        &[
            tool,
            key,
            (place, good),
            ("crates/pod/src/a/tests.rs", "const T: &str = \"Bash\";"),
        ],
        &[
            (
                &[tool, (place, &flag)],
                "pod/src/a.rs:2: `--add-dir` is a flag",
            ),
            (&[tool, (place, &named)], "pod/src/a.rs:2: `Bash` is a tool"),
            (
                &[key, (place, &task)],
                "pod/src/a.rs:3: `TaskGet` is a tool",
            ),
            (&[tool, (place, &id)], "`builtin:shell` is a feature"),
            (&[tool, (place, &store)], "`PhaseStore` is a store"),
            (&[(place, good)], "no tool was found"),
        ],
    );
}

#[test]
fn the_command_line_in_what_hosts_pods() {
    let place = "crates/host/src/a.rs";
    let good = "//! `yoi run --pod`\npub const A: &str = \"yoi knows no such pod -- a dash\";\n\
                #[cfg(test)]\nmod tests {\n    const B: &str = \"--allow\";\n}\n";
    let flag = "//! x\npub const A: &str = \"use --allow\";\n";
    let verb = "//! x\npub const A: &str = \"`yoi ls` lists pods\";\n";
    seen(
        ignorance::command_line,
        &[(place, good), ("crates/yoi/src/a.rs", flag)],
        &[
            (
                &[(place, flag)],
                "host/src/a.rs:2: \"--allow\" is of the command line",
            ),
            (
                &[(place, verb)],
                "host/src/a.rs:2: \"`yoi \" is of the command line",
            ),
        ],
    );
}

#[test]
fn document_paths() {
    let code = (
        "crates/my-pod/src/feature/plan.rs",
        "//! x\npub struct InstallPlan;\npub fn plan() {}\n",
    );
    let good = "See `crates/my-pod/src/feature/{plan.rs}`, `docs/`, `./tickets.sh list`, [it](../docs/A.md#x), `src/own.rs`.\n\
                `my_pod::feature::plan::InstallPlan`, `my_pod::feature::InstallPlan`, `std::fs::read`, `yoi.toml`, `crates/<x>/a.rs`.\n\
                ```\n`docs/gone.md`\n```\n# X\n";
    let files = |text: &'static str| [code, ("docs/A.md", text)];
    seen(
        documents::check,
        &[code, ("tickets.sh", ""), ("docs/A.md", good)],
        &[
            (
                &files("x\n`crates/my-pod/src/gone.rs`\n"),
                "docs/A.md:2: `crates/my-pod/src/gone.rs` does not exist",
            ),
            (
                &files("`crates/my-pod/src/feature/{plan,gone}.rs`"),
                "feature/gone.rs` does not exist",
            ),
            (&files("Run `tickets.sh`."), "`tickets.sh` does not exist"),
            (&files("[x](B.md)"), "the link `B.md` leads nowhere"),
            (
                &files("# A `b`: c\n[x](#a-b-c) [x](#a-b)"),
                "the link `#a-b` leads nowhere",
            ),
            (
                &files("# A\n# A\n[x](A.md#a-1)\n[x](A.md#a-2)"),
                "docs/A.md:4: the link `A.md#a-2` leads nowhere",
            ),
            (&files("`my_pod::feature::gone`"), "there is no `gone`"),
            (&files("`my_pod::gone::InstallPlan`"), "there is no `gone`"),
            (
                &[("README.md", "`docs/ARCHITECTURE.md`")],
                "README.md:1: `docs/ARCHITECTURE.md` does not exist",
            ),
            (
                &[("AGENTS.md", "`docs/ARCHITECTURE.md`")],
                "AGENTS.md:1: `docs/ARCHITECTURE.md` does not exist",
            ),
        ],
    );
}

#[test]
fn dependency_reasons() {
    let good = "[workspace.dependencies]\nauthority = { path = \"crates/authority\" }\n\n# why\na = \"1\"\nb = \"1\"\n\n[profile.dev]\ndebug = 1\n";
    seen(
        dependencies::reasons,
        &[("Cargo.toml", good)],
        &[
            (
                &[(
                    "Cargo.toml",
                    "[workspace.dependencies]\n\n# why\na = \"1\"\n\nb = \"1\"\n",
                )],
                "Cargo.toml:6: `b` stands under",
            ),
            (
                &[("Cargo.toml", "[workspace.dependencies]\n#\na = \"1\"\n")],
                "`a` stands under",
            ),
            (&[], "cannot be read"),
        ],
    );
}

#[test]
fn package_count() {
    let tree = "yoi v0.1.0 (/x)\nserde v1.0.0\nserde v1.0.0 (*)\ntokio v1.2.0\n";
    assert_eq!(dependencies::count(tree, 3), []);
    assert!(
        dependencies::count(tree, 2)
            .iter()
            .any(|f| f.what.contains("3 packages, at most 2"))
    );
    assert_eq!(dependencies::count("", 2).len(), 1);
}

#[test]
fn banned_words() {
    let place = "crates/a/src/lib.rs";
    seen(
        words::in_code,
        &[(
            place,
            "//! `#[ignore]`, todo!()\nconst A: &str = r#\"todo!() \"quoted\" #[ignore]\"#; /* todo! /* x */ todo! */\n",
        )],
        &[
            (
                &[(place, "fn f() {\n    todo!()\n}\n")],
                "lib.rs:2: `todo!`",
            ),
            (
                &[(place, "fn f() { let q = '\"'; unimplemented!() }\n")],
                "`unimplemented!`",
            ),
            (
                &[(place, "#[ignore = \"slow\"]\nfn f() {}\n")],
                "lib.rs:1: `#[ignore`",
            ),
            (&[(place, "#[cfg(not(test))]\nfn f() {}\n")], "a twin"),
        ],
    );
}

#[test]
fn lint_exceptions() {
    let place = "crates/a/src/lib.rs";
    seen(
        words::lint_exceptions,
        &[(
            place,
            "#![allow(x, reason = \"y\")]\n#[expect(\n    x,\n    reason = \"y\"\n)]\nfn f() { o.expect(\"x\"); }\n// #[allow(x)]\n",
        )],
        &[
            (
                &[(place, "//! x\n#[allow(dead_code)]\nfn f() {}\n")],
                "lib.rs:2: `allow` without",
            ),
            (
                &[(place, "#![expect(dead_code)] // reason\n")],
                "`expect` without",
            ),
        ],
    );
}

#[test]
fn machine_paths() {
    let good = "see ~/root/x, project/work/y, /home/you/z, $HOME/.config, /homework/x, ${TMP}/work/a, <dir>/root/b\n";
    let bad = |rest: &str| format!("line\nin \"/{rest}\" it was\n");
    let root = bad(&["ro", "ot/x"].concat());
    let work = bad(&["wo", "rk/x"].concat());
    let home = bad(&["ho", "me/ann/x"].concat());
    seen(
        words::machine_paths,
        &[("docs/a.md", good)],
        &[
            (&[("docs/a.md", &root)], "docs/a.md:2: `/ro"),
            (
                &[("crates/a/src/lib.rs", &work)],
                "is a path of one machine",
            ),
            (&[(".ci/run", &home)], "/ann` is a path of one machine"),
        ],
    );
}

#[test]
fn top_level() {
    let mut good: Vec<(&str, &str)> = [
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "clippy.toml",
        "flake.nix",
    ]
    .map(|n| (n, ""))
    .to_vec();
    good.extend([
        ("AGENTS.md", ""),
        ("tickets.sh", ""),
        (".gitignore", ""),
        ("target/x", ""),
    ]);
    good.extend([
        ("crates/a", ""),
        ("docs/a", ""),
        ("findings/a", ""),
        ("work-items/a", ""),
    ]);
    let stray = [good.clone(), vec![("notes.txt", "")]].concat();
    let absent: Vec<(&str, &str)> = good
        .iter()
        .filter(|(n, _)| *n != "LICENSE-MIT")
        .copied()
        .collect();
    seen(
        layout::top_level,
        &good,
        &[
            (&stray, "notes.txt: does not belong"),
            (&absent, "LICENSE-MIT: is missing"),
        ],
    );
}

/// What the other checks stand on: comments and literals are told from code.
#[test]
fn rust_is_parted() {
    for (text, code, comments) in [
        ("a // b\nc", "a     \nc", "  // b\n "),
        (
            "a /* b /* c */ d */ e",
            "a                   e",
            "  /* b /* c */ d */  ",
        ),
        (
            r#"x("// \" }") // y"#,
            r#"x("       ")     "#,
            r#"             // y"#,
        ),
        (r##"r#"a"}"# }"##, r##"r      # }"##, ""),
        (
            "'\"' 'a '{' b'}' '\\'' '\u{e9}'",
            "' ' 'a ' ' b' ' '  ' '  '",
            "",
        ),
        ("br\"\\\" var\"\"", "b   \" var\"\"", ""),
    ] {
        let source = Source::new("x.rs", text);
        assert_eq!(source.code, code, "{text}");
        assert_eq!(source.comments.trim_end(), comments.trim_end(), "{text}");
        assert_eq!(source.code.len(), text.len());
    }
}

#[test]
fn blocks_are_found() {
    let code = "fn a();\nfn b(x: fn(u8) -> u8, y: [u8; 2]) -> u8 {\n  if x { {} }\n}\nimpl T { fn c<F>() where F: Fn() {} }\n";
    let found: Vec<_> = source::functions(code)
        .into_iter()
        .map(|b| (b.name, b.line, b.lines))
        .collect();
    assert_eq!(found, [("b".into(), 2, 3), ("c".into(), 5, 1)]);
    let tests = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\n#[allow(x)]\npub mod t {\n}\n#[cfg(test)]\nuse x;\n";
    let found: Vec<_> = source::test_modules(tests)
        .into_iter()
        .map(|b| (b.name, b.line, b.lines))
        .collect();
    assert_eq!(found, [("t".into(), 3, 4)]);
}

#[test]
fn type_names() {
    let a = "crates/a/src/lib.rs";
    let b = "crates/b/src/lib.rs";
    let more = "crates/a/src/more.rs";
    let tests = "#[cfg(test)]\nmod tests {\n    pub struct One;\n}\n";
    seen(
        |root| homonyms::check(root, &[]),
        &[
            (
                a,
                "pub struct One;\npub(crate) enum Two {}\n// pub struct Four;\n#[cfg(unix)]\npub struct Five;\n#[cfg(windows)]\npub struct Five;\n",
            ),
            (
                b,
                "pub(crate) struct One;\npub enum Two {}\npub struct Four;\npub fn five() {}\n",
            ),
            (
                more,
                &format!("struct One;\nconst TEXT: &str = \"pub struct One;\";\n{tests}"),
            ),
            ("crates/b/tests/t.rs", "pub struct One;\n"),
            (
                "crates/fuzz/src/lib.rs",
                "pub struct One;\npub struct Two;\n",
            ),
        ],
        &[
            (
                &[(a, "pub struct One;\n"), (b, "pub trait One {}\n")],
                "type One: has several definitions (crates/a/src/lib.rs:1",
            ),
            (
                &[
                    (a, "pub type One<T> = T;\n"),
                    (b, "\nmod inner {\n    pub enum One {}\n}\n"),
                ],
                "crates/b/src/lib.rs:3",
            ),
            (
                &[
                    (a, "pub(crate) struct One;\n"),
                    (more, "pub(super) enum One {}\n"),
                ],
                "type One: has several",
            ),
            (
                &[
                    (a, "pub struct One;\n"),
                    (more, "pub(in crate::x) struct One<T>(T);\n"),
                ],
                "type One: has several",
            ),
        ],
    );
    let accepted = |root: &Path| {
        homonyms::check(
            root,
            &[Homonym {
                name: "One",
                reason: "an idiom",
            }],
        )
    };
    seen(
        accepted,
        &[(a, "pub struct One;\n"), (b, "pub struct One;\n")],
        &[(
            &[(a, "pub struct One;\n")],
            "type One: is on the list of homonyms but is none",
        )],
    );
    let unreasoned = |root: &Path| {
        homonyms::check(
            root,
            &[Homonym {
                name: "One",
                reason: " ",
            }],
        )
    };
    let found = findings(
        unreasoned,
        &[(a, "pub struct One;\n"), (b, "pub struct One;\n")],
    );
    assert_eq!(
        found,
        "type One: is on the list of homonyms without a reason\n"
    );
}

#[test]
fn public_item_docs() {
    let file = "crates/a/src/lib.rs";
    let attributes = "/// A.\n#[derive(Debug)]\n#[expect(\n    lint,\n    reason = \"x\"\n)]\npub struct A {\n    pub field: u8,\n}\n";
    let methods = "impl A {\n    /// B.\n    #[must_use]\n    pub const fn b() {}\n    fn c() {}\n    pub(crate) fn d() {}\n}\n";
    let traits = "/// T.\npub trait T {\n    /// E.\n    fn e(&self) {\n        let x = 1;\n    }\n}\ntrait U {\n    fn f();\n}\n";
    let others = "pub mod g;\npub use g::h;\nimpl T for A {\n    fn e(&self) {}\n}\n#[cfg(test)]\nmod tests {\n    pub fn i() {}\n}\n";
    seen(
        public_docs::check,
        &[
            (
                file,
                &format!("//! x\n{attributes}{methods}{traits}{others}"),
            ),
            ("crates/a/tests/t.rs", "pub fn x() {}\n"),
        ],
        &[
            (
                &[(file, "//! x\npub struct A;\n")],
                "crates/a/src/lib.rs A:2: public `struct` without `///`",
            ),
            (
                &[(file, "//! x\n#[derive(Debug)]\npub enum A {}\n")],
                "public `enum`",
            ),
            (
                &[(file, "// A.\npub async unsafe fn a() {}\n")],
                "lib.rs a:2: public `fn`",
            ),
            (
                &[(
                    file,
                    "impl A {\n    /// B.\n    pub fn b() {}\n    pub const C: u8 = 0;\n}\n",
                )],
                "C:4: public `const`",
            ),
            (
                &[(file, "/// T.\npub trait T {\n    fn e();\n}\n")],
                "e:3: public `fn`",
            ),
            (
                &[(
                    file,
                    "/// T.\npub trait T {\n    /// E.\n    fn e();\n    type F;\n}\n",
                )],
                "F:5: public `type`",
            ),
        ],
    );
}
