//! Checks of background tasks: each runs once to its end, and once until it is cancelled.

use super::proxy::{LEAD, PATIENT};
use super::{CheckOutcome, Conformance, all};
use crate::Shared;
use pod::feature::TaskFailure;

pub(super) fn tasks(conformance: &Conformance) -> CheckOutcome {
    let declared = conformance.descriptor().declared_background_tasks;
    let grace = conformance.grace;
    all(declared.iter().map(|task| {
        let name = &task.name;
        for cancelled in [Some(LEAD), None] {
            let mut host = conformance.host().install(Shared(conformance.instance()));
            match host.run_task_within(name, PATIENT, cancelled) {
                Err(TaskFailure::Panicked(words)) => {
                    return Err(format!("background task `{name}` panicked: {words}"));
                }
                Err(TaskFailure::Stuck(_)) => {
                    return Err(format!(
                        "background task `{name}` did not end within {grace:?} of its cancellation"
                    ));
                }
                // A run that fails may lack what it works with.
                Ok(())
                | Err(TaskFailure::Failed(_) | TaskFailure::Revoked | TaskFailure::NotStarted) => {}
            }
        }
        Ok(())
    }))
}
