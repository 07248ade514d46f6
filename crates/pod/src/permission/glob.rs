//! Path globs of rules. Another spelling of a path must not avoid a refusal and must not gain an allowance, so the two
//! match differently. Do not depend on tools.

use super::place::Target;
use super::rule::RuleDecision;
use authority::text::escape_line;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::path::Path;

/// Longest glob, in bytes.
const MAX_GLOB: usize = 1_024;

/// A compiled glob.
#[derive(Clone, Debug)]
pub(super) struct PathGlob(GlobSet);

impl PathGlob {
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > MAX_GLOB {
            return Err(format!(
                "`path` has {} bytes; expected 1 to {MAX_GLOB}",
                text.len()
            ));
        }
        if text.split('/').any(|part| part == ".." || part == ".")
            || text.ends_with('/')
            || text.starts_with('~')
        {
            return Err(format!(
                "`path` = `{}` never matches: write it without `.`, `..`, `~` and a `/` at the end",
                escape_line(text)
            ));
        }
        let glob = |text: &str| {
            GlobBuilder::new(text)
                .literal_separator(true)
                .backslash_escape(true)
                .build()
        };
        let mut set = GlobSetBuilder::new();
        let wrong = |e: globset::Error| {
            // Names the missing bracket; the words before it say the same.
            let why = e
                .kind()
                .to_string()
                .replace("unclosed character class; ", "");
            format!(
                "`path` = `{}` is not a glob pattern: {why}",
                escape_line(text)
            )
        };
        set.add(glob(text).map_err(wrong)?);
        if let Some(directory) = text.strip_suffix("/**").filter(|d| !d.is_empty()) {
            set.add(glob(directory).map_err(wrong)?);
        }
        set.build().map(Self).map_err(wrong)
    }

    /// An allowance matches the resolved path; a refusal or a question also the path as written.
    pub(super) fn hits(&self, decision: RuleDecision, target: &Target) -> bool {
        let Target::Path {
            resolved, written, ..
        } = target
        else {
            return false;
        };
        let any = |paths: &[std::path::PathBuf]| paths.iter().any(|p| self.0.is_match(p as &Path));
        match decision {
            RuleDecision::Allow => any(resolved),
            RuleDecision::Ask | RuleDecision::Deny => any(resolved) || any(written),
        }
    }
}
