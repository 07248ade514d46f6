//! `yoi feature new`: the template crate of `docs/template` under another name.

use crate::cli::FeatureNewArgs;
use crate::show::out;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::disk;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const MANIFEST: &str = include_str!("../../../../docs/template/Cargo.toml");
const CLIPPY: &str = include_str!("../../../../docs/template/clippy.toml");
const SOURCE: &str = include_str!("../../../../docs/template/src/lib.rs");
const TEST: &str = include_str!("../../../../docs/template/tests/review_first.rs");

/// The longest name, in bytes: that of a feature.
const MAX_NAME: usize = 64;

/// Names of crates that the new one depends on, or that Rust has.
const TAKEN: [&str; 10] = [
    "alloc",
    "core",
    "pod",
    "proc-macro",
    "schemars",
    "serde",
    "serde-json",
    "std",
    "test",
    "testkit",
];

/// Words of Rust that are no names of crates.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Writes the crate, or nothing.
pub(crate) fn run(args: &FeatureNewArgs, env: &Env) -> Result<Exit, Failure> {
    let name = Name::of(&args.name)?;
    let parent = env.cwd.join(args.dir.as_deref().unwrap_or(Path::new("")));
    let parent = parent.canonicalize().map_err(|e| {
        let option = if args.dir.is_some() { "--dir: " } else { "" };
        Failure::new(Exit::Usage, format!("{option}{}", authority::explain_at(&parent.display().to_string(), &e)))
            .help("choose an existing directory with --dir; `yoi feature new` creates the crate's directory in it")
    })?;
    let clone = match &args.yoi {
        Some(dir) => clone_at(&env.cwd.join(dir))
            .ok_or_else(|| no_clone(&format!("{} is not", dir.display()))),
        None => env
            .cwd
            .ancestors()
            .find_map(clone_at)
            .ok_or_else(|| no_clone("this directory is not in")),
    }?;
    let dir = parent.join(&name.0);
    match fs::create_dir(&dir) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(
                Failure::new(Exit::Usage, format!("{} already exists", dir.display()))
                    .help("choose another name, or another directory with --dir"),
            );
        }
        Err(error) => return Err(disk(&dir, &error)),
    }
    if let Err((path, error)) = write(&dir, &name, &clone) {
        // It was not there before, so all of it is ours.
        drop(authority::remove_dir(&ambient::claim(), &dir));
        return Err(disk(&path, &error));
    }
    out::line(&format!("wrote {}", dir.display()));
    out::line(&format!(
        "to test the crate: cd {} && cargo test",
        dir.display()
    ));
    out::line(&format!(
        "docs/FEATURES.md in {} explains the crate",
        clone.display()
    ));
    Ok(Exit::Done)
}

fn no_clone(what: &str) -> Failure {
    Failure::new(
        Exit::Usage,
        format!(
            "{what} a clone of yoi; the crate of a new feature is built with the crates of a clone"
        ),
    )
    .help("run the command in a clone of yoi, or name a clone with --yoi DIR")
}

/// The directory, if yoi's crates are in it.
fn clone_at(dir: &Path) -> Option<PathBuf> {
    let is_there = |name| dir.join("crates").join(name).join("Cargo.toml").is_file();
    (is_there("pod") && is_there("testkit"))
        .then(|| dir.canonicalize().ok())
        .flatten()
}

fn write(dir: &Path, name: &Name, clone: &Path) -> Result<(), (PathBuf, io::Error)> {
    let crates = |text: String, of| {
        let path =
            toml::Value::String(clone.join("crates").join(of).display().to_string()).to_string();
        text.replace(&format!("\"../../crates/{of}\""), &path)
    };
    let manifest = crates(crates(name.put_into(MANIFEST), "pod"), "testkit");
    let test = format!("tests/{}.rs", name.snake());
    let files = [
        ("Cargo.toml", manifest),
        (".gitignore", "/target\n".to_owned()),
        // What a feature must not call.
        ("clippy.toml", CLIPPY.to_owned()),
    ];
    let code = [
        ("src/lib.rs", name.put_into(SOURCE)),
        (test.as_str(), name.put_into(TEST)),
    ];
    for (path, text) in files.into_iter().chain(code) {
        let path = dir.join(path);
        let above = path.parent().map_or(Ok(()), fs::create_dir_all);
        above
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| (path, error))?;
    }
    Ok(())
}

/// A name for a feature, its crate and its type.
#[derive(Debug)]
struct Name(String);

impl Name {
    fn of(text: &str) -> Result<Self, Failure> {
        let wrong = |why: &str, help: String| {
            Failure::new(
                Exit::Usage,
                format!("`{text}` is not a valid feature name{why}"),
            )
            .help(help)
        };
        let part_fits = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_lowercase())
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        if text.len() > MAX_NAME || !text.split('-').all(part_fits) {
            let help = format!(
                "use words of a-z and 0-9 that start with a letter, joined by -, such as my-feature; at most {MAX_NAME} characters"
            );
            return Err(wrong("", help));
        }
        if TAKEN.contains(&text) || KEYWORDS.contains(&text) {
            return Err(wrong(
                ": Rust or another crate uses it",
                "use a name such as my-feature".to_owned(),
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn snake(&self) -> String {
        self.0.replace('-', "_")
    }

    fn camel(&self) -> String {
        let word = |word: &str| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_ascii_uppercase() + rest
        };
        self.0.split('-').map(word).collect()
    }

    /// The template's text under this name.
    fn put_into(&self, text: &str) -> String {
        let renamed = text
            .replace("review-first", &self.0)
            .replace("review_first", &self.snake());
        renamed.replace("ReviewFirst", &self.camel())
    }
}
