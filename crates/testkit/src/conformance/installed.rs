//! Checks of installs: complete or without a trace, with and without each optional capability.

use super::site::{Site, surface};
use super::{CheckOutcome, Conformance, all};
use pod::feature::{
    CommandDeclaration, DiagnosticCode, EnricherDeclaration, FeatureDescriptor, FeatureId,
    FeatureInstallError, FeatureInstallReport, FeatureRegistry, HostCapability, InstallOutcome,
    Need, RegistrarCall, RegistrarProbe,
};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The time limits of an install that hangs on purpose; the second one is for a busy machine.
const HANGS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(3)];

/// The calls of registrars: the registrar's name and its argument.
type Calls = Vec<(&'static str, String)>;

/// Installs the feature and records its calls into the host.
fn counted(site: &Site, id: &FeatureId) -> (FeatureRegistry, Calls) {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    let id = id.clone();
    let probe: RegistrarProbe = Arc::new(move |call: RegistrarCall<'_>| {
        if *call.feature == id {
            seen.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((call.registrar, call.name.to_owned()));
        }
        Ok(())
    });
    let registry = site.install(&site.setting, true, Some(probe));
    let calls = std::mem::take(&mut *calls.lock().unwrap_or_else(PoisonError::into_inner));
    (registry, calls)
}

fn report<'a>(
    registry: &'a FeatureRegistry,
    id: &FeatureId,
) -> Result<&'a FeatureInstallReport, String> {
    registry
        .report()
        .feature(id)
        .ok_or_else(|| format!("there is no report: {:?}", registry.report().diagnostics))
}

pub(super) fn words(report: &FeatureInstallReport) -> String {
    let messages: Vec<_> = report
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic.message.as_str())
        .collect();
    messages.join("; ")
}

pub(super) fn whole(conformance: &Conformance) -> CheckOutcome {
    let id = conformance.descriptor().id;
    let once = |_| {
        let registry = Site::of(conformance).install_plainly();
        let report = report(&registry, &id)?;
        match report.outcome {
            InstallOutcome::Installed
                if report
                    .diagnostics
                    .iter()
                    .any(|found| is_of_enricher(found.code)) =>
            {
                Err(format!("its enricher changes no tool: {}", words(report)))
            }
            InstallOutcome::Installed => Ok(()),
            outcome => Err(format!(
                "with everything it asks for it is {outcome:?}: {}",
                words(report)
            )),
        }
    };
    all((0..2).map(once))
}

const fn is_of_enricher(code: DiagnosticCode) -> bool {
    matches!(
        code,
        DiagnosticCode::EnricherFailed | DiagnosticCode::EnrichmentRefused
    )
}

/// The failure that is injected at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Error,
    Panic,
    Hang,
}

pub(super) fn atomic(conformance: &Conformance) -> CheckOutcome {
    let id = conformance.descriptor().id;
    let site = Site::of(conformance);
    let without = surface(&site.install(&site.setting, false, None));
    let (_, calls) = counted(&Site::of(conformance), &id);
    let files = site.files();
    let places = || {
        calls
            .iter()
            .enumerate()
            .map(|(at, (registrar, name))| (at + 1, format!("{registrar} {name}")))
    };
    for way in [Way::Error, Way::Panic] {
        for (number, place) in places() {
            if let Err(how) = fails(&site, &id, number, way, HANGS[1])
                .and_then(|registry| left(&registry, &id, &without))
            {
                return CheckOutcome::No(format!("{way:?} at call {number} ({place}): {how}"));
            }
        }
    }
    let places: Vec<_> = places().collect();
    // Each one only waits for its limit, so all run at once.
    let hung = thread::scope(|scope| {
        let one = |number: usize| {
            let try_it = |limit| {
                let registry = fails(&site, &id, number, Way::Hang, limit);
                registry.and_then(|registry| left(&registry, &id, &without))
            };
            HANGS
                .into_iter()
                .map(try_it)
                .find(Result::is_ok)
                .unwrap_or_else(|| try_it(HANGS[1]))
        };
        let started: Vec<_> = places
            .iter()
            .map(|(number, _)| scope.spawn(move || one(*number)))
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect::<Vec<_>>()
    });
    for ((number, place), how) in places.iter().zip(hung) {
        if let Err(how) = how {
            return CheckOutcome::No(format!("a hang at call {number} ({place}): {how}"));
        }
    }
    let more: Vec<_> = site.files().difference(&files).cloned().collect();
    if more.is_empty() {
        CheckOutcome::Yes
    } else {
        CheckOutcome::No(format!("failed installs left {more:?}"))
    }
}

/// Installs the feature with a failure injected at one call.
fn fails(
    site: &Site,
    id: &FeatureId,
    number: usize,
    way: Way,
    limit: Duration,
) -> Result<FeatureRegistry, String> {
    let (release, wait) = channel::<()>();
    let victim = id.clone();
    let wait = Mutex::new(wait);
    let probe: RegistrarProbe = Arc::new(move |call: RegistrarCall<'_>| {
        if *call.feature != victim || call.number != number {
            return Ok(());
        }
        match way {
            Way::Error => Err(FeatureInstallError::failed("injected")),
            Way::Panic => std::panic::resume_unwind(Box::new("injected".to_owned())),
            Way::Hang => {
                // Ends when the other side is dropped.
                let released = wait.lock().unwrap_or_else(PoisonError::into_inner).recv();
                released.map_err(|_| FeatureInstallError::failed("too late"))
            }
        }
    });
    let registry = site.finish(site.builder().callback_limit(limit), Some(probe));
    drop(release);
    Ok(registry)
}

/// Checks that the registry is without the feature and reports the reason.
fn left(registry: &FeatureRegistry, id: &FeatureId, without: &str) -> Result<(), String> {
    let report = report(registry, id)?;
    if report.outcome != InstallOutcome::Skipped || report.diagnostics.is_empty() {
        return Err(format!("it is {:?}: {}", report.outcome, words(report)));
    }
    if surface(registry) != *without {
        return Err("something of it is in the registry".to_owned());
    }
    Ok(())
}

/// The capabilities that a feature requests itself, with this need.
fn requests(descriptor: &FeatureDescriptor, need: Need) -> impl Iterator<Item = HostCapability> {
    descriptor
        .requested_capabilities
        .iter()
        .filter(move |request| request.need == need)
        .map(|request| request.capability.clone())
}

/// The capabilities that its service requirements request, with this need.
fn used(descriptor: &FeatureDescriptor, need: Need) -> impl Iterator<Item = HostCapability> {
    descriptor
        .requires
        .iter()
        .filter(move |asked| asked.need == need)
        .map(|asked| asked.service.admission())
}

pub(super) fn optional(conformance: &Conformance) -> CheckOutcome {
    let descriptor = conformance.descriptor();
    let required: BTreeSet<_> = requests(&descriptor, Need::Required).collect();
    let tools = descriptor
        .declared_tools
        .iter()
        .map(|tool| HostCapability::ContributeTool {
            name: Cow::Owned(tool.name.clone()),
        });
    let hooks = descriptor
        .declared_hooks
        .iter()
        .map(|hook| HostCapability::ContributeHook {
            point: hook.point,
            class: hook.class,
        });
    let tasks = descriptor.declared_background_tasks.iter();
    let tasks = tasks.map(|task| HostCapability::ContributeBackgroundTask {
        name: Cow::Owned(task.name.clone()),
    });
    let services = descriptor.provides.iter();
    let services = services.map(|s| HostCapability::ProvideService {
        key: Cow::Owned(s.service.name.clone()),
    });
    let enriches = descriptor.enriches.iter().map(EnricherDeclaration::implied);
    let commands = descriptor.commands.iter().map(CommandDeclaration::implied);
    let required: BTreeSet<_> = required
        .into_iter()
        .chain(used(&descriptor, Need::Required))
        .collect();
    let optional = requests(&descriptor, Need::Optional).chain(used(&descriptor, Need::Optional));
    let optional: BTreeSet<_> = optional
        .chain(tools)
        .chain(hooks)
        .chain(tasks)
        .chain(services)
        .chain(enriches)
        .chain(commands)
        .collect();
    // An optional request may include a required one that asks for less.
    let optional: Vec<_> = optional.difference(&required).cloned().collect();
    if optional.is_empty() {
        return CheckOutcome::Yes;
    }
    let each = optional
        .iter()
        .map(|one| vec![one.clone()])
        .chain([optional.clone()]);
    all(each.map(|denied| {
        let site = Site::of(conformance);
        let mut setting = site.setting.clone();
        let names: Vec<_> = denied.iter().map(ToString::to_string).collect();
        setting.denied.extend(denied);
        let registry = site.install(&setting, true, None);
        let report = report(&registry, &descriptor.id)?;
        let lost = report
            .diagnostics
            .iter()
            .any(|d| d.code == DiagnosticCode::RequiredCapabilityDenied);
        match report.outcome {
            InstallOutcome::Degraded => Ok(()),
            // The refusal hit a required part of the same capability.
            InstallOutcome::Skipped if lost => Ok(()),
            outcome => Err(format!(
                "without {} it is {outcome:?}: {}",
                names.join(", "),
                words(report)
            )),
        }
    }))
}

pub(super) fn required(conformance: &Conformance) -> CheckOutcome {
    let descriptor = conformance.descriptor();
    let (_, calls) = counted(&Site::of(conformance), &descriptor.id);
    let in_vain = descriptor
        .requested_capabilities
        .iter()
        .find(|request| !taken(&request.capability, &calls));
    let vain = in_vain.map_or(Ok(()), |request| {
        Err(format!(
            "it asks for {} and never takes it",
            request.capability
        ))
    });
    let states = descriptor
        .states
        .iter()
        .map(|state| HostCapability::StateStore { scope: state.scope });
    let optional: BTreeSet<_> = requests(&descriptor, Need::Optional).collect();
    let required: BTreeSet<_> = requests(&descriptor, Need::Required)
        .chain(used(&descriptor, Need::Required))
        .chain(states)
        .collect();
    let denied = required.difference(&optional).map(|denied| {
        let mut site = Site::of(conformance);
        site.setting.denied.push(denied.clone());
        let (registry, calls) = counted(&site, &descriptor.id);
        let report = report(&registry, &descriptor.id)?;
        let said = report
            .diagnostics
            .iter()
            .any(|d| d.code == DiagnosticCode::RequiredCapabilityDenied);
        if report.outcome == InstallOutcome::Skipped && said && calls.is_empty() {
            return Ok(());
        }
        Err(format!(
            "without {denied} it is {:?} after {} calls: {}",
            report.outcome,
            calls.len(),
            words(report)
        ))
    });
    let denied: Vec<_> = denied.collect();
    all(denied.into_iter().chain([vain]))
}

/// Whether an install used a capability that it requested. The capabilities of tools, hooks, background tasks, states
/// and provided services are used by staging them.
fn taken(capability: &HostCapability, calls: &Calls) -> bool {
    let asked = |registrar: &str, about: &str| {
        calls
            .iter()
            .any(|(other, name)| *other == registrar && name == about)
    };
    match capability {
        HostCapability::ScopedFs { root, execute, .. } => {
            asked("services.fs", root) || *execute && asked("services.programs_below", root)
        }
        HostCapability::Process { .. } => {
            asked("services.process", "*") || asked("services.programs", "")
        }
        HostCapability::EmitModelNotification { .. } => asked("notifications", ""),
        HostCapability::EmitUserAlert => asked("alerts", ""),
        HostCapability::UseService { key } => asked("services.require", key),
        HostCapability::WorkItemStore { .. } | HostCapability::MemoryStore { .. } => calls
            .iter()
            .any(|(registrar, _)| *registrar == "services.require"),
        _contribution => true,
    }
}
