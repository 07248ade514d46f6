//! Processes that killed runs left running: which, whose, and the words for it. Ends none.

use host::env::Env;
use host::hosting::leftovers::session;
use host::pods::Pods;

pub(crate) const HELP: &str = "the next `yoi run` or `yoi start` stops such processes";

pub(crate) struct LeftRunning {
    session: String,
    pub(crate) pids: Vec<u32>,
}

impl LeftRunning {
    /// All of this user's. Where no run was killed, nobody looks for processes.
    pub(crate) fn find(env: &Env) -> Vec<Self> {
        let hosts = authority::stale_hosts(&ambient::claim(), &env.temp_dir());
        let found = hosts.into_iter().map(|host| Self {
            session: host.session().to_owned(),
            pids: host.processes(),
        });
        found.filter(|left| !left.pids.is_empty()).collect()
    }

    /// Whether it is this pod that was killed.
    pub(crate) fn is_of(&self, pods: &Pods, name: &str) -> bool {
        session(&pods.dir(name)).is_some_and(|session| session == self.session)
    }

    /// `2 processes still run (71, 72)`.
    pub(crate) fn text(&self) -> String {
        let pids: Vec<String> = self.pids.iter().map(u32::to_string).collect();
        let (what, run) = if pids.len() == 1 {
            ("process", "runs")
        } else {
            ("processes", "run")
        };
        format!("{} {what} still {run} ({})", pids.len(), pids.join(", "))
    }
}
