//! `yoi plugin test`: the examples of a package, each run as a call would be, confined, with the package's content as a copy, in
//! an empty directory; and what tools promise beyond their answers.

mod guests;

use super::person::only_a_person;
use crate::show::out;
use authority::text::bytes_without_bom;
use authority::{ChildExit, Job, Scratch, Spawner};
use guests::Homes;
use host::compose::roots::Added;
use host::compose::{compose, packages};
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::plain_file::{self, Links};
use host::plugins::{FoundPackage, content_of};
use host::pods::disk;
use host::project::Project;
use llm_worker::ToolEffect;
use llm_worker::tool::parse_arguments;
use plugin::{Content, DeclaredFeature, ToolProgram};
use pod::schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The directory of examples in a package.
const EXAMPLES: &str = "tests";

/// The largest file of examples, in bytes.
const MAX_FILE: u64 = 1024 * 1024;

/// Most output of an example that is compared, in bytes.
const MAX_OUTPUT: usize = 1024 * 1024;

const CHANGED: &str = "the tool is `read_only`, but the call changed files of the project";
const ANOTHER: &str =
    "the tool is `idempotent`, but a second call ended or left files in another way";

/// One call, and what has to come of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    tool: String,
    arguments: Map<String, Value>,
    /// Whether the schema refuses the arguments, so that nothing runs.
    #[serde(default)]
    refused: bool,
    #[serde(default)]
    exit: i32,
    contains: Option<String>,
    equals: Option<String>,
    /// Files in the directory of the call, by their relative paths.
    #[serde(default)]
    files: BTreeMap<PathBuf, String>,
    /// Calls that were made before, where guests answer.
    #[serde(default)]
    before: Vec<ExampleCall>,
}

/// A call of any tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExampleCall {
    tool: String,
    arguments: Map<String, Value>,
}

/// The result of one example.
#[derive(Serialize)]
struct ExampleEnd {
    name: String,
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The programs of a package, and where they run.
struct Bench<'a> {
    spawner: Spawner,
    homes: Homes<'a>,
    /// Every example has a directory of its own in it.
    project: PathBuf,
    copy: PathBuf,
    runtime: tokio::runtime::Runtime,
}

/// Runs all examples; the exit code says whether all passed.
pub(super) fn run(dir: &Path, json: bool, env: &Env) -> Result<Exit, Failure> {
    only_a_person("run the examples of a plugin")?;
    let config = Config::load(env)?;
    let package = config.package_at(dir, env);
    if let Some(problem) = packages::all_problems(&package, env).into_iter().next() {
        return Err(
            Failure::new(Exit::Data, problem).help("`yoi plugin check DIR` lists all problems")
        );
    }
    let unfit = |why: String| Failure::new(Exit::Data, format!("plugin {}: {why}", package.name));
    let mut examples = examples(&package.dir).map_err(unfit)?;
    // The package calls its tools by its own names.
    let other_names = config.plugin_places.renames.get(&package.name);
    for (_, example) in &mut examples {
        let before = example.before.iter_mut().map(|call| &mut call.tool);
        for tool in before.chain([&mut example.tool]) {
            if let Some(other) = other_names.and_then(|names| names.get(tool)) {
                tool.clone_from(other);
            }
        }
    }
    let parent = env
        .var("TMPDIR")
        .map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let place = Scratch::create(&ambient::claim(), &parent, "yoi-plugin-test-")
        .map_err(|error| Failure::new(Exit::Unavailable, error.to_string()))?;
    let project = place.path().join("project");
    let copy = place.path().join("package");
    for dir in [&project, &copy] {
        fs::create_dir(dir).map_err(|error| disk(dir, &error))?;
    }
    package.copy_to(&copy).map_err(unfit)?;
    let homes = Homes::new(&package, other_names, place.path().join("homes"), env);
    let mut ended = all(&package, &examples, homes, copy, &env.in_dir(&project))?;
    ended.extend(untested(&package, &examples));
    let failed = ended.iter().filter(|end| !end.passed).count();
    if json {
        let passed = ended.len() - failed;
        out::json(
            &json!({ "plugin": package.name, "examples": ended, "passed": passed, "failed": failed }),
        );
    } else {
        for ExampleEnd { name, problem, .. } in &ended {
            out::line(&problem.as_ref().map_or_else(
                || format!("ok      {name}"),
                |why| format!("failed  {name}: {why}"),
            ));
        }
        out::line(&format!("{} passed, {failed} failed", ended.len() - failed));
    }
    Ok(if failed == 0 {
        Exit::Done
    } else {
        Exit::Failed
    })
}

/// Why the examples of a package cannot be read; none where it has none.
pub(super) fn unreadable(package: &Path) -> Option<String> {
    package
        .join(EXAMPLES)
        .is_dir()
        .then(|| examples(package).err())
        .flatten()
}

/// The examples of all files, by file and number.
fn examples(package: &Path) -> Result<Vec<(String, Example)>, String> {
    let entries = match fs::read_dir(package.join(EXAMPLES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        entries => Some(entries.map_err(|error| format!("{EXAMPLES}: {error}"))?),
    };
    let entries = entries.into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    let mut all = Vec::new();
    for path in files {
        let name = authority::escape(Path::new(path.file_name().unwrap_or_default()));
        let unfit = |why: String| format!("{EXAMPLES}/{name}: {why}");
        let file = plain_file::open(&path, Links::Refused)
            .map_err(unfit)?
            .ok_or_else(|| unfit("it is gone".to_owned()))?;
        let bytes = plain_file::whole(file, MAX_FILE).map_err(unfit)?;
        let read: Vec<Example> = serde_json::from_slice(bytes_without_bom(&bytes))
            .map_err(|error| unfit(error.to_string()))?;
        all.extend(
            read.into_iter()
                .enumerate()
                .map(|(number, example)| (format!("{name} {}", number + 1), example)),
        );
    }
    if all.is_empty() {
        Err(format!("there is no example in {EXAMPLES}/*.json"))
    } else {
        Ok(all)
    }
}

fn all(
    package: &FoundPackage,
    examples: &[(String, Example)],
    homes: Homes<'_>,
    copy: PathBuf,
    env: &Env,
) -> Result<Vec<ExampleEnd>, Failure> {
    let ambient = ambient::claim();
    let config = Config::load_for(Project::alone(&env.cwd), env)?;
    let composed = compose(&ambient, &config, env, Added::default())?.reading(copy.clone());
    let unavailable = |why: String| {
        Failure::new(
            Exit::Unavailable,
            format!("commands cannot run here: {why}"),
        )
    };
    // Only the parent of what a program leaves behind in its own group sees it.
    authority::become_subreaper(&ambient).map_err(|error| unavailable(error.to_string()))?;
    let project = composed.workspace.cwd().to_owned();
    // The marks of its processes begin with a name that no other test has.
    let tag = project
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy();
    let spawner = composed
        .spawner(&ambient, env, &tag)?
        .map_err(unavailable)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
    let bench = Bench {
        spawner,
        homes,
        project,
        copy,
        runtime,
    };
    let ended = examples
        .iter()
        .enumerate()
        .map(|(number, (name, example))| {
            let problem = bench.problem(package, example, &number.to_string()).err();
            ExampleEnd {
                name: format!("{name} ({})", authority::text::escape_line(&example.tool)),
                passed: problem.is_none(),
                problem,
            }
        });
    Ok(ended.collect())
}

impl Bench<'_> {
    /// Runs an example in a new directory; the error says in what it differs.
    fn problem(&self, package: &FoundPackage, example: &Example, dir: &str) -> Result<(), String> {
        let tools = package.features().flat_map(|feature| {
            feature
                .descriptor
                .declared_tools
                .iter()
                .filter_map(|tool| Some((tool, feature.programs.get(&tool.name)?)))
        });
        let own = tools
            .into_iter()
            .find(|(tool, _)| tool.name == example.tool);
        let Some((tool, program)) = own else {
            return self.guest_problem(package, example, dir);
        };
        if !example.before.is_empty() {
            return Err("`before` needs a tool or hooks of guests".to_owned());
        }
        if !fits(&tool.schema, example)? {
            return Ok(());
        }
        let cwd = self.project.join(dir);
        prepare(&cwd, &example.files)?;
        let call = || {
            self.called(
                program,
                example,
                &cwd,
                Duration::from_millis(tool.deadline_ms),
            )
        };
        let before = self.files();
        let (how, output) = call()?;
        answers(example, how, &output)?;
        let after = self.files();
        match tool.effect {
            ToolEffect::ReadOnly if after != before => Err(CHANGED.to_owned()),
            ToolEffect::Idempotent if call()?.0 != how || self.files() != after => {
                Err(ANOTHER.to_owned())
            }
            ToolEffect::ReadOnly | ToolEffect::Idempotent | ToolEffect::Effectful => Ok(()),
        }
    }

    /// The same for a tool that a guest answers, and for one of yoi that its hooks see.
    fn guest_problem(
        &self,
        package: &FoundPackage,
        example: &Example,
        dir: &str,
    ) -> Result<(), String> {
        let guests = package.features().filter(|feature| feature.guest.is_some());
        let guests: Vec<&DeclaredFeature> = guests.collect();
        let mut tools = guests
            .iter()
            .flat_map(|guest| &guest.descriptor.declared_tools);
        let tool = tools.find(|tool| tool.name == example.tool);
        let is_seen = |guest: &&DeclaredFeature| !guest.descriptor.declared_hooks.is_empty();
        match tool {
            None if !guests.iter().any(is_seen) => return Err("there is no such tool".to_owned()),
            Some(tool) if !fits(&tool.schema, example)? => return Ok(()),
            _ => {}
        }
        let run = |dir: String, times| {
            let cwd = self.project.join(dir);
            prepare(&cwd, &example.files)?;
            let before = content_of(&cwd);
            let ends = self.homes.called(example, &cwd, times)?;
            Ok::<_, String>((before, ends, content_of(&cwd)))
        };
        let (before, ends, after) = run(dir.to_owned(), 1)?;
        let first = ends.first().ok_or("the call did not end")?;
        let how = |failed: bool| ChildExit::Exit(failed.into());
        answers(example, how(first.failed), first.text.as_bytes())?;
        match tool.map(|tool| tool.effect) {
            Some(ToolEffect::ReadOnly) if after != before => Err(CHANGED.to_owned()),
            Some(ToolEffect::Idempotent) => {
                let (_, ends, twice) = run(format!("{dir}-twice"), 2)?;
                let same = ends.iter().all(|end| end.failed == first.failed);
                match same && twice == after {
                    true => Ok(()),
                    false => Err(ANOTHER.to_owned()),
                }
            }
            _ => Ok(()),
        }
    }

    /// The files of the project; too many, or others than regular ones, are an error, which differs from having none.
    fn files(&self) -> Result<Content, String> {
        content_of(&self.project)
    }

    fn called(
        &self,
        program: &ToolProgram,
        example: &Example,
        cwd: &Path,
        deadline: Duration,
    ) -> Result<(ChildExit, Vec<u8>), String> {
        let named = [program.program.clone().into()];
        let limited = self
            .spawner
            .limited(&named, program.network)
            .map_err(|error| error.to_string())?;
        let spawner = limited.with_guarded_path();
        // As a call has them.
        let given = Value::Object(example.arguments.clone()).to_string();
        let (_, arguments) = parse_arguments::<Map<String, Value>>(&program.program, &given)
            .map_err(|error| error.to_string())?;
        let job = Job {
            program: program.program.clone().into(),
            args: program.words(&arguments, &self.copy)?,
            cwd: cwd.to_owned(),
            call: "test".to_owned(),
            deadline,
            input: arguments.as_bytes().to_vec(),
        };
        let mut output = Vec::new();
        let write = |bytes: &[u8]| {
            output.extend_from_slice(bytes);
            if output.len() > MAX_OUTPUT {
                Err(io::Error::other("too much output"))
            } else {
                Ok(())
            }
        };
        let ended = self
            .runtime
            .block_on(spawner.run(job, write, &CancellationToken::new()));
        let ended = ended.map_err(|error| error.to_string())?;
        match ended.leftovers {
            0 => Ok((ended.how, output)),
            some => Err(format!(
                "it left {} behind, which was ended",
                tui::count(some.into(), "process")
            )),
        }
    }
}

/// Makes the directory of a call, with the files of its example.
fn prepare(cwd: &Path, files: &BTreeMap<PathBuf, String>) -> Result<(), String> {
    fs::create_dir(cwd).map_err(|error| authority::explain(&error))?;
    for (path, text) in files {
        let shown = authority::escape(path);
        if !path
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
        {
            return Err(format!(
                "`{shown}` of `files` is not a relative path without `..`"
            ));
        }
        let path = cwd.join(path);
        let made = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, text));
        made.map_err(|error| format!("{shown}: {}", authority::explain(&error)))?;
    }
    Ok(())
}

/// Compares how a program ended, and what it wrote, with what the example expects.
fn answers(example: &Example, how: ChildExit, output: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(output);
    let shown = |text: &str| authority::text::escape_within(text, authority::text::Lines::One, 400);
    if how != ChildExit::Exit(example.exit) {
        return Err(format!(
            "{} instead of exit {}; output: {}",
            ended(how),
            example.exit,
            shown(&text)
        ));
    }
    if let Some(words) = example
        .contains
        .as_ref()
        .filter(|words| !text.contains(words.as_str()))
    {
        return Err(format!(
            "the output does not contain \"{}\": {}",
            shown(words),
            shown(&text)
        ));
    }
    match example.equals.as_ref().filter(|whole| **whole != text) {
        Some(whole) => Err(format!(
            "the output is \"{}\", not \"{}\"",
            shown(&text),
            shown(whole)
        )),
        None => Ok(()),
    }
}

/// How a program ended, in words.
fn ended(how: ChildExit) -> String {
    match how {
        ChildExit::Exit(status) => format!("exit {status}"),
        ChildExit::Signal(signal) => format!("end by signal {signal}"),
        ChildExit::Deadline => "end by the time limit".to_owned(),
        ChildExit::Cancelled => "cancelled".to_owned(),
    }
}

/// Whether the schema of the tool lets the arguments reach the program, as the example says.
fn fits(schema: &str, example: &Example) -> Result<bool, String> {
    let schema = serde_json::from_str(schema)
        .map_err(|error| error.to_string())
        .and_then(Schema::compile)?;
    match (
        schema.check(&Value::Object(example.arguments.clone())),
        example.refused,
    ) {
        (Ok(()), false) => Ok(true),
        (Err(_), true) => Ok(false),
        (Ok(()), true) => Err("the schema does not refuse the arguments".to_owned()),
        (Err(problems), false) => Err(format!(
            "the schema refuses the arguments: {}; is this `\"refused\": true`?",
            problems.join("; ")
        )),
    }
}

/// Tools of which no example shows what they do.
fn untested(package: &FoundPackage, examples: &[(String, Example)]) -> Vec<ExampleEnd> {
    let tools = package
        .features()
        .flat_map(|feature| &feature.descriptor.declared_tools)
        .map(|tool| &tool.name);
    let untested = tools.filter(|tool| examples.iter().all(|(_, example)| example.tool != **tool));
    let end = |tool: &String| ExampleEnd {
        name: tool.clone(),
        passed: false,
        problem: Some(format!("no example in {EXAMPLES}/*.json calls this tool")),
    };
    untested.map(end).collect()
}
