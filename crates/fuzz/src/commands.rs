//! Shell commands, before anybody judges them.

use shell::{CommandLine, MAX_BYTES, Part, parse};
use std::process::{Command, Stdio};

/// What is put behind a command, and must be seen there.
const BEHIND: &str = "\nshred-everything --now";
const PROGRAM: &str = "shred-everything";

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let script = parse(&text);
    assert_eq!(script, parse(&text), "the same text, the same answer");
    in_range(&script);
    if text.len() > MAX_BYTES {
        assert!(opaque(&script), "over the length that is read");
    }
    // A line of its own is a command of its own, unless what stands before it takes it in: an open here-document, or a
    // backslash at the end. Then nothing is said here.
    if !opaque(&script) && !text.contains("<<") && !text.ends_with('\\') {
        let longer_text = format!("{text}{BEHIND}");
        let longer = parse(&longer_text);
        let seen = longer
            .parts
            .iter()
            .any(|part| part.program_name() == Some(PROGRAM));
        assert!(
            seen || opaque(&longer) || !is_bash(&longer_text),
            "{text:?} hides the line behind it: {:?}",
            longer.parts
        );
    }
    // What is hidden from one command is hidden when it is one of several.
    if opaque(&script) && text.len() < MAX_BYTES / 2 {
        let more = parse(&format!("true\n{text}"));
        assert!(
            opaque(&more) || !is_bash(&text),
            "{text:?} is opaque alone and not behind another command: {:?}",
            more.parts
        );
    }
}

/// Whether bash would run it: what it refuses to read hides nothing. Asked only where something seems to be wrong.
pub(crate) fn is_bash(text: &str) -> bool {
    let read = Command::new("bash")
        .args(["-n", "-c", text])
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .status();
    read.is_ok_and(|status| status.success())
}

pub(crate) fn opaque(script: &CommandLine) -> bool {
    script.parts.iter().any(|part| part.opaque.is_some())
}

fn in_range(script: &CommandLine) {
    let all = 0..=script.parts.len();
    let ranges = script.parts.iter().flat_map(|part: &Part| &part.reads);
    for range in ranges.chain(script.functions.iter().map(|function| &function.body)) {
        assert!(
            all.contains(&range.start) && all.contains(&range.end),
            "{range:?} of {}",
            script.parts.len()
        );
    }
    for part in &script.parts {
        let _: shell::Subcommand<'_> = part.subcommand();
    }
}
