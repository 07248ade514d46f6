//! `yoi features`: what is enabled, what is disabled, and why; what changed between starts; what decides a call or a run.

mod availability;
mod capability_text;
mod diff;
mod explain;
mod explain_task;
mod journal;
mod page;
mod phases;
mod table;
mod unused;

use crate::cli::FeaturesArgs;
use crate::commands::person::meant;
use crate::show::out;
use builtins::shell::ID as SHELL;
use diff::StartDifference;
use explain::Route;
use explain_task::TaskRoute;
use host::compose::compose;
use host::compose::roots::Added;
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::launch::LaunchOptions;
use host::pods::Pods;
use journal::Starts;
use page::Page;
use phases::Recorded;
use pod::feature::InstallPlan;
use schemars::schema_for;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
pub(crate) use table::{render, source_text};
use unused::Unused;

/// Shows the plan for this directory and configuration, or what a pod's newest start installed; or looks closer.
pub(crate) fn run(args: &FeaturesArgs, env: &Env) -> Result<Exit, Failure> {
    if args.name.is_some() && (args.plan || args.explain.is_some()) {
        let flag = if args.plan { "--plan" } else { "--explain" };
        return Err(Failure::new(
            Exit::Usage,
            format!("{flag} applies to the next start, not to a pod"),
        )
        .help("omit the name of the pod"));
    }
    if args.attaches() && (is_of_pod(args) || args.explain.is_some()) {
        let message =
            "--with, --without, --profile and --agent apply to the plan for the next start";
        return Err(Failure::new(Exit::Usage, message)
            .help("omit the name of the pod, --diff, --unused and --explain"));
    }
    if !args.plugins.plugin_dir.is_empty() && is_of_pod(args) {
        let message = "--plugin-dir applies to the next start, not to a pod";
        return Err(Failure::new(Exit::Usage, message)
            .help("omit the name of the pod, --diff and --unused"));
    }
    if args.schema {
        out::json(&schema(args, env)?);
        return Ok(Exit::Done);
    }
    let name = if is_of_pod(args) {
        Some(meant(&Pods::of(env)?, args.name.as_deref(), env)?)
    } else {
        None
    };
    let (document, page) = match (&name, args.diff, &args.explain) {
        (Some(name), Some(span), _) => {
            let wanted: Vec<u64> = [Some(span.from), span.to].into_iter().flatten().collect();
            let difference = StartDifference::between(&Starts::read(name, env, &wanted)?, span)?;
            (json(&difference)?, difference.render())
        }
        (Some(name), None, _) if args.unused => {
            let unused = Unused::of(&Starts::read(name, env, &[])?)?;
            (json(&unused)?, unused.render())
        }
        (Some(name), None, _) => recorded(&Starts::read(name, env, &[])?)?,
        (None, _, Some(name)) => {
            let config = Config::load_with_plugins(env, &args.plugins.plugin_dir)?;
            let declared = config.declared(env);
            match explain_task::find(name, &declared)? {
                Some((feature, task)) => {
                    let route = TaskRoute::of(feature, task, &config, env)?;
                    (json(&route)?, route.render())
                }
                None => {
                    let route = Route::of(name, &config, env)?;
                    (json(&route)?, route.render())
                }
            }
        }
        (None, _, None) => planned(args, env)?,
    };
    if args.json {
        out::json(&document);
    } else {
        page.print();
    }
    Ok(Exit::Done)
}

/// Whether it is about a pod, not about the next start.
fn is_of_pod(args: &FeaturesArgs) -> bool {
    args.name.is_some() || args.diff.is_some() || args.unused
}

fn planned(args: &FeaturesArgs, env: &Env) -> Result<(Value, Page), Failure> {
    let dirs = args.plugins.plugin_dir.iter().map(PathBuf::as_path);
    let agent = args.agent.load(dirs, env)?;
    let launch =
        LaunchOptions::new(args.attached.launch(), Vec::new(), Vec::new(), false).with_agent(agent);
    let ambient = ambient::claim();
    let config = launch.over(
        Config::load_with_plugins(env, &args.plugins.plugin_dir)?,
        env,
    )?;
    let mut composed = compose(&ambient, &config, env, Added::default())?;
    let no_shell = composed.spawner(&ambient, env, "features")?.err();
    let plan = composed.plan();
    let has_shell = plan
        .features
        .iter()
        .any(|feature| feature.feature_id == SHELL && feature.outcome.is_live());
    let plan = json(&plan)?;
    let mut page = Page::default();
    page.line("what the next start in this directory would install:");
    page.append(render(&plan));
    if let Some(why) = no_shell.filter(|_| has_shell) {
        page.wrapped(
            "! ",
            &format!("commands cannot run here, so the model is not offered Bash: {why}"),
        );
    }
    Ok((plan, page))
}

/// The newest start of a pod.
fn recorded(starts: &Starts) -> Result<(Value, Page), Failure> {
    let newest = starts.newest()?;
    let mut page = Page::default();
    let of = starts.count;
    let when = pod::session::restore::utc(newest.at_us);
    page.wrapped(
        "",
        &format!(
            "{}: start {} of {of} ({when}, record {})",
            starts.pod, newest.start, newest.seq
        ),
    );
    page.append(render(&newest.report));
    if !newest.notes.is_empty() {
        page.line("notes since that start:");
    }
    for note in &newest.notes {
        page.wrapped(
            "    ",
            &format!("{} (record {}): {}", note.feature, note.seq, note.text),
        );
    }
    let recorded = Recorded::of(newest, starts);
    if let Some(phases) = &recorded.phases {
        page.append(phases::render(phases));
    }
    Ok((json(&recorded)?, page))
}

/// The JSON Schema of what the same command prints with `--json`.
fn schema(args: &FeaturesArgs, env: &Env) -> Result<Value, Failure> {
    json(&match (is_of_pod(args), args.diff, &args.explain) {
        (true, Some(_), _) => schema_for!(StartDifference),
        (true, None, _) if args.unused => schema_for!(Unused),
        (true, None, _) => schema_for!(Recorded<'_>),
        (false, _, Some(name)) if explain_task::find(name, &env.added.declared())?.is_some() => {
            schema_for!(TaskRoute)
        }
        (false, _, Some(_)) => schema_for!(Route),
        (false, _, None) => schema_for!(InstallPlan),
    })
}

fn json(value: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(value).map_err(|e| Failure::new(Exit::Internal, e.to_string()))
}
