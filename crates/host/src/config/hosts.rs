//! The hosts that commands reach: names, and presets by ecosystem.

use authority::HostPattern;
use std::fmt::Write;

/// What is written before the name of a preset.
const PRESET: &str = "preset:";

/// The public hosts that the package managers of an ecosystem need. Hosts at which anyone can publish content of any kind
/// are left out: storage of clouds, and repositories of sources.
const PRESETS: &[(&str, &str)] = &[
    (
        "rust",
        "index.crates.io static.crates.io crates.io static.rust-lang.org",
    ),
    ("node", "registry.npmjs.org registry.yarnpkg.com nodejs.org"),
    ("python", "pypi.org files.pythonhosted.org"),
    ("debian", "deb.debian.org security.debian.org"),
    ("go", "proxy.golang.org sum.golang.org"),
    (
        "maven",
        "repo.maven.apache.org repo1.maven.org plugins.gradle.org services.gradle.org",
    ),
];

/// The hosts that an entry of `hosts` stands for; or why it stands for none.
pub fn named(entry: &str) -> Result<Vec<HostPattern>, String> {
    let names = match entry.strip_prefix(PRESET) {
        Some(wanted) => PRESETS
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, hosts)| *hosts)
            .ok_or_else(|| {
                let known = PRESETS.iter().fold(String::new(), |mut all, (name, _)| {
                    write!(all, " {PRESET}{name}").ok();
                    all
                });
                format!("no such preset; there are{known}")
            })?,
        None if entry.contains(char::is_whitespace) => return Err("write one host".to_owned()),
        None => entry,
    };
    names
        .split(' ')
        .map(|name| HostPattern::named(name).map_err(|error| error.to_string()))
        .collect()
}

/// The hosts of all entries; those that stand for none are left out.
pub fn all(entries: &[String]) -> Vec<HostPattern> {
    entries
        .iter()
        .filter_map(|entry| named(entry).ok())
        .flatten()
        .collect()
}

/// Whether these entries stand for no other hosts than those.
pub(super) fn is_within(entries: &[String], those: &[String]) -> bool {
    let those = all(those);
    all(entries)
        .iter()
        .all(|host| those.iter().any(|own| own.covers(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_name_hosts_and_nothing_wider() {
        for (name, hosts) in PRESETS {
            let meant = named(&format!("{PRESET}{name}")).unwrap();
            assert_eq!(meant.len(), hosts.split(' ').count(), "{name}");
            assert!(
                meant
                    .iter()
                    .all(|host| !host.names_port() && host.to_string().contains('.')),
                "{meant:?}"
            );
        }
        let rust = ["preset:rust".to_owned()];
        assert!(is_within(
            &["crates.io".to_owned(), "Static.Crates.IO.".to_owned()],
            &rust
        ));
        for wider in ["pypi.org", "crates.io:8443", "x.crates.io"] {
            assert!(!is_within(&[wider.to_owned()], &rust), "{wider}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused_and_says_why() {
        for (entry, why) in [
            ("preset:rst", "there are preset:rust preset:node"),
            ("preset:", "no such preset"),
            ("preset:rust ", "no such preset"),
            ("*", "no wildcards"),
            ("*.crates.io", "no wildcards"),
            ("crates.io:*", "no wildcards"),
            ("https://crates.io", "name of a host"),
            ("crates.io/api", "name of a host"),
            ("user@crates.io", "name of a host"),
            ("crates.io:0", "name of a host"),
            ("", "name of a host"),
            ("crates.io pypi.org", "write one host"),
            ("127.0.0.1", "by name"),
            ("10.0.0.1:443", "by name"),
            ("[::1]:443", "by name"),
            ("::1", "by name"),
            ("0x7f000001", "by name"),
            ("127.1", "by name"),
        ] {
            let said = named(entry).expect_err(entry);
            assert!(said.contains(why), "{entry}: {said}");
        }
    }
}
