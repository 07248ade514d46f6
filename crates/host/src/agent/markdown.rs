//! Agents of other programs: Markdown with front matter, whose text is the prompt. What has a meaning here is taken, and the
//! rest is told. No link, file or command of it is followed.

use super::{AgentFile, ForeignKeys};
use crate::limits::LimitsConfig;
use crate::plugins::MarkdownParts;
use llm_worker::Effort;

/// Tools of Claude Code that have another name here.
const RENAMED: [(&str, &str); 3] = [("WebFetch", "Fetch"), ("MultiEdit", "Edit"), ("LS", "List")];

/// What an agent is called at most, in characters.
const MAX_NAME: usize = 64;

/// An agent of a Markdown file.
pub(super) struct MarkdownAgent {
    /// None: that of its file.
    pub(super) name: Option<String>,
    pub(super) file: AgentFile,
    pub(super) foreign: ForeignKeys,
}

/// Reads the text of a file.
///
/// # Errors
/// The front matter cannot be read or has no description, or there is no text below it.
pub(super) fn read(text: &str) -> Result<MarkdownAgent, String> {
    let MarkdownParts {
        fields,
        description,
        prompt,
    } = MarkdownParts::read(text)?;
    let mut agent = MarkdownAgent {
        name: fields
            .get("name")
            .filter(|name| is_name(name))
            .map(str::to_owned),
        file: AgentFile {
            description,
            prompt: prompt.to_owned(),
            ..AgentFile::default()
        },
        foreign: ForeignKeys::default(),
    };
    for key in fields.keys() {
        let value = fields.get(key).unwrap_or_default();
        if !agent.takes(key, value) {
            agent.foreign.ignored.push(key.to_owned());
        }
    }
    Ok(agent)
}

/// Whether a name can be typed behind `--agent`.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let count = name.chars().count();
    (1..=MAX_NAME).contains(&count) && !name.starts_with('-') && name.chars().all(fits)
}

impl MarkdownAgent {
    /// Whether a key means something here.
    fn takes(&mut self, key: &str, value: &str) -> bool {
        match key {
            "name" => self.name.is_some(),
            "description" => true,
            "tools" => {
                let tools = list(value);
                // All tools, as without the key.
                let is_all = tools.iter().any(|tool| tool == "*");
                self.file.tools = (!is_all).then(|| tools.iter().map(|tool| here(tool)).collect());
                true
            }
            "disallowedTools" | "disallowed-tools" => {
                // A tool that is refused for some arguments is refused for all.
                let bare =
                    |tool: &String| here(tool.split_once('(').map_or(tool, |(name, _)| name));
                self.foreign
                    .without_tools
                    .extend(list(value).iter().map(bare));
                true
            }
            "skills" => {
                self.file.skills = Some(list(value));
                true
            }
            // Short names mean models of one vendor; which, nothing here knows.
            "model" if value.contains('/') || value == "offline" => {
                self.file.model = Some(value.to_owned());
                true
            }
            "model" => value == "inherit",
            "effort" => {
                self.file.effort = Effort::named(value);
                self.file.effort.is_some()
            }
            "maxTurns" => {
                let steps = value.parse().ok().filter(|steps| *steps > 0);
                self.file.limits = LimitsConfig {
                    max_steps: steps,
                    ..LimitsConfig::default()
                };
                steps.is_some()
            }
            _ => false,
        }
    }
}

/// A tool by its name here.
fn here(tool: &str) -> String {
    let renamed = RENAMED.iter().find(|(there, _)| *there == tool);
    renamed.map_or(tool, |(_, here)| here).to_owned()
}

/// `a, b(c, d)` or `[a, b]`: its parts, without quotes.
fn list(text: &str) -> Vec<String> {
    let text = text
        .strip_prefix('[')
        .map_or(text, |text| text.trim_end_matches(']'));
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts
        .map(|part| part.trim().trim_matches(['"', '\'']).to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_here_is_taken_and_the_rest_is_told() {
        let text = "---\nname: code-reviewer\ndescription: Reviews.\ntools: Read, WebFetch, Bash(git log:*, ls), Grep\n\
                    disallowedTools: [\"Write\", Bash(rm:*)]\nmodel: sonnet\neffort: high\nmaxTurns: 7\n\
                    hooks:\n  PreToolUse: []\ncolor: red\n---\n\nYou review {this}.\n";
        let agent = read(text).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(agent.name.as_deref(), Some("code-reviewer"));
        let AgentFile {
            prompt,
            tools,
            effort,
            model,
            limits,
            ..
        } = agent.file;
        assert_eq!(prompt, "You review {this}.");
        let named = ["Read", "Fetch", "Bash(git log:*, ls)", "Grep"].map(str::to_owned);
        assert_eq!(tools.as_deref(), Some(named.as_slice()));
        assert_eq!(
            (effort, model, limits.max_steps),
            (Some(Effort::High), None, Some(7))
        );
        assert_eq!(agent.foreign.without_tools, ["Write", "Bash"]);
        assert_eq!(agent.foreign.ignored, ["color", "hooks", "model"]);
    }

    #[test]
    fn a_name_that_nobody_can_type_is_that_of_the_file() {
        for (line, name) in [
            ("name: a b", None),
            ("name: ../up", None),
            ("name: -x", None),
            ("name: größe_1", Some("größe_1")),
            ("tools: '*'", None),
        ] {
            let text = format!("---\ndescription: d\n{line}\n---\np");
            let agent = read(&text).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(agent.name.as_deref(), name, "{line}");
            assert_eq!(agent.file.tools, None, "{line}");
            let told = usize::from(line.starts_with("name") && name.is_none());
            assert_eq!(agent.foreign.ignored.len(), told, "{line}");
        }
    }

    #[test]
    fn a_file_without_a_description_or_a_text_is_no_agent() {
        for (text, why) in [
            ("You review.\n", "no description"),
            ("---\nname: a\n---\nx", "no description"),
            ("---\ndescription: d\n---\n \n", "no prompt"),
            ("---\ndescription: d\n", "does not end"),
        ] {
            let read = read(text).map(|agent| agent.name);
            assert!(read.as_ref().is_err_and(|is| is.contains(why)), "{read:?}");
        }
    }
}
