//! Both forms of archives, as tools write them and as nobody should.

use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use std::io::Write;

const MANIFEST_TEXT: &[u8] = b"[package]\nname = \"acme\"\n";
const FILE: u32 = 0o100_000;

/// An entry: its path, the kind and mode as Unix has them, and its bytes.
type Told<'a> = (&'a str, u32, &'a [u8]);

fn tarred(entries: &[Told<'_>]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, mode, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        // The library refuses paths that lead out.
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(match mode & 0o170_000 {
            0o120_000 => EntryType::Symlink,
            0o040_000 => EntryType::Directory,
            0o020_000 => EntryType::Char,
            0o010_000 => EntryType::Fifo,
            _ => EntryType::Regular,
        });
        if header.entry_type() == EntryType::Symlink {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_mode(mode & 0o7777);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// The fields that the two records of a file share, from its flags to its size.
fn shared(bytes: &[u8], packed: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    let mut fields = vec![0, 0, 8, 0, 0, 0, 0, 0];
    fields.extend(crc.sum().to_le_bytes());
    fields.extend((packed.len() as u32).to_le_bytes());
    fields.extend((bytes.len() as u32).to_le_bytes());
    fields
}

fn zipped(entries: &[Told<'_>]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut list = Vec::new();
    for (path, mode, bytes) in entries {
        let packed = deflated(bytes);
        let at = all.len() as u32;
        let name_length = (path.len() as u16).to_le_bytes();
        all.extend(b"PK\x03\x04\x14\x00");
        all.extend(shared(bytes, &packed));
        all.extend(name_length);
        all.extend([0, 0]);
        all.extend(path.as_bytes());
        all.extend(&packed);
        list.extend(b"PK\x01\x02\x14\x03\x14\x00");
        list.extend(shared(bytes, &packed));
        list.extend(name_length);
        list.extend([0; 8]);
        list.extend((mode << 16).to_le_bytes());
        list.extend(at.to_le_bytes());
        list.extend(path.as_bytes());
    }
    let at = all.len() as u32;
    all.extend(&list);
    all.extend(b"PK\x05\x06\x00\x00\x00\x00");
    all.extend((entries.len() as u16).to_le_bytes());
    all.extend((entries.len() as u16).to_le_bytes());
    all.extend((list.len() as u32).to_le_bytes());
    all.extend(at.to_le_bytes());
    all.extend([0, 0]);
    all
}

/// What writes an archive.
type Form = fn(&[Told<'_>]) -> Vec<u8>;

const FORMS: [Form; 2] = [tarred, zipped];

/// A package as a release of a repository has it.
const GOOD: [Told<'static>; 4] = [
    ("acme-1.0/", 0o040_755, b""),
    ("acme-1.0/plugin.toml", FILE | 0o644, MANIFEST_TEXT),
    ("acme-1.0/bin/run", FILE | 0o755, b"#!/bin/sh\n"),
    ("acme-1.0/empty", FILE | 0o600, b""),
];

fn listed(archive: &Archive) -> Vec<(&str, bool, &[u8])> {
    archive
        .files()
        .map(|(path, file)| (path, file.executable, file.bytes.as_slice()))
        .collect()
}

#[test]
fn a_package_is_read_in_both_forms() {
    let expected: [(&str, bool, &[u8]); 3] = [
        ("bin/run", true, b"#!/bin/sh\n"),
        ("empty", false, b""),
        ("plugin.toml", false, MANIFEST_TEXT),
    ];
    for form in FORMS {
        assert_eq!(listed(&Archive::read(&form(&GOOD)).unwrap()), expected);
        // Without a directory of its own, and with the dots that `tar -C dir .` writes.
        let flat = GOOD.map(|(path, mode, bytes)| (&path["acme-1.0".len()..], mode, bytes));
        let dotted: Vec<String> = flat.iter().map(|(path, ..)| format!(".{path}")).collect();
        let flat: Vec<Told<'_>> = flat
            .iter()
            .zip(&dotted)
            .map(|((_, mode, bytes), path)| (path.as_str(), *mode, *bytes))
            .collect();
        assert_eq!(listed(&Archive::read(&form(&flat)).unwrap()), expected);
        // Two directories are no package in one.
        let two = [GOOD[1], ("other/file", FILE | 0o644, b"x".as_slice())];
        let read = Archive::read(&form(&two)).unwrap();
        let paths: Vec<&str> = read.files().map(|(path, _)| path).collect();
        assert_eq!(paths, ["acme-1.0/plugin.toml", "other/file"]);
    }
}

#[test]
fn what_leads_elsewhere_or_is_no_file_is_refused() {
    let deep = "d/".repeat(MAX_DEPTH + 2) + "file";
    let cases: [(Told<'_>, &str); 11] = [
        (("../up", FILE | 0o644, b"x"), "leads out"),
        (("a/../../up", FILE | 0o644, b"x"), "leads out"),
        (("a/..", 0o040_755, b""), "leads out"),
        (("/etc/passwd", FILE | 0o644, b"x"), "absolute"),
        (("link", 0o120_777, b""), "is a link"),
        (("null", 0o020_666, b""), "not a regular file"),
        (("pipe", 0o010_666, b""), "not a regular file"),
        (("suid", FILE | 0o4755, b"x"), "another user"),
        (("sgid", FILE | 0o2755, b"x"), "another user"),
        ((&deep, FILE | 0o644, b"x"), "too many directories"),
        ((".", FILE | 0o644, b"x"), "has no name"),
    ];
    for form in FORMS {
        for (entry, why) in cases {
            let refused = Archive::read(&form(&[GOOD[1], entry])).unwrap_err();
            assert!(
                matches!(refused, BadArchive::Entry { .. }) && refused.to_string().contains(why),
                "{why}: {refused}"
            );
        }
        for (twice, why) in [
            (["a", "a"], "is there twice"),
            (["a", "./a"], "is there twice"),
            (["a", "a/b"], "is in a file"),
            (["a/b/c", "a"], "is in a file"),
        ] {
            let entries = twice.map(|path| (path, FILE | 0o644, b"x".as_slice()));
            let refused = Archive::read(&form(&entries)).unwrap_err().to_string();
            assert!(refused.contains(why), "{twice:?}: {refused}");
        }
    }
}

/// A part of an archive is no archive, wherever it ends.
#[test]
fn a_cut_archive_is_refused() {
    for form in FORMS {
        let whole = form(&GOOD);
        for length in 0..whole.len() {
            assert!(Archive::read(&whole[..length]).is_err(), "{length}");
        }
    }
}

/// A changed byte is seen where it changes a file. In a list of files it may change who can execute one.
#[test]
fn a_changed_byte_changes_no_file() {
    for form in FORMS {
        let whole = form(&GOOD);
        let good = Archive::read(&whole).unwrap();
        let bytes = |archive: &Archive| {
            let files = archive.files();
            files
                .map(|(path, file)| (path.to_owned(), file.bytes.clone()))
                .collect::<Vec<_>>()
        };
        for at in 0..whole.len() {
            for bit in [1, 0x80] {
                let mut changed = whole.clone();
                changed[at] ^= bit;
                if let Ok(read) = Archive::read(&changed) {
                    assert_eq!(bytes(&read), bytes(&good), "byte {at}");
                }
            }
        }
    }
}

#[test]
fn what_an_archive_says_of_its_size_is_bounded() {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_path("large").unwrap();
    header.set_mode(0o644);
    header.set_size(MAX_BYTES + 1);
    header.set_cksum();
    tar.append(&header, b"".as_slice()).unwrap();
    let large = tar.into_inner().unwrap().finish().unwrap();
    assert_eq!(Archive::read(&large), Err(BadArchive::Bytes));

    let directory = ("d/", 0o040_755, b"".as_slice());
    assert_eq!(
        Archive::read(&tarred(&vec![directory; MAX_ENTRIES + 1])),
        Err(BadArchive::Entries)
    );
    assert!(Archive::read(&tarred(&vec![directory; MAX_ENTRIES])).is_ok());

    // A bomb: its list says one byte.
    let mut bomb = zipped(&[("a", FILE | 0o644, &[0; 100_000])]);
    let row = bomb.windows(4).position(|at| at == b"PK\x01\x02").unwrap();
    bomb[row + 24..row + 28].copy_from_slice(&1_u32.to_le_bytes());
    let refused = Archive::read(&bomb).unwrap_err().to_string();
    assert!(refused.contains("not as many bytes"), "{refused}");

    // Two rows about the same bytes.
    let noise: Vec<u8> = (0..4000_u32).map(|n| (n * n % 251) as u8).collect();
    let mut twice = zipped(&[("a", FILE | 0o644, &noise)]);
    let row = twice.windows(4).position(|at| at == b"PK\x01\x02").unwrap();
    let end = twice.len() - 22;
    let again = twice[row..end].to_vec();
    twice.splice(end..end, again);
    let end = twice.len() - 22;
    for at in [end + 8, end + 10] {
        twice[at..at + 2].copy_from_slice(&2_u16.to_le_bytes());
    }
    let refused = Archive::read(&twice).unwrap_err().to_string();
    assert!(refused.contains("in one another"), "{refused}");

    let mut many = zipped(&GOOD);
    let end = many.len() - 22;
    for at in [end + 8, end + 10] {
        many[at..at + 2].copy_from_slice(&(MAX_ENTRIES as u16 + 1).to_le_bytes());
    }
    assert_eq!(Archive::read(&many), Err(BadArchive::Entries));
}

#[test]
fn long_names_and_what_git_adds_are_read() {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut global = tar::Header::new_ustar();
    global.set_entry_type(EntryType::XGlobalHeader);
    global.set_path("pax_global_header").unwrap();
    let comment = b"16 comment=abcd\n";
    global.set_size(comment.len() as u64);
    global.set_cksum();
    tar.append(&global, comment.as_slice()).unwrap();
    let long = format!("acme/{}/file", "n".repeat(200));
    for path in ["acme/plugin.toml", &long] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(1);
        tar.append_data(&mut header, path, b"x".as_slice()).unwrap();
    }
    let read = Archive::read(&tar.into_inner().unwrap().finish().unwrap()).unwrap();
    let paths: Vec<&str> = read.files().map(|(path, _)| path).collect();
    assert_eq!(paths, [&long["acme/".len()..], "plugin.toml"]);
}

#[test]
fn other_files_are_no_archives() {
    for bytes in [b"".as_slice(), b"plain text", b"BZh9", b"\xfd7zXZ\0"] {
        assert_eq!(Archive::read(bytes), Err(BadArchive::Unknown));
    }
    assert_eq!(
        sha256(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}
