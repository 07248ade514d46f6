//! A pod that is killed at every one of its points around a change of the view: the next start finds the old view or the
//! new one, never something between, and goes on.

use crate::fixtures::sound;
use crate::views::{SMALL, prunes, scene, short};
use pod::record::Record;
use testkit::{ModelScript, RunEnd, ScriptedAnswer};

#[test]
fn a_kill_around_a_change_leaves_the_old_view_or_the_new_one() {
    let reference = short();
    assert_eq!(prunes(&reference).len(), 1);
    let points = reference.points.numbered();
    let at = |wanted: &str| points.iter().position(|(name, _)| name == wanted).unwrap_or_else(|| panic!("no {wanted}"));
    let (first, last) = (at("commit:pruned"), at("view:changed"));
    // The hold and its commit before it, and the request behind it.
    let around = points.get(first.saturating_sub(12)..(last + 12).min(points.len())).unwrap();
    assert!(around.iter().any(|(name, _)| name == "pruned"));
    for (name, nth) in around {
        killed_at(name, *nth);
    }
}

fn killed_at(name: &str, nth: usize) {
    let what = format!("killed at {name} {nth}");
    let mut pod = scene();
    pod.points.kill(name, nth);
    let first = pod.run("first");
    assert!(matches!(first.how, RunEnd::Killed | RunEnd::Failed(_)), "{what}: {:?}", first.how);
    let (before, state) = (prunes(&pod), pod.state());
    assert_eq!(state.shown.view, before.last().map(|pruned| pruned.view).unwrap_or_default(), "{what}");
    pod.revive();
    pod.script = ModelScript::new([ScriptedAnswer::text("went on")]).windowed(SMALL);
    assert_eq!(pod.run("second").end().answer.as_deref(), Some("went on"), "{what}");
    let after = prunes(&pod);
    assert!(after.starts_with(&before) && after.len() <= before.len() + 1, "{what}: {after:?}");
    let shown =
        |(_, record): (u64, Record)| if let Record::Request(request) = record { Some(request.view) } else { None };
    let newest = pod.records().into_iter().rev().find_map(shown).unwrap();
    assert_eq!(newest, after.last().map(|pruned| pruned.view), "{what}");
    sound(&pod, &what);
}
