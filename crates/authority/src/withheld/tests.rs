//! Withheld places under every name that mounts give them.

use super::*;

fn withheld(mounts: &str) -> Withheld {
    let vars = [
        ("HOME", "/people/me"),
        ("XDG_STATE_HOME", "/srv/state"),
        ("TMPDIR", "/var/scratch"),
    ];
    let vars = vars.map(|(name, value)| (name.into(), value.into()));
    let env = EnvPolicy::from_vars(vars, &[]).unwrap();
    let places = places(&env, &["/people/me".into()]);
    Withheld {
        places,
        mounts: mounts
            .lines()
            .filter_map(|line| Mount::parse(line.as_bytes()))
            .collect(),
    }
}

const MOUNTS: &str = "\
1 0 8:1 / / rw - ext4 /dev/a rw
2 1 8:2 / /people rw shared:1 - ext4 /dev/b rw
3 1 8:2 /me /mnt/bind\\040me rw - ext4 /dev/b rw
4 1 8:2 / /mnt/all/homes rw - ext4 /dev/b rw
5 1 8:2 /me/.ssh/deep /mnt/deep rw - ext4 /dev/b rw
6 1 8:2 /me/projects /mnt/projects rw - ext4 /dev/b rw
7 1 0:5 / /proc rw - proc proc rw
8 1 0:9 / /chroot/x/proc rw - proc proc rw
9 1 0:6 / /dev rw - devtmpfs dev rw
10 9 0:7 / /dev/shm rw - tmpfs shm rw";

#[test]
fn places_are_found_under_every_name() {
    let withheld = withheld(MOUNTS);
    let table = [
        ("/", Some(WithheldReason::Home)),
        ("/people", Some(WithheldReason::Home)),
        ("/people/me", Some(WithheldReason::Home)),
        ("/people/me/.ssh", Some(WithheldReason::Keys)),
        ("/people/me/.SSH", Some(WithheldReason::Keys)),
        ("/people/me/.\u{17f}sh/sub", Some(WithheldReason::Keys)),
        ("/people/me/.aws/sso/cache", Some(WithheldReason::Keys)),
        ("/people/me/.cargo", Some(WithheldReason::Keys)),
        ("/people/me/.config", Some(WithheldReason::Own)),
        ("/people/me/.config/yoi", Some(WithheldReason::Own)),
        ("/people/me/.config/yoi/sub", Some(WithheldReason::Own)),
        ("/people/me/.cache/yoi", Some(WithheldReason::Own)),
        (
            "/people/me/.local/state/yoi/pods/x",
            Some(WithheldReason::Own),
        ),
        ("/srv/state/yoi/memory", Some(WithheldReason::Own)),
        ("/srv", Some(WithheldReason::Own)),
        ("/etc", Some(WithheldReason::Own)),
        ("/etc/ssh", Some(WithheldReason::Keys)),
        ("/etc/ssl/private", Some(WithheldReason::Keys)),
        ("/etc/ssl/certs", None),
        ("/etc/nginx", None),
        ("/var", Some(WithheldReason::Temporary)),
        ("/var/scratch", Some(WithheldReason::Temporary)),
        ("/var/scratch/mine", None),
        ("/var/scratchy", None),
        ("/people/me/projects", None),
        ("/people/me/.sshd", None),
        ("/people/other", None),
        ("/mnt", Some(WithheldReason::Home)),
        ("/mnt/bind me", Some(WithheldReason::Home)),
        ("/mnt/bind me/.gnupg", Some(WithheldReason::Keys)),
        ("/mnt/bind me/projects", None),
        ("/mnt/all", Some(WithheldReason::Home)),
        ("/mnt/all/homes/me/.config/yoi", Some(WithheldReason::Own)),
        ("/mnt/deep", Some(WithheldReason::Keys)),
        ("/mnt/projects", None),
        ("/proc", Some(WithheldReason::Kernel)),
        ("/proc/1", Some(WithheldReason::Kernel)),
        ("/chroot/x", Some(WithheldReason::Kernel)),
        ("/chroot/y", None),
        ("/dev", Some(WithheldReason::Kernel)),
        ("/dev/shm/mine", None),
    ];
    for (dir, why) in table {
        let found = withheld.conflict(Path::new(dir));
        assert_eq!(
            found.as_ref().map(|found| found.why),
            why,
            "{dir}: {found:?}"
        );
    }
}
