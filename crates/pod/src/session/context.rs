//! The tokens of the next request, by contributor. A pure fold over surface, items and answers; it needs no tokenizer, because
//! the provider counts every request that it answers.

pub use protocol::status::{ContextKind, ContextPart, ContextStatus};

use crate::record::{PrunedContent, SurfaceSources};
use llm_worker::Attachment;
use llm_worker::projection::Surface;
use llm_worker::{Item, Usage};
use protocol::record::known;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Bytes of text per token, until the provider has counted a request.
const BYTES_PER_TOKEN: u64 = 4;

/// Limit on the tools and sources that are told apart.
const MAX_NAMES: usize = 256;

/// Limit on the parts of a [`ContextStatus`]; the smallest are summed up.
pub const MAX_PARTS: usize = 64;

/// The name of all tools that the surface does not have, and of those above the limit.
pub(super) const OTHER: &str = "other";

/// The bytes of text that a request consists of, and how many tokens the provider counted in the newest one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextMeter {
    sources: SurfaceSources,
    inputs: u64,
    answers: u64,
    reasoning: u64,
    calls: u64,
    /// By tool.
    results: BTreeMap<String, u64>,
    /// By source.
    notes: BTreeMap<String, u64>,
    /// Marks in the gaps of the view.
    gaps: u64,
    /// Bytes of the newest request.
    requested: u64,
    counted: Option<CountedRequest>,
    /// What has left the requests in all changes of the view, less its marks.
    left: PrunedContent,
}

/// A request with the tokens that its provider counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CountedRequest {
    bytes: u64,
    input: u64,
    cached: u64,
}

/// The source of the marks in gaps. No feature has this id.
pub const GAP_SOURCE: &str = "context";

/// When and how much leaves the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextPolicy {
    /// The newest items with together this many tokens stay whole.
    pub protect_tokens: u64,
    /// Old results are masked before a request that needs more than this part of the window, in percent.
    pub prune_at: u64,
    /// Old steps leave before a request that needs more than this part of the window, in percent.
    pub compact_at: u64,
}

impl Default for ContextPolicy {
    fn default() -> Self {
        Self {
            protect_tokens: 40_000,
            prune_at: 75,
            compact_at: 85,
        }
    }
}

impl ContextMeter {
    /// A new surface; `model` is that of the one before.
    pub(super) fn surface(
        &mut self,
        surface: &Surface,
        sources: &SurfaceSources,
        model: Option<&str>,
    ) {
        self.sources = sources.clone();
        // Another model counts otherwise.
        if model != Some(&surface.model) {
            self.counted = None;
        }
    }

    /// One more item; `tool` is that of a result, if the surface has it.
    pub(super) fn add(&mut self, item: &Item, tool: Option<&str>) {
        let bytes = bytes(item);
        let sum = match item {
            Item::User { .. } | Item::Command { .. } => &mut self.inputs,
            Item::System { source, .. } => named(&mut self.notes, source),
            Item::Assistant { .. } => &mut self.answers,
            Item::Reasoning { .. } => &mut self.reasoning,
            Item::ToolCall { .. } => &mut self.calls,
            Item::ToolResult { .. } => named(&mut self.results, tool.unwrap_or(OTHER)),
        };
        *sum = sum.saturating_add(bytes);
    }

    /// This is not shown any more.
    pub(super) fn left(&mut self, left: &PrunedContent) {
        add_left(&mut self.left, left);
        self.reasoning = self
            .reasoning
            .saturating_sub(left.seals)
            .saturating_sub(left.reasoning);
        self.calls = self.calls.saturating_sub(left.calls);
        self.inputs = self.inputs.saturating_sub(left.inputs);
        self.answers = self.answers.saturating_sub(left.answers);
        self.gaps = left.gaps;
        for (source, bytes) in &left.notes {
            // Above the limit on names, it was counted with the others.
            let source = if self.notes.contains_key(source) {
                source
            } else {
                OTHER
            };
            if let Some(sum) = self.notes.get_mut(source) {
                *sum = sum.saturating_sub(*bytes);
            }
        }
        for (tool, bytes) in &left.bytes {
            let mut rest = *bytes;
            // The surface may have gained or lost the tool since its results were counted.
            let names: Vec<String> = [tool.as_str(), OTHER]
                .map(str::to_owned)
                .into_iter()
                .chain(self.results.keys().cloned())
                .collect();
            for name in names {
                if let Some(sum) = self.results.get_mut(&name) {
                    let taken = rest.min(*sum);
                    (*sum, rest) = (*sum - taken, rest - taken);
                }
            }
        }
    }

    /// The tokens of this many bytes.
    pub(super) fn tokens(&self, bytes: u64) -> u64 {
        let (input, per) = self.counted.map_or((1, BYTES_PER_TOKEN), |counted| {
            (counted.input, counted.bytes)
        });
        share(bytes, input, per)
    }

    /// The tokens that stay whatever leaves: the fixed beginning, and what people and the model said.
    pub(super) fn stays(&self, surface: &Surface) -> u64 {
        let fixed = self
            .parts(surface)
            .into_iter()
            .filter(|(_, fixed)| *fixed)
            .map(|(part, _)| part.tokens);
        self.tokens(
            fixed
                .sum::<u64>()
                .saturating_add(self.inputs)
                .saturating_add(self.answers),
        )
    }

    /// The most tokens that can leave with old results, or with old steps.
    pub(super) fn leaves_at_most(&self, steps: bool) -> u64 {
        let results: u64 = self.results.values().sum();
        let notes: u64 = self.notes.values().sum();
        let rest = if steps {
            self.calls.saturating_add(notes)
        } else {
            0
        };
        self.tokens(results.saturating_add(self.reasoning).saturating_add(rest))
    }

    pub(super) fn request(&mut self, surface: &Surface) {
        self.requested = self
            .parts(surface)
            .iter()
            .map(|(part, _)| part.tokens)
            .sum();
    }

    /// The answer to the newest request. Some providers count nothing.
    pub(super) fn response(&mut self, usage: &Usage) {
        if usage.input > 0 && self.requested > 0 {
            let cached = usage.cached.min(usage.input);
            self.counted = Some(CountedRequest {
                bytes: self.requested,
                input: usage.input,
                cached,
            });
        }
    }

    /// Tokens that the next request of this surface has at least: the ratio of the newest request may be far from that of
    /// what was added since, so only half of it counts. 0 if the provider has counted nothing.
    pub(super) fn at_least(&self, surface: &Surface) -> u64 {
        let Some(counted) = self.counted else {
            return 0;
        };
        let bytes: u64 = self
            .parts(surface)
            .iter()
            .map(|(part, _)| part.tokens)
            .sum();
        match bytes.checked_sub(counted.bytes) {
            Some(added) => counted.input.saturating_add(self.tokens(added) / 2),
            None => self.tokens(bytes) / 2,
        }
    }

    /// The next request of this surface: the counted tokens per byte of the newest request, times today's bytes.
    #[must_use]
    pub fn usage(&self, surface: &Surface, window: Option<u64>) -> ContextStatus {
        let mut parts = self.parts(surface);
        let bytes: u64 = parts.iter().map(|(part, _)| part.tokens).sum();
        let used = self.tokens(bytes);
        let cached = self.counted.map_or(0, |counted| counted.cached).min(used);
        // Each part gets the difference of two running sums, so that the sum of all is exact.
        let mut before = 0;
        let mut given = 0;
        for (part, _) in &mut parts {
            before += part.tokens;
            let upto = share(before, used, bytes);
            (part.tokens, given) = (upto - given, upto);
        }
        // A cache has the beginning of a request: the fixed parts first.
        let fixed: u64 = parts
            .iter()
            .filter(|(_, fixed)| *fixed)
            .map(|(part, _)| part.tokens)
            .sum();
        let cached_fixed = cached.min(fixed);
        let cached_rest = cached.saturating_sub(fixed);
        for (part, is_fixed) in &mut parts {
            part.cached = match is_fixed {
                true => share(part.tokens, cached_fixed, fixed),
                false => share(part.tokens, cached_rest, used - fixed),
            };
        }
        let parts = largest(
            parts
                .into_iter()
                .map(|(part, _)| part)
                .filter(|part| part.tokens > 0)
                .collect(),
        );
        let left_results = self.left.results;
        let left = self.receipt();
        let percent = window
            .filter(|window| *window > 0)
            .map(|window| share(used, 100, window));
        ContextStatus {
            used,
            window,
            percent,
            measured: self.counted.is_some(),
            cached,
            parts,
            left_results,
            left,
            ..ContextStatus::default()
        }
    }

    /// What has left so far, in tokens of today.
    fn receipt(&self) -> Vec<ContextPart> {
        let part = |kind, name: Option<&String>, bytes| {
            let tokens = self.tokens(bytes);
            ContextPart {
                kind: ContextKind::word(kind).to_owned(),
                name: name.cloned(),
                feature: None,
                tokens,
                cached: 0,
            }
        };
        let PrunedContent {
            results: _,
            bytes,
            seals,
            reasoning,
            calls,
            notes,
            inputs,
            answers,
            gaps: _,
        } = &self.left;
        let sums = [
            (ContextKind::Reasoning, reasoning.saturating_add(*seals)),
            (ContextKind::Calls, *calls),
            (ContextKind::Inputs, *inputs),
            (ContextKind::Answers, *answers),
        ];
        let results = bytes
            .iter()
            .map(|(tool, bytes)| part(ContextKind::Results, Some(tool), *bytes));
        let notes = notes
            .iter()
            .map(|(source, bytes)| part(ContextKind::Notes, Some(source), *bytes));
        let all = results
            .chain(notes)
            .chain(sums.map(|(kind, bytes)| part(kind, None, bytes)));
        largest(all.filter(|part| part.tokens > 0).collect())
    }

    /// The parts in the order of a request, each with its bytes in the place of tokens, and whether it is in the fixed
    /// beginning.
    fn parts(&self, surface: &Surface) -> Vec<(ContextPart, bool)> {
        let part = |kind, name: Option<&str>, feature: Option<&str>, bytes| {
            let name = name.map(str::to_owned);
            let feature = feature.map(str::to_owned);
            ContextPart {
                kind: ContextKind::word(kind).to_owned(),
                name,
                feature,
                tokens: bytes,
                cached: 0,
            }
        };
        let mut parts = Vec::new();
        for (index, tool) in surface.tools.iter().enumerate() {
            let bytes = (tool.name.len() + tool.description.len() + tool.schema.len()) as u64;
            let feature = self.sources.tools.get(index).map(String::as_str);
            parts.push((
                part(ContextKind::Schema, Some(&tool.name), feature, bytes),
                true,
            ));
        }
        let mut rest = surface.system.len() as u64;
        for source in &self.sources.system {
            let bytes = source.bytes.min(rest);
            let (kind, feature) = match source.source.as_str() {
                SurfaceSources::HOST => continue,
                SurfaceSources::INSTRUCTIONS => (ContextKind::Instructions, None),
                feature => (ContextKind::FeatureInstructions, Some(feature)),
            };
            rest -= bytes;
            parts.push((part(kind, None, feature, bytes), true));
        }
        parts.push((part(ContextKind::System, None, None, rest), true));
        let sums = [
            (ContextKind::Inputs, self.inputs),
            (ContextKind::Answers, self.answers),
            (ContextKind::Reasoning, self.reasoning),
            (ContextKind::Calls, self.calls),
        ];
        parts.extend(sums.map(|(kind, bytes)| (part(kind, None, None, bytes), false)));
        let results = self
            .results
            .iter()
            .map(|(tool, bytes)| part(ContextKind::Results, Some(tool), None, *bytes));
        let notes = self
            .notes
            .iter()
            .map(|(source, bytes)| part(ContextKind::Notes, Some(source), None, *bytes));
        let gaps = part(ContextKind::Notes, Some(GAP_SOURCE), None, self.gaps);
        parts.extend(results.chain(notes).chain([gaps]).map(|part| (part, false)));
        parts
    }
}

/// The bytes of text of an item.
pub(super) fn bytes(item: &Item) -> u64 {
    let bytes = match item {
        Item::User { text, attachments } => {
            let files = attachments.iter().map(Attachment::weight);
            text.len().saturating_add(files.sum())
        }
        Item::Command { text } | Item::System { text, .. } | Item::Assistant { text } => text.len(),
        Item::Reasoning { text, seal } => {
            text.len() + seal.as_ref().map_or(0, |seal| seal.signature.data.len())
        }
        Item::ToolCall {
            name, arguments, ..
        } => name.len() + arguments.len(),
        Item::ToolResult { outcome, .. } => outcome.summary.len() + outcome.weight(),
    };
    bytes as u64
}

/// Tokens up to which a request keeps old results: `prune_at` percent of the window, with room for the answer.
pub(super) fn keeps_up_to(window: u64, prune_at: u64, max_output: Option<u32>) -> u64 {
    let room = window
        .saturating_sub(u64::from(max_output.unwrap_or_default()))
        .max(window / 2);
    share(window, prune_at, 100).min(room)
}

/// Adds what left in one more change. The marks are those of now, so they do not add up.
fn add_left(sum: &mut PrunedContent, left: &PrunedContent) {
    let PrunedContent {
        results,
        bytes,
        seals,
        reasoning,
        calls,
        notes,
        inputs,
        answers,
        gaps: _,
    } = left;
    for (sum, more) in [
        (&mut sum.results, results),
        (&mut sum.seals, seals),
        (&mut sum.reasoning, reasoning),
        (&mut sum.calls, calls),
        (&mut sum.inputs, inputs),
        (&mut sum.answers, answers),
    ] {
        *sum = sum.saturating_add(*more);
    }
    for (sums, more) in [(&mut sum.bytes, bytes), (&mut sum.notes, notes)] {
        for (name, bytes) in more {
            let sum = named(sums, name);
            *sum = sum.saturating_add(*bytes);
        }
    }
}

/// The sum of this name; a new name above the limit is counted with the others.
fn named<'a>(sums: &'a mut BTreeMap<String, u64>, name: &str) -> &'a mut u64 {
    let name = if sums.len() < MAX_NAMES || sums.contains_key(name) {
        name
    } else {
        OTHER
    };
    sums.entry(name.to_owned()).or_default()
}

/// `of * part / whole`, rounded down; 0 of nothing.
pub(super) fn share(part: u64, of: u64, whole: u64) -> u64 {
    let product = u128::from(part) * u128::from(of);
    u64::try_from(product.checked_div(u128::from(whole)).unwrap_or_default()).unwrap_or(u64::MAX)
}

/// The largest parts, and the sum of the others.
fn largest(mut parts: Vec<ContextPart>) -> Vec<ContextPart> {
    parts.sort_by_cached_key(|part| {
        let kind = known::<ContextKind>(&part.kind);
        (Reverse(part.tokens), kind, part.name.clone())
    });
    if parts.len() > MAX_PARTS {
        let rest = parts.split_off(MAX_PARTS - 1);
        let sum = |of: fn(&ContextPart) -> u64| rest.iter().map(of).sum();
        let tokens = sum(|part| part.tokens);
        let cached = sum(|part| part.cached);
        parts.push(ContextPart {
            kind: ContextKind::Other.word().to_owned(),
            tokens,
            cached,
            ..ContextPart::default()
        });
    }
    parts
}

#[cfg(test)]
mod tests;
