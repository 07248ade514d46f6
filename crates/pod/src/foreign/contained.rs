//! Contains code of a feature: it is attributed to the feature, ends when a door shuts, and its panic becomes a value.
//! Does not depend on threads or on grants.

use super::attribution;
use super::callbacks::words;
use crate::feature::FeatureId;
use authority::{Door, LongUse, Shut};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

/// The reason why contained work has no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Broke {
    Panicked(String),
    Revoked,
}

/// Runs work of a feature on the current callback thread, which is attributed to the feature from here on. If one of
/// the doors shuts, the work ends at its next wait; while a door drains it may finish.
pub(crate) async fn contained<'a, T: Send + 'a>(
    feature: &FeatureId,
    doors: &'a [Arc<Door>],
    work: impl Future<Output = T> + Send + 'a,
) -> Result<T, Broke> {
    attribution::own(feature);
    let work: Pin<Box<dyn Future<Output = _> + Send + 'a>> = Box::pin(async move {
        let mut work = pin!(work);
        poll_fn(|cx| match caught(|| work.as_mut().poll(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(words) => Poll::Ready(Err(Broke::Panicked(words))),
        })
        .await
    });
    // There are at most two: for a hook the door of its point and, if it names tools, the door of those.
    let behind = |work, door: &'a Arc<Door>| -> Pin<Box<dyn Future<Output = _> + Send + 'a>> {
        Box::pin(async move { under(door, work).await.unwrap_or(Err(Broke::Revoked)) })
    };
    doors.iter().fold(work, behind).await
}

/// Runs code of a feature at once; the message of a panic is the error.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| words(&*panic))
}

/// Runs work under a door, which is entered for each step.
async fn under<T>(door: &Arc<Door>, work: impl Future<Output = T>) -> Result<T, Shut> {
    let under_way = door.begin()?;
    let mut work = pin!(work);
    stepping(&under_way, |cx| work.as_mut().poll(cx)).await
}

/// Runs the steps of started work under a door: if the door shuts, the work ends at its next wait and its result is
/// dropped.
pub(crate) async fn stepping<T>(
    under_way: &LongUse,
    mut step: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Result<T, Shut> {
    let mut closed = pin!(under_way.door().closed());
    poll_fn(|cx| {
        if closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Shut));
        }
        match under_way.enter() {
            Ok(_inside) => step(cx).map(Ok),
            Err(Shut) => Poll::Ready(Err(Shut)),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::Instant;

    // A call whose tool's grant is revoked ends at its next wait; one whose grant drains may finish, and no other
    // starts.
    #[test]
    fn work_under_a_door_ends_with_it() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let second = Duration::from_secs(1);
            for (drain, ended) in [(None, Err(Shut)), (Some(5 * second), Ok(7))] {
                let door = Door::new();
                let held = Arc::new(());
                let inside = Arc::clone(&door);
                let holds = Arc::clone(&held);
                let work = tokio::spawn(async move {
                    let slow = async move {
                        tokio::time::sleep(second).await;
                        drop(holds);
                        7
                    };
                    under(&inside, slow).await
                });
                tokio::task::yield_now().await;
                match drain {
                    None => door.shut().await,
                    Some(time) => door.drain(Instant::now() + time).await,
                }
                assert_eq!(
                    (work.await.unwrap(), Arc::strong_count(&held)),
                    (ended, 1),
                    "{drain:?}"
                );
                assert_eq!(under(&door, async { 7 }).await, Err(Shut), "{drain:?}");
            }
        });
    }
}
