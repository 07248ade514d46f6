//! Flags override what files and environment configure.

use crate::allow;
use crate::cli::RunArgs;
use crate::config::file::Mode;
use crate::config::{Config, FileRules, WrittenRule, set};

impl RunArgs {
    /// A configuration with the flags over it. Rules of the command line stand inside of all others.
    pub(crate) fn over(&self, mut config: Config) -> Config {
        set(&mut config.model, self.model.clone(), || "-m".to_owned());
        config.max_steps.set(self.max_steps, || "--max-steps".to_owned());
        set(&mut config.max_cost, self.max_cost, || "--max-cost".to_owned());
        config.sandbox.set(self.sandbox, || "--sandbox".to_owned());
        config.sandbox.set(self.read_only.then_some(Mode::ReadOnly), || "--read-only".to_owned());
        let place = |_: &[&str]| allow::SOURCE.to_owned();
        let rules = self.allow.iter().cloned().enumerate().map(|(index, rule)| WrittenRule::new(rule, index, &place));
        config.rules.extend(FileRules::of(allow::SOURCE.to_owned(), rules));
        config.instructions.set(self.no_instructions.then_some(false), || "--no-instructions".to_owned());
        config
    }
}
