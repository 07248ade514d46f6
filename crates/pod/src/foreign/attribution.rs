//! Which feature's code a callback thread runs. If the thread never returns, that feature is disabled.
//!
//! A thread works for its owner. Within that it may run code of another feature (a tool that parses arguments, a
//! service) or wait for it. The responsible feature is the one whose code runs, else the one that is waited for, else
//! the owner.

use crate::feature::FeatureId;
use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

thread_local! {
    /// The attribution of the callback that runs on this thread.
    static HERE: RefCell<Option<Arc<Attribution>>> = const { RefCell::new(None) };
}

/// The attribution of one callback.
#[derive(Debug, Default)]
pub(crate) struct Attribution(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    owner: Option<FeatureId>,
    /// Features whose code runs within the owner's code, innermost last.
    running: Vec<FeatureId>,
    /// Features that are waited for, newest last, each with the number of the wait.
    waiting: Vec<(u64, FeatureId)>,
    waits: u64,
    /// Whether the whole callback waits, so that no code of it runs.
    parked: bool,
}

/// A guard: until it is dropped, the thread runs code of a feature or waits for it.
#[must_use]
pub(crate) struct Within(Option<(Arc<Attribution>, Entered)>);

enum Entered {
    Running,
    Waiting(u64),
}

impl Attribution {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a callback on this thread and attributes the thread to it.
    pub(crate) fn watch<T>(self: Arc<Self>, work: impl FnOnce() -> T) -> T {
        struct Leaving;
        impl Drop for Leaving {
            fn drop(&mut self) {
                HERE.set(None);
            }
        }
        HERE.set(Some(self));
        let _leaving = Leaving;
        work()
    }

    /// Runs the work of a callback and notes when it waits.
    pub(crate) async fn parking<T>(self: Arc<Self>, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        std::future::poll_fn(|cx| {
            self.lock().parked = false;
            let polled = work.as_mut().poll(cx);
            self.lock().parked = polled.is_pending();
            polled
        })
        .await
    }

    /// The responsible feature (none for the host itself), and whether the callback only waits.
    pub(crate) fn who(&self) -> (Option<FeatureId>, bool) {
        let Inside {
            owner,
            running,
            waiting,
            waits: _,
            parked,
        } = &*self.lock();
        let within = if *parked {
            waiting.last().map(|(_, feature)| feature)
        } else {
            running.last()
        };
        (within.or(owner.as_ref()).cloned(), *parked)
    }
}

/// Sets the owner of the current callback thread.
pub(crate) fn own(feature: &FeatureId) {
    HERE.with_borrow(|here| {
        if let Some(attribution) = here {
            attribution.lock().owner = Some(feature.clone());
        }
    });
}

/// Marks code of this feature as running on this thread, until the guard is dropped.
pub(crate) fn inside(feature: &FeatureId) -> Within {
    enter(|inside| {
        inside.running.push(feature.clone());
        Entered::Running
    })
}

/// Marks the current callback as waiting for this feature, until the guard is dropped.
pub(crate) fn waiting(feature: &FeatureId) -> Within {
    enter(|inside| {
        inside.waits += 1;
        inside.waiting.push((inside.waits, feature.clone()));
        Entered::Waiting(inside.waits)
    })
}

fn enter(how: impl FnOnce(&mut Inside) -> Entered) -> Within {
    let attribution = HERE.with_borrow(Clone::clone);
    Within(attribution.map(|attribution| {
        let entered = how(&mut attribution.lock());
        (attribution, entered)
    }))
}

impl Drop for Within {
    fn drop(&mut self) {
        let Some((attribution, entered)) = &self.0 else {
            return;
        };
        let mut inside = attribution.lock();
        match entered {
            Entered::Running => drop(inside.running.pop()),
            Entered::Waiting(number) => inside.waiting.retain(|(other, _)| other != number),
        }
    }
}
