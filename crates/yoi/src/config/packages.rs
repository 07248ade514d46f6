//! Where plugins are looked for, and which of their tools have other names. A project names its plugins, and the person grants.

use super::file::{PluginConfig, PluginsConfig};
use super::project::Narrowing;
use super::{Config, Source};
use crate::env::Env;
use crate::exit::Failure;
use crate::plugins::{NamedPackage, Plugins};
use pod::feature::FeatureDescriptor;
use std::path::{Path, PathBuf};

/// Directories of packages: in the person's configuration, and in a project.
const DIR: &str = "plugins";
const PROJECT_DIR: &str = ".yoi/plugins";

/// Names one more directory of packages.
const DIR_VARIABLE: &str = "YOI_PLUGIN_DIR";

impl PluginsConfig {
    /// Makes the paths absolute: `~/` is the home directory, others are below `base`.
    pub(super) fn resolve(&mut self, base: Option<&Path>, env: &Env) -> Result<(), Failure> {
        for path in self.by_name.values_mut().filter_map(|plugin| plugin.path.as_mut()) {
            *path = match path.strip_prefix("~") {
                Ok(rest) => env.home()?.join(rest),
                Err(_) => base.unwrap_or(&env.cwd).join(&path),
            };
        }
        Ok(())
    }
}

impl Config {
    /// Everything that is declared: by this program, and by the plugins that were found, granted or not.
    pub(crate) fn declared(&self) -> Vec<FeatureDescriptor> {
        crate::program::declared().into_iter().chain(self.plugins.declared().cloned()).collect()
    }

    pub(super) fn layer_plugins(&mut self, plugins: PluginsConfig, place: &dyn Fn(&[&str]) -> Source) {
        let PluginsConfig { strict, by_name } = plugins;
        self.strict_plugins.set(strict, || place(&[DIR, "strict"]));
        for (name, PluginConfig { path, rename }) in by_name {
            self.plugin_places.renames.entry(name.clone()).or_default().extend(rename);
            let Some(path) = path else { continue };
            let source = place(&[DIR, &name, "path"]);
            self.plugin_places.entries.retain(|entry| entry.name != name);
            self.plugin_places.entries.push(NamedPackage { name, path, source });
        }
    }

    /// Takes `strict = true`; gives what was granted and the person's own files have not.
    pub(super) fn narrow_plugins(&mut self, plugins: PluginsConfig, asking: &mut Narrowing<'_>) -> PluginsConfig {
        let PluginsConfig { strict, by_name } = plugins;
        self.strict_plugins.set(strict.filter(|strict| *strict), || asking.text.place(&[DIR, "strict"]));
        let mut granted = PluginsConfig::default();
        for (name, mut plugin) in by_name {
            if !asking.granted(&[DIR, &name]) {
                continue;
            }
            if self.plugin_places.entries.iter().any(|entry| entry.name == name) {
                plugin.path = None;
            }
            if let Some(own) = self.plugin_places.renames.get(&name) {
                plugin.rename.retain(|tool, _| !own.contains_key(tool));
            }
            granted.by_name.insert(name, plugin);
        }
        granted
    }

    /// Adds directories of packages, before those of the project.
    pub(crate) fn add_plugin_dirs<'a>(
        &mut self,
        dirs: impl Iterator<Item = &'a Path>,
        env: &Env,
    ) -> Result<(), Failure> {
        let dirs: Vec<_> = dirs.map(|dir| (env.cwd.join(dir), "--plugin-dir".to_owned())).collect();
        if !dirs.is_empty() {
            let project = self.plugin_places.dirs.len().saturating_sub(1);
            self.plugin_places.dirs.splice(project..project, dirs);
            self.plugins = Plugins::find(&self.plugin_places, env);
        }
        Ok(())
    }

    /// Looks for plugins in all places.
    pub(super) fn find_plugins(&mut self, env: &Env) -> Result<(), Failure> {
        let own = env.config_dir()?.join(DIR);
        let named = env.var(DIR_VARIABLE).map(|dir| (env.cwd.join(dir), DIR_VARIABLE.to_owned()));
        let project = self.project.root.join(PROJECT_DIR);
        let shown = |dir: PathBuf| (dir.clone(), env.shown(&dir));
        self.plugin_places.dirs = std::iter::once(shown(own)).chain(named).chain([shown(project)]).collect();
        self.plugins = Plugins::find(&self.plugin_places, env);
        Ok(())
    }
}
