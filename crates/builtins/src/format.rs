//! `builtin:format`: results in the encoding with the fewest tokens, within a budget. On where there are MCP servers or
//! providers, for their results that are JSON; for other tools when the settings name them.
//!
//! What it got is stored by the host and read back by `ReadOutput`. It returns nothing when that would save little.

use format_pipeline::budget::{BudgetConfig, Shortened, shorten};
use format_pipeline::token_counter::TokenCounter;
use llm_worker::{ResultStatus, ToolEffect, ToolOutput};
use pod::feature::{
    FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    HookContribution, HookDeclaration,
};
use pod::hook::{Change, HookPoint, ToolShape, ToolShapeView};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("format");

/// Tools of MCP servers.
const SERVERS: &str = "mcp__*";

/// The tools whose results are formatted in any case.
fn usual_tools() -> impl Iterator<Item = String> {
    let reads = api_core::tools::TABLE
        .iter()
        .filter(|row| row.effect == ToolEffect::ReadOnly);
    std::iter::once(SERVERS)
        .chain(reads.map(|row| row.name))
        .map(str::to_owned)
}

/// How long one result may take: the host's default is meant for less text.
const DEADLINE_MS: u64 = 10_000;

/// Tokens that must be saved: the line that names the stored result has about half of them.
const WORTH: u64 = 40;

/// Most tokens of one result: the host shows at most 32 KiB, and a longer one as if nothing had shortened it.
const MAX_RESULT: u64 = 8000;

/// Most tools that settings name.
const MAX_TOOLS: usize = 32;

/// `[features."builtin:format"]`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Tokens of one result; 500 to 8,000.
    #[schemars(range(min = 500, max = 8_000))]
    pub result: u64,
    /// Tokens of the results of one turn; a result gets 500 even beyond that. 500 to 1,000,000.
    #[schemars(range(min = 500, max = 1_000_000))]
    pub turn: u64,
    /// Tools besides those of MCP servers and providers, such as `Bash`; `*` is every tool. Of these, texts that are no JSON are cut,
    /// too. At most 32.
    pub tools: BTreeSet<String>,
    /// Tokens of one result of a tool, by its name.
    pub by_tool: BTreeMap<String, u64>,
}

impl Default for Settings {
    fn default() -> Self {
        let BudgetConfig { result, turn, .. } = BudgetConfig::usual();
        Self {
            result,
            turn,
            tools: BTreeSet::new(),
            by_tool: BTreeMap::new(),
        }
    }
}

/// The feature that shortens results.
#[derive(Debug)]
pub struct ShorterResults {
    budget: BudgetConfig,
    tools: BTreeSet<String>,
}

impl ShorterResults {
    /// Creates the feature with these settings.
    ///
    /// # Errors
    /// A value outside of its limits; the text names its key.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let Settings {
            result,
            turn,
            tools,
            by_tool,
        } = settings;
        for (key, tokens, most) in [("result", result, MAX_RESULT), ("turn", turn, 1_000_000)] {
            if !(500..=most).contains(&tokens) {
                return Err(format!("`{key}` must be 500 to {most}, not {tokens}"));
            }
        }
        if let Some((tool, tokens)) = by_tool.iter().find(|of| !(50..=MAX_RESULT).contains(of.1)) {
            return Err(format!(
                "`by_tool` gives {tool} {tokens} tokens; expected 50 to {MAX_RESULT}"
            ));
        }
        if tools.len() > MAX_TOOLS {
            return Err(format!("`tools` names {}; at most 32", tools.len()));
        }
        let budget = BudgetConfig {
            result,
            turn,
            by_tool,
            ..BudgetConfig::usual()
        };
        Ok(Self { budget, tools })
    }

    fn hook(&self) -> HookDeclaration {
        HookDeclaration {
            name: "format".to_owned(),
            point: HookPoint::ToolShape,
            class: HookPoint::ToolShape.class(),
            deadline_ms: DEADLINE_MS,
            tools: usual_tools().chain(self.tools.clone()).collect(),
            needs: Vec::new(),
            withholds: false,
            with_output_schema: false,
            shortens: true,
            before: Vec::new(),
            after: Vec::new(),
        }
    }
}

/// The tokens of a text, as the feature estimates them.
#[must_use]
pub fn tokens(text: &str) -> u64 {
    TokenCounter::unmeasured().count(text)
}

pub(crate) fn declared() -> FeatureDescriptor {
    describe(HookDeclaration {
        tools: usual_tools().collect(),
        ..ShorterResults {
            budget: BudgetConfig::usual(),
            tools: BTreeSet::new(),
        }
        .hook()
    })
}

fn describe(hook: HookDeclaration) -> FeatureDescriptor {
    FeatureDescriptor::builder(ID)
        .display_name("Shorter results")
        .version(env!("CARGO_PKG_VERSION"))
        .settings::<Settings>()
        .foreign_hook(hook)
        .build()
}

impl FeatureModule for ShorterResults {
    fn descriptor(&self) -> FeatureDescriptor {
        describe(self.hook())
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Live {
            budget: self.budget.clone(),
            tools: self.tools.clone(),
            spent: Mutex::new((0, 0)),
        };
        let shapes = move |view: &ToolShapeView| live.shape(view);
        let hook = HookContribution::declared::<ToolShape>(ID, &self.hook(), Arc::new(shapes));
        ctx.hooks().register(hook).map(drop)
    }
}

struct Live {
    budget: BudgetConfig,
    tools: BTreeSet<String>,
    /// A turn, by its number, and the tokens of its results.
    spent: Mutex<(u64, u64)>,
}

impl Live {
    fn shape(&self, view: &ToolShapeView) -> Change<ToolOutput> {
        let call = &view.call;
        let output = &view.output;
        if view.status != ResultStatus::Ok {
            return Change::Unchanged;
        }
        let is_named = self.tools.contains("*") || self.tools.contains(&call.tool);
        if !is_named && !output.content.trim_start().starts_with(['{', '[']) {
            return Change::Unchanged;
        }
        let spent = self.spent(call.turn, 0);
        let budget = self.budget.of(&call.tool, spent);
        let Shortened {
            text,
            encoding,
            before,
            tokens,
        } = shorten(
            &output.content,
            budget,
            self.budget.margin,
            TokenCounter::unmeasured(),
        );
        let is_ours = encoding.is_some() || is_named;
        if !is_ours || tokens + WORTH > before {
            self.spent(call.turn, before);
            return Change::Unchanged;
        }
        self.spent(call.turn, tokens);
        Change::Replaced(ToolOutput {
            summary: output.summary.clone(),
            content: text,
            data: None,
        })
    }

    /// What a turn spent, with what it spends now.
    fn spent(&self, turn: u64, now: u64) -> u64 {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.0 != turn {
            *spent = (turn, 0);
        }
        spent.1 += now;
        spent.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turn that no person asked for has no input to know it by.
    #[test]
    fn each_turn_has_its_own_budget() {
        let live = Live {
            budget: BudgetConfig::usual(),
            tools: BTreeSet::new(),
            spent: Mutex::new((0, 0)),
        };
        let room = |turn| live.budget.of("mcp__a__rows", live.spent(turn, 0));
        assert_eq!(room(1), 8000);
        live.spent(1, 40_000);
        assert_eq!(room(1), 500);
        assert_eq!(room(2), 8000);
    }
}
