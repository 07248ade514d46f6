//! `yoi grant` and `yoi revoke`: what a project's file asks for, accepted or taken back by the person whose machine it
//! is. A grant is for exactly one key with one value: a file that says something else asks again.

use crate::cli::{GrantArgs, RevokeArgs};
use crate::commands::person::only_a_person;
use crate::config::grants::{self, Grant, Grants};
use crate::config::{Config, PendingGrant};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::show::out;

use serde::Serialize;
use serde_json::json;

/// The fewest digits of a digest that name an entry.
const DIGITS: usize = 8;

/// What a command line says about entries.
#[derive(Clone, Copy)]
struct Selection<'a> {
    entries: &'a [String],
    all: bool,
    json: bool,
}

/// Something in one of the two lists.
trait Entry: Serialize {
    /// Its key and its digest.
    fn names(&self) -> (&str, &str);
    fn lines(&self) -> Vec<String>;
}

impl Entry for PendingGrant {
    fn names(&self) -> (&str, &str) {
        (&self.key, &self.digest)
    }

    fn lines(&self) -> Vec<String> {
        vec![
            format!("{}  ({}, digest {})", self.key, self.source, short(&self.digest)),
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
        vec![format!("{}  (digest {})", self.key, short(&self.digest)), format!("    = {}", self.value)]
    }
}

/// Lists what is pending, or grants some of it.
pub(crate) fn grant(args: &GrantArgs, env: &Env) -> Result<Exit, Failure> {
    let GrantArgs { entries, all, json } = args;
    let args = Selection { entries, all: *all, json: *json };
    only_a_person("change its own grants")?;
    if lists(args) {
        let config = Config::load(env)?;
        config.grants_unread.clone().map_or(Ok(()), Err)?;
        let nothing = match config.project.files.as_slice() {
            [] => "nothing is pending: this project has no yoi.toml",
            _ => "nothing is pending: all entries of this project's yoi.toml that need a grant are granted",
        };
        show(args, "pending", &config.pending, nothing);
        return Ok(Exit::Done);
    }
    let _lock = grants::lock(env)?;
    // Read under the lock, and once: what is shown below is what is granted.
    let config = Config::load(env)?;
    let mut kept = Grants::load(env, &config.project.root)?;
    let chosen = chosen(args, &config.pending, "pending", "yoi grant")?;
    for asked in &chosen {
        kept.add(asked)?;
    }
    kept.save()?;
    done(args, "granted", &chosen);
    Ok(Exit::Done)
}

/// Lists what is granted, or takes some of it back.
pub(crate) fn revoke(args: &RevokeArgs, env: &Env) -> Result<Exit, Failure> {
    let RevokeArgs { entries, all, json } = args;
    let args = Selection { entries, all: *all, json: *json };
    only_a_person("change its own grants")?;
    let root = crate::project::Project::around(env).root;
    if lists(args) {
        show(args, "granted", Grants::load(env, &root)?.all(), "nothing is granted to this project's yoi.toml");
        return Ok(Exit::Done);
    }
    let _lock = grants::lock(env)?;
    let mut kept = Grants::load(env, &root)?;
    let all = kept.all().to_vec();
    let chosen = chosen(args, &all, "granted", "yoi revoke")?;
    for grant in &chosen {
        kept.remove(&grant.digest);
    }
    kept.save()?;
    done(args, "revoked", &chosen);
    Ok(Exit::Done)
}

fn lists(args: Selection<'_>) -> bool {
    args.entries.is_empty() && !args.all
}

/// The entries that the arguments name, in the order of the list.
fn chosen<'a, E: Entry>(args: Selection<'_>, all: &'a [E], what: &str, list: &str) -> Result<Vec<&'a E>, Failure> {
    let mut picked = vec![args.all; all.len()];
    for name in args.entries {
        let fits = |(index, entry): &(usize, &E)| {
            let (key, digest) = entry.names();
            let digits = name.len() >= DIGITS && digest.starts_with(name.as_str());
            name.parse() == Ok(index + 1) || name == key || digits
        };
        let mut found = all.iter().enumerate().filter(fits).map(|(index, _)| index).peekable();
        if found.peek().is_none() {
            return Err(Failure::new(Exit::Usage, format!("no {what} entry matches `{name}`"))
                .help(format!("`{list}` lists the {what} entries")));
        }
        found.for_each(|index| picked.get_mut(index).map_or((), |picked| *picked = true));
    }
    Ok(all.iter().zip(picked).filter_map(|(entry, picked)| picked.then_some(entry)).collect())
}

fn show<E: Entry>(args: Selection<'_>, what: &str, all: &[E], nothing: &str) {
    if args.json {
        return out::json(&json!({ what: all }));
    }
    for (index, entry) in all.iter().enumerate() {
        print(&format!("{}  ", index + 1), entry);
    }
    out::line(&match (all.len(), what) {
        (0, _) => nothing.to_owned(),
        (_, "pending") => "`yoi grant NUMBER…` grants the entries with these numbers; `yoi grant --all` grants all pending entries".to_owned(),
        (_, _) => "`yoi revoke NUMBER…` revokes the grants of the entries with these numbers; `yoi revoke --all` revokes all of them".to_owned(),
    });
}

fn done<E: Entry>(args: Selection<'_>, what: &str, entries: &[&E]) {
    if args.json {
        return out::json(&json!({ what: entries }));
    }
    entries.iter().for_each(|entry| print(&format!("{what}: "), *entry));
    if entries.is_empty() {
        out::line(if what == "revoked" { "there are no granted entries" } else { "there are no pending entries" });
    }
}

fn print(before: &str, entry: &impl Entry) {
    let mut lines = entry.lines().into_iter();
    out::line(&format!("{before}{}", lines.next().unwrap_or_default()));
    lines.for_each(|line| out::line(&line));
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
