//! A tool of the testkit that calls a tool of the feature and gets its result before the host bounds it. Both run in a
//! pod, so everything that the tool waits for exists.

use super::Conformance;
use super::called::SampleCall;
use super::site::unless_it_panics;
use crate::Shared;
use crate::tool::FnTool;
use llm_worker::{Tool, ToolContext, ToolEffect, ToolOutput, ToolResult};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The longest wait for a call's output.
pub(super) const PATIENT: Duration = Duration::from_secs(2);

/// The time after which a call is cancelled.
pub(super) const LEAD: Duration = Duration::from_millis(20);

/// The proxy's name, which no author would choose.
const PROXY: &str = "testkit-proxy";

pub(super) enum CallEnd {
    /// The arguments were refused, or the tool does not exist.
    NotBegun,
    Answered(ToolResult),
    Panicked(String),
    /// The call did not end in time.
    Late,
}

/// The tool to call, and its arguments.
type Aim = (Arc<dyn Tool>, String);

type Slot<T> = Arc<Mutex<Option<T>>>;

fn take<T>(slot: &Slot<T>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn put<T>(slot: &Slot<T>, value: T) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
}

/// Makes one call in a pod of its own. With `grace`, it is cancelled shortly after it began, and has that long to end.
pub(super) fn proxied(
    conformance: &Conformance,
    (tool, arguments): &SampleCall,
    grace: Option<Duration>,
) -> CallEnd {
    let aim = Slot::<Aim>::default();
    let ended = Slot::<CallEnd>::default();
    let aimed = Arc::clone(&aim);
    let slot = Arc::clone(&ended);
    let proxy = FnTool::new(PROXY, ToolEffect::ReadOnly, move |cx, _| {
        let aimed = Arc::clone(&aimed);
        let slot = Arc::clone(&slot);
        async move {
            if let Some((tool, arguments)) = take(&aimed) {
                put(&slot, watched(&*tool, &arguments, cx, grace).await);
            }
            Ok(ToolOutput::default())
        }
    });
    let proxy = proxy.deadline(grace.map_or(PATIENT, |grace| grace + LEAD + LEAD));
    let mut host = conformance
        .host()
        .tool(proxy)
        .install(Shared(conformance.instance()));
    let Some(target) = host
        .registry()
        .tools()
        .get(tool)
        .map(|tool| Arc::clone(&tool.tool))
    else {
        return CallEnd::NotBegun;
    };
    put(&aim, (target, arguments.to_string()));
    host.calls(&[(PROXY, "{}")]);
    take(&ended).unwrap_or(CallEnd::Late)
}

async fn watched(
    tool: &dyn Tool,
    arguments: &str,
    cx: ToolContext,
    grace: Option<Duration>,
) -> CallEnd {
    let Ok(Ok(prepared)) = unless_it_panics(|| tool.prepare(arguments)) else {
        return CallEnd::NotBegun;
    };
    let token = CancellationToken::new();
    let mut running = prepared.run(ToolContext {
        cancel: token.clone(),
        ..cx.clone()
    });
    let mut work = pin!(std::future::poll_fn(move |task| {
        match unless_it_panics(|| running.as_mut().poll(task)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(result)) => Poll::Ready(CallEnd::Answered(result)),
            Err(words) => Poll::Ready(CallEnd::Panicked(words)),
        }
    }));
    let Some(grace) = grace else {
        return tokio::select! {
            biased;
            ended = &mut work => ended,
            () = cx.cancel.cancelled() => CallEnd::Late,
        };
    };
    // Spawned on the pod's own thread, because the tool may block this one.
    drop(tokio::spawn(async move {
        tokio::time::sleep(LEAD).await;
        token.cancel();
    }));
    let began = Instant::now();
    match tokio::time::timeout(LEAD + grace, work).await {
        // The timer polls the work first, so a tool that blocked its thread is found late only here.
        Ok(_) if began.elapsed() > LEAD + grace => CallEnd::Late,
        Ok(ended) => ended,
        Err(_elapsed) => CallEnd::Late,
    }
}
