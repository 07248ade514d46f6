//! The configuration of a confinement, and the mechanisms that this kernel can enforce.

use super::filter;
use crate::HostPattern;
use landlock::{ABI, Access, AccessFs, LandlockStatus, Ruleset, RulesetAttr};
use std::path::PathBuf;
use std::sync::OnceLock;

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
    /// Landlock's ABI version; 0 if the kernel does not have Landlock. Below 3, files outside can be truncated by a
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

/// Tests both mechanisms, once per process, on a thread of its own.
pub fn support() -> Support {
    static FOUND: OnceLock<Support> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let none = Support {
            landlock_abi: 0,
            seccomp: false,
        };
        std::thread::Builder::new()
            .spawn(probe)
            .ok()
            .and_then(|thread| thread.join().ok())
            .unwrap_or(none)
    })
}

fn probe() -> Support {
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create);
    let landlock_abi = match ruleset
        .and_then(landlock::RulesetCreated::restrict_self)
        .map(|status| status.landlock)
    {
        Ok(LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        }) => kernel_abi.unwrap_or(effective_abi as i32),
        Ok(LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) | Err(_) => 0,
    };
    let seccomp = filter::build(filter::Reach::Nothing, None)
        .is_ok_and(|filter| seccompiler::apply_filter(&filter).is_ok());
    Support {
        landlock_abi,
        seccomp,
    }
}
