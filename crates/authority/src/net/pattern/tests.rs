//! What patterns of hosts mean, cover and refuse.

use super::*;

fn pattern(text: &str) -> HostPattern {
    text.parse().unwrap()
}

#[test]
fn matching() {
    let table = [
        ("docs.example.org", "docs.example.org", 443, true),
        ("Docs.Example.org.", "docs.example.org", 80, true),
        ("docs.example.org", "DOCS.example.org.", 443, true),
        ("docs.example.org", "docs.example.org", 22, false),
        ("docs.example.org", "x.docs.example.org", 443, false),
        ("docs.example.org", "docs.example.org.evil.net", 443, false),
        ("*.example.org", "a.example.org", 443, true),
        ("*.example.org", "a.b.example.org", 443, true),
        ("*.example.org", "example.org", 443, false),
        ("*.example.org", "badexample.org", 443, false),
        ("*.example.org", ".example.org", 443, false),
        ("*", "anything.net", 80, true),
        ("*", "anything.net", 8080, false),
        ("*:8080", "anything.net", 8080, true),
        ("x.org:*", "x.org", 22, true),
        ("x.org:*", "y.org", 22, false),
        ("x.org:8443", "x.org", 443, false),
        ("[2606:4700::1]:8443", "2606:4700::1", 8443, true),
        ("2606:4700::1", "[2606:4700::1]", 443, true),
    ];
    for (text, host, port, want) in table {
        assert_eq!(
            pattern(text).matches(host, port),
            want,
            "{text} {host}:{port}"
        );
        assert_eq!(pattern(&pattern(text).to_string()), pattern(text), "{text}");
    }
}

#[test]
fn covering() {
    let table = [
        ("*", "*", true),
        ("*", "*.example.org", true),
        ("*", "x.org:443", true),
        ("*", "x.org:22", false),
        ("*:22", "x.org", false),
        ("*:*", "x.org", true),
        ("*:*", "x.org:22", true),
        ("x.org", "x.org:*", false),
        ("*.example.org", "*", false),
        ("*.example.org", "*.docs.example.org", true),
        ("*.example.org", "*.example.org", true),
        ("*.docs.example.org", "*.example.org", false),
        ("*.example.org", "example.org", false),
        ("*.example.org", "a.example.org", true),
        ("a.org", "a.org", true),
        ("a.org", "*.a.org", false),
        ("a.org", "b.org", false),
    ];
    for (own, other, want) in table {
        assert_eq!(
            pattern(own).covers(&pattern(other)),
            want,
            "{own} covers {other}"
        );
    }
}

#[test]
fn what_is_no_pattern() {
    for text in [
        "",
        "*x.org",
        "a.*.org",
        "*..",
        "**",
        "https://x.org",
        "x.org/a",
        "x.org:0",
        "x.org:",
        "x y",
        "é.org",
        "a..b",
        "x@y",
        "\u{1b}[31m",
    ] {
        let error = text.parse::<HostPattern>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FixInput, "{text:?}");
        assert!(!error.to_string().contains('\u{1b}'));
    }
}
