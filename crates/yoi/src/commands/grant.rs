//! `yoi grant` and `yoi revoke`: what a project's file asks for, and plugins, accepted or taken back by the person whose machine
//! it is. A grant is for exactly one key with one value, or for one content of a plugin: anything else asks again.

use crate::cli::{GrantArgs, RevokeArgs};
use crate::commands::grant_plugin::{self, GrantedPlugin, PendingPlugin};
use crate::commands::person::only_a_person;
use crate::show::out;
use host::config::grants::{self, Grant, Grants};
use host::config::{Config, PendingGrant};
use host::env::Env;
use host::exit::{Exit, Failure};

use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;

/// The fewest digits of a digest that name an entry.
const DIGITS: usize = 8;

/// What the list of entries that nobody granted is called.
const PENDING: &str = "pending";

/// What the keys of plugins begin with.
const PLUGIN: &str = "plugin:";

/// What a command line says about entries.
#[derive(Clone, Copy)]
struct Selection<'a> {
    entries: &'a [String],
    all: bool,
    json: bool,
}

/// Something in one of the two lists.
pub(super) trait Entry: Serialize {
    /// Its key and its digest.
    fn names(&self) -> (&str, &str);
    fn lines(&self) -> Vec<String>;
}

/// An entry of a project's file, or a plugin.
#[derive(Serialize)]
#[serde(untagged)]
enum Listed<E, P> {
    Entry(E),
    Plugin(P),
}

impl<E: Entry, P: Entry> Entry for Listed<E, P> {
    fn names(&self) -> (&str, &str) {
        match self {
            Self::Entry(entry) => entry.names(),
            Self::Plugin(plugin) => plugin.names(),
        }
    }

    fn lines(&self) -> Vec<String> {
        match self {
            Self::Entry(entry) => entry.lines(),
            Self::Plugin(plugin) => plugin.lines(),
        }
    }
}

impl Entry for PendingGrant {
    fn names(&self) -> (&str, &str) {
        (&self.key, &self.digest)
    }

    fn lines(&self) -> Vec<String> {
        vec![
            format!(
                "{}  ({}, digest {})",
                self.key,
                self.source,
                short(&self.digest)
            ),
            format!("    = {}", self.value),
            format!("    effect: {}", self.effect),
        ]
    }
}

impl Entry for Grant {
    fn names(&self) -> (&str, &str) {
        (&self.key, &self.digest)
    }

    fn lines(&self) -> Vec<String> {
        vec![
            format!("{}  (digest {})", self.key, short(&self.digest)),
            format!("    = {}", self.value),
        ]
    }
}

/// Lists what is pending, or grants some of it.
pub(crate) fn grant(args: &GrantArgs, env: &Env) -> Result<Exit, Failure> {
    let GrantArgs {
        entries,
        all,
        plugins,
        json,
    } = args;
    let load = || Config::load_with_plugins(env, &plugins.plugin_dir);
    let args = Selection {
        entries,
        all: *all,
        json: *json,
    };
    only_a_person("change its own grants")?;
    if lists(args) {
        let config = load()?;
        config.grants_unread.clone().map_or(Ok(()), Err)?;
        let nothing = match config.project.files.as_slice() {
            [] => "nothing is pending: this project has no yoi.toml",
            _ => {
                "nothing is pending: all entries of this project's yoi.toml that need a grant are granted"
            }
        };
        let (pending, problems) = pending(&config, env);
        show(args, PENDING, &pending, nothing);
        if !args.json {
            problems
                .iter()
                .for_each(|problem| out::line(&format!("! {problem}")));
        }
        return Ok(Exit::Done);
    }
    let _lock = grants::lock(env)?;
    // Read under the lock, and once: what is shown below is what is granted.
    let config = load()?;
    let mut kept = Grants::load(env, &config.project.root)?;
    let (all, problems) = pending(&config, env);
    let chosen = chosen(args, &all, PENDING, "yoi grant")?;
    for asked in &chosen {
        match asked {
            Listed::Entry(asked) => kept.add(asked)?,
            Listed::Plugin(plugin) => plugin.grant(env)?,
        }
    }
    if chosen.iter().any(|asked| matches!(asked, Listed::Entry(_))) {
        kept.save()?;
    }
    done(args, "granted", &chosen);
    if !args.json
        && chosen
            .iter()
            .any(|asked| matches!(asked, Listed::Plugin(_)))
    {
        problems
            .iter()
            .for_each(|problem| out::line(&format!("! {problem}")));
    }
    Ok(Exit::Done)
}

/// Lists what is granted, or takes some of it back.
pub(crate) fn revoke(args: &RevokeArgs, env: &Env) -> Result<Exit, Failure> {
    let RevokeArgs { entries, all, json } = args;
    let args = Selection {
        entries,
        all: *all,
        json: *json,
    };
    only_a_person("change its own grants")?;
    let root = host::project::Project::around(env).root;
    if lists(args) {
        show(
            args,
            "granted",
            &granted(&Grants::load(env, &root)?, env)?,
            "nothing is granted to this project's yoi.toml",
        );
        return Ok(Exit::Done);
    }
    let _lock = grants::lock(env)?;
    let mut kept = Grants::load(env, &root)?;
    let all = granted(&kept, env)?;
    let chosen = chosen(args, &all, "granted", "yoi revoke")?;
    for grant in &chosen {
        match grant {
            Listed::Entry(grant) => kept.remove(&grant.digest),
            Listed::Plugin(plugin) => plugin.revoke(env)?,
        }
    }
    kept.save()?;
    done(args, "revoked", &chosen);
    Ok(Exit::Done)
}

/// Entries of the project's file, then plugins.
fn pending(config: &Config, env: &Env) -> (Vec<Listed<PendingGrant, PendingPlugin>>, Vec<String>) {
    let entries = config.pending.iter().cloned().map(Listed::Entry);
    let (plugins, problems) = grant_plugin::pending(config, env);
    (
        entries
            .chain(plugins.into_iter().map(Listed::Plugin))
            .collect(),
        problems,
    )
}

/// What is granted to the project, and to plugins anywhere.
fn granted(kept: &Grants, env: &Env) -> Result<Vec<Listed<Grant, GrantedPlugin>>, Failure> {
    let plugins = grant_plugin::granted(env)?.into_iter().map(Listed::Plugin);
    Ok(kept
        .all()
        .iter()
        .cloned()
        .map(Listed::Entry)
        .chain(plugins)
        .collect())
}

fn lists(args: Selection<'_>) -> bool {
    args.entries.is_empty() && !args.all
}

/// A plugin is also meant without what its key begins with, unless that could be a number or a digest.
fn is_key(entry: &impl Entry, name: &str) -> bool {
    let (key, _) = entry.names();
    let is_digits = name.bytes().all(|byte| byte.is_ascii_digit()) || is_digest(name);
    name == key || !is_digits && key.strip_prefix(PLUGIN) == Some(name)
}

fn has_number(entry: &impl Entry, what: &str) -> bool {
    what != PENDING || !entry.names().0.starts_with(PLUGIN)
}

/// Whether a text has the form of the first digits of a digest.
fn is_digest(name: &str) -> bool {
    name.len() >= DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The entries that the arguments name, in the order of the list. An argument names one entry, or one content. A plugin
/// without a grant has no number: what a project has decides which number it would have by now.
fn chosen<'a, E: Entry>(
    args: Selection<'_>,
    all: &'a [E],
    what: &str,
    list: &str,
) -> Result<Vec<&'a E>, Failure> {
    let mut picked = vec![args.all; all.len()];
    for name in args.entries {
        let number = name
            .parse()
            .ok()
            .and_then(|number: usize| number.checked_sub(1));
        let fits = |(index, entry): &(usize, &E)| {
            let by_number = number == Some(*index) && has_number(*entry, what);
            by_number
                || is_key(*entry, name)
                || is_digest(name) && entry.names().1.starts_with(name.as_str())
        };
        let found: Vec<(usize, &E)> = all.iter().enumerate().filter(fits).collect();
        let digests: BTreeSet<&str> = found.iter().map(|(_, entry)| entry.names().1).collect();
        let is_one = found.len() == 1 || is_digest(name) && digests.len() == 1;
        if is_one {
            found
                .iter()
                .for_each(|(index, _)| picked.get_mut(*index).map_or((), |picked| *picked = true));
            continue;
        }
        let problem = match (found.len(), number.and_then(|index| all.get(index))) {
            (0, Some(plugin)) => {
                let (key, digest) = plugin.names();
                format!("{key} has no number; use its digest, {}", short(digest))
            }
            (0, None) => format!("no {what} entry matches `{name}`"),
            (several, _) => {
                format!("`{name}` names {several} {what} entries; use their numbers or digests")
            }
        };
        return Err(
            Failure::new(Exit::Usage, problem).help(format!("`{list}` lists the {what} entries"))
        );
    }
    Ok(all
        .iter()
        .zip(picked)
        .filter_map(|(entry, picked)| picked.then_some(entry))
        .collect())
}

fn show<E: Entry>(args: Selection<'_>, what: &str, all: &[E], nothing: &str) {
    if args.json {
        return out::json(&json!({ what: all }));
    }
    for (index, entry) in all.iter().enumerate() {
        print(
            &if has_number(entry, what) {
                format!("{}  ", index + 1)
            } else {
                String::new()
            },
            entry,
        );
    }
    let plugins = all.iter().filter(|entry| !has_number(*entry, what)).count();
    if all.is_empty() {
        return out::line(nothing);
    }
    let (entries, of_plugins, end) = match what {
        PENDING => (
            "`yoi grant NUMBER…` grants the entries with these numbers; ",
            "`yoi grant DIGEST…` grants plugins as they are listed; ",
            "`yoi grant --all` grants all pending entries",
        ),
        _ => (
            "`yoi revoke NUMBER…` revokes the grants of the entries with these numbers; ",
            "",
            "`yoi revoke --all` revokes all of them",
        ),
    };
    let entries = if all.len() > plugins { entries } else { "" };
    let of_plugins = if plugins > 0 { of_plugins } else { "" };
    out::line(&format!("{entries}{of_plugins}{end}"));
}

fn done<E: Entry>(args: Selection<'_>, what: &str, entries: &[&E]) {
    if args.json {
        return out::json(&json!({ what: entries }));
    }
    entries
        .iter()
        .for_each(|entry| print(&format!("{what}: "), *entry));
    if entries.is_empty() {
        out::line(if what == "revoked" {
            "there are no granted entries"
        } else {
            "there are no pending entries"
        });
    }
}

fn print(before: &str, entry: &impl Entry) {
    let mut lines = entry.lines().into_iter();
    out::line(&format!("{before}{}", lines.next().unwrap_or_default()));
    lines.for_each(|line| out::line(&line));
}

pub(super) fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
