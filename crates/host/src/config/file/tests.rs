//! Files that read, and what is said of those that do not.

use super::super::parser_text::PLAIN_KEY;
use super::*;

#[test]
fn an_unknown_key_names_its_line_and_the_nearest_known_one() {
    let problem = parse("model = \"offline\"\n\n[limits]\nmax_stepps = 3\n").err();
    let problem = problem.expect("max_stepps is not a key");
    assert_eq!(problem.line, 4);
    assert!(problem.help.starts_with("did you mean `max_steps`?"));
    let problem = parse("[sandbox]\nmode = \"workspace\"\n").expect_err("no such mode");
    assert_eq!(problem.line, 2);
    assert!(problem.help.starts_with("did you mean `workspace-write`?"));
}

#[test]
fn a_plaintext_key_does_not_read() {
    let text =
        "[providers.x]\napi = \"openai-chat\"\nbase_url = \"http://h/v1\"\nkey = \"sk-123\"\n";
    let problem = parse(text).expect_err("keys are never written here");
    assert_eq!((problem.line, problem.what.as_str()), (4, PLAIN_KEY));
    assert!(problem.help.contains("env = "));
    let two = text.replace("\"sk-123\"", "{ env = \"A\", file = \"b\" }");
    assert!(
        parse(&two)
            .expect_err("one place")
            .what
            .contains("one source")
    );
    let text = text.replace("\"sk-123\"", "{ env = \"X_KEY\" }");
    assert_eq!(
        parse(&text).expect("by name").providers["x"].key,
        Some(KeySource::Env("X_KEY".to_owned()))
    );
}

#[test]
fn every_section_reads() {
    let text = r#"
        model = "local/x"
        [providers.local]
        api = "openai-chat"
        base_url = "http://127.0.0.1:8080/v1"
        key = { command = ["pass", "show", "x"] }
        timeouts = { connect_s = 2, first_byte_s = 600.5 }
        attempts = 3
        [models."local/x"]
        price = { input = 1, output = 2.5, cached_input = 0.1 }
        max_output = 9000
        [limits]
        max_steps = 5
        tool_concurrency = 2
        max_cost_usd = 1
        [[permissions.rules]]
        tool = "Write"
        path = "**/.env*"
        decision = "deny"
        [features."builtin:shell"]
        enabled = false
        [sandbox]
        mode = "read-only"
        [state]
        any_file_system = true
    "#;
    let file = parse(text).expect("it is all known");
    let price = file.models["local/x"]
        .price
        .and_then(|price| price.counted())
        .expect("a price");
    let parts = [
        price.input,
        price.output,
        price.cached_input,
        price.cache_write,
    ];
    assert_eq!(parts.map(Cost::dollars), [1.0, 2.5, 0.1, 1.25]);
    assert_eq!(file.sandbox.mode, Some(Mode::ReadOnly));
    assert_eq!(file.state.any_file_system, Some(true));
    assert_eq!(file.permissions.rules.len(), 1);
    assert_eq!(file.features["builtin:shell"].enabled, Some(false));
}
