//! Arrows between the modules of a crate: who names whose items, which rooms may, and how large a circle of files is.
//!
//! Read from the text of what ships. A name that a module hands on (`pub use`) counts for the file it comes from, so a
//! facade is no circle. Paths inside of macros are read like others; names that a glob brings are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::finding::Finding;
use crate::source::{self, Source, is_ident};

/// What one room of a crate may name. A room is a module at the top of a crate, or a deeper one that has a row.
#[derive(Debug)]
pub struct Room {
    /// `crate::module`, as `pod::feature::decide`.
    pub name: &'static str,
    /// Rooms of the same crate that it may name, without the crate's name.
    pub may: &'static [&'static str],
}

/// The files of a crate by their module, and what each names of the others.
#[derive(Debug, Default)]
pub struct Graph {
    paths: BTreeMap<Module, String>,
    edges: BTreeMap<Module, BTreeSet<Module>>,
}

type Module = Vec<String>;
/// What a name stands for: a path from the root of the crate.
type Names = BTreeMap<String, Module>;

impl Graph {
    /// Of `crates/{name}/src`, with what could not be read.
    pub fn of(root: &Path, name: &str) -> (Self, Vec<Finding>) {
        let prefix = format!("crates/{name}/src/");
        let (texts, bad) = source::texts(root, &prefix, |path| path.ends_with(".rs"));
        let sources = texts
            .into_iter()
            .map(|text| Source::new(text.path, text.text));
        let files = sources
            .filter(|source| !source.is_test_file())
            .map(|source| File::read(&source, &prefix));
        let files: BTreeMap<Module, File> = files.map(|file| (file.module.clone(), file)).collect();
        let mut graph = Self::default();
        for (module, file) in &files {
            let mut named: BTreeSet<Module> = file
                .names()
                .filter_map(|path| resolve(&files, path, 0))
                .collect();
            named.remove(module);
            graph.edges.insert(module.clone(), named);
            graph.paths.insert(module.clone(), file.path.clone());
        }
        (graph, bad)
    }

    /// The sets of files that name each other, directly or through others; the largest first.
    pub fn circles(&self) -> Vec<Vec<&str>> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> = self
            .edges
            .keys()
            .map(|from| (from, self.reached(from)))
            .collect();
        let mut circles: BTreeSet<Vec<&str>> = BTreeSet::new();
        for (from, to) in &reached {
            let back = |to: &&&Module| reached.get(**to).is_some_and(|far| far.contains(*from));
            let circle: Vec<&str> = to
                .iter()
                .filter(back)
                .filter_map(|m| Some(self.paths.get(*m)?.as_str()))
                .collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        let mut circles: Vec<_> = circles.into_iter().collect();
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }

    fn reached<'a>(&'a self, from: &'a Module) -> BTreeSet<&'a Module> {
        let mut seen = BTreeSet::new();
        let mut next = vec![from];
        while let Some(module) = next.pop() {
            next.extend(
                self.edges
                    .get(module)
                    .into_iter()
                    .flatten()
                    .filter(|to| seen.insert(*to)),
            );
        }
        seen
    }
}

/// Circles of more files than `most` in a crate.
pub fn circles(root: &Path, name: &str, most: usize) -> Vec<Finding> {
    let (graph, mut bad) = Graph::of(root, name);
    for circle in graph.circles().iter().filter(|circle| circle.len() > most) {
        let what = format!(
            "a circle of {} files, {most} are the bound:\n  {}",
            circle.len(),
            circle.join("\n  ")
        );
        bad.push(Finding::new(format!("crates/{name}/src"), 0, what));
    }
    bad
}

/// Arrows between the rooms of a crate that its rows do not have, and arrows of rows that the crate does not have.
pub fn arrows(root: &Path, name: &str, rows: &[Room]) -> Vec<Finding> {
    let (graph, mut bad) = Graph::of(root, name);
    let rooms: Vec<(Module, &Room)> = rows
        .iter()
        .filter_map(|row| Some((room_of(name, row)?, row)))
        .collect();
    let room = |module: &Module| {
        let above = rooms.iter().filter(|(room, _)| module.starts_with(room));
        above
            .max_by_key(|(room, _)| room.len())
            .map(|(room, row)| (room.join("::"), *row))
    };
    let mut used = BTreeSet::new();
    for (from, named) in &graph.edges {
        let path = graph.paths.get(from).map_or("", String::as_str);
        let Some((own, row)) = room(from) else {
            // The crate's root composes its rooms.
            if !from.is_empty() {
                bad.push(Finding::new(
                    path,
                    0,
                    format!("is in no room of `{name}`: give it a row"),
                ));
            }
            continue;
        };
        for to in named {
            // What the root itself has is everybody's; a file in no room is told for itself.
            let Some((other, _)) = room(to) else { continue };
            used.insert((own.clone(), other.clone()));
            if own != other && !row.may.contains(&other.as_str()) {
                bad.push(Finding::new(
                    path,
                    0,
                    format!("`{own}` must not name `{}`", to.join("::")),
                ));
            }
        }
    }
    for (own, row) in &rooms {
        let own = own.join("::");
        for other in row
            .may
            .iter()
            .filter(|other| !used.contains(&(own.clone(), (**other).to_owned())))
        {
            bad.push(Finding::new(
                row.name,
                0,
                format!("does not name `{other}` any more; take it off its row"),
            ));
        }
    }
    bad
}

fn room_of(name: &str, row: &Room) -> Option<Module> {
    let mut parts = row.name.split("::").map(str::to_owned);
    (parts.next()? == name).then(|| parts.collect())
}

/// The file that has what a path names: through modules, and through names that modules hand on.
fn resolve(files: &BTreeMap<Module, File>, path: Module, depth: usize) -> Option<Module> {
    const MAX_HANDED_ON: usize = 16;
    let mut module = Module::new();
    for (at, part) in path.iter().enumerate() {
        let mut below = module.clone();
        below.push(part.clone());
        if files.contains_key(&below) {
            module = below;
            continue;
        }
        let handed = files.get(&module).and_then(|file| file.handed_on.get(part));
        if let Some(target) = handed.filter(|_| depth < MAX_HANDED_ON) {
            let rest = path.iter().skip(at + 1).cloned();
            return resolve(
                files,
                target.iter().cloned().chain(rest).collect(),
                depth + 1,
            );
        }
        return Some(module);
    }
    // A module by itself is nothing that is used; what is named of it is.
    None
}

struct File {
    path: String,
    module: Module,
    /// By `use` and `pub use`; `pub use` only.
    names: Names,
    handed_on: Names,
    /// The code without its `use`s.
    code: String,
}

impl File {
    fn read(source: &Source, prefix: &str) -> Self {
        let below = source
            .path
            .strip_prefix(prefix)
            .unwrap_or(&source.path)
            .trim_end_matches(".rs");
        let mut module: Module = below.split('/').map(str::to_owned).collect();
        if module
            .last()
            .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
        {
            module.pop();
        }
        let mut file = Self {
            path: source.path.clone(),
            module,
            names: Names::new(),
            handed_on: Names::new(),
            code: String::new(),
        };
        let code = source.shipped_code();
        let mut from = 0;
        for at in source::words(&code, "use") {
            let Some(end) = code
                .get(at..)
                .and_then(|rest| rest.find(';'))
                .map(|length| at + length)
            else {
                break;
            };
            let before = code.get(..at).unwrap_or_default().trim_end();
            let statement = before.is_empty()
                || before.ends_with(['{', '}', ';', ']', ')'])
                || before.ends_with("pub");
            if at < from || !statement {
                continue;
            }
            let public =
                before.ends_with("pub") || before.ends_with(')') && before.contains("pub(");
            file.code.push_str(code.get(from..at).unwrap_or_default());
            let mut names = Vec::new();
            tree(code.get(at + 3..end).unwrap_or_default(), &[], &mut names);
            for (name, path) in names {
                let Some(path) = file.absolute(&path) else {
                    continue;
                };
                if public {
                    file.handed_on.insert(name.clone(), path.clone());
                }
                file.names.insert(name, path);
            }
            from = end + 1;
        }
        file.code.push_str(code.get(from..).unwrap_or_default());
        file
    }

    /// From the root of the crate; `None` for what another crate has.
    fn absolute(&self, path: &[String]) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let base = match first.as_str() {
            "crate" => return Some(rest.to_vec()),
            "self" => self.module.clone(),
            "super" => {
                let above = self
                    .module
                    .get(..self.module.len().checked_sub(1)?)?
                    .to_vec();
                let rest: Vec<&String> = rest.iter().collect();
                let more = rest
                    .iter()
                    .take_while(|part| part.as_str() == "super")
                    .count();
                let above = above.get(..above.len().checked_sub(more)?)?.to_vec();
                return Some(
                    above
                        .into_iter()
                        .chain(rest.into_iter().skip(more).cloned())
                        .collect(),
                );
            }
            name => match self.names.get(name) {
                Some(path) => path.clone(),
                None => [self.module.clone(), vec![name.to_owned()]].concat(),
            },
        };
        Some(base.into_iter().chain(rest.iter().cloned()).collect())
    }

    /// What the code names: paths, and single names that a `use` brought.
    fn names(&self) -> impl Iterator<Item = Module> {
        paths(&self.code)
            .into_iter()
            .filter_map(|path| match path.as_slice() {
                [name] => self.names.get(name).cloned(),
                _ => self.absolute(&path),
            })
    }
}

/// The names that a tree of `use` brings, each with its path.
fn tree(text: &str, base: &[String], names: &mut Vec<(String, Module)>) {
    let text = text.trim();
    let (head, group) = match text.find('{') {
        Some(open) => (
            text.get(..open).unwrap_or_default(),
            text.get(open + 1..).and_then(|t| t.strip_suffix('}')),
        ),
        None => (text, None),
    };
    let (path, alias) = head
        .rsplit_once(" as ")
        .map_or((head, None), |(path, alias)| (path, Some(alias.trim())));
    let parts = path
        .split("::")
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let mut path: Module = base
        .iter()
        .cloned()
        .chain(parts.map(str::to_owned))
        .collect();
    if let Some(group) = group {
        split(group)
            .into_iter()
            .filter(|part| !part.trim().is_empty())
            .for_each(|part| tree(part, &path, names));
        return;
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(last) = path.last().cloned() {
        names.push((alias.map_or(last, str::to_owned), path));
    }
}

/// At the commas that are in no braces.
fn split(group: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0;
    let mut from = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(group.get(from..at).unwrap_or_default());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(group.get(from..).unwrap_or_default());
    parts
}

/// Each path of names with `::` between them, and each single name.
fn paths(code: &str) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    let mut path: Vec<String> = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let joined = rest
            .get(..start)
            .is_some_and(|between| between.trim() == "::");
        if !joined && !path.is_empty() {
            found.insert(std::mem::take(&mut path));
        }
        let tail = rest.get(start..).unwrap_or_default();
        let length = tail.bytes().take_while(|b| is_ident(*b)).count();
        path.push(tail.get(..length).unwrap_or_default().to_owned());
        rest = tail.get(length..).unwrap_or_default();
    }
    found.extend((!path.is_empty()).then_some(path));
    found
}
