//! Rules about programs. Another spelling of a command must not avoid a refusal and must not gain an allowance, so the
//! two match differently. Do not depend on paths.

use super::rule::RuleDecision;
use authority::text::escape_line;
use shell::{Part, Redirection, base_name, is_named, is_system_path};

/// Most subcommands of one rule.
const MAX_SUBCOMMANDS: usize = 64;

/// Longest name, in bytes.
const MAX_NAME: usize = 256;

/// The commands that a rule is about: a program, and some or all of its subcommands.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    program: String,
    /// Empty: any arguments.
    subcommands: Vec<String>,
}

impl Programs {
    pub(super) fn new(program: &str, subcommands: Option<&[String]>) -> Result<Self, String> {
        plain("program", program)?;
        if program.ends_with('/')
            || matches!(base_name(program), "." | "..") && program.contains('/')
        {
            return Err(format!(
                "`program` = `{program}` is not the name of a program"
            ));
        }
        let listed = subcommands.unwrap_or_default();
        if subcommands.is_some() && listed.is_empty() {
            return Err(
                "`subcommand` is empty and never matches; omit it to match every subcommand".into(),
            );
        }
        if listed.len() > MAX_SUBCOMMANDS {
            return Err(format!(
                "`subcommand` names {}; at most {MAX_SUBCOMMANDS} are read",
                listed.len()
            ));
        }
        for subcommand in listed {
            plain("subcommand", subcommand)?;
            if subcommand.starts_with(['-', '+']) {
                return Err(format!(
                    "`subcommand` = `{subcommand}` never matches: a subcommand is the first argument that is not an option"
                ));
            }
        }
        Ok(Self {
            program: program.to_owned(),
            subcommands: listed.to_vec(),
        })
    }

    /// An allowance matches only if everything in a part is known and harmless. A refusal or a question matches
    /// whatever may be the program, and opaque parts.
    pub(super) fn hits(&self, decision: RuleDecision, part: &Part) -> bool {
        match decision {
            RuleDecision::Allow => self.allows(part),
            RuleDecision::Ask | RuleDecision::Deny => self.may_be(part),
        }
    }

    fn allows(&self, part: &Part) -> bool {
        let Some(program) = part.program.as_ref().and_then(|word| word.literal()) else {
            return false;
        };
        let known = part.opaque.is_none() && part.assignments.is_empty();
        let called = program == self.program
            || (is_system_path(program) && base_name(program) == self.program);
        let subcommand = || {
            part.subcommand()
                .certain
                .is_some_and(|found| self.subcommands.iter().any(|s| s == found))
        };
        known
            && called
            && !part.redirections.iter().any(Redirection::writes)
            && (self.subcommands.is_empty() || subcommand())
    }

    fn may_be(&self, part: &Part) -> bool {
        let is_it = |name: &str| is_named(name, base_name(&self.program));
        let wraps =
            self.subcommands.is_empty() && part.wrappers.iter().any(|wrapper| is_it(wrapper));
        let subcommand = || {
            let found = part.subcommand();
            found.hidden
                || found
                    .possible
                    .iter()
                    .any(|possible| self.subcommands.iter().any(|s| s == possible))
        };
        let called = || {
            part.program_name().is_some_and(is_it) && (self.subcommands.is_empty() || subcommand())
        };
        let also = || part.also.iter().any(|also| self.may_be(also));
        part.opaque.is_some() || wraps || called() || also()
    }
}

/// The narrowest rule that allows a part: `git status`, `ls`. None if no rule about a program can.
pub(super) fn allowing(part: &Part) -> Option<String> {
    let program = part.program.as_ref()?.literal()?;
    let program = if is_system_path(program) {
        base_name(program)
    } else {
        program
    };
    let subcommand = part
        .subcommand()
        .certain
        .filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
    let with = subcommand.map(|subcommand| [subcommand.to_owned()]);
    let named = |listed: Option<&[String]>| {
        Programs::new(program, listed).is_ok_and(|rule| rule.allows(part))
    };
    match &with {
        Some(listed) if named(Some(listed)) => Some(format!("{program} {}", listed.concat())),
        Some(_) | None if named(None) => Some(program.to_owned()),
        Some(_) | None => None,
    }
}

fn plain(key: &str, text: &str) -> Result<(), String> {
    let shown = escape_line(text);
    if text.is_empty() || text.len() > MAX_NAME {
        return Err(format!(
            "`{key}` has {} bytes; expected 1 to {MAX_NAME}",
            text.len()
        ));
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("`{key}` must be one word, not `{shown}`"));
    }
    if text.contains(|c: char| "*?[]{}$'\"\\;&|<>()`~".contains(c)) {
        let what = if key == "program" {
            "the name of a program"
        } else {
            "a subcommand"
        };
        return Err(format!(
            "`{shown}` never matches: {what} cannot contain patterns or quotes"
        ));
    }
    Ok(())
}
