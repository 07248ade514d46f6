//! The order of the transforms of one point: install order, changed by what hooks say about each other. Does not depend
//! on chains.

use crate::feature::FeatureId;

/// What a hook says about its place at its point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HookPlace<'a> {
    pub(crate) feature: &'a FeatureId,
    /// It is asked before the hooks of these features.
    pub(crate) before: &'a [FeatureId],
    /// It is asked after the hooks of these features.
    pub(crate) after: &'a [FeatureId],
}

impl HookPlace<'_> {
    /// Whether this one has to be asked before another one.
    pub(crate) fn precedes(&self, other: &Self) -> bool {
        let named = self.before.contains(other.feature) || other.after.contains(self.feature);
        named && self.feature != other.feature
    }
}

/// Sorts hooks so that each one comes after those that precede it; otherwise they stay in their order. The plan refuses
/// cycles; without that they would stay as they are.
pub(crate) fn arranged<T>(mut hooks: Vec<T>, place: impl Fn(&T) -> HookPlace<'_>) -> Vec<T> {
    let mut sorted = Vec::with_capacity(hooks.len());
    while !hooks.is_empty() {
        let free = |one: &T| !hooks.iter().any(|other| place(other).precedes(&place(one)));
        let next = hooks.iter().position(free).unwrap_or(0);
        sorted.push(hooks.remove(next));
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_stay_in_their_order_but_for_what_they_say() {
        type Row = (
            &'static str,
            &'static [&'static str],
            &'static [&'static str],
        );
        let cases: [(&[Row], &[&str]); 5] = [
            (&[("a", &[], &[]), ("b", &[], &[])], &["a", "b"]),
            (
                &[("a", &[], &["b"]), ("b", &[], &[]), ("c", &[], &[])],
                &["b", "a", "c"],
            ),
            (
                &[("a", &[], &[]), ("b", &[], &[]), ("c", &["a"], &[])],
                &["b", "c", "a"],
            ),
            (&[("a", &[], &["gone"]), ("b", &["b"], &["b"])], &["a", "b"]),
            (
                &[("a", &[], &["c"]), ("b", &["c"], &[]), ("c", &[], &[])],
                &["b", "c", "a"],
            ),
        ];
        let ids = |names: &[&str]| {
            names
                .iter()
                .map(|name| format!("user:{name}").parse().unwrap())
                .collect::<Vec<_>>()
        };
        for (rows, expected) in cases {
            let hooks: Vec<(FeatureId, Vec<FeatureId>, Vec<FeatureId>)> = rows
                .iter()
                .map(|(id, before, after)| (ids(&[id]).remove(0), ids(before), ids(after)))
                .collect();
            let sorted = arranged(hooks, |(feature, before, after)| HookPlace {
                feature,
                before,
                after,
            });
            assert_eq!(
                sorted.into_iter().map(|(id, ..)| id).collect::<Vec<_>>(),
                ids(expected),
                "{rows:?}"
            );
        }
    }
}
