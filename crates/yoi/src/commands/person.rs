//! Commands that only a person may give: an agent does not approve itself, and starts and removes no pod.

use crate::exit::{Exit, Failure};
use authority::Ambient;

/// Refuses a process that was started by a pod. `cannot` says what such a process cannot do.
pub(crate) fn only_a_person(cannot: &str) -> Result<(), Failure> {
    let why = match authority::started_by_pod(&Ambient::claim(), std::process::id()) {
        Some(false) => return Ok(()),
        Some(true) => format!("a run cannot {cannot}"),
        None => format!("this command cannot {cannot}: /proc does not show what started it"),
    };
    Err(Failure::new(Exit::Refused, why).help("run this command in your own terminal"))
}
