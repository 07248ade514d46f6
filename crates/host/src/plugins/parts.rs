//! What a package has beside features: skills, commands, agents and MCP servers, each a file that others' programs read, too.
//! Read together with the digest of the content, so that a grant is for these words. Runs nothing.

use super::content;
use super::package::FoundPackage;
use crate::plain_file;
use builtins::commands::{self, command};
use builtins::front_matter::FrontMatter;
use builtins::skills::{self, Origin, SkillEntry};
use plugin::{Content, Layout, PackageServer};
use pod::feature::CommandDeclaration;
use std::path::{Path, PathBuf};

/// Hooks of Claude Code.
const HOOKS: &str = "hooks/";

/// The parts of one package.
#[derive(Clone, Debug, Default)]
pub struct PackageParts {
    /// Of the content that they are a part of.
    pub digest: String,
    /// Their directories are relative to the package.
    pub skills: Vec<SkillEntry>,
    /// As `/PACKAGE:NAME`.
    pub commands: Vec<CommandDeclaration>,
    pub agents: Vec<PackageAgent>,
    pub servers: Vec<PackageServer>,
    pub has_hooks: bool,
    /// What cannot be read costs nothing else.
    pub problems: Vec<String>,
}

/// The file of an agent of a package.
#[derive(Clone, Debug)]
pub struct PackageAgent {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// The form of an agent's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentForm {
    Toml,
    Markdown,
}

impl AgentForm {
    /// By the ending of its name; none for other files.
    pub fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?;
        let is = |known: &str| ending.eq_ignore_ascii_case(known);
        let form = is("toml").then_some(Self::Toml);
        form.or_else(|| is("md").then_some(Self::Markdown))
    }
}

/// What a Markdown file must have to describe an agent.
pub(crate) struct MarkdownParts<'a> {
    pub(crate) fields: FrontMatter,
    pub(crate) description: String,
    pub(crate) prompt: &'a str,
}

impl<'a> MarkdownParts<'a> {
    /// # Errors
    /// The front matter cannot be read or has no description, or there is no text below it.
    pub(crate) fn read(text: &'a str) -> Result<Self, String> {
        let (fields, body) = FrontMatter::read(text)?;
        let description = fields.get("description");
        let description = description.ok_or("it has no description in front matter")?;
        let prompt = body.trim();
        if prompt.is_empty() {
            return Err("it has no prompt below its front matter".to_owned());
        }
        Ok(Self {
            description: description.to_owned(),
            fields,
            prompt,
        })
    }
}

/// What a file of a package is.
enum Part<'a> {
    Skill(&'a Path),
    Command(String),
    Agent(&'a Path),
    Servers(Layout),
    Hooks,
}

impl PackageParts {
    pub(super) fn read(package: &FoundPackage) -> Result<Self, String> {
        let layout = package
            .manifest
            .as_ref()
            .ok()
            .and_then(|manifest| manifest.layout);
        let layout = layout.unwrap_or(Layout::AgentPlugin);
        let (content, files) =
            content::with_files(&package.dir, |path| part(path, layout).is_some())?;
        let content: Content = package.with_manifest(content)?;
        let mut parts = Self {
            digest: content.digest(),
            ..Self::default()
        };
        let origin = Origin::Package(package.name.clone());
        for (path, bytes) in &files {
            let Some(part) = part(path, layout) else {
                continue;
            };
            if let Err(why) = parts.take(part, bytes, package, &origin) {
                let path = authority::text::escape_line(path);
                parts
                    .problems
                    .push(format!("{path}: {why}; it is left out"));
            }
        }
        Ok(parts)
    }

    fn take(
        &mut self,
        part: Part<'_>,
        bytes: &[u8],
        package: &FoundPackage,
        origin: &Origin,
    ) -> Result<(), String> {
        let text = |most: u64| match bytes.len() as u64 {
            length if length > most => Err(format!("it has more than {} KiB", most / 1024)),
            _ => plain_file::text(bytes).map_err(|why| format!("it {why}")),
        };
        match part {
            Part::Hooks => self.has_hooks = true,
            Part::Skill(dir) => {
                let (skill, odd) = SkillEntry::read(text(skills::MAX_FILE)?, dir, origin.clone())?;
                self.problems
                    .extend(odd.map(|odd| format!("{}: {odd}", authority::escape(dir))));
                self.skills.push(skill);
            }
            Part::Command(name) => {
                let name = format!("{}:{name}", package.name);
                self.commands
                    .push(command(&name, text(commands::MAX_FILE)?, origin)?);
            }
            Part::Agent(path) => {
                let text = text(commands::MAX_FILE)?;
                // More is known of it when it is used.
                if AgentForm::of(path) == Some(AgentForm::Markdown) {
                    MarkdownParts::read(&text.replace("\r\n", "\n"))?;
                }
                self.agents.push(PackageAgent {
                    path: package.dir.join(path),
                    bytes: bytes.to_vec(),
                });
            }
            Part::Servers(layout) => {
                let (servers, problems) = layout.read_servers(text(skills::MAX_FILE)?)?;
                self.servers = servers;
                self.problems.extend(problems);
            }
        }
        Ok(())
    }

    /// What each would do, a line for people each.
    pub fn lines(&self) -> Vec<String> {
        let skills = self.skills.iter().map(|skill| {
            let about = authority::text::escape_strict(&skill.description);
            format!(
                "skill {}: the model reads it when it calls Skill; the system prompt has: {about}",
                skill.name
            )
        });
        let commands = self
            .commands
            .iter()
            .map(|command| format!("command /{}: its text becomes your input", command.name));
        let agents = self.agents.iter().map(|agent| {
            let file = agent.path.file_name().unwrap_or_default();
            let file = authority::escape(Path::new(file));
            format!(
                "agent {file}: the system prompt has its text when you start a pod as this agent"
            )
        });
        let servers = self
            .servers
            .iter()
            .map(|server| format!("{server}: listed, not started"));
        let hooks = self
            .has_hooks
            .then(|| "hooks of Claude Code: not supported, nothing of them runs".to_owned());
        skills
            .chain(commands)
            .chain(agents)
            .chain(servers)
            .chain(hooks)
            .collect()
    }

    /// The skills in a copy of the package.
    pub fn skills_in(&self, copy: &Path) -> impl Iterator<Item = SkillEntry> {
        self.skills.iter().map(move |skill| SkillEntry {
            dir: copy.join(&skill.dir),
            ..skill.clone()
        })
    }
}

fn part(path: &str, layout: Layout) -> Option<Part<'_>> {
    let parts: Vec<&str> = path.split('/').collect();
    let name = |file: &str| file.strip_suffix(".md").map(str::to_owned);
    match parts.as_slice() {
        ["skills", _, skills::FILE] => Path::new(path).parent().map(Part::Skill),
        ["commands", file] => name(file).map(Part::Command),
        ["commands", dir, file] => name(file).map(|name| Part::Command(format!("{dir}:{name}"))),
        ["agents", file] => AgentForm::of(Path::new(file)).map(|_| Part::Agent(Path::new(path))),
        [file] if *file == layout.servers() => Some(Part::Servers(layout)),
        _ if path.starts_with(HOOKS) => Some(Part::Hooks),
        _ => None,
    }
}
