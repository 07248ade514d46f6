//! `--allow RULE`: a rule in a few words.

use crate::bad_value::BadValue;
use crate::exit::Help;
use crate::nearest::did_you_mean;
use pod::feature::{FeatureDescriptor, HostCapability};
use pod::permission::{Layer, Rule, RuleDecision};

/// Where such a rule is said to stand.
pub const SOURCE: &str = "--allow";

/// What the words after a tool's name are about.
#[derive(Clone, Copy)]
enum About {
    Programs,
    Hosts,
    Paths,
    Nothing,
}

/// The words of a rule that reads.
pub fn written(text: &str, declared: &[FeatureDescriptor]) -> Result<String, BadValue> {
    rule(text, declared).map(|_| text.to_owned())
}

/// A tool's name and what its calls may be about: a program with its subcommands, a glob of paths, or a host.
pub fn rule(text: &str, declared: &[FeatureDescriptor]) -> Result<Rule, BadValue> {
    let (tool, rest) = text
        .trim()
        .split_once(char::is_whitespace)
        .unwrap_or((text.trim(), ""));
    let rest = rest.trim();
    let plain = Rule::new(tool, RuleDecision::Allow);
    // As rules are shown: a tool that runs programs may be about hosts, too.
    let on = rest.strip_prefix("on ").map(str::trim);
    let rule = match (about(tool, declared)?, on) {
        _ if rest.is_empty() => plain,
        (About::Programs | About::Hosts, Some(host)) => Rule {
            host: Some(host.to_owned()),
            ..plain
        },
        (About::Programs, None) => {
            let (program, listed) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let listed: Vec<String> = listed
                .split(',')
                .map(|name| name.trim().to_owned())
                .collect();
            let any = listed.iter().all(String::is_empty);
            Rule {
                program: Some(program.to_owned()),
                subcommand: (!any).then_some(listed),
                ..plain
            }
        }
        (About::Hosts, None) => Rule {
            host: Some(rest.to_owned()),
            ..plain
        },
        (About::Paths, _) => Rule {
            path: Some(rest.to_owned()),
            ..plain
        },
        (About::Nothing, _) => {
            return Err(BadValue::new(
                format!("a rule for {tool} takes no `{rest}`"),
                Help::RuleExamples(String::new()),
            ));
        }
    };
    match Layer::new(SOURCE, vec![rule.clone()]) {
        Ok(_) => Ok(rule),
        Err(error) => Err(BadValue::new(
            error.problem,
            Help::RuleExamples(String::new()),
        )),
    }
}

/// Whether a tool can have this name.
fn is_name(tool: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&tool.len()) && tool.bytes().all(fits)
}

/// By what the feature of a tool asks for.
fn about(tool: &str, declared: &[FeatureDescriptor]) -> Result<About, BadValue> {
    if tool == "*" {
        return Ok(About::Nothing);
    }
    let Some(feature) = declared.iter().find(|feature| {
        feature
            .declared_tools
            .iter()
            .any(|known| known.name == tool)
    }) else {
        let names: Vec<&str> = declared
            .iter()
            .flat_map(|feature| &feature.declared_tools)
            .map(|tool| tool.name.as_str())
            .collect();
        let meant = did_you_mean(tool, &names);
        if meant.is_empty() && is_name(tool) {
            // Perhaps a tool of a plugin: the configuration says which there are. Rules about its hosts stand there, too.
            return Ok(About::Paths);
        }
        return Err(BadValue::new(
            format!("there is no tool `{tool}`"),
            Help::RuleExamples(meant),
        ));
    };
    let asks = |wanted: fn(&HostCapability) -> bool| {
        feature
            .requested_capabilities
            .iter()
            .any(|request| wanted(&request.capability))
    };
    Ok(match () {
        () if asks(|capability| matches!(capability, HostCapability::Process { .. })) => {
            About::Programs
        }
        () if asks(|capability| matches!(capability, HostCapability::Network { .. })) => {
            About::Hosts
        }
        () if asks(|capability| matches!(capability, HostCapability::ScopedFs { .. })) => {
            About::Paths
        }
        () => About::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_by_what_its_tool_is_about() {
        let cases = [
            ("Bash", "allow Bash"),
            ("Bash git", "allow Bash git"),
            ("  Bash  git  status,diff ", "allow Bash git status,diff"),
            ("Bash git status, diff", "allow Bash git status,diff"),
            ("Bash ./run.sh", "allow Bash ./run.sh"),
            ("Write docs/**", "allow Write on docs/**"),
            ("Read /etc/a b", "allow Read on /etc/a b"),
            ("Grep src", "allow Grep on src"),
            ("Fetch docs.example.org", "allow Fetch on docs.example.org"),
            (
                "Fetch on docs.example.org",
                "allow Fetch on docs.example.org",
            ),
            ("Bash on crates.io", "allow Bash on crates.io"),
            ("Bash on", "allow Bash on"),
            ("*", "allow *"),
            ("acme_find", "allow acme_find"),
            ("acme_find .env", "allow acme_find on .env"),
        ];
        for (text, expected) in cases {
            assert_eq!(
                rule(text, &builtins::declared())
                    .map(|rule| rule.to_string())
                    .as_deref(),
                Ok(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn a_rule_that_cannot_be_read_says_how_it_is_written() {
        let cases = [
            ("", "there is no tool ``"),
            ("Bahs git", "did you mean `Bash`?"),
            ("Bash(git:*)", "there is no tool `Bash(git:*)`"),
            ("Bash git:*", "cannot contain patterns or quotes"),
            ("Bash git push --force", "must be one word"),
            ("Bash git status diff", "must be one word"),
            ("Bash git status,,diff", "0 bytes"),
            ("Write ../x", "never matches"),
            ("Fetch https://x.org/", "`host`"),
            ("* x", "takes no `x`"),
            ("TaskCreate x", "takes no `x`"),
        ];
        for (text, words) in cases {
            let BadValue { message, help } = rule(text, &builtins::declared()).unwrap_err();
            let Help::RuleExamples(meant) = help else {
                panic!("{text}: {help:?}");
            };
            assert!(
                format!("{message} {meant}").contains(words),
                "{text}: {message}, {meant}"
            );
        }
    }
}
