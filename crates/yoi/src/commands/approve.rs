//! `yoi approve`: what waits for a person in all pods, and the answers to it.

mod forget;

use crate::cli::{ApproveArgs, ApproveScope};
use crate::commands::live::live_as;
use crate::commands::new_rules::NewRules;
use crate::commands::person::{only_a_person, terminal};
use crate::look::Look;
use crate::report::Report;
use crate::show::escape::line;
use crate::show::out;
use crate::show::question::{self, QuestionLine, Shown, TypedAnswer};
use crate::show::rule_preview;
use crate::show::terminal::Terminal;
use crate::socket::block_on;
use authority::text::escape_line;
use client::cmd_id::cmd_id;
use forget::COMMAND;
use host::config::{UserRules, as_toml};
use host::env::Env;
use host::exit::{Exit, Failure};
use host::hosting::session_location::now;
use host::pods::{Pods, read_failure};
use pod::control::MAX_DENIAL;
use pod::session::summary::Summary;
use protocol::method::{
    AllowOrDeny, AllowScope, Approve, GetApprovals, GetPastCalls, MatchedCalls, PreviewCall,
    PreviewedCall, Role,
};
use protocol::record::{ApprovalRequested, ApprovalResolved};
use serde_json::{Value, json};
use session_store::{ReadError, Reader, Session};
use tui::arguments::brief;
use tui::asked_file;

/// Characters of a call in the line about its answer.
const SHOWN: usize = 80;

pub(crate) fn run(args: &ApproveArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    if let (Some(name), Some(which)) = (&args.name, args.forget) {
        return forget::run(args.json, env, &pods, &pods.find(name)?, which);
    }
    match (&args.name, args.id) {
        (Some(name), Some(id)) => {
            only_a_person("allow or deny its calls")?;
            if args
                .deny
                .as_ref()
                .is_some_and(|words| words.len() > MAX_DENIAL)
            {
                let text = format!("the words of a denial can have at most {MAX_DENIAL} bytes");
                return Err(Failure::new(Exit::Usage, text).help("shorten WORDS of --deny=WORDS"));
            }
            let name = pods.find(name)?;
            block_on(answer(args, env, &pods, &name, id))?
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
        return answer_from_list(args, env, pods, waiting, terminal);
    } else {
        for one in &waiting {
            print(one, &change(pods, one));
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
    let open = summary
        .state
        .approvals
        .open
        .values()
        .filter_map(|open| question::mirror(open));
    Ok(open
        .map(|asked| Waiting {
            name: name.to_owned(),
            live,
            asked,
        })
        .collect())
}

/// Everything that will run.
fn print(Waiting { name, asked, .. }: &Waiting, change: &[QuestionLine]) {
    let ApprovalRequested {
        approval,
        tool,
        sandbox,
        ..
    } = asked;
    show_line(&format!("{name} {approval}  {tool} (sandbox {sandbox})"));
    let look = Look::of_stdout();
    question::lines(asked, Some(now() / 1000))
        .iter()
        .chain(change)
        .for_each(|line| match look {
            Some(_) => out::raw(&Shown::Line(line).text(look)),
            None => out::line(&line.text),
        });
}

/// What a call of a pod that runs would change in a file.
fn change(pods: &Pods, Waiting { name, live, asked }: &Waiting) -> Vec<QuestionLine> {
    let Some(file) = asked_file(asked).filter(|_| *live) else {
        return Vec::new();
    };
    let id = asked.approval;
    let call = block_on(async {
        let mut pod = live_as(pods, name, COMMAND, Role::Viewer).await?;
        pod.ask(&PreviewCall { id }).await
    });
    let call = call.and_then(|call| call);
    question::change(
        &file,
        &call.unwrap_or_else(|failure| PreviewedCall::unknown(failure.message)),
    )
}

/// A line about a call. On a terminal no part of it begins as a line of this command.
fn show_line(text: &str) {
    match Look::of_stdout() {
        Some(_) => show(&format!("{}\n", escape_line(text))),
        None => out::line(text),
    }
}

/// A line of a question, or the place behind which an answer is typed.
fn show(text: &str) {
    out::raw(&Shown::Text(text).text(Look::of_stdout()));
}

/// How to answer.
fn print_how(Waiting { name, live, asked }: &Waiting) {
    let approval = asked.approval;
    let start = if *live {
        String::new()
    } else {
        format!("`yoi start {name}`, then ")
    };
    show_line(&format!(
        "  {start}`yoi approve {name} {approval}` allows this call once; with --deny it denies the call"
    ));
    let for_pod = format!("`yoi approve {name} {approval} --scope=pod`");
    question::also_allows(asked, &for_pod)
        .iter()
        .for_each(|rules| show_line(rules));
    if question::scopes(asked).contains(&"rule") {
        show_line(
            "  with --scope=rule it also adds these rules to your configuration file, for all pods",
        );
    }
}

/// The terminal of a person who may answer from the list.
fn answering(args: &ApproveArgs, env: &Env) -> Option<Terminal> {
    terminal(env).filter(|_| !args.json && only_a_person("answer").is_ok())
}

/// Asks about one call after the other. Those of a pod that does not run are only shown.
fn answer_from_list(
    args: &ApproveArgs,
    env: &Env,
    pods: &Pods,
    waiting: Vec<Waiting>,
    mut terminal: Terminal,
) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    for one in waiting {
        print(&one, &change(pods, &one));
        if !one.live {
            print_how(&one);
            continue;
        }
        let Waiting { name, asked, .. } = one;
        question::also_allows(&asked, "`p`")
            .iter()
            .for_each(|rules| show_line(rules));
        let mut new = None;
        let mut preview = || {
            let rules = of_question(env, &asked);
            let past = past(pods, &name, asked.approval);
            let text = rules
                .as_ref()
                .map_err(|failure| failure.message.clone())?
                .preview(&past)?;
            new = rules.ok();
            Ok(text)
        };
        let typed = question::ask(
            &mut terminal,
            &asked,
            "s: not now",
            &mut || true,
            &mut show,
            &mut preview,
        );
        let (decision, scope, words) = match typed {
            Ok(TypedAnswer::Allow(scope)) => (AllowOrDeny::Allow, scope, None),
            Ok(TypedAnswer::Deny(words)) => (AllowOrDeny::Deny, AllowScope::Once, words),
            Ok(TypedAnswer::Skip) => continue,
            Err(_left) => {
                out::raw("\n");
                break;
            }
        };
        let id = asked.approval;
        let arguments_digest = asked.arguments_digest.clone();
        let approve = Approve {
            id,
            decision,
            scope,
            arguments_digest,
            words,
            cmd_id: cmd_id(),
        };
        let wanted = OwnAnswer {
            decision,
            call: call(&asked),
            rules: new.filter(|_| scope == AllowScope::Rule),
            past: None,
        };
        if let Err(failure) = give(args, pods, &name, &approve, &wanted) {
            failure.say();
            exit = failure.exit;
        }
    }
    Ok(exit)
}

/// The rules of a question, for the configuration.
fn of_question(env: &Env, asked: &ApprovalRequested) -> Result<NewRules, Failure> {
    NewRules::of_question(UserRules::of(env)?, asked)
}

/// The past calls of a pod that the rules of one of its questions would have matched.
fn past(pods: &Pods, name: &str, id: u64) -> Result<MatchedCalls, String> {
    let asked = async {
        live_as(pods, name, COMMAND, Role::Approver)
            .await?
            .ask(&GetPastCalls { id })
            .await
    };
    block_on(asked)
        .and_then(|past| past)
        .map_err(|failure| failure.message)
}

/// Gives an answer, and says which one counts.
fn give(
    args: &ApproveArgs,
    pods: &Pods,
    name: &str,
    approve: &Approve,
    wanted: &OwnAnswer,
) -> Result<Exit, Failure> {
    let _lock = wanted
        .rules
        .as_ref()
        .map(|rules| rules.file.lock())
        .transpose()?;
    let recorded = block_on(async {
        live_as(pods, name, COMMAND, Role::Approver)
            .await?
            .ask(approve)
            .await
    })??;
    report(args, name, wanted, &recorded)
}

/// The call in the line about its answer.
fn call(asked: &ApprovalRequested) -> String {
    line(
        &format!(": {} {}", asked.tool, brief(&asked.arguments)),
        SHOWN,
    )
}

fn json(Waiting { name, live, asked }: &Waiting) -> Value {
    let mut value = serde_json::to_value(asked).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("pod".to_owned(), json!(name));
        fields.insert("running".to_owned(), json!(live));
        let scopes = question::scopes(asked);
        fields.insert("scopes".to_owned(), json!(scopes));
        if scopes.contains(&"rule") {
            fields.insert("toml".to_owned(), json!(as_toml(&question::rules(asked))));
        }
    }
    value
}

async fn answer(
    args: &ApproveArgs,
    env: &Env,
    pods: &Pods,
    name: &str,
    id: u64,
) -> Result<Exit, Failure> {
    let waiting = of_pod(pods, name)?
        .into_iter()
        .find(|waiting| waiting.asked.approval == id);
    let mut pod = live_as(pods, name, COMMAND, Role::Approver).await?;
    // The files may be behind or ahead of what was listed; the pod has the last word.
    let known = pod.ask(&GetApprovals {}).await?;
    let open = known
        .approvals
        .iter()
        .find(|open| open.approval == id)
        .cloned();
    let decision = if args.deny.is_some() {
        AllowOrDeny::Deny
    } else {
        AllowOrDeny::Allow
    };
    let scope = match args.scope {
        Some(ApproveScope::Pod) => AllowScope::Pod,
        Some(ApproveScope::Rule) => AllowScope::Rule,
        Some(ApproveScope::Once) | None => AllowScope::Once,
    };
    let mut rules = None;
    let mut past = None;
    if scope == AllowScope::Rule {
        let new = match &open {
            Some(open) => of_question(env, open)?,
            None => NewRules::of_answer(UserRules::of(env)?, &known.rules, id)?,
        };
        if let Some(open) = &open {
            let found = pod
                .ask(&GetPastCalls { id })
                .await
                .map_err(|failure| failure.message);
            if !confirmed(args, env, name, open, &new, &found)? {
                return Ok(Exit::Done);
            }
            past = Some(found);
        }
        rules = Some(new);
    }
    let asked = open.or(waiting.map(|waiting| waiting.asked));
    let words = args.deny.clone().filter(|words| !words.is_empty());
    let arguments_digest = asked
        .as_ref()
        .map(|asked| asked.arguments_digest.clone())
        .unwrap_or_default();
    let _lock = rules
        .as_ref()
        .map(|rules: &NewRules| rules.file.lock())
        .transpose()?;
    let recorded = pod
        .ask(&Approve {
            id,
            decision,
            scope,
            arguments_digest,
            words,
            cmd_id: cmd_id(),
        })
        .await?;
    let call = asked.as_ref().map(call).unwrap_or_default();
    report(
        args,
        name,
        &OwnAnswer {
            decision,
            call,
            rules,
            past,
        },
        &recorded,
    )
}

/// Shows what would be written to a person at a terminal, and asks whether to. Without one, the command line says so.
fn confirmed(
    args: &ApproveArgs,
    env: &Env,
    name: &str,
    open: &ApprovalRequested,
    rules: &NewRules,
    past: &Result<MatchedCalls, String>,
) -> Result<bool, Failure> {
    let Some(mut terminal) = answering(args, env) else {
        return Ok(true);
    };
    let one = Waiting {
        name: name.to_owned(),
        live: true,
        asked: open.clone(),
    };
    // `yoi approve` shows the change of its file; the rules are asked about here.
    print(&one, &[]);
    let text = rules
        .preview(past)
        .map_err(|why| Failure::new(Exit::Config, why))?;
    Ok(
        question::confirmed(&mut terminal, &text, &mut || true, &mut show).unwrap_or_else(
            |_left| {
                out::raw("\n");
                false
            },
        ),
    )
}

/// The answer of this command.
struct OwnAnswer {
    decision: AllowOrDeny,
    /// The call, for people.
    call: String,
    /// The rules that it is to write.
    rules: Option<NewRules>,
    /// The past calls that these would have matched, if they are still to be shown.
    past: Option<Result<MatchedCalls, String>>,
}

/// Says which answer counts. It may be another client's.
fn report(
    args: &ApproveArgs,
    name: &str,
    wanted: &OwnAnswer,
    recorded: &ApprovalResolved,
) -> Result<Exit, Failure> {
    let written = match &wanted.rules {
        Some(rules) => rules.write(&recorded.decision, recorded.scope.as_deref()),
        None => Ok(None),
    };
    if args.json {
        let all = match &wanted.rules {
            Some(NewRules { file, .. }) => {
                let added = written.as_ref().ok().and_then(Option::as_ref);
                let added = added.map(|added| json!({ "file": file.shown, "toml": added.toml }));
                let past = wanted.past.as_ref().and_then(|past| past.as_ref().ok());
                json!({ "pod": name, "answer": recorded, "written": added, "past_calls": past })
            }
            None => json!({ "pod": name, "answer": recorded }),
        };
        out::json(&all);
    }
    let id = recorded.approval;
    let by = match (&recorded.by, &recorded.reason) {
        (Some(by), _) => format!(" by {}", by.client),
        // The time for an answer is over.
        (None, reason) => reason
            .as_ref()
            .map(|why| format!(": {why}"))
            .unwrap_or_default(),
    };
    let history = |text: String| {
        Failure::new(Exit::Failed, text).help(format!("`yoi log {name}` shows what happened"))
    };
    match (recorded.decision.as_str(), wanted.decision) {
        ("allow", AllowOrDeny::Allow)
            if wanted.rules.is_some() && recorded.scope.as_deref() != Some("rule") =>
        {
            return Err(history(format!(
                "approval {id} was already allowed{by}, and no rule was written"
            )));
        }
        ("allow", AllowOrDeny::Allow) => {
            let scope = if recorded.scope.is_some() {
                " for this pod"
            } else {
                ""
            };
            say(args, &format!("allowed{scope}{}", wanted.call));
        }
        ("deny", AllowOrDeny::Deny) => say(args, &format!("denied{}", wanted.call)),
        ("void", _) => {
            let why = recorded.reason.as_deref().unwrap_or("its turn has ended");
            return Err(history(format!(
                "approval {id} is void, and the call did not run: {why}"
            )));
        }
        (decision, _) => {
            let was = if decision == "allow" {
                "allowed"
            } else {
                "denied"
            };
            return Err(history(format!("approval {id} was already {was}{by}")));
        }
    }
    if let (Some(added), Some(NewRules { file, .. })) = (written?, &wanted.rules) {
        rule_preview::after(&file.shown, &added.toml)
            .iter()
            .for_each(|line| say(args, line));
        let past = wanted.past.iter().flat_map(rule_preview::past_calls);
        past.for_each(|line| say(args, &line));
    }
    Ok(Exit::Done)
}

fn say(args: &ApproveArgs, text: &str) {
    if !args.json {
        out::line(text);
    }
}
