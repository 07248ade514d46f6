//! The reader against git itself: what git finds in a file, the reader finds, or it refuses the file.

use super::{Unreadable, parse};
use std::hash::{BuildHasher, Hasher};
use std::process::Command;

/// What is in generated files: pieces that mean something to git, and such that break it.
const PIECES: &[&[u8]] = &[
    b"[core]",
    b"[CORE]\n",
    b"[alias \"A b\"]",
    b"[a.B]",
    b"[url \"x\\\"y\\\\\"]\n",
    b"[include",
    b"]",
    b"[ core]",
    b"[x \"\"]",
    b"\n",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b" ",
    b"#",
    b";",
    b"\"",
    b"\\",
    b"\\\n",
    b"\\\r\n",
    b"\\n",
    b"\\t",
    b"\\b",
    b"\\q",
    b"=",
    b"= ",
    b"pager",
    b"Editor",
    b"a-1",
    b"path",
    b"x = y",
    b"x = \"y ; z\" # c\n",
    b"sshCommand = a\\\n b",
    b"helper",
    b"!run",
    b"true",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\x0b",
    b"\x0c",
    b"1",
    b"-",
    b"_",
    b".",
    b"\n[s]\n",
    b"\nk = v",
    b"\nk\n",
];

/// A key and its value.
type Listed = (Vec<u8>, Option<Vec<u8>>);

/// The entries as git lists them.
fn git(bytes: &[u8], path: &std::path::Path) -> Option<Vec<Listed>> {
    std::fs::write(path, bytes).unwrap();
    let output = Command::new("git")
        .args(["config", "--list", "-z", "--file"])
        .arg(path)
        .output()
        .unwrap();
    let entry = |record: &[u8]| match record.iter().position(|byte| *byte == b'\n') {
        Some(end) => (record[..end].to_owned(), Some(record[end + 1..].to_owned())),
        None => (record.to_owned(), None),
    };
    let listed = output
        .stdout
        .split(|byte| *byte == 0)
        .filter(|record| !record.is_empty())
        .map(entry)
        .collect();
    output.status.success().then_some(listed)
}

fn compare(bytes: &[u8], path: &std::path::Path) {
    let shown = bytes.escape_ascii();
    match (git(bytes, path), parse(bytes)) {
        (Some(listed), Ok(read)) => {
            let read: Vec<_> = read
                .iter()
                .map(|entry| (entry.key(), entry.value.clone()))
                .collect();
            assert_eq!(read, listed, "{shown}");
        }
        // Refusing more is safe: the file is put back.
        (_, Err(Unreadable)) => {}
        (None, Ok(_)) => {}
    }
}

#[test]
fn what_git_reads_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    let count = if std::env::var_os("YOI_TEST_GIT").is_some() {
        20_000
    } else {
        300
    };
    let mut taken = 0;
    let hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
    for seed in 0..count {
        let mut text = b"[core]\n".to_vec();
        for at in 0..(seed % 24) {
            let mut random = hasher.build_hasher();
            random.write_u64(seed << 16 | at);
            let random = random.finish() as usize;
            text.extend_from_slice(PIECES[random % PIECES.len()]);
        }
        compare(&text, &path);
        taken += usize::from(parse(&text).is_ok());
    }
    assert!(
        taken > count as usize / 10,
        "{taken} of {count} are files that can be read"
    );
}

/// Found by reading git's own documentation and source, one line each.
#[test]
fn odd_files_are_read_as_git_reads_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    let accepted: &[&[u8]] = &[
        b"",
        b"\xef\xbb\xbf[core]\na=b",
        b"[core]a=b",
        b"[core] [x] a",
        b"[a]\n\tb = c \\\n d \n",
        b"[a]\nb = \"c\" d ; e\n",
        b"[a]\nb = c\\\r\nd\r\n",
        b"[a \"b]\\\\c\"]\nd\n",
        b"[a.B.C]\nd=1",
        b"[a]\nb=\\\"\\\\\\n\\t\\b",
        b"[a]\nb",
        b"[a]\nb=",
        b"[a]\nb =c\rd\n",
        b"[a]\nb=c\\",
        b"[a]\nb=c\t\\\n\r",
        b"[a]\n# \\\nb=c",
        b"[a]\nb = \"x\n".strip_suffix(b"\n").unwrap(),
    ];
    accepted.iter().for_each(|bytes| compare(bytes, &path));
    let refused: &[&[u8]] = &[
        b"[a",
        b"[a]\n1=b",
        b"[a]\nb c",
        b"[a]\nb # c",
        b"[a]\nb=\\q",
        b"[a]\nb=\"x\ny\"",
        b"[a \"b\nc\"]",
        b"[a \"b\" ]",
        b"a\0b",
    ];
    for bytes in refused {
        assert_eq!(parse(bytes), Err(Unreadable), "{}", bytes.escape_ascii());
        assert!(bytes.contains(&0) || git(bytes, &path).is_none());
    }
}
