//! No result is over its budget, and what is missing is said.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: what cannot be read is a failed test"
)]

mod corpus;

use format_pipeline::budget::{BudgetConfig, Shortened, shorten};
use format_pipeline::json::Json;
use format_pipeline::strategy::{DataKind, ResultPart, Strategy as Shares};
use format_pipeline::token_counter::TokenCounter;
use format_pipeline::tree;
use format_pipeline::truncation::{kind_of, truncate};
use proptest::prelude::*;

const COUNTER: TokenCounter = TokenCounter::unmeasured();

fn within(text: &str, budget: u64) -> Shortened {
    let shown = shorten(text, budget, 20, COUNTER);
    assert_eq!(shown.tokens, COUNTER.count(&shown.text));
    assert!(
        shown.tokens <= budget.max(1),
        "{} over {budget}: {}",
        shown.tokens,
        shown.text
    );
    shown
}

#[test]
fn results_of_the_corpus_within_budgets() {
    for sample in corpus::samples(240) {
        let sent: serde_json::Value = serde_json::from_str(&sample.sent).unwrap();
        for budget in [60, 400, 2000, 1_000_000] {
            let shown = within(&sample.sent, budget);
            let whole = within(&sample.sent, u64::MAX / 200);
            assert!(whole.tokens <= whole.before, "{}", sample.tool);
            let says = shown.text.contains("[shortened: ") || shown.text.contains(" left out]");
            assert_eq!(
                says,
                whole.tokens > budget,
                "{} {budget}: {}",
                sample.tool,
                shown.text
            );
            if budget == 400
                && !shown.text.contains("elements left out")
                && !shown.text.contains("left out]")
            {
                for name in names(&sent) {
                    assert!(shown.text.contains(&name), "{} lost {name}", sample.tool);
                }
            }
        }
    }
}

fn names(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::Array(items) => items.iter().flat_map(names).collect(),
        serde_json::Value::Object(fields) => fields.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_long_list_keeps_all_parts_in_less_detail_before_it_drops_some() {
    let items: Vec<String> = (0..40)
        .map(|i| {
            format!(
                "{{\"key\":\"gh#{i}\",\"state\":\"open\",\"body\":\"{}\"}}",
                "long text ".repeat(60)
            )
        })
        .collect();
    let shown = within(&format!("[{}]", items.join(",")), 1200);
    for i in 0..40 {
        assert!(
            shown.text.contains(&format!("gh#{i}")),
            "{i} in {}",
            shown.text
        );
    }
    assert!(
        shown
            .text
            .contains("\n[shortened: fields left out of some: body"),
        "{}",
        shown.text
    );
}

#[test]
fn a_value_without_a_list_keeps_its_fields_and_cuts_its_texts() {
    let sent = format!(
        "{{\"key\":\"PROJ-1\",\"description\":\"{}\",\"url\":\"u\"}}",
        "words é ".repeat(3000)
    );
    let shown = within(&sent, 900);
    assert!(
        shown.text.contains("PROJ-1") && shown.text.contains("url"),
        "{}",
        shown.text
    );
    assert!(shown.text.contains("more characters]"), "{}", shown.text);
    assert!(
        shown.text.ends_with("[shortened: 1 text cut]"),
        "{}",
        shown.text
    );
}

#[test]
fn the_first_message_of_a_thread_is_worth_more_than_its_answers() {
    let text = "[{\"id\":1,\"x\":1},{\"id\":2,\"parent\":1},{\"id\":3,\"parent\":null}]";
    let Some(Json::List(items)) = Json::parse(text) else {
        panic!()
    };
    assert_eq!(tree::kind_of(&items), DataKind::Thread);
    let (fitted, left_out) = tree::fit(&items, Shares::ThreadLevel, COUNTER, 20);
    assert_eq!(
        fitted.compact(),
        "[{\"id\":1,\"x\":1},{\"id\":3,\"parent\":null}]"
    );
    assert_eq!(left_out.parts, (1, 3));
    let slack = "[{\"ts\":\"1.1\",\"thread_ts\":\"1.1\"}]";
    let Some(Json::List(items)) = Json::parse(slack) else {
        panic!()
    };
    assert_eq!(tree::kind_of(&items), DataKind::List);
}

#[test]
fn strategies_rank_parts() {
    let value = |strategy: Shares, at, tokens| {
        strategy.value(ResultPart {
            at,
            of: 10,
            tokens,
            is_answer: false,
        })
    };
    assert_eq!(
        value(Shares::ElementCount, 0, 9),
        value(Shares::ElementCount, 9, 1)
    );
    assert!(value(Shares::Cascading, 0, 1) > value(Shares::Cascading, 9, 1));
    assert!(value(Shares::HeadTail, 9, 1) > value(Shares::HeadTail, 5, 1));
    assert!(value(Shares::HeadTail, 0, 1) > value(Shares::HeadTail, 5, 1));
    assert!(value(Shares::SizeProportional, 0, 9) > value(Shares::SizeProportional, 0, 1));
    assert_eq!(DataKind::Log.strategy(), Shares::HeadTail);
}

#[test]
fn a_diff_is_cut_at_hunks() {
    let hunk =
        |i: usize| format!("@@ -{i},3 +{i},3 @@ fn f{i}\n context {i}\n-old {i}\n+new {i}\n");
    let diff: String = (0..200).map(hunk).collect();
    let diff = format!("diff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n{diff}");
    assert_eq!(kind_of(&diff), DataKind::Diff);
    let shown = truncate(&diff, DataKind::Diff, Shares::Cascading, COUNTER, 600);
    assert!(
        shown.contains(" hunks, ") && shown.starts_with("diff --git"),
        "{shown}"
    );
    let kept: Vec<usize> = (0..200)
        .filter(|i| shown.contains(&format!("@@ fn f{i}\n")))
        .collect();
    assert!(kept.len() > 10, "{shown}");
    for i in 0..200 {
        assert_eq!(
            shown.contains(&hunk(i)),
            kept.contains(&i),
            "half a hunk: {i}"
        );
    }
}

#[test]
fn a_log_keeps_its_errors_and_its_end() {
    let line = |i: usize| match i {
        777 => "2026-11-28T10:00:01Z ERROR disk full on /var\n".to_owned(),
        i => format!("2026-11-28T10:00:{:02}Z info step {i} done\n", i % 60),
    };
    let log: String = (0..2000).map(line).collect();
    assert_eq!(kind_of(&log), DataKind::Log);
    let shown = within(&log, 500).text;
    assert!(
        shown.contains("ERROR disk full") && shown.contains("step 1999 done"),
        "{shown}"
    );
    assert!(
        shown.starts_with(&line(0)) && shown.contains(" lines left out]"),
        "{shown}"
    );
    let said: usize = shown
        .lines()
        .filter_map(|line| {
            line.strip_prefix("[… ")?
                .split(' ')
                .next()?
                .parse::<usize>()
                .ok()
        })
        .sum();
    let kept = shown
        .lines()
        .filter(|line| line.starts_with("2026"))
        .count();
    assert_eq!(said + kept, 2000);
}

#[test]
fn code_is_cut_at_blocks() {
    let block = |i: usize| format!("fn f{i}() {{\n    let x = {i};\n\n    x + 1;\n}}\n\n");
    let code: String = (0..300).map(block).collect();
    assert_eq!(kind_of(&code), DataKind::Code);
    let shown = truncate(&code, DataKind::Code, Shares::Cascading, COUNTER, 500);
    let kept = (0..300).filter(|i| shown.contains(&block(*i))).count();
    assert_eq!(shown.matches("fn f").count(), kept);
    assert!(kept > 5, "{shown}");
}

#[test]
fn budgets_of_tools_and_turns() {
    let mut config = BudgetConfig::usual();
    config.by_tool.insert("get_job_logs".to_owned(), 100);
    for (tool, spent, budget) in [
        ("x", 0, 8000),
        ("get_job_logs", 0, 100),
        ("x", 35_000, 5000),
        ("x", 90_000, 500),
        ("get_job_logs", 90_000, 100),
    ] {
        assert_eq!(config.of(tool, spent), budget, "{tool} {spent}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_within_any_budget(text in "(\\PC{0,40}\n?|@@ -1 \\PC{9}|ошибка|[0-9:]{0,9}){0,40}", budget in 0_u64..300) {
        within(&text, budget);
        for kind in [DataKind::Diff, DataKind::Log, DataKind::Code, DataKind::Text] {
            let shown = truncate(&text, kind, Shares::HeadTail, COUNTER, budget);
            prop_assert!(COUNTER.count(&shown) <= budget);
            for line in shown.lines().filter(|line| !line.starts_with("[… ")) {
                prop_assert!(text.contains(line), "{line:?} is new");
            }
        }
    }
}
