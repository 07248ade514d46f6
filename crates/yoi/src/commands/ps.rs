//! `yoi ps`: the processes of live pods: the host of each, and what its calls started.

use crate::cli::PsArgs;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::hosting::leftovers::session;
use crate::hosting::session_location::now;
use crate::pods::Pods;
use crate::show::escape::line;
use crate::show::out;
use crate::socket::owner;
use authority::{Ambient, PodProcess, ProcessOwner, processes_of, resident_memory};
use pod::session::restore::duration;
use serde_json::{Value, json};
use std::time::Duration;

/// Characters of a command line that are shown.
const COMMAND: usize = 100;

/// One process of a pod.
struct Row {
    pod: String,
    pid: u32,
    /// `host`, the id of a call, or a dash where nothing tells.
    owner: String,
    age: Duration,
    memory: Option<u64>,
    command: String,
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
    let Some(owner) = owner(&dir)? else { return Ok(Vec::new()) };
    let ambient = Ambient::claim();
    let mut rows = vec![Row {
        pod: name.clone(),
        pid: owner.pid,
        owner: "host".to_owned(),
        age: Duration::from_micros(now().saturating_sub(owner.since)),
        memory: resident_memory(&ambient, owner.pid),
        command: "yoi".to_owned(),
    }];
    let started = session(&dir).map(|session| processes_of(&ambient, &session)).unwrap_or_default();
    rows.extend(started.into_iter().map(|process| {
        let PodProcess { pid, owner, age, memory, command, .. } = process;
        let owner = match owner {
            ProcessOwner::Call(call) => call,
            ProcessOwner::Host => "host".to_owned(),
            ProcessOwner::Unknown => "-".to_owned(),
        };
        Row { pod: name.clone(), pid, owner, age, memory, command }
    }));
    Ok(rows)
}

fn document(row: &Row) -> Value {
    json!({
        "pod": row.pod, "pid": row.pid, "owner": row.owner, "age_s": row.age.as_secs(), "memory": row.memory,
        "command": row.command,
    })
}

fn print(rows: &[Row]) {
    let widest = |of: fn(&Row) -> &str, least: usize| {
        rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0).max(least)
    };
    let (pods, owners) = (widest(|row| &row.pod, 3), widest(|row| &row.owner, 5));
    let head = format!("{:pods$}  {:>7}  {:owners$}  {:>12}  {:>11}  COMMAND", "POD", "PID", "OWNER", "AGE", "MEMORY");
    out::line(&head);
    for Row { pod, pid, owner, age, memory, command } in rows {
        let age = duration(u64::try_from(age.as_micros()).unwrap_or(u64::MAX));
        let memory = memory.map_or_else(|| "-".to_owned(), |bytes| format!("{} KiB", bytes / 1024));
        let command = line(command, COMMAND);
        out::line(&format!("{pod:pods$}  {pid:>7}  {owner:owners$}  {age:>12}  {memory:>11}  {command}"));
    }
}
