//! The flags of limits, made from their table. Runs nothing.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use host::limits::{Amount, LIMITS};
use pod::record::BudgetKind;
use std::collections::BTreeMap;

/// The limits that a command line sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LimitFlags(pub(crate) BTreeMap<BudgetKind, Amount>);

impl Args for LimitFlags {
    fn augment_args(command: Command) -> Command {
        LIMITS.iter().fold(command, |command, limit| {
            let flag = Arg::new(limit.key)
                .long(limit.flag.trim_start_matches('-'))
                .value_name(limit.value)
                .help(limit.help)
                .value_parser(move |text: &str| limit.parse(text))
                .allow_negative_numbers(true);
            command.arg(flag)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LimitFlags {
    fn from_arg_matches(given: &ArgMatches) -> Result<Self, clap::Error> {
        let mut limits = Self::default();
        limits.update_from_arg_matches(given)?;
        Ok(limits)
    }

    fn update_from_arg_matches(&mut self, given: &ArgMatches) -> Result<(), clap::Error> {
        for limit in LIMITS {
            if let Some(amount) = given.get_one::<Amount>(limit.key) {
                self.0.insert(limit.kind, *amount);
            }
        }
        Ok(())
    }
}
