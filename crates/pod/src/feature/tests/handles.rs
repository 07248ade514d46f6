//! Handles on services while they are used: what revocation, leaving and panics do to them.

use super::rig::*;
use super::services::anything;
use crate::feature::*;
use llm_worker::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// A service whose calls wait until they are let go.
trait Slow: Send + Sync {
    fn wait(&self) -> ServiceFuture<'_, u32>;
    fn work(&self) -> u32;
    fn fail(&self) -> ServiceFuture<'_, u32>;
}

#[derive(Default)]
struct Desk {
    started: Notify,
    go: Notify,
    /// Operations that were done.
    done: AtomicUsize,
    dropped: Arc<AtomicBool>,
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Slow for Desk {
    fn wait(&self) -> ServiceFuture<'_, u32> {
        let dropped = Dropped(Arc::clone(&self.dropped));
        Box::pin(async move {
            let _dropped = dropped;
            self.started.notify_one();
            self.go.notified().await;
            self.done.fetch_add(1, Ordering::SeqCst);
            7
        })
    }

    fn work(&self) -> u32 {
        self.done.fetch_add(1, Ordering::SeqCst);
        3
    }

    fn fail(&self) -> ServiceFuture<'_, u32> {
        Box::pin(async {
            tokio::task::yield_now().await;
            panic!("out of\npaper")
        })
    }
}

const SLOW: ServiceKey<dyn Slow> = ServiceKey::new("test.slow.v1");

struct Scene {
    desk: Arc<Desk>,
    handle: ServiceHandle<dyn Slow>,
    registry: FeatureRegistry,
}

fn provider() -> FeatureId {
    id("builtin:giver")
}

fn consumer() -> FeatureId {
    id("user:taker")
}

/// One provider, one consumer, and the handle the consumer holds.
fn scene() -> Scene {
    let desk = Arc::<Desk>::default();
    let slot = Arc::new(Mutex::new(None));
    let given = Arc::clone(&desk);
    let taken = Arc::clone(&slot);
    let gives = declaring("builtin:giver", &[])
        .provides(ServiceDeclaration::of(SLOW, "1.0.0"))
        .build();
    let gives = with(gives, move |ctx| {
        ctx.services().provide(SLOW, given.clone()).map(drop)
    });
    let takes = declaring("user:taker", &[])
        .requires(ServiceRequirement::required(SLOW, "^1"))
        .build();
    let takes = with(takes, move |ctx| {
        *taken.lock().unwrap() = Some(ctx.services().require(SLOW)?);
        Ok(())
    });
    let registry = build(
        anything(&["builtin:giver", "user:taker"]),
        vec![gives, takes],
    )
    .install(&HostServices::none());
    let handle = slot.lock().unwrap().clone().unwrap();
    Scene {
        desk,
        handle,
        registry,
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

fn row(registry: &FeatureRegistry, feature: &FeatureId) -> GrantUse {
    registry
        .grants()
        .into_iter()
        .find(|row| row.feature_id == *feature)
        .unwrap()
}

/// A call that is waiting inside the service.
async fn parked(scene: &Scene) -> tokio::task::JoinHandle<Result<u32, ServiceError>> {
    let handle = scene.handle.clone();
    let call = tokio::spawn(async move { handle.call(|s| s.wait()).await });
    scene.desk.started.notified().await;
    call
}

#[test]
fn a_handle_is_used_and_counted() {
    let Scene {
        desk,
        handle,
        registry,
    } = scene();
    runtime().block_on(async {
        assert_eq!(handle.with(|s| s.work()), Ok(3));
        desk.go.notify_one();
        assert_eq!(handle.call(|s| s.wait()).await, Ok(7));
    });
    let row = row(&registry, &consumer());
    assert_eq!(
        (row.capability, row.refused, row.revoked),
        (SLOW.admission(), 0, false)
    );
    assert!(row.uses >= 2 && row.last_use_ms.is_some(), "{}", row.uses);
    assert!(desk.dropped.load(Ordering::SeqCst));
}

#[test]
fn revocation_or_a_leaving_provider_ends_a_waiting_call() {
    type Act = fn(&FeatureRegistry) -> std::pin::Pin<Box<dyn Future<Output = usize> + Send>>;
    let cases: [(&str, Act, ErrorKind); 4] = [
        (
            "revoked",
            |r| Box::pin(r.revoke(&consumer(), &SLOW.admission(), Revoke::Now)),
            ErrorKind::Denied,
        ),
        (
            "consumer left",
            |r| Box::pin(r.leave(&consumer())),
            ErrorKind::Denied,
        ),
        (
            "provider left",
            |r| Box::pin(r.leave(&provider())),
            ErrorKind::Unavailable,
        ),
        (
            "provider revoked",
            |r| {
                Box::pin(r.revoke(
                    &provider(),
                    &HostCapability::ProvideService { key: "*".into() },
                    Revoke::Now,
                ))
            },
            ErrorKind::Unavailable,
        ),
    ];
    for (name, act, kind) in cases {
        let scene = scene();
        runtime().block_on(async {
            let call = parked(&scene).await;
            assert_eq!(act(&scene.registry).await, 1, "{name}");
            scene.desk.go.notify_one();
            assert_eq!(call.await.unwrap().unwrap_err().kind(), kind, "{name}");
            assert!(
                scene.desk.dropped.load(Ordering::SeqCst),
                "{name}: what the call was doing is gone"
            );
            assert_eq!(
                scene.handle.with(|s| s.work()).unwrap_err().kind(),
                kind,
                "{name}"
            );
            assert_eq!(
                scene.handle.call(|s| s.wait()).await.unwrap_err().kind(),
                kind,
                "{name}"
            );
            assert_eq!(
                scene.desk.done.load(Ordering::SeqCst),
                0,
                "{name}: nothing was done"
            );
        });
        let row = row(&scene.registry, &consumer());
        assert!(row.revoked && row.refused >= 2, "{name}: {row:?}");
    }
}

#[test]
fn revoking_what_nobody_holds_shuts_nothing() {
    let Scene {
        handle, registry, ..
    } = scene();
    runtime().block_on(async {
        assert_eq!(
            registry
                .revoke(&consumer(), &HostCapability::ANY_PROGRAM, Revoke::Now)
                .await,
            0
        );
        assert_eq!(
            registry
                .revoke(&provider(), &SLOW.admission(), Revoke::Now)
                .await,
            0
        );
        assert_eq!(registry.leave(&id("user:nobody")).await, 0);
    });
    assert_eq!(handle.with(|s| s.work()), Ok(3));
}

#[test]
fn a_service_that_panics_fails_its_caller_only() {
    let Scene { handle, .. } = scene();
    runtime().block_on(async {
        let error = handle.call(|s| s.fail()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Bug);
        let words = "service test.slow.v1 of builtin:giver panicked: out of\\npaper";
        assert_eq!(error.to_string(), words);
        let error = handle
            .call(|_| -> ServiceFuture<'_, u32> { panic!("no future") })
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Bug);
        assert_eq!(
            handle
                .with(|_| -> u32 { panic!("no answer") })
                .unwrap_err()
                .kind(),
            ErrorKind::Bug
        );
        assert_eq!(handle.with(|s| s.work()), Ok(3), "it is still there");
    });
}

#[test]
fn revoking_from_inside_a_call_ends_the_call() {
    let Scene {
        handle, registry, ..
    } = scene();
    let registry = Arc::new(registry);
    let inside = Arc::clone(&registry);
    let ended = runtime().block_on(async move {
        let revoke = move || async move {
            inside
                .revoke(&consumer(), &SLOW.admission(), Revoke::Now)
                .await
        };
        tokio::time::timeout(
            Duration::from_secs(60),
            handle.call(move |_| {
                Box::pin(async move {
                    revoke().await;
                })
            }),
        )
        .await
    });
    assert_eq!(
        ended
            .expect("it does not wait for itself")
            .unwrap_err()
            .kind(),
        ErrorKind::Denied
    );
    assert!(row(&registry, &consumer()).revoked);
}

#[test]
fn a_drain_lets_calls_finish_and_ends_those_that_do_not() {
    let soon = Revoke::Drain(Duration::from_secs(5));
    let provided = HostCapability::ProvideService {
        key: "test.slow.v1".into(),
    };
    for (who, what, kind) in [
        (consumer(), SLOW.admission(), ErrorKind::Denied),
        (provider(), provided, ErrorKind::Unavailable),
    ] {
        for finishes in [true, false] {
            let scene = scene();
            runtime().block_on(async {
                let call = parked(&scene).await;
                let began = tokio::time::Instant::now();
                let draining = tokio::spawn(scene.registry.revoke(&who, &what, soon));
                tokio::task::yield_now().await;
                assert_eq!(
                    scene.handle.with(|s| s.work()).unwrap_err().kind(),
                    kind,
                    "{who}: nothing new"
                );
                assert_eq!(
                    scene.handle.call(|s| s.wait()).await.unwrap_err().kind(),
                    kind,
                    "{who}: nothing new"
                );
                if finishes {
                    scene.desk.go.notify_one();
                    assert_eq!(call.await.unwrap(), Ok(7), "{who}");
                } else {
                    assert_eq!(call.await.unwrap().unwrap_err().kind(), kind, "{who}");
                }
                assert_eq!(draining.await.unwrap(), 1);
                let took = began.elapsed().as_secs();
                assert_eq!(
                    took,
                    if finishes { 0 } else { 5 },
                    "{who}: the clock of the test stands still otherwise"
                );
            });
        }
    }
}

#[test]
fn revoking_waits_for_work_in_hand_and_for_nothing_else() {
    let Scene {
        handle, registry, ..
    } = scene();
    let (inside, entered) = std::sync::mpsc::channel();
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let worker = std::thread::spawn(move || {
        handle.with(|_| {
            inside.send(()).unwrap();
            assert!(wait.recv().is_err(), "nothing is ever sent");
        })
    });
    entered.recv().unwrap();
    let mut revoking = Box::pin(registry.leave(&provider()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let soon = tokio::time::timeout(Duration::from_millis(20), &mut revoking).await;
        assert!(soon.is_err(), "somebody is inside");
        drop(release);
        assert_eq!(revoking.await, 1);
    });
    assert_eq!(
        worker.join().unwrap(),
        Ok(()),
        "what was inside was let finish"
    );
}

#[test]
fn no_operation_starts_after_the_revocation_returned() {
    for round in 0..40 {
        let Scene {
            desk,
            handle,
            registry,
        } = scene();
        let started = Arc::new(AtomicUsize::new(0));
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let handle = handle.clone();
                let started = Arc::clone(&started);
                std::thread::spawn(move || {
                    while handle.with(|s| s.work()).is_ok() {
                        started.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        while started.load(Ordering::SeqCst) < 10 {
            std::hint::spin_loop();
        }
        let revoke: Box<dyn Future<Output = usize> + Send + Unpin> = if round % 2 == 0 {
            Box::new(Box::pin(registry.revoke(
                &consumer(),
                &SLOW.admission(),
                Revoke::Now,
            )))
        } else {
            Box::new(Box::pin(registry.leave(&provider())))
        };
        runtime().block_on(revoke);
        let done = desk.done.load(Ordering::SeqCst);
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
        assert_eq!(desk.done.load(Ordering::SeqCst), done, "round {round}");
    }
}

#[test]
fn a_call_that_nobody_polls_any_more_keeps_nobody_waiting() {
    let scene = scene();
    runtime().block_on(async {
        let (handle, (here, there)) = (scene.handle.clone(), oneshot::channel::<()>());
        let mut call = Box::pin(async move {
            let called = handle.call(|s| s.wait()).await;
            drop(here);
            called
        });
        let polled = tokio::time::timeout(Duration::from_millis(1), &mut call).await;
        assert!(polled.is_err(), "it waits");
        let revoked =
            tokio::time::timeout(Duration::from_secs(60), scene.registry.leave(&provider())).await;
        assert_eq!(revoked.expect("a parked call is not inside"), 1);
        drop(call);
        assert!(there.await.is_err());
    });
}
