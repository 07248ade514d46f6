//! `yoi run` in a pod that another process hosts: the prompt becomes an input of that pod. What happens is read from the
//! files as it becomes durable; the socket tells when the turn has ended.

mod follower;

use self::follower::Follower;
use crate::cli::RunArgs;
use crate::commands::ending::{self, EndedIn, FinishedRun};
use crate::commands::input;
use crate::commands::live::{kept, waits};
use crate::commands::output_schema::{AnswerForm, OutputSchema};
use crate::commands::signals::{Ending, Signals};
use crate::report::messages;
use crate::show::progress::OutputStyle;
use crate::socket::{Ended, LiveClient, Reached, block_on, owner};
use host::compose::model::OFFLINE;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::limits::LIMITS;
use host::pods::{Pods, check_name};
use host::project::Project;
use pod::control::{NewFile, TurnEnd};
use pod::record::{InputId, Record};
use pod::session::restore::decode;
use protocol::method::{Cancel, SendInput, TurnBudget};
use protocol::status::State;
use session_store::Reader;
use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

const COMMAND: &str = "yoi run";

/// Why a pod is closed that served one run.
pub(crate) const DONE: &str = "done";

/// How long a process that serves a pod may take to end.
const ENDING: Duration = Duration::from_secs(10);

/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A run as the client of a live pod.
pub(crate) struct ClientRun<'a> {
    pub(crate) args: &'a RunArgs,
    pub(crate) env: &'a Env,
    pub(crate) prompt: &'a str,
    pub(crate) files: &'a [NewFile],
    /// The name of the input, also when another process takes it over.
    pub(crate) key: &'a str,
    /// Whether a pod may have accepted it.
    pub(crate) sent: &'a Cell<bool>,
    pub(crate) schema: Option<&'a OutputSchema>,
    pub(crate) signals: &'a Signals,
    pub(crate) style: OutputStyle,
    pub(crate) began: Instant,
}

/// The live pod, and what shows its progress.
struct Target<'a> {
    name: &'a str,
    screen: Follower,
    /// The newest record that was folded when the last turn ended.
    folded: Cell<Option<u64>>,
    is_planner: Cell<bool>,
}

/// Why a turn has no end to report.
enum Broken {
    Failed(Failure),
    /// The person ended the run before a turn took the input.
    Withdrawn,
}

impl ClientRun<'_> {
    /// Takes the prompt through the pod that the flags name, if another process hosts it. None if no process does, or if
    /// that process ended before the turn: the pod then is this one's to host.
    pub(crate) fn run_if_live(&self) -> Result<Option<Exit>, Failure> {
        let Some((pods, name)) = self.named()? else {
            return Ok(None);
        };
        block_on(async {
            match LiveClient::reach(&pods.dir(&name), &name, COMMAND).await? {
                Reached::Live(live) => self.run(&pods, &name, *live).await,
                Reached::Free | Reached::Locked(_) => Ok(None),
                Reached::Silent(_, failure) | Reached::Incompatible(_, failure) => Err(failure),
            }
        })?
    }

    /// The pod that the flags name, as far as it exists.
    fn named(&self) -> Result<Option<(Pods, String)>, Failure> {
        let RunArgs {
            pod,
            resume,
            ephemeral,
            ..
        } = self.args;
        if *ephemeral || (pod.is_none() && !resume) {
            return Ok(None);
        }
        let pods = Pods::of(self.env)?;
        let last = || pods.last_run(&Project::around(self.env).root);
        let name = pod
            .clone()
            .or_else(last)
            .filter(|name| check_name(name).is_ok() && pods.dir(name).is_dir());
        Ok(name.map(|name| (pods, name)))
    }

    /// Hands in the prompt, shows its turn, and reports as a run that hosts the pod does.
    async fn run(
        &self,
        pods: &Pods,
        name: &str,
        mut live: LiveClient,
    ) -> Result<Option<Exit>, Failure> {
        self.check_flags(name)?;
        self.signals.begin();
        let dir = pods.dir(name);
        let from = Reader::open(&dir).map_or(1, |reader| reader.durable() + 1);
        let screen = Follower::start(&dir, name, self.style, from)?;
        let target = Target {
            name,
            screen,
            folded: Cell::new(None),
            is_planner: Cell::new(false),
        };
        let done = self.turn(&target, &mut live).await;
        let handed_over = match &done {
            Err(Broken::Failed(failure)) if failure.exit == Exit::Unavailable => {
                self.is_handed_over(&dir, live.owner.pid).await
            }
            Ok(_) | Err(_) => false,
        };
        if handed_over {
            target.screen.finish(target.folded.get());
            return Ok(None);
        }
        let ending = self.signals.over();
        let streamed = target.screen.finish(target.folded.get());
        match done {
            Ok(end) => {
                let output = AnswerForm::of(&end, self.schema);
                let ended = FinishedRun {
                    end,
                    streamed,
                    output,
                    ending,
                    late: None,
                };
                let pod = EndedIn::live(name, target.is_planner.get());
                Ok(Some(ending::report(
                    &ended,
                    pod,
                    self.style,
                    self.began.elapsed(),
                )))
            }
            Err(Broken::Failed(failure)) => Err(failure),
            Err(Broken::Withdrawn) => {
                let exit = ending.map_or(Exit::Failed, Ending::exit);
                Err(Failure::new(
                    exit,
                    format!("interrupted; the prompt was withdrawn before {name} started it"),
                )
                .help("run the command again"))
            }
        }
    }

    /// Whether another process has the pod by now, or the one that served it has ended and was a run: one that was done, or
    /// was killed. What it had accepted is kept.
    async fn is_handed_over(&self, dir: &Path, served: u32) -> bool {
        let pid = || owner(dir).ok().flatten().map(|owner| owner.pid);
        let ends = async {
            while pid() == Some(served) {
                sleep(LOOK).await;
            }
        };
        tokio::select! {
            ended = timeout(ENDING, ends) => drop(ended),
            () = self.signals.cancel.cancelled() => return false,
        }
        pid().map_or_else(|| is_free(dir), |pid| pid != served)
    }

    /// Refuses flags that only a start of a pod can take.
    fn check_flags(&self, name: &str) -> Result<(), Failure> {
        // An input may have limits of its own.
        let is_limit = |flag: &&str| LIMITS.iter().any(|limit| limit.flag == *flag);
        let given = self.args.options.launch().flags();
        let agent = self.args.agent.agent.iter().map(|_| "--agent");
        let given: Vec<_> = given
            .into_iter()
            .filter(|flag| !is_limit(flag))
            .chain(agent)
            .collect();
        let Some((last, rest)) = given.split_last() else {
            return Ok(());
        };
        let (flags, verb) = match rest {
            [] => ((*last).to_owned(), "applies"),
            rest => (format!("{} and {last}", rest.join(", ")), "apply"),
        };
        Err(Failure::new(
            Exit::Usage,
            format!("{name} is running: {flags} {verb} only when a pod starts"),
        )
        .help(format!("omit {flags}, or run `yoi stop {name}` first")))
    }

    /// The prompt, with what the flags say about its turn.
    fn input(&self) -> SendInput {
        let given = &self.args.options.limits.0;
        let mut budget = TurnBudget::default();
        for limit in LIMITS {
            if let Some(amount) = given.get(&limit.kind) {
                (limit.budget)(&mut budget, *amount);
            }
        }
        let limits = (budget != TurnBudget::default()).then_some(budget);
        let output_schema = self.schema.map(|schema| schema.json.clone());
        let text = self.prompt.to_owned();
        let cmd_id = self.key.to_owned();
        SendInput {
            expand: input::is_command(self.args.prompt.as_deref()),
            text,
            limits,
            output_schema,
            cmd_id,
            ..SendInput::default()
        }
    }

    /// The input from its acceptance to the end of its turn.
    async fn turn(&self, target: &Target<'_>, live: &mut LiveClient) -> Result<TurnEnd, Broken> {
        let before = live.status().await.ok();
        let is_working = before
            .as_ref()
            .is_some_and(|before| before.state == State::Working);
        target
            .is_planner
            .set(before.is_some_and(|before| before.model == OFFLINE));
        let argument = self.args.prompt.as_deref();
        input::check_live_command(argument, live)
            .await
            .map_err(Broken::Failed)?;
        self.sent.set(true);
        let files = live.send_files(self.files).await;
        let input = SendInput {
            files: files.map_err(Broken::Failed)?,
            ..self.input()
        };
        let input = live.send(input).await.map_err(Broken::Failed)?;
        target.screen.show(input);
        self.tell_waiting(target, live, is_working).await;
        let ended = self
            .ended(live, input)
            .await
            .map_err(|failure| match failure {
                failure if failure.exit == Exit::Failed && self.signals.cancel.is_cancelled() => {
                    Broken::Withdrawn
                }
                failure => Broken::Failed(kept(failure, target.name, input)),
            })?;
        target.folded.set(Some(ended.folded));
        Ok(ended.end)
    }

    /// Waits for the end of the input's turn. The first signal, or the end of the time, cancels it.
    async fn ended(&self, live: &mut LiveClient, input: InputId) -> Result<Ended, Failure> {
        let wait = live.begin_wait(input)?;
        tokio::select! {
            ended = live.end(&wait, input) => return ended,
            () = self.signals.cancel.cancelled() => {}
        }
        live.tell(|cmd_id| Cancel {
            input: Some(input),
            cmd_id,
        })
        .await?;
        live.end(&wait, input).await
    }

    /// Says why the turn of the input does not begin now, if it does not.
    async fn tell_waiting(&self, target: &Target<'_>, live: &mut LiveClient, is_working: bool) {
        let messages = messages(self.args.quiet);
        let name = target.name;
        if is_working {
            return messages.say(&format!(
                "{name} is working; the prompt starts when the running turn has ended"
            ));
        }
        let Ok(status) = live.status().await else {
            return;
        };
        waits(&status, name)
            .iter()
            .for_each(|text| messages.say(text));
    }
}

/// Whether the newest host of a pod was a run that was done, or whose process was killed.
fn is_free(dir: &Path) -> bool {
    let Ok(reader) = Reader::open(dir) else {
        return false;
    };
    let records = reader
        .frames()
        .map_while(Result::ok)
        .filter_map(|frame| decode(&frame).ok());
    records.fold(false, |is_free, record| match record {
        Record::HostStarted(started) => started.launch.is_some_and(|launch| launch.run),
        Record::HostStopped(stopped) => stopped.reason == DONE,
        _ => is_free,
    })
}
