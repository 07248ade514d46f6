//! The limits of runs and pods, one row each: the keys of files, the flag, the variable, the bounds and the place in a record.
//! What is counted is in `pod::session::spent`; when a limit is reached, in `pod::control`.

use crate::bad_value::BadValue;
use llm_worker::Cost;
use pod::record::{BudgetKind, Launch};
use protocol::method::TurnBudget;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// The highest limit of a cost, in dollars: above it, a decimal point is probably missing.
const MAX_COST: f64 = 1e6;

/// An amount of what a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Amount {
    Count(u64),
    Dollars(f64),
}

impl Amount {
    /// As pods count it: dollars in billionths.
    pub fn units(self) -> Option<u64> {
        match self {
            Self::Count(count) => Some(count),
            Self::Dollars(dollars) => Cost::of_dollars(dollars).map(Cost::count),
        }
    }

    /// Whether it can be a limit.
    pub fn is_limit(self) -> bool {
        match self {
            Self::Count(count) => count >= 1,
            Self::Dollars(dollars) => dollars > 0.0 && dollars <= MAX_COST,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Dollars(dollars) => dollars.fmt(f),
        }
    }
}

/// A number as files and records have it.
trait Number: Copy + FromStr {
    fn amount(self) -> Amount;
    fn of(amount: Amount) -> Option<Self>;
}

macro_rules! number {
    ($($type:ty = $amount:ident,)*) => { $(impl Number for $type {
        fn amount(self) -> Amount {
            Amount::$amount(self.into())
        }

        fn of(amount: Amount) -> Option<Self> {
            match amount {
                Amount::$amount(number) => number.try_into().ok(),
                _ => None,
            }
        }
    })* };
}

number! { u32 = Count, u64 = Count, f64 = Dollars, }

/// What people are told of values of one form.
pub struct Form {
    /// The value of a flag, of a variable, and of a key in a file, with an example for the first two.
    flag: [&'static str; 2],
    pub variable: [&'static str; 2],
    pub bounds: &'static str,
}

/// A limit, where it is set and where it stands.
pub struct LimitRow<Run = LimitsConfig, Pod = PodLimitsConfig> {
    pub kind: BudgetKind,
    /// In `[limits]` and `[limits.pod]`.
    pub key: &'static str,
    pub flag: &'static str,
    pub variable: &'static str,
    /// What stands for a value in the help of the flag.
    pub value: &'static str,
    pub help: &'static str,
    pub form: Form,
    pub number: fn(&str) -> Option<Amount>,
    pub of_run: fn(&Run) -> Option<Amount>,
    pub of_pod: fn(&Pod) -> Option<Amount>,
    pub launched: fn(&Launch) -> Option<Amount>,
    pub launch: fn(&mut Launch, Option<Amount>),
    pub budget: fn(&mut TurnBudget, Amount),
}

impl<Run, Pod> LimitRow<Run, Pod> {
    /// The value of its flag.
    pub fn parse(&self, text: &str) -> Result<Amount, BadValue> {
        let dollars = text.strip_prefix('$').filter(|_| self.value == "USD");
        let amount = (self.number)(dollars.unwrap_or(text));
        let is_more = |amount: &Amount| match amount {
            Amount::Count(count) => *count > 0,
            Amount::Dollars(dollars) => *dollars > 0.0 && dollars.is_finite(),
        };
        let [expected, example] = self.form.flag;
        amount
            .filter(is_more)
            .ok_or_else(|| BadValue::new(format!("the value must be {expected}"), example))
    }
}

/// Declares the limits: their table, and `[limits]` and `[limits.pod]` of a file. `then` is another key behind that of a limit.
macro_rules! limits {
    ($($kind:ident $key:ident: $run:ty, $pod:ty, $run_doc:literal, $pod_doc:literal,
        $flag:literal $variable:literal $value:literal $launch:ident $form:expr, $help:literal
        $(, then $other:ident: $type:ty, $doc:literal)?;)*) => {
        /// Every limit.
        pub static LIMITS: &[LimitRow<LimitsConfig, PodLimitsConfig>] = &[$(LimitRow {
            kind: BudgetKind::$kind,
            key: stringify!($key),
            flag: $flag,
            variable: $variable,
            value: $value,
            help: $help,
            form: $form,
            number: |text| text.parse().ok().map(<$run>::amount),
            of_run: |file| file.$key.map(Number::amount),
            of_pod: |file| file.$key.map(Number::amount),
            launched: |launch| launch.$launch.map(Number::amount),
            launch: |launch, amount| launch.$launch = amount.and_then(Number::of),
            budget: |budget, amount| {
                budget.$launch = amount.units().and_then(|units| units.try_into().ok());
            },
        },)*];

        /// `[limits]`.
        #[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[serde(rename = "Limits")]
        pub struct LimitsConfig {
            $(#[doc = $run_doc]
            pub(crate) $key: Option<$run>,
            $(#[doc = $doc]
            pub $other: Option<$type>,)?)*
            /// Limits of a pod, over all its runs and starts.
            #[serde(default)]
            pub pod: PodLimitsConfig,
        }

        /// `[limits.pod]`.
        #[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[serde(rename = "PodLimits")]
        pub struct PodLimitsConfig {
            $(#[doc = $pod_doc]
            $key: Option<$pod>,)*
        }
    };
}

const COUNT: Form = Form {
    flag: ["a whole number, at least 1", "use a number such as 3600"],
    variable: ["a whole number, at least 1", "200000"],
    bounds: "at least 1",
};

limits! {
    Steps max_steps: u32, u64,
        "The maximum number of model requests in one run.",
        "The maximum number of model requests of a pod.",
        "--max-steps" "YOI_MAX_STEPS" "N" max_steps
        Form {
            flag: ["a whole number from 1 to 4294967295", "use a number such as 20"],
            variable: ["a whole number, at least 1", "20"],
            ..COUNT
        },
        "Take at most N steps; a step is one request to the model and the calls in its answer. In a pod started with `yoi start`, N is the limit for each turn, and a pod that reaches it is held until `yoi resume`",
        then tool_concurrency: usize, "The maximum number of calls that run at the same time.";
    Cost max_cost_usd: f64, f64,
        "The maximum cost of one run in US dollars.",
        "The maximum cost of a pod in US dollars.",
        "--max-cost" "YOI_MAX_COST" "USD" max_cost
        Form {
            flag: ["an amount of US dollars, more than 0", "use an amount such as 0.50"],
            variable: ["an amount of US dollars", "0.50"],
            bounds: "more than 0 and at most 1000000 US dollars",
        },
        "Send no further request to the model once the run has cost this many US dollars. In a pod started with `yoi start`, USD is the limit for each turn, and a pod that reaches it is held until `yoi resume`";
    Tokens max_tokens: u64, u64,
        "The maximum number of tokens of one run, read and written.",
        "The maximum number of tokens of a pod, read and written.",
        "--max-tokens" "YOI_MAX_TOKENS" "N" max_tokens
        COUNT,
        "Send no further request to the model once the run has used N tokens, read and written. In a pod started with `yoi start`, N is the limit for each turn, and a pod that reaches it is held until `yoi resume`";
    Time max_wall_s: u64, u64,
        "The maximum time of one run in seconds, without what it waits for a person.",
        "The maximum time in which a pod works in seconds, without what it waits for a person.",
        "--max-wall" "YOI_MAX_WALL" "SECONDS" max_wall_s
        Form {
            variable: ["a whole number of seconds, at least 1", "3600"],
            bounds: "at least 1 second",
            ..COUNT
        },
        "Send no further request to the model once the run has taken this many seconds; the time that it waits for a person does not count. In a pod started with `yoi start`, SECONDS is the limit for each turn, and a pod that reaches it is held until `yoi resume`";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    #[expect(unreachable_pub, reason = "as the table that ships")]
    mod with_a_fifth {
        use super::*;

        // A row is all that a limit is.
        limits! {
            Time max_joules: u64, u64,
                "The maximum energy of one run in joules.",
                "The maximum energy of a pod in joules.",
                "--max-energy" "YOI_MAX_ENERGY" "JOULES" max_wall_s
                COUNT,
                "Send no further request to the model once the run has used this many joules";
        }
    }

    // Each of the four limits was 338 lines in 24 files: `YOI_MAX_WALL` worked and was reported as unknown.
    #[test]
    fn a_row_of_the_table_is_a_key_a_flag_and_a_variable() {
        let [row] = with_a_fifth::LIMITS else {
            panic!("one row")
        };
        assert_eq!((row.key, row.variable), ("max_joules", "YOI_MAX_ENERGY"));
        let file = "max_joules = 7\n[pod]\nmax_joules = 9\n";
        let file: with_a_fifth::LimitsConfig = toml::from_str(file).unwrap();
        let of_both = [(row.of_run)(&file), (row.of_pod)(&file.pod)];
        assert_eq!(of_both, [7, 9].map(|joules| Some(Amount::Count(joules))));
        let schema = schemars::schema_for!(with_a_fifth::LimitsConfig);
        let told = &schema.as_value()["properties"]["max_joules"]["description"];
        assert_eq!(told, "The maximum energy of one run in joules.");
        assert_eq!(row.parse("12"), Ok(Amount::Count(12)));
        assert!(row.parse("0").is_err() && row.parse("$1").is_err());
    }

    fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }

    /// What else names a limit, and why.
    const ELSEWHERE: [(&str, &str); 9] = [
        (
            "host/src/agent/markdown.rs",
            "what agents of other programs call otherwise",
        ),
        ("host/src/limits.rs", "the table"),
        ("host/src/config/limits.rs", "in the form of a pod"),
        ("host/src/config/parser_text.rs", "a sentence, in its test"),
        ("host/src/config/fuzzing.rs", "a person's file"),
        ("host/src/config/file/tests.rs", "a file"),
        ("yoi/src/remedy.rs", "what a turn names that reached one"),
        ("yoi/src/cli/texts.rs", "compared with the flags"),
        ("yoi/src/commands/config.rs", "compared below"),
    ];

    #[test]
    fn nothing_else_names_the_limits() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut files = Vec::new();
        for of in ["host/src", "yoi/src"] {
            sources(&root.join(of), &mut files);
        }
        let names: Vec<_> = LIMITS
            .iter()
            .flat_map(|limit| [limit.key, limit.flag, limit.variable])
            .collect();
        let mut naming: Vec<_> = files
            .iter()
            .filter(|path| {
                let text = fs::read_to_string(path).unwrap();
                names.iter().any(|name| text.contains(name))
            })
            .map(|path| path.strip_prefix(root).unwrap().to_str().unwrap())
            .collect();
        naming.sort_unstable();
        let mut known = ELSEWHERE.map(|(path, _)| path);
        known.sort_unstable();
        assert_eq!(naming, known);
    }

    #[test]
    fn documents_and_the_file_of_a_beginner_have_every_limit() {
        let guide = include_str!("../../../docs/GUIDE.md");
        let page = include_str!("../../../docs/CONFIGURATION.md");
        let file = include_str!("../../yoi/src/commands/config.rs");
        for LimitRow {
            key,
            flag,
            variable,
            ..
        } in LIMITS
        {
            assert!(guide.contains(&format!("`{flag}`")), "{flag}");
            assert!(page.contains(&format!("`{variable}`")), "{variable}");
            assert_eq!(file.matches(&format!("# {key} = ")).count(), 2, "{key}");
        }
    }
}
