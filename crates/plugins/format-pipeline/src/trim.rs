//! Which parts of a result are shown, and how much of each: the most value for the tokens there are.

/// Below this many parts the best choice is computed; from here on they are taken by value per token.
const EXACT: usize = 100;

/// Steps into which a budget is cut for the exact choice; the price of a part is rounded up to them.
const STEPS: u64 = 4096;

/// Ways to show one part, each with its tokens and its value. Not showing it costs and is worth nothing.
pub type Choices = Vec<(u64, u64)>;

/// The way to show each part, none where it is left out. The tokens in sum are at most the budget.
pub fn choose(parts: &[Choices], budget: u64) -> Vec<Option<usize>> {
    if parts.len() < EXACT {
        exact(parts, budget)
    } else {
        greedy(parts, budget)
    }
}

/// The best sum, by the sums of the parts before each part.
fn exact(parts: &[Choices], budget: u64) -> Vec<Option<usize>> {
    let step = budget.div_ceil(STEPS).max(1);
    let room = usize::try_from(budget / step).unwrap_or(0);
    let price = |tokens: u64| usize::try_from(tokens.div_ceil(step)).unwrap_or(usize::MAX);
    let mut best = vec![0_u64; room + 1];
    let mut taken = Vec::with_capacity(parts.len());
    for ways in parts {
        let mut next = best.clone();
        let mut way_at = vec![None; room + 1];
        for (way, (tokens, value)) in ways.iter().enumerate() {
            let price = price(*tokens);
            let sums = next.iter_mut().zip(&mut way_at).skip(price);
            for (before, (sum, at)) in best.iter().zip(sums) {
                if before + value > *sum {
                    (*sum, *at) = (before + value, Some(way));
                }
            }
        }
        best = next;
        taken.push(way_at);
    }
    let mut at = room;
    let mut chosen = vec![None; parts.len()];
    for ((way_at, ways), slot) in taken.iter().zip(parts).zip(&mut chosen).rev() {
        *slot = way_at.get(at).copied().flatten();
        let tokens = slot.and_then(|way| ways.get(way)).map_or(0, |way| way.0);
        at = at.saturating_sub(price(tokens));
    }
    chosen
}

/// By value per token: the cheapest way of each part first, then better ways while there is room.
fn greedy(parts: &[Choices], budget: u64) -> Vec<Option<usize>> {
    let mut all: Vec<(usize, usize)> = parts
        .iter()
        .enumerate()
        .flat_map(|(part, ways)| (0..ways.len()).map(move |way| (part, way)))
        .collect();
    let way = |(part, way): (usize, usize)| {
        let ways = parts.get(part);
        ways.and_then(|ways| ways.get(way))
            .copied()
            .unwrap_or((0, 0))
    };
    all.sort_by_key(|one| {
        let (tokens, value) = way(*one);
        std::cmp::Reverse(value.saturating_mul(1 << 20) / tokens.max(1))
    });
    let mut chosen = vec![None; parts.len()];
    let mut left = budget;
    for (part, at) in all {
        let Some(slot) = chosen.get_mut(part) else {
            continue;
        };
        let (tokens, value) = way((part, at));
        let (before, worth) = slot.map_or((0, 0), |now| way((part, now)));
        if value > worth && tokens <= left + before {
            left = left + before - tokens;
            *slot = Some(at);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(parts: &[Choices], chosen: &[Option<usize>]) -> (u64, u64) {
        let each = parts
            .iter()
            .zip(chosen)
            .filter_map(|(ways, way)| Some(ways[(*way)?]));
        each.fold((0, 0), |(t, v), (tokens, value)| (t + tokens, v + value))
    }

    #[test]
    fn the_exact_choice_is_the_best_of_all() {
        let mut seed = 1_u64;
        let mut dice = move |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            (seed >> 33) % below
        };
        for round in 0..200 {
            let parts: Vec<Choices> = (0..5)
                .map(|_| (0..2).map(|_| (1 + dice(30), 1 + dice(50))).collect())
                .collect();
            let budget = dice(100);
            let (tokens, value) = sums(&parts, &exact(&parts, budget));
            assert!(tokens <= budget, "round {round}");
            let best = (0..3_usize.pow(5))
                .map(|mut code| {
                    let all: Vec<Option<usize>> = (0..5)
                        .map(|_| {
                            let way = (code % 3).checked_sub(1);
                            code /= 3;
                            way
                        })
                        .collect();
                    sums(&parts, &all)
                })
                .filter(|(tokens, _)| *tokens <= budget)
                .map(|(_, value)| value)
                .max();
            assert_eq!(Some(value), best, "round {round}");
            let (tokens, by_density) = sums(&parts, &greedy(&parts, budget));
            assert!(tokens <= budget && by_density <= value, "round {round}");
            assert!(
                by_density * 3 >= value,
                "round {round}: {by_density} of {value}"
            );
        }
    }

    #[test]
    fn a_large_budget_is_rounded_to_the_safe_side() {
        let parts = vec![vec![(1_000_001, 1)]; 10];
        let (tokens, value) = sums(&parts, &choose(&parts, 9_999_999));
        assert!(tokens <= 9_999_999 && value == 9, "{tokens} {value}");
        assert_eq!(choose(&[], 5), []);
        assert_eq!(choose(&[vec![], vec![(u64::MAX, 1)]], 0), [None, None]);
    }
}
