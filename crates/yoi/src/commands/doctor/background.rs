//! What would end a pod that stays, and what ended ones left. Reads files; asks no service.

use super::{Check, note, works};
use host::env::Env;
use host::hosting::socket_file::SOCKET;
use host::pods::Pods;
use session_store::Session;
use std::fs;
use std::path::{Path, PathBuf};

/// Where systemd's login manager is configured, the last of two values counts.
const LOGIND: [&str; 3] = ["usr/lib/systemd", "etc/systemd", "run/systemd"];

/// Fewer free tasks than this are too few for a pod whose commands build something.
const FREE_TASKS: u64 = 256;

/// Everything about pods in the background.
pub(super) fn checks(env: &Env) -> Vec<Check> {
    let root = Path::new("/");
    let user = env.text("USER").or_else(|| env.text("LOGNAME"));
    let mut checks = logout(root, user);
    let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    checks.extend(tasks(root, &cgroup));
    checks.extend(sockets(env));
    checks
}

/// What happens to pods when their user logs out.
fn logout(root: &Path, user: Option<&str>) -> Vec<Check> {
    if !root.join("run/systemd/system").exists() {
        return vec![works(
            "background",
            "systemd is not running, so nothing ends pods when you log out",
        )];
    }
    let lingers = user.is_some_and(|user| root.join("var/lib/systemd/linger").join(user).exists());
    if lingers {
        return vec![works(
            "background",
            "pods keep running after you log out (lingering is on)",
        )];
    }
    vec![
        match kills(root) {
            true => note(
                "background",
                "KillUserProcesses is on: logging out ends all of your pods",
            ),
            false => note(
                "background",
                "lingering is off: logging out ends pods that run as a systemd user service",
            ),
        }
        .help("`loginctl enable-linger` keeps them running"),
    ]
}

/// `KillUserProcesses` of the login manager. A commented line has the default of this distribution.
fn kills(root: &Path) -> bool {
    let mut files: Vec<PathBuf> = Vec::new();
    for dir in LOGIND.map(|dir| root.join(dir)) {
        files.push(dir.join("logind.conf"));
        let parts = fs::read_dir(dir.join("logind.conf.d"))
            .into_iter()
            .flatten()
            .flatten();
        let mut parts: Vec<PathBuf> = parts.map(|entry| entry.path()).collect();
        parts.sort();
        files.extend(parts);
    }
    let mut default = false;
    let mut set = None;
    for text in files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
    {
        for line in text.lines().map(str::trim) {
            let value = |line: &str| {
                line.strip_prefix("KillUserProcesses=")
                    .map(|value| matches!(value, "yes" | "true" | "1" | "on"))
            };
            default = line.strip_prefix('#').and_then(value).unwrap_or(default);
            set = value(line).or(set);
        }
    }
    set.unwrap_or(default)
}

/// Whether the control group has room for the commands of pods.
fn tasks(root: &Path, cgroup: &str) -> Option<Check> {
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let groups = root.join("sys/fs/cgroup").join(own.trim_start_matches('/'));
    let number = |dir: &Path, name: &str| {
        fs::read_to_string(dir.join(name))
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    };
    let free =
        |dir: &Path| Some(number(dir, "pids.max")?.saturating_sub(number(dir, "pids.current")?));
    let least = groups
        .ancestors()
        .take_while(|dir| dir.starts_with(root.join("sys/fs/cgroup")))
        .filter_map(free)
        .min()?;
    (least < FREE_TASKS).then(|| {
        note(
            "tasks",
            format!("only {least} more processes and threads can be started here"),
        )
        .help("raise TasksMax of your session or service, or end other processes")
    })
}

/// Sockets of pods that were killed.
fn sockets(env: &Env) -> Vec<Check> {
    let Ok(pods) = Pods::of(env) else {
        return Vec::new();
    };
    let stale = |name: &String| {
        let dir = pods.dir(name);
        dir.join(SOCKET).symlink_metadata().is_ok() && matches!(Session::owner(&dir), Ok(None))
    };
    let left = pods.names().unwrap_or_default().into_iter().filter(stale);
    let check = |name: String| {
        note(
            "socket",
            format!("{name}: the socket of a killed process is still there"),
        )
        .help(format!("`yoi start {name}` replaces it"))
    };
    left.map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::super::CheckState;
    use super::*;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn told(files: &[(&str, &str)]) -> String {
        logout(root(files).path(), Some("ann")).pop().unwrap().text
    }

    #[test]
    fn what_a_logout_ends_is_said() {
        const SYSTEMD: (&str, &str) = ("run/systemd/system/x", "");
        let conf = |text| ("etc/systemd/logind.conf", text);
        assert!(told(&[]).contains("systemd is not running"));
        assert!(told(&[SYSTEMD]).contains("lingering is off"));
        assert!(
            told(&[SYSTEMD, conf("#KillUserProcesses=yes\n")]).contains("KillUserProcesses is on")
        );
        assert!(
            told(&[
                SYSTEMD,
                conf("#KillUserProcesses=yes\nKillUserProcesses=no\n")
            ])
            .contains("lingering is off")
        );
        let part = (
            "etc/systemd/logind.conf.d/a.conf",
            "[Login]\nKillUserProcesses=yes\n",
        );
        assert!(
            told(&[SYSTEMD, conf("KillUserProcesses=no\n"), part])
                .contains("KillUserProcesses is on")
        );
        assert!(
            told(&[SYSTEMD, part, ("var/lib/systemd/linger/ann", "")]).contains("keep running")
        );
        assert!(
            told(&[SYSTEMD, part, ("var/lib/systemd/linger/bob", "")])
                .contains("KillUserProcesses is on")
        );
    }

    #[test]
    fn too_few_tasks_are_said() {
        let group = |max: &str| {
            let root = root(&[
                ("sys/fs/cgroup/a/pids.max", max),
                ("sys/fs/cgroup/a/pids.current", "100\n"),
                ("sys/fs/cgroup/a/b/pids.max", "max\n"),
                ("sys/fs/cgroup/a/b/pids.current", "3\n"),
            ]);
            tasks(root.path(), "1:x:/\n0::/a/b\n")
        };
        assert!(group("1000\n").is_none());
        let check = group("150\n").unwrap();
        assert!(check.text.contains("only 50 more") && check.state == CheckState::Note);
    }
}
