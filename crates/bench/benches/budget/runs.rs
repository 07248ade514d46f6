//! Whole runs of the program against a server that answers at once.

use crate::Amount;
use crate::table::Table;
use authority::{Ambient, Confinement, EnvPolicy, Job, SandboxMode, Spawner, support};
use bench::machine::Cpu;
use bench::program::{Program, Ran};
use bench::ratio::{median, ms};
use bench::server::Server;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

/// Steps of a run that is repeated for each round.
const SHORT: usize = 40;
/// Steps at the beginning that are not counted: caches warm up.
const WARM: usize = 10;

/// Plugins of one more start.
const PLUGINS: usize = 20;

/// Process start to the first byte of the first request.
pub(crate) fn start(binary: &Path, amount: Amount, table: &mut Table) {
    let server = Server::start();
    let program = Program::new(binary, &server);
    let with_plugins = Program::new(binary, &server);
    with_plugins.add_plugins(PLUGINS);
    let python = interpreter();
    let floor = || {
        let mut command = Command::new(python.as_deref().unwrap_or(binary));
        match python {
            Some(_) => command.args(["-c", "import urllib.request, json"]),
            None => command.arg("--version"),
        };
        let began = Instant::now();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        ms(began.elapsed())
    };
    let (mut new, mut again, mut known, mut least) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut plugins = Vec::new();
    for round in 0..amount.rounds {
        new.push(ms(program.run(&server, &format!("a{round}"), 0).start));
        least.push(floor());
        again.push(ms(program.run(&server, &format!("b{round}"), 0).start));
        known.push(ms(program.run(&server, "known", 0).start));
        plugins.push(ms(with_plugins.run(&server, &format!("c{round}"), 0).start));
    }
    let new = median(&new);
    let again = median(&again);
    let known = median(&known);
    let least = median(&least);
    let most = python.is_some().then_some(0.25);
    let name = if python.is_some() {
        "python3 importing its HTTP client"
    } else {
        "this program's --version; python3 is absent"
    };
    table.ratio(
        &format!("start to first request, floor {name}"),
        (new, least),
        "ms",
        most,
    );
    table.ratio("  the same again (A/A)", (again, new), "ms", None);
    table.ratio("  a known pod", (known, least), "ms", most);
    let what = format!("  a new pod, with {PLUGINS} plugins that nobody granted");
    table.ratio(&what, (median(&plugins), least), "ms", most);
}

/// The interpreter itself: `python3` may be a script that looks for it, which takes longer than what is measured.
fn interpreter() -> Option<PathBuf> {
    let asked = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(asked.stdout).ok()?.trim());
    path.is_absolute().then_some(path)
}

/// Time and CPU of one step, and whether they grow.
pub(crate) fn steps(ambient: &Ambient, binary: &Path, amount: Amount, table: &mut Table) {
    let server = Server::start();
    let program = Program::new(binary, &server);
    let mut step = Vec::new();
    let mut again = Vec::new();
    let mut floor = Vec::new();
    for round in 0..amount.rounds {
        step.extend(
            program
                .run(&server, &format!("a{round}"), SHORT)
                .steps()
                .split_off(WARM),
        );
        floor.extend(confined(ambient, &program.project(), SHORT));
        again.extend(
            program
                .run(&server, &format!("b{round}"), SHORT)
                .steps()
                .split_off(WARM),
        );
    }
    let confinement = if support().missing().is_none() {
        "confined"
    } else {
        "unconfined: this kernel cannot"
    };
    let step = median(&step);
    let again = median(&again);
    table.added(
        &format!("a step with `true`, floor the same child ({confinement})"),
        (step, median(&floor)),
        "ms",
        1.0,
    );
    table.ratio("  the same again (A/A)", (again, step), "ms", None);
    long(&server, &program, amount.steps, table);
}

/// What three attached clients add to a step of a pod that stays. Each round has a new pod without clients, one with, and
/// another one without. The clients run on the same cores, and their time is not taken out.
pub(crate) fn clients(binary: &Path, amount: Amount, table: &mut Table) {
    let server = Server::start();
    let program = Program::new(binary, &server);
    let mut alone = Vec::new();
    let mut watched = Vec::new();
    let mut again = Vec::new();
    for round in 0..amount.rounds {
        alone.extend(
            program
                .watched(&server, &format!("a{round}"), SHORT, 0)
                .split_off(WARM),
        );
        watched.extend(
            program
                .watched(&server, &format!("b{round}"), SHORT, 3)
                .split_off(WARM),
        );
        again.extend(
            program
                .watched(&server, &format!("c{round}"), SHORT, 0)
                .split_off(WARM),
        );
    }
    let alone = median(&alone);
    let watched = median(&watched);
    let again = median(&again);
    table.added(
        "a step with three attached clients, floor without",
        (watched, alone),
        "ms",
        0.2,
    );
    table.ratio(
        "  without, the same again (A/A)",
        (again, alone),
        "ms",
        None,
    );
}

/// How many long runs there are: a machine that is shared gets slower and faster within seconds.
const LONG: usize = 7;

/// Long runs: the beginning of each against its end, of which the middle one counts. What the longer requests take to
/// send is the floor's, too.
fn long(server: &Server, program: &Program, steps: usize, table: &mut Table) {
    let part = steps / 5;
    let runs: Vec<Ran> = (0..LONG)
        .map(|round| program.run(server, &format!("long{round}"), steps))
        .collect();
    let sent = |at: usize| {
        let rounds: Vec<f64> = (0..part.min(100))
            .map(|_| server.exchange(runs[0].arrivals[at].bytes))
            .collect();
        median(&rounds)
    };
    let more = sent(steps - part / 2) - sent(WARM + part / 2);
    let ends = |ran: &Ran| {
        let times = ran.steps();
        (
            median(&times[steps - part..]),
            median(&times[WARM..WARM + part]) + more,
        )
    };
    let mut ends: Vec<(f64, f64)> = runs.iter().map(ends).collect();
    ends.sort_unstable_by(|one, other| (one.0 / one.1).total_cmp(&(other.0 / other.1)));
    let what =
        format!("  the last fifth of {steps} steps, floor the first and {more:.2} ms to send more");
    table.ratio(&what, ends[LONG / 2], "ms", Some(1.1));
    let half = steps / 2;
    let mut cpu = |what: &str, ms: fn(&Cpu) -> u64, most| {
        let per = |from: usize, to: usize| {
            let used: u64 = runs
                .iter()
                .map(|ran| ms(&ran.arrivals[to].cpu) - ms(&ran.arrivals[from].cpu))
                .sum();
            used as f64 / ((to - from) * LONG) as f64
        };
        table.ratio(what, (per(half, steps), per(WARM, half)), "ms", most);
    };
    cpu(
        "CPU per step in our code, second half, floor the first half",
        |cpu| cpu.user,
        Some(1.1),
    );
    cpu(
        "  in the kernel, copies of requests included",
        |cpu| cpu.system,
        None,
    );
    let bytes = runs[0].arrivals.last().unwrap().bytes as f64 / 1e3;
    table.figure(
        &format!("  the last of these requests ({steps} steps)"),
        bytes,
        "kB",
        None,
    );
}

/// Milliseconds of each of `count` children like those that Bash starts.
fn confined(ambient: &Ambient, project: &Path, count: usize) -> Vec<f64> {
    let mode = if support().missing().is_none() {
        SandboxMode::WorkspaceWrite
    } else {
        SandboxMode::Off
    };
    let confinement = Confinement {
        mode,
        read: Vec::new(),
        write: vec![project.to_owned()],
    };
    let env = EnvPolicy::from_vars(
        [("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        &[],
    )
    .unwrap();
    let spawner = Spawner::new(ambient, confinement, env, "bench/1".to_owned()).unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let one = || {
        let job = Job {
            program: "bash".into(),
            args: vec!["-c".into(), "true".into()],
            cwd: project.to_owned(),
            call: "c00000001".to_owned(),
            deadline: Duration::from_secs(60),
            input: Vec::new(),
        };
        let began = Instant::now();
        runtime
            .block_on(spawner.run(job, |_| Ok(()), &CancellationToken::new()))
            .unwrap();
        ms(began.elapsed())
    };
    (0..count).map(|_| one()).collect()
}

/// What a run has in use.
pub(crate) fn memory(binary: &Path, amount: Amount, table: &mut Table) {
    let server = Server::start();
    let program = Program::new(binary, &server);
    let mega = |bytes: u64| bytes as f64 / 1e6;
    let one = program.run(&server, "one", 1);
    let usage = one.arrivals.last().unwrap().usage;
    table.figure(
        "private memory after a turn on loopback",
        mega(usage.private),
        "MB",
        Some(8.0),
    );
    table.figure("  threads then", usage.threads as f64, "", None);
    table.figure(
        "  the first request",
        one.arrivals[0].bytes as f64 / 1e3,
        "kB",
        Some(8.0),
    );
    let kept = program.kept_waiting(&server, "idle", 1, amount.idle);
    let waits = kept.arrivals.last().unwrap().waits as f64;
    let what = format!(
        "waits of all threads in {} s without an answer",
        amount.idle.as_secs()
    );
    table.figure(&what, waits, "", Some(0.0));
    let fifty = program.run(&server, "fifty", 50);
    table.figure(
        "peak memory of 50 steps",
        mega(fifty.arrivals.last().unwrap().usage.peak),
        "MB",
        None,
    );
}
