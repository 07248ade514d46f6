//! Whatever bytes come, the readers of foreign bytes neither panic nor contradict themselves.
//!
//! A target is a function that takes bytes and asserts. `tests/smoke.rs` feeds each with its seeds and with changes of
//! them, by a fixed seed, on any toolchain; `coverage/` has the same functions for `cargo fuzz`. See the README.

mod arguments;
mod commands;
mod journal;
mod messages;
pub mod mutate;
mod permissions;
mod streams;

/// One reader under attack.
pub struct Target {
    /// As `cargo fuzz run` and `YOI_FUZZ_TARGET` know it.
    pub name: &'static str,
    /// Panics where a promise is broken.
    pub run: fn(&[u8]),
    /// Where its seeds are: directories, from this crate.
    pub seeds: &'static [&'static str],
    /// The names of its seeds end in one of these.
    pub ends: &'static [&'static str],
    /// Words worth putting into the middle of a seed.
    pub words: &'static [&'static str],
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "journal",
        run: journal::run,
        seeds: &[
            "../session-store/tests/fixtures/format-1/log",
            "seeds/journal",
        ],
        ends: &[".jsonl"],
        words: &[
            "\n",
            "{\"c\":\"",
            "\"b\":    0",
            "\"q\":",
            "\"k\":\"seal\"",
            "\"k\":\"gap\"",
            "\0\0\0\0",
            "  999999",
        ],
    },
    Target {
        name: "anthropic",
        run: streams::anthropic,
        seeds: &["../provider/tests/fixtures"],
        ends: &[".sse"],
        words: STREAM_WORDS,
    },
    Target {
        name: "openai",
        run: streams::openai,
        seeds: &["../provider/tests/fixtures"],
        ends: &[".sse", "_whole.json"],
        words: STREAM_WORDS,
    },
    Target {
        name: "responses",
        run: streams::responses,
        seeds: &["../provider/tests/fixtures"],
        ends: &[".sse", "_whole.json"],
        words: STREAM_WORDS,
    },
    Target {
        name: "gemini",
        run: streams::gemini,
        seeds: &["../provider/tests/fixtures"],
        ends: &[".sse"],
        words: STREAM_WORDS,
    },
    Target {
        name: "arguments",
        run: arguments::run,
        seeds: &["seeds/arguments"],
        ends: &[".json"],
        words: &[
            "{",
            "}",
            "[",
            "]",
            "\"path\":",
            "null",
            "1e999",
            "-0",
            "\\ud83c",
            "\"\\u0000\"",
            ",\"path\":1",
        ],
    },
    Target {
        name: "config",
        run: |input| yoi::fuzzing::narrows(&String::from_utf8_lossy(input)),
        seeds: &["seeds/config"],
        ends: &[".toml"],
        words: &[
            "enabled = true\n",
            "required = true\n",
            "[features.\"builtin:web\"]\n",
            "grant = { network = [\"a.example\"] }\n",
            "mode = \"off\"\n",
            "[sandbox]\n",
            "decision = \"allow\"\n",
            "[[permissions.rules]]\n",
            "max_steps = 9999\n",
            "nan",
            "-1",
            "[limits]\n",
            "model = \"scripted:x\"\n",
            "model = \"offline\"\n",
            "\"\"\"",
            "[providers.local]\n",
            "tool = \"Bash\"\n",
        ],
    },
    Target {
        name: "commands",
        run: commands::run,
        seeds: &["seeds/commands"],
        ends: &[".sh"],
        words: &[
            "rm -rf /",
            "$(",
            ")",
            "`",
            "'",
            "\"",
            "${",
            "}",
            "<(",
            "<<E\n",
            "\nE\n",
            "&&",
            ";",
            "|",
            "\\\n",
            "((",
            "))",
            "[[",
            "]]",
            "case x in x)",
            ";; esac",
            "if ",
            "then ",
            "fi",
            "for i in ",
            "do ",
            "done",
            "eval ",
            "sudo ",
            "bash -c ",
            "\u{202e}",
            "#",
            "=",
        ],
    },
    Target {
        name: "protocol",
        run: messages::run,
        seeds: &["seeds/protocol"],
        ends: &[".jsonl"],
        words: &[
            "\n",
            "\"id\":null,",
            "\"id\":18446744073709551615,",
            "\"jsonrpc\":\"2.0\",",
            "\"method\":\"record\",",
            "\"params\":{}",
            "\"params\":[]",
            "\"result\":null",
            "\"error\":{\"code\":1,\"message\":\"\"}",
            "\"cmd_id\":\"\"",
            "\"q\":   1",
            "\"v\":1,",
            "\"k\":\"system_item\",",
            "\"other\":{}",
            "\"type\":\"later\"",
            "null",
            "-0",
            "1e400",
            "1e16",
            "[[[[",
            "\\ud83c",
            "\u{2028}",
        ],
    },
    Target {
        name: "permissions",
        run: permissions::run,
        seeds: &["seeds/permissions"],
        ends: &[""],
        words: &[
            "off\n",
            "bare\n",
            "locked\n",
            "0 deny Bash",
            "1 allow Bash",
            "2 ask *",
            "3 allow *",
            " git push\n",
            " git status\n",
            " ls\n",
            " rm\n",
            " =src/**\n",
            " @*.org\n",
            "\n$",
            "\n>",
            "\n<",
            "%",
            "; ",
            " && ",
            "| ",
            "git -C x push",
            "/usr/bin/ls",
            "rm x",
            "eval x",
            "nice ",
            "A=b ",
            "> f ",
            "$(ls)",
            "$x",
            "\u{202e}",
            "../",
        ],
    },
];

/// Runs the target of that name.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS
        .iter()
        .find(|target| target.name == name)
        .expect("a target of that name");
    (target.run)(input);
}

const STREAM_WORDS: &[&str] = &[
    "\n\n",
    "\r\n",
    "data: ",
    "event: error\n",
    "[DONE]",
    "\"index\":1",
    "\"index\":null",
    "\"error\":{\"code\":429}",
    "\"finish_reason\":\"stop\"",
    "\"stop_reason\":\"tool_use\"",
    "\"tool_calls\":[{}]",
    "\u{feff}",
    "\\ud83c",
    "null",
];
