//! `yoi ps`: what goes on in live pods: the host of each, what its calls started, and the runs of background tasks, which are
//! in the host's process.

use crate::cli::PsArgs;
use crate::show::background_tasks::{job_text, run_text};
use crate::show::escape::line;
use crate::show::out;
use crate::socket::{block_on, owner, statuses};
use authority::{PodProcess, ProcessOwner, processes_of, resident_memory};
use host::env::Env;
use host::exit::{Exit, Failure};
use host::hosting::leftovers::session;
use host::hosting::session_location::now;
use host::pods::Pods;
use protocol::status::JobStatus;
use serde_json::{Value, json};
use std::time::Duration;
use tui::duration;

/// How long all live pods together may take to answer.
const ASKED: Duration = Duration::from_millis(300);

/// Characters of a command line that are shown.
const COMMAND: usize = 100;

/// One process of a pod, or one run of a background task.
struct Row {
    pod: String,
    pid: u32,
    /// `host`, `task`, the id of a call, or a dash where nothing tells.
    owner: String,
    age: Duration,
    memory: Option<u64>,
    command: String,
    /// Of a background task: its feature and name.
    task: Option<(String, String)>,
    /// Of a process of a job.
    job: Option<JobStatus>,
}

pub(crate) fn run(args: &PsArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let names = match &args.name {
        Some(name) => vec![pods.find(name)?],
        None => pods.names()?,
    };
    let mut rows = Vec::new();
    for name in &names {
        rows.extend(processes(&pods, name.clone())?);
    }
    list_tasks(&pods, &mut rows)?;
    if args.json {
        out::json(&rows.iter().map(document).collect());
    } else if rows.is_empty() {
        match (&args.name, names.first()) {
            (Some(_), Some(name)) => out::line(&format!("{name} is not running")),
            _ => out::line("no pod is running"),
        }
    } else {
        print(&rows);
    }
    Ok(Exit::Done)
}

/// The host of a pod and what it started; nothing of a pod that is not live.
fn processes(pods: &Pods, name: String) -> Result<Vec<Row>, Failure> {
    let dir = pods.dir(&name);
    let Some(owner) = owner(&dir)? else {
        return Ok(Vec::new());
    };
    let ambient = ambient::claim();
    let mut rows = vec![Row {
        pod: name.clone(),
        pid: owner.pid,
        owner: "host".to_owned(),
        age: Duration::from_micros(now().saturating_sub(owner.since)),
        memory: resident_memory(&ambient, owner.pid),
        command: "yoi".to_owned(),
        task: None,
        job: None,
    }];
    let started = session(&dir)
        .map(|session| processes_of(&ambient, &session))
        .unwrap_or_default();
    rows.extend(started.into_iter().map(|process| {
        let PodProcess {
            pid,
            owner,
            age,
            memory,
            command,
            ..
        } = process;
        let owner = match owner {
            ProcessOwner::Call(call) => call,
            ProcessOwner::Host => "host".to_owned(),
            ProcessOwner::Unknown => "-".to_owned(),
        };
        Row {
            pod: name.clone(),
            pid,
            owner,
            age,
            memory,
            command,
            task: None,
            job: None,
        }
    }));
    Ok(rows)
}

/// Adds the running background tasks behind the processes of their pods, and what is known of jobs. A pod that does not answer
/// has none.
fn list_tasks(pods: &Pods, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let mut hosts: Vec<(String, u32)> = rows.iter().map(|row| (row.pod.clone(), row.pid)).collect();
    // The first row of a pod is its host.
    hosts.dedup_by(|next, first| next.0 == first.0);
    if hosts.is_empty() {
        return Ok(());
    }
    let asked = hosts
        .iter()
        .map(|(pod, _)| (pods.dir(pod), pod.clone()))
        .collect();
    let mut told = block_on(statuses(asked, "yoi ps", ASKED))?;
    for (pod, pid) in hosts {
        let Some(status) = told.remove(&pod) else {
            continue;
        };
        for row in rows.iter_mut().filter(|row| row.pod == pod) {
            row.job = status
                .jobs
                .iter()
                .find(|job| row.owner == format!("job-{}", job.job))
                .cloned();
        }
        let running = status.tasks.into_iter().filter_map(|task| {
            let run = task.run?;
            let age = Duration::from_millis((now() / 1000).saturating_sub(run.since_ms));
            let command = format!(
                "background task {} of {} ({})",
                task.task,
                task.feature,
                run_text(&run)
            );
            let owner = "task".to_owned();
            let task = Some((task.feature, task.task));
            Some(Row {
                pod: pod.clone(),
                pid,
                owner,
                age,
                memory: None,
                command,
                task,
                job: None,
            })
        });
        let behind = rows
            .iter()
            .rposition(|row| row.pod == pod)
            .map_or(rows.len(), |last| last + 1);
        rows.splice(behind..behind, running.collect::<Vec<_>>());
    }
    Ok(())
}

fn document(row: &Row) -> Value {
    let (feature, task) = row.task.clone().unzip();
    json!({
        "pod": row.pod, "pid": row.pid, "owner": row.owner, "age_s": row.age.as_secs(), "memory": row.memory,
        "command": row.command, "feature": feature, "task": task, "job": row.job,
    })
}

fn print(rows: &[Row]) {
    let widest = |of: fn(&Row) -> &str, least: usize| {
        rows.iter()
            .map(|row| of(row).chars().count())
            .max()
            .unwrap_or(0)
            .max(least)
    };
    let pods = widest(|row| &row.pod, 3);
    let owners = widest(|row| &row.owner, 5);
    let head = format!(
        "{:pods$}  {:>7}  {:owners$}  {:>12}  {:>11}  COMMAND",
        "POD", "PID", "OWNER", "AGE", "MEMORY"
    );
    out::line(&head);
    for Row {
        pod,
        pid,
        owner,
        age,
        memory,
        command,
        task: _,
        job,
    } in rows
    {
        let age = duration(Duration::from_secs(age.as_secs()));
        let memory = memory.map_or_else(|| "-".to_owned(), |bytes| format!("{} KiB", bytes / 1024));
        let of_job = job
            .as_ref()
            .map(|job| format!(" (job {} {})", job.job, job_text(job, now() / 1000)));
        let command = format!("{}{}", line(command, COMMAND), of_job.unwrap_or_default());
        out::line(&format!(
            "{pod:pods$}  {pid:>7}  {owner:owners$}  {age:>12}  {memory:>11}  {command}"
        ));
    }
}
