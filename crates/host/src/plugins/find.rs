//! Where packages are looked for. Opens manifests, and nothing else of a package.

use super::package::FoundPackage;
use crate::env::Env;
use crate::plain_file::{self, Links};
use plugin::{Layout, MANIFEST, MAX_MANIFEST, Manifest, Renames, manifests};
use pod::feature::FeatureDescriptor;
use semver::Version;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Most packages, bytes of all their manifests, and names that are read of one directory.
const MAX_PACKAGES: usize = 64;
const MAX_MANIFESTS: usize = 2 * 1024 * 1024;
const MAX_NAMES: usize = 1024;

/// A package that a configuration names.
#[derive(Clone, Debug)]
pub struct NamedPackage {
    pub name: String,
    pub path: PathBuf,
    /// Where it stands.
    pub source: String,
}

/// Where packages are: the first one of a name is the one that counts.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub entries: Vec<NamedPackage>,
    /// Directories of packages, and what names each.
    pub dirs: Vec<(PathBuf, String)>,
    /// The same of a project, behind all others: it takes the place of no package of the person.
    pub project: ProjectPlaces,
    pub renames: Renames,
}

/// Where a project says that packages are.
#[derive(Clone, Debug, Default)]
pub struct ProjectPlaces {
    pub root: PathBuf,
    pub entries: Vec<NamedPackage>,
    /// Directories of packages, and what names each.
    pub dirs: Vec<(PathBuf, String)>,
}

/// The packages that were found.
#[derive(Clone, Debug, Default)]
pub struct Plugins {
    /// By the order of the places, then by name.
    pub found: Vec<Arc<FoundPackage>>,
    /// What belongs to no package.
    pub problems: Vec<String>,
}

impl Plugins {
    /// Looks in all places.
    pub fn find(places: &Places, env: &Env) -> Self {
        let mut finding = Finding::new(places, env);
        finding.all(&places.entries, &places.dirs);
        finding.within = Some(&places.project.root);
        finding.all(&places.project.entries, &places.project.dirs);
        finding.unknown_renames();
        finding.plugins
    }

    /// What the packages declare, granted or not.
    pub fn declared(&self) -> impl Iterator<Item = &FeatureDescriptor> {
        self.found
            .iter()
            .flat_map(|package| package.features().map(|feature| &feature.descriptor))
    }

    /// Whether something that was found, and so perhaps a tool that is named elsewhere, cannot be read.
    pub fn is_incomplete(&self) -> bool {
        let is_bad = |package: &Arc<FoundPackage>| {
            package.manifest.as_ref().map_or(true, |manifest| {
                manifest.features.values().any(Result::is_err)
            })
        };
        !self.problems.is_empty() || self.found.iter().any(is_bad)
    }
}

/// Plugins that are looked for when something asks. No part of what is configured, and so not of its digest: the report of a
/// start has the digest of each.
#[derive(Clone, Default)]
pub struct OnDemand(OnceLock<Plugins>);

impl OnDemand {
    /// The package of this name.
    pub fn get(&self, places: &Places, env: &Env) -> &Plugins {
        self.0.get_or_init(|| Plugins::find(places, env))
    }
}

impl fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDemand")
    }
}

/// The package in a directory, whatever else is found; `renames` are those of the person.
pub fn at(dir: &Path, renames: Renames, env: &Env) -> Arc<FoundPackage> {
    let places = Places {
        renames,
        ..Places::default()
    };
    let mut finding = Finding::new(&places, env);
    finding.package(dir, None, "", None);
    let nothing = || {
        FoundPackage::new(
            String::new(),
            dir.to_owned(),
            String::new(),
            Err("it is not there".to_owned()),
        )
    };
    finding
        .plugins
        .found
        .pop()
        .unwrap_or_else(|| Arc::new(nothing()))
}

/// Whether a directory has a manifest, whatever it is.
pub fn is_package(dir: &Path) -> bool {
    manifests().any(|name| is_there(&dir.join(name)))
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

struct Finding<'a> {
    places: &'a Places,
    env: &'a Env,
    /// Of packages that count.
    names: BTreeSet<String>,
    bytes: usize,
    /// Whether there are more packages than are read.
    is_full: bool,
    /// The project, while its own packages are found: a link in it leads to none that was granted elsewhere.
    within: Option<&'a Path>,
    plugins: Plugins,
}

impl<'a> Finding<'a> {
    fn new(places: &'a Places, env: &'a Env) -> Self {
        let names = BTreeSet::new();
        let plugins = Plugins::default();
        Self {
            places,
            env,
            names,
            bytes: 0,
            is_full: false,
            within: None,
            plugins,
        }
    }
}

impl Finding<'_> {
    fn all(&mut self, entries: &[NamedPackage], dirs: &[(PathBuf, String)]) {
        for NamedPackage { name, path, source } in entries {
            self.package(path, None, source, Some(name));
        }
        for (dir, source) in dirs {
            self.directory(dir, source);
        }
    }

    /// The packages of a directory; what has no manifest is none.
    fn directory(&mut self, dir: &Path, source: &str) {
        // A directory that the person named has to be there.
        let is_named = source != self.env.shown(dir);
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) => {
                let what = format!(
                    "{source}: {}",
                    authority::explain_at(&self.env.shown(dir), &error)
                );
                self.plugins.problems.extend(is_named.then_some(what));
                return;
            }
        };
        if is_named && is_package(dir) {
            let what = format!(
                "{source}: {} is a plugin; name the directory that contains it",
                self.env.shown(dir)
            );
            self.plugins.problems.push(what);
        }
        // A directory in it that is no link has its own name there: resolving one path is enough.
        let place = dir.canonicalize().ok();
        let package = |entry: fs::DirEntry| {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let resolved = place
                .as_ref()
                .filter(|_| is_dir)
                .map(|place| place.join(entry.file_name()));
            (entry.path(), resolved)
        };
        let mut packages: Vec<_> = entries.flatten().take(MAX_NAMES + 1).map(package).collect();
        if packages.len() > MAX_NAMES {
            packages.truncate(MAX_NAMES);
            self.plugins.problems.push(format!(
                "{}: only {MAX_NAMES} names are read",
                self.env.shown(dir)
            ));
        }
        packages.sort();
        for (package, resolved) in packages {
            if is_package(&package) {
                self.package(&package, resolved, source, None);
            }
        }
    }

    /// One package. `resolved` is its path without links, where that is known; `entry` is the name that a configuration has
    /// for it.
    fn package(
        &mut self,
        path: &Path,
        resolved: Option<PathBuf>,
        source: &str,
        entry: Option<&str>,
    ) {
        if self.plugins.found.len() >= MAX_PACKAGES {
            if !self.is_full {
                let what = format!(
                    "{}: only {MAX_PACKAGES} plugins are read",
                    self.env.shown(path)
                );
                self.plugins.problems.push(what);
            }
            self.is_full = true;
            return;
        }
        let named = path
            .file_name()
            .map(|name| authority::escape(Path::new(name)))
            .unwrap_or_default();
        let name = entry.map_or(named, str::to_owned);
        let resolved = resolved.map_or_else(|| path.canonicalize(), Ok);
        let found = resolved.map_err(|error| authority::explain(&error)).and_then(|dir| {
            if self.within.is_some_and(|root| path.starts_with(root) && !dir.starts_with(root)) {
                return Err("it leads out of the project, which can only name plugins inside of it; name it in your own configuration".to_owned());
            }
            let manifest = self.manifest(&dir)?;
            Ok((dir, manifest))
        });
        let (dir, manifest) = match found {
            Ok((dir, (manifest, text))) => (
                dir,
                self.counts(manifest, entry)
                    .map(|manifest| (manifest, text)),
            ),
            Err(why) => (path.to_owned(), Err(why)),
        };
        let name = manifest
            .as_ref()
            .map_or(name, |(manifest, _)| manifest.package.name.clone());
        self.plugins.found.push(Arc::new(FoundPackage::new(
            name,
            dir,
            source.to_owned(),
            manifest,
        )));
    }

    /// A manifest and its text.
    fn manifest(&mut self, dir: &Path) -> Result<(Manifest, String), String> {
        let layout = Layout::ALL
            .into_iter()
            .find(|layout| is_there(&dir.join(layout.manifest())));
        let layout = layout.filter(|_| !is_there(&dir.join(MANIFEST)));
        let name = layout.map_or(MANIFEST, Layout::manifest);
        let file = plain_file::open(&dir.join(name), Links::Refused)
            .map_err(|why| format!("{name} {why}"))?;
        let file = file.ok_or_else(|| format!("there is no {name}"))?;
        let most = u64::try_from(MAX_MANIFEST).unwrap_or(u64::MAX);
        let bytes = plain_file::whole(file, most).map_err(|why| format!("{name} {why}"))?;
        self.bytes += bytes.len();
        if self.bytes > MAX_MANIFESTS {
            return Err(format!(
                "the manifests before it have {} MiB",
                MAX_MANIFESTS >> 20
            ));
        }
        let text = plain_file::text(&bytes).map_err(|why| format!("{name} {why}"))?;
        if let Some(layout) = layout {
            let manifest = layout.read(text).map_err(|why| format!("{name}: {why}"))?;
            return Ok((manifest, text.to_owned()));
        }
        let version =
            Version::parse(env!("CARGO_PKG_VERSION")).map_err(|error| error.to_string())?;
        let renames = &self.places.renames;
        let runtimes = self.env.added.runtimes();
        let manifest = Manifest::read(text, &version, renames, runtimes);
        let manifest = manifest.map_err(|why| why.to_string())?;
        Ok((manifest, text.to_owned()))
    }

    /// The first package of a name counts, under its own name only.
    fn counts(&mut self, manifest: Manifest, entry: Option<&str>) -> Result<Manifest, String> {
        let name = &manifest.package.name;
        if let Some(entry) = entry.filter(|entry| entry != name) {
            return Err(format!(
                "its name is {name}, not {entry}; write [plugins.{name}]"
            ));
        }
        if !self.names.insert(name.clone()) {
            let first = self
                .plugins
                .found
                .iter()
                .find(|found| found.name == *name && found.manifest.is_ok());
            let first = first.map_or_else(String::new, |found| {
                format!(": {}, which is used", self.env.shown(&found.dir))
            });
            return Err(format!("another plugin is called {name}, too{first}"));
        }
        Ok(manifest)
    }

    /// A name that is given to no tool is a slip of the pen.
    fn unknown_renames(&mut self) {
        for (package, tools) in &self.places.renames {
            let Some(found) = self
                .plugins
                .found
                .iter()
                .find(|found| found.manifest.is_ok() && found.name == *package)
            else {
                continue;
            };
            let has = |name: &String| {
                let mut tools = found
                    .features()
                    .flat_map(|feature| &feature.descriptor.declared_tools);
                tools.any(|tool| tool.name == *name)
            };
            // A feature that does not read has tools that nobody knows.
            if found
                .manifest
                .iter()
                .any(|manifest| manifest.features.values().any(Result::is_err))
            {
                continue;
            }
            let unknown = tools.iter().filter(|(_, name)| !has(name));
            let problems = unknown
                .map(|(tool, _)| format!("plugins.{package}.rename: it has no tool `{tool}`"));
            self.plugins.problems.extend(problems);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str) -> String {
        format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\n[features.main]\n")
    }

    fn found(dir: &Path) -> Plugins {
        let dirs = vec![(dir.to_owned(), "here".to_owned())];
        Plugins::find(
            &Places {
                dirs,
                ..Places::default()
            },
            &Env::with(&[]),
        )
    }

    fn package(dir: &Path, name: &str, text: &str) {
        fs::create_dir(dir.join(name)).unwrap();
        fs::write(dir.join(name).join(MANIFEST), text).unwrap();
    }

    #[test]
    fn names_of_a_directory_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..MAX_NAMES {
            fs::create_dir(dir.path().join(number.to_string())).unwrap();
        }
        assert!(found(dir.path()).problems.is_empty());
        fs::create_dir(dir.path().join("one-more")).unwrap();
        let plugins = found(dir.path());
        assert!(
            plugins
                .problems
                .concat()
                .contains("only 1024 names are read"),
            "{:?}",
            plugins.problems
        );
    }

    #[test]
    fn packages_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..MAX_PACKAGES {
            package(
                dir.path(),
                &format!("p{number:02}"),
                &manifest(&format!("p{number:02}")),
            );
        }
        assert!(found(dir.path()).problems.is_empty());
        package(dir.path(), "q", &manifest("q"));
        let plugins = found(dir.path());
        assert_eq!(
            (plugins.found.len(), plugins.problems.len()),
            (MAX_PACKAGES, 1),
            "{:?}",
            plugins.problems
        );
    }

    #[test]
    fn all_manifests_together_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..9 {
            let head = manifest(&format!("p{number}"));
            let rest = "#".repeat(MAX_MANIFEST - head.len());
            package(dir.path(), &format!("p{number}"), &[head, rest].concat());
        }
        let plugins = found(dir.path());
        let unread: Vec<&str> = plugins
            .found
            .iter()
            .filter(|found| found.manifest.is_err())
            .map(|found| found.name.as_str())
            .collect();
        assert_eq!(unread, ["p8"], "8 of 256 KiB are 2 MiB");
        fs::write(dir.path().join("p0").join(MANIFEST), manifest("p0")).unwrap();
        package(dir.path(), "a", &"#".repeat(MAX_MANIFEST + 1));
        let plugins = found(dir.path());
        let why = plugins.found[0].manifest.as_ref().unwrap_err();
        assert!(why.contains("more than 256 KiB"), "{why}");
    }

    #[test]
    fn the_first_package_of_a_name_counts() {
        let dir = tempfile::tempdir().unwrap();
        package(dir.path(), "a", &manifest("same"));
        package(dir.path(), "b", &manifest("same"));
        let plugins = found(dir.path());
        assert!(plugins.found[0].manifest.is_ok() && plugins.found[1].manifest.is_err());
        assert_eq!(plugins.declared().count(), 1);
        assert!(plugins.is_incomplete());
    }
}
