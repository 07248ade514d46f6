//! Opens the session of a prepared pod: recovery, the install of features, the actor and its client.

use super::context::HostContext;
use super::failure::host_failure;
use super::first_request::WithWork;
use super::leftovers::everything;
use super::prepare::PreparedPod;
use super::run::Hosting;
use super::session_location::{SessionLocation, now};
use crate::agent::Agent;
use crate::compose::model::ResolvedModel;
use crate::compose::{Composed, Installed, limits, system_prompt};
use crate::exit::{Exit, Failure, Help};
use crate::project::environment;
use authority::Redactor;
use pod::control::{Actor, Client, HostMode, Outbox, Permission};
use pod::feature::{Drift, DriftGrade, InstallOutcome, RegistryReport};
use pod::host::{self, CrashCleanup, HostError, OpenReport, Opening, PodConfig, PodDeps};
use pod::permission::Person;
use pod::record::{HostStarted, Launch, LaunchedAgent};
use protocol::count::count;
use session_store::{Opened, SessionRecords};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

/// Most differences that are told.
const MAX_DIFFERENCES: usize = 12;

/// What becomes a pod: a locked session and its parts.
pub struct OpenedSession<'a> {
    pub place: &'a SessionLocation,
    pub opened: (Opened, SessionRecords),
    pub prepared: PreparedPod,
    pub outbox: Outbox,
    /// Whether a person can answer what rules and gates ask.
    pub person: Person,
}

impl Hosting<'_> {
    /// Opens the pod, and tells the person what recovery found. Nothing of a turn runs yet.
    pub(super) async fn open(
        &self,
        session: OpenedSession<'_>,
    ) -> Result<(Actor, Client), Failure> {
        let OpenedSession {
            place,
            opened,
            prepared,
            outbox,
            person,
        } = session;
        let HostContext {
            env,
            config,
            ambient,
            messages,
            resolved,
            ..
        } = self.context;
        let PreparedPod {
            model_name,
            model,
            keys,
            secrets,
            composed,
            instructions,
            commands: _,
        } = prepared;
        let recovered = &opened.0.recovered;
        let tag = format!("{}/{}", recovered.session, recovered.epoch);
        let known = recovered.existed;
        self.tag.set(&tag);
        authority::label_descendants(ambient, &tag);
        let about = about(&self.context, &model_name, &composed);
        let project = composed.project.clone();
        let cwd = env.cwd.clone();
        let host = self.host.clone();
        let environment = Box::new(move || {
            let branch = project.branch();
            let text = environment(&project, &cwd, branch.as_deref(), SystemTime::now());
            host.send_if_modified(|host| {
                std::mem::replace(&mut host.branch, branch.clone()) != branch
            });
            text
        });
        let survivors = ambient::claim();
        let end_survivors = move |session: &str| {
            let ended =
                authority::end_survivors(&survivors, session).map_err(|error| error.to_string());
            ended.map(|ended| ended.saturating_add(self.swept.of(session)))
        };
        let fail = |error: HostError| host_failure(&error, place.name());
        // Also what features had written outside of the project, and also in a run that may only read.
        let files = everything(&ambient::claim())?;
        let after = CrashCleanup {
            now: now(),
            end_survivors: &end_survivors,
            files: Some(&files),
        };
        let opening = Opening::of(&place.dir(), opened, &after).map_err(fail)?;
        self.is_of_agent(place, opening.started_before())?;
        let Installed {
            registry,
            permission,
            no_shell,
            git,
            spawner,
        } = composed.install(
            ambient,
            env,
            &tag,
            opening.link(),
            (&keys, &secrets),
            &place.dir(),
        )?;
        self.git.set(git).ok();
        self.begin_log(place, registry.redactor().clone());
        let lacking = self
            .context
            .required(&registry.report().unmet, registry.report());
        if !known {
            lacking.clone()?;
        }
        if let Some(why) = no_shell {
            messages.say(&format!("commands cannot run here: {why}"));
        }
        self.tell_missing(registry.report());
        if lacking.is_ok() {
            self.may_go_on(place, &opening.drift(registry.report()))?;
        }
        let parts = PodDeps {
            permission: Arc::clone(self.permission.get_or_init(|| {
                Arc::new(Permission {
                    person,
                    ..permission
                })
            })),
            model: match spawner {
                // The first command is told what is wrong.
                Some(spawner) => {
                    self.spawner.set(spawner.clone()).ok();
                    WithWork::new(model, move || drop(spawner.prepare()))
                }
                None => model,
            },
            callbacks: self.callbacks.clone(),
            outbox,
            limits: limits(config),
            pod_limits: config.pod_limits.of_pod(),
            context_policy: config.context_policy(),
            probe: self.points(place),
            clock: Arc::new(now),
            registry: Arc::new(registry),
        };
        let agent = self.context.launch.agent().map(Agent::prompt);
        let system = system_prompt(&parts.registry, agent, &instructions);
        let mode = mode(resolved);
        let start = PodConfig {
            about,
            system,
            environment,
            mode,
            parts,
        };
        let (actor, client, found) = host::open(opening, start).await.map_err(fail)?;
        self.tell(&found);
        let Err(failure) = lacking else {
            return Ok((actor, client));
        };
        client.close(&failure.message).await;
        if let Err(error) = actor.run(CancellationToken::new()).await.result {
            messages.warn(&format!(
                "warning: the install report was not saved in this pod: {error}"
            ));
        }
        Err(failure)
    }

    /// A pod of an agent goes on as that agent: without its file, or with another one, it would have other tools and limits.
    fn is_of_agent(
        &self,
        place: &SessionLocation,
        before: Option<&HostStarted>,
    ) -> Result<(), Failure> {
        let Some(before) = before else { return Ok(()) };
        let before = before
            .launch
            .as_ref()
            .and_then(|launch| launch.agent.as_ref());
        let now = self.context.launch.agent().map(Agent::launched);
        // Its arguments may be others.
        let same = |agent: &LaunchedAgent| (agent.file.clone(), agent.digest.clone());
        let name = place.name().unwrap_or_default();
        match before {
            _ if before.map(same) == now.map(same) => Ok(()),
            None => Err(Failure::new(
                Exit::Usage,
                format!("{name} exists, and is not of this agent"),
            )
            .help(Help::PodOfNoAgent)),
            Some(_) if self.context.launch.adopts() => Ok(()),
            Some(LaunchedAgent { file, .. }) => {
                let is_same = now.is_some_and(|now| now.file == *file);
                let file = authority::escape(Path::new(file));
                let why = if is_same {
                    "the agent file changed"
                } else {
                    "it is the pod of an agent"
                };
                let message = format!("{name} does not go on: {why} ({file})");
                let pod = name.to_owned();
                Err(Failure::new(Exit::Config, message).help(match is_same {
                    true => Help::AgentChanged { pod, file },
                    false => Help::OtherAgent { pod, file },
                }))
            }
        }
    }

    /// A pod whose gates or required features changed goes on only with the person's consent.
    fn may_go_on(&self, place: &SessionLocation, drift: &Drift) -> Result<(), Failure> {
        let Drift::Breaking(found) = drift else {
            return Ok(());
        };
        if self.context.launch.adopts() {
            return Ok(());
        }
        let broken = found
            .iter()
            .filter(|difference| difference.grade == DriftGrade::Breaking);
        let broken: Vec<String> = broken
            .take(MAX_DIFFERENCES)
            .map(ToString::to_string)
            .collect();
        let name = place.name().unwrap_or_default();
        let what = format!(
            "{name} does not go on, because since its last start {}",
            broken.join("; ")
        );
        Err(Failure::new(Exit::Config, what).help(Help::AdoptDrift(name.to_owned())))
    }

    /// Names features of the command line that are not installed: the model would only find their tools missing.
    fn tell_missing(&self, report: &RegistryReport) {
        let asked_for = |by: &String| by.starts_with("--with");
        let skipped = report
            .features
            .iter()
            .filter(|feature| feature.outcome == InstallOutcome::Skipped);
        for feature in skipped.filter(|feature| feature.attached_by.as_ref().is_some_and(asked_for))
        {
            let why = feature
                .diagnostics
                .first()
                .map_or("", |found| found.message.as_str());
            self.context.messages.warn(&format!(
                "warning: {} is not installed: {why}",
                feature.feature_id
            ));
        }
    }

    /// Says what changed in the features.
    fn tell_drift(&self, drift: &Drift) {
        let found = drift.differences();
        for difference in found.iter().take(MAX_DIFFERENCES) {
            let line = format!("since the last start, {difference}");
            // Said even to those who want no progress.
            match difference.grade {
                DriftGrade::Breaking => self.context.messages.warn(&format!("warning: {line}")),
                DriftGrade::Compatible | DriftGrade::Degraded => self.context.messages.say(&line),
            }
        }
        if let Some(more) = found
            .len()
            .checked_sub(MAX_DIFFERENCES)
            .filter(|more| *more > 0)
        {
            self.context.messages.say(&format!(
                "and {}; `yoi features NAME --diff N` shows all",
                count(more as u64, "more change")
            ));
        }
    }

    /// The log of the host, once all secrets that features may meet are known. A pod goes on without it.
    fn begin_log(&self, place: &SessionLocation, redactor: Redactor) {
        let dir = place.name().map(|_| place.dir());
        match self.log_wanted.begin(dir.as_deref(), redactor) {
            Ok(log) => log.into_iter().for_each(|log| drop(self.host_log.set(log))),
            Err(why) => self.context.messages.warn(&format!(
                "warning: the log of the host cannot be written: {why}"
            )),
        }
    }

    /// The named points. The first record that is durable is noted for `-c`, before it is visible.
    fn points(&self, place: &SessionLocation) -> Arc<dyn Fn(&str) + Send + Sync> {
        let points = self.context.points.clone();
        let messages = self.context.messages;
        let note = Mutex::new(Some(place.note()));
        Arc::new(move |point| {
            let durable = !point.starts_with("commit:");
            let note = note
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take_if(|_| durable);
            if let Some(warning) = note.and_then(|note| note()) {
                messages.warn(&warning);
            }
            points.reached(point);
        })
    }

    fn tell(&self, found: &OpenReport) {
        let messages = self.context.messages;
        self.tell_drift(&found.drift);
        if found.crashed || found.cut > 0 || found.orphaned > 0 {
            let calls = match found.interrupted {
                0 => "no call was interrupted".to_owned(),
                1 => "1 call was interrupted".to_owned(),
                more => format!("{more} calls were interrupted"),
            };
            let tasks = match found.orphaned {
                0 => String::new(),
                1 => "; 1 background task was interrupted".to_owned(),
                more => format!("; {more} background tasks were interrupted"),
            };
            let cut = if found.cut > 0 {
                let were = if found.cut == 1 { "was" } else { "were" };
                let bytes = count(found.cut, "byte");
                format!(
                    "; {bytes} that followed the last complete record {were} moved to the pod's `quarantine` directory"
                )
            } else {
                String::new()
            };
            messages.say(&format!("restored after a crash: {calls}{tasks}{cut}"));
        }
        if let Some(lost) = &found.lost {
            messages.say(&format!(
                "restored from a damaged journal: {lost}; the model is informed of the loss"
            ));
        }
        if let Some(why) = &found.survivors {
            // Said even to those who want no progress: two may be writing now.
            messages.warn(&format!(
                "warning: processes of an earlier run may still be running: {why}"
            ));
        }
        if found.waiting > 0 {
            let inputs = count(found.waiting, "earlier input");
            let them = if found.waiting == 1 { "it" } else { "them" };
            messages.say(&format!(
                "{inputs} had not been processed; the model gets {them} first"
            ));
        }
        if found.existed && found.new_surface {
            messages.say(&found.old_model.as_ref().map_or_else(
                || {
                    "the tools or limits of this pod changed since its last run; it continues with the new ones"
                        .to_owned()
                },
                |model| format!("this pod last used the model {model}; it continues with the new model"),
            ));
        }
        if found.old_system {
            messages.say(
                "the instruction files changed; this pod keeps the instructions it started with",
            );
        }
    }
}

/// A run does what it is asked; a pod that stays can wait for its key.
fn mode(resolved: Option<&ResolvedModel>) -> HostMode {
    match resolved {
        Some(model) => HostMode::Stay {
            missing: model.key.missing(),
        },
        None => HostMode::Run,
    }
}

fn about(context: &HostContext<'_>, model: &str, composed: &Composed) -> HostStarted {
    let shown = |dirs: &[PathBuf]| dirs.iter().map(|dir| authority::escape(dir)).collect();
    HostStarted {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        project: composed.project.root.display().to_string(),
        cwd: context.env.cwd.display().to_string(),
        sandbox: composed.mode.text().to_owned(),
        config_digest: context.config.digest(),
        add_dirs: shown(&composed.added.read),
        add_write_dirs: shown(&composed.added.write),
        launch: Some(Launch {
            run: context.resolved.is_none(),
            ..context.launch.record(model, context.env)
        }),
    }
}
