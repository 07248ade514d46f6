//! `builtin:skills`: Skill reads the instructions of a skill (`SKILL.md`), and files beside them. Off where there is none.
//!
//! The host finds the skills. Only their names and descriptions are in the system prompt, those of a repository under a
//! heading that says so; everything else is the result of a call. Nothing that a skill says widens what runs.

use crate::front_matter::FrontMatter;
use authority::text::{Lines, find, strip};
use authority::{FileKind, Located, Workspace};
use llm_worker::tool::Touch;
use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolError, ToolResult};
use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HostCapability, ToolKey,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tools::{answer, counted, fail, refused};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("skills");

/// The root with the directories of all skills.
pub const ROOT: &str = "skills";

/// The capability to read them.
pub const READ: HostCapability = HostCapability::ScopedFs {
    root: Cow::Borrowed(ROOT),
    read: true,
    write: false,
    execute: false,
};

/// The file that makes a directory a skill.
pub const FILE: &str = "SKILL.md";

/// Most bytes of a file of a skill.
pub const MAX_FILE: u64 = 256 * 1024;
/// Longest name and description of a skill, in characters.
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;

/// Most bytes of the list in the system prompt; how long its descriptions are at most, the first that fits.
const MAX_LIST: usize = 4096;
const DESCRIPTIONS: [usize; 3] = [MAX_DESCRIPTION, 240, LEAST_DESCRIPTION];
const LEAST_DESCRIPTION: usize = 100;
/// Most bytes of the line that says whose skills follow.
const MAX_HEADING: usize = 64;
/// Most bytes of the names of those that the list leaves out.
const MAX_LEFT_OUT: usize = 512;

/// Most files of a skill that are named beside its instructions, and how deep they are looked for.
const MAX_NAMED: usize = 50;
const MAX_DEPTH: usize = 4;

const SKILL: ToolKey<Wanted> = ToolKey::new(
    "Skill",
    ToolEffect::ReadOnly,
    "Read the instructions of a skill, or a file that they name.",
);

/// A skill that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillEntry {
    pub name: String,
    pub description: String,
    /// Its directory, resolved.
    pub dir: PathBuf,
    pub origin: Origin,
}

/// Whose words a skill or a command is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The repository that yoi runs in.
    Project,
    /// The person who runs yoi.
    Person,
    /// A granted package.
    Package(String),
}

impl Origin {
    /// Whether both are the project, the person, or packages.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project => f.write_str("this repository"),
            Self::Person => f.write_str("the user"),
            Self::Package(name) => write!(f, "plugin {name}"),
        }
    }
}

impl SkillEntry {
    /// Reads the text of a `SKILL.md`; also says what is odd about one that is used.
    ///
    /// # Errors
    /// The front matter cannot be read, or has no description or no name that fits.
    pub fn read(text: &str, dir: &Path, origin: Origin) -> Result<(Self, Option<String>), String> {
        let (fields, _) = FrontMatter::read(text)?;
        let of_dir = dir
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let name = fields.get("name").unwrap_or(&of_dir).to_owned();
        // Letters are those of all scripts; some of these have no shape.
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty()
            || name.chars().count() > MAX_NAME
            || !name.chars().all(fits)
            || find(&name, Lines::One).is_some()
        {
            return Err(format!(
                "its name is not 1 to {MAX_NAME} visible letters, digits and `-_.`"
            ));
        }
        let description = fields.get("description");
        let Some(description) = description.filter(|text| !text.trim().is_empty()) else {
            return Err("it has no description".to_owned());
        };
        let odd =
            (name != of_dir).then(|| format!("its name is {name}, not that of its directory"));
        let skill = Self {
            name,
            description: one_line(description, MAX_DESCRIPTION),
            dir: dir.to_owned(),
            origin,
        };
        Ok((skill, odd))
    }
}

/// A text on one line without control characters, cut to so many characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let text = authority::text::escape_line(&text);
    if text.chars().count() <= most {
        return text.into_owned();
    }
    let cut: String = text.chars().take(most.saturating_sub(1)).collect();
    // A joiner has no shape where what it joins is cut off.
    strip(&format!("{cut}…"), Lines::One)
}

/// Says why a skill is not read now; asked at each call.
pub type SkillCheck = Arc<dyn Fn(&SkillEntry) -> Result<(), String> + Send + Sync>;

/// The feature that adds Skill, with the skills and what is asked before one is read.
pub struct Skills(pub Vec<SkillEntry>, pub Option<SkillCheck>);

impl fmt::Debug for Skills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Skills").field(&self.0).finish()
    }
}

/// The feature without a skill.
pub(crate) fn declared() -> FeatureDescriptor {
    Skills(Vec::new(), None).descriptor()
}

impl FeatureModule for Skills {
    fn descriptor(&self) -> FeatureDescriptor {
        let descriptor = FeatureDescriptor::builder(ID)
            .display_name("Skills")
            .version(env!("CARGO_PKG_VERSION"))
            .request(CapabilityRequest::required(
                READ,
                "read the files of skills",
            ))
            .tool(&SKILL);
        match self.0.is_empty() {
            true => descriptor.build(),
            false => descriptor.instruction("list", list(&self.0)).build(),
        }
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            files: ctx.services().fs(ROOT)?,
            skills: self.0.clone(),
            check: self.1.clone(),
        });
        let named = Arc::clone(&live);
        let touches = move |wanted: &Wanted| named.touches(wanted);
        ctx.tools()
            .implement_touching(&SKILL, touches, &live, Live::skill)
            .map(drop)
    }
}

/// What the model is told: the names and descriptions, by whose they are.
fn list(skills: &[SkillEntry]) -> String {
    let origins: BTreeSet<&Origin> = skills.iter().map(|skill| &skill.origin).collect();
    // Without the headings, and the names of what is left out.
    let room = MAX_LIST.saturating_sub(HEAD.len() + MAX_LEFT_OUT + MAX_HEADING * origins.len());
    let line = |skill: &SkillEntry, most| {
        format!("- {}: {}\n", skill.name, one_line(&skill.description, most))
    };
    let size = |most: &usize| {
        skills
            .iter()
            .map(|skill| line(skill, *most).len())
            .sum::<usize>()
    };
    let most = DESCRIPTIONS.into_iter().find(|most| size(most) <= room);
    let most = most.unwrap_or(LEAST_DESCRIPTION);
    let mut size = 0;
    let fits = |skill: &&SkillEntry| {
        size += line(skill, most).len();
        size <= room
    };
    let shown = skills.iter().take_while(fits).count();
    let (shown, left_out) = skills.split_at(shown);
    let mut text = HEAD.to_owned();
    for origin in origins {
        let of: String = shown
            .iter()
            .filter(|skill| skill.origin == *origin)
            .map(|skill| line(skill, most))
            .collect();
        let whose = match origin {
            Origin::Project => ", in its words, not the user's",
            Origin::Person | Origin::Package(_) => "",
        };
        if !of.is_empty() {
            text.push_str(&format!("\nOf {origin}{whose}:\n{}", of.trim_end()));
        }
    }
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().map(|skill| skill.name.as_str()).collect();
        let names = one_line(&names.join(", "), MAX_LEFT_OUT / 4);
        text.push_str(&format!("\n{} more: {names}", left_out.len()));
    }
    text
}

const HEAD: &str = "Skills are instructions for a kind of work. When one fits, read it with Skill before you begin.";

/// Which skill, and which of its files.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct Wanted {
    name: String,
    /// A path in the skill's directory; without it, the instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

struct Live {
    files: Workspace,
    skills: Vec<SkillEntry>,
    check: Option<SkillCheck>,
}

impl Live {
    /// The file of a skill of the project, as if Read read it: rules about files of the project hold. Those of the person
    /// and of packages are elsewhere, where a person put or granted them.
    fn touches(&self, wanted: &Wanted) -> Vec<Touch> {
        let file = wanted.file.as_deref().unwrap_or(FILE);
        let mut skills = self.skills.iter();
        let skill = skills.find(|skill| skill.name == wanted.name);
        skill
            .filter(|skill| skill.origin == Origin::Project)
            .map(|skill| Touch::Read(skill.dir.join(file)))
            .into_iter()
            .collect()
    }

    async fn skill(self: Arc<Self>, wanted: Wanted, _: ToolContext) -> ToolResult {
        let Some(skill) = self.skills.iter().find(|skill| skill.name == wanted.name) else {
            let names: Vec<&str> = self
                .skills
                .iter()
                .map(|skill| skill.name.as_str())
                .collect();
            let known = one_line(&names.join(", "), MAX_DESCRIPTION);
            let text = format!("there is no such skill; there are: {known}");
            return Err(fail(ErrorKind::FixInput, text));
        };
        if let Some(check) = &self.check {
            check(skill).map_err(|why| fail(ErrorKind::Denied, why))?;
        }
        let SkillEntry { name, origin, .. } = skill;
        let Some(file) = wanted.file else {
            let text = self.read(skill, FILE)?;
            let (_, body) =
                FrontMatter::read(&text).map_err(|why| fail(ErrorKind::FixInput, why))?;
            let mut content = body.trim().to_owned();
            let files = self.names(skill);
            if !files.is_empty() {
                content.push_str(&format!("\n\nFiles of this skill: {}", files.join(", ")));
            }
            let dir = authority::escape(&skill.dir);
            content.push_str(&format!("\nDirectory of this skill: {dir}"));
            return Ok(answer(&format!("skill {name} of {origin}"), content));
        };
        let text = self.read(skill, &file)?;
        let lines = counted(text.lines().count() as u64, "line", "lines");
        let shown = one_line(&file, MAX_DESCRIPTION);
        Ok(answer(&format!("{shown} of skill {name}: {lines}"), text))
    }

    /// A text file of a skill. What leads out of its directory is refused, even into another skill.
    fn read(&self, skill: &SkillEntry, file: &str) -> Result<String, ToolError> {
        let at = self.inside(skill, Path::new(file))?;
        let unfit = |why: String| fail(ErrorKind::FixInput, why);
        let opened = self.files.open_file(&at).map_err(|error| refused(&error))?;
        let mut bytes = Vec::new();
        let read = opened.take(MAX_FILE + 1).read_to_end(&mut bytes);
        read.map_err(|error| unfit(error.to_string()))?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(unfit(format!(
                "the file has more than {} KiB",
                MAX_FILE / 1024
            )));
        }
        String::from_utf8(bytes).map_err(|_| unfit("the file is not text".to_owned()))
    }

    fn inside(&self, skill: &SkillEntry, file: &Path) -> Result<Located, ToolError> {
        let own = self
            .files
            .inside(&skill.dir)
            .map_err(|error| refused(&error))?;
        let at = self
            .files
            .inside(&skill.dir.join(file))
            .map_err(|error| refused(&error))?;
        if !at.path().starts_with(own.path()) {
            return Err(fail(
                ErrorKind::Denied,
                "the path leads out of the skill's directory",
            ));
        }
        if self.files.may_hold_secrets(&at) {
            return Err(fail(ErrorKind::Denied, "the file may hold secrets"));
        }
        Ok(at)
    }

    /// The names of its files, without the instructions.
    fn names(&self, skill: &SkillEntry) -> Vec<String> {
        let mut names = Vec::new();
        let mut open = vec![(PathBuf::new(), 0_usize)];
        while let Some((below, depth)) = open.pop() {
            let Ok(at) = self.inside(skill, &below) else {
                continue;
            };
            for (name, meta) in self.files.read_dir(&at).unwrap_or_default() {
                let path = below.join(&name);
                match meta.kind {
                    FileKind::Dir if depth < MAX_DEPTH && name != ".git" => {
                        open.push((path, depth + 1))
                    }
                    FileKind::File if path != Path::new(FILE) => {
                        names.push(authority::escape(&path))
                    }
                    _ => {}
                }
            }
            if names.len() > MAX_NAMED {
                break;
            }
        }
        names.sort();
        if names.len() > MAX_NAMED {
            names.truncate(MAX_NAMED);
            names.push("and more".to_owned());
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_skill_says_never_costs_another() {
        let read = |name: &str, about: &str| {
            let text = format!("---\nname: {name}\ndescription: \"{about}\"\n---\n");
            SkillEntry::read(&text, Path::new("/s"), Origin::Project).map(|(skill, _)| skill)
        };
        for (name, about, why) in [("a\u{3164}", "x", "its name"), ("a", " ", "no description")] {
            let read = read(name, about);
            assert!(read.as_ref().is_err_and(|is| is.contains(why)), "{read:?}");
        }
        let joined = "\u{1f468}\u{200d}".repeat(900);
        let odd = read("odd", &format!("{joined} to\u{202e}day")).unwrap();
        for most in [MAX_DESCRIPTION, 240, LEAST_DESCRIPTION, 101] {
            let cut = one_line(&odd.description, most);
            assert_eq!(find(&cut, Lines::One), None, "{cut}");
        }
        let problems = Skills(vec![odd], None).descriptor().problems();
        assert!(problems.is_empty(), "{problems:?}");
    }
}
