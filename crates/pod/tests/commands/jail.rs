//! A place in which bash runs texts and starts nothing: programs that it looks for are written down instead.
//!
//! Many texts share one bash, each in a process of its own. There is no PATH, builtins that are not needed are switched
//! off and looked for like programs, and the handler of names that were not found keeps the name. One answer in four is a
//! failure, by chance, so that both branches are taken and most loops end; the rest is killed after a second. The project's own sandbox is around it: what names
//! a file by an absolute path reads at most.

use authority::{ChildExit, Confinement, EnvPolicy, Job, SandboxMode, Spawner, support};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const SCRIPT: &str = r#"
mapfile -d '' -t JAIL_TEXTS <texts
readonly JAIL_LOG=$PWD/log JAIL_TEXTS
cd work
enable -n [ alias bg bind caller cd compgen complete compopt declare dirs disown echo export false fc fg getopts hash \
  help history jobs let local logout mapfile popd pushd pwd read readarray shift shopt suspend test times true type \
  typeset umask unalias unset
command_not_found_handle() {
  set -- "${1//$'\2'/$'\2b'}"
  builtin printf '\0%s %s\1' "$JAIL_AT" "${1//$'\n'/$'\2n'}" >>"$JAIL_LOG"
  ((SECONDS > 1)) && builtin kill -KILL -- "-$JAIL_GROUP"
  return $((RANDOM % 4 == 0))
}
readonly -f command_not_found_handle
PATH=/nonexistent
FUNCNEST=20
set -m
exec </dev/null >/dev/null 2>&1
for JAIL_AT in "${!JAIL_TEXTS[@]}"; do
  (
    SECONDS=0
    readonly JAIL_AT JAIL_GROUP=$BASHPID
    set +m
    ulimit -t 1 -f 1024
    eval "${JAIL_TEXTS[JAIL_AT]}"
    wait
  )
done
exit 0
"#;

/// The same with programs that start others. What they start are stubs, which do not know for which text.
const WITH_STARTERS: &str = r#"
mapfile -d '' -t texts <texts
home=$PWD timeout=$(command -v timeout) bash=$BASH
cd work
for at in "${!texts[@]}"; do
  : >"$home/started"
  PATH=$home/bin "$timeout" -k 1 2 "$bash" --norc -c "ulimit -f 1024; ${texts[at]}" </dev/null >/dev/null 2>&1
  while read -r name; do printf '\0%s %s\1' "$at" "$name" >>"$home/log"; done <"$home/started"
done
exit 0
"#;

const STARTERS: [&str; 8] = [
    "env", "find", "nice", "nohup", "sed", "stdbuf", "timeout", "xargs",
];

/// How long one bash may take for all its texts.
const DEADLINE: Duration = Duration::from_secs(120);

static JAILS: AtomicU64 = AtomicU64::new(0);

pub(super) struct Jail {
    dir: tempfile::TempDir,
    spawner: Spawner,
    runtime: tokio::runtime::Runtime,
    script: &'static str,
}

impl Jail {
    /// None where this kernel confines nothing.
    pub(super) fn new() -> Option<Self> {
        let mode = SandboxMode::WorkspaceWrite;
        if !support().in_force(mode) {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let ambient = ambient::claim();
        let confinement = Confinement {
            mode,
            read: Vec::new(),
            write: vec![dir.path().to_owned()],
        };
        let env = EnvPolicy::from_vars([("PATH".into(), std::env::var_os("PATH").unwrap())], &[])
            .unwrap();
        // What is left of a call is found by its mark, so each has its own.
        let number = JAILS.fetch_add(1, Ordering::Relaxed);
        let spawner = Spawner::new(&ambient, confinement, env, format!("jail/{number}")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        Some(Self {
            dir,
            spawner,
            runtime,
            script: SCRIPT,
        })
    }

    /// One in which the common programs that start others are found, and stubs.
    pub(super) fn with_starters() -> Option<Self> {
        let jail = Self::new()?;
        let bin = jail.dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        for name in STARTERS {
            symlink(format!("/usr/bin/{name}"), bin.join(name)).unwrap();
        }
        let stub = format!(
            "#!/bin/sh\necho \"${{0##*/}}\" >>'{}'\n",
            jail.dir.path().join("started").display()
        );
        for name in ["p1", "p2", "p3", "p4", "p5", "p6", "a", "x", "KILL"] {
            fs::write(bin.join(name), &stub).unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(jail.dir.path().join("work/a"), "a p1\np2\n").unwrap();
        Some(Self {
            script: WITH_STARTERS,
            ..jail
        })
    }

    /// The names that bash looked for, for each text. None: they did not end in time.
    pub(super) fn run(&self, texts: &[String]) -> Option<Vec<BTreeSet<String>>> {
        let log = self.dir.path().join("log");
        fs::write(&log, "").unwrap();
        let texts_file: String = texts.iter().flat_map(|text| [text, "\0"]).collect();
        fs::write(self.dir.path().join("texts"), texts_file).unwrap();
        let job = Job {
            program: "bash".into(),
            args: ["--norc", "-c", self.script].map(Into::into).to_vec(),
            cwd: self.dir.path().to_owned(),
            call: "jail".to_owned(),
            deadline: DEADLINE,
            input: Vec::new(),
        };
        let ended = self
            .runtime
            .block_on(self.spawner.run(job, |_| Ok(()), &CancellationToken::new()))
            .unwrap();
        let mut found = vec![BTreeSet::new(); texts.len()];
        for (text, name) in entries(&fs::read(&log).unwrap()) {
            found[text].insert(name);
        }
        (ended.how == ChildExit::Exit(0)).then_some(found)
    }
}

/// The number of a text and a name that it looked for, for each entry of the log. A text that is killed while it writes
/// leaves the beginning of an entry, which is skipped. Bash writes line by line, so a line feed in a name stands as two other
/// characters: between two lines of an entry, another process could write.
fn entries(log: &[u8]) -> impl Iterator<Item = (usize, String)> {
    log.split(|byte| *byte == 0).filter_map(|entry| {
        let entry = String::from_utf8_lossy(entry.strip_suffix(&[1])?);
        let (text, name) = entry.split_once(' ').unwrap();
        Some((
            text.parse().unwrap(),
            name.replace("\u{2}n", "\n").replace("\u{2}b", "\u{2}"),
        ))
    })
}

#[test]
fn an_entry_that_a_kill_cut_off_is_skipped() {
    let log = b"\x000 p1\x01\x001\x001 p\x02n2\x02bn\x01\x002 p";
    assert_eq!(
        entries(log).collect::<Vec<_>>(),
        [(0, "p1".to_owned()), (1, "p\n2\u{2}n".to_owned())]
    );
}

#[test]
fn a_name_is_kept_whatever_its_characters_are() {
    let Some(jail) = Jail::new() else { return };
    let found = jail
        .run(&[
            "$'\\2m'".to_owned(),
            "$'a\\nb'".to_owned(),
            "$'\\2n'".to_owned(),
        ])
        .unwrap();
    assert_eq!(
        found,
        ["\u{2}m", "a\nb", "\u{2}n"].map(|name| BTreeSet::from([name.to_owned()]))
    );
}
