//! A refusal of a program holds however the program is called; an approval of one gains nothing by it.

use super::*;
use std::fs;
use std::path::Path;

fn named(program: &str, subcommand: Option<&str>, decision: RuleDecision) -> Policy {
    let program = Some(program.to_owned());
    let subcommand = subcommand.map(|word| vec![word.to_owned()]);
    let rule = Rule {
        program,
        subcommand,
        ..Rule::new("Bash", decision)
    };
    Policy::new(TERMS, vec![Layer::new("user.toml", vec![rule]).unwrap()])
}

impl World {
    fn runs(&self, policy: &Policy, command: &str, now: SandboxState) -> bool {
        self.judge(
            policy,
            "Bash",
            Effectful,
            &[Touch::Shell(command.to_owned())],
            now,
        )
        .decision
        .allows()
    }
}

/// A denied script ran when its interpreter was named: `bash deploy.sh` for `deploy.sh`.
#[test]
fn a_refused_program_is_found_behind_what_starts_it() {
    let world = World::new();
    // The rule, what it refuses, and what comes near and runs.
    #[rustfmt::skip]
    let cases: [(&str, &[&str], &[&str]); 13] = [
        ("git", &[
            "git push", "time git", "time -- git push", "time -p -- git", "! git", "! time -- git", "coproc git", "exec -a x git",
            "exec -c git", "command -p git", "command -- git", "builtin command git", "nice -- git", "a | time -- git",
            "time -- ! git", "time -- { git; }", "if time -- git; then a; fi", "echo $(time -- git)", "/usr/lib/git-core/git-push", "git-log",
        ], &["time -- ls", "ls git", "time -p ls -- git", "digit"]),
        ("deploy.sh", &[
            "./deploy.sh", "bash deploy.sh", "sh ./deploy.sh now", "bash -eu x/deploy.sh", "env bash deploy.sh", "timeout 5 bash deploy.sh",
            ". ./deploy.sh", "source deploy.sh", "nohup dash -- deploy.sh &", "ls | xargs bash deploy.sh", "find . -exec sh deploy.sh \\;",
            "bash < deploy.sh", "time -- bash deploy.sh",
        ], &["bash other.sh deploy.sh", "cat deploy.sh", "bash deploy.sh.txt"]),
        ("manage.py", &[
            "python3 manage.py migrate", "python -B ./manage.py", "env python3 -W ignore manage.py", "python3.11 manage.py", "pypy3 manage.py",
            "python3 -m coverage run manage.py test", "coverage run --branch manage.py", "tini -- python3 manage.py", "dumb-init ./manage.py",
            "gosu www python3 manage.py", "tini -g -- gosu www:www ./manage.py", "su-exec www ./manage.py",
        ], &["python3 -m coverage run other.py manage.py", "gosu manage.py ls", "tini -- ls manage.py", "python3 other.py manage.py"]),
        ("pytest", &["python3 -m coverage run -m pytest", "coverage run -m pytest -q", "python3 -m pytest -q", "pytest", "python3.12 -B -m pytest", "pipx run pytest"],
            &["python3 -m mypy", "pipx install pytest"]),
        ("deploy.js", &["node deploy.js", "nodejs --no-warnings deploy.js", "deno run -A deploy.js", "bun run ./deploy.js", "deno run $x",
            "node deploy", "node ./deploy now", "node --no-warnings x/deploy", "tsx deploy.js", "ts-node --esm deploy", "npx tsx ./deploy",
            "npx -y ts-node deploy.js", "tsx watch ./deploy.js", "bun run ./deploy", "node ./deploy.js/../deploy"], &["node other deploy", "tsx other.ts deploy.js", "node deploy.jsx", "npx eslint deploy"]),
        ("index.js", &["node .", "node x", "npx tsx ./x"], &["node -v"]),
        ("deploy.rb", &["ruby deploy.rb", "ruby -w deploy.rb"], &[]),
        ("deploy.pl", &["perl deploy.pl", "perl5.36 -w deploy.pl", "perl -T deploy.pl"], &[]),
        ("deploy.mk", &["make -f deploy.mk", "make -fdeploy.mk", "make --file=x/deploy.mk all", "make -j 4 -sf deploy.mk", "gmake --makefile deploy.mk"],
            &["make deploy.mk", "make -C deploy.mk", "make -f other.mk"]),
        ("prettier", &["npx prettier .", "npx prettier@3 .", "bunx prettier"], &["npx eslint prettier"]),
        ("perl", &["perl5.36-x86_64-linux-gnu x.pl", "perl5.36 x.pl", "perl5 x.pl", "/usr/bin/perl x.pl"], &["perldoc x", "ls perl5.36"]),
        ("timeout", &["timeout 5 ls", "nohup timeout 5 ls", "nice -n 5 /usr/bin/timeout 5 ls"], &["nohup ls timeout"]),
        ("gcc", &[
            "gcc-12 x.c", "x86_64-linux-gnu-gcc x.c", "x86_64-linux-gnu-gcc-12 x.c", "arm-none-eabi-gcc x.c", "aarch64-linux-gnu-gcc-13.2 x.c",
        ], &["my-gcc x.c", "x86_64-linux-gnu-ld x.o"]),
    ];
    for (program, refused, runs) in cases {
        let policy = named(program, None, Deny);
        for command in refused {
            assert!(
                !world.runs(&policy, command, CONFINED),
                "deny {program}: {command}"
            );
        }
        for command in runs {
            assert!(
                world.runs(&policy, command, CONFINED),
                "deny {program}: {command}"
            );
        }
    }
    let deep = format!("{} manage.py", "coverage run -m ".repeat(12));
    assert!(
        !world.runs(&named("manage.py", None, Deny), &deep, CONFINED),
        "too many start one another"
    );
    let policy = named("deploy.js", Some("prod"), Deny);
    assert!(
        !world.runs(&policy, "node deploy prod", CONFINED)
            && world.runs(&policy, "node deploy test", CONFINED)
    );
    assert!(world.runs(
        &named("git", Some("push"), Deny),
        "git remote set-url --push origin x",
        CONFINED
    ));
    let policy = named("manage.py", Some("migrate"), Deny);
    assert!(!world.runs(&policy, "python3 manage.py migrate", CONFINED));
    assert!(world.runs(&policy, "python3 manage.py test", CONFINED));
    // Interpreters are no way to an approval either.
    for (program, command) in [
        ("deploy.sh", "bash deploy.sh"),
        ("perl", "perl5.36 x.pl"),
        ("git", "time -- ./git"),
        ("ls", "A=1 ls"),
        ("python3", "python3 -c x"),
    ] {
        assert!(
            !world.runs(&named(program, None, Allow), command, OFF),
            "allow {program}: {command}"
        );
    }
}

#[test]
fn a_link_to_a_refused_program_is_that_program() {
    let world = World::new();
    let at = |name: &str| world.dir.path().join("project").join(name);
    fs::write(at("sub/deploy.sh"), "").unwrap();
    symlink("sub/deploy.sh", at("build")).unwrap();
    symlink("build", at("again")).unwrap();
    for (link, program) in [("mygit", "git"), ("mybash", "bash"), ("slowly", "timeout")] {
        symlink(format!("/usr/bin/{program}"), at(link)).unwrap();
    }
    symlink("/bin/busybox", at("ls-of-busybox")).unwrap();
    let cases: [(&str, &[&str], &[&str]); 3] = [
        (
            "deploy.sh",
            &[
                "./build",
                "./again x",
                "bash build",
                "sub/../again",
                "cd sub && ../build",
            ],
            &["./a.rs", "ls build"],
        ),
        (
            "git",
            &[
                "./mygit push",
                "nice ./mygit",
                "./mybash -c 'git push'",
                "./slowly 5 git push",
            ],
            &["./slowly 5 ls", "cat mygit"],
        ),
        ("busybox", &["busybox ls"], &["./ls-of-busybox"]),
    ];
    for (program, refused, runs) in cases {
        let policy = named(program, None, Deny);
        for command in refused {
            assert!(
                !world.runs(&policy, command, CONFINED),
                "deny {program}: {command}"
            );
        }
        for command in runs {
            assert!(
                world.runs(&policy, command, CONFINED),
                "deny {program}: {command}"
            );
        }
    }
    assert!(
        !world.runs(&named("git", None, Allow), "./mygit", OFF),
        "a link gains no approval"
    );
    assert!(!world.runs(&named("git", Some("push"), Deny), "./mygit push", CONFINED));
    assert!(world.runs(&named("git", Some("push"), Deny), "./mygit log", CONFINED));
}

/// `deny Bash sh` let `/bin/dash` run, to which `sh` leads, and `deny Bash awk` let `nawk` run, which leads to the same.
#[test]
fn what_a_refused_program_leads_to_is_that_program() {
    let world = World::new();
    let mut pairs = Vec::new();
    for name in [
        "sh", "awk", "nawk", "python3", "python", "pager", "vi", "vim", "editor", "c++", "cc",
        "gcc", "which", "nc",
    ] {
        let leads = fs::canonicalize(Path::new("/usr/bin").join(name)).ok();
        let leads = leads
            .and_then(|path| path.file_name()?.to_str().map(str::to_owned))
            .filter(|leads| leads != name);
        pairs.extend(leads.map(|leads| (name, leads)));
    }
    // What is opaque is refused anyway.
    let other = named("other", None, Deny);
    pairs.retain(|(name, leads)| {
        [name, &leads.as_str()]
            .iter()
            .all(|it| world.runs(&other, &format!("{it} x"), CONFINED))
    });
    assert!(!pairs.is_empty(), "this machine has no such link");
    for (name, leads) in &pairs {
        for program in [(*name).to_owned(), format!("/usr/bin/{name}")] {
            let policy = named(&program, None, Deny);
            for command in [
                format!("{leads} x"),
                format!("/usr/bin/{leads} x"),
                format!("nice {leads} x"),
            ] {
                assert!(
                    !world.runs(&policy, &command, CONFINED),
                    "deny {program}: {command}"
                );
            }
            let others = pairs.iter().filter(|(_, other)| other == leads);
            for (other, _) in others {
                assert!(
                    !world.runs(&policy, &format!("{other} x"), CONFINED),
                    "deny {program}: {other}"
                );
            }
            assert!(
                world.runs(&policy, &format!("ls {leads}"), CONFINED),
                "deny {program}"
            );
        }
        assert!(
            !world.runs(&named(leads, None, Deny), &format!("{name} x"), CONFINED),
            "deny {leads}: {name}"
        );
        assert!(
            !world.runs(&named(name, None, Allow), &format!("{leads} x"), OFF),
            "allow {name}: {leads}"
        );
        assert!(
            !world.runs(
                &named(name, Some("push"), Deny),
                &format!("{leads} push"),
                CONFINED
            ),
            "deny {name} push"
        );
        assert!(
            world.runs(
                &named(name, Some("push"), Deny),
                &format!("{leads} log"),
                CONFINED
            ),
            "deny {name} push"
        );
    }
}

/// Programs that are another one by their name are not what leads to the same.
#[test]
fn a_program_that_does_what_its_name_says_is_refused_by_that_name() {
    let world = World::new();
    for (program, runs) in [
        ("dropdb", "createdb x"),
        ("apropos", "whatis x"),
        ("pkill", "pgrep x"),
        ("reboot", "systemctl status"),
    ] {
        let policy = named(program, None, Deny);
        assert!(
            world.runs(&policy, runs, CONFINED) && !world.runs(&policy, program, CONFINED),
            "deny {program}: {runs}"
        );
    }
}

/// A plugin's rules are guards: what may change them asks, also where a command does it.
#[test]
fn writing_to_a_directory_of_plugins_asks() {
    let world = World::new();
    let at = |name: &str| world.dir.path().join("project").join(name);
    fs::create_dir_all(at(".yoi/plugins/calm")).unwrap();
    fs::write(at(".yoi/plugins/calm/plugin.toml"), "").unwrap();
    symlink(".yoi/plugins", at("elsewhere")).unwrap();
    for path in [
        ".yoi/plugins/calm/plugin.toml",
        ".yoi/plugins/new/x",
        ".YOI/Plugins/x",
        "elsewhere/calm/x",
        ".yoi",
    ] {
        assert!(
            !world.write(&table(), path, CONFINED).decision.allows(),
            "{path}"
        );
    }
    for path in [".yoi/plugin", "sub/yoi/plugins/x", ".yoi/notes/x"] {
        assert!(
            world.write(&table(), path, CONFINED).decision.allows(),
            "{path}"
        );
    }
    assert!(
        world
            .read(&table(), ".yoi/plugins/calm/plugin.toml", CONFINED)
            .decision
            .allows()
    );
    for command in [
        "echo >> .yoi/plugins/calm/plugin.toml",
        "rm -r .yoi/plugins/calm",
        "mv .yoi x",
        "chmod u+x .yoi/plugins/calm/plugin.toml",
        "touch elsewhere/calm/x",
        "cd .yoi && rm -r plugins",
        "sed -i s/a/b/ .yoi/plugins/calm/plugin.toml",
        "cp x .yoi/pl*/calm/",
        "dd of=.yoi/plugins/calm/plugin.toml",
        "python3 -c 'open(\".yoi/plugins/calm/plugin.toml\", \"w\")'",
        "ls | tee .yoi/plugins/x/y",
    ] {
        assert!(!world.runs(&table(), command, CONFINED), "{command}");
    }
    for command in [
        "cat .yoi/plugins/calm/plugin.toml",
        "ls -R .yoi",
        "sed -n 1p .yoi/plugins/calm/plugin.toml",
        "rm -r sub",
    ] {
        assert!(world.runs(&table(), command, CONFINED), "{command}");
    }
}
