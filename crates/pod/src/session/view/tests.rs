//! Which results leave, and what becomes of the items.

use super::plan::{MIN_BYTES, MarkTexts};
use super::{ContextPolicy, GAP_SOURCE, NextRequest, ShownItems, ViewTries};
use crate::record::{
    CompactRequested, Encoder, KeptItem, Pruned, PrunedContent, Record, SurfaceSet, SurfaceSources,
    View, ViewLevel,
};
use crate::session::calls::NamedTools;
use crate::session::fold::SessionState;
use crate::session::standing::ActiveInput;
use llm_worker::projection::Surface;
use llm_worker::{
    CallId, Item, ProviderSignature, ResultStatus, SealedReasoning, ToolOutcome, Usage,
};
use std::collections::{BTreeMap, BTreeSet};

const MARK: &str = "({bytes} of {call})";

fn texts() -> MarkTexts {
    let [mark, same, gap, bare_gap] = [
        MARK,
        "(as {call})",
        "({items}: {call} to {last})",
        "({items})",
    ]
    .map(str::to_owned);
    MarkTexts {
        mark,
        same,
        gap,
        next_gap: String::new(),
        bare_gap,
    }
}

fn policy(protect_tokens: u64) -> ContextPolicy {
    ContextPolicy {
        protect_tokens,
        prune_at: 75,
        compact_at: 100,
    }
}

/// The next request of a session with these items.
fn next<'a>(
    state: &'a SessionState,
    pending: &'a [Item],
    window: u64,
    policy: ContextPolicy,
) -> NextRequest<'a> {
    NextRequest {
        state,
        pending,
        window: Some(window),
        policy,
        tries: ViewTries::default(),
    }
}

fn id(number: u64) -> CallId {
    CallId::new(number).unwrap()
}

fn call(number: u64) -> Item {
    Item::ToolCall {
        id: id(number),
        name: "T".to_owned(),
        arguments: "{}".to_owned(),
    }
}

fn result(number: u64, bytes: usize) -> Item {
    // No two are the same.
    let content = char::from(b'a' + number as u8).to_string().repeat(bytes);
    Item::ToolResult {
        id: id(number),
        outcome: ToolOutcome {
            status: ResultStatus::Ok,
            summary: "s".to_owned(),
            content,
            attachments: Vec::new(),
        },
    }
}

fn thought(data: &str) -> Item {
    let signature = ProviderSignature {
        kind: "signature".to_owned(),
        data: data.to_owned(),
    };
    let seal = Some(SealedReasoning {
        model: "m".to_owned(),
        generation: 1,
        signature,
    });
    Item::Reasoning {
        text: "hm".to_owned(),
        seal,
    }
}

/// A session with these items; a token is four bytes.
fn state(items: &[Item]) -> SessionState {
    let mut state = SessionState::default();
    let surface = Surface {
        generation: 1,
        model: "m".to_owned(),
        system: String::new(),
        tools: Vec::new(),
        max_output: None,
        effort: None,
        thinking: false,
        media: Vec::new(),
    };
    let encoder = Encoder {
        id: "neutral".to_owned(),
        version: 1,
    };
    state
        .apply(
            &SurfaceSet {
                surface,
                encoder,
                sources: SurfaceSources::default(),
            }
            .into(),
        )
        .unwrap();
    for item in items {
        state.count(item.clone());
    }
    state
}

fn plan(items: &[Item], window: u64, protect_tokens: u64) -> Option<Pruned> {
    let state = state(items);
    next(&state, &[], window, policy(protect_tokens)).plan(
        || Some(items.to_vec()),
        &texts(),
        &BTreeSet::new(),
    )
}

/// Ten results of 1,000 tokens, each seen by the model.
fn ten() -> Vec<Item> {
    (1..=10)
        .flat_map(|n| [call(n), result(n, 4000)])
        .chain([call(11)])
        .collect()
}

#[test]
fn the_oldest_results_leave_in_one_large_bite() {
    // 10,000 tokens are above three quarters of 12,000; down to 5,400 five leave.
    let pruned = plan(&ten(), 12_000, 1_000).unwrap();
    assert_eq!((pruned.view.pruned, pruned.left.results), (10, 5));
    assert_eq!(plan(&ten(), 14_000, 1_000), None, "there is room");
    assert_eq!(
        plan(&ten(), 10_500, 40_000).unwrap().left.results,
        6,
        "the tail is at most a quarter of the window"
    );
    assert_eq!(plan(&ten(), 12_000, 2_500).unwrap().left.results, 5);
}

#[test]
fn the_newest_tokens_stay() {
    // Nine are to leave, but the newest 1,100 tokens are in the last two.
    assert_eq!(plan(&ten(), 4_400, 40_000).unwrap().left.results, 8);
    // Nothing that the model has not seen.
    let unseen: Vec<Item> = (1..=10)
        .map(call)
        .chain((1..=10).map(|n| result(n, 4000)))
        .collect();
    assert_eq!(plan(&unseen, 8_000, 0), None);
    // Of the calls of a person, either.
    let text = "I entered this command myself, so the call that follows is mine and not yours:\nls";
    let behind = |input: Item| -> Vec<Item> {
        (1..=10)
            .flat_map(|n| [input.clone(), call(n), result(n, 4000)])
            .collect()
    };
    let unseen = behind(Item::Command {
        text: text.to_owned(),
    });
    assert_eq!(plan(&unseen, 8_000, 0), None);
    assert_ne!(plan(&behind(user(text)), 8_000, 0), None, "only typed");
    assert_eq!(
        plan(&[unseen, vec![user("go"), call(11)]].concat(), 8_000, 0)
            .unwrap()
            .left
            .results,
        7
    );
}

#[test]
fn a_small_bite_is_not_worth_a_cold_cache() {
    let mut items = vec![
        call(1),
        result(1, 1200),
        Item::user("u".repeat(32_000)),
        call(2),
    ];
    assert_eq!(plan(&items, 10_000, 0), None);
    items.push(Item::user("u".repeat(4_000)));
    assert_eq!(
        plan(&items, 10_000, 0).unwrap().left.results,
        1,
        "but when the window is nearly full"
    );
}

#[test]
fn the_protected_tail_is_a_part_of_what_words_leave_of_the_window() {
    // 5,000 of 12,000 tokens are words: of the other 7,000, a quarter is protected, one result and a half.
    let items: Vec<Item> = [user(&"u".repeat(20_000))]
        .into_iter()
        .chain(ten().into_iter().skip(8))
        .collect();
    assert_eq!(plan(&items, 12_000, 40_000).unwrap().left.results, 4);
}

#[test]
fn nothing_is_planned_for_that_cannot_be_worth_it() {
    let items: Vec<Item> = [user(&"u".repeat(32_000)), call(1), result(1, 4000), call(2)].to_vec();
    let state = state(&items);
    let asked = std::cell::Cell::new(false);
    let asks = |window| {
        asked.set(false);
        let items = || asked.replace(true).then(|| items.clone());
        drop(next(&state, &[], window, policy(0)).plan(items, &texts(), &BTreeSet::new()));
        asked.get()
    };
    assert!(
        !asks(10_500),
        "a thousand tokens are less than a quarter of 7,875"
    );
    assert!(asks(9_900), "above nine tenths everything counts");
}

#[test]
fn where_nothing_can_leave_it_is_looked_for_again_after_some_growth() {
    // The model has not seen the result.
    let mut items: Vec<Item> = [user(&"u".repeat(20_000)), call(1), result(1, 12_000)].to_vec();
    let mut tries = ViewTries::default();
    let mut looks = Vec::new();
    for step in 0..10 {
        let state = state(&items);
        let looked = std::cell::Cell::new(false);
        let next = NextRequest {
            tries,
            ..next(&state, &[], 10_000, policy(10_000))
        };
        assert_eq!(
            next.plan(
                || looked.replace(true).then(|| items.clone()),
                &texts(),
                &BTreeSet::new()
            ),
            None
        );
        tries = next.unchanged();
        looks.extend(looked.get().then_some(step));
        // Eighty tokens: a fiftieth of the window is two and a half of them.
        items.push(user(&"v".repeat(320)));
    }
    assert_eq!(looks, [0, 3, 6, 9]);
    let state = state(&items);
    let next = NextRequest {
        tries,
        ..next(&state, &[], 100_000, policy(0))
    };
    assert_eq!(
        next.unchanged(),
        ViewTries::default(),
        "a request that fits"
    );
}

#[test]
fn what_waits_for_the_next_request_counts() {
    let items = ten();
    let state = state(&items);
    let pending = [Item::user("u".repeat(12_000))];
    let next = |pending| {
        next(&state, pending, 14_000, policy(1_000)).plan(
            || Some(items.clone()),
            &texts(),
            &BTreeSet::new(),
        )
    };
    assert_eq!(next(&[]), None);
    assert!(next(&pending).is_some());
}

#[test]
fn an_answer_of_a_known_length_has_its_room() {
    let items = ten();
    let mut state = state(&items);
    state.surface.as_mut().unwrap().0.max_output = Some(6_000);
    let plan = next(&state, &[], 14_000, policy(1_000)).plan(
        || Some(items.clone()),
        &texts(),
        &BTreeSet::new(),
    );
    assert!(plan.is_some());
}

#[test]
fn only_the_marks_change_and_seals_behind_them_are_dropped() {
    let min = usize::try_from(MIN_BYTES).unwrap();
    let items = vec![
        thought("before"),
        call(1),
        result(1, min - 1),
        call(2),
        result(2, min),
        thought("wax"),
        call(3),
        result(3, 900),
    ];
    let surface = state(&[]).surface.unwrap().0;
    let mut pruned = Pruned {
        view: View {
            pruned: 5,
            ..View::default()
        },
        min_bytes: MIN_BYTES,
        mark: MARK.to_owned(),
        ..Pruned::default()
    };
    // A verdict named the tool of this call. Where none did, what left is of the tool of the item, as older records have it.
    let mut named = NamedTools::default();
    named.add(id(2), "named".to_owned());
    let of_named = ShownItems::default().project(&pruned, &mut items.clone(), &surface, &named);
    assert_eq!(of_named.bytes.keys().collect::<Vec<_>>(), ["named"]);
    let mut masked = items.clone();
    let left =
        ShownItems::default().project(&pruned, &mut masked, &surface, &NamedTools::default());
    let mark = format!("({MIN_BYTES} of c00000002)");
    let expected = PrunedContent {
        results: 1,
        bytes: BTreeMap::from([("other".to_owned(), MIN_BYTES - mark.len() as u64)]),
        seals: 3,
        ..PrunedContent::default()
    };
    assert_eq!(left, expected);
    let Item::ToolResult { outcome, .. } = &masked[4] else {
        panic!("{masked:?}")
    };
    assert_eq!(
        (
            outcome.status,
            outcome.summary.as_str(),
            outcome.content.as_str()
        ),
        (ResultStatus::Ok, "s", &*mark)
    );
    assert_eq!(
        masked[5],
        Item::Reasoning {
            text: "hm".to_owned(),
            seal: None
        }
    );
    for same in [0, 1, 2, 3, 6, 7] {
        assert_eq!(masked[same], items[same]);
    }
    // A later view leaves what was masked as it is.
    pruned.view.pruned = 8;
    let before = masked[4].clone();
    let shown = ShownItems {
        view: View {
            pruned: 5,
            ..View::default()
        },
        ..ShownItems::default()
    };
    assert_eq!(
        shown
            .project(&pruned, &mut masked, &surface, &NamedTools::default())
            .results,
        1
    );
    assert_eq!(masked[4], before);
}

/// The seals that stay, by a letter each.
fn sealed(items: &[Item]) -> String {
    let seal = |item: &Item| {
        let Item::Reasoning {
            seal: Some(seal), ..
        } = item
        else {
            return None;
        };
        Some(seal.signature.data.clone())
    };
    items.iter().filter_map(seal).collect()
}

#[test]
fn a_loop_of_calls_keeps_all_its_seals_or_none() {
    let text = "x".to_owned();
    let words = Item::user(text.clone());
    let note = Item::System {
        source: "host".to_owned(),
        text: text.clone(),
    };
    let step = |letter: &str, number| [thought(letter), call(number), result(number, 600)];
    // Two loops. Words that come with a result do not end the second one.
    let ends = [thought("c"), Item::Assistant { text }];
    let one = [&[words.clone()][..], &step("a", 1), &step("b", 2), &ends].concat();
    let two = [
        &[note.clone(), words.clone()][..],
        &step("d", 3),
        &[note, words],
        &step("e", 4),
        &step("f", 5),
    ]
    .concat();
    let items = [one, two].concat();
    let surface = state(&[]).surface.unwrap().0;
    let number = |wanted| {
        1 + items
            .iter()
            .position(|item| *item == result(wanted, 600))
            .unwrap() as u64
    };
    for (first, whole_loops, stay) in [
        (1, false, "a"),
        (1, true, ""),
        (2, false, "ab"),
        (2, true, ""),
        (3, false, "abcd"),
        (3, true, "abc"),
        (4, false, "abcde"),
        (4, true, "abc"),
        (5, true, "abc"),
    ] {
        let view = View {
            pruned: number(first),
            ..View::default()
        };
        let shown = ShownItems {
            view: View {
                pruned: view.pruned - 1,
                ..view
            },
            ..ShownItems::default()
        };
        let pruned = Pruned {
            view,
            min_bytes: 512,
            mark: MARK.to_owned(),
            whole_loops,
            ..Pruned::default()
        };
        let mut masked = items.clone();
        let left = shown.project(&pruned, &mut masked, &surface, &NamedTools::default());
        assert_eq!(sealed(&masked), stay, "result {first}, {whole_loops}");
        assert_eq!(
            left.seals,
            6 - stay.len() as u64,
            "result {first}, {whole_loops}"
        );
    }
}

#[test]
fn the_meter_loses_what_left() {
    let items = ten();
    let mut state = state(&items);
    let before = state.context(None).unwrap().used;
    let pruned = plan(&items, 12_000, 1_000).unwrap();
    let bytes: u64 = pruned.left.bytes.values().sum();
    state.apply(&Record::from(pruned.clone())).unwrap();
    assert_eq!(state.context(None).unwrap().used, before - bytes / 4);
    assert!(
        state.apply(&Record::from(pruned)).is_err(),
        "a view does not go back"
    );
}

/// What a change leaves, as texts.
fn after(pruned: &Pruned, state: &SessionState, items: &[Item]) -> Vec<String> {
    let mut items = items.to_vec();
    let left = state.shown.project(
        pruned,
        &mut items,
        &state.surface.as_ref().unwrap().0,
        &state.named_tools,
    );
    assert_eq!(left, pruned.left, "the record says what left");
    items.iter().map(word).collect()
}

fn word(item: &Item) -> String {
    match item {
        Item::User { text, .. } | Item::Command { text } => format!("user {text}"),
        Item::Assistant { text } => format!("said {text}"),
        Item::System { source, text } => format!("{source} {text}"),
        Item::Reasoning { seal, .. } => format!("thought {}", seal.is_some()),
        Item::ToolCall { id, .. } => format!("call {}", id.number()),
        Item::ToolResult { id, outcome } => {
            format!("result {} {}", id.number(), outcome.content.len())
        }
    }
}

fn user(text: &str) -> Item {
    Item::user(text.to_owned())
}

fn said(text: &str) -> Item {
    Item::Assistant {
        text: text.to_owned(),
    }
}

/// Two turns of two steps each, then a third that runs.
fn turns() -> Vec<Item> {
    vec![
        user("one"),
        thought("a"),
        call(1),
        result(1, 4000),
        Item::System {
            source: "client".to_owned(),
            text: "told".to_owned(),
        },
        call(2),
        result(2, 4000),
        said("first"),
        user("two"),
        Item::System {
            source: "host".to_owned(),
            text: "note".to_owned(),
        },
        call(3),
        call(4),
        result(3, 4000),
        result(4, 4000),
        said("second"),
        user("three"),
        thought("b"),
        call(5),
        result(5, 4000),
        call(6),
    ]
}

fn by_hand(
    items: &[Item],
    drop_turns: bool,
    protect_tokens: u64,
    keep: &[u64],
) -> (SessionState, Option<Pruned>) {
    let mut state = state(items);
    state
        .apply(
            &CompactRequested {
                drop_turns,
                by: None,
            }
            .into(),
        )
        .unwrap();
    let keep = keep.iter().map(|number| id(*number)).collect();
    let next = NextRequest {
        state: &state,
        pending: &[],
        window: None,
        policy: policy(protect_tokens),
        tries: ViewTries::default(),
    };
    let plan = next.plan(|| Some(items.to_vec()), &texts(), &keep);
    (state, plan)
}

#[test]
fn old_steps_leave_and_every_word_stays() {
    let items = turns();
    let (state, plan) = by_hand(&items, false, 1_000, &[]);
    let plan = plan.unwrap();
    assert_eq!(
        (plan.level, plan.view),
        (
            ViewLevel::Steps,
            View {
                pruned: 16,
                compacted: 16,
                dropped: 0
            }
        )
    );
    let expected = [
        "user one",
        "context (3: c00000001 to c00000001)",
        "client told",
        "context (2: c00000002 to c00000002)",
        "said first",
        "user two",
        "context (5: c00000003 to c00000004)",
        "said second",
        "user three",
        "thought false",
        "call 5",
        "result 5 4000",
        "call 6",
    ];
    assert_eq!(after(&plan, &state, &items), expected);
    assert_eq!((plan.left.results, plan.left.bytes["other"]), (4, 16_004));
    assert_eq!(
        (
            plan.left.seals,
            plan.left.reasoning,
            plan.left.notes["host"]
        ),
        (2, 2, 4)
    );
}

#[test]
fn a_call_and_its_result_are_never_parted() {
    let items = turns();
    // Whatever is protected, calls and results match, and nothing of an answer is cut off.
    for protect in (0..6_000).step_by(100) {
        let (state, plan) = by_hand(&items, false, protect, &[]);
        let Some(plan) = plan else { continue };
        let words = after(&plan, &state, &items);
        for number in 1..=5 {
            let has = |kind: &str| {
                words
                    .iter()
                    .any(|word| word.starts_with(&format!("{kind} {number}")))
            };
            assert_eq!(has("call"), has("result"), "{protect}: {words:?}");
        }
        let calls = |number: u64| words.contains(&format!("call {number}"));
        assert_eq!(calls(3), calls(4), "{protect}: {words:?}");
        assert!(
            [
                "user one",
                "said first",
                "user two",
                "said second",
                "user three"
            ]
            .iter()
            .all(|word| words.iter().any(|it| it == word))
        );
    }
}

#[test]
fn a_later_change_joins_the_gaps_and_the_meter_counts_what_is_shown() {
    let mut items = turns();
    let (mut state, plan) = by_hand(&items, false, 4_000, &[]);
    let count = |state: &mut SessionState, items: &mut Vec<Item>, plan: Pruned| {
        let before = state.shown.clone();
        state.apply(&Record::from(plan.clone())).unwrap();
        before.project(
            &plan,
            items,
            &state.surface.as_ref().unwrap().0,
            &state.named_tools,
        );
        assert_eq!(state.shown.count(state.items), items.len() as u64);
        let bytes: u64 = items.iter().map(crate::session::context::bytes).sum();
        assert_eq!(state.context(None).unwrap().used, bytes / 4);
    };
    assert_eq!(plan.as_ref().unwrap().view.compacted, 10, "{plan:?}");
    count(&mut state, &mut items, plan.unwrap());
    for number in 7..=9 {
        let more = [result(number - 1, 4000), call(number)];
        items.extend(more.iter().cloned().map(|item| state.count(item)));
    }
    state.apply(&CompactRequested::default().into()).unwrap();
    let next = NextRequest {
        state: &state,
        pending: &[],
        window: None,
        policy: policy(1_000),
        tries: ViewTries::default(),
    };
    let plan = next
        .plan(|| Some(items.clone()), &texts(), &BTreeSet::new())
        .unwrap();
    let words = after(&plan, &state, &items);
    count(&mut state, &mut items, plan);
    let gaps: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| word.starts_with(GAP_SOURCE))
        .collect();
    let expected = [
        "(3: c00000001 to c00000001)",
        "(2: c00000002 to c00000002)",
        "(5: c00000003 to c00000004)",
        "(7: c00000005 to c00000007)",
    ];
    assert_eq!(gaps, expected.map(|gap| format!("{GAP_SOURCE} {gap}")));
}

// The marks of gaps had no text once results left after steps, and each gap repeated how its calls are read.
#[test]
fn each_gap_keeps_a_mark_and_only_the_first_one_says_how() {
    let mut items = turns();
    let mut state = state(&items);
    let texts = MarkTexts {
        next_gap: "({call})".to_owned(),
        ..texts()
    };
    state.apply(&CompactRequested::default().into()).unwrap();
    let change = |state: &mut SessionState, items: &mut Vec<Item>, window: u64| {
        let next = next(state, &[], window, policy(1_000));
        let plan = next
            .plan(|| Some(items.clone()), &texts, &BTreeSet::new())
            .unwrap();
        let before = state.shown.clone();
        state.apply(&Record::from(plan.clone())).unwrap();
        before.project(
            &plan,
            items,
            &state.surface.as_ref().unwrap().0,
            &state.named_tools,
        );
        plan.level
    };
    assert_eq!(change(&mut state, &mut items, 1_000_000), ViewLevel::Steps);
    state.compact_due = None;
    for number in 7..=12 {
        let more = [result(number - 1, 4000), call(number)];
        items.extend(more.iter().cloned().map(|item| state.count(item)));
    }
    assert_eq!(change(&mut state, &mut items, 9_000), ViewLevel::Results);
    let marks = items.iter().filter_map(|item| {
        let Item::System { source, text } = item else {
            return None;
        };
        (source == GAP_SOURCE).then_some(text.as_str())
    });
    let marks: Vec<&str> = marks.collect();
    assert_eq!(
        marks,
        ["(3: c00000001 to c00000001)", "(c00000002)", "(c00000003)"]
    );
    let bytes: u64 = items.iter().map(crate::session::context::bytes).sum();
    assert_eq!(state.context(None).unwrap().used, bytes / 4);
}

// Two changes that left a request above its limit ended the turn with 27,000 of 32,000 tokens.
#[test]
fn only_its_size_makes_a_request_too_large() {
    let items = vec![user(&"u".repeat(4_000))];
    for (counted, added, window, too_large) in [
        (0, 40_000, 1_000, false),
        (900, 0, 1_000, false),
        (1_000, 0, 1_000, false),
        (1_001, 0, 1_000, true),
        (900, 800, 1_000, false),
        (900, 1_600, 1_000, true),
    ] {
        let mut state = state(&items);
        let surface = state.surface.as_ref().unwrap().0.clone();
        state.context.request(&surface);
        state.context.response(&Usage {
            input: counted,
            ..Usage::default()
        });
        let pending = [user(&"v".repeat(added))];
        let mut next = next(&state, &pending, window, policy(0));
        for _ in 0..9 {
            assert_eq!(
                next.is_too_large(),
                too_large,
                "{counted} + {added} of {window}"
            );
            next.tries = next.changed();
        }
        // Nothing is too soon for a request that does not fit.
        assert_eq!(
            next.is_over(),
            next.tries.fruitless > window,
            "{counted} + {added} of {window}"
        );
    }
}

#[test]
fn a_turn_that_has_ended_may_leave_though_it_is_the_newest() {
    let words = |number: u64| said(&format!("{number}{}", "w".repeat(400)));
    let steps = (1..=40).flat_map(|number| [words(number), call(number), result(number, 100)]);
    let items: Vec<Item> = [user("do it all")]
        .into_iter()
        .chain(steps)
        .chain([said("done")])
        .collect();
    let mut state = state(&items);
    state
        .apply(
            &CompactRequested {
                drop_turns: true,
                by: None,
            }
            .into(),
        )
        .unwrap();
    state.standing.inputs = vec![ActiveInput {
        input: 1,
        item: 1,
        text: "do it all".to_owned(),
        since_us: 0,
    }];
    let dropped = |pending: &[Item]| {
        let next = next(&state, pending, 5_000, policy(1_000));
        next.plan(|| Some(items.clone()), &texts(), &BTreeSet::new())
            .map(|plan| plan.view.dropped)
    };
    assert_eq!(dropped(&[]), Some(0), "the running turn stays");
    assert_eq!(dropped(&[user("what now?")]), Some(items.len() as u64));
}

#[test]
fn the_oldest_turns_leave_only_by_hand_and_never_the_running_one() {
    let mut items = turns();
    items[0] = user(&"u".repeat(40_000));
    items[8] = user(&"v".repeat(4_000));
    let (state, plan) = by_hand(&items, true, 1_000, &[]);
    let plan = plan.unwrap();
    assert_eq!(
        (plan.level, plan.view.dropped),
        (ViewLevel::Turns, 8),
        "the second turn is small enough"
    );
    let words = after(&plan, &state, &items);
    assert_eq!(words[0], "context (8: c00000001 to c00000002)");
    assert!(words[1].starts_with("user v"));
    assert!(plan.left.inputs == 40_000 && plan.left.answers == 5);
    // The running turn is the only one.
    let items = vec![user(&"u".repeat(40_000)), call(1), result(1, 600), call(2)];
    let (_, plan) = by_hand(&items, true, 0, &[]);
    assert_eq!(plan.map(|plan| plan.view.dropped), Some(0));
}

#[test]
fn a_running_turn_with_several_inputs_stays_whole() {
    let big = |letter: &str| user(&letter.repeat(20_000));
    let items = vec![
        big("a"),
        said("first"),
        big("b"),
        call(1),
        result(1, 600),
        big("c"),
        call(2),
    ];
    let mut state = state(&items);
    state
        .apply(
            &CompactRequested {
                drop_turns: true,
                by: None,
            }
            .into(),
        )
        .unwrap();
    state.standing.inputs = vec![ActiveInput {
        input: 2,
        item: 3,
        text: "b".to_owned(),
        since_us: 0,
    }];
    let next = NextRequest {
        state: &state,
        pending: &[],
        window: None,
        policy: policy(0),
        tries: ViewTries::default(),
    };
    let plan = next
        .plan(|| Some(items.clone()), &texts(), &BTreeSet::new())
        .unwrap();
    assert_eq!(
        plan.view.dropped, 2,
        "what was said before the input that began the turn"
    );
}

#[test]
fn all_turns_before_the_running_one_may_leave() {
    let items = vec![
        user("one"),
        said("first"),
        user(&"b".repeat(20_000)),
        said("second"),
        user("go on"),
    ];
    let mut state = state(&items);
    state
        .apply(
            &CompactRequested {
                drop_turns: true,
                by: None,
            }
            .into(),
        )
        .unwrap();
    state.standing.inputs = vec![ActiveInput {
        input: 3,
        item: 5,
        text: "go on".to_owned(),
        since_us: 0,
    }];
    let next = NextRequest {
        state: &state,
        pending: &[],
        window: Some(6_000),
        policy: policy(0),
        tries: ViewTries::default(),
    };
    let plan = next
        .plan(|| Some(items.clone()), &texts(), &BTreeSet::new())
        .unwrap();
    assert_eq!(plan.view.dropped, 4);
    assert_eq!(after(&plan, &state, &items), ["context (4)", "user go on"]);
}

#[test]
fn hooks_may_keep_results() {
    let items = turns();
    let (state, plan) = by_hand(&items, false, 1_000, &[3]);
    let words = after(&plan.unwrap(), &state, &items);
    assert!(words.contains(&"call 3".to_owned()) && words.contains(&"result 3 4000".to_owned()));
    assert!(!words.contains(&"call 4".to_owned()));
}

#[test]
fn others_leave_in_the_place_of_results_that_hooks_keep() {
    let items = ten();
    let keep = BTreeSet::from([id(1), id(2)]);
    let state = state(&items);
    let pruned = next(&state, &[], 12_000, policy(1_000))
        .plan(|| Some(items.clone()), &texts(), &keep)
        .unwrap();
    assert_eq!(
        (pruned.view.pruned, pruned.left.results),
        (14, 5),
        "calls 3 to 7"
    );
}

#[test]
fn identical_results_are_referenced_once() {
    let same = |number: u64| Item::ToolResult {
        id: id(number),
        outcome: ToolOutcome {
            status: ResultStatus::Ok,
            summary: "s".to_owned(),
            content: "=".repeat(4000),
            attachments: Vec::new(),
        },
    };
    let mut items: Vec<Item> = ten();
    (items[1], items[15], items[17]) = (same(1), same(8), same(9));
    let plan = plan(&items, 12_000, 3_000).unwrap();
    let mut shown = items.clone();
    ShownItems::default().project(
        &plan,
        &mut shown,
        &state(&[]).surface.unwrap().0,
        &NamedTools::default(),
    );
    let content = |at: usize| {
        let Item::ToolResult { outcome, .. } = &shown[at] else {
            panic!("{:?}", shown[at])
        };
        outcome.content.clone()
    };
    assert_eq!(
        [content(1), content(15)],
        ["(as c00000009)", "(as c00000009)"],
        "also in the protected tail"
    );
    assert_eq!(content(17), "=".repeat(4000));
    assert_eq!(content(3), "(4000 of c00000002)");
}

#[test]
fn steps_leave_by_themselves_where_results_are_not_enough() {
    // Calls with long arguments: masking results does not help.
    let write = |number: u64| Item::ToolCall {
        id: id(number),
        name: "W".to_owned(),
        arguments: "w".repeat(4000),
    };
    let items: Vec<Item> = (1..=10)
        .flat_map(|n| [write(n), result(n, 10)])
        .chain([user("go"), call(11)])
        .collect();
    let state = state(&items);
    let plan = |compact_at, window| {
        let policy = ContextPolicy {
            compact_at,
            ..policy(1_000)
        };
        next(&state, &[], window, policy).plan(|| Some(items.clone()), &texts(), &BTreeSet::new())
    };
    assert_eq!(plan(85, 12_400), None, "81 percent are used");
    let steps = plan(80, 12_400).unwrap();
    assert_eq!((steps.level, steps.view.compacted), (ViewLevel::Steps, 18));
    assert_eq!(
        steps
            .parameters
            .map(|it| (it.window, it.compact_at, it.by_hand)),
        Some((Some(12_400), 80, false))
    );
}

#[test]
fn a_view_that_does_not_follow_is_refused() {
    let items = turns();
    let (state, plan) = by_hand(&items, false, 1_000, &[]);
    let plan = plan.unwrap();
    let refused = |change: &dyn Fn(&mut Pruned)| {
        let mut forged = plan.clone();
        change(&mut forged);
        state.clone().apply(&forged.into()).is_err()
    };
    assert!(!refused(&|_| ()));
    let cases: [&dyn Fn(&mut Pruned); 8] = [
        &|plan| plan.view.compacted = 99,
        &|plan| plan.view.pruned = 3,
        &|plan| plan.view.dropped = 17,
        &|plan| plan.view.dropped = 1,
        &|plan| plan.kept.as_mut().unwrap().swap(0, 1),
        &|plan| plan.kept.as_mut().unwrap().push(KeptItem(17, 4)),
        &|plan| plan.last_call = 0,
        &|plan| (plan.view, plan.kept) = (View::default(), Some(Vec::new())),
    ];
    for (at, change) in cases.iter().enumerate() {
        assert!(refused(change), "case {at}");
    }
    // What left does not come back.
    let mut later = state.clone();
    later.apply(&plan.clone().into()).unwrap();
    let mut back = plan.clone();
    back.view = View {
        pruned: 18,
        compacted: 18,
        dropped: 0,
    };
    back.kept.as_mut().unwrap().insert(1, KeptItem(2, 0));
    assert!(later.apply(&back.into()).is_err());
}
