//! Restoring single keys of a configuration file; a command's other changes to it stay.

use super::config::{Entry, parse};
use super::keys::runs_code;
use std::collections::BTreeSet;

/// The changes to keys that run code.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Keys that are new or have other values, as git prints them.
    pub(super) changed: BTreeSet<Vec<u8>>,
    /// Keys that were removed.
    pub(super) removed: BTreeSet<Vec<u8>>,
}

/// Compares the keys that run code, and those that `also` accepts.
pub(super) fn difference(
    before: &[Entry],
    now: &[Entry],
    also: &dyn Fn(&Entry) -> bool,
) -> Difference {
    let runs = |entry: &&Entry| runs_code(entry) || also(entry);
    let keys = |entries: &[Entry]| {
        entries
            .iter()
            .filter(runs)
            .map(Entry::key)
            .collect::<BTreeSet<_>>()
    };
    let values = |entries: &[Entry], key: &[u8]| {
        let of_key = entries
            .iter()
            .filter(|entry| entry.key() == key)
            .filter(runs);
        of_key.map(|entry| entry.value.clone()).collect::<Vec<_>>()
    };
    let mut difference = Difference::default();
    for key in keys(now).union(&keys(before)) {
        let was = values(before, key);
        let is = values(now, key);
        if is == was {
            continue;
        }
        // If values were only removed, the remaining ones existed before.
        let mut rest = was.iter();
        let only_fewer = is.iter().all(|value| rest.any(|old| old == value));
        if only_fewer {
            &mut difference.removed
        } else {
            &mut difference.changed
        }
        .insert(key.clone());
    }
    difference
}

/// The current file with these keys as they were before.
pub(super) fn put_back(
    before: (&[u8], &[Entry]),
    now: (&[u8], &[Entry]),
    keys: &BTreeSet<Vec<u8>>,
) -> Vec<u8> {
    let mut text = Vec::with_capacity(now.0.len());
    let mut from = 0;
    for entry in now.1.iter().filter(|entry| keys.contains(&entry.key())) {
        text.extend_from_slice(now.0.get(from..entry.span.start).unwrap_or_default());
        from = entry.span.end;
    }
    text.extend_from_slice(now.0.get(from..).unwrap_or_default());
    for entry in before.1.iter().filter(|entry| keys.contains(&entry.key())) {
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend_from_slice(&entry.written());
    }
    let meaning = |entries: &[Entry]| {
        entries
            .iter()
            .map(|entry| (entry.key(), entry.value.clone()))
            .collect::<Vec<_>>()
    };
    let sorted = |mut meaning: Vec<_>| {
        meaning.sort();
        meaning
    };
    match parse(&text) {
        // Nothing else was changed: the file is restored byte for byte.
        Ok(entries) if sorted(meaning(&entries)) == sorted(meaning(before.1)) => {
            before.0.to_owned()
        }
        Ok(entries)
            if difference(before.1, &entries, &|_| false)
                .changed
                .is_empty() =>
        {
            text
        }
        // Unreachable; the earlier content is harmless.
        Ok(_) | Err(_) => before.0.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_code_is_put_back() {
        let table: &[(&str, &str, &str)] = &[
            // (before, now, put back)
            (
                "[core]\n\tbare = false\n",
                "[core]\n\tbare = false\n\tpager = evil\n",
                "[core]\n\tbare = false\n",
            ),
            (
                "",
                "[core] editor = evil ; x\n[user]\n\tname = me\n",
                "[core] \n[user]\n\tname = me\n",
            ),
            (
                "[core]\n\teditor = vim\n",
                "[Core]\n\tEdiTor = \"evil\"\n[user]\n\tname = me",
                "[Core]\n\t\n[user]\n\tname = me\n[core]\n\teditor = \"vim\"\n",
            ),
            (
                "[a \"B\\\"c\"]\n\thelper = x y\n",
                "[a \"B\\\"c\"]\n\thelper = z\\\n y\n\tq\n",
                "[a \"B\\\"c\"]\n\t\n\tq\n[a \"B\\\"c\"]\n\thelper = \"x y\"\n",
            ),
            (
                "[alias]\n\ts = status\n",
                "[alias]\n\ts = !evil\n",
                "[alias]\n\ts = status\n",
            ),
            (
                "[core]\n\teditor = vim\n",
                "[user]\n\tname = me\n[core]\n\teditor = vim\n",
                "",
            ),
            ("[core]\n\teditor = vim\n", "[user]\n\tname = me\n", ""),
        ];
        for (before, now, want) in table {
            let was = parse(before.as_bytes()).unwrap();
            let is = parse(now.as_bytes()).unwrap();
            let changed = difference(&was, &is, &|_| false).changed;
            if want.is_empty() {
                assert!(changed.is_empty(), "{now}");
                continue;
            }
            let got = put_back((before.as_bytes(), &was), (now.as_bytes(), &is), &changed);
            assert_eq!(String::from_utf8_lossy(&got), *want);
        }
    }
}
