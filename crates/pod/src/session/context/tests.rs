//! Tokens by contributor, before and after a count of the provider.

#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::record::{Encoder, SurfaceSet, SystemSource};
use crate::session::fold::SessionState;
use crate::session::view::{ContextPolicy, MarkTexts, NextRequest, ViewTries};
use llm_worker::tool::{ToolDefinition, ToolEffect};
use llm_worker::{CallId, ResultStatus, ToolOutcome};
use std::cell::Cell;
use std::collections::BTreeSet;

fn tool(name: &str, schema: usize) -> ToolDefinition {
    let description = String::new();
    let schema = "s".repeat(schema).into();
    ToolDefinition {
        name: name.to_owned(),
        description,
        schema,
        effect: ToolEffect::ReadOnly,
    }
}

/// 96 bytes of `Read`, 300 of system prompt: 200 of the host with its separators, 60 of instructions, 40 of a feature.
fn surface(model: &str) -> (Surface, SurfaceSources) {
    let surface = Surface {
        generation: 1,
        model: model.to_owned(),
        system: "x".repeat(300),
        tools: vec![tool("Read", 96)],
        max_output: None,
        effort: None,
        thinking: false,
        media: Vec::new(),
    };
    let part = |source: &str, bytes| SystemSource {
        source: source.to_owned(),
        bytes,
    };
    let system = vec![
        part("host", 196),
        part("builtin:files", 40),
        part("instructions", 60),
    ];
    (
        surface,
        SurfaceSources {
            system,
            tools: vec!["builtin:files".to_owned()],
        },
    )
}

fn user(bytes: usize) -> Item {
    Item::user("u".repeat(bytes))
}

fn result(bytes: usize) -> Item {
    let summary = String::new();
    let content = "r".repeat(bytes);
    Item::ToolResult {
        id: CallId::new(1).unwrap(),
        outcome: ToolOutcome {
            status: ResultStatus::Ok,
            summary,
            content,
            attachments: Vec::new(),
        },
    }
}

fn kind(part: &ContextPart) -> ContextKind {
    known(&part.kind).unwrap()
}

fn tokens(usage: &ContextStatus) -> Vec<(ContextKind, Option<&str>, u64, u64)> {
    usage
        .parts
        .iter()
        .map(|part| (kind(part), part.name.as_deref(), part.tokens, part.cached))
        .collect()
}

/// 1,000 bytes: 400 fixed, 100 of inputs, 500 of results.
fn metered() -> (ContextMeter, Surface) {
    let ((surface, sources), mut meter) = (surface("m"), ContextMeter::default());
    meter.surface(&surface, &sources, None);
    meter.add(&user(100), None);
    meter.add(&result(500), Some("Read"));
    (meter, surface)
}

#[test]
fn before_a_count_four_bytes_are_a_token() {
    let (meter, surface) = metered();
    let usage = meter.usage(&surface, Some(1_000));
    assert_eq!(
        (usage.used, usage.percent, usage.measured, usage.cached),
        (250, Some(25), false, 0)
    );
    assert_eq!(
        tokens(&usage),
        [
            (ContextKind::Results, Some("Read"), 125, 0),
            (ContextKind::System, None, 50, 0),
            (ContextKind::Schema, Some("Read"), 25, 0),
            (ContextKind::Inputs, None, 25, 0),
            (ContextKind::Instructions, None, 15, 0),
            (ContextKind::FeatureInstructions, None, 10, 0),
        ]
    );
    let features = usage
        .parts
        .iter()
        .filter_map(|part| part.feature.as_deref());
    assert_eq!(
        features.collect::<Vec<_>>(),
        ["builtin:files"; 2],
        "of the schema and the instruction"
    );
    assert_eq!(meter.usage(&surface, None).percent, None);
}

#[test]
fn a_count_of_the_provider_decides_and_parts_add_up_to_it() {
    let (mut meter, surface) = metered();
    meter.request(&surface);
    meter.response(&Usage {
        input: 777,
        output: 9,
        cached: 400,
        cache_write: 0,
        reasoning: 0,
    });
    let usage = meter.usage(&surface, None);
    assert_eq!((usage.used, usage.measured, usage.cached), (777, true, 400));
    assert_eq!(usage.parts.iter().map(|part| part.tokens).sum::<u64>(), 777);
    // 400 of 1,000 bytes are fixed: 310 tokens, all from the cache; the other 90 are of what follows.
    let cached = |kinds: &[ContextKind]| {
        usage
            .parts
            .iter()
            .filter(|part| kinds.contains(&kind(part)))
            .map(|part| part.cached)
            .sum::<u64>()
    };
    let fixed = [
        ContextKind::System,
        ContextKind::Instructions,
        ContextKind::FeatureInstructions,
        ContextKind::Schema,
    ];
    assert_eq!(
        (
            cached(&fixed),
            cached(&[ContextKind::Inputs, ContextKind::Results])
        ),
        (310, 89)
    );
    // What follows is counted at the same rate.
    meter.add(&result(500), Some("Read"));
    assert_eq!(meter.usage(&surface, None).used, 777 * 1_500 / 1_000);
    // An answer without a count changes nothing.
    meter.request(&surface);
    meter.response(&Usage::default());
    assert_eq!(meter.usage(&surface, None).used, 777 * 1_500 / 1_000);
}

#[test]
fn another_model_counts_anew() {
    let (mut meter, first) = metered();
    meter.request(&first);
    meter.response(&Usage {
        input: 777,
        ..Usage::default()
    });
    let (same, sources) = surface("m");
    meter.surface(&same, &sources, Some("m"));
    assert!(meter.usage(&same, None).measured);
    let (other, sources) = surface("other");
    meter.surface(&other, &sources, Some("m"));
    assert_eq!(
        (
            meter.usage(&other, None).used,
            meter.usage(&other, None).measured
        ),
        (250, false)
    );
}

#[test]
fn a_surface_without_sources_is_the_host_s() {
    let ((surface, _), mut meter) = (surface("m"), ContextMeter::default());
    meter.surface(&surface, &SurfaceSources::default(), None);
    let usage = meter.usage(&surface, None);
    assert_eq!(
        tokens(&usage),
        [
            (ContextKind::System, None, 75, 0),
            (ContextKind::Schema, Some("Read"), 25, 0)
        ]
    );
}

#[test]
fn names_and_parts_are_bounded() {
    let ((surface, sources), mut meter) = (surface("m"), ContextMeter::default());
    meter.surface(&surface, &sources, None);
    for number in 0..2 * MAX_NAMES {
        let source = format!("feature-{number}");
        meter.add(
            &Item::System {
                source,
                text: "n".repeat(40),
            },
            None,
        );
    }
    assert!(meter.notes.len() <= MAX_NAMES + 1);
    let usage = meter.usage(&surface, None);
    assert_eq!(usage.parts.len(), MAX_PARTS);
    assert_eq!(
        usage.parts.iter().map(|part| part.tokens).sum::<u64>(),
        usage.used
    );
    assert_eq!(usage.parts.last().map(kind), Some(ContextKind::Other));
    assert_eq!(
        tokens(&usage)[0],
        (ContextKind::Notes, Some(OTHER), 40 * 256 / 4, 0)
    );
}

#[test]
fn what_left_adds_up_over_all_changes_and_is_told_in_tokens_of_today() {
    let (mut meter, surface) = metered();
    let left = |results, bytes: &[(&str, u64)], seals| PrunedContent {
        results,
        bytes: bytes
            .iter()
            .map(|(tool, bytes)| ((*tool).to_owned(), *bytes))
            .collect(),
        seals,
        ..PrunedContent::default()
    };
    assert_eq!(
        (
            meter.usage(&surface, None).left_results,
            meter.usage(&surface, None).left
        ),
        (0, Vec::new())
    );
    meter.left(&left(2, &[("Read", 300)], 0));
    meter.left(&left(1, &[("Read", 100), ("Bash", 80)], 40));
    let usage = meter.usage(&surface, None);
    let parts = |usage: &ContextStatus| -> Vec<(ContextKind, Option<String>, u64)> {
        usage
            .left
            .iter()
            .map(|part| (kind(part), part.name.clone(), part.tokens))
            .collect()
    };
    let of = |tokens: [u64; 3]| {
        let names = [Some("Read".to_owned()), Some("Bash".to_owned()), None];
        let kinds = [
            ContextKind::Results,
            ContextKind::Results,
            ContextKind::Reasoning,
        ];
        kinds
            .into_iter()
            .zip(names)
            .zip(tokens)
            .map(|((kind, name), tokens)| (kind, name, tokens))
            .collect::<Vec<_>>()
    };
    assert_eq!((usage.left_results, parts(&usage)), (3, of([100, 20, 10])));
    // Two bytes are a token, says the provider.
    meter.request(&surface);
    meter.response(&Usage {
        input: meter.requested / 2,
        ..Usage::default()
    });
    assert_eq!(parts(&meter.usage(&surface, None)), of([200, 40, 20]));
}

/// What is told is what decides: at that size a request keeps everything, and one token above it results leave.
#[test]
fn results_leave_above_the_size_that_is_told() {
    for (prune_at, max_output) in [
        (75, None),
        (75, Some(300)),
        (10, Some(1)),
        (95, Some(5_000)),
    ] {
        let ((surface, sources), policy) = (
            surface("m"),
            ContextPolicy {
                protect_tokens: 0,
                prune_at,
                compact_at: 95,
            },
        );
        let surface = Surface {
            max_output,
            ..surface
        };
        let encoder = Encoder {
            id: "neutral".to_owned(),
            version: 1,
        };
        let mut state = SessionState::default();
        state
            .apply(
                &SurfaceSet {
                    surface,
                    encoder,
                    sources,
                }
                .into(),
            )
            .unwrap();
        // A result, because only such can leave.
        let outcome = ToolOutcome {
            status: ResultStatus::Ok,
            summary: String::new(),
            content: "r".repeat(4_000),
            attachments: Vec::new(),
        };
        state.count(Item::ToolResult {
            id: CallId::new(1).unwrap(),
            outcome,
        });
        let used = state.context(None).unwrap().used;
        let asks = |window| {
            let asked = Cell::new(false);
            let next = NextRequest {
                state: &state,
                pending: &[],
                window: Some(window),
                policy,
                tries: ViewTries::default(),
            };
            let items = || asked.replace(true).then(Vec::new);
            drop(next.plan(items, &MarkTexts::default(), &BTreeSet::new()));
            asked.get()
        };
        for window in (used / 2)..(used * 11) {
            let above = state
                .context_under(Some(window), policy)
                .unwrap()
                .masks_above
                .unwrap();
            assert_eq!(
                asks(window),
                used > above,
                "{used} of {window}, {prune_at}, {max_output:?}"
            );
        }
        assert_eq!(state.context_under(None, policy).unwrap().masks_above, None);
    }
}

/// The newest part of what can leave stays: at most a quarter of the room, or of what is used where a person asks.
#[test]
fn what_would_be_freed_is_what_can_leave_less_what_is_protected() {
    let (surface, sources) = surface("m");
    let encoder = Encoder {
        id: "neutral".to_owned(),
        version: 1,
    };
    let mut state = SessionState::default();
    state
        .apply(
            &SurfaceSet {
                surface,
                encoder,
                sources,
            }
            .into(),
        )
        .unwrap();
    state.count(result(40_000));
    state.count(Item::ToolCall {
        id: CallId::new(2).unwrap(),
        name: "Bash".to_owned(),
        arguments: "c".repeat(7_996),
    });
    // Four bytes are a token: 10,000 of results, 2,000 of calls, 100 of the fixed beginning.
    let freed = |window, protect_tokens| {
        let policy = ContextPolicy {
            protect_tokens,
            ..ContextPolicy::default()
        };
        let usage = state.context_under(window, policy).unwrap();
        (usage.masking_frees, usage.steps_free)
    };
    assert_eq!(freed(Some(100_100), 1_000), (Some(9_000), Some(11_000)));
    assert_eq!(
        freed(Some(8_100), 1_000_000),
        (Some(8_000), Some(12_000 - 12_101 / 4))
    );
    assert_eq!(freed(None, 1_000), (None, Some(11_000)));
    assert_eq!(
        freed(Some(1_000_000), 1_000_000),
        (Some(0), Some(12_000 - 12_101 / 4))
    );
}
