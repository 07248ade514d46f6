//! One call's output and file changes, at their bounds.

use super::{CallOutput, EndedCall, HEAD_BYTES, HEAD_LINES, INLINE, Landings, TAIL_BYTES, Written};
use crate::hook::Shaping;
use crate::mailbox::live_output::{CallOrigin, LiveOutput, LiveOutputs};
use crate::mailbox::requests::{DriverRequest, Mailbox, MailboxSender, Wakeup, mailbox};
use crate::permission::tests::TERMS;
use crate::record::{FileChanged, Output, Record};
use authority::{Redactor, Secret};
use llm_worker::tool::{CallHost, FileChange, LineRange};
use llm_worker::{CallId, ErrorKind, ResultStatus, ToolError, ToolOutcome, ToolOutput};
use session_store::{Opened, Options, Session};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

struct Scene {
    opened: Opened,
    sender: MailboxSender,
    mailbox: Mailbox,
    _root: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let opened = Session::create(
            &root.path().join("one"),
            Options::new("s-1", Arc::new(|| 1)),
        )
        .unwrap();
        let (mailbox, sender) = mailbox();
        Self {
            opened,
            sender,
            mailbox,
            _root: root,
        }
    }

    fn output(&self, outputs: Vec<Output>) -> CallOutput {
        self.watched(outputs, Redactor::default(), Shaping::None, None)
    }

    fn watched(
        &self,
        outputs: Vec<Output>,
        redactor: Redactor,
        shaping: Shaping,
        live: Option<LiveOutput>,
    ) -> CallOutput {
        let call = CallId::new(1).unwrap();
        CallOutput {
            session: "s-1".into(),
            dir: Path::new("").into(),
            call,
            blobs: self.opened.blobs.clone(),
            outputs: Arc::new(VecDeque::from(outputs)),
            mailbox: self.sender.clone(),
            terms: TERMS,
            shaping,
            may_escalate: false,
            landings: Landings::default(),
            written: Mutex::new(Written::new(&redactor, shaping, live)),
            warnings: Mutex::default(),
            files: Mutex::default(),
            command: Mutex::default(),
            redactor,
        }
    }

    /// The outcome of a call that wrote these pieces.
    fn wrote(&self, pieces: &[&[u8]]) -> (ToolOutcome, Option<Output>) {
        let output = self.output(Vec::new());
        pieces
            .iter()
            .for_each(|piece| output.write_output(piece).unwrap());
        kept(output.finish(
            Ok(ToolOutput {
                summary: "ok".into(),
                ..Default::default()
            }),
            false,
        ))
    }

    fn whole(&self, output: &Output) -> Vec<u8> {
        self.opened
            .blobs
            .view()
            .read(&output.stored.digest, 1 << 30)
            .unwrap()
    }
}

fn kept(ended: EndedCall) -> (ToolOutcome, Option<Output>) {
    let EndedCall::Kept(kept) = ended else {
        panic!("it was held")
    };
    let kept = *kept;
    (kept.outcome, kept.output)
}

/// What is left of a cut text: its head, the number in the mark, its tail.
fn parts(text: &str) -> (String, u64, String) {
    let (head, rest) = text.split_once("[… ").unwrap();
    let (mark, tail) = rest.split_once("\")]\n").unwrap();
    (
        head.to_owned(),
        mark.split(' ').next().unwrap().parse().unwrap(),
        tail.to_owned(),
    )
}

#[test]
fn output_is_inline_up_to_the_bound_and_cut_above_it() {
    let scene = Scene::new();
    let line = |n: usize| format!("{n:>31}\n");
    let lines: String = (0..INLINE / 32).map(line).collect();
    let long: String = (0..1000).map(|n| format!("{n:>99}\n")).collect();
    let multibyte = "é".repeat(INLINE);
    let split = format!("a{multibyte}");
    let cases: [(&str, &[u8], bool); 9] = [
        ("empty", b"", false),
        ("at the bound", lines.as_bytes(), false),
        ("one byte over", &[lines.as_bytes(), b"x"].concat(), true),
        ("one line at the bound", &[b'x'; INLINE], false),
        ("one line over it", &[b'x'; INLINE + 1], true),
        ("long lines", long.as_bytes(), true),
        ("two-byte characters", multibyte.as_bytes(), true),
        ("the same, cut in the middle", split.as_bytes(), true),
        ("no text at all", &[0xff_u8; INLINE + 100], true),
    ];
    for (what, bytes, cut) in cases {
        // In one piece, in two around the bound, and in many.
        let halves = [
            &bytes[..bytes.len().min(INLINE)],
            &bytes[bytes.len().min(INLINE)..],
        ];
        let many: Vec<&[u8]> = bytes.chunks(1000).collect();
        let mut all = [&[bytes][..], &halves, &many].map(|pieces| scene.wrote(pieces));
        assert!(
            all.windows(2).all(|two| two[0].0 == two[1].0),
            "{what}: the pieces show"
        );
        let (outcome, output) =
            std::mem::replace(&mut all[0], (ToolOutcome::of(ResultStatus::Ok, ""), None));
        assert_eq!(
            (output.is_some(), outcome.status),
            (cut, ResultStatus::Ok),
            "{what}"
        );
        let Some(output) = output else {
            assert_eq!(outcome.content.as_bytes(), bytes, "{what}");
            continue;
        };
        assert_eq!(scene.whole(&output), bytes, "{what}");
        assert!(outcome.content.contains(&output.handle), "{what}");
        let (head, missing, tail) = parts(&outcome.content);
        assert!(
            head.lines().count() <= HEAD_LINES && tail.lines().count() > 0,
            "{what}"
        );
        if let Ok(text) = std::str::from_utf8(bytes) {
            let shown = head.strip_suffix('\n').unwrap_or(&head);
            let end = tail.as_str();
            assert!(
                text.starts_with(shown) && text.ends_with(end),
                "{what}: {shown:.20} {end:.20}"
            );
            assert!(
                shown.len() <= HEAD_BYTES && end.len() <= TAIL_BYTES,
                "{what}"
            );
            let left = bytes.len() - shown.len() - end.len();
            assert!(
                missing.abs_diff(left as u64) <= 1,
                "{what}: {missing} of {left}"
            );
        }
    }
}

// copilot-cli#3191, cline#13346: each state of a progress bar was paid for, and colours were read as text. The output
// stays as it came; all that a model reads of it, page by page too, is what a terminal shows in the end.
#[test]
fn an_output_is_read_as_it_is_shown_and_kept_as_it_came() {
    let scene = Scene::new();
    let bar = |states: usize| {
        (0..states)
            .map(|n| format!("\r{n:>7} of {states}"))
            .collect::<String>()
    };
    let long = bar(4_000);
    let lines: String = (0..4_000)
        .map(|n| format!("\u{1b}[32mline\u{1b}[m {n}\r\n"))
        .collect();
    let up: String = (0..3_000)
        .map(|n| format!("a {n}\nb {n}\n\u{1b}[2A"))
        .collect();
    let table: [(&str, &str, &str, &str); 6] = [
        ("colours", "\u{1b}[31mred\u{1b}[m\n", "red\n", "red"),
        ("a bar", " 1%\r 2%\r100%\n", "100%\n", "100%"),
        (
            "a long bar",
            &format!("{long}\nend\u{1b}["),
            "   3999 of 4000\nend",
            "   3999 of 4000\nend",
        ),
        (
            "two lines",
            &format!("{up}\u{1b}[2Bend"),
            "a 2999\nb 2999\nend",
            "a 2999\nb 2999\nend",
        ),
        (
            "many lines",
            &lines,
            "line 0\nline 1\n",
            "line 0\nline 1\nline 2",
        ),
        ("a note", "\u{1b}[31mred\u{1b}]0;title", "red", "red"),
    ];
    for (what, written, first, page) in table {
        for size in [7, 1000, usize::MAX] {
            let pieces: Vec<&[u8]> = written.as_bytes().chunks(size.min(written.len())).collect();
            let (outcome, output) = scene.wrote(&pieces);
            assert!(
                outcome.content.starts_with(first),
                "{what}: {:.80}",
                outcome.content
            );
            assert!(!outcome.content.contains(['\u{1b}', '\r']), "{what}");
            assert_eq!(
                outcome.content.contains("left out"),
                what == "many lines",
                "{what}"
            );
            let output = output.unwrap();
            assert_eq!(scene.whole(&output), written.as_bytes(), "{what}");
            let handle = output.handle.clone();
            let excerpt = scene
                .output(vec![output])
                .read_output(&handle, LineRange::From { from: 1, lines: 3 })
                .unwrap();
            assert_eq!(excerpt.text, page, "{what}");
        }
    }
    // The tool's own words are not the program's: they begin a line, and nothing hides them.
    let said = |written: &str| {
        let output = scene.output(Vec::new());
        output.write_output(written.as_bytes()).unwrap();
        let result = ToolOutput {
            summary: "ok".into(),
            content: "[a note]\r\n".into(),
            data: None,
        };
        kept(output.finish(Ok(result), false)).0.content
    };
    assert_eq!(said("\u{1b}[1mx\u{1b}Pand so on\n"), "x\n[a note]\r\n");
    assert_eq!(said("one\ntwo\n\u{1b}[2A"), "one\ntwo\n[a note]\r\n");
    assert!(said(&format!("{lines}\u{1b}]0;")).ends_with("line 3999\n[a note]\r\n"));
}

/// Codes inside of a secret do not bring it to the model.
#[test]
#[allow(clippy::disallowed_methods, reason = "a secret of a test")]
fn a_secret_that_is_put_together_is_replaced() {
    let scene = Scene::new();
    let key = Secret::new(&ambient::claim(), "KEY", "k3y-of-a-provider".to_owned());
    let redactor = Redactor::new([&key]).unwrap();
    let many = "line\n".repeat(INLINE / 4);
    for before in ["", &many] {
        let output = scene.watched(Vec::new(), redactor.clone(), Shaping::None, None);
        output
            .write_output(
                format!("{before}k3y-of-\u{1b}[1ma-provider\nk3y-of-a-prX\u{8}ovider\n").as_bytes(),
            )
            .unwrap();
        let (outcome, output) = kept(output.finish(Ok(ToolOutput::default()), false));
        let shown = "‹secret KEY›\n‹secret KEY›";
        assert!(
            outcome.content.ends_with(&format!("{shown}\n")),
            "{before:.9}"
        );
        let output = output.unwrap();
        let reader = scene.watched(vec![output.clone()], redactor.clone(), Shaping::None, None);
        let page = reader
            .read_output(&output.handle, LineRange::Tail { lines: 2 })
            .unwrap();
        assert_eq!(page.text, shown);
    }
}

/// However much is written, no more than some kilobytes are held, and head, tail and total are right.
#[test]
fn a_gigabyte_is_held_in_kilobytes() {
    let scene = Scene::new();
    let output = scene.output(Vec::new());
    // A thousand megabytes in a debug build would take minutes; the bound does not depend on the number.
    let block = format!("{:>1023}\n", "x").repeat(1 << 10);
    for written in 0..70_u64 {
        output.write_output(block.as_bytes()).unwrap();
        let super::Sink::Large { shown, .. } = &output.lock().sink else {
            panic!("{written}")
        };
        let held = shown.head.capacity() + shown.tail.capacity();
        assert!(held < 4 << 20, "{held} bytes held after {written} MiB");
    }
    let (outcome, output) = kept(output.finish(Ok(ToolOutput::default()), false));
    let output = output.unwrap();
    assert_eq!(output.stored.total(), 70 << 20);
    assert!(
        output.stored.gap.is_some() && output.stored.bytes == 64 << 20,
        "{:?}",
        output.stored
    );
    assert!(
        outcome.content.contains(&format!("of {} bytes", 70 << 20)),
        "{:.80}",
        outcome.content
    );
}

#[test]
fn results_are_bounded_and_their_kind_decides_the_status() {
    let scene = Scene::new();
    let long = "s".repeat(ToolOutcome::SUMMARY_MAX + 10);
    let output = |summary: &str, content: &str| {
        Ok(ToolOutput {
            summary: summary.into(),
            content: content.into(),
            data: None,
        })
    };
    let error = |kind, text: &str| {
        Err(ToolError {
            kind,
            message: text.to_owned(),
            content: "so far".to_owned(),
        })
    };
    let rest = "s".repeat(10);
    let cases = [
        (
            output("ok", "body"),
            false,
            ResultStatus::Ok,
            "ok",
            "body".to_owned(),
        ),
        (
            output("two\nlines", "body"),
            false,
            ResultStatus::Ok,
            "two",
            "lines\nbody".to_owned(),
        ),
        (
            output(&long, ""),
            false,
            ResultStatus::Ok,
            &long[..ToolOutcome::SUMMARY_MAX],
            format!("{rest}\n"),
        ),
        (
            error(ErrorKind::FixInput, "no"),
            false,
            ResultStatus::Error,
            "no",
            "so far".to_owned(),
        ),
        (
            error(ErrorKind::FixInput, "no"),
            true,
            ResultStatus::Error,
            "no",
            "so far".to_owned(),
        ),
        (
            error(ErrorKind::Cancelled, "cut"),
            false,
            ResultStatus::Error,
            "cut",
            "so far".to_owned(),
        ),
        (
            error(ErrorKind::Cancelled, "cut"),
            true,
            ResultStatus::Cancelled,
            "cut",
            "so far".to_owned(),
        ),
    ];
    for (result, cancelled, status, summary, content) in cases {
        let what = format!("{result:?} {cancelled}");
        let (outcome, _) = kept(scene.output(Vec::new()).finish(result, cancelled));
        assert_eq!(
            outcome,
            ToolOutcome {
                status,
                summary: summary.to_owned(),
                content,
                attachments: Vec::new(),
            },
            "{what}"
        );
    }
}

#[test]
fn what_comes_behind_the_end_is_refused() {
    let scene = Scene::new();
    let output = scene.output(Vec::new());
    output.finish(Ok(ToolOutput::default()), false);
    assert_eq!(
        output.write_output(b"late").unwrap_err().kind,
        ErrorKind::Cancelled
    );
    // A session that is closed takes no more blobs; the result says what was lost.
    let output = scene.output(Vec::new());
    output.write_output(&[b'x'; INLINE]).unwrap();
    scene.opened.journal.close();
    assert_eq!(
        output.write_output(b"x").unwrap_err().kind,
        ErrorKind::Unavailable
    );
    let (outcome, output) = kept(output.finish(
        Ok(ToolOutput {
            summary: "ok".into(),
            content: "more".into(),
            data: None,
        }),
        false,
    ));
    assert!(
        outcome.status == ResultStatus::Error && outcome.summary.contains("its output was lost"),
        "{outcome:?}"
    );
    assert_eq!((outcome.content.as_str(), output), ("", None));
}

#[test]
fn windows_of_an_earlier_output_are_lines_by_number() {
    let scene = Scene::new();
    let text: String = (1..=5000).map(|n| format!("line {n}\n")).collect();
    let (_, output) = scene.wrote(&[text.as_bytes()]);
    let handle = output.as_ref().unwrap().handle.clone();
    let output = scene.output(output.into_iter().collect());
    let from = |from, lines| LineRange::From { from, lines };
    let cases = [
        (from(1, 2), "line 1\nline 2", 1, 2),
        (from(0, 1), "line 1", 1, 1),
        (from(4999, 10), "line 4999\nline 5000", 4999, 5000),
        (from(6000, 10), "", 6000, 5999),
        (LineRange::Tail { lines: 1 }, "line 5000", 5000, 5000),
        (from(7, 0), "", 7, 6),
    ];
    for (window, text, first, last) in cases {
        let shown = output.read_output(&handle, window).unwrap();
        assert_eq!(
            (shown.text.as_str(), shown.first, shown.last, shown.total),
            (text, first, last, 5000),
            "{window:?}"
        );
    }
    let all = output.read_output(&handle, from(1, u64::MAX)).unwrap();
    assert!(
        all.text.len() <= INLINE && all.text.len() > INLINE - 20 && all.last < 5000,
        "{}",
        all.text.len()
    );
    assert!(all.text.ends_with(&format!("\nline {}", all.last)));
    let end = output
        .read_output(&handle, LineRange::Tail { lines: u64::MAX })
        .unwrap();
    assert!(
        end.text.len() <= INLINE
            && end.text.starts_with(&format!("line {}\n", end.first))
            && end.last == 5000
    );
    // Lines that are nothing but their breaks count too.
    let (_, output) = scene.wrote(&[&[b'\n'; 3 * INLINE]]);
    let handle = output.as_ref().unwrap().handle.clone();
    let output = scene.output(output.into_iter().collect());
    for window in [from(1, u64::MAX), LineRange::Tail { lines: u64::MAX }] {
        let shown = output.read_output(&handle, window).unwrap();
        assert!(
            shown.text.len() <= INLINE && shown.total == 3 * INLINE as u64,
            "{window:?}: {}",
            shown.text.len()
        );
    }
    let unknown = output
        .read_output("o-000000000000", from(1, 1))
        .unwrap_err();
    assert!(
        unknown.kind == ErrorKind::FixInput && unknown.message.contains(&handle),
        "{unknown}"
    );
    let none = scene
        .output(Vec::new())
        .read_output("o-000000000000", from(1, 1))
        .unwrap_err();
    assert!(
        none.message.contains("no output has been stored yet"),
        "{none}"
    );
}

fn change(path: &str) -> FileChange {
    FileChange {
        path: path.into(),
        before: Some(b"old".to_vec()),
        mode: Some(0o600),
        after: Some("00".repeat(32)),
        made: None,
    }
}

/// The call goes on only behind the answer, and the answer says whether it may.
#[test]
fn leave_to_change_a_file_comes_with_the_record_or_not_at_all() {
    let mut scene = Scene::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    type Answer = Option<Result<(), String>>;
    let cases: [(Answer, Result<(), ErrorKind>); 3] = [
        (Some(Ok(())), Ok(())),
        (Some(Err("full".to_owned())), Err(ErrorKind::Unavailable)),
        (None, Err(ErrorKind::Cancelled)),
    ];
    for (answer, expected) in cases {
        let output = scene.output(Vec::new());
        let got = runtime.block_on(async {
            let mut leave = Box::pin(output.file_changing(change("/p/a")));
            let asked = tokio::select! {
                biased;
                early = &mut leave => panic!("it went on before the answer: {early:?}"),
                event = scene.mailbox.next() => event,
            };
            let Wakeup::Request(DriverRequest::AnnounceChange {
                call: asking,
                change,
                reply,
            }) = asked
            else {
                panic!("no change")
            };
            let Record::FileChanged(change) = *change else {
                panic!("not of a file")
            };
            let FileChanged {
                call,
                path,
                before,
                mode,
                after,
                made: _,
            } = change;
            assert_eq!(
                (call, path.as_str(), mode),
                (CallId::new(1), "/p/a", Some(0o600))
            );
            assert_eq!(Some(asking), call);
            assert_eq!(after, Some("00".repeat(32)));
            // The before-image is durable before the record that names it.
            assert_eq!(
                scene.opened.blobs.view().verify(&before.unwrap().digest),
                Ok(3)
            );
            match answer {
                Some(answer) => reply.send(answer).unwrap(),
                None => drop(reply),
            }
            leave.await
        });
        assert_eq!(got.map(drop).map_err(|error| error.kind), expected);
    }
    let output = scene.output(Vec::new());
    scene.mailbox.close();
    let refused = runtime
        .block_on(output.file_changing(change("/p/a")))
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Cancelled);
    let odd = std::path::PathBuf::from(
        <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"/p/\xff"),
    );
    let odd = runtime
        .block_on(output.file_changing(FileChange {
            path: odd,
            ..change("")
        }))
        .unwrap_err();
    assert!(
        odd.kind == ErrorKind::FixInput && odd.message.contains("UTF-8"),
        "{odd}"
    );
}

/// What a person who watches sees of these pieces, until the tool ends and after it.
fn watched(shaping: Shaping, pieces: &[&[u8]]) -> (String, usize) {
    let scene = Scene::new();
    let outputs = LiveOutputs::new();
    let secret = Secret::new(&ambient::claim(), "KEY", "sk-0123456789".to_owned());
    let live = outputs.begin(CallId::new(1).unwrap(), CallOrigin::default());
    let output = scene.watched(
        Vec::new(),
        Redactor::new(&[secret]).unwrap(),
        shaping,
        Some(live),
    );
    let mut follower = outputs.follow();
    let mut seen = String::new();
    for piece in pieces {
        output.write_output(piece).unwrap();
        follower
            .take(0)
            .iter()
            .for_each(|part| seen.push_str(&part.text));
    }
    drop(output.finish(
        Ok(ToolOutput {
            summary: "ok".into(),
            content: "the content".into(),
            data: None,
        }),
        false,
    ));
    (seen, outputs.follow().take(0).len())
}

/// Wherever a piece ends, no part of a secret is seen, and what cannot begin one is seen at once.
#[test]
fn a_person_who_watches_sees_no_part_of_a_secret() {
    let text = b"a sk-0123456789 sk-01 z\n";
    for cut in 0..text.len() {
        let (first, second) = text.split_at(cut);
        let (seen, after) = watched(Shaping::None, &[first, second]);
        assert_eq!(
            (seen.as_str(), after),
            ("a \u{2039}secret KEY\u{203a} sk-01 z\n", 0),
            "cut at {cut}"
        );
    }
    assert_eq!(
        watched(Shaping::None, &[b"listening on 80\n"]).0,
        "listening on 80\n"
    );
    assert_eq!(watched(Shaping::Whole, &[b"it is sk-0123"]).0, "it is ");
}

#[test]
fn nothing_is_seen_of_an_output_that_may_be_withheld() {
    assert_eq!(
        watched(Shaping::MayWithhold, &[b"canary\n", b"more\n"]),
        (String::new(), 0)
    );
}
