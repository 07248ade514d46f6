//! How calls that only read ([`crate::reads`]) reach their server: one that gets its turn sends all that wait.

use crate::exchange::{Called, Fault};
use crate::reads::ReadCall;
use crate::server::{Running, Server, ServerCall, Wanted};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

impl Server {
    /// Asks for something that changes nothing, together with others that wait.
    pub(crate) async fn read(
        self: &Arc<Self>,
        request: &ServerCall<'_>,
        until: Instant,
    ) -> Result<Called, Fault> {
        tokio::select! {
            biased;
            () = self.pod_ended() => Err(Fault::PodEnded),
            called = self.read_one(request, until) => called,
        }
    }

    async fn read_one(
        self: &Arc<Self>,
        request: &ServerCall<'_>,
        until: Instant,
    ) -> Result<Called, Fault> {
        let _wanted = Wanted::new(self);
        let (method, about, params) = self.message(request, true);
        let call = ReadCall::new((method, about), &params, until);
        let (call, mut answered) = call.map_err(Fault::NotStarted)?;
        self.reads.add(call);
        let lost = |_| Err(Fault::PodEnded);
        let mut late = Fault::earlier();
        // A round that begins here may be of others: of those that came before it and behind another call.
        loop {
            tokio::select! {
                biased;
                answer = &mut answered => return answer.unwrap_or_else(lost),
                running = timeout_at(until, Arc::clone(&self.running).lock_owned()) => match running {
                    Ok(running) => drop(tokio::spawn(Arc::clone(self).round(running, until))),
                    Err(_) => return Err(late),
                },
            }
            late = Fault::Late;
        }
    }

    /// Sends those that wait, and those that come meanwhile, and answers them.
    async fn round(self: Arc<Self>, mut running: Running, until: Instant) {
        tokio::select! {
            biased;
            () = self.pod_ended() => {}
            () = self.answered(&mut running, until) => {}
        }
    }

    async fn answered(self: &Arc<Self>, running: &mut Running, until: Instant) {
        let mut open = Vec::new();
        let fault = match self.ready(running, until).await {
            Ok((mut server, warning)) => {
                match server.ask_all(&self.reads, &mut open, warning).await {
                    Ok(()) => {
                        **running = Some(server);
                        return;
                    }
                    Err((gone, until)) => {
                        self.log(&server, &gone);
                        Fault::of(server.was_asked(), gone, until)
                    }
                }
            }
            Err(fault) => {
                let mut behind = None;
                while let Some(call) = self.reads.next(&mut behind, &open) {
                    open.push(call);
                }
                fault
            }
        };
        open.into_iter()
            .for_each(|call| call.answer(Err(fault.clone())));
    }
}
