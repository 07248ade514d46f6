//! What must not compile. The first line of each case names its one error by code, or says that it compiles; the
//! compiler's wording is not compared, because it changes with every release.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "helpers of a test"
)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn each_case_fails_for_its_own_reason() {
    let cases = cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail"));
    assert!(cases.len() >= 10, "{cases:?}");
    let mut found = check(&cases);
    for (path, wanted) in &cases {
        let name = name(path);
        let codes = found.remove(&name).unwrap_or_default();
        let wanted: Vec<String> = wanted.iter().cloned().collect();
        assert_eq!(codes, wanted, "{name}");
    }
    assert!(found.is_empty(), "{found:?}");
}

/// The files, and the error each one names.
fn cases(folder: &Path) -> Vec<(PathBuf, Option<String>)> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let case = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let wanted = text
            .strip_prefix("// ")
            .and_then(|text| text.split(':').next())
            .expect("a first line");
        let code = (wanted != "compiles").then(|| wanted.to_owned());
        assert!(
            code.as_ref().is_none_or(|code| code.starts_with('E')),
            "{wanted}"
        );
        (path, code)
    };
    paths.map(case).collect()
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// Checks each file as a program of its own, and answers the error codes by name.
fn check(cases: &[(PathBuf, Option<String>)]) -> BTreeMap<String, Vec<String>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    fs::create_dir_all(&package).unwrap();
    fs::copy(here.join("../../Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let mut manifest = format!(
        "[package]\nname = \"cases\"\nedition = \"2024\"\nautobins = false\n[workspace]\n[dependencies]\nllm-worker = {{ path = {here:?} }}\n"
    );
    for (path, _) in cases {
        manifest.push_str(&format!(
            "[[bin]]\nname = {:?}\npath = {path:?}\n",
            name(path)
        ));
    }
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    let output = Command::new(env!("CARGO"))
        .args([
            "check",
            "--offline",
            "--keep-going",
            "--message-format=json",
        ])
        .current_dir(&package)
        .env("CARGO_TARGET_DIR", package.join("target"))
        .output()
        .unwrap();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut control = false;
    for line in output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let message: Value = serde_json::from_slice(line).unwrap();
        let target = message["target"]["name"].as_str().unwrap_or_default();
        control |= message["reason"] == "compiler-artifact" && target == "control";
        if let (Some("error"), Some(code)) = (
            message["message"]["level"].as_str(),
            message["message"]["code"]["code"].as_str(),
        ) {
            found
                .entry(target.to_owned())
                .or_default()
                .push(code.to_owned());
        }
    }
    assert!(
        control,
        "the control did not compile:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    found
}
