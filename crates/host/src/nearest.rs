//! The known name nearest to an unknown one. Has no list of its own.

/// The fewest letters of a name that are taken for its beginning.
const BEGINNING: usize = 3;

/// One of `known`: one that the unknown name begins, without a namespace such as `builtin:`, too; else the nearest, unless each of them is too far away.
pub fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let bare = |name: &'a str| name.split_once(':').map_or(name, |(_, bare)| bare);
    let begun = |name: &&&'a str| {
        unknown.len() >= BEGINNING && (name.starts_with(unknown) || bare(name).starts_with(unknown))
    };
    if let Some(name) = known.iter().find(begun) {
        return Some(name);
    }
    let far = |name: &&'a str| distance(name, unknown).min(distance(bare(name), unknown));
    let nearest = known.iter().copied().min_by_key(far)?;
    let allowed = (unknown.len() / 2).clamp(1, 3).max(unknown.len() / 3);
    (far(&nearest) <= allowed).then_some(nearest)
}

/// How many letters differ.
pub fn distance(one: &str, other: &str) -> usize {
    strsim::damerau_levenshtein(one, other)
}

/// "did you mean …? ", to stand before a list of what is known; empty when nothing is near.
pub fn did_you_mean(unknown: &str, known: &[&str]) -> String {
    nearest(unknown, known)
        .map(|name| format!("did you mean `{name}`? "))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_name_is_found_without_its_namespace() {
        let known = [
            "builtin:command-blocklist",
            "builtin:loop-detect",
            "plugin:loops",
            "Bash",
        ];
        let table = [
            ("loop-detect", Some("builtin:loop-detect")),
            ("loop-detct", Some("builtin:loop-detect")),
            ("loops", Some("plugin:loops")),
            ("command", Some("builtin:command-blocklist")),
            ("builtin:loop", Some("builtin:loop-detect")),
            ("bash", Some("Bash")),
            ("nothing-like-it", None),
        ];
        for (unknown, wanted) in table {
            assert_eq!(nearest(unknown, &known), wanted, "{unknown}");
        }
    }
}
