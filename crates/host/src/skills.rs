//! The skills and commands of a start: found in the project, in the person's directories and in granted packages. Runs
//! nothing.
//!
//! A start reads each `SKILL.md` once, for its name and description, and each file of a command. One that cannot be read is a
//! problem of the report; it costs no other. The first of a name counts: the person's, then those of packages, then those of
//! the project, so that no repository replaces what a person typed or wrote.

use crate::env::Env;
use crate::plain_file;
use crate::plugins::{CopyPlace, GrantCheck, Plugins, Standing};
use crate::project::Project;
use authority::{Access, Ambient, Location, SecretNames, Workspace};
use builtins::commands;
use builtins::skills::{self, FILE, MAX_FILE, Origin, SkillCheck, SkillEntry};
use pod::feature::{CommandCheck, CommandDeclaration, FeatureRegistryBuilder};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Directories of skills and of commands in a project.
const SKILLS: [&str; 3] = [".yoi/skills", ".agents/skills", ".claude/skills"];
const COMMANDS: [&str; 2] = [".yoi/commands", ".claude/commands"];

/// Those of a person: below yoi's own configuration, and below their home directory.
const OWN_SKILLS: &str = "skills";
const OWN_COMMANDS: &str = "commands";
const HOME_SKILLS: &str = ".agents/skills";

/// The commands of the screen and of `yoi attach --plain`, which win.
pub const SLASH: &[&str] = &[
    "agents",
    "approvals",
    "cancel",
    "compact",
    "context",
    "copy",
    "detach",
    "diff",
    "editor",
    "effort",
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

/// Most skills, and most commands, of the person, of the project and of one package, so that none pushes out another; and
/// most of all packages.
const MAX_OF_ONE: usize = 48;
const MAX_OF_PACKAGES: usize = 128;

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
    /// Of the commands, in their order.
    command_origins: Vec<Origin>,
    /// Of the packages that have some, by whose words they are.
    checks: BTreeMap<String, GrantCheck>,
}

/// Skills and commands that are looked for when something asks. No part of what is configured, and so not of its digest:
/// the surface and the report of a start have them.
#[derive(Clone, Default)]
pub struct SkillsOnDemand(OnceLock<FoundSkills>);

impl SkillsOnDemand {
    pub(crate) fn get(&self, sought: &Sought<'_>, env: &Env) -> &FoundSkills {
        self.0.get_or_init(|| FoundSkills::find(sought, env))
    }
}

impl fmt::Debug for SkillsOnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SkillsOnDemand")
    }
}

/// Where skills and commands are looked for.
pub(crate) struct Sought<'a> {
    pub(crate) project: &'a Project,
    pub(crate) plugins: &'a Plugins,
    /// Which names hold secrets; none if that is not known.
    pub(crate) secrets: Option<SecretNames>,
    /// No command writes.
    pub(crate) is_read_only: bool,
    /// The names of those that are kept; none: all.
    pub(crate) only: Option<&'a [String]>,
}

/// A project, and which names hold secrets there.
pub(crate) type Within<'a> = (&'a Path, &'a SecretNames);

/// Whose directory is looked at, and what its files must not lead out of.
#[derive(Clone)]
struct Place<'a> {
    dir: PathBuf,
    origin: Origin,
    /// None: links lead anywhere, as the person wants.
    within: Option<Within<'a>>,
}

impl FoundSkills {
    fn find(sought: &Sought<'_>, env: &Env) -> Self {
        let project = sought.project;
        let ambient = ambient::claim();
        let root = &project.root;
        // A home directory is no project, and its skills are the person's.
        let secrets = sought
            .secrets
            .as_ref()
            .filter(|_| project.too_wide.is_none());
        let of_project = |below: &&str| Place {
            dir: root.join(below),
            origin: Origin::Project,
            within: secrets.map(|secrets| (root.as_path(), secrets)),
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
        let skills = own(OWN_SKILLS).into_iter().chain(home.map(of_person));
        skills.for_each(|place| found.skills_in(&ambient, &place, &[], env));
        let commands = own(OWN_COMMANDS).into_iter();
        commands.for_each(|place| found.commands_in(&ambient, &place, env));
        found.of_packages(sought, env);
        let skills = SKILLS.iter().filter(|_| secrets.is_some()).map(of_project);
        let skills: Vec<_> = skills
            .filter_map(|place| found.opened(&ambient, place, env, true))
            .collect();
        let dirs: Vec<&Path> = skills.iter().map(|place| place.dir.as_path()).collect();
        for place in &skills {
            found.skills_in(&ambient, place, &dirs, env);
        }
        let commands = COMMANDS
            .iter()
            .filter(|_| secrets.is_some())
            .map(of_project);
        for place in commands {
            if let Some(place) = found.opened(&ambient, place, env, false) {
                found.commands_in(&ambient, &place, env);
            }
        }
        if let Some(only) = sought.only {
            found.skills.retain(|skill| only.contains(&skill.name));
        }
        shorten(&mut found.problems);
        shorten(&mut found.command_problems);
        found
    }

    /// The place without links; none where nothing is, or where it leads out of the project.
    fn opened<'a>(
        &mut self,
        ambient: &Ambient,
        place: Place<'a>,
        env: &Env,
        of_skills: bool,
    ) -> Option<Place<'a>> {
        place.dir.symlink_metadata().ok()?;
        match resolved(ambient, &place.dir, place.within) {
            Ok(dir) => Some(Place { dir, ..place }),
            Err(why) => {
                let what = format!("{}: {why}; it is not read", env.shown(&place.dir));
                match of_skills {
                    true => self.problems.push(what),
                    false => self.command_problems.push(what),
                }
                None
            }
        }
    }

    /// Skills and commands of the packages that the person granted as they are; skills are read in the copy of a package,
    /// if no command can write there.
    fn of_packages(&mut self, sought: &Sought<'_>, env: &Env) {
        let copies = || {
            CopyPlace::of(env).and_then(|copies| match sought.is_read_only {
                true => Ok(copies),
                false => copies.outside(&sought.project.root),
            })
        };
        for package in &sought.plugins.found {
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
            let Ok(parts) = package.parts() else {
                continue;
            };
            if parts.digest != *digest {
                continue;
            }
            let shown = env.shown(&package.dir);
            let origin = Origin::Package(package.name.clone());
            self.checks
                .insert(origin.to_string(), package.check(digest, env));
            match copies() {
                Ok(copies) => parts
                    .skills_in(&copies.at(digest))
                    .for_each(|skill| self.add(skill, &shown)),
                Err(_) if parts.skills.is_empty() => {}
                Err(why) => {
                    let what = format!("plugin {}: its skills are left out: {why}", package.name);
                    self.problems.push(what);
                }
            }
            let commands = parts.commands.iter().cloned();
            commands.for_each(|command| self.add_command(command, &origin, &shown));
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

    /// Refuses commands of a package whose grant is gone.
    pub(crate) fn command_check(&self) -> Option<CommandCheck> {
        let checks = self.checks.clone();
        let check = move |command: &CommandDeclaration| {
            let check = checks.get(&command.source);
            check.map_or(Ok(()), GrantCheck::granted)
        };
        (!self.checks.is_empty()).then(|| Arc::new(check) as CommandCheck)
    }

    /// Refuses skills of a package whose grant is gone, or whose content or copy is another one.
    pub(crate) fn skill_check(&self) -> Option<SkillCheck> {
        let checks = self.checks.clone();
        let check = move |skill: &SkillEntry| {
            // The directory of a skill is `skills/NAME` of the copy.
            let copy = skill.dir.ancestors().nth(2);
            match checks.get(&skill.origin.to_string()).zip(copy) {
                Some((check, copy)) => check.unchanged(copy),
                None => Ok(()),
            }
        };
        (!self.checks.is_empty()).then(|| Arc::new(check) as SkillCheck)
    }

    /// Handles on the directories of all skills, if there are some. One that is gone meanwhile is left out.
    pub(crate) fn root(&self, ambient: &Ambient, secrets: &SecretNames) -> Option<Workspace> {
        let mut dirs = self.skills.iter().map(|skill| skill.dir.as_path());
        let open = |dir: &Path| Workspace::open(ambient, dir, dir, Access::Read).ok();
        let first = dirs.find_map(open)?.with_secrets(secrets.clone());
        Some(dirs.fold(first, |all, dir| {
            let more = all.clone().with_dir(ambient, dir, Access::Read);
            more.unwrap_or(all)
        }))
    }

    /// Adds the skills of a place; a link of a project leads into one of its directories of skills.
    fn skills_in(&mut self, ambient: &Ambient, place: &Place<'_>, dirs: &[&Path], env: &Env) {
        let is_skill = |dir: &Path| {
            place.within.is_none() || dirs.iter().any(|of| dir != *of && dir.starts_with(of))
        };
        for dir in listed(&place.dir) {
            if dir.join(FILE).symlink_metadata().is_err() {
                continue;
            }
            let shown = env.shown(&dir);
            let read = resolved(ambient, &dir, place.within).and_then(|dir| {
                if !is_skill(&dir) {
                    return Err("it leads out of the directories of skills".to_owned());
                }
                resolved(ambient, &dir.join(FILE), place.within)?;
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
            None => match full(self.skills.iter().map(|other| &other.origin), &skill.origin) {
                Some(most) => {
                    let of = &skill.origin;
                    once(&mut self.problems, left_out("skills", of, most));
                }
                None => self.skills.push(skill),
            },
        }
    }

    fn commands_in(&mut self, ambient: &Ambient, place: &Place<'_>, env: &Env) {
        for (name, file) in markdown(ambient, place) {
            let shown = env.shown(&file);
            let read = resolved(ambient, &file, place.within)
                .and_then(|file| text(ambient, &file, commands::MAX_FILE))
                .and_then(|text| commands::command(&name, &text, &place.origin));
            match read {
                Ok(command) => self.add_command(command, &place.origin, &shown),
                Err(why) => {
                    let what = format!("command {shown}: {why}; it is left out");
                    self.command_problems.push(what);
                }
            }
        }
    }

    fn add_command(&mut self, command: CommandDeclaration, origin: &Origin, shown: &str) {
        let name = &command.name;
        let mut known = self.commands.iter();
        let first = known.find(|other| other.name.eq_ignore_ascii_case(name));
        let problem = match first {
            _ if SLASH.iter().any(|own| own.eq_ignore_ascii_case(name)) => {
                format!("/{name} is a command of yoi, which is used")
            }
            Some(first) => format!("{} has a command /{name}, too, which is used", first.source),
            None => match full(self.command_origins.iter(), origin) {
                // Said once: a crowd must not hide what else is wrong.
                Some(most) => {
                    let what = left_out("commands", origin, most);
                    return once(&mut self.command_problems, what);
                }
                None => {
                    self.command_origins.push(origin.clone());
                    return self.commands.push(command);
                }
            },
        };
        self.command_problems
            .push(format!("command {shown}: {problem}"));
    }
}

/// How many of one origin there are at most, if so many are there.
fn full<'a>(known: impl Iterator<Item = &'a Origin> + Clone, of: &Origin) -> Option<usize> {
    let own = known.clone().filter(|other| *other == of).count();
    let like = known.filter(|other| other.is_like(of)).count();
    match own >= MAX_OF_ONE {
        true => Some(MAX_OF_ONE),
        false => (like >= MAX_OF_PACKAGES).then_some(MAX_OF_PACKAGES),
    }
}

fn left_out(what: &str, of: &Origin, most: usize) -> String {
    format!("some {what} of {of} are left out: at most {most} are used")
}

fn once(problems: &mut Vec<String>, what: String) {
    if !problems.contains(&what) {
        problems.push(what);
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
pub(crate) fn listed(dir: &Path) -> Vec<PathBuf> {
    let mut paths = BTreeSet::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        paths.insert(entry.path());
        if paths.len() > MAX_NAMES {
            paths.pop_last();
        }
    }
    paths.into_iter().collect()
}

/// The Markdown files of a directory, with their names; those one level deeper are `DIRECTORY:NAME`.
fn markdown(ambient: &Ambient, place: &Place<'_>) -> Vec<(String, PathBuf)> {
    let name = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        name.strip_suffix(".md").map(str::to_owned)
    };
    let mut files = Vec::new();
    for path in listed(&place.dir) {
        if let Some(name) = name(&path) {
            files.push((name, path));
        } else if let Some(of) = path.file_name().and_then(|of| of.to_str()) {
            let below = match resolved(ambient, &path, place.within) {
                Ok(dir) => listed(&dir).into_iter(),
                Err(_) => continue,
            };
            files.extend(below.filter_map(|file| Some((format!("{of}:{}", name(&file)?), file))));
        }
    }
    files.truncate(MAX_NAMES);
    files
}

/// A path without links.
pub(crate) fn resolved(
    ambient: &Ambient,
    path: &Path,
    within: Option<Within<'_>>,
) -> Result<PathBuf, String> {
    let told = |error: authority::Error| error.to_string();
    let Some((root, secrets)) = within else {
        return path
            .canonicalize()
            .map_err(|error| authority::explain(&error));
    };
    let inside = Workspace::open(ambient, root, root, Access::Read).map_err(told)?;
    let inside = inside.with_secrets(secrets.clone());
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
