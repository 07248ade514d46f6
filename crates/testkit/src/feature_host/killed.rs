//! Repeating a test once for each point at which the pod can be killed.

use super::FeatureUnderTest;

/// Runs `act` once in a new host to record the points that it reaches, among them those before and after each record.
/// Then runs it once more for each point, in a host that is killed there and opened again before `check` runs. Returns
/// the number of kills. `check` gets the name of the point for its messages; `""` is the run without a kill.
///
/// # Panics
/// As `act` and `check` do, and if `act` reaches no point.
pub fn killed_anywhere(
    host: impl Fn() -> FeatureUnderTest,
    mut act: impl FnMut(&mut FeatureUnderTest),
    mut check: impl FnMut(&mut FeatureUnderTest, &str),
) -> usize {
    let mut whole = host();
    let before = whole.points().len();
    act(&mut whole);
    let points = whole.points().split_off(before);
    assert!(
        !points.is_empty(),
        "nothing was done that a kill could interrupt"
    );
    check(&mut whole, "");
    let mut kills = 0;
    for (name, nth) in &points {
        let mut host = host();
        host.kill_at(name, *nth);
        kills += usize::from(host.dies(&mut act));
        check(&mut host, &format!("killed at {name} {nth}"));
    }
    kills
}
