//! The system calls that a confined child is denied. Landlock covers paths; this covers operations without a path.

use crate::{Error, ErrorKind};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};
use std::collections::BTreeMap;

/// Refused with `EPERM`, whatever the arguments.
const REFUSED: &[libc::c_long] = &[
    // Performs I/O, sockets included, without further system calls that could be filtered.
    libc::SYS_io_uring_setup,
    // Keys that the person's other programs keep in the kernel.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Another process's open files; files by number instead of path.
    libc::SYS_pidfd_getfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    FILE_SETATTR,
    // Parts of the kernel with a history of vulnerabilities that building and testing do not need.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // The machine itself, for children of root.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_move_mount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
];

/// Refused as well where what they reach is shared with the person's other programs.
const SHARED: &[libc::c_long] = &[
    // Memory and queues that are shared by number, not by path. An existing one can be used by its number, without
    // `get`.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// From this number on, x86-64 kernels treat a call as one of the x32 ABI, which gives every call above a second
/// number. No other architecture has calls there. A kernel built without x32 returns the same error, so a test proves
/// the filter only on the others.
const X32: u32 = 0x4000_0000;

/// In a new user namespace a child would have all capabilities inside of it, and could reach parts of the kernel meant
/// for administrators. Other namespaces need a capability that no child has.
const NEW_USER: u64 = 0x1000_0000;

/// Has its flags in memory, where a filter cannot read them. The C library uses `clone` if this call is missing.
const CLONE3: u32 = 435;

/// Inserts characters into the terminal's input, which the user continues to use.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;

/// `ioctl` groups (middle byte of the number) that can modify a file through a read-only descriptor. Each entry lists
/// the permitted numbers of its group: they only query, or require a writable descriptor. Landlock does not restrict
/// these calls: one could make a file immutable (verity), others change attributes or snapshots.
const FILE_SYSTEMS: &[(u64, &[u64])] = &[
    // ext4 and most: flags, verity, encryption. GETFLAGS, FIEMAP, PROCMAP_QUERY, MEASURE_VERITY; <linux/fs.h>.
    (0x66, &[0x8008_6601, 0xc020_660b, 0xc068_6611, 0xc004_6686]),
    // XFS and the attributes that all took from it: FSGETXATTR.
    (0x58, &[0x801c_581f]),
    // Version numbers of inodes: GETVERSION.
    (0x76, &[0x8008_7601]),
    // Btrfs, and what all took from it: FICLONE, FICLONERANGE, GETFSLABEL.
    (0x94, &[0x4004_9409, 0x4020_940d, 0x8100_9431]),
    // F2FS, FAT, bcachefs, Ceph, NILFS2, SMB.
    (0xf5, &[]),
    (0x72, &[]),
    (0xbc, &[]),
    (0x97, &[]),
    (0x6e, &[]),
    (0xcf, &[]),
];
const KIND: u64 = 0xff00;

/// The attributes of a file as a call of its own, with this number everywhere; <asm-generic/unistd.h>.
const FILE_SETATTR: libc::c_long = 469;

/// Commands that report or delay other programs' opening of a file: `F_SETLEASE`, `F_NOTIFY`, `F_SETDELEG`;
/// <linux/fcntl.h>.
const LEASES: &[u64] = &[1024, 1026, 1040];

/// In a namespace of processes of a call: its first process, and the thread of it that starts the command. They are outside of
/// the child's confinement, and the kernel gives no number below 300 a second time. A call that is let out is started by a
/// third one.
const KEEPERS: std::ops::RangeInclusive<u64> = 1..=2;
const KEEPERS_OUTSIDE: std::ops::RangeInclusive<u64> = 1..=3;

/// Scheduling calls, with the index of the argument that names the process, where 0 is the caller. Affinity is not
/// restricted: OpenMP sets it for its threads by number.
const SCHEDULING: &[(libc::c_long, u8)] = &[
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];

/// Calls that give a file or the caller other numbers of users and groups, with the indices of these arguments.
const OWNERS: &[(libc::c_long, &[u8], &[u8])] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, &[1], &[2]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, &[1], &[2]),
    (libc::SYS_fchown, &[1], &[2]),
    (libc::SYS_fchownat, &[2], &[3]),
    (libc::SYS_setuid, &[0], &[]),
    (libc::SYS_setgid, &[], &[0]),
    (libc::SYS_setreuid, &[0, 1], &[]),
    (libc::SYS_setregid, &[], &[0, 1]),
    (libc::SYS_setresuid, &[0, 1, 2], &[]),
    (libc::SYS_setresgid, &[], &[0, 1, 2]),
];

/// "No change" in these, or no number at all.
const NO_ID: u64 = 0xffff_ffff;

/// All processes of a user; <linux/resource.h>, <linux/ioprio.h>.
const PRIO_USER: u64 = 2;
const IOPRIO_WHO_USER: u64 = 3;

/// The limit on file locks, which labels descendants ([`super::label`]); <asm-generic/resource.h>.
const LOCKS: u64 = 10;

/// The sockets of this machine, those of the internet, and those that ask the kernel about the network; <linux/socket.h>.
const AF_UNIX: u64 = 1;
const AF_INET: u64 = 2;
const AF_INET6: u64 = 10;
const AF_NETLINK: u64 = 16;

/// Which sockets and shared things a child reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// None: a socket of the internet fails as without a network. `socketpair` is allowed, for pipes between processes.
    Nothing,
    /// Sockets of the internet.
    Internet,
    /// All of namespaces that the child shares with other children only.
    Namespaces,
    /// The same, but the network of the machine, without its abstract sockets.
    Machine,
}

impl Reach {
    /// Other families are refused.
    fn families(self) -> &'static [u64] {
        match self {
            Self::Nothing => &[],
            Self::Internet => &[AF_INET, AF_INET6],
            Self::Namespaces | Self::Machine => &[AF_UNIX, AF_INET, AF_INET6, AF_NETLINK],
        }
    }
}

// Codes of the instructions written by hand; <linux/bpf_common.h>, <linux/seccomp.h>.
const LOAD_WORD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER_EQUAL: u16 = 0x35;
const RETURN: u16 = 0x06;
const RETURN_ERRNO: u32 = 0x0005_0000;
/// The offset of the low half of the first argument, where it has one: on machines that store it first.
const FIRST_ARGUMENT: u32 = 16;

/// Namespaces of a child's own, as far as the filter differs in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnNamespaces {
    /// The user and the group that exist in them, unless all do.
    pub(super) only: Option<(u32, u32)>,
}

pub(super) fn build(reach: Reach, own: Option<OwnNamespaces>) -> Result<BpfProgram, Error> {
    compile(reach, own).map_err(|why| {
        Error::new(
            ErrorKind::Unavailable,
            format!("system call filter: {why}; use sandbox mode off"),
        )
    })
}

/// Whether filters can be made for this processor.
pub(super) fn is_known_machine() -> bool {
    TargetArch::try_from(std::env::consts::ARCH).is_ok()
}

fn compile(
    reach: Reach,
    own: Option<OwnNamespaces>,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let shared = if matches!(reach, Reach::Namespaces | Reach::Machine) {
        &[]
    } else {
        SHARED
    };
    let refused = REFUSED.iter().chain(shared);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        refused.map(|number| (*number, Vec::new())).collect();
    let low = |index, op, value| SeccompCondition::new(index, SeccompCmpArgLen::Dword, op, value);
    let eq = |index, value| low(index, SeccompCmpOp::Eq, value);
    let some = |index, value| SeccompRule::new(vec![low(index, SeccompCmpOp::Ne, value)?]);
    let others = reach
        .families()
        .iter()
        .map(|family| low(0, SeccompCmpOp::Ne, *family));
    let others: Vec<_> = others.collect::<Result<_, _>>()?;
    let mut sockets = if others.is_empty() {
        Vec::new()
    } else {
        vec![SeccompRule::new(others)?]
    };
    if reach == Reach::Namespaces {
        // Addresses and routes. Others tell of devices and events of the machine.
        sockets.push(SeccompRule::new(vec![
            eq(0, AF_NETLINK)?,
            low(2, SeccompCmpOp::Ne, 0)?,
        ])?);
    }
    rules.insert(libc::SYS_socket, sockets);
    let mut ioctl = vec![
        SeccompRule::new(vec![eq(1, TIOCSTI)?])?,
        SeccompRule::new(vec![eq(1, TIOCLINUX)?])?,
    ];
    for (kind, harmless) in FILE_SYSTEMS {
        let others = harmless
            .iter()
            .map(|number| low(1, SeccompCmpOp::Ne, *number));
        let all = std::iter::once(low(1, SeccompCmpOp::MaskedEq(KIND), kind << 8)).chain(others);
        ioctl.push(SeccompRule::new(all.collect::<Result<_, _>>()?)?);
    }
    rules.insert(libc::SYS_ioctl, ioctl);
    let leases = LEASES
        .iter()
        .map(|command| SeccompRule::new(vec![eq(1, *command)?]));
    rules.insert(libc::SYS_fcntl, leases.collect::<Result<_, _>>()?);
    let numbered = |index, mut pids: std::ops::RangeInclusive<u64>| {
        pids.try_fold(Vec::new(), |mut rules, pid| {
            rules.push(SeccompRule::new(vec![eq(index, pid)?])?);
            Ok(rules)
        })
    };
    // Other processes; in a namespace of their own only its keeper.
    let others = |index| match own {
        None => Ok(vec![some(index, 0)?]),
        Some(_) if reach == Reach::Namespaces => numbered(index, KEEPERS),
        Some(_) => numbered(index, KEEPERS_OUTSIDE),
    };
    for (number, whose) in SCHEDULING {
        rules.insert(*number, others(*whose)?);
    }
    if let Some((user, group)) = own.and_then(|own| own.only) {
        for (number, users, groups) in OWNERS {
            let users = users.iter().map(|index| other_id(*index, user));
            let groups = groups.iter().map(|index| other_id(*index, group));
            rules.insert(*number, users.chain(groups).collect::<Result<_, _>>()?);
        }
    }
    for (number, user) in [
        (libc::SYS_setpriority, PRIO_USER),
        (libc::SYS_ioprio_set, IOPRIO_WHO_USER),
    ] {
        rules
            .entry(number)
            .or_default()
            .push(SeccompRule::new(vec![eq(0, user)?])?);
    }
    // A pair of datagram sockets is connected, yet each can send to any other socket by its name. For Unix sockets
    // SOCK_RAW (3) means SOCK_DGRAM (2). Pairs of another family (TIPC) are the network.
    let kind = |value| low(1, SeccompCmpOp::MaskedEq(0xf), value);
    let mut pairs = vec![SeccompRule::new(vec![low(0, SeccompCmpOp::Ne, AF_UNIX)?])?];
    if reach != Reach::Namespaces {
        pairs.extend([
            SeccompRule::new(vec![kind(2)?])?,
            SeccompRule::new(vec![kind(3)?])?,
        ]);
    }
    rules.insert(libc::SYS_socketpair, pairs);
    // Limits of other processes, the host's among them; 0 is the caller. And the limit that is the label, to set it.
    let label = |index| low(index, SeccompCmpOp::Eq, LOCKS);
    let new = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let mut limits = others(0)?;
    limits.push(SeccompRule::new(vec![label(1)?, new])?);
    rules.insert(libc::SYS_prlimit64, limits);
    rules.insert(
        libc::SYS_setrlimit,
        vec![SeccompRule::new(vec![label(0)?])?],
    );
    for number in [libc::SYS_unshare, libc::SYS_clone] {
        rules.insert(
            number,
            vec![SeccompRule::new(vec![low(
                0,
                SeccompCmpOp::MaskedEq(NEW_USER),
                NEW_USER,
            )?])?],
        );
    }
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    let mut program = absent();
    if reach == Reach::Nothing {
        program.extend(unreachable());
    }
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// The kernel says that a number without a user is invalid. Programs expect what an ordinary user is told elsewhere.
fn other_id(index: u8, own: u32) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = [u64::from(own), NO_ID]
        .map(|id| SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, id));
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

/// Sockets of the internet fail as on a machine without a network, which programs name.
fn unreachable() -> BpfProgram {
    let errno = RETURN_ERRNO | libc::ENETUNREACH.unsigned_abs();
    vec![
        sock_filter {
            code: LOAD_WORD,
            jt: 0,
            jf: 0,
            k: 0,
        },
        sock_filter {
            code: JUMP_EQUAL,
            jt: 0,
            jf: 4,
            k: libc::SYS_socket as u32,
        },
        sock_filter {
            code: LOAD_WORD,
            jt: 0,
            jf: 0,
            k: FIRST_ARGUMENT,
        },
        sock_filter {
            code: JUMP_EQUAL,
            jt: 1,
            jf: 0,
            k: AF_INET as u32,
        },
        sock_filter {
            code: JUMP_EQUAL,
            jt: 0,
            jf: 1,
            k: AF_INET6 as u32,
        },
        sock_filter {
            code: RETURN,
            jt: 0,
            jf: 0,
            k: errno,
        },
    ]
}

/// Calls that fail with `ENOSYS`, as on a kernel without them: [`CLONE3`], and numbers at or over [`X32`].
fn absent() -> BpfProgram {
    let errno = RETURN_ERRNO | libc::ENOSYS.unsigned_abs();
    vec![
        sock_filter {
            code: LOAD_WORD,
            jt: 0,
            jf: 0,
            k: 0,
        },
        sock_filter {
            code: JUMP_EQUAL,
            jt: 1,
            jf: 0,
            k: CLONE3,
        },
        sock_filter {
            code: JUMP_GREATER_EQUAL,
            jt: 0,
            jf: 1,
            k: X32,
        },
        sock_filter {
            code: RETURN,
            jt: 0,
            jf: 0,
            k: errno,
        },
    ]
}
