//! Diffs as git takes them, and how long one may take.

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
    let old = lines(0x9e37_79b9_7f4a_7c15);
    let new = lines(0xc2b2_ae3d_27d4_eb4f);
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
    let compared =
        |before, now| String::from_utf8(compared(b"f", side(before), side(now), PATIENCE)).unwrap();
    let gone = compared(Some(&large), None);
    assert!(
        gone.starts_with("f: 8388609 bytes before, 0 bytes now; too large to compare\ndiff --git"),
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
            let root = dir.path().join("d");
            let patch = dir.path().join("patch");
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
    let root = dir.path().join("d");
    let patch = dir.path().join("patch");
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
