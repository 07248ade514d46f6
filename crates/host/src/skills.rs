//! The skills and commands of a start: found in the project, in the person's directories and in granted packages. Runs
//! nothing.
//!
//! A start reads each `SKILL.md` once, for its name and description, and each file of a command. One that cannot be read is a
//! problem of the report; it costs no other. The first of a name counts.

use crate::env::Env;
use crate::plain_file;
use crate::plugins::{CopyPlace, Plugins, Standing};
use crate::project::Project;
use authority::{Access, Ambient, Location, Workspace};
use builtins::commands::{self, MAX_COMMANDS};
use builtins::skills::{self, FILE, MAX_FILE, MAX_SKILLS, Origin, SkillEntry};
use pod::feature::{CommandDeclaration, FeatureRegistryBuilder};
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// Directories of skills and of commands in a project.
const SKILLS: [&str; 3] = [".yoi/skills", ".agents/skills", ".claude/skills"];
const COMMANDS: [&str; 2] = [".yoi/commands", ".claude/commands"];

/// Those of a person: below yoi's own configuration, and below their home directory.
const OWN_SKILLS: &str = "skills";
const OWN_COMMANDS: &str = "commands";
const HOME_SKILLS: &str = ".agents/skills";

/// The commands of the screen and of `yoi attach --plain`, which win.
pub const SLASH: &[&str] = &[
    "approvals",
    "cancel",
    "compact",
    "context",
    "copy",
    "detach",
    "diff",
    "editor",
    "features",
    "help",
    "log",
    "model",
    "more",
    "new",
    "pause",
    "pin",
    "pods",
    "print",
    "resume",
    "search",
    "status",
    "steer",
    "undo",
    "unpin",
];

/// Most names of one directory that are read.
const MAX_NAMES: usize = 256;

/// Most problems of each kind that are told.
const MAX_PROBLEMS: usize = 16;

/// What was found, and why some was not.
#[derive(Clone, Debug, Default)]
pub struct FoundSkills {
    pub skills: Vec<SkillEntry>,
    pub problems: Vec<String>,
    pub commands: Vec<CommandDeclaration>,
    pub command_problems: Vec<String>,
}

/// Skills and commands that are looked for when something asks. No part of what is configured, and so not of its digest:
/// the surface and the report of a start have them.
#[derive(Clone, Default)]
pub struct SkillsOnDemand(OnceLock<FoundSkills>);

impl SkillsOnDemand {
    pub(crate) fn get(&self, project: &Project, plugins: &Plugins, env: &Env) -> &FoundSkills {
        self.0
            .get_or_init(|| FoundSkills::find(project, plugins, env))
    }
}

impl fmt::Debug for SkillsOnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SkillsOnDemand")
    }
}

/// Whose directory is looked at, and what its files must not lead out of.
#[derive(Clone)]
struct Place<'a> {
    dir: PathBuf,
    origin: Origin,
    /// None: links lead anywhere, as the person wants.
    within: Option<&'a Path>,
}

impl FoundSkills {
    fn find(project: &Project, plugins: &Plugins, env: &Env) -> Self {
        let (ambient, root) = (ambient::claim(), &project.root);
        // A home directory is no project, and its skills are the person's.
        let is_project = project.too_wide.is_none();
        let of_project = |below: &&str| Place {
            dir: root.join(below),
            origin: Origin::Project,
            within: Some(root),
        };
        let of_person = |dir: PathBuf| Place {
            dir,
            origin: Origin::Person,
            within: None,
        };
        let own = |below: &str| {
            env.config_dir()
                .map(|dir| dir.join(below))
                .ok()
                .map(of_person)
        };
        let home = env.home().map(|home| home.join(HOME_SKILLS)).ok();
        let mut found = Self::default();
        let skills = SKILLS.iter().filter(|_| is_project).map(of_project);
        let skills = skills.chain(own(OWN_SKILLS)).chain(home.map(of_person));
        skills.for_each(|place| found.skills_in(&ambient, &place, env));
        let commands = COMMANDS.iter().filter(|_| is_project).map(of_project);
        let commands = commands.chain(own(OWN_COMMANDS));
        commands.for_each(|place| found.commands_in(&ambient, &place, env));
        found.of_packages(plugins, env);
        shorten(&mut found.problems);
        shorten(&mut found.command_problems);
        found
    }

    /// Skills and commands of the packages that the person granted as they are; skills are read in the copy of a package.
    fn of_packages(&mut self, plugins: &Plugins, env: &Env) {
        for package in &plugins.found {
            // Most have neither, and their files are not read once more.
            if ![OWN_SKILLS, OWN_COMMANDS]
                .iter()
                .any(|of| package.dir.join(of).is_dir())
            {
                continue;
            }
            let Standing::Granted { digest } = package.standing(env) else {
                continue;
            };
            let (Ok(parts), Ok(copies)) = (package.parts(), CopyPlace::of(env)) else {
                continue;
            };
            if parts.digest != *digest {
                continue;
            }
            let shown = env.shown(&package.dir);
            let copy = copies.at(digest);
            parts
                .skills_in(&copy)
                .for_each(|skill| self.add(skill, &shown));
            let commands = parts.commands.iter().cloned();
            commands.for_each(|command| self.add_command(command, &shown));
            let told = parts
                .problems
                .iter()
                .map(|what| format!("plugin {}: {what}", package.name));
            self.problems.extend(told);
        }
    }

    /// Adds what is wrong with some to the report of a registry.
    pub(crate) fn report(&self, builder: FeatureRegistryBuilder) -> FeatureRegistryBuilder {
        let skills = self.problems.iter().map(|what| (skills::ID, what));
        let commands = self
            .command_problems
            .iter()
            .map(|what| (commands::ID, what));
        skills.chain(commands).fold(builder, |builder, (id, what)| {
            builder.problem(Some(id), what)
        })
    }

    /// Handles on the directories of all skills, if there are some. One that is gone meanwhile is left out.
    pub(crate) fn root(&self, ambient: &Ambient) -> Option<Workspace> {
        let mut dirs = self.skills.iter().map(|skill| skill.dir.as_path());
        let open = |dir: &Path| Workspace::open(ambient, dir, dir, Access::Read).ok();
        let first = dirs.find_map(open)?;
        Some(dirs.fold(first, |all, dir| {
            let more = all.clone().with_dir(ambient, dir, Access::Read);
            more.unwrap_or(all)
        }))
    }

    fn skills_in(&mut self, ambient: &Ambient, place: &Place<'_>, env: &Env) {
        for dir in listed(&place.dir) {
            if dir.join(FILE).symlink_metadata().is_err() {
                continue;
            }
            let shown = env.shown(&dir);
            let read = resolved(ambient, &dir, place.within).and_then(|dir| {
                let text = text(ambient, &dir.join(FILE), MAX_FILE)?;
                SkillEntry::read(&text, &dir, place.origin.clone())
            });
            match read {
                Ok((skill, odd)) => {
                    let odd = odd.map(|odd| format!("skill {shown}: {odd}"));
                    self.problems.extend(odd);
                    self.add(skill, &shown);
                }
                Err(why) => {
                    let what = format!("skill {shown}: {why}; it is left out");
                    self.problems.push(what);
                }
            }
        }
    }

    fn add(&mut self, skill: SkillEntry, shown: &str) {
        let mut known = self.skills.iter();
        match known.find(|other| other.name == skill.name) {
            // A link from one place to another is no second skill.
            Some(first) if first.dir == skill.dir => {}
            Some(SkillEntry { name, origin, .. }) => {
                let what =
                    format!("skill {shown}: {origin} has a skill {name}, too, which is used");
                self.problems.push(what);
            }
            None if self.skills.len() >= MAX_SKILLS => {
                let what = format!("skill {shown}: only {MAX_SKILLS} skills are used");
                self.problems.push(what);
            }
            None => self.skills.push(skill),
        }
    }

    fn commands_in(&mut self, ambient: &Ambient, place: &Place<'_>, env: &Env) {
        for (name, file) in markdown(&place.dir) {
            let shown = env.shown(&file);
            let read = resolved(ambient, &file, place.within)
                .and_then(|file| text(ambient, &file, commands::MAX_FILE))
                .and_then(|text| commands::command(&name, &text, &place.origin));
            match read {
                Ok(command) => self.add_command(command, &shown),
                Err(why) => {
                    let what = format!("command {shown}: {why}; it is left out");
                    self.command_problems.push(what);
                }
            }
        }
    }

    fn add_command(&mut self, command: CommandDeclaration, shown: &str) {
        let name = &command.name;
        let mut known = self.commands.iter();
        let first = known.find(|other| other.name.eq_ignore_ascii_case(name));
        let problem = match first {
            _ if SLASH.contains(&name.as_str()) => {
                format!("/{name} is a command of yoi, which is used")
            }
            Some(first) => format!("{} has a command /{name}, too, which is used", first.source),
            None if self.commands.len() >= MAX_COMMANDS => {
                format!("only {MAX_COMMANDS} commands are used")
            }
            None => return self.commands.push(command),
        };
        self.command_problems
            .push(format!("command {shown}: {problem}"));
    }
}

fn shorten(problems: &mut Vec<String>) {
    if let Some(more) = problems
        .len()
        .checked_sub(MAX_PROBLEMS)
        .filter(|more| *more > 0)
    {
        problems.truncate(MAX_PROBLEMS);
        problems.push(format!("and {more} more problems"));
    }
}

/// The paths in a directory, by name; none where there is no directory.
fn listed(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.take(MAX_NAMES).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The Markdown files of a directory, with their names; those one level deeper are `DIRECTORY:NAME`.
fn markdown(dir: &Path) -> Vec<(String, PathBuf)> {
    let name = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        name.strip_suffix(".md").map(str::to_owned)
    };
    let mut files = Vec::new();
    for path in listed(dir) {
        if let Some(name) = name(&path) {
            files.push((name, path));
        } else if let Some(of) = path.file_name().and_then(|of| of.to_str()) {
            let below = listed(&path).into_iter();
            files.extend(below.filter_map(|file| Some((format!("{of}:{}", name(&file)?), file))));
        }
    }
    files.truncate(MAX_NAMES);
    files
}

/// A path without links.
fn resolved(ambient: &Ambient, path: &Path, within: Option<&Path>) -> Result<PathBuf, String> {
    let told = |error: authority::Error| error.to_string();
    let Some(root) = within else {
        return path
            .canonicalize()
            .map_err(|error| authority::explain(&error));
    };
    let inside = Workspace::open(ambient, root, root, Access::Read).map_err(told)?;
    match inside.locate(path).map_err(told)? {
        Location::Outside(_) => Err("it leads out of the project".to_owned()),
        Location::Inside(at) => {
            let git = |part: Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
            if inside.may_hold_secrets(&at) || at.relative().components().any(git) {
                return Err("it leads to what is not read".to_owned());
            }
            Ok(at.path().to_owned())
        }
    }
}

/// The text of a file, which is in its directory itself.
fn text(ambient: &Ambient, path: &Path, most: u64) -> Result<String, String> {
    let dir = path.parent().unwrap_or(path);
    let files = Workspace::open(ambient, dir, dir, Access::Read);
    let opened = files.and_then(|files| files.open_file(&files.inside(path)?));
    let bytes = plain_file::whole(opened.map_err(|error| error.to_string())?, most)?;
    plain_file::text(&bytes).map(str::to_owned)
}
