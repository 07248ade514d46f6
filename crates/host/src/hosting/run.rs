//! A pod of this process from its opening to its end.

use super::actions::PodActions;
use super::context::{ChildTag, HostContext};
use super::failure::fatal_failure;
use super::failure::to_wire;
use super::leftovers::Swept;
use super::messages::PersonMessages;
use super::open::OpenedSession;
use super::session_location::{SessionLocation, now};
use super::socket_file::{SOCKET, SocketFile};
use crate::exit::{Exit, Failure, no_thread};
use crate::host_log::{self, HostLog};
use authority::{GitGuard, Spawner};
use pod::control::{Callbacks, Client, Fatal, Permission};
use pod::ipc::{Served, ServedPod};
use protocol::status::{Host, ReloadReport};
use std::future;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long the end of a pod waits for what is prepared for its commands.
const MAX_PREPARE: Duration = Duration::from_secs(5);

/// The host of one pod: its control thread, the threads of callbacks, and what is to be cleaned up after them.
pub struct Hosting<'a> {
    pub(super) context: HostContext<'a>,
    runtime: Runtime,
    pub(super) callbacks: Callbacks,
    pub(super) tag: ChildTag,
    pub(super) swept: Swept,
    pub(super) log_wanted: host_log::Wanted,
    pub(super) host_log: OnceLock<HostLog>,
    /// What the pod was opened with.
    pub(super) permission: OnceLock<Arc<Permission>>,
    /// What clients are told of this process.
    pub(super) host: watch::Sender<Host>,
    /// Watches what git would run, once commands can.
    pub(super) git: OnceLock<Option<Arc<GitGuard>>>,
    /// What starts commands, where there is a shell.
    pub(super) spawner: OnceLock<Spawner>,
}

/// A pod that was opened and has ended.
pub struct Driven<T> {
    /// What the work with the pod came to; none if the pod ended before it.
    pub work: Option<T>,
    /// Why the pod could not continue; `Ok` after an orderly stop.
    pub end: Result<(), Fatal>,
}

impl<'a> Hosting<'a> {
    /// Starts the control thread's runtime. Children of the pod get `tag`, and descendants of this process stay its
    /// own.
    pub fn new(
        context: HostContext<'a>,
        tag: ChildTag,
        swept: Swept,
        log_wanted: host_log::Wanted,
    ) -> Result<Self, Failure> {
        let fail = |what: String| Failure::new(Exit::Unavailable, what);
        let mut builder = Builder::new_current_thread();
        // The pool panics where it has no thread and can start none: one stays for good, and takes what waits.
        builder
            .max_blocking_threads(pod::foreign::MAX_THREADS)
            .thread_keep_alive(Duration::MAX);
        let runtime = builder.enable_all().build();
        let runtime = runtime.map_err(|e| {
            fail(format!(
                "the asynchronous runtime cannot start: {}",
                authority::explain(&e)
            ))
        })?;
        // Where not even one thread can be started, the pool would panic; all others that start one report it.
        let one = thread::Builder::new().spawn(|| ());
        one.map_err(|error| no_thread(&error))?.join().ok();
        drop(runtime.spawn_blocking(|| ()));
        authority::become_subreaper(context.ambient).map_err(|e| fail(e.to_string()))?;
        let callbacks = Callbacks::new(runtime.handle().clone());
        let host = Host {
            pid: std::process::id(),
            since_us: now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sandbox: String::new(),
            cwd: authority::escape(&context.env.cwd),
            branch: context.config.project.branch(),
            reload: ReloadReport::default(),
        };
        let host = watch::Sender::new(host);
        Ok(Self {
            context,
            runtime,
            callbacks,
            tag,
            swept,
            log_wanted,
            host_log: OnceLock::new(),
            permission: OnceLock::new(),
            host,
            git: OnceLock::new(),
            spawner: OnceLock::new(),
        })
    }

    /// Opens the pod and runs it until it ends. `work` uses it; once `work` is done, the pod is closed with `reason`.
    /// `cancel` ends turns in good order.
    ///
    /// # Errors
    /// Why the pod was not opened. Its children are gone then, too.
    pub fn run<T>(
        &self,
        session: OpenedSession<'_>,
        cancel: &CancellationToken,
        reason: &str,
        work: impl AsyncFnOnce(&Client) -> T,
    ) -> Result<Driven<T>, Failure> {
        self.runtime.block_on(async {
            let place = session.place;
            let id = session.opened.0.recovered.session.clone();
            self.host.send_modify(|host| session.prepared.composed.mode.text().clone_into(&mut host.sandbox));
            let (actor, client) = self.open(session).await?;
            let (mut socket, served) = self.serve(place, &client, id).unzip();
            let mut pod = std::pin::pin!(actor.run(cancel.clone()));
            let mut work = std::pin::pin!(work(&client));
            let (work, end) = tokio::select! {
                work = &mut work => {
                    // Before the lock is released: its next owner binds a socket of the same name.
                    drop(socket.take());
                    served.iter().for_each(Served::close);
                    client.close(reason).await;
                    (Some(work), pod.await.result)
                }
                over = &mut pod => {
                    // What the pod answered last may be what the work waited for.
                    let work = tokio::select! { biased; work = &mut work => Some(work), () = future::ready(()) => None };
                    (work, over.result)
                }
            };
            drop(socket);
            if let Some(served) = served {
                served.close();
                served.drained(end.as_ref().err().map(|fatal| to_wire(fatal_failure(fatal), self.context.env.words))).await;
            }
            if let Some(spawner) = self.spawner.get() {
                // What is being prepared for a command is removed with the rest.
                timeout(MAX_PREPARE, spawner.door().shut()).await.ok();
            }
            Ok(Driven { work, end })
        })
    }

    /// Which lines the person gets, and where.
    pub fn messages(&self) -> PersonMessages {
        self.context.messages
    }

    /// Standard error goes into the log of the host from now on. Whether that worked.
    pub fn log_takes_stderr(&self) -> bool {
        self.host_log
            .get()
            .is_some_and(|log| log.take_stderr().is_ok())
    }

    /// Lets other commands reach the pod. A pod that is not kept has no name to be reached by.
    fn serve(
        &self,
        place: &SessionLocation,
        client: &Client,
        session: String,
    ) -> Option<(SocketFile, Served)> {
        let name = place.name()?.to_owned();
        let HostContext { messages, .. } = self.context;
        let dir = place.dir();
        let runtime = self.runtime.handle().clone();
        let actions = Arc::new(PodActions {
            dir: dir.clone(),
            name: name.clone(),
            runtime,
            words: self.context.env.words,
        });
        let pod = ServedPod {
            client: client.clone(),
            dir,
            name,
            session,
            host: self.host.subscribe(),
            actions,
        };
        let path = authority::escape(&pod.dir.join(SOCKET));
        let told = |error: io::Error| {
            let why = authority::explain(&error);
            messages.warn(&format!(
                "warning: other commands cannot reach this pod: the socket {path}: {why}"
            ));
        };
        let bound = SocketFile::bind(&pod.dir).and_then(|(socket, listener)| {
            let served = Served::start(ambient::claim(), listener, pod)?;
            Ok((socket, served))
        });
        bound.map_err(told).ok()
    }

    /// Writes the rest of the log, ends children of callbacks that were given up, and says what git would run. `failed`:
    /// the pod did not end in good order.
    pub fn clean_up(&self, failed: bool) {
        self.host_log.get().into_iter().for_each(HostLog::flush);
        if failed || self.callbacks.stuck() > 0 {
            self.end_children();
        }
        // Of commands whose call was given up, and that ended after it.
        for found in self
            .git
            .get()
            .into_iter()
            .flatten()
            .flat_map(|guard| guard.untold())
        {
            self.context
                .messages
                .warn(&format!("warning: {}", found.text(authority::escape)));
        }
    }

    /// Lets the threads go. Those that were given up are not waited for; they end with the process.
    pub fn end(self) {
        self.runtime.shutdown_background();
    }

    fn end_children(&self) {
        let ambient = self.context.ambient;
        let descendants = authority::end_descendants(ambient).map(drop);
        let marked = self.tag.get().map_or(Ok(()), |tag| {
            authority::end_survivors(ambient, tag).map(drop)
        });
        for error in [descendants, marked].into_iter().filter_map(Result::err) {
            self.context.messages.warn(&format!("warning: {error}"));
        }
    }
}
