//! `yoi plugin`: what plugins there are, what each would run, and packages created, checked, added and removed.

use super::plugin_add;
use super::plugin_settings;
use super::plugin_test;
use crate::cli::{PluginAction, PluginListArgs, PluginNewArgs, PluginShowArgs};
use crate::show::out;
use host::compose::packages;
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::plugins::{FoundPackage, PluginOrigin, Standing};
use host::pods::disk;
use plugin::{Content, DeclaredFeature};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::Path;

/// How wide what is said about a tool may be, in columns.
const ABOUT_WIDTH: usize = 80;

/// A package that `yoi plugin new` writes under another name.
struct Template {
    name: &'static str,
    /// Its tool, and what stands behind the name of the package in its place.
    tool: (&'static str, &'static str),
    files: &'static [(&'static str, &'static str)],
}

const PROGRAM: Template = Template {
    name: "hello",
    tool: ("hello_greet", "greet"),
    files: &[
        (
            "plugin.toml",
            include_str!("../../../../docs/plugins/hello/plugin.toml"),
        ),
        (
            "greet.sh",
            include_str!("../../../../docs/plugins/hello/greet.sh"),
        ),
        (
            "tests/greet.json",
            include_str!("../../../../docs/plugins/hello/tests/greet.json"),
        ),
    ],
};

const PYTHON: Template = Template {
    name: "review-first",
    tool: ("Reviewed", "reviewed"),
    files: &[
        (
            "plugin.toml",
            include_str!("../../../../docs/plugins/review-first/plugin.toml"),
        ),
        (
            "guest.py",
            include_str!("../../../../docs/plugins/review-first/guest.py"),
        ),
        (
            "yoi_guest.py",
            include_str!("../../../../docs/plugins/sdk/yoi_guest.py"),
        ),
        (
            "tests/reviewed.json",
            include_str!("../../../../docs/plugins/review-first/tests/reviewed.json"),
        ),
    ],
};

const LUA: Template = Template {
    name: "review-first",
    tool: ("Reviewed", "reviewed"),
    files: &[
        (
            "plugin.toml",
            include_str!("../../../../docs/plugins/review-first-lua/plugin.toml"),
        ),
        (
            "main.lua",
            include_str!("../../../../docs/plugins/review-first-lua/main.lua"),
        ),
        (
            "tests/reviewed.json",
            include_str!("../../../../docs/plugins/review-first-lua/tests/reviewed.json"),
        ),
    ],
};

const NODE: Template = Template {
    name: "review-first-node",
    tool: ("Reviewed", "reviewed"),
    files: &[
        (
            "plugin.toml",
            include_str!("../../../../docs/plugins/review-first-node/plugin.toml"),
        ),
        (
            "guest.mjs",
            include_str!("../../../../docs/plugins/review-first-node/guest.mjs"),
        ),
        (
            "yoi_guest.mjs",
            include_str!("../../../../docs/plugins/sdk/yoi_guest.mjs"),
        ),
        (
            "yoi_guest.d.mts",
            include_str!("../../../../docs/plugins/sdk/yoi_guest.d.mts"),
        ),
        (
            "tests/reviewed.json",
            include_str!("../../../../docs/plugins/review-first-node/tests/reviewed.json"),
        ),
    ],
};

pub(crate) fn run(action: &PluginAction, env: &Env) -> Result<Exit, Failure> {
    match action {
        PluginAction::List(args) => list(args, env),
        PluginAction::Show(args) => show(args, env),
        PluginAction::Check(args) => check(&args.dir, env),
        PluginAction::Test(args) => plugin_test::run(&args.dir, args.json, env),
        PluginAction::New(args) => new(args, env),
        PluginAction::Add(args) => plugin_add::add(args, env),
        PluginAction::Update(args) => plugin_add::update(args, env),
        PluginAction::Remove(args) => plugin_add::remove(&args.name, env),
        // Answered before the environment is read.
        PluginAction::Help(_) => Ok(Exit::Done),
    }
}

fn list(args: &PluginListArgs, env: &Env) -> Result<Exit, Failure> {
    let config = Config::load_with_plugins(env, &args.plugins.plugin_dir)?;
    let found = &config.plugins(env).found;
    if args.json {
        let plugins: Vec<Value> = found
            .iter()
            .map(|package| described(package, env))
            .collect();
        out::json(&json!({ "plugins": plugins, "problems": config.plugins(env).problems }));
        return Ok(Exit::Done);
    }
    for package in found {
        let version = package
            .manifest
            .as_ref()
            .map(|manifest| format!(" {}", manifest.package.version));
        let state = state(package, env);
        out::line(&format!(
            "{}{}  {state}  ({})",
            package.name,
            version.unwrap_or_default(),
            env.shown(&package.dir)
        ));
        unread(package, env);
    }
    config
        .plugins(env)
        .problems
        .iter()
        .for_each(|problem| out::line(&format!("! {problem}")));
    if found.is_empty() {
        out::line("there are no plugins; `yoi plugin new NAME` creates one");
    }
    Ok(Exit::Done)
}

fn show(args: &PluginShowArgs, env: &Env) -> Result<Exit, Failure> {
    let PluginShowArgs {
        name,
        plugins,
        json,
    } = args;
    let config = Config::load_with_plugins(env, &plugins.plugin_dir)?;
    let Some(package) = config
        .plugins(env)
        .found
        .iter()
        .find(|package| package.name == *name)
    else {
        return Err(
            Failure::new(Exit::Usage, format!("there is no plugin `{name}`"))
                .help("`yoi plugin list` lists the plugins"),
        );
    };
    if *json {
        let mut all = described(package, env);
        if let Some(all) = all.as_object_mut() {
            let settings = plugin_settings::described(package, &config);
            all.insert("settings".to_owned(), settings);
            all.insert("from".to_owned(), from(package, env).into());
        }
        out::json(&all);
    } else {
        page(package, &config, env);
        from(package, env)
            .iter()
            .for_each(|from| out::line(&format!("from: {from}")));
        out::line(&format!("state: {}", state(package, env)));
        unread(package, env);
    }
    Ok(Exit::Done)
}

/// What it was added from, if it was.
fn from(package: &FoundPackage, env: &Env) -> Option<String> {
    let is_added = plugin_add::is_added(package, env);
    let origin = is_added
        .then(|| PluginOrigin::load(env, &package.name))?
        .ok()??;
    let signed = match &origin.key {
        Some(key) => format!(", signed by {key}"),
        None => String::new(),
    };
    Some(format!("{}{signed}", origin.from.shown(env)))
}

/// Checks a package as a start would, its content as `yoi grant` would, and its examples.
fn check(dir: &Path, env: &Env) -> Result<Exit, Failure> {
    let config = Config::load(env)?;
    let package = config.package_at(dir, env);
    page(&package, &config, env);
    let mut problems = defects(&package, env);
    problems.extend(plugin_test::unreadable(&package.dir));
    problems.extend(missing_programs(&package, env));
    problems
        .iter()
        .for_each(|problem| out::line(&format!("! {problem}")));
    if problems.is_empty() {
        let digest = package
            .content()
            .map(|content| content.digest())
            .unwrap_or_default();
        out::line(&format!(
            "valid (digest {})",
            digest.get(..12).unwrap_or(&digest)
        ));
        return Ok(Exit::Done);
    }
    Ok(Exit::Data)
}

/// What is wrong with a package on any machine.
pub(super) fn defects(package: &FoundPackage, env: &Env) -> Vec<String> {
    let mut problems = packages::all_problems(package, env);
    if package.manifest.is_ok() {
        match package.content() {
            Ok(content) => problems.extend(missing_files(package, &content)),
            Err(why) => problems.push(why),
        }
        problems.extend(is_empty(package).then(|| EMPTY.to_owned()));
    }
    problems
}

const EMPTY: &str = "it has no features, skills, commands, agents or servers";

/// Others publish packages with a manifest alone.
fn is_empty(package: &FoundPackage) -> bool {
    let has_features = package
        .manifest
        .iter()
        .any(|manifest| !manifest.features.is_empty() || manifest.layout.is_some());
    let has_parts = package
        .parts()
        .is_ok_and(|parts| !parts.lines().is_empty() || !parts.problems.is_empty());
    !has_features && !has_parts
}

/// Files that the words of programs name, and that the package does not have.
fn missing_files(package: &FoundPackage, content: &Content) -> Vec<String> {
    let programs = package.features().flat_map(DeclaredFeature::started);
    let named = programs.flat_map(|(tool, program)| program.files().map(move |path| (tool, path)));
    let missing = named.filter(|(_, path)| !content.has_path(path));
    missing
        .map(|(tool, path)| format!("the file `{path}` of {tool} is not in the package"))
        .collect()
}

/// Programs that are in no directory of `PATH`.
pub(super) fn missing_programs(package: &FoundPackage, env: &Env) -> Vec<String> {
    let path = env
        .var("PATH")
        .map(std::env::split_paths)
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    let is_there = |name: &str| path.iter().any(|dir| dir.join(name).is_file());
    let programs = package.features().flat_map(DeclaredFeature::started);
    let missing = programs.filter(|(_, program)| !is_there(&program.program));
    missing
        .map(|(tool, program)| {
            format!("the program `{}` of {tool} is not in PATH", program.program)
        })
        .collect()
}

fn new(args: &PluginNewArgs, env: &Env) -> Result<Exit, Failure> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if args.name.is_empty()
        || args.name.len() > 32
        || args.name == "strict"
        || !args.name.bytes().all(fits)
    {
        return Err(Failure::new(
            Exit::Usage,
            format!("`{}` is not a valid name of a plugin", args.name),
        )
        .help("use 1 to 32 characters of a-z, 0-9 and -, and not `strict`"));
    }
    let dir = env
        .cwd
        .join(args.dir.as_deref().unwrap_or(Path::new("")))
        .join(&args.name);
    create(&dir)?;
    let Template {
        name,
        tool: (own, behind),
        files,
    } = match args {
        PluginNewArgs { python: true, .. } => PYTHON,
        PluginNewArgs { lua: true, .. } => LUA,
        PluginNewArgs { node: true, .. } => NODE,
        _ => PROGRAM,
    };
    for (path, text) in files {
        let tool = format!("{}_{behind}", args.name.replace('-', "_"));
        let text = text.replace(own, &tool).replace(
            &format!("name = \"{name}\""),
            &format!("name = \"{}\"", args.name),
        );
        write(&dir.join(path), text.as_bytes())?;
    }
    out::line(&format!("wrote {}", dir.display()));
    let shown = dir.display();
    out::line(&format!(
        "to try it: yoi plugin check {shown} && yoi plugin test {shown}"
    ));
    out::line(&format!(
        "to use it: yoi plugin add {shown} && yoi grant plugin:{}",
        args.name
    ));
    Ok(Exit::Done)
}

pub(super) fn create(dir: &Path) -> Result<(), Failure> {
    fs::create_dir(dir).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::new(Exit::Usage, format!("{} already exists", dir.display()))
                .help("choose another name, or remove it first")
        }
        _ => disk(dir, &error),
    })
}

fn write(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, text))
        .map_err(|error| disk(path, &error))
}

/// Whether it is granted, in words.
fn state(package: &FoundPackage, env: &Env) -> String {
    match &package.manifest {
        Err(why) => format!("unusable: {why}"),
        Ok(_) => package
            .standing(env)
            .obstacle()
            .unwrap_or_else(|| "granted".to_owned()),
    }
}

/// Says which features of a package cannot be used, whatever is granted.
fn unread(package: &FoundPackage, env: &Env) {
    let problems = packages::told(package, env)
        .into_iter()
        .filter(|_| package.manifest.is_ok());
    problems.for_each(|what| out::line(&format!("    ! {what}")));
}

/// What a package is, for people.
fn page(package: &FoundPackage, config: &Config, env: &Env) {
    let Ok(manifest) = &package.manifest else {
        return;
    };
    let plugin::Package {
        name,
        version,
        authors,
        license,
        homepage,
        ..
    } = &manifest.package;
    out::line(&format!("{name} {version}  ({})", env.shown(&package.dir)));
    let about = [
        ("authors", authors.join(", ")),
        ("license", license.clone().unwrap_or_default()),
    ];
    let about = about
        .into_iter()
        .chain([("homepage", homepage.clone().unwrap_or_default())]);
    about
        .filter(|(_, text)| !text.is_empty())
        .for_each(|(what, text)| out::line(&format!("    {what}: {text}")));
    for part in parts(package) {
        out::line(&format!("    {part}"));
    }
    for feature in package.features() {
        out::line(&format!("    feature {}", feature.descriptor.id));
        for (answered, program) in feature.started() {
            let network = if program.network {
                ", with network access"
            } else {
                ""
            };
            let what = match &feature.guest {
                Some(_) => "guests run".to_owned(),
                None => format!("tool {answered} runs"),
            };
            out::line(&format!("        {what} `{program}`{network}"));
        }
        for line in answered(feature).chain(feature.further()) {
            out::line(&format!("        {line}"));
        }
        for line in plugin_settings::lines(feature, config) {
            out::line(&format!("        {line}"));
        }
        feature
            .descriptor
            .rules
            .iter()
            .for_each(|rule| out::line(&format!("        rule: {rule}")));
        for text in &feature.descriptor.instructions {
            out::line(&format!(
                "        adds to the system prompt: {}",
                text.text.trim()
            ));
        }
    }
}

/// The tools that guests answer, with the first line of what the model reads about each.
fn answered(feature: &DeclaredFeature) -> impl Iterator<Item = String> {
    let tools = feature.guest.iter();
    let tools = tools.flat_map(|_| &feature.descriptor.declared_tools);
    tools.map(|tool| {
        let about = authority::text::first_line(&tool.about, ABOUT_WIDTH);
        format!("tool {}: {about}", tool.name)
    })
}

/// What it has beside features, or why that is not known.
fn parts(package: &FoundPackage) -> Vec<String> {
    let notices = package
        .manifest
        .iter()
        .flat_map(|manifest| manifest.notices.clone());
    let found = match package.parts() {
        Ok(parts) => parts
            .lines()
            .into_iter()
            .chain(parts.problems.iter().map(|what| format!("! {what}")))
            .collect(),
        Err(why) => vec![format!("! {why}")],
    };
    notices
        .map(|notice| format!("! {notice}"))
        .chain(found)
        .collect()
}

fn described(package: &FoundPackage, env: &Env) -> Value {
    let granted = match (
        &package.manifest,
        package.manifest.is_ok().then(|| package.standing(env)),
    ) {
        (Ok(_), Some(Standing::Granted { digest })) => json!(digest),
        _ => Value::Null,
    };
    let features: Vec<Value> = package
        .features()
        .map(|feature| {
            let tools = feature.descriptor.declared_tools.iter().filter_map(|tool| {
                let own = feature.programs.get(&tool.name);
                Some((&tool.name, own.or(feature.guest.as_ref())?))
            });
            let tools = tools.map(
                |(tool, program)| json!({ "name": tool, "program": program.to_string(), "network": program.network }),
            );
            json!({ "id": feature.descriptor.id, "tools": tools.collect::<Vec<_>>() })
        })
        .collect();
    let problems = packages::told(package, env);
    json!({
        "name": package.name,
        "directory": package.dir.display().to_string(),
        "source": package.source,
        "state": state(package, env),
        "granted": granted,
        "package": package.manifest.as_ref().ok().map(|manifest| &manifest.package),
        "features": features,
        "parts": if package.manifest.is_ok() { parts(package) } else { Vec::new() },
        "problems": problems,
    })
}
