//! What the plugins that were found come to: features of granted packages run, those of others stand in the plan as off.

use super::off::Off;
use crate::config::file::Mode;
use crate::config::{Config, Switches};
use crate::env::{Env, settled};
use crate::exit::{Exit, Failure, Help};
use crate::plugins::{CopyPlace, FoundPackage, PackageGrant, Standing, gates};
use plugin::DeclaredFeature;
use pod::feature::{
    CapabilityPolicy, DiagnosticCode, FeatureDescriptor, FeatureDiagnostic, FeatureId,
    FeatureModule, FeatureRegistryBuilder, FeatureRuntimeKind, HostCapability, InstallOutcome,
    InstallPlan, PlannedFeature,
};
use pod::permission::Layer;
use std::cell::LazyCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What grants a plugin its capabilities.
const GRANT: &str = "`yoi grant`";

/// How the reason begins for which a feature of a plugin is off.
pub const OFF: &str = "plugin: ";

/// Why a start has no guests.
const NO_GUESTS: &str = "this sandbox starts none of its guests";

/// Most features of packages without a grant that stand in a plan: there is no bound to what a project brings.
const MAX_OFF: usize = 64;

/// Most plugins that a start names as not used.
const MAX_SAID: usize = 4;

/// Most problems in a report, for the same reason.
const MAX_PROBLEMS: usize = 64;

/// The packages of a start.
pub struct Packages {
    /// Each with its digest, and where its copy is.
    granted: Vec<(Arc<FoundPackage>, String, CopyPlace)>,
    problems: Vec<(Option<FeatureId>, String)>,
    /// Rules that the person granted and that do not hold, or why that is not known.
    lost: Result<Vec<(Option<FeatureId>, String)>, Failure>,
}

impl Default for Packages {
    fn default() -> Self {
        Self {
            granted: Vec::new(),
            problems: Vec::new(),
            lost: Ok(Vec::new()),
        }
    }
}

impl Packages {
    /// Adds what is wrong with something else that a person added.
    pub(super) fn add_problems(&mut self, problems: Vec<String>) {
        self.problems
            .extend(problems.into_iter().map(|what| (None, what)));
    }

    /// Adds what is wrong with packages to the report of a registry.
    pub(super) fn report(&self, builder: FeatureRegistryBuilder) -> FeatureRegistryBuilder {
        let lost = self.lost.iter().flatten().take(MAX_PROBLEMS);
        let builder = lost.fold(builder, |builder, (id, what)| {
            builder.lost_rules(id.clone(), what)
        });
        self.problems
            .iter()
            .take(MAX_PROBLEMS)
            .fold(builder, |builder, (id, what)| {
                builder.problem(id.clone(), what)
            })
    }

    /// Rules that the person granted and that do not hold in this start.
    ///
    /// # Errors
    /// Whether there are some is not known: a grant cannot be read.
    pub(super) fn lost_rules(&self) -> Result<Vec<&str>, Failure> {
        let lost = self.lost.as_ref().map_err(Failure::clone)?;
        Ok(lost.iter().map(|(_, what)| what.as_str()).collect())
    }

    /// Gates that hold nowhere in this start, because it starts no guests of their feature.
    fn lose_gates(&mut self, feature: &DeclaredFeature, config: &Config) {
        let of = &feature.descriptor;
        let id = feature.descriptor.id.to_string();
        let gates: Vec<String> = gates(of).collect();
        if let Ok(lost) = &mut self.lost
            && !gates.is_empty()
            && !is_off_in_files(config, &id)
        {
            let text = format!("{id} lacks its gates ({}): {NO_GUESTS}", gates.join(", "));
            lost.push((Some(of.id.clone()), text));
        }
    }

    /// Copies the granted packages; gives the directories that children read, and why some cannot be copied. Calls into
    /// these are refused.
    pub(super) fn copied(&self) -> (Vec<PathBuf>, Vec<String>) {
        let mut dirs = Vec::new();
        let mut problems = Vec::new();
        for (package, digest, copies) in &self.granted {
            match copies.copy(&package.dir, digest) {
                Ok(dir) => dirs.push(dir),
                Err(why) => problems.push(format!(
                    "plugin {}: its tools do not run: {why}",
                    package.name
                )),
            }
        }
        (dirs, problems)
    }
}

/// Adds the features of all packages to the modules of a start, and what they may do to its policy.
pub(super) fn decided(
    config: &Config,
    env: &Env,
    mut policy: CapabilityPolicy,
    modules: &mut Vec<Arc<dyn FeatureModule>>,
    packages: &mut Packages,
) -> CapabilityPolicy {
    // Most starts have no package.
    let copies = LazyCell::new(|| copy_place(config, env));
    packages.lost = lost_rules(config, env);
    packages.problems = config
        .plugins(env)
        .problems
        .iter()
        .map(|what| (None, what.clone()))
        .collect();
    let mut off = 0_usize;
    for package in &config.plugins(env).found {
        packages.problems.extend(problems(package, env));
        if package.manifest.is_err() {
            continue;
        }
        let standing = match package.standing(env) {
            Standing::Granted { digest } => copies.clone().map(|copies| (digest, copies)),
            other => Err(other.obstacle().unwrap_or_default()),
        };
        for feature in package.features() {
            match &standing {
                Ok((digest, copies)) => {
                    let id = &feature.descriptor.id;
                    let kept =
                        feature.keep(|program| withheld(mode(config), program.network).is_none());
                    // Its rules hold without its tools.
                    let has_rules = !feature.descriptor.rules.is_empty();
                    let is_stopped =
                        kept.started().next().is_none() && feature.started().next().is_some();
                    let is_empty = is_stopped && !has_rules;
                    if let Some(why) = left_out(package, mode(config)).filter(|_| is_empty) {
                        policy = policy.disable(id.clone(), format!("{OFF}{why}"));
                    }
                    if feature.guest.is_some() && is_stopped {
                        packages.lose_gates(feature, config);
                    }
                    policy = granted(policy, &kept);
                    modules.push(Arc::new(package.module(&kept, digest, copies, env)));
                    if config.strict_plugins.value && !is_off(config, id) {
                        policy = policy.require(id.clone(), &config.strict_plugins.source);
                    }
                }
                Err(why) if off < MAX_OFF => {
                    off += 1;
                    modules.push(Arc::new(Off(feature.descriptor.clone())));
                    policy = policy.disable(feature.descriptor.id.clone(), format!("{OFF}{why}"));
                }
                Err(_) => {}
            }
        }
        if let Ok((digest, copies)) = standing {
            packages
                .granted
                .push((Arc::clone(package), digest.clone(), copies));
        }
    }
    policy
}

/// The rules of permission of granted packages, behind those of the files: they only narrow.
pub(super) fn layers(config: &Config, env: &Env) -> Vec<Layer> {
    let granted = config
        .plugins(env)
        .found
        .iter()
        .filter(|package| has_granted_rules(package, env));
    let features = granted
        .flat_map(|package| package.features())
        .map(|feature| &feature.descriptor);
    let held =
        features.filter(|of| !of.rules.is_empty() && !is_off_in_files(config, &of.id.to_string()));
    let layer = |of: &FeatureDescriptor| Layer::new(of.id.to_string(), of.rules.clone()).ok();
    held.filter_map(layer).map(Layer::tightening).collect()
}

/// Whether a package is as it was granted. Opens no file of one that has no rules.
fn has_granted_rules(package: &FoundPackage, env: &Env) -> bool {
    let has_rules = package
        .features()
        .any(|feature| !feature.descriptor.rules.is_empty());
    has_rules && matches!(package.standing(env), Standing::Granted { .. })
}

/// Rules that the person granted and that do not hold: their package changed, is gone from where this start looks, or has
/// lost its name to another one. Who switched a feature off in a file did without its rules.
fn lost_rules(config: &Config, env: &Env) -> Result<Vec<(Option<FeatureId>, String)>, Failure> {
    let mut lost = Vec::new();
    for grant in PackageGrant::each(env)? {
        let grant = grant?;
        let mut found = config
            .plugins(env)
            .found
            .iter()
            .filter(|package| grant.is_of(&package.dir))
            .peekable();
        let first = found.peek().copied();
        if first.is_none() && !is_looked_at(config, Path::new(&grant.directory)) {
            continue;
        }
        let standing =
            found.find(|package| matches!(package.standing(env), Standing::Granted { .. }));
        let holds = |id: &str| {
            standing.is_some_and(|package| {
                package
                    .features()
                    .any(|feature| feature.descriptor.id.to_string() == id)
            })
        };
        let directory = authority::text::escape_line(&grant.directory);
        let why = match first.map(|package| (package.manifest.as_ref(), package.standing(env))) {
            None => format!("no plugin was found in {directory}, where it was granted"),
            Some((Err(why), _)) => why.clone(),
            Some((Ok(_), standing)) => standing
                .obstacle()
                .unwrap_or_else(|| "the feature cannot be read".to_owned()),
        };
        match &grant.rules {
            Some(rules) => lost.extend(
                rules
                    .iter()
                    .filter(|(id, _)| !holds(id) && !is_off_in_files(config, id))
                    .map(|(id, rules)| {
                        (
                            id.parse().ok(),
                            format!("{id} lacks its rules ({}): {why}", rules.join(", ")),
                        )
                    }),
            ),
            None if standing.is_none() => {
                lost.push((
                    None,
                    format!("plugin {} may lack rules: {why}", grant.package),
                ));
            }
            None => {}
        }
    }
    Ok(lost)
}

/// Whether packages in this directory are looked for: in a place that this start names, or anywhere in the project.
fn is_looked_at(config: &Config, dir: &Path) -> bool {
    let places = &config.plugin_places;
    let dirs = places
        .dirs
        .iter()
        .chain(&places.project.dirs)
        .map(|(dir, _)| dir);
    let entries = places
        .entries
        .iter()
        .chain(&places.project.entries)
        .map(|entry| &entry.path);
    dirs.chain(entries)
        .chain([&places.project.root])
        .any(|place| dir.starts_with(settled(place)))
}

/// Where copies of packages are, if no command of this start writes there.
pub fn copy_place(config: &Config, env: &Env) -> Result<CopyPlace, String> {
    let is_read_only = mode(config) == Mode::ReadOnly;
    CopyPlace::of(env).and_then(|copies| {
        if is_read_only {
            Ok(copies)
        } else {
            copies.outside(&config.project.root)
        }
    })
}

/// The sandbox of this start.
pub fn mode(config: &Config) -> Mode {
    if config.project.too_wide.is_some() {
        Mode::ReadOnly
    } else {
        config.sandbox.value
    }
}

/// Whether the person switched a feature off, and no start did.
fn is_off_in_files(config: &Config, id: &str) -> bool {
    config
        .features
        .get(id)
        .is_some_and(Switches::is_off_in_files)
}

/// Whether the person switched a feature off.
fn is_off(config: &Config, id: &FeatureId) -> bool {
    config
        .features
        .get(&id.to_string())
        .is_some_and(|switches| switches.off().is_some())
}

/// Ends a start for which every plugin that is found must be installed, if one is not.
pub fn strict(config: &Config, plan: &InstallPlan, env: &Env) -> Result<(), Failure> {
    if !config.strict_plugins.value {
        return Ok(());
    }
    let mut missing = config.plugins(env).problems.clone();
    for package in &config.plugins(env).found {
        missing.extend(
            problems(package, env)
                .into_iter()
                .map(|(_, problem)| problem),
        );
        let obstacle = package
            .features()
            .next()
            .and_then(|_| package.standing(env).obstacle());
        let obstacle = obstacle.map(|why| format!("plugin {}: {why}", package.name));
        missing.extend(obstacle.or_else(|| left_out(package, mode(config))));
    }
    missing.truncate(MAX_PROBLEMS);
    missing.extend(skipped(plan));
    if missing.is_empty() {
        return Ok(());
    }
    let what = format!(
        "{}: a plugin is not installed: {}",
        config.strict_plugins.source,
        missing.join("; ")
    );
    Err(Failure::new(Exit::Config, what).help(Help::GrantPlugins))
}

/// Features of granted plugins that are not installed, and why.
fn skipped(plan: &InstallPlan) -> impl Iterator<Item = String> {
    let skipped = plan.features.iter().filter(|feature| {
        [FeatureRuntimeKind::Declarative, FeatureRuntimeKind::Guest].contains(&feature.runtime)
            && feature.outcome == InstallOutcome::Skipped
    });
    let why = |feature: &PlannedFeature| {
        feature.diagnostics.first().map_or_else(
            || feature.feature_id.to_string(),
            |found| found.message.clone(),
        )
    };
    skipped.map(why)
}

/// Plugins whose tools this start does not have, and why: the model would only find the tools missing.
pub fn unused(config: &Config, plan: &InstallPlan, env: &Env) -> Vec<String> {
    let why = |package: &Arc<FoundPackage>| {
        let problem = problems(package, env)
            .into_iter()
            .next()
            .map(|(_, what)| what);
        let obstacle = || {
            let why = package.standing(env).obstacle()?;
            Some(format!("plugin {} is not used: {why}", package.name))
        };
        problem
            .or_else(obstacle)
            .or_else(|| left_out(package, mode(config)))
    };
    let mut all: Vec<String> = config.plugins(env).problems.clone();
    all.extend(config.plugins(env).found.iter().filter_map(why));
    all.extend(skipped(plan));
    if let Some(more) = all.len().checked_sub(MAX_SAID).filter(|more| *more > 0) {
        all.truncate(MAX_SAID);
        all.push(format!(
            "and {more} more; `yoi plugin list` lists all plugins"
        ));
    }
    all
}

/// Tools of a granted package that this sandbox leaves out.
fn left_out(package: &FoundPackage, mode: Mode) -> Option<String> {
    let programs = package.features().flat_map(DeclaredFeature::started);
    let out = programs.filter_map(|(tool, program)| Some((tool, withheld(mode, program.network)?)));
    let (tools, reasons): (Vec<_>, Vec<_>) = out.unzip();
    Some(format!(
        "plugin {} is used without {}: {}",
        package.name,
        tools.join(", "),
        reasons.first()?
    ))
}

/// Why programs do not run in this sandbox: they are confined, or they are not run. A command without a sandbox needs a rule,
/// but a tool that says that it changes nothing would not.
pub fn withheld(mode: Mode, network: bool) -> Option<&'static str> {
    match (mode, network) {
        (Mode::ReadOnly, true) => Some("in read-only mode no program has network access"),
        (Mode::Off, _) => Some("without a sandbox nothing confines the programs of plugins"),
        (Mode::ReadOnly | Mode::WorkspaceWrite, _) => None,
    }
}

/// Why features of a package cannot be used, whatever was granted.
pub fn problems(package: &FoundPackage, env: &Env) -> Vec<(Option<FeatureId>, String)> {
    let manifest = match &package.manifest {
        Ok(manifest) => manifest,
        Err(why) => {
            return vec![(
                None,
                format!(
                    "plugin {} ({}): {why}",
                    package.name,
                    env.shown(&package.dir)
                ),
            )];
        }
    };
    let problem = |(name, feature): (&String, &Result<DeclaredFeature, String>)| {
        let id = format!("plugin:{}/{name}", package.name);
        let why = feature.as_ref().err()?;
        Some((
            id.parse().ok(),
            format!("{}: {why}", authority::text::escape_line(&id)),
        ))
    };
    manifest.features.iter().filter_map(problem).collect()
}

/// Why a feature of a package that was found is in no plan.
pub fn why_absent(config: &Config, id: &FeatureId, env: &Env) -> Option<String> {
    let id = id.to_string();
    let package = config.plugins(env).found.iter().find(|package| {
        id.strip_prefix("plugin:")
            .and_then(|name| name.strip_prefix(package.name.as_str())?.strip_prefix('/'))
            .is_some()
    })?;
    let mut all = problems(package, env).into_iter();
    all.find(|(of, _)| of.as_ref().is_none_or(|of| of.to_string() == id))
        .map(|(_, why)| why)
}

/// What a person learns of a package: why it cannot be used, and what keeps it from being installed once it is granted.
pub fn told(package: &FoundPackage, env: &Env) -> Vec<String> {
    match package.manifest.is_ok().then(|| package.standing(env)) {
        Some(Standing::Granted { .. }) => all_problems(package, env),
        Some(_) | None => problems(package, env)
            .into_iter()
            .map(|(_, what)| what)
            .collect(),
    }
}

/// The same, and what a plan of it finds, which compiles the schemas of its tools: nothing does before a package is granted.
pub fn all_problems(package: &FoundPackage, env: &Env) -> Vec<String> {
    problems(package, env)
        .into_iter()
        .map(|(_, what)| what)
        .chain(conflicts(package, env))
        .collect()
}

/// What would keep features of a package from being installed beside those of this program, once granted.
fn conflicts(package: &FoundPackage, env: &Env) -> Vec<String> {
    let mut policy = CapabilityPolicy::nothing();
    let mut modules: Vec<Arc<dyn FeatureModule>> = Vec::new();
    for descriptor in env.added.declared() {
        policy = policy.disable(descriptor.id.clone(), "");
        modules.push(Arc::new(Off(descriptor)));
    }
    for feature in package.features() {
        policy = granted(policy, feature);
        modules.push(Arc::new(Off(feature.descriptor.clone())));
    }
    let builder = FeatureRegistryBuilder::new(policy)
        .runtime(FeatureRuntimeKind::Declarative)
        .runtime(FeatureRuntimeKind::Guest);
    let plan = builder.with_all(modules).plan();
    let found = plan
        .features
        .into_iter()
        .flat_map(|feature| feature.diagnostics);
    let way_out = |found: &FeatureDiagnostic| match found.code {
        DiagnosticCode::ToolNameTaken | DiagnosticCode::ToolNameReserved => {
            format!(
                ", or set `rename` under [plugins.{}] of your configuration",
                package.name
            )
        }
        _ => String::new(),
    };
    // What a person sets is not known here.
    found
        .filter(|found| found.code != DiagnosticCode::InvalidSettings)
        .map(|found| format!("{}{}", found.message, way_out(&found)))
        .collect()
}

/// The person granted the package, so each feature gets what it requests.
fn granted(policy: CapabilityPolicy, feature: &DeclaredFeature) -> CapabilityPolicy {
    let descriptor = &feature.descriptor;
    let requested = descriptor
        .requested_capabilities
        .iter()
        .map(|request| request.capability.clone());
    let hooks = descriptor.declared_hooks.iter().flat_map(|hook| {
        let point = hook.point;
        let class = hook.class;
        [
            HostCapability::ContributeHook { point, class },
            HostCapability::ANY_ARGUMENTS,
            HostCapability::ANY_ANSWER,
            HostCapability::ANY_REPEAT,
            HostCapability::ANY_RESULT,
        ]
    });
    let states = descriptor.states.iter();
    let states = states.map(|state| HostCapability::StateStore { scope: state.scope });
    let tasks = descriptor.declared_background_tasks.iter();
    let tasks = tasks.map(|_| HostCapability::ANY_BACKGROUND_TASK);
    let provides = descriptor.provides.iter();
    let provides = provides.map(|provided| HostCapability::ProvideService {
        key: provided.service.name.clone().into(),
    });
    let requires = descriptor.requires.iter();
    let requires = requires.map(|required| required.service.admission());
    let all = requested.chain([HostCapability::tool("*")]);
    let all = all.chain(hooks).chain(states).chain(tasks);
    let all = all.chain(provides).chain(requires);
    all.fold(policy, |policy, capability| {
        policy.grant(descriptor.id.clone(), capability, GRANT)
    })
}
