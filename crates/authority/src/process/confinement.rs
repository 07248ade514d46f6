//! The configuration of a confinement, and the mechanisms that this kernel can enforce.

use super::filter::{self, Reach};
use super::rules;
use crate::HostPattern;
use landlock::ABI;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where the kernel says what its filters of system calls can do; there since filters can return an error.
const FILTERS: &str = "/proc/sys/kernel/seccomp/actions_avail";

/// The mode of the sandbox: how far children are confined. Landlock does not cover permissions, times and extended
/// attributes: a confined child can change these of any file that the person owns, though not the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxMode {
    /// Children read the system and the given directories; they write only their temporary directory.
    ReadOnly,
    /// Children also write below the writable directories.
    WorkspaceWrite,
    /// No confinement: children have all rights of the user who runs yoi.
    Off,
}

/// Which network children use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// None.
    None,
    /// One of their own that has nothing but themselves in it. Without namespaces none.
    #[default]
    Loopback,
    /// The machine's.
    On,
}

/// What one child may do beyond the sandbox; see [`super::Spawner::permit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Reach these hosts through the proxy. All else stays confined.
    Hosts(Vec<HostPattern>),
    /// Use IPv4 and IPv6. All else stays confined, also sockets of this machine's programs that have a path.
    Network,
    /// All that the user who runs yoi may do.
    Unconfined,
}

/// The directories a child may use besides those of the system and of the toolchains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    pub mode: SandboxMode,
    /// For reading and running.
    pub read: Vec<PathBuf>,
    /// For reading, writing and running, in [`SandboxMode::WorkspaceWrite`]; for reading and running in
    /// [`SandboxMode::ReadOnly`].
    pub write: Vec<PathBuf>,
}

/// Which confinement mechanisms this kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Support {
    /// Landlock's ABI version, up to 6; 0 if the kernel does not have Landlock. Below 3, files outside can be truncated by a
    /// child that may write them anyway; below 6, a child can signal the person's other processes.
    pub landlock_abi: i32,
    /// Whether system calls can be filtered on this kernel and architecture.
    pub seccomp: bool,
}

impl Support {
    /// Whether children in this mode are confined as its documentation says.
    pub fn in_force(&self, mode: SandboxMode) -> bool {
        match mode {
            SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => self.missing().is_none(),
            SandboxMode::Off => true,
        }
    }

    /// The first mechanism that a confining mode needs and this kernel lacks.
    pub fn missing(&self) -> Option<&'static str> {
        if self.landlock_abi < 1 {
            Some("Landlock")
        } else if !self.seccomp {
            Some("seccomp")
        } else {
            None
        }
    }
}

/// Tests both mechanisms, once per process, without confining anything.
pub fn support() -> Support {
    static FOUND: OnceLock<Support> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // All that differs between these versions is a right that can be asked for.
        let known = [ABI::V6, ABI::V5, ABI::V4, ABI::V3, ABI::V2, ABI::V1];
        let begins = |abi: &ABI| rules::begin_ruleset(Reach::Nothing, *abi).is_ok();
        let abi = known.into_iter().find(begins);
        Support {
            landlock_abi: abi.map_or(0, |abi| abi as i32),
            seccomp: Path::new(FILTERS).exists() && filter::is_known_machine(),
        }
    })
}
