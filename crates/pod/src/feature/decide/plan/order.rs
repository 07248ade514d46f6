//! Orders numbers so that each one comes after those it needs, and finds the cycles. Does not depend on features.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// The needs of each number, and whether they are strict.
pub(super) type Needs = Vec<BTreeMap<usize, bool>>;

/// Every number once, in order; ties by number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) sequence: Vec<usize>,
    /// Numbers in a cycle of strict needs only, each with that cycle.
    pub(super) cycles: BTreeMap<usize, Vec<usize>>,
    /// Optional needs that were dropped because they would close a cycle: who, whom.
    pub(super) cut: BTreeSet<(usize, usize)>,
}

/// Orders. A cycle loses all its optional needs; one without optional needs is reported to all its members. Without
/// cycles it takes about as many steps as there are needs.
pub(super) fn order(mut needs: Needs) -> Order {
    let mut needed_by: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (who, whom) in needs.iter().enumerate() {
        whom.keys()
            .for_each(|whom| needed_by.entry(*whom).or_default().push(who));
    }
    let mut left: BTreeSet<usize> = (0..needs.len()).collect();
    let mut ready: BTreeSet<usize> = needs
        .iter()
        .enumerate()
        .filter(|(_, whom)| whom.is_empty())
        .map(|(at, _)| at)
        .collect();
    let mut order = Order::default();
    while let Some(&first) = left.first() {
        let Some(next) = ready.pop_first() else {
            untie(cycle(&needs, first), &mut needs, &mut ready, &mut order);
            continue;
        };
        left.remove(&next);
        order.sequence.push(next);
        for waiting in needed_by.get(&next).into_iter().flatten() {
            if let Some(whom) = needs.get_mut(*waiting)
                && whom.remove(&next).is_some()
                && whom.is_empty()
            {
                ready.insert(*waiting);
            }
        }
    }
    order
}

/// The cycle that is reached from `start` by always taking the first open need; it begins with its smallest number.
fn cycle(needs: &Needs, start: usize) -> Vec<usize> {
    let mut path = Vec::new();
    let mut seen = BTreeMap::new();
    let mut at = start;
    while !seen.contains_key(&at) {
        seen.insert(at, path.len());
        path.push(at);
        let Some(next) = needs.get(at).and_then(|whom| whom.keys().next()) else {
            break;
        };
        at = *next;
    }
    let mut cycle = path.split_off(seen.get(&at).copied().unwrap_or(0));
    let smallest = cycle
        .iter()
        .enumerate()
        .min_by_key(|(_, number)| **number)
        .map_or(0, |(at, _)| at);
    cycle.rotate_left(smallest);
    cycle
}

/// Most names of a cycle in a message.
const MAX_PATH: usize = 6;

/// `a → b → a`, with at most [`MAX_PATH`] names.
pub(super) fn path<'a, T: Display + 'a>(
    cycle: &[usize],
    named: impl Fn(usize) -> Option<&'a T>,
) -> String {
    let name = |at: &usize| named(*at).map(ToString::to_string).unwrap_or_default();
    let mut names: Vec<_> = cycle.iter().take(MAX_PATH).map(name).collect();
    if cycle.len() > MAX_PATH {
        names.push(format!("{} more", cycle.len() - MAX_PATH));
    }
    names.extend(cycle.first().map(name));
    names.join(" → ")
}

/// Drops optional needs so that at least one number becomes ready.
fn untie(cycle: Vec<usize>, needs: &mut Needs, ready: &mut BTreeSet<usize>, order: &mut Order) {
    let edges = || {
        cycle
            .iter()
            .copied()
            .zip(cycle.iter().copied().cycle().skip(1))
    };
    let soft: Vec<_> = edges()
        .filter(|(who, whom)| needs.get(*who).and_then(|n| n.get(whom)) == Some(&false))
        .collect();
    if soft.is_empty() {
        for member in &cycle {
            if let Some(needs) = needs.get_mut(*member) {
                needs.clear();
            }
            ready.insert(*member);
            order.cycles.insert(*member, cycle.clone());
        }
        return;
    }
    for (who, whom) in soft {
        order.cut.insert((who, whom));
        if let Some(open) = needs.get_mut(who)
            && open.remove(&whom).is_some()
            && open.is_empty()
        {
            ready.insert(who);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `who>whom` needs, `who?whom` can do without.
    fn ordered(count: usize, edges: &[(usize, char, usize)]) -> Order {
        let mut needs: Needs = vec![BTreeMap::new(); count];
        for (who, how, whom) in edges {
            needs[*who].insert(*whom, *how == '>');
        }
        order(needs)
    }

    #[test]
    fn everybody_comes_after_whom_they_need_and_ties_go_by_number() {
        type Case = (usize, &'static [(usize, char, usize)], &'static [usize]);
        let cases: [Case; 5] = [
            (3, &[], &[0, 1, 2]),
            (3, &[(0, '>', 2)], &[1, 2, 0]),
            (4, &[(0, '>', 1), (0, '?', 3), (1, '>', 3)], &[2, 3, 1, 0]),
            (4, &[(1, '>', 0), (2, '>', 0), (3, '>', 1)], &[0, 1, 2, 3]),
            (0, &[], &[]),
        ];
        for (count, edges, expected) in cases {
            let order = ordered(count, edges);
            assert_eq!(
                (
                    order.sequence.as_slice(),
                    order.cycles.len(),
                    order.cut.len()
                ),
                (expected, 0, 0),
                "{edges:?}"
            );
        }
    }

    #[test]
    fn a_cycle_is_cut_where_it_can_be_and_told_where_it_cannot() {
        let firm = ordered(4, &[(1, '>', 3), (3, '>', 2), (2, '>', 1), (0, '>', 3)]);
        assert_eq!(firm.sequence, [1, 2, 3, 0]);
        assert_eq!(
            firm.cycles,
            [1, 2, 3]
                .into_iter()
                .map(|at| (at, vec![1, 3, 2]))
                .collect()
        );
        let own = ordered(2, &[(1, '>', 1)]);
        assert_eq!(own.cycles, [(1, vec![1])].into());
        let soft = ordered(3, &[(0, '>', 1), (1, '?', 2), (2, '>', 0)]);
        assert_eq!(
            (soft.sequence.as_slice(), soft.cut),
            (&[1, 0, 2][..], [(1, 2)].into())
        );
        assert_eq!(soft.cycles.len(), 0);
    }
}
