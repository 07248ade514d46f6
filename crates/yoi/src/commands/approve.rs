//! `yoi approve`: what waits for a person in all pods, and the answers to it.

use crate::cli::{ApproveArgs, ApproveScope};
use crate::commands::live::live_as;
use crate::commands::person::only_a_person;
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::pods::{Pods, read_failure};
use crate::show::arguments::brief;
use crate::show::escape::line;
use crate::show::out;
use crate::show::question::{self, TypedAnswer};
use crate::show::terminal::Terminal;
use crate::socket::block_on;
use client::cmd_id::cmd_id;
use pod::control::MAX_DENIAL;
use pod::session::summary::Summary;
use protocol::method::{AllowOrDeny, AllowScope, Approve, GetApprovals, Role};
use protocol::record::{ApprovalRequested, ApprovalResolved};
use serde_json::{Value, json};
use session_store::{ReadError, Reader, Session};

const COMMAND: &str = "yoi approve";

/// Characters of a call in the line about its answer.
const SHOWN: usize = 80;

pub(crate) fn run(args: &ApproveArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    match (&args.name, args.id) {
        (Some(name), Some(id)) => {
            only_a_person("allow or deny its calls")?;
            if args.deny.as_ref().is_some_and(|words| words.len() > MAX_DENIAL) {
                let text = format!("the words of a denial can have at most {MAX_DENIAL} bytes");
                return Err(Failure::new(Exit::Usage, text).help("shorten WORDS of --deny=WORDS"));
            }
            let name = pods.find(name)?;
            block_on(answer(args, &pods, &name, id))?
        }
        (name, _) => {
            let names = match name {
                Some(name) => vec![pods.find(name)?],
                None => pods.names()?,
            };
            list(args, env, &pods, names)
        }
    }
}

/// What waits in a pod.
struct Waiting {
    name: String,
    /// A process has the pod and can take an answer.
    live: bool,
    asked: ApprovalRequested,
}

fn list(args: &ApproveArgs, env: &Env, pods: &Pods, names: Vec<String>) -> Result<Exit, Failure> {
    let mut waiting = Vec::new();
    for name in names {
        match of_pod(pods, &name) {
            Ok(of_pod) => waiting.extend(of_pod),
            Err(failure) if args.name.is_some() => return Err(failure),
            // `yoi ls` says what is wrong with it.
            Err(_) => {}
        }
    }
    if args.json {
        out::json(&waiting.iter().map(json).collect());
    } else if waiting.is_empty() {
        out::line("no call waits for approval");
    } else if let Some(terminal) = answering(args, env) {
        return answer_from_list(args, pods, waiting, terminal);
    } else {
        for one in &waiting {
            print(one);
            print_how(one);
        }
    }
    Ok(Exit::Done)
}

/// What waits in one pod, from its files: it is recorded before anybody is asked.
fn of_pod(pods: &Pods, name: &str) -> Result<Vec<Waiting>, Failure> {
    let dir = pods.dir(name);
    let reader = match Reader::open(&dir) {
        Err(ReadError::NoSuch(_)) => return Ok(Vec::new()),
        reader => reader.map_err(|error| read_failure(name, &error))?,
    };
    let unread = |error| Failure::new(Exit::Data, format!("{name}: {error}"));
    let summary = Summary::read(&reader, || {}).map_err(unread)?;
    let live = matches!(Session::owner(&dir), Ok(Some(_)));
    let open = summary.state.approvals.open.values().filter_map(|open| question::mirror(open));
    Ok(open.map(|asked| Waiting { name: name.to_owned(), live, asked }).collect())
}

/// Everything that will run.
fn print(Waiting { name, asked, .. }: &Waiting) {
    let ApprovalRequested { approval, tool, sandbox, .. } = asked;
    out::line(&format!("{name} {approval}  {tool} (sandbox {sandbox})"));
    question::lines(asked).iter().for_each(|line| out::line(line));
}

/// How to answer.
fn print_how(Waiting { name, live, asked }: &Waiting) {
    let approval = asked.approval;
    let start = if *live { String::new() } else { format!("`yoi start {name}`, then ") };
    out::line(&format!(
        "  {start}`yoi approve {name} {approval}` allows this call once; with --deny it denies the call"
    ));
    let for_pod = format!("`yoi approve {name} {approval} --scope=pod`");
    question::also_allows(asked, &for_pod).iter().for_each(|rules| out::line(rules));
}

/// The terminal of a person who may answer from the list.
fn answering(args: &ApproveArgs, env: &Env) -> Option<Terminal> {
    let person = !args.json && env.stdin_terminal && env.stdout_terminal && only_a_person("answer").is_ok();
    person.then(|| Terminal::of_process(std::io::stdout())).flatten()
}

/// Asks about one call after the other. Those of a pod that does not run are only shown.
fn answer_from_list(
    args: &ApproveArgs,
    pods: &Pods,
    waiting: Vec<Waiting>,
    mut terminal: Terminal,
) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    for one in waiting {
        print(&one);
        if !one.live {
            print_how(&one);
            continue;
        }
        let Waiting { name, asked, .. } = one;
        question::also_allows(&asked, "`p`").iter().for_each(|rules| out::line(rules));
        let (decision, scope, words) =
            match question::ask(&mut terminal, &asked, "s: not now", &mut || true, &mut out::raw) {
                Ok(TypedAnswer::Allow(scope)) => (AllowOrDeny::Allow, scope, None),
                Ok(TypedAnswer::Deny(words)) => (AllowOrDeny::Deny, AllowScope::Once, words),
                Ok(TypedAnswer::Skip) => continue,
                Err(_left) => {
                    out::raw("\n");
                    break;
                }
            };
        let (id, arguments_digest) = (asked.approval, asked.arguments_digest.clone());
        let approve = Approve { id, decision, scope, arguments_digest, words, cmd_id: cmd_id() };
        let recorded = block_on(async { live_as(pods, &name, COMMAND, Role::Approver).await?.ask(&approve).await })?;
        if let Err(failure) = recorded.and_then(|recorded| report(args, &name, decision, &recorded, &call(&asked))) {
            failure.say();
            exit = failure.exit;
        }
    }
    Ok(exit)
}

/// The call in the line about its answer.
fn call(asked: &ApprovalRequested) -> String {
    line(&format!(": {} {}", asked.tool, brief(&asked.arguments)), SHOWN)
}

fn json(Waiting { name, live, asked }: &Waiting) -> Value {
    let mut value = serde_json::to_value(asked).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("pod".to_owned(), json!(name));
        fields.insert("running".to_owned(), json!(live));
        let scopes: &[&str] = if question::rules(asked).is_empty() { &["once"] } else { &["once", "pod"] };
        fields.insert("scopes".to_owned(), json!(scopes));
    }
    value
}

async fn answer(args: &ApproveArgs, pods: &Pods, name: &str, id: u64) -> Result<Exit, Failure> {
    let waiting = of_pod(pods, name)?.into_iter().find(|waiting| waiting.asked.approval == id);
    let mut pod = live_as(pods, name, COMMAND, Role::Approver).await?;
    // The files may be behind or ahead of what was listed; the pod has the last word.
    let open = pod.ask(&GetApprovals {}).await?.approvals.into_iter().find(|open| open.approval == id);
    let asked = open.or(waiting.map(|waiting| waiting.asked));
    let decision = if args.deny.is_some() { AllowOrDeny::Deny } else { AllowOrDeny::Allow };
    let scope = match args.scope {
        Some(ApproveScope::Pod) => AllowScope::Pod,
        Some(ApproveScope::Once) | None => AllowScope::Once,
    };
    let words = args.deny.clone().filter(|words| !words.is_empty());
    let arguments_digest = asked.as_ref().map(|asked| asked.arguments_digest.clone()).unwrap_or_default();
    let recorded = pod.ask(&Approve { id, decision, scope, arguments_digest, words, cmd_id: cmd_id() }).await?;
    report(args, name, decision, &recorded, &asked.as_ref().map(call).unwrap_or_default())
}

/// Says which answer counts. It may be another client's.
fn report(
    args: &ApproveArgs,
    name: &str,
    wanted: AllowOrDeny,
    recorded: &ApprovalResolved,
    call: &str,
) -> Result<Exit, Failure> {
    if args.json {
        out::json(&json!({ "pod": name, "answer": recorded }));
    }
    let id = recorded.approval;
    match (recorded.decision.as_str(), wanted) {
        ("allow", AllowOrDeny::Allow) => {
            let scope = if recorded.scope.as_deref() == Some("pod") { " for this pod" } else { "" };
            say(args, &format!("allowed{scope}{call}"));
        }
        ("deny", AllowOrDeny::Deny) => say(args, &format!("denied{call}")),
        ("void", _) => {
            let why = recorded.reason.as_deref().unwrap_or("its turn has ended");
            return Err(Failure::new(Exit::Failed, format!("approval {id} is void, and the call did not run: {why}"))
                .help(format!("`yoi log {name}` shows what happened")));
        }
        (decision, _) => {
            let by = recorded.by.as_ref().map_or_else(String::new, |by| format!(" by {}", by.client));
            let was = if decision == "allow" { "allowed" } else { "denied" };
            return Err(Failure::new(Exit::Failed, format!("approval {id} was already {was}{by}"))
                .help(format!("`yoi log {name}` shows what happened")));
        }
    }
    Ok(Exit::Done)
}

fn say(args: &ApproveArgs, text: &str) {
    if !args.json {
        out::line(text);
    }
}
