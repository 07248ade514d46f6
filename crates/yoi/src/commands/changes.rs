//! `yoi diff`: what a pod changed in files.

use crate::cli::DiffArgs;
use crate::commands::person::meant;
use crate::look::Look;
use crate::show::out;
use authority::escape;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::hosting::leftovers::everything;
use host::pods::Pods;
use host::project::Project;
use host::undo::{read, warn};
use pod::session::changes::{Between, Changed, FileStatus, Moved};
use pod::undo::{before, locate_moved, look};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tui::arguments::brief;
use tui::{Line, Tone};

/// The largest file of which a diff is made, in bytes.
const MAX_COMPARED: usize = 8 * 1024 * 1024;

/// Bytes at the beginning of a file in which a NUL makes it binary, as for git.
const MAX_SNIFFED: usize = 8000;

/// Lines around a change.
const CONTEXT: usize = 3;

/// How long the shortest diff of one file is looked for; after that a longer one does.
const PATIENCE: Duration = Duration::from_secs(5);

/// Shows each changed file as it was against as it is.
pub(crate) fn diff(args: &DiffArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = meant(&pods, args.name.as_deref(), env)?;
    let (mut changes, blobs) = read(&pods.dir(&name), &name, args.to.unwrap_or(0))?;
    let files = everything(&ambient::claim())?;
    locate_moved(&mut changes, &files);
    let mut rows = Vec::new();
    let mut lost = 0;
    let root = Project::around(env).root;
    for changed in changes.files() {
        let both = before(changed, &blobs).inspect_err(|_| lost += 1);
        let both = both.and_then(|before| Ok((before, look(&files, &changed.path)?)));
        let (before, now) = match both {
            Ok(both) => both,
            Err(why) if args.json => {
                rows.push(serde_json::json!({ "path": changed.path, "standing": "unreadable", "why": why }));
                continue;
            }
            Err(why) => {
                out::line(&why);
                continue;
            }
        };
        let status = changed.status(now.bytes.as_deref());
        let path = Path::new(&changed.path);
        let path = path.strip_prefix(&root).unwrap_or(path);
        let old = Side {
            bytes: before.as_deref(),
            mode: changed.mode,
        };
        let diff = compared(
            path.as_os_str().as_bytes(),
            old,
            Side {
                bytes: now.bytes.as_deref(),
                mode: now.mode,
            },
            PATIENCE,
        );
        if args.json {
            rows.push(serde_json::json!({
                "path": changed.path, "existed": before.is_some(), "exists": now.bytes.is_some(),
                "standing": word(status), "diff": String::from_utf8_lossy(&diff),
            }));
        } else {
            show(
                &escape(path),
                changed,
                (status, now.since()),
                &diff,
                env.stdout_terminal,
            );
        }
    }
    let moved = changes.moved();
    let commands: Vec<String> = changes
        .commands
        .iter()
        .map(|(_, command)| brief(command))
        .collect();
    if args.json {
        let moved: Vec<_> = moved
            .iter()
            .map(|m| serde_json::json!({ "from": m.from, "to": m.to }))
            .collect();
        let lost = &changes.lost;
        let all = serde_json::json!({ "pod": name, "files": rows, "moved": moved, "commands": commands, "lost": lost });
        out::json(&all);
    } else {
        for Moved { from, to, .. } in moved {
            out::line(&format!(
                "moved: {} to {}",
                escape(Path::new(from)),
                escape(Path::new(to))
            ));
        }
        if changes.files().next().is_none() && moved.is_empty() {
            out::line(&format!("{name} changed no file with its file tools"));
        }
        warn(&changes, &out::line);
    }
    match lost {
        0 => Ok(Exit::Done),
        more => {
            let what = if more == 1 {
                "1 file".to_owned()
            } else {
                format!("{more} files")
            };
            Err(Failure::new(
                Exit::Data,
                format!("{name}: the earlier content of {what} is lost"),
            )
            .help(format!("`yoi verify {name}` lists the damage")))
        }
    }
}

fn word(status: FileStatus) -> &'static str {
    match status {
        FileStatus::AsLeft => "as_left",
        FileStatus::AsBefore => "as_before",
        FileStatus::Changed => "changed_since",
    }
}

/// A diff for a terminal is made harmless; for a file or another program it stays what it is, so that it applies.
fn show(
    path: &str,
    changed: &Changed,
    (status, since): (FileStatus, &str),
    diff: &[u8],
    terminal: bool,
) {
    let said = match status {
        FileStatus::AsBefore => {
            let is = match changed.before {
                Some(_) => "has the content that it had before the pod changed it",
                None => "does not exist, as before the pod created it",
            };
            return out::line(&format!("no change remains: {path} {is}"));
        }
        FileStatus::AsLeft if changed.between == Between::Nothing => None,
        FileStatus::AsLeft => Some("was modified by something else between this pod's changes"),
        FileStatus::Changed => Some(since),
    };
    if let Some(said) = said {
        out::line(&format!("{path} {said}; the diff shows all changes:"));
    }
    let diff = diff.strip_suffix(b"\n").unwrap_or(diff);
    match Look::of_stdout() {
        Some(look) => out::raw(&look.text(&toned(&String::from_utf8_lossy(diff)))),
        None if terminal => out::lines(&String::from_utf8_lossy(diff)),
        None => out::bytes(&[diff, b"\n"].concat()),
    }
}

/// The lines of a diff with their meanings.
fn toned(diff: &str) -> Vec<Line> {
    let mut is_head = true;
    let lines = diff.split('\n').map(|line| {
        is_head = line.starts_with("diff --git ") || (is_head && !line.starts_with("@@ "));
        let tone = match line.as_bytes().first() {
            _ if is_head => Tone::Strong,
            Some(b'@') => Tone::Code,
            Some(b'+') => Tone::Added,
            Some(b'-') => Tone::Removed,
            Some(b'\\') => Tone::Dim,
            _ => Tone::Plain,
        };
        Line::of_output(line, tone)
    });
    lines.collect()
}

/// A file at one time.
#[derive(Clone, Copy)]
struct Side<'a> {
    /// None if it was not there.
    bytes: Option<&'a [u8]>,
    mode: Option<u32>,
}

/// A diff as git writes it, the best that is found in this time; of very large files only their sizes.
fn compared(path: &[u8], before: Side<'_>, now: Side<'_>, patience: Duration) -> Vec<u8> {
    let old = before.bytes.unwrap_or_default();
    let new = now.bytes.unwrap_or_default();
    let mode = |side: Side<'_>| {
        if side.mode.is_some_and(|mode| mode & 0o111 != 0) {
            "100755"
        } else {
            "100644"
        }
    };
    let is_mode_new = before.mode.is_some() && now.mode.is_some() && mode(before) != mode(now);
    if before.bytes == now.bytes && !is_mode_new {
        return Vec::new();
    }
    let is_large = old.len().max(new.len()) > MAX_COMPARED;
    let name = |side: &str| {
        quoted(
            &[
                side.as_bytes(),
                b"/",
                path.strip_prefix(b"/").unwrap_or(path),
            ]
            .concat(),
        )
    };
    let mut head = format!("diff --git {} {}\n", name("a"), name("b"));
    // A tab ends a name with spaces, which could go on with a time.
    let tab = if path.contains(&b' ') { "\t" } else { "" };
    let mut from = name("a") + tab;
    let mut to = name("b") + tab;
    if before.bytes.is_none() {
        head.push_str(&format!("new file mode {}\n", mode(now)));
        from = "/dev/null".to_owned();
    } else if now.bytes.is_none() {
        head.push_str(&format!("deleted file mode {}\n", mode(before)));
        to = "/dev/null".to_owned();
    } else if is_mode_new {
        head.push_str(&format!(
            "old mode {}\nnew mode {}\n",
            mode(before),
            mode(now)
        ));
    }
    let binary = |bytes: &[u8]| bytes.iter().take(MAX_SNIFFED).any(|byte| *byte == 0);
    if before.bytes != now.bytes && (is_large || binary(old) || binary(new)) {
        // As git writes it, which refuses to apply it: without the header it would leave the file out and say nothing, and
        // without a second line of the header it would misread what follows.
        if before.bytes.is_some() && now.bytes.is_some() && !is_mode_new {
            head.push_str("dissimilarity index 100%\n");
        }
        head.push_str(&format!(
            "Binary files {} and {} differ\n",
            from.trim_end(),
            to.trim_end()
        ));
        if is_large {
            let path = escape(Path::new(OsStr::from_bytes(path)));
            let sizes = format!("{} bytes before, {} bytes now", old.len(), new.len());
            head.insert_str(0, &format!("{path}: {sizes}; too large to compare\n"));
        }
        return head.into_bytes();
    }
    let hunks = if before.bytes == now.bytes {
        Vec::new()
    } else {
        hunks(old, new, patience)
    };
    if !hunks.is_empty() {
        head.push_str(&format!("--- {from}\n+++ {to}\n"));
    }
    [head.into_bytes(), hunks].concat()
}

/// The changed lines, byte for byte; only a line feed ends a line.
fn hunks(old: &[u8], new: &[u8], patience: Duration) -> Vec<u8> {
    let old = lines(old);
    let new = lines(new);
    let ops = capture_diff_slices_deadline(
        Algorithm::Myers,
        &old,
        &new,
        Some(Instant::now() + patience),
    );
    let mut out = Vec::new();
    let mut push = |sign: &[u8], lines: &[&[u8]]| {
        for line in lines {
            let end: &[u8] = if line.ends_with(b"\n") {
                b""
            } else {
                b"\n\\ No newline at end of file\n"
            };
            out.extend([sign, line, end].concat());
        }
    };
    for group in group_diff_ops(ops, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let from = span(first.old_range().start..last.old_range().end);
        let to = span(first.new_range().start..last.new_range().end);
        push(b"", &[format!("@@ -{from} +{to} @@\n").as_bytes()]);
        for op in group {
            let gone = old.get(op.old_range());
            let come = new.get(op.new_range());
            if let DiffOp::Equal { .. } = op {
                push(b" ", gone.unwrap_or_default());
            } else {
                push(b"-", gone.unwrap_or_default());
                push(b"+", come.unwrap_or_default());
            }
        }
    }
    out
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Lines of one side of a hunk; an empty one names the line before it.
fn span(lines: Range<usize>) -> String {
    match lines.len() {
        1 => (lines.start + 1).to_string(),
        0 => format!("{},0", lines.start),
        more => format!("{},{more}", lines.start + 1),
    }
}

/// A name as git writes it with `core.quotePath`: in quotes if a byte of it is not printable ASCII, or is a quote or a
/// backslash.
fn quoted(name: &[u8]) -> String {
    let mut out = String::new();
    for byte in name {
        match byte {
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => out.push(char::from(*byte)),
            // Writing to a string cannot fail.
            other => drop(write!(out, "\\{other:03o}")),
        }
    }
    if out.as_bytes() == name {
        out
    } else {
        format!("\"{out}\"")
    }
}

#[cfg(test)]
mod tests;
