//! The tools as the planner knows them, in plain words: shapes and refusals, none of the care of the real ones.

use grep_matcher::Matcher;
use ignore::WalkBuilder;
use llm_worker::{ResultStatus, ToolOutcome};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

pub const TOOLS: &[&str] = &["Bash", "Edit", "Glob", "Grep", "List", "Read", "ReadOutput", "Write"];

pub struct Tools {
    root: PathBuf,
    seen: BTreeSet<String>,
    outputs: Vec<String>,
}

type Failed = (String, String);
type Done = Result<(String, String), Failed>;
/// Path, whether a directory, depth.
type Entry = (PathBuf, bool, usize);

fn wrong(message: impl Into<String>) -> (String, String) {
    (message.into(), String::new())
}

impl Tools {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), seen: BTreeSet::new(), outputs: Vec::new() }
    }

    pub fn call(&mut self, name: &str, arguments: &str) -> ToolOutcome {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let done = match name {
            "Read" => self.read(&arguments),
            "Write" => self.write(&arguments),
            "Edit" => self.edit(&arguments),
            "Glob" => self.glob(&arguments),
            "Grep" => self.grep(&arguments),
            "List" => self.list(&arguments),
            "Bash" => self.bash(&arguments),
            "ReadOutput" => self.read_output(&arguments),
            other => Err(wrong(format!("no tool {other}"))),
        };
        let (status, (summary, content)) = match done {
            Ok(done) => (ResultStatus::Ok, done),
            Err(failed) => (ResultStatus::Error, failed),
        };
        ToolOutcome { status, summary, content: self.bounded(content) }
    }

    fn bounded(&mut self, content: String) -> String {
        if content.len() <= 32 << 10 {
            return content;
        }
        let handle = format!("o-{}", self.outputs.len());
        let head: Vec<&str> = content.lines().take(60).collect();
        let short = format!(
            "{}\n[… bytes left out; ReadOutput {{\"handle\":\"{handle}\"}} pages the whole]\nend",
            head.join("\n")
        );
        self.outputs.push(content);
        short
    }

    /// Paths below `path` that are not ignored, with what each is called relative to it.
    fn walk(&self, arguments: &Value, depth: Option<usize>) -> Result<Vec<Entry>, Failed> {
        let path = arguments["path"].as_str().unwrap_or(".");
        let start = self.root.join(path);
        if !start.exists() {
            return Err(wrong(format!("{path}: there is nothing here")));
        }
        let mut walk = WalkBuilder::new(&start);
        walk.hidden(false).require_git(false).max_depth(depth).sort_by_file_path(Ord::cmp);
        walk.filter_entry(|entry| entry.file_name() != ".git");
        let entries = walk.build().map(|entry| entry.unwrap()).filter(|entry| entry.depth() > 0 || start.is_file());
        Ok(entries.map(|e| (e.path().to_owned(), e.path().is_dir(), e.depth())).collect())
    }

    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(self.root.join(".")).or(path.strip_prefix(&self.root)).unwrap_or(path).display().to_string()
    }

    fn globbed(&self, pattern: Option<&str>, arguments: &Value) -> Result<Vec<(PathBuf, String)>, Failed> {
        let start = self.root.join(arguments["path"].as_str().unwrap_or("."));
        let matcher = pattern.map(|p| {
            let glob = globset::GlobBuilder::new(p).literal_separator(true).build().unwrap();
            (glob.compile_matcher(), p.contains('/'))
        });
        let fits = |path: &Path| {
            let relative = path.strip_prefix(&start).unwrap_or(path);
            matcher.as_ref().is_none_or(|(glob, whole)| {
                if *whole { glob.is_match(relative) } else { glob.is_match(path.file_name().unwrap()) }
            })
        };
        let all = self.walk(arguments, None)?;
        Ok(all.into_iter().filter(|(p, dir, _)| !dir && fits(p)).map(|(p, ..)| (p.clone(), self.shown(&p))).collect())
    }

    fn glob(&self, arguments: &Value) -> Done {
        let found = self.globbed(arguments["pattern"].as_str(), arguments)?;
        let rows: Vec<String> = found.into_iter().map(|(_, shown)| shown).collect();
        Ok((format!("{} file{}", rows.len(), if rows.len() == 1 { "" } else { "s" }), rows.join("\n")))
    }

    fn grep(&self, arguments: &Value) -> Done {
        let case = arguments["ignore_case"].as_bool().unwrap_or(false);
        let mut builder = grep_regex::RegexMatcherBuilder::new();
        builder.case_insensitive(case).line_terminator(Some(b'\n'));
        let regex =
            builder.build(arguments["pattern"].as_str().unwrap()).map_err(|e| wrong(format!("bad regex: {e}")))?;
        let mode = arguments["mode"].as_str().unwrap_or("content");
        let (mut rows, mut matches, mut files) = (Vec::new(), 0, 0);
        for (path, shown) in self.globbed(arguments["glob"].as_str(), arguments)? {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let hits: Vec<(usize, &str)> =
                text.lines().enumerate().filter(|(_, l)| regex.is_match(l.as_bytes()).unwrap()).collect();
            matches += hits.len();
            files += usize::from(!hits.is_empty());
            match mode {
                "files" if !hits.is_empty() => rows.push(shown),
                "count" if !hits.is_empty() => rows.push(format!("{shown}:{}", hits.len())),
                "content" => rows.extend(hits.iter().map(|(at, line)| format!("{shown}:{}:{line}", at + 1))),
                _ => {}
            }
        }
        let summary = if mode == "files" {
            format!("matches in {files} files")
        } else {
            format!("{matches} matches in {files} files")
        };
        Ok((summary, rows.join("\n")))
    }

    fn list(&self, arguments: &Value) -> Done {
        if self.root.join(arguments["path"].as_str().unwrap_or(".")).is_file() {
            return Err(wrong("that is a file; use Read"));
        }
        if arguments["totals"].as_bool() == Some(true) {
            return self.totals(arguments);
        }
        let depth = arguments["depth"].as_u64().unwrap_or(2) as usize;
        let found = self.walk(arguments, Some(depth))?;
        let dirs = found.iter().filter(|(_, dir, _)| *dir).count();
        let row = |(path, dir, depth): &(PathBuf, bool, usize)| {
            let name = path.file_name().unwrap().to_string_lossy();
            let size = path.metadata().unwrap().len();
            format!("{}{}", "  ".repeat(depth - 1), if *dir { format!("{name}/") } else { format!("{name}  {size}") })
        };
        let rows: Vec<String> = found.iter().map(row).collect();
        let directories = if dirs == 1 { "directory" } else { "directories" };
        Ok((format!("{dirs} {directories}, {} files", found.len() - dirs), rows.join("\n")))
    }

    fn totals(&self, arguments: &Value) -> Done {
        let mut by: BTreeMap<String, [usize; 3]> = BTreeMap::new();
        let mut largest = Vec::new();
        for (path, shown) in self.globbed(None, arguments)? {
            let text = std::fs::read_to_string(&path).unwrap();
            let ext = path.extension().map_or("(none)".into(), |e| e.to_string_lossy().into_owned());
            let lines = text.lines().count();
            for (sum, more) in by.entry(ext).or_default().iter_mut().zip([1, lines, text.len()]) {
                *sum += more;
            }
            largest.push((lines, text.len(), shown));
        }
        let total = |at: usize| by.values().map(|sums| sums[at]).sum::<usize>();
        largest.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.2.cmp(&b.2)));
        let mut rows: Vec<String> = vec![format!("{:<10} {:>6} {:>9} {:>9}", "extension", "files", "lines", "bytes")];
        rows.extend(by.iter().map(|(ext, [f, l, b])| format!("{ext:<10} {f:>6} {l:>9} {b:>9}")));
        rows.extend([String::new(), "largest files".into(), "  lines   bytes  path".into()]);
        rows.extend(largest.iter().take(10).map(|(l, b, p)| format!("{l:>7} {b:>7}  {p}")));
        Ok((format!("{} files, {} lines", total(0), total(1)), rows.join("\n")))
    }

    fn read(&mut self, arguments: &Value) -> Done {
        let path = arguments["path"].as_str().unwrap();
        let text = std::fs::read_to_string(self.root.join(path)).map_err(|e| wrong(format!("{path}: {e}")))?;
        self.seen.insert(path.to_owned());
        let lines: Vec<&str> = text.lines().collect();
        if lines.is_empty() {
            return Ok((format!("{path}: empty file"), String::new()));
        }
        let first = arguments["offset"].as_u64().unwrap_or(1) as usize;
        let limit = arguments["limit"].as_u64().unwrap_or(400) as usize;
        if first > lines.len() {
            return Err(wrong(format!("{path} has {} lines; offset {first} is past its end", lines.len())));
        }
        let shown: Vec<String> =
            lines.iter().enumerate().skip(first - 1).take(limit).map(|(at, l)| format!("{:>6}\t{l}", at + 1)).collect();
        Ok((format!("{path}: lines {first}-{} of {}", first + shown.len() - 1, lines.len()), shown.join("\n")))
    }

    fn write(&mut self, arguments: &Value) -> Done {
        let (path, content) = (arguments["path"].as_str().unwrap(), arguments["content"].as_str().unwrap());
        let whole = self.root.join(path);
        let did = match (whole.exists(), self.seen.insert(path.to_owned())) {
            (true, true) => return Err(wrong(format!("{path} was not read in this session; Read it first"))),
            (true, false) => "replaced",
            (false, _) => "created",
        };
        std::fs::create_dir_all(whole.parent().unwrap()).unwrap();
        std::fs::write(whole, content).unwrap();
        let lines = content.lines().count();
        Ok((format!("{path}: {did}, {lines} line{}", if lines == 1 { "" } else { "s" }), String::new()))
    }

    fn edit(&mut self, arguments: &Value) -> Done {
        let path = arguments["path"].as_str().unwrap();
        if !self.seen.contains(path) {
            return Err(wrong(format!("{path} was not read in this session; Read it first")));
        }
        let mut text = std::fs::read_to_string(self.root.join(path)).unwrap();
        let mut replaced = 0;
        for edit in arguments["edits"].as_array().unwrap() {
            let (old, new) = (edit["old"].as_str().unwrap(), edit["new"].as_str().unwrap());
            let times = text.matches(old).count();
            if times == 0 || times > 1 && edit["replace_all"].as_bool() != Some(true) {
                return Err(wrong(format!("{path}: `{old}` occurs {times} times; nothing was changed")));
            }
            replaced += times;
            text = text.replace(old, new);
        }
        std::fs::write(self.root.join(path), text).unwrap();
        Ok((format!("{path}: {replaced} replacement{}", if replaced == 1 { "" } else { "s" }), "(diff)".into()))
    }

    fn bash(&self, arguments: &Value) -> Done {
        let command = format!("exec 2>&1\n{}", arguments["command"].as_str().unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(&self.root).stdin(std::process::Stdio::null());
        // What cargo tells a test of itself is none of the project's business.
        shell.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS").env("PYTHONDONTWRITEBYTECODE", "1");
        let output = shell.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let summary = format!("exit {} in 0.1 s", output.status.code().unwrap_or(-1));
        if output.status.success() { Ok((summary, text)) } else { Err((summary, text)) }
    }

    fn read_output(&self, arguments: &Value) -> Done {
        let handle = arguments["handle"].as_str().unwrap();
        let whole = handle.strip_prefix("o-").and_then(|n| self.outputs.get(n.parse::<usize>().ok()?));
        let whole = whole.ok_or_else(|| wrong(format!("no output `{handle}`")))?;
        let (first, total) = (arguments["offset"].as_u64().unwrap() as usize, whole.lines().count());
        let rows: Vec<&str> = whole.lines().skip(first - 1).take(300).collect();
        let last = first + rows.len() - 1;
        let more =
            if last < total { format!("\n(more lines follow; go on with offset={})", last + 1) } else { String::new() };
        Ok((format!("{handle}: lines {first}-{last} of {total}"), rows.join("\n") + &more))
    }
}
