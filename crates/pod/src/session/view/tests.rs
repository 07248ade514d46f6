//! Which results leave, and what becomes of the items.

use super::{ContextPolicy, MIN_BYTES, NextRequest, View};
use crate::record::{Encoder, Pruned, PrunedContent, Record, SurfaceSet, SurfaceSources};
use crate::session::fold::SessionState;
use llm_worker::projection::Surface;
use llm_worker::{CallId, Item, ProviderSignature, ResultStatus, SealedReasoning, ToolOutcome};
use std::collections::BTreeMap;

const MARK: &str = "({bytes} of {call})";

fn id(number: u64) -> CallId {
    CallId::new(number).unwrap()
}

fn call(number: u64) -> Item {
    Item::ToolCall { id: id(number), name: "T".to_owned(), arguments: "{}".to_owned() }
}

fn result(number: u64, bytes: usize) -> Item {
    let (status, summary) = (ResultStatus::Ok, "s".to_owned());
    Item::ToolResult { id: id(number), outcome: ToolOutcome { status, summary, content: "x".repeat(bytes) } }
}

fn thought(data: &str) -> Item {
    let signature = ProviderSignature { kind: "signature".to_owned(), data: data.to_owned() };
    let seal = Some(SealedReasoning { model: "m".to_owned(), generation: 1, signature });
    Item::Reasoning { text: "hm".to_owned(), seal }
}

/// A session with these items; a token is four bytes.
fn state(items: &[Item]) -> SessionState {
    let mut state = SessionState::default();
    let surface =
        Surface { generation: 1, model: "m".to_owned(), system: String::new(), tools: Vec::new(), max_output: None };
    let encoder = Encoder { id: "neutral".to_owned(), version: 1 };
    state.apply(&SurfaceSet { surface, encoder, sources: SurfaceSources::default() }.into()).unwrap();
    for item in items {
        state.count(item.clone());
    }
    state
}

fn plan(items: &[Item], window: u64, protect_tokens: u64) -> Option<Pruned> {
    let (state, policy) = (state(items), ContextPolicy { protect_tokens, prune_at: 75 });
    NextRequest { state: &state, pending: &[], window, policy }.plan(|| Some(items.to_vec()), MARK)
}

/// Ten results of 1,000 tokens, each seen by the model.
fn ten() -> Vec<Item> {
    (1..=10).flat_map(|n| [call(n), result(n, 4000)]).chain([call(11)]).collect()
}

#[test]
fn the_oldest_results_leave_in_one_large_bite() {
    // 10,000 tokens are above three quarters of 12,000; down to 5,400 five leave.
    let pruned = plan(&ten(), 12_000, 1_000).unwrap();
    assert_eq!((pruned.view.pruned, pruned.left.results), (10, 5));
    assert_eq!(plan(&ten(), 14_000, 1_000), None, "there is room");
    assert_eq!(plan(&ten(), 10_500, 40_000).unwrap().left.results, 6, "the tail is at most a quarter of the window");
    assert_eq!(plan(&ten(), 12_000, 2_500).unwrap().left.results, 5);
}

#[test]
fn the_newest_tokens_stay() {
    // Nine are to leave, but the newest 1,100 tokens are in the last two.
    assert_eq!(plan(&ten(), 4_400, 40_000).unwrap().left.results, 8);
    // Nothing that the model has not seen.
    let unseen: Vec<Item> = (1..=10).map(call).chain((1..=10).map(|n| result(n, 4000))).collect();
    assert_eq!(plan(&unseen, 8_000, 0), None);
}

#[test]
fn a_small_bite_is_not_worth_a_cold_cache() {
    let mut items = vec![call(1), result(1, 1200), Item::User { text: "u".repeat(32_000) }, call(2)];
    assert_eq!(plan(&items, 10_000, 0), None);
    items.push(Item::User { text: "u".repeat(4_000) });
    assert_eq!(plan(&items, 10_000, 0).unwrap().left.results, 1, "but when the window is nearly full");
}

#[test]
fn what_waits_for_the_next_request_counts() {
    let (items, policy) = (ten(), ContextPolicy { protect_tokens: 1_000, prune_at: 75 });
    let (state, pending) = (state(&items), [Item::User { text: "u".repeat(12_000) }]);
    let next =
        |pending| NextRequest { state: &state, pending, window: 14_000, policy }.plan(|| Some(items.clone()), MARK);
    assert_eq!(next(&[]), None);
    assert!(next(&pending).is_some());
}

#[test]
fn an_answer_of_a_known_length_has_its_room() {
    let (items, policy) = (ten(), ContextPolicy { protect_tokens: 1_000, prune_at: 75 });
    let mut state = state(&items);
    state.surface.as_mut().unwrap().0.max_output = Some(6_000);
    assert!(
        NextRequest { state: &state, pending: &[], window: 14_000, policy }
            .plan(|| Some(items.clone()), MARK)
            .is_some()
    );
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
        view: View { pruned: 5 },
        min_bytes: MIN_BYTES,
        mark: MARK.to_owned(),
        left: PrunedContent::default(),
    };
    let mut masked = items.clone();
    let left = pruned.project(&mut masked, View::default(), &surface);
    let mark = format!("({MIN_BYTES} of c00000002)");
    let expected = PrunedContent {
        results: 1,
        bytes: BTreeMap::from([("other".to_owned(), MIN_BYTES - mark.len() as u64)]),
        seals: 3,
    };
    assert_eq!(left, expected);
    let Item::ToolResult { outcome, .. } = &masked[4] else { panic!("{masked:?}") };
    assert_eq!((outcome.status, outcome.summary.as_str(), outcome.content.as_str()), (ResultStatus::Ok, "s", &*mark));
    assert_eq!(masked[5], Item::Reasoning { text: "hm".to_owned(), seal: None });
    for same in [0, 1, 2, 3, 6, 7] {
        assert_eq!(masked[same], items[same]);
    }
    // A later view leaves what was masked as it is.
    pruned.view.pruned = 8;
    let before = masked[4].clone();
    assert_eq!(pruned.project(&mut masked, View { pruned: 5 }, &surface).results, 1);
    assert_eq!(masked[4], before);
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
    assert!(state.apply(&Record::from(pruned)).is_err(), "a view does not go back");
}
