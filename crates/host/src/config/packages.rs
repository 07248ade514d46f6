//! Where plugins are looked for, and which of their tools have other names. A project names its plugins, and the person grants.

use super::file::{PluginConfig, PluginsConfig};
use super::project::{Narrowing, granted_at};
use super::{Config, Source, Sourced};
use crate::env::Env;
use crate::exit::Failure;
use crate::mcp::Servers;
use crate::plugins::{self, FoundPackage, NamedPackage, Plugins};
use crate::skills;
use builtins::tool_search;
use pod::feature::{FeatureDescriptor, FeatureModule};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories of packages: in the person's configuration, and in a project.
const DIR: &str = "plugins";
const PROJECT_DIR: &str = ".yoi/plugins";

/// Names one more directory of packages.
const DIR_VARIABLE: &str = "YOI_PLUGIN_DIR";

impl PluginsConfig {
    /// Makes the paths absolute: `~/` is the home directory, others are below `base`.
    pub(super) fn resolve(&mut self, base: Option<&Path>, env: &Env) -> Result<(), Failure> {
        for path in self
            .by_name
            .values_mut()
            .filter_map(|plugin| plugin.path.as_mut())
        {
            env.resolve(path, base)?;
        }
        Ok(())
    }
}

impl Config {
    /// Everything that is declared: by this program, and by the plugins that were found, granted or not.
    pub fn declared(&self, env: &Env) -> Vec<FeatureDescriptor> {
        env.added
            .declared()
            .into_iter()
            .chain(self.plugins(env).declared().cloned())
            .chain(
                self.servers(env)
                    .all
                    .iter()
                    .map(|found| found.feature.descriptor()),
            )
            // It finds tools of servers alone.
            .chain((!self.servers(env).all.is_empty()).then(tool_search::declared))
            .collect()
    }

    pub(super) fn layer_plugins(
        &mut self,
        plugins: PluginsConfig,
        place: &dyn Fn(&[&str]) -> Source,
    ) {
        let PluginsConfig { strict, by_name } = plugins;
        self.strict_plugins.set(strict, || place(&[DIR, "strict"]));
        for (name, PluginConfig { path, rename }) in by_name {
            self.plugin_places
                .renames
                .entry(name.clone())
                .or_default()
                .extend(rename);
            let Some(path) = path else { continue };
            let source = place(&[DIR, &name, "path"]);
            self.plugin_places
                .entries
                .retain(|entry| entry.name != name);
            self.plugin_places
                .entries
                .push(NamedPackage { name, path, source });
        }
    }

    /// Takes `strict = true`; gives what was granted and the person's own files have not.
    pub(super) fn narrow_plugins(
        &mut self,
        plugins: PluginsConfig,
        asking: &mut Narrowing<'_>,
    ) -> PluginsConfig {
        let PluginsConfig { strict, by_name } = plugins;
        self.strict_plugins
            .set(strict.filter(|strict| *strict), || {
                asking.text.place(&[DIR, "strict"])
            });
        let mut granted = PluginsConfig::default();
        for (name, mut plugin) in by_name {
            if !asking.granted(&[DIR, &name]) {
                continue;
            }
            if let Some(path) = plugin.path.take() {
                let source = granted_at(asking.text, &[DIR, &name, "path"]);
                let entries = &mut self.plugin_places.project.entries;
                entries.retain(|entry| entry.name != name);
                entries.push(NamedPackage {
                    name: name.clone(),
                    path,
                    source,
                });
            }
            if let Some(own) = self.plugin_places.renames.get(&name) {
                plugin.rename.retain(|tool, _| !own.contains_key(tool));
            }
            granted.by_name.insert(name, plugin);
        }
        granted
    }

    /// The package in a directory, with the names that the configuration gives its tools.
    pub fn package_at(&self, dir: &Path, env: &Env) -> Arc<FoundPackage> {
        plugins::at(&env.cwd.join(dir), self.plugin_places.renames.clone(), env)
    }

    /// What is configured, with these directories of packages.
    pub fn load_with_plugins(env: &Env, dirs: &[PathBuf]) -> Result<Self, Failure> {
        let mut config = Self::load(env)?;
        config.add_plugin_dirs(dirs.iter().map(PathBuf::as_path), env)?;
        Ok(config)
    }

    /// Adds directories of packages.
    pub fn add_plugin_dirs<'a>(
        &mut self,
        dirs: impl Iterator<Item = &'a Path>,
        env: &Env,
    ) -> Result<(), Failure> {
        let dirs: Vec<_> = dirs
            .map(|dir| (env.cwd.join(dir), "--plugin-dir".to_owned()))
            .collect();
        if !dirs.is_empty() {
            self.plugin_places.dirs.extend(dirs);
            self.plugins = plugins::OnDemand::default();
            self.skills = skills::SkillsOnDemand::default();
        }
        Ok(())
    }

    /// Leaves out all other skills of this start.
    pub(super) fn keep_skills(&mut self, skills: Sourced<Vec<String>>) {
        self.only_skills = Some(skills);
        self.skills = skills::SkillsOnDemand::default();
    }

    /// The plugins in all places. Looks for them when it is first asked: not every command has to do with them.
    pub fn plugins(&self, env: &Env) -> &Plugins {
        self.plugins.get(&self.plugin_places, env)
    }

    /// The MCP servers of the person, read when they are first asked for.
    pub fn servers(&self, env: &Env) -> &Servers {
        self.servers.get(env)
    }

    /// Completes the places where plugins are looked for.
    pub(super) fn place_plugins(&mut self, env: &Env) -> Result<(), Failure> {
        let own = env.config_dir()?.join(DIR);
        let named = env
            .var(DIR_VARIABLE)
            .map(|dir| (env.cwd.join(dir), DIR_VARIABLE.to_owned()));
        let shown = |dir: PathBuf| (dir.clone(), env.shown(&dir));
        let places = &mut self.plugin_places;
        places.dirs = std::iter::once(shown(own)).chain(named).collect();
        places.project.root.clone_from(&self.project.root);
        places.project.dirs = vec![shown(self.project.root.join(PROJECT_DIR))];
        Ok(())
    }
}
