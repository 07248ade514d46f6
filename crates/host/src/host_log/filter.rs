//! Which spans and events the log of the host takes, as `YOI_LOG` says it: `info`, or `warn,pod::control=debug`.

use tracing::Metadata;
use tracing::level_filters::LevelFilter;

/// The levels by name.
const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// A level for everything, and others for parts of the program by the path of their module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    default: LevelFilter,
    /// The longest path first.
    parts: Vec<(String, LevelFilter)>,
}

impl Filter {
    /// Reads words with commas between: a level, or `path=level`. Without a level for everything, only the named parts
    /// are logged. The last of two words about the same counts.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut filter = Self {
            default: LevelFilter::OFF,
            parts: Vec::new(),
        };
        for word in text.split(',').map(str::trim) {
            match word.split_once('=') {
                None => filter.default = level(word)?,
                Some((path, name)) => {
                    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
                    if path.is_empty() || !path.chars().all(plain) {
                        return None;
                    }
                    let at = level(name)?;
                    filter.parts.retain(|(known, _)| known != path);
                    filter.parts.push((path.to_owned(), at));
                }
            }
        }
        filter
            .parts
            .sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Some(filter)
    }

    /// Whether this span or event is logged.
    pub(super) fn takes(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level_of(metadata.target())
    }

    /// The most that any part is logged at.
    pub(super) fn most(&self) -> LevelFilter {
        self.parts
            .iter()
            .map(|(_, level)| *level)
            .fold(self.default, Ord::max)
    }

    fn level_of(&self, target: &str) -> LevelFilter {
        let inside = |path: &str| {
            target
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        self.parts
            .iter()
            .find(|(path, _)| inside(path))
            .map_or(self.default, |(_, level)| *level)
    }
}

fn level(name: &str) -> Option<LevelFilter> {
    LEVELS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, level)| *level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_and_levels_of_parts() {
        let of = |filter: &str, target: &str| {
            Filter::parse(filter).map(|filter| filter.level_of(target))
        };
        let cases = [
            ("info", "pod::control", Some(LevelFilter::INFO)),
            ("Debug", "x", Some(LevelFilter::DEBUG)),
            ("pod=debug", "pod::control::turn", Some(LevelFilter::DEBUG)),
            ("pod=debug", "pod", Some(LevelFilter::DEBUG)),
            ("pod=debug", "podium", Some(LevelFilter::OFF)),
            ("pod=debug", "yoi", Some(LevelFilter::OFF)),
            (
                "warn, pod::control=trace,pod=off",
                "pod::control",
                Some(LevelFilter::TRACE),
            ),
            (
                "warn, pod::control=trace,pod=off",
                "pod::hook",
                Some(LevelFilter::OFF),
            ),
            (
                "warn, pod::control=trace,pod=off",
                "yoi",
                Some(LevelFilter::WARN),
            ),
            ("pod=info,pod=error", "pod", Some(LevelFilter::ERROR)),
            ("info,warn", "pod", Some(LevelFilter::WARN)),
        ];
        for (filter, target, level) in cases {
            assert_eq!(of(filter, target), level, "{filter} {target}");
        }
        for bad in [
            "",
            "1",
            "verbose",
            "info,",
            ",",
            "pod=",
            "=info",
            "pod=info=warn",
            "a b=info",
            "pod/x=info",
        ] {
            assert_eq!(Filter::parse(bad), None, "{bad}");
        }
        let most = |filter| Filter::parse(filter).map(|filter| filter.most());
        assert_eq!(most("warn,pod=trace,yoi=info"), Some(LevelFilter::TRACE));
        assert_eq!(most("warn,pod=off"), Some(LevelFilter::WARN));
    }
}
