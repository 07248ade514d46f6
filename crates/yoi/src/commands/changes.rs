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
    let (mut rows, mut lost, root) = (Vec::new(), 0, Project::around(env).root);
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
    let (old, new) = (
        before.bytes.unwrap_or_default(),
        now.bytes.unwrap_or_default(),
    );
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
    let (mut from, mut to) = (name("a") + tab, name("b") + tab);
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
    let (old, new) = (lines(old), lines(new));
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
            let (gone, come) = (old.get(op.old_range()), new.get(op.new_range()));
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
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::process::Command;

    fn side(bytes: Option<&[u8]>) -> Side<'_> {
        Side { bytes, mode: None }
    }

    #[test]
    fn a_diff_ends() {
        let lines = |seed: u64| -> Vec<u8> {
            let numbers = (1..=300_000u64).map(|n| n.wrapping_mul(seed).rotate_left(29) % 5_000);
            numbers
                .flat_map(|n| format!("{n}\n").into_bytes())
                .collect()
        };
        let (old, new) = (lines(0x9e37_79b9_7f4a_7c15), lines(0xc2b2_ae3d_27d4_eb4f));
        let diff = compared(
            b"f",
            side(Some(&old)),
            side(Some(&new)),
            Duration::from_millis(10),
        );
        assert!(
            diff.starts_with(b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ "),
            "{:?}",
            diff.get(..100).unwrap()
        );
    }

    #[test]
    fn of_very_large_files_the_sizes_are_said() {
        let large = vec![b'x'; MAX_COMPARED + 1];
        let compared = |before, now| {
            String::from_utf8(compared(b"f", side(before), side(now), PATIENCE)).unwrap()
        };
        let gone = compared(Some(&large), None);
        assert!(
            gone.starts_with(
                "f: 8388609 bytes before, 0 bytes now; too large to compare\ndiff --git"
            ),
            "{gone}"
        );
        assert!(compared(Some(b"a\n"), Some(&large)).contains("2 bytes before, 8388609 bytes now"));
        assert!(compared(Some(b"a\n"), Some(b"b\n")).ends_with("-a\n+b\n"));
    }

    #[test]
    fn each_line_of_a_diff_has_its_meaning() {
        let diff = compared(
            b"f",
            side(Some(b"-- a\nb\n")),
            side(Some(b"++ c\nb")),
            PATIENCE,
        );
        let diff = String::from_utf8(diff).unwrap();
        let shown: Vec<_> = toned(diff.trim_end())
            .iter()
            .map(|line| line.ansi(tui::Theme::Colour))
            .collect();
        let codes = shown.iter().map(|line| {
            line.strip_prefix("\u{1b}[")
                .and_then(|line| line.split_once('m'))
        });
        let codes: Vec<_> = codes
            .map(|code| code.map_or("", |(code, _)| code))
            .collect();
        assert_eq!(
            codes,
            ["1", "1", "1", "36", "31", "31", "32", "32", "2"],
            "{diff}"
        );
    }

    fn applied(dir: &Path, args: &[&str], patch: &Path) -> Result<(), String> {
        let done = Command::new("git")
            .arg("-C")
            .arg(dir)
            .args(["apply", "--unsafe-paths"])
            .args(args)
            .arg(patch)
            .output();
        let done = done.unwrap();
        done.status
            .success()
            .then_some(())
            .ok_or_else(|| String::from_utf8_lossy(&done.stderr).into_owned())
    }

    fn git(dir: &Path, args: &[&str], patch: &Path) {
        applied(dir, args, patch).unwrap_or_else(|why| panic!("{args:?}: {why}"));
    }

    // opencode#3524, pi#4018, hermes#93750: a patch that is shown is one that git takes, there and back, byte for byte.
    #[test]
    fn git_applies_what_is_shown() {
        let names: [&[u8]; 12] = [
            b"plain.txt",
            b"a\nb.txt",
            b"tab\tx",
            b"cr\rx",
            b"del\x7f",
            b"quote\"d",
            b"back\\slash",
            b"-dash",
            b"a b",
            b" lead trail ",
            "\u{fc}ber/\u{65e5}".as_bytes(),
            b"latin\xe9",
        ];
        type Content = Option<&'static [u8]>;
        let contents: [(Content, Content); 12] = [
            (Some(b"one\ntwo\n"), Some(b"1\ntwo\n")),
            (Some(b"caf\xe9\n"), Some(b"th\xe9\n")),
            (Some(b"a\r\nb\r\n"), Some(b"a\r\nB\r\n")),
            (Some(b"a\r\nb\r\n"), Some(b"a\nb\n")),
            (Some(b"a\rb\rc"), Some(b"a\rB\rc")),
            (Some(b"end"), Some(b"end\n")),
            (Some(b"end\n"), Some(b"end\r")),
            (Some(b"old\n"), Some(b"")),
            (None, Some(b"")),
            (None, Some(b"new\xff")),
            (Some(b""), None),
            (Some(b"-- gone\n++ by\n"), None),
        ];
        for (number, name) in names.iter().enumerate() {
            for (before, now) in contents {
                let dir = tempfile::tempdir().unwrap();
                let (root, patch) = (dir.path().join("d"), dir.path().join("patch"));
                let file = root.join(OsStr::from_bytes(name));
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                if let Some(bytes) = before {
                    fs::write(&file, bytes).unwrap();
                }
                let mode = if number % 2 == 0 { 0o644 } else { 0o755 };
                let old = Side {
                    bytes: before,
                    mode: before.map(|_| mode),
                };
                let new = Side {
                    bytes: now,
                    mode: now.map(|_| 0o644),
                };
                if before.is_some() {
                    fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
                }
                fs::write(&patch, compared(name, old, new, PATIENCE)).unwrap();
                let shown = || {
                    format!(
                        "{:?}: {}",
                        OsStr::from_bytes(name),
                        fs::read(&patch).unwrap().escape_ascii()
                    )
                };
                git(&root, &[], &patch);
                assert_eq!(fs::read(&file).ok().as_deref(), now, "{}", shown());
                assert!(
                    fs::metadata(&file).is_ok_and(|meta| meta.mode() & 0o111 == 0) || now.is_none(),
                    "{}",
                    shown()
                );
                git(&root, &["-R"], &patch);
                assert_eq!(fs::read(&file).ok().as_deref(), before, "{}", shown());
            }
        }
    }

    // What is not shown was left out of the patch by `git apply`, which said nothing. Modes are applied.
    #[test]
    fn git_refuses_what_is_not_shown_and_takes_modes() {
        let dir = tempfile::tempdir().unwrap();
        let (root, patch) = (dir.path().join("d"), dir.path().join("patch"));
        fs::create_dir(&root).unwrap();
        let large = vec![b'x'; MAX_COMPARED + 1];
        let text = compared(b"text", side(Some(b"a\n")), side(Some(b"b\n")), PATIENCE);
        type Row<'a> = (&'a str, Option<&'a [u8]>, Option<&'a [u8]>, &'a str);
        let table: [Row<'_>; 4] = [
            (
                "binary",
                Some(b"a\0\n"),
                Some(b"b\0\n"),
                "Binary files a/binary and b/binary differ\n",
            ),
            (
                "gone",
                Some(b"a\0\n"),
                None,
                "Binary files a/gone and /dev/null differ\n",
            ),
            (
                "new",
                None,
                Some(b"a\0\n"),
                "Binary files /dev/null and b/new differ\n",
            ),
            (
                "large",
                Some(&large),
                Some(b"a\n"),
                "Binary files a/large and b/large differ\n",
            ),
        ];
        for (name, old, new, wanted) in table {
            fs::write(root.join("text"), "a\n").unwrap();
            old.iter()
                .for_each(|old| fs::write(root.join(name), old).unwrap());
            let diff = compared(name.as_bytes(), side(old), side(new), PATIENCE);
            assert!(diff.ends_with(wanted.as_bytes()), "{}", diff.escape_ascii());
            for whole in [[&text, &diff], [&diff, &text]] {
                fs::write(&patch, whole.map(Vec::as_slice).concat()).unwrap();
                let refused = applied(&root, &[], &patch).unwrap_err();
                assert!(
                    refused.contains("cannot apply binary patch") && refused.contains(name),
                    "{refused}"
                );
                assert_eq!(fs::read(root.join("text")).unwrap(), b"a\n", "{name}");
            }
            git(&root, &[&format!("--exclude={name}")], &patch);
            assert_eq!(fs::read(root.join("text")).unwrap(), b"b\n", "{name}");
        }
        fs::write(root.join("text"), "a\n").unwrap();
        fs::write(root.join("tool"), "x\0\n").unwrap();
        let mode = |mode| Side {
            bytes: Some(b"x\0\n"),
            mode: Some(mode),
        };
        fs::write(
            &patch,
            [text, compared(b"tool", mode(0o644), mode(0o755), PATIENCE)].concat(),
        )
        .unwrap();
        git(&root, &[], &patch);
        assert!(fs::metadata(root.join("tool")).unwrap().mode() & 0o111 != 0);
        assert!(compared(b"same", mode(0o644), mode(0o600), PATIENCE).is_empty());
    }

    #[test]
    fn a_nul_byte_decides_what_is_binary() {
        let far = [&b"x\n".repeat(4000)[..], b"\0\n"].concat();
        let table: [(&[u8], &[u8], bool); 4] = [
            (b"a\n", b"a\0\n", true),
            (b"\xff\xfea\n", b"b\n", false),
            (b"\x93\xfa\n", b"\x96\x7b\n", false),
            (b"x\n", &far, false),
        ];
        for (old, new, binary) in table {
            let diff = compared(b"a b", side(Some(old)), side(Some(new)), PATIENCE);
            let diff = String::from_utf8_lossy(&diff);
            assert_eq!(
                diff.ends_with("Binary files a/a b and b/a b differ\n"),
                binary,
                "{diff}"
            );
        }
    }
}
