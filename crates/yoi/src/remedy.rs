//! Next steps in words: the commands, flags, files and tools that they mean.

use builtins::PathRemedy as Refused;
use host::agent::OWN;
use host::exit::{Failure, Help};
use host::words::{READ_OUTPUT, ReadOnlyCause, Words};
use pod::permission::{AlternativeRemedy, Remedy, RuleRemedy};
use std::path::Path;

/// These words, for the host.
pub(crate) const WORDS: Words = Words {
    help,
    remedy: |cause| match cause {
        ReadOnlyCause::Sandbox => |remedy| words(remedy, "with --sandbox workspace-write"),
        ReadOnlyCause::Flag => |remedy| words(remedy, "without --read-only"),
        ReadOnlyCause::TooWide => |remedy| words(remedy, "in a project directory"),
    },
    path: in_tools,
    allow,
    model: model_terms,
};

macro_rules! texts {
    ($of:expr; $($pattern:pat => $text:literal $(, $value:expr)*;)*) => {
        match $of { $($pattern => format!($text $(, $value)*),)* }
    };
}

/// A failure with its next step, in one text.
pub(crate) fn in_one(failure: &Failure) -> String {
    let next = failure.help.as_ref();
    let next = next.map_or_else(String::new, |next| format!("; {}", help(next)));
    format!("{}{next}", failure.message)
}

/// The next step after a failure.
pub(crate) fn help(help: &Help) -> String {
    texts! { help;
        Help::Text(text) => "{text}";
        Help::ListPods => "`yoi ls --all` lists all pods";
        Help::RunOrRemove(pod) => "`yoi run --pod {pod} \"PROMPT\"` runs a prompt in it; `yoi rm {pod}` moves it to the trash";
        Help::Salvage(pod) => "`yoi verify {pod} --salvage NEW` copies the intact records into the pod NEW";
        Help::StopOwner(pod) => "`yoi stop {pod}` stops the process that uses it";
        Help::Continue(first, pod) => "{first}, then run `yoi run --pod {pod} \"continue\"`; all records on disk are kept";
        Help::AskForLess(pod) => "ask for less at a time, then continue with --pod {pod}";
        Help::WritableStateDir { local: false } => "set XDG_STATE_HOME to a writable directory, or use --ephemeral";
        Help::WritableStateDir { local: true } => "set XDG_STATE_HOME to a writable local directory, or use --ephemeral";
        Help::GrantAgain => "inspect it, remove it, then grant again with `yoi grant`";
        Help::GrantPluginAgain => "inspect it; make it yours alone with `chmod go-w`, or remove it and grant again with `yoi grant`";
        Help::AddServerAgain => "make it yours alone with `chmod go-w`, or remove it with `yoi mcp remove` and add it again";
        Help::RevokeGrants => "`yoi revoke` removes grants that are not needed";
        Help::GrantForms => "docs/CONFIGURATION.md has an example of each grant; `yoi config schema` prints their forms";
        Help::GrantPlugins => "grant the plugins with `yoi grant`, fix or remove them, or start without this setting or in another sandbox";
        Help::RequiredPlugin(by) => "`yoi plugin list` shows each plugin and `yoi grant` those to grant, or delete `required = true` in {by}";
        Help::AdoptLostRules => "grant it again (`yoi grant` lists it), take its grant back (`yoi revoke`), or accept it with --adopt";
        Help::WriteModel(Some(meant)) => "did you mean `{meant}`? `yoi models` lists the models";
        Help::WriteModel(None) => "write PROVIDER/MODEL, such as ollama/qwen3, or offline, scripted:FILE or record:MODEL; `yoi models` lists the models";
        Help::ListFeatures => "`yoi features` lists the ids";
        Help::ListAgents(Some(meant)) => "did you mean `{meant}`? `yoi agents` lists the agents";
        Help::ListAgents(None) => "`yoi agents` lists the agents";
        Help::PlanFeatures => "`yoi features --plan` shows the features";
        Help::ChooseModel => "name the model with -m, or read the file and copy it to the directory `{OWN}` beside your config.toml";
        Help::AttachFeature(id) => "switch it on with --with {id}, or read the file and copy it to the directory `{OWN}` beside your config.toml";
        Help::PodOfNoAgent => "omit --agent, or use another name with --pod";
        Help::AgentChanged { pod, file } => "read {file}, then accept it: `yoi run --pod {pod} --agent '{file}' --adopt \"continue\"`";
        Help::OtherAgent { pod, file } => "go on as the agent: `yoi run --pod {pod} --agent '{file}' \"continue\"`; without it, with other tools and limits: add --adopt";
        Help::AdoptDrift(pod) => "undo that, or accept it: `yoi run --pod {pod} --adopt \"continue\"` or `yoi start {pod} --adopt`";
        Help::StartByCommand => "only `yoi start` uses this command; run `yoi start NAME`";
        Help::OwnConfigFile => "delete the line; `yoi config path` prints where your own configuration is";
        Help::StartRun => "write yoi run \"PROMPT\" to start a new run";
        Help::ScriptFile => "choose an existing file with -m scripted:FILE";
        Help::RuleExamples(before) => "{before}examples: 'Write docs/**', 'Fetch docs.example.org', 'Bash on crates.io'; with --sandbox off also 'Bash ls', 'Bash git status,diff'";
        Help::AttachmentExamples => "examples: builtin:loop-detect, 'builtin:loop-detect={{\"window\": 4}}'; `yoi features` lists the ids";
        Help::SetKey { names, or_other_model: false } => "set {names}";
        Help::SetKey { names, or_other_model: true } => "set {names}, or {OTHER_MODEL}";
        Help::RemainingChanges(pod) => "`yoi diff {pod}` shows the remaining changes; undo them by hand";
    }
}

/// What it calls the ways out of a failed request to a model.
pub(crate) fn model_terms(proxy: String) -> provider::HelpTerms {
    provider::HelpTerms {
        other_model: OTHER_MODEL,
        model_list: "yoi models",
        full_context: FULL_CONTEXT,
        proxy,
    }
}

/// The way out where a model is the cause.
const OTHER_MODEL: &str = "choose another model with -m";

/// The ways out of a context that is full for a model; `NAME` is the pod's.
pub(crate) const FULL_CONTEXT: &str = "`yoi compact NAME --drop-turns` continues a live pod without its oldest turns; or start a new \
     pod, or choose a model with a larger context (-m)";

/// A help text with the pod's own name in its commands.
pub(crate) fn of_pod(help: &str, name: Option<&str>) -> String {
    let Some(name) = name else {
        return help.to_owned();
    };
    help.replace("compact NAME ", &format!("compact {name} "))
}

/// The flag that allows what a rule allows, quoted for a shell.
pub(crate) fn allow(tool: &str, about: Option<&str>) -> String {
    match about {
        Some(about) => format!("--allow '{tool} {about}'"),
        None => format!("--allow {tool}"),
    }
}

/// A path as an argument of a shell command.
pub(crate) fn argument(path: &Path) -> String {
    let text = authority::escape(path);
    let plain = text
        .chars()
        .all(|c| c.is_alphanumeric() || "/._-+,@:".contains(c));
    if plain {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// What would allow a path that a tool refused: a clause of its error.
pub(crate) fn in_tools(remedy: Refused<'_>) -> String {
    match remedy {
        Refused::AddDir(dir) => format!("the flag `--add-dir {dir}` would allow it"),
        Refused::AddWriteDir(dir) => format!("the flag `--add-write-dir {dir}` would allow it"),
        Refused::LeaveReadOnly => {
            "running without `--read-only`, or with `--add-write-dir DIR`, would allow it"
                .to_owned()
        }
    }
}

/// What a person can do about a pod that has used its budget. None: a run that is not kept.
pub(crate) fn more_budget(name: Option<&str>, live: bool) -> String {
    let higher = "raise the limit under [limits.pod] in your configuration";
    match name {
        Some(name) if live => format!(
            "`yoi resume {name} --more` allows as much again; or {higher} and send the process a HUP signal, then \
             `yoi resume {name}`; `yoi stop {name}` stops the pod"
        ),
        Some(name) => {
            format!(
                "{higher}, or allow as much again: `yoi start {name}`, then `yoi resume {name} --more`"
            )
        }
        None => higher.to_owned(),
    }
}

/// A remedy in words; `leave` says how a run is started that may write.
fn words(remedy: &Remedy, leave: &str) -> String {
    texts! { remedy;
        Remedy::AddDir(dir) => "to allow this call, start yoi with --add-dir {}", argument(dir);
        Remedy::AddWriteDir(dir) => "to allow this call, start yoi with --add-write-dir {}", argument(dir);
        Remedy::LeaveReadOnly => "to allow this call, start yoi {leave}";
        Remedy::AskPerson => "only a person can allow this call, each time: `yoi start`, or `yoi run` at a terminal, asks; or start yoi with --sandbox off";
        Remedy::FixPath => "use a path that exists or can be created";
        Remedy::ChangeRule => "to allow this call, change that rule; a more specific rule cannot override it";
        Remedy::RaiseCost => "raise --max-cost, or choose another model with -m";
        Remedy::RaiseTokens => "raise --max-tokens";
        Remedy::RaiseTime => "raise --max-wall";
        Remedy::RaisePodBudget => "raise the limit under [limits.pod] in your configuration, or allow as much again with `yoi resume --more`";
        Remedy::PageOutput(handle) => "{READ_OUTPUT} {{\"handle\":\"{handle}\"}} reads the rest";
        Remedy::WholeOutput(handle) => "{READ_OUTPUT} {{\"handle\":\"{handle}\"}} reads it as it came";
        Remedy::HaveShell => "`yoi features` shows what left out `builtin:shell` (--without, an agent file or the configuration); start the pod without that";
        Remedy::Rule { rules, alternative } => "{}", by_rules(rules, *alternative);
    }
}

/// Rules that would allow a call.
fn by_rules(rules: &[RuleRemedy], alternative: AlternativeRemedy) -> String {
    let options = rules
        .iter()
        .map(|RuleRemedy { tool, about }| allow(tool, about.as_deref()))
        .collect::<Vec<_>>();
    let mut start = format!("to allow this call, start yoi with {}", options.join(" "));
    if let Some(rule) = rules
        .iter()
        .find(|rule| rule.about.is_none() && alternative == AlternativeRemedy::Secret)
    {
        start.push_str(&format!(" (which allows {} on every file)", rule.tool));
    }
    let such = if rules.len() == 1 {
        "such a rule"
    } else {
        "such rules"
    };
    let written = format!("or add {such} under [[permissions.rules]] in your configuration");
    match alternative {
        AlternativeRemedy::Nothing => format!("{start}, {written}"),
        AlternativeRemedy::Secret => {
            format!(
                "{start}, {written} (a command that does not name the file can read it even without such a rule)"
            )
        }
        AlternativeRemedy::AskingRule => format!("{start}, or change that rule"),
        AlternativeRemedy::Sandbox => format!("{start}, or with --sandbox workspace-write"),
        AlternativeRemedy::Kernel => {
            format!("this kernel cannot confine commands (see `yoi doctor`); {start}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_remedy_names_its_flag() {
        let rule = |about: Option<&str>, alternative| {
            let rule = RuleRemedy {
                tool: "Bash".to_owned(),
                about: about.map(str::to_owned),
            };
            (WORDS.remedy)(ReadOnlyCause::Sandbox)(&Remedy::Rule {
                rules: vec![rule],
                alternative,
            })
        };
        let words = (WORDS.remedy)(ReadOnlyCause::Sandbox);
        let start = "to allow this call, start yoi with";
        let written = "or add such a rule under [[permissions.rules]] in your configuration";
        let cases = [
            (words(&Remedy::AddDir("/etc".into())), format!("{start} --add-dir /etc")),
            (words(&Remedy::AddWriteDir("/x's y".into())), format!("{start} --add-write-dir '/x'\\''s y'")),
            (words(&Remedy::LeaveReadOnly), format!("{start} --sandbox workspace-write")),
            (
                (WORDS.remedy)(ReadOnlyCause::Flag)(&Remedy::LeaveReadOnly),
                "to allow this call, start yoi without --read-only".to_owned(),
            ),
            (
                (WORDS.remedy)(ReadOnlyCause::TooWide)(&Remedy::LeaveReadOnly),
                "to allow this call, start yoi in a project directory".to_owned(),
            ),
            (
                words(&Remedy::AskPerson),
                "only a person can allow this call, each time: `yoi start`, or `yoi run` at a terminal, asks; or start \
                 yoi with --sandbox off"
                    .to_owned(),
            ),
            (words(&Remedy::FixPath), "use a path that exists or can be created".to_owned()),
            (
                words(&Remedy::ChangeRule),
                "to allow this call, change that rule; a more specific rule cannot override it".to_owned(),
            ),
            (words(&Remedy::RaiseCost), "raise --max-cost, or choose another model with -m".to_owned()),
            (words(&Remedy::RaiseTokens), "raise --max-tokens".to_owned()),
            (words(&Remedy::RaiseTime), "raise --max-wall".to_owned()),
            (words(&Remedy::PageOutput("o-1".to_owned())), "ReadOutput {\"handle\":\"o-1\"} reads the rest".to_owned()),
            (words(&Remedy::WholeOutput("o-1".to_owned())), "ReadOutput {\"handle\":\"o-1\"} reads it as it came".to_owned()),
            (
                words(&Remedy::HaveShell),
                "`yoi features` shows what left out `builtin:shell` (--without, an agent file or the configuration); start \
                 the pod without that"
                    .to_owned(),
            ),
            (
                rule(Some("git status"), AlternativeRemedy::Nothing),
                format!("{start} --allow 'Bash git status', {written}"),
            ),
            (
                rule(None, AlternativeRemedy::Secret),
                format!(
                    "{start} --allow Bash (which allows Bash on every file), {written} (a command that does not name the file can read \
                     it even without such a rule)"
                ),
            ),
            (rule(None, AlternativeRemedy::AskingRule), format!("{start} --allow Bash, or change that rule")),
            (
                rule(None, AlternativeRemedy::Sandbox),
                format!("{start} --allow Bash, or with --sandbox workspace-write"),
            ),
            (
                rule(None, AlternativeRemedy::Kernel),
                format!("this kernel cannot confine commands (see `yoi doctor`); {start} --allow Bash"),
            ),
        ];
        let in_tools = [
            (
                Refused::AddDir("/x y"),
                "the flag `--add-dir /x y` would allow it",
            ),
            (
                Refused::AddWriteDir("/x"),
                "the flag `--add-write-dir /x` would allow it",
            ),
            (
                Refused::LeaveReadOnly,
                "running without `--read-only`, or with `--add-write-dir DIR`, would allow it",
            ),
        ];
        for (remedy, expected) in in_tools {
            assert_eq!(super::in_tools(remedy), expected);
        }
        for (said, expected) in cases {
            assert_eq!(said, expected);
        }
    }
}
