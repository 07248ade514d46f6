//! What a handle of jobs checks at each use.

use super::*;
use crate::feature::declare::id::FeatureId;
use crate::feature::live::presence::Presence;
use crate::mailbox::requests::mailbox;
use authority::{Confinement, EnvPolicy, SandboxMode};
use std::sync::Arc;

fn named(result: Result<impl Sized, JobError>) -> Option<String> {
    result.err().map(|error| error.to_string())
}

#[test]
#[allow(clippy::disallowed_methods, reason = "authority of a test")]
fn each_use_is_checked_and_counted() {
    let confinement = Confinement {
        mode: SandboxMode::Off,
        read: Vec::new(),
        write: Vec::new(),
    };
    let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
    let spawner = Spawner::new(&ambient::claim(), confinement, env, "s-1/1".to_owned()).unwrap();
    let ((_mailbox, mailbox), presence) = (mailbox(), Arc::<Presence>::default());
    let door = Arc::clone(spawner.door());
    let handle = JobHandle {
        link: SinkLink {
            feature: FeatureId::builtin("f"),
            door: Arc::clone(&door),
            presence: Arc::clone(&presence),
            mailbox,
        },
        spawner,
        redactor: Redactor::default(),
        board: JobBoard::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let uses = || {
        let stopped = runtime.block_on(handle.stop(1));
        [
            named(handle.list()),
            named(handle.tail(1, 9)),
            named(stopped),
        ]
    };
    assert!(uses().iter().all(|why| {
        why.as_ref()
            .is_some_and(|why| why.contains("not installed yet"))
    }));
    presence.set_installed();
    let unknown = Some("there is no job 1".to_owned());
    assert_eq!(uses(), [None, unknown.clone(), unknown]);
    assert_eq!(door.uses(), 3);
    runtime.block_on(door.shut());
    assert!(
        uses()
            .iter()
            .all(|why| why.as_deref() == Some("the grant was revoked"))
    );
    assert_eq!(door.refused(), 3);
}
