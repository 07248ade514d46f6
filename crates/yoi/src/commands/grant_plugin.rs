//! Plugins in the lists of `yoi grant` and `yoi revoke`: what each would run, and which files changed since its last grant.

use super::grant::{Entry, short};
use host::compose::packages;
use host::config::Config;
use host::env::Env;
use host::exit::Failure;
use host::plugins::{CopyPlace, FoundPackage, PackageGrant, Standing};
use llm_worker::ToolEffect;
use plugin::{DeclaredFeature, Manifest};
use pod::feature::ToolDeclaration;
use pod::permission::Rule;
use serde::Serialize;

/// Most changed files that are shown to people.
const MAX_CHANGED: usize = 20;

/// A plugin whose content nobody granted.
#[derive(Serialize)]
pub(super) struct PendingPlugin {
    key: String,
    version: String,
    directory: String,
    /// Of its content now.
    digest: String,
    features: Vec<PendingFeature>,
    /// Its skills, commands, agents and servers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<String>,
    /// Files that are not as they were granted; empty where nothing was.
    changed: Vec<String>,
    #[serde(skip)]
    grant: PackageGrant,
}

#[derive(Serialize)]
struct PendingFeature {
    id: String,
    /// Whether it adds texts to the system prompt.
    instructions: usize,
    /// Those that ask or deny.
    rules: Vec<Rule>,
    tools: Vec<PendingTool>,
    /// The program that answers its tools and hooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    guest: Option<String>,
    /// Its hooks and states, and what its guests may do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    further: Vec<String>,
}

#[derive(Serialize)]
struct PendingTool {
    name: String,
    /// As the package says: calls that change nothing run without an approval.
    effect: ToolEffect,
    /// Whether its arguments name files or hosts, which rules are about.
    touches: bool,
    /// With its arguments.
    program: String,
    network: bool,
}

/// A grant of a plugin, wherever the plugin is.
#[derive(Serialize)]
pub(super) struct GrantedPlugin {
    key: String,
    version: String,
    directory: String,
    digest: String,
    #[serde(skip)]
    grant: PackageGrant,
}

/// The plugins that can be granted, and why others cannot. Reads all their files.
pub(super) fn pending(config: &Config, env: &Env) -> (Vec<PendingPlugin>, Vec<String>) {
    let mut pending = Vec::new();
    let mut problems = config.plugins(env).problems.clone();
    for package in &config.plugins(env).found {
        problems.extend(
            packages::problems(package, env)
                .into_iter()
                .map(|(_, problem)| problem),
        );
        let Ok(manifest) = &package.manifest else {
            continue;
        };
        let changed = match package.standing(env) {
            Standing::Granted { .. } => continue,
            Standing::Changed(files) => files.clone(),
            Standing::NotGranted | Standing::Unreadable(_) => Vec::new(),
        };
        match PendingPlugin::of(package, manifest, changed) {
            Ok(plugin) => pending.push(plugin),
            Err(why) => problems.push(format!("plugin {} cannot be granted: {why}", package.name)),
        }
    }
    (pending, problems)
}

impl PendingPlugin {
    fn of(
        package: &FoundPackage,
        manifest: &Manifest,
        changed: Vec<String>,
    ) -> Result<Self, String> {
        let grant = PackageGrant::new(&package.dir, manifest, &package.content()?);
        let parts = package.parts()?;
        if parts.digest != grant.digest {
            return Err("it changed while it was read; try again".to_owned());
        }
        let features = package.features().map(|feature| PendingFeature {
            id: feature.descriptor.id.to_string(),
            instructions: feature.descriptor.instructions.len(),
            rules: feature.descriptor.rules.clone(),
            guest: feature.guest.as_ref().map(ToString::to_string),
            further: feature.further(),
            tools: feature
                .descriptor
                .declared_tools
                .iter()
                .filter_map(|tool| PendingTool::of(feature, tool))
                .collect(),
        });
        Ok(Self {
            key: format!("plugin:{}", package.name),
            version: grant.version.clone(),
            directory: grant.directory.clone(),
            digest: grant.digest.clone(),
            features: features.collect(),
            parts: parts.lines(),
            changed,
            grant,
        })
    }

    /// Grants exactly this content. The caller holds the lock of the grants.
    pub(super) fn grant(&self, env: &Env) -> Result<(), Failure> {
        let before = PackageGrant::load(env, std::path::Path::new(&self.directory))
            .ok()
            .flatten();
        self.grant.save(env)?;
        before.map_or(Ok(()), |before| forget_copy(&before.digest, env))
    }
}

impl PendingFeature {
    /// What it runs and may do, a line each.
    fn abilities(&self) -> impl Iterator<Item = String> {
        let guest = self.guest.iter();
        let guest = guest.map(|guest| format!("guests run `{guest}`"));
        let tools = self.tools.iter().map(PendingTool::line);
        let rules = self.rules.iter().map(|rule| format!("rule: {rule}"));
        let texts = tui::count(self.instructions as u64, "text");
        let texts = format!("adds {texts} to the system prompt");
        guest
            .chain(tools)
            .chain(self.further.iter().cloned())
            .chain(rules)
            .chain((self.instructions > 0).then_some(texts))
    }
}

/// What a package runs and may do once it is granted, a line each.
///
/// # Errors
/// It cannot be read.
pub(super) fn abilities(package: &FoundPackage) -> Result<Vec<String>, String> {
    let manifest = package.manifest.as_ref().map_err(Clone::clone)?;
    let pending = PendingPlugin::of(package, manifest, Vec::new())?;
    let of_features = pending.features.iter().flat_map(|feature| {
        let of_feature = feature.abilities();
        of_feature.map(|line| format!("{}: {line}", feature.id))
    });
    Ok(pending.parts.iter().cloned().chain(of_features).collect())
}

impl PendingTool {
    fn of(feature: &DeclaredFeature, tool: &ToolDeclaration) -> Option<Self> {
        let own = feature.programs.get(&tool.name);
        let program = own.or(feature.guest.as_ref())?;
        let name = tool.name.clone();
        let effect = tool.effect;
        let touches = !tool.touches.is_empty();
        Some(Self {
            name,
            effect,
            touches,
            program: program.to_string(),
            network: program.network,
        })
    }

    fn line(&self) -> String {
        let Self {
            name,
            effect,
            touches,
            program,
            network,
        } = self;
        let effect = match (effect, touches) {
            (ToolEffect::ReadOnly, false) => {
                "; it says that it changes nothing, so no call is asked about"
            }
            (ToolEffect::ReadOnly, true) => {
                "; it says that it changes nothing: only rules about the files and hosts that a call names decide"
            }
            (ToolEffect::Idempotent | ToolEffect::Effectful, _) => {
                "; it changes something: rules and questions decide about each call"
            }
        };
        let network = if *network {
            ", with network access"
        } else {
            ""
        };
        format!("tool {name} runs `{program}`{network}{effect}")
    }
}

/// The plugins that the person granted, in any directory.
pub(super) fn granted(env: &Env) -> Result<Vec<GrantedPlugin>, Failure> {
    let all = PackageGrant::all(env)?
        .into_iter()
        .map(|grant| GrantedPlugin {
            key: format!("plugin:{}", grant.package),
            version: grant.version.clone(),
            directory: grant.directory.clone(),
            digest: grant.digest.clone(),
            grant,
        });
    Ok(all.collect())
}

impl GrantedPlugin {
    /// Whether it is for the package in this directory.
    pub(super) fn is_of(&self, dir: &std::path::Path) -> bool {
        self.grant.is_of(dir)
    }

    /// Takes the grant back. The caller holds the lock of the grants.
    pub(super) fn revoke(&self, env: &Env) -> Result<(), Failure> {
        self.grant.remove(env)?;
        forget_copy(&self.digest, env)
    }
}

/// Removes a copy that no grant is for any more.
fn forget_copy(digest: &str, env: &Env) -> Result<(), Failure> {
    if PackageGrant::all(env)?
        .iter()
        .all(|grant| grant.digest != digest)
        && let Ok(copies) = CopyPlace::of(env)
    {
        copies.remove(digest);
    }
    Ok(())
}

fn head(key: &str, version: &str, directory: &str, digest: &str) -> String {
    let directory = authority::text::escape_line(directory);
    format!(
        "{key}  (version {version}, {directory}, digest {})",
        short(digest)
    )
}

impl Entry for PendingPlugin {
    fn names(&self) -> (&str, &str) {
        (&self.key, &self.digest)
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![head(
            &self.key,
            &self.version,
            &self.directory,
            &self.digest,
        )];
        lines.extend(self.parts.iter().map(|part| format!("    {part}")));
        for feature in &self.features {
            lines.push(format!("    feature {}", feature.id));
            let abilities = feature.abilities();
            lines.extend(abilities.map(|line| format!("        {line}")));
        }
        lines.extend(
            self.changed
                .iter()
                .take(MAX_CHANGED)
                .map(|file| format!("    {}", authority::text::escape_line(file))),
        );
        if let Some(more) = self
            .changed
            .len()
            .checked_sub(MAX_CHANGED)
            .filter(|more| *more > 0)
        {
            lines.push(format!("    and {} more", tui::count(more as u64, "file")));
        }
        lines.push(
            match self
                .features
                .iter()
                .all(|feature| feature.tools.is_empty() && feature.guest.is_none())
            {
                true => "    effect: no program runs".to_owned(),
                false => {
                    "    effect: the model can call these tools; their programs run in the sandbox"
                        .to_owned()
                }
            },
        );
        lines
    }
}

impl Entry for GrantedPlugin {
    fn names(&self) -> (&str, &str) {
        (&self.key, &self.digest)
    }

    fn lines(&self) -> Vec<String> {
        vec![head(
            &self.key,
            &self.version,
            &self.directory,
            &self.digest,
        )]
    }
}
