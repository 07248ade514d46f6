//! Withheld places under every name that mounts give them.

use super::*;

fn withheld(mounts: &str) -> Withheld {
    let vars = [("HOME", "/people/me"), ("XDG_STATE_HOME", "/srv/state"), ("TMPDIR", "/var/scratch")];
    let vars = vars.map(|(name, value)| (name.into(), value.into()));
    let env = EnvPolicy::from_vars(vars, &[]).unwrap();
    let places = places(&env, &["/people/me".into()]);
    Withheld { places, mounts: mounts.lines().filter_map(|line| Mount::parse(line.as_bytes())).collect() }
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
        ("/", Some(Why::Home)),
        ("/people", Some(Why::Home)),
        ("/people/me", Some(Why::Home)),
        ("/people/me/.ssh", Some(Why::Keys)),
        ("/people/me/.SSH", Some(Why::Keys)),
        ("/people/me/.\u{17f}sh/sub", Some(Why::Keys)),
        ("/people/me/.aws/sso/cache", Some(Why::Keys)),
        ("/people/me/.cargo", Some(Why::Keys)),
        ("/people/me/.config", Some(Why::Own)),
        ("/people/me/.config/yoi", Some(Why::Own)),
        ("/people/me/.config/yoi/sub", Some(Why::Own)),
        ("/people/me/.cache/yoi", Some(Why::Own)),
        ("/people/me/.local/state/yoi/pods/x", Some(Why::Own)),
        ("/srv/state/yoi/memory", Some(Why::Own)),
        ("/srv", Some(Why::Own)),
        ("/etc", Some(Why::Own)),
        ("/etc/ssh", Some(Why::Keys)),
        ("/etc/ssl/private", Some(Why::Keys)),
        ("/etc/ssl/certs", None),
        ("/etc/nginx", None),
        ("/var", Some(Why::Temporary)),
        ("/var/scratch", Some(Why::Temporary)),
        ("/var/scratch/mine", None),
        ("/var/scratchy", None),
        ("/people/me/projects", None),
        ("/people/me/.sshd", None),
        ("/people/other", None),
        ("/mnt", Some(Why::Home)),
        ("/mnt/bind me", Some(Why::Home)),
        ("/mnt/bind me/.gnupg", Some(Why::Keys)),
        ("/mnt/bind me/projects", None),
        ("/mnt/all", Some(Why::Home)),
        ("/mnt/all/homes/me/.config/yoi", Some(Why::Own)),
        ("/mnt/deep", Some(Why::Keys)),
        ("/mnt/projects", None),
        ("/proc", Some(Why::Kernel)),
        ("/proc/1", Some(Why::Kernel)),
        ("/chroot/x", Some(Why::Kernel)),
        ("/chroot/y", None),
        ("/dev", Some(Why::Kernel)),
        ("/dev/shm/mine", None),
    ];
    for (dir, why) in table {
        let found = withheld.conflict(Path::new(dir));
        assert_eq!(found.as_ref().map(|found| found.why), why, "{dir}: {found:?}");
    }
}
