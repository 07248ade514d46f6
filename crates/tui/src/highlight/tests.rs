//! Every language, what stays as it is, and that no text and no width changes.

use super::languages::LANGUAGES;
use super::{MAX_BYTES, MAX_LINES, highlight};
use crate::line::Line;
use crate::markdown::markdown;
use crate::style::{Theme, Tone};
use proptest::prelude::*;

fn plain(code: &str) -> Vec<Line> {
    code.split('\n')
        .map(|line| Line::of_output(line, Tone::Code))
        .collect()
}

/// The signs of all languages, and what is difficult for widths and terminals.
fn code() -> impl Strategy<Value = String> {
    let sign = prop_oneof![
        Just("\""),
        Just("'"),
        Just("`"),
        Just("\"\"\""),
        Just("'''"),
        Just("\\"),
        Just("r#\"")
    ];
    let comment = prop_oneof![
        Just("//"),
        Just("/*"),
        Just("*/"),
        Just("#"),
        Just("--"),
        Just("<!--"),
        Just("-->")
    ];
    let piece = prop_oneof![
        3 => sign.prop_map(str::to_owned),
        2 => comment.prop_map(str::to_owned),
        3 => "(fn|if|null|select|<div|@a|1|0x1F|1\\.5|key *[:=]|[a-z_]{1,6})",
        3 => "[ \n\t\r.$:=-]",
        2 => "(日本|👩\u{200d}👧|🇩🇪|\u{301}|\u{fe0f}|\u{20e3}|1\u{fe0f}\u{20e3}|\u{200d}|क्षि|مرحبا|\u{1b}\\[2J|\u{202e})",
        1 => any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_and_widths_stay_and_no_line_depends_on_a_later_one(code in code(), cut in 0_usize..12, width in 1_usize..40) {
        let lines = plain(&code);
        let cut = cut.min(lines.len());
        for language in LANGUAGES {
            let shown = highlight(language.tags[0], lines.clone());
            prop_assert_eq!(shown.len(), lines.len());
            for (shown, line) in shown.iter().zip(&lines) {
                prop_assert_eq!(shown.text(), line.text());
                prop_assert_eq!(shown.width(), line.width());
                let none = Line::default();
                let chopped = |line: &Line| line.chop(width, &none, &none).iter().map(Line::text).collect::<Vec<_>>();
                prop_assert_eq!(chopped(shown), chopped(line));
            }
            prop_assert_eq!(&highlight(language.tags[0], lines[..cut].to_vec()), &shown[..cut]);
        }
    }
}

/// A code with its pieces in brackets behind a letter for their meaning.
fn marked(tag: &str, code: &str) -> String {
    let letter = |sequence: &str| match sequence {
        "35" => "k",
        "32" => "q",
        "2" => "c",
        "36" => "n",
        other => panic!("{other}"),
    };
    let shown = highlight(tag, plain(code))
        .iter()
        .map(|line| line.ansi(Theme::Colour))
        .collect::<Vec<_>>()
        .join("\n");
    let mut parts = shown.split("\u{1b}[");
    let mut marked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('m').unwrap() {
            ("0", text) => marked.push_str(&format!("⟩{text}")),
            (sequence, text) => marked.push_str(&format!("{}⟨{text}", letter(sequence))),
        }
    }
    marked
}

#[test]
fn languages_have_their_comments_texts_numbers_and_words() {
    let table = [
        (
            "rust",
            "let x: &'a str = 'b'; // it's\nr#\"a\n\"b\"# x.type",
            "k⟨let⟩ x: &'a str = q⟨'b'⟩; c⟨// it's⟩\nq⟨r#\"a⟩\nq⟨\"b\"#⟩ x.type",
        ),
        (
            "rust,ignore",
            "if '\\'' == c { 1..2.5 } /* a\nfn */ fn r",
            "k⟨if⟩ q⟨'\\''⟩ == c { n⟨1⟩..n⟨2.5⟩ } c⟨/* a⟩\nc⟨fn */⟩ k⟨fn⟩ r",
        ),
        (
            "Python",
            "@cache\ndef f(x):  # don't\n    \"\"\"a\n    if \"\"\"\n    return f'\\'{x}' + 0x1F",
            "k⟨@cache⟩\nk⟨def⟩ f(x):  c⟨# don't⟩\n    q⟨\"\"\"a⟩\nq⟨    if \"\"\"⟩\n    k⟨return⟩ fq⟨'\\'{x}'⟩ + n⟨0x1F⟩",
        ),
        (
            "sh",
            "for f in $in --if a#b; do # x\n  echo 'a\n b' \"$f\\\"\" 2>&1\ndone",
            "k⟨for⟩ f k⟨in⟩ $in --if a#b; k⟨do⟩ c⟨# x⟩\n  echo q⟨'a⟩\nq⟨ b'⟩ q⟨\"$f\\\"\"⟩ n⟨2⟩>&n⟨1⟩\nk⟨done⟩",
        ),
        (
            "ts",
            "const a = `x\n${b}`; // c\nreturn 'it\\'s' /* d */ + $if",
            "k⟨const⟩ a = q⟨`x⟩\nq⟨${b}`⟩; c⟨// c⟩\nk⟨return⟩ q⟨'it\\'s'⟩ c⟨/* d */⟩ + $if",
        ),
        (
            "go",
            "func f() { return `a\\` + \"b\\n\" } // c\nr := 'x'",
            "k⟨func⟩ f() { k⟨return⟩ q⟨`a\\`⟩ + q⟨\"b\\n\"⟩ } c⟨// c⟩\nr := q⟨'x'⟩",
        ),
        (
            "c++",
            "#include <a.h>\nint x = 0xFFu; /* a\n b */ char c = '\\n';",
            "k⟨#include⟩ <a.h>\nk⟨int⟩ x = n⟨0xFFu⟩; c⟨/* a⟩\nc⟨ b */⟩ k⟨char⟩ c = q⟨'\\n'⟩;",
        ),
        (
            "java",
            "@Override\npublic void f() { s = \"\"\"\n  if\n  \"\"\"; } // a",
            "k⟨@Override⟩\nk⟨public⟩ k⟨void⟩ f() { s = q⟨\"\"\"⟩\nq⟨  if⟩\nq⟨  \"\"\"⟩; } c⟨// a⟩",
        ),
        (
            "json",
            "{\"a\": [1.5, true, \"b\"], \"c\":null}",
            "{k⟨\"a\"⟩: [n⟨1.5⟩, k⟨true⟩, q⟨\"b\"⟩], k⟨\"c\"⟩:k⟨null⟩}",
        ),
        (
            "toml",
            "[a.b] # c\nname = \"x\" # y\n\"z\" = 'C:\\'\nn = 1_000",
            "[a.b] c⟨# c⟩\nk⟨name⟩ = q⟨\"x\"⟩ c⟨# y⟩\nk⟨\"z\"⟩ = q⟨'C:\\'⟩\nk⟨n⟩ = n⟨1_000⟩",
        ),
        (
            "yaml",
            "a-b: it's true # c\nurl: http://x#y\n'q': \"r\" # s",
            "k⟨a-b⟩: it's k⟨true⟩ c⟨# c⟩\nk⟨url⟩: http://x#y\nk⟨'q'⟩: q⟨\"r\"⟩ c⟨# s⟩",
        ),
        (
            "sql",
            "SELECT a, 'it''s' FROM t -- x\nwhere n = 10 /* y */;",
            "k⟨SELECT⟩ a, q⟨'it''s'⟩ k⟨FROM⟩ t c⟨-- x⟩\nk⟨where⟩ n = n⟨10⟩ c⟨/* y */⟩;",
        ),
        (
            "html",
            "<!-- a\nb --><a href=\"x\">don't < 5</a>",
            "c⟨<!-- a⟩\nc⟨b -->⟩k⟨<a⟩ href=q⟨\"x\"⟩>don't < n⟨5⟩k⟨</a⟩>",
        ),
        (
            "css",
            "@media print { /* a */\n  margin: 0 -1px;\n  content: 'x' }",
            "k⟨@media⟩ print { c⟨/* a */⟩\n  k⟨margin⟩: n⟨0⟩ -n⟨1px⟩;\n  k⟨content⟩: q⟨'x'⟩ }",
        ),
        ("rust", "x(\"open\nfn", "x(q⟨\"open⟩\nq⟨fn⟩"),
        ("js", "'open\nif", "q⟨'open⟩\nk⟨if⟩"),
    ];
    for (tag, code, expected) in table {
        assert_eq!(marked(tag, code), expected, "{tag}");
    }
}

#[test]
fn what_is_not_known_or_large_stays_as_it_is() {
    let line = "fn f() {}\n";
    let table = [
        ("", line.to_owned(), false),
        ("brainfuck", line.to_owned(), false),
        ("rust", line.to_owned(), true),
        ("rust", line.repeat(MAX_LINES - 1), true),
        ("rust", line.repeat(MAX_LINES), false),
        ("rust", format!("fn{}", " ".repeat(MAX_BYTES - 2)), true),
        ("rust", format!("fn{}", " ".repeat(MAX_BYTES - 1)), false),
    ];
    for (tag, code, is_highlighted) in table {
        let lines = plain(&code);
        assert_eq!(
            highlight(tag, lines.clone()) != lines,
            is_highlighted,
            "{tag} {}",
            code.len()
        );
    }
}

#[test]
fn a_block_is_highlighted_while_it_comes_and_has_no_escapes_without_colours() {
    let coloured = |source: &str| {
        markdown(source, 40, Theme::Colour)
            .iter()
            .map(|line| line.ansi(Theme::Colour))
            .collect()
    };
    let keyword: String = coloured("- a\n\n  ```rust\n  fn");
    assert!(keyword.ends_with("\u{1b}[35mfn\u{1b}[0m"), "{keyword:?}");
    let plain: String = coloured("    fn");
    assert!(plain.ends_with("\u{1b}[36mfn\u{1b}[0m"), "{plain:?}");
    for line in markdown("```rust\nfn f() -> u8 { 1 } // \"a\"\n", 40, Theme::Plain) {
        assert_eq!(line.ansi(Theme::Plain), "  fn f() -> u8 { 1 } // \"a\"");
    }
}
