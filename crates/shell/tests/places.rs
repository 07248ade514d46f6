//! Where the programs of a command line stand in its text.

#![allow(clippy::unwrap_used, reason = "tests")]

use shell::parse;

/// The text at the place of each program; `?` where the place is not certain, `-` where there is no program.
fn placed(text: &str) -> String {
    let place = |part: &shell::Part| match part
        .program
        .as_ref()
        .map(|program| (program.place(), program.raw()))
    {
        Some((Some(place), raw)) => {
            // A place is that of the word, or there is none.
            assert_eq!(&text[place.clone()], raw, "{text}");
            format!("{}:{raw}", place.start)
        }
        Some((None, _)) => "?".to_owned(),
        None => "-".to_owned(),
    };
    parse(text)
        .parts
        .iter()
        .map(place)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn programs_stand_where_the_text_has_them() {
    let cases = [
        ("ls", "0:ls"),
        ("  ls -l; é && rm x | wc", "2:ls 9:é 15:rm 22:wc"),
        ("if a; then b; else c; fi", "3:a 11:b 19:c"),
        ("for x in 1; do a; done", "15:a"),
        ("f() { a; }; f", "6:a 12:f"),
        ("A=1 nice -n 5 rm x", "14:rm"),
        ("sudo -u x rm y", "0:sudo 10:rm"),
        ("'r'\"m\" x", "0:'r'\"m\""),
        ("a > f 2>&1 && b", "0:a 14:b"),
        ("> f", "-"),
        ("(a; b) & { c; }", "1:a 4:b 11:c"),
        ("case x in a) b;; esac", "13:b"),
        ("a\\\n  b; c", "0:a 8:c"),
    ];
    for (text, expected) in cases {
        assert_eq!(placed(text), expected, "{text}");
    }
}

#[test]
fn programs_in_substitutions_stand_where_the_text_has_them() {
    let cases = [
        ("echo \"$(ls)\" x", "8:ls 0:echo"),
        ("a é$(b | c; d)$(e)", "6:b 10:c 13:d 17:e 0:a"),
        ("a \"$x $(b) ${y} $(c)\"", "8:b 18:c 0:a"),
        ("a `b`; c", "3:b 0:a 7:c"),
        ("a <(b) >(c)", "4:b 9:c 0:a"),
        ("X=$(a) b", "4:a 7:b"),
        ("a $(b $(c $(d $(e))))", "16:e 12:d 8:c 4:b 0:a"),
        // It is not certain where the first one ends.
        ("a \"$(b # )) \n)\" $(c)", "5:b 18:c 0:a"),
        ("a \"$(b # )) \n)$(c)\"", "5:b ? 0:a"),
        ("a \"${x:-y}$(b)\"", "? 0:a"),
    ];
    for (text, expected) in cases {
        assert_eq!(placed(text), expected, "{text}");
    }
}
