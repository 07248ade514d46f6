//! When a budget is used up, what a turn has of it, and the words for it.

use super::*;
use llm_worker::Usage;

fn spent(requests: u64, tokens: u64, cents: u64, seconds: u64) -> Spent {
    let usage = Usage {
        input: tokens,
        ..Usage::default()
    };
    Spent {
        requests,
        usage,
        cost: Some(Cost::billionths(cents * 10_000_000)),
        wall_us: seconds * 1_000_000,
    }
}

fn limits(steps: u64, tokens: u64, cents: u64, seconds: u64) -> PodLimits {
    PodLimits {
        max_steps: Some(steps),
        max_cost: Some(Cost::billionths(cents * 10_000_000)),
        max_tokens: Some(tokens),
        max_wall: Some(Duration::from_secs(seconds)),
    }
}

#[test]
fn a_budget_is_used_up_kind_by_kind() {
    let all = limits(3, 100, 5, 60);
    let cases: [(Spent, &[BudgetKind]); 6] = [
        (spent(2, 99, 4, 59), &[]),
        (spent(3, 99, 4, 59), &[BudgetKind::Steps]),
        (spent(2, 99, 5, 59), &[BudgetKind::Cost]),
        (spent(2, 101, 4, 59), &[BudgetKind::Tokens]),
        (spent(2, 99, 4, 60), &[BudgetKind::Time]),
        (spent(9, 999, 9, 90), &BudgetKind::ALL),
    ];
    for (used, kinds) in cases {
        assert_eq!(all.reached(used), kinds, "{used:?}");
        assert_eq!(PodLimits::default().reached(used), [], "no limits");
    }
}

#[test]
fn a_turn_has_what_is_left_to_run_and_pod() {
    let run = RunLimits {
        max_steps: 5,
        tool_concurrency: 8,
        max_cost: None,
        max_tokens: Some(50),
        max_wall: None,
    };
    assert_eq!(run.within(PodLimits::default()), run);
    let within = run.within(limits(7, 100, 5, 60).less(spent(4, 40, 1, 20)));
    assert_eq!(
        (within.max_steps, within.tool_concurrency, within.max_tokens),
        (3, 8, Some(50))
    );
    assert_eq!(
        (within.max_cost, within.max_wall),
        (
            Some(Cost::billionths(40_000_000)),
            Some(Duration::from_secs(40))
        )
    );
    assert_eq!(run.within(limits(u64::MAX, 1, 5, 60)).max_steps, 5);
    assert_eq!(
        run.within(limits(1, 1, 1, 1).less(spent(2, 2, 2, 2)))
            .max_steps,
        0
    );
}

#[test]
fn the_reason_says_whose_limit_it_is_and_what_was_used() {
    let state = SessionState::default();
    let reason = |kinds: &[BudgetKind]| {
        pod_stopped(
            &state,
            limits(3, 1, 250, 4000),
            spent(3, 1000, 250, 61),
            kinds,
        )
        .reason
    };
    let used = "it used 3 steps, 1000 tokens, $2.50 and 1m 1s";
    for (kinds, most) in [
        (&[BudgetKind::Steps][..], "3 steps"),
        (&[BudgetKind::Cost], "$2.50"),
        (&[BudgetKind::Tokens], "1 token"),
        (&[BudgetKind::Time], "1h 6m 40s"),
        (&[BudgetKind::Steps, BudgetKind::Cost], "3 steps and $2.50"),
    ] {
        assert_eq!(
            reason(kinds),
            format!("the pod reached its limit of {most}; {used}")
        );
    }
    let renewed = SessionState {
        budget_since: spent(1, 0, 0, 0),
        ..SessionState::default()
    };
    let first = pod_stopped(
        &renewed,
        limits(3, 1, 1, 1),
        spent(2, 1, 0, 0),
        &[BudgetKind::Tokens],
    )
    .reason;
    assert!(!first.contains("again"), "{first}");
    let again = pod_stopped(
        &renewed,
        limits(3, 1, 1, 1),
        spent(4, 0, 0, 0),
        &[BudgetKind::Steps],
    );
    assert_eq!(
        again.reason,
        "the pod reached its limit of 3 steps again; it used 4 steps, $0 and 0s"
    );
    assert_eq!(
        (again.cause, again.budget),
        (Some(HoldCause::Budget), Some(BudgetScope::Pod))
    );
    // A run that a restart interrupted after two of its five steps.
    let left = RunLimits {
        max_steps: 3,
        tool_concurrency: 8,
        max_cost: None,
        max_tokens: None,
        max_wall: None,
    };
    let run = run_stopped(
        left,
        spent(2, 0, 0, 0),
        Spent {
            cost: None,
            ..spent(5, 0, 0, 9)
        },
        BudgetKind::Steps,
    );
    assert_eq!(
        run.reason,
        "the run reached its limit of 5 steps; it used 5 steps and 9s"
    );
    assert_eq!(run.budget, Some(BudgetScope::Run));
}
