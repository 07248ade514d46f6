//! Examples of tools that guests answer: each is a run of this program with a scripted model, in a home of its own where the
//! package is granted. What a person has, rules, keys and pods, is not there.

use super::Example;
use crate::commands::start::SELF;
use host::env::Env;
use host::plugins::FoundPackage;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The pod of an example, in its own home.
const POD: &str = "example";

/// How long a run may take beside the calls, such as for the start of an interpreter on a busy machine.
const START_S: u64 = 60;

/// The homes of examples, and what they have in common.
pub(super) struct Homes<'a> {
    package: &'a FoundPackage,
    renames: Option<&'a BTreeMap<String, String>>,
    dir: PathBuf,
    path: OsString,
}

/// How a call ended.
pub(super) struct CallEnd {
    pub(super) failed: bool,
    pub(super) text: String,
}

/// One home, whose project is the directory of the example.
struct Home {
    dir: PathBuf,
    project: PathBuf,
    path: OsString,
}

impl<'a> Homes<'a> {
    pub(super) fn new(
        package: &'a FoundPackage,
        renames: Option<&'a BTreeMap<String, String>>,
        dir: PathBuf,
        env: &Env,
    ) -> Self {
        let path = env.var("PATH").unwrap_or_default().to_owned();
        Self {
            package,
            renames,
            dir,
            path,
        }
    }

    /// Runs the call of an example so many times, in one pod with this project, after the calls that come before it.
    ///
    /// # Errors
    /// The run did not come as far as the calls.
    pub(super) fn called(
        &self,
        example: &Example,
        project: &Path,
        times: usize,
    ) -> Result<Vec<CallEnd>, String> {
        let home = self.home(project)?;
        home.prints(&["grant", &format!("plugin:{}", self.package.name)])?;
        let model = home.script(example, times)?;
        // A tool with effects is called without an approval: the person runs the example.
        let allowed = example.before.iter().map(|call| &call.tool);
        let mut args = vec!["run", "--json", "--pod", POD, "-m", &model];
        for tool in allowed.chain([&example.tool]) {
            args.extend(["--allow", tool]);
        }
        let calls = example.before.len() + times;
        let limit = format!(
            "{}s",
            (START_S * 1000 + self.longest_ms() * calls as u64).div_ceil(1000)
        );
        args.extend(["--timeout", &limit, "go"]);
        let printed = home.output(&args)?;
        let text = String::from_utf8_lossy(&printed.stdout);
        let ends = text.lines().filter_map(finished);
        let ends: Vec<CallEnd> = ends.skip(example.before.len()).collect();
        if ends.len() == times {
            return Ok(ends);
        }
        Err(format!(
            "the run ended before the call did: {}",
            last_line(&printed)
        ))
    }

    /// The longest deadline of a tool of the package, or that of a tool which names none.
    fn longest_ms(&self) -> u64 {
        let tools = self.package.features();
        let tools = tools.flat_map(|feature| &feature.descriptor.declared_tools);
        tools.map(|tool| tool.deadline_ms).fold(60_000, u64::max)
    }

    fn home(&self, project: &Path) -> Result<Home, String> {
        let number = project.file_name().unwrap_or_default();
        let dir = self.dir.join(number);
        let config = dir.join("config/yoi");
        let package = config.join("plugins").join(&self.package.name);
        let made = [&package, &dir.join("state"), &dir.join("home")]
            .into_iter()
            .try_for_each(fs::create_dir_all);
        let mut text = String::new();
        if let Some(renames) = self.renames {
            let pairs = renames
                .iter()
                .map(|(own, other)| format!("{own} = \"{other}\""));
            let pairs: Vec<String> = pairs.collect();
            let name = &self.package.name;
            // Into a text.
            writeln!(
                text,
                "[plugins.{name}]\nrename = {{ {} }}",
                pairs.join(", ")
            )
            .ok();
        }
        let made = made.and_then(|()| fs::write(config.join("config.toml"), text));
        made.map_err(|error| authority::explain(&error))?;
        self.package.copy_to(&package)?;
        Ok(Home {
            dir,
            project: project.to_owned(),
            path: self.path.clone(),
        })
    }
}

impl Home {
    fn output(&self, args: &[&str]) -> Result<Output, String> {
        let mut command = Command::new(SELF);
        command.arg0("yoi").args(args).current_dir(&self.project);
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("LANG", "C.UTF-8");
        for (name, dir) in [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(name, self.dir.join(dir));
        }
        let output = command.stdin(Stdio::null()).output();
        output.map_err(|error| authority::explain(&error))
    }

    fn prints(&self, args: &[&str]) -> Result<(), String> {
        let output = self.output(args)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(last_line(&output)),
        }
    }

    /// The answers of the model: the calls, one after the other.
    fn script(&self, example: &Example, times: usize) -> Result<String, String> {
        let before = example
            .before
            .iter()
            .map(|call| (&call.tool, &call.arguments));
        let calls = before.chain(std::iter::repeat_n(
            (&example.tool, &example.arguments),
            times,
        ));
        let answers = calls
            .map(|(tool, arguments)| json!({ "calls": [{ "name": tool, "arguments": arguments }] }))
            .chain([json!({ "text": "done" })]);
        let lines: Vec<String> = answers.map(|answer| answer.to_string()).collect();
        let path = self.dir.join("model.jsonl");
        fs::write(&path, lines.join("\n")).map_err(|error| authority::explain(&error))?;
        Ok(format!("scripted:{}", path.display()))
    }
}

/// How a call ended, if a line of the journal says so.
fn finished(line: &str) -> Option<CallEnd> {
    let record: Value = serde_json::from_str(line).ok()?;
    let outcome = record
        .get("outcome")
        .filter(|_| record.get("k").is_some_and(|kind| kind == "tool_finished"))?;
    let part = |key: &str| outcome.get(key).and_then(Value::as_str).unwrap_or_default();
    let text = match (part("summary"), part("content")) {
        (summary, "") => summary.to_owned(),
        (summary, content) => format!("{summary}\n{content}"),
    };
    let failed = part("status") != "ok";
    Some(CallEnd { failed, text })
}

/// What the program said at last.
fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines = text.lines().filter(|line| !line.starts_with("help: "));
    authority::text::escape_line(lines.next_back().unwrap_or("it said nothing")).into_owned()
}
