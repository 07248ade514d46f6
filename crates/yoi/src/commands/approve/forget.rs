//! `yoi approve NAME --forget`: the rules that were allowed for one pod, and taking them back. Rules of files stay.

use crate::cli::Forget;
use crate::commands::live::live_as;
use crate::commands::person::only_a_person;
use crate::show::out;
use crate::show::question::{read_rules, short};
use crate::socket::block_on;
use client::cmd_id::cmd_id;
use host::config::UserRules;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::{Pods, read_failure};
use pod::session::summary::Summary;
use protocol::method::{ForgetRules, GetApprovals, PodRule, Role};
use serde_json::json;
use session_store::{ReadError, Reader};

/// Its name at the pod.
pub(super) const COMMAND: &str = "yoi approve";

pub(super) fn run(
    json: bool,
    env: &Env,
    pods: &Pods,
    name: &str,
    which: Forget,
) -> Result<Exit, Failure> {
    if which == Forget::List {
        return list(json, pods, name);
    }
    only_a_person("take back rules of its pod")?;
    let gone = block_on(forget(pods, name, which))??;
    if json {
        out::json(&json!({ "pod": name, "forgotten": gone }));
        return Ok(Exit::Done);
    }
    let file = UserRules::of(env)?;
    for PodRule { number, rule, .. } in &gone {
        let rules = read_rules(std::iter::once(rule));
        let text: String = rules.iter().map(short).collect();
        out::line(&format!(
            "rule {number} no longer allowed for {name}: {text}"
        ));
        if file.has(&rules) {
            out::line(&format!(
                "  {} still has this rule: remove it there, too",
                file.shown
            ));
        }
    }
    if gone.is_empty() {
        out::line(&nothing(name));
    }
    Ok(Exit::Done)
}

async fn forget(pods: &Pods, name: &str, which: Forget) -> Result<Vec<PodRule>, Failure> {
    let mut pod = live_as(pods, name, COMMAND, Role::Approver).await?;
    let mut rules = pod.ask(&GetApprovals {}).await?.rules;
    if let Forget::Number(wanted) = which {
        rules.retain(|rule| rule.number == wanted);
        if rules.is_empty() {
            return Err(Failure::new(
                Exit::Usage,
                format!("no rule {wanted} is allowed for {name}"),
            )
            .help(format!("`yoi approve {name} --forget` lists the rules")));
        }
    }
    let numbers = rules.iter().map(|rule| rule.number).collect();
    pod.ask(&ForgetRules {
        rules: numbers,
        cmd_id: cmd_id(),
    })
    .await?;
    Ok(rules)
}

/// From the files of the pod, which need not run.
fn list(json: bool, pods: &Pods, name: &str) -> Result<Exit, Failure> {
    let unread = |error| Failure::new(Exit::Data, format!("{name}: {error}"));
    let rules = match Reader::open(&pods.dir(name)) {
        Err(ReadError::NoSuch(_)) => Vec::new(),
        reader => {
            let reader = reader.map_err(|error| read_failure(name, &error))?;
            Summary::read(&reader, || {})
                .map_err(unread)?
                .state
                .approvals
                .rules
        }
    };
    if json {
        out::json(&json!({ "pod": name, "rules": rules }));
        return Ok(Exit::Done);
    }
    for allowed in &rules {
        out::line(&format!(
            "{:>4}  {}  (approval {})",
            allowed.number, allowed.rule, allowed.approval
        ));
    }
    out::line(&match rules.as_slice() {
        [] => nothing(name),
        _ => format!(
            "`yoi approve {name} --forget=NUMBER` takes back one rule, and `yoi approve {name} --forget=all` all of them"
        ),
    });
    Ok(Exit::Done)
}

fn nothing(name: &str) -> String {
    format!("no rule is allowed for {name}")
}
