//! A tool that pours out a gigabyte: what is kept is bounded, the gap is told, and memory does not grow with it.
#![allow(clippy::unwrap_used, reason = "a rig that fails is a failed test")]
use llm_worker::{ToolEffect, ToolOutput};
use pod::record::Record;
use testkit::{FnTool, ModelScript, PodUnderTest, ScriptedAnswer};

/// What it pours out, in pieces.
const PIECE: usize = 64 * 1024;
const PIECES: usize = 16 * 1024;

/// How much more memory the pod may ever have than before it began: its pieces, the ends of the output, and slack.
const MAX_GROWTH_KB: u64 = 24 * 1024;

/// The most memory of files aside this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
            .trim()
            .to_owned()
    };
    let kb = |name: &str| field(name).trim_end_matches(" kB").parse::<u64>().unwrap();
    kb("VmHWM:")
}

#[test]
fn a_gigabyte_of_output_is_bounded_and_said_so() {
    let tool = FnTool::new("Pour", ToolEffect::ReadOnly, |cx, _| async move {
        let mut piece = vec![b'x'; PIECE];
        piece[PIECE - 1] = b'\n';
        for _ in 0..PIECES {
            cx.host.write_output(&piece)?;
        }
        Ok(ToolOutput {
            summary: "poured".to_owned(),
            content: String::new(),
            data: None,
        })
    });
    let script = ModelScript::new([
        ScriptedAnswer::calls(&[("Pour", "{}")]),
        ScriptedAnswer::text("done"),
    ]);
    let pod = PodUnderTest::new(&ambient::claim(), script, vec![tool]);
    let before = peak();
    pod.run("go").end();
    let grown = peak() - before;
    assert!(grown < MAX_GROWTH_KB, "{grown} KiB more");
    let finished = pod
        .records()
        .into_iter()
        .find_map(|(_, record)| match record {
            Record::ToolFinished(finished) => Some(finished),
            _ => None,
        });
    let finished = finished.unwrap();
    let stored = finished.output.unwrap().stored;
    assert_eq!(stored.total(), (PIECE * PIECES) as u64);
    assert!(
        stored.bytes <= 64 << 20 && stored.gap.is_some(),
        "{stored:?}"
    );
    assert!(
        finished.outcome.content.contains("bytes left out")
            && finished.outcome.content.len() < 32 * 1024
    );
}
