//! A point where nobody stands costs nothing.
#![allow(clippy::unwrap_used, reason = "a rig that fails is a failed test")]

use pod::control::Callbacks;
use pod::hook::{HookRegistryBuilder, InstalledHook, PreRequest, RequestView, Verdict};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

#[test]
fn a_gate_point_without_hooks_allocates_nothing() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let callbacks = Callbacks::new(runtime.handle().clone());
    let view = || RequestView {
        turn: 1,
        number: 1,
        items: 0,
    };
    let ask = |hooks: &pod::hook::HookRegistry| {
        let _inside = runtime.enter();
        let mut asked = pin!(hooks.decide::<PreRequest>(&callbacks, view));
        matches!(
            asked.as_mut().poll(&mut Context::from_waker(Waker::noop())),
            Poll::Ready(_)
        )
    };
    let empty = HookRegistryBuilder::new().build();
    let mut done = false;
    let none = allocation_counter::measure(|| done = ask(&empty));
    assert!(done && none.count_total == 0, "{none:?}");
    // Where somebody stands it does allocate: the counter counts.
    let mut builder = HookRegistryBuilder::new();
    let hook = Arc::new(|_: &RequestView| Verdict::<PreRequest>::allow());
    builder.add(InstalledHook::<PreRequest>::new(
        pod::feature::FeatureId::builtin("one"),
        "one",
        hook,
    ));
    let full = builder.build();
    let some = allocation_counter::measure(|| done = ask(&full));
    assert!(some.count_total > 0, "{some:?}");
}
