//! A pod that is killed at every one of its points around a change of the view: the next start finds the old view or the
//! new one, never something between, and goes on.

use crate::fixtures::sound;
use crate::views::{SMALL, prunes, turn};
use crate::{compaction, views};
use pod::record::{Record, ViewLevel};
use testkit::{ModelScript, PodUnderTest, RunEnd, ScriptedAnswer};

/// A pod whose next turn has a change of the view.
struct Case {
    scene: fn() -> PodUnderTest,
    input: String,
    window: u64,
    level: ViewLevel,
}

impl Case {
    fn new(scene: fn() -> PodUnderTest, window: u64, level: ViewLevel) -> Self {
        Self {
            scene,
            input: "first".to_owned(),
            window,
            level,
        }
    }

    /// The points from the hold and its commit before the first change to the request behind the last one.
    fn around(&self) -> Vec<(String, usize)> {
        let reference = (self.scene)();
        assert!(matches!(reference.run(&self.input).how, RunEnd::Ended(_)));
        let changes = prunes(&reference);
        assert!(
            changes.iter().any(|change| change.level == self.level),
            "{changes:?}"
        );
        let points = reference.points.numbered();
        let at = |wanted: &str| {
            points
                .iter()
                .position(|(name, _)| name == wanted)
                .unwrap_or_else(|| panic!("no {wanted}"))
        };
        let first = at("commit:pruned");
        let last = at("view:changed");
        let around = points
            .get(first.saturating_sub(12)..(last + 16).min(points.len()))
            .unwrap();
        assert!(around.iter().any(|(name, _)| name == "pruned"));
        around.to_vec()
    }

    fn killed_at(&self, name: &str, nth: usize) {
        let what = format!("{:?}, killed at {name} {nth}", self.level);
        let mut pod = (self.scene)();
        pod.points.kill(name, nth);
        let first = pod.run(&self.input);
        assert!(
            matches!(first.how, RunEnd::Killed | RunEnd::Failed(_)),
            "{what}: {:?}",
            first.how
        );
        let before = prunes(&pod);
        let state = pod.state();
        assert_eq!(
            state.shown.view,
            before.last().map(|pruned| pruned.view).unwrap_or_default(),
            "{what}"
        );
        pod.revive();
        pod.script = ModelScript::new([ScriptedAnswer::text("went on")]).windowed(self.window);
        assert_eq!(
            pod.run("second").end().answer.as_deref(),
            Some("went on"),
            "{what}"
        );
        let after = prunes(&pod);
        assert!(
            after.starts_with(&before) && after.len() <= before.len() + 1,
            "{what}: {after:?}"
        );
        let shown = |(_, record): (u64, Record)| {
            if let Record::Request(request) = record {
                Some(request.view)
            } else {
                None
            }
        };
        let newest = pod.records().into_iter().rev().find_map(shown).unwrap();
        assert_eq!(newest, after.last().map(|pruned| pruned.view), "{what}");
        // The note of steps that left comes with the next request, also of the next start.
        let told = after
            .iter()
            .filter(|change| change.level != ViewLevel::Results)
            .count();
        assert_eq!(compaction::notes(&pod).len(), told, "{what}");
        sound(&pod, &what);
    }

    fn killed_around(&self) {
        for (name, nth) in self.around() {
            self.killed_at(&name, nth);
        }
    }
}

#[test]
fn a_kill_around_a_change_of_results_leaves_the_old_view_or_the_new_one() {
    Case::new(views::scene, SMALL, ViewLevel::Results).killed_around();
}

#[test]
fn a_kill_around_a_change_of_steps_leaves_the_old_view_or_the_new_one() {
    Case::new(compaction::scene, compaction::WINDOW, ViewLevel::Steps).killed_around();
}

/// A pod after a turn that nearly fills what a request may keep.
fn ended() -> PodUnderTest {
    let mut pod = views::scene();
    pod.script = ModelScript::new(turn(8, "done")).windowed(SMALL);
    pod.run("first").end();
    assert!(prunes(&pod).is_empty());
    pod.script = ModelScript::new([ScriptedAnswer::text("read")]).windowed(SMALL);
    pod
}

#[test]
fn a_kill_around_a_change_between_two_turns_leaves_the_old_view_or_the_new_one() {
    let mut case = Case::new(ended, SMALL, ViewLevel::Results);
    case.input = "x".repeat(6_000);
    let reference = ended();
    reference.run(&case.input).end();
    let order: Vec<Record> = reference
        .records()
        .into_iter()
        .map(|(_, record)| record)
        .collect();
    let last = |of: fn(&Record) -> bool| order.iter().rposition(of).unwrap();
    let begun = last(|record| matches!(record, Record::TurnStarted(_)));
    let changed = last(|record| matches!(record, Record::Pruned(_)));
    let sent = last(|record| matches!(record, Record::Request(_)));
    assert!(
        begun < changed && changed < sent,
        "the change is the first thing of the turn: {begun} {changed} {sent}"
    );
    case.killed_around();
}
