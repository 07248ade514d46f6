//! Work of others under a door: it goes on as long as that is open. It knows no grant.

use authority::{Door, Shut, Use};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Lets work go on under a door, which is entered for each step: it ends where it waits when that shuts, and its result
/// is void. While the door drains it may finish.
pub(crate) async fn under<T>(door: &Arc<Door>, work: impl Future<Output = T>) -> Result<T, Shut> {
    let under_way = door.begin()?;
    let mut work = pin!(work);
    stepping(&under_way, |cx| work.as_mut().poll(cx)).await
}

/// The same for what has begun, by its steps.
pub(crate) async fn stepping<T>(under_way: &Use, mut step: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Result<T, Shut> {
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

    // A call of a tool that is taken back ends where it waits; one that drains may come to its end, and no other begins.
    #[test]
    fn work_under_a_door_ends_with_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let second = Duration::from_secs(1);
            for (drain, ended) in [(None, Err(Shut)), (Some(5 * second), Ok(7))] {
                let door = Door::new();
                let held = Arc::new(());
                let (inside, holds) = (Arc::clone(&door), Arc::clone(&held));
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
                assert_eq!((work.await.unwrap(), Arc::strong_count(&held)), (ended, 1), "{drain:?}");
                assert_eq!(under(&door, async { 7 }).await, Err(Shut), "{drain:?}");
            }
        });
    }
}
