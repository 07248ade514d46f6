//! Everything once for each point at which the pod can be killed.

use super::FeatureUnderTest;

/// Does `act` once in a new host to see the points it comes by, those before and after each record among them; then
/// once more for each of them, in a host that is killed there and opened again before `check` looks at it. Answers how
/// many kills there were. `check` is told where, for its messages; `""` is the run that was not killed.
///
/// # Panics
/// As `act` and `check` do, and when `act` comes by nothing.
pub fn killed_anywhere(
    host: impl Fn() -> FeatureUnderTest,
    mut act: impl FnMut(&mut FeatureUnderTest),
    mut check: impl FnMut(&mut FeatureUnderTest, &str),
) -> usize {
    let mut whole = host();
    let before = whole.points().len();
    act(&mut whole);
    let points = whole.points().split_off(before);
    assert!(!points.is_empty(), "nothing was done that a kill could interrupt");
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
