//! `builtin:tool-search`: ToolSearch finds tools that requests do not define, CallTool calls them. Off where every tool is
//! defined.
//!
//! The system prompt has their names. What ToolSearch finds is the result of a call, so that it is in the journal and the
//! start of requests stays what it was. CallTool has no code of its own: the host takes the call for one of the named tool.

use crate::skills::one_line;
use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolResult};
use pod::feature::{
    FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    InstructionDeclaration, NamedCall, ToolDeclaration, ToolKey,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use tools::{answer, counted, fail};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("tool-search");

/// The tool that calls others.
pub const CALLER: &str = CALL.name();

const SEARCH: ToolKey<Query> = ToolKey::new(
    "ToolSearch",
    ToolEffect::ReadOnly,
    "Find tools that are named in the system prompt and not defined here, by words of their names, descriptions and \
     arguments. Gives the schemas of at most 8; call one with CallTool.",
);

const CALL: ToolKey<NamedCall> = ToolKey::new(
    "CallTool",
    ToolEffect::Effectful,
    "Call a tool that ToolSearch found, with arguments that fit its schema.",
);

/// Most tools that one search finds.
const MAX_HITS: usize = 8;
/// Most bytes of what a search gives, as far as more than one tool is found; less than what stays in a result.
const MAX_FOUND: usize = 28 * 1024;

/// Most bytes of the list in the system prompt: 4,000 tokens of four bytes. One of its instructions has at most 8 KiB.
const MAX_LIST: usize = 16_000;
const MAX_PART: usize = 8_000;
/// Longest description in the list, in characters.
const MAX_ABOUT: usize = 80;
/// Longest line of names.
const MAX_NAMES: usize = 1_000;

/// How much a word counts that a description has more than once, and how much a long description loses, as usual for BM25.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// Refuses the tool that calls others in a setting `tools`: no call is judged as one of it, so the setting would be about none.
///
/// # Errors
/// It is among them; the text names the key.
pub(crate) fn names_a_tool(tools: &[String]) -> Result<(), String> {
    match tools.iter().any(|tool| tool == CALLER) {
        true => Err(format!(
            "`tools` names {CALLER}, whose calls are those of the tools that it calls; expected the names of these, or `*`"
        )),
        false => Ok(()),
    }
}

/// Tools of one origin, and how all of their names begin that nobody changed.
#[derive(Clone, Debug)]
pub struct ToolGroup {
    pub prefix: String,
    pub tools: Vec<ToolDeclaration>,
}

/// The feature that finds the tools of these groups.
#[derive(Clone, Debug, Default)]
pub struct ToolSearch(pub Arc<[ToolGroup]>);

/// The feature without a tool to find.
#[must_use]
pub fn declared() -> FeatureDescriptor {
    ToolSearch::default().descriptor()
}

impl FeatureModule for ToolSearch {
    fn descriptor(&self) -> FeatureDescriptor {
        let mut descriptor = FeatureDescriptor::builder(ID)
            .display_name("Search for tools")
            .version(env!("CARGO_PKG_VERSION"))
            .tool(&SEARCH)
            .tool(&CALL)
            .build();
        let parts = list(&self.0).into_iter().zip(1..);
        descriptor.instructions = parts
            .map(|(text, number)| InstructionDeclaration {
                name: format!("tools {number}"),
                text,
            })
            .collect();
        descriptor
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            groups: self.0.clone(),
            index: OnceLock::new(),
        });
        ctx.tools().implement(&SEARCH, &live, Live::search)?;
        ctx.tools().implement(&CALL, &live, Live::call).map(drop)
    }
}

const HEAD: &str = "More tools, which are not defined here, with words of their servers. Before you call one, find its \
                    arguments with ToolSearch; then call it with CallTool.";
const SHORT: &str =
    "The names of a line are what stands before its colon with each word behind it.";

/// The list in parts for the system prompt: with a line for each tool if there is room, else names alone, and of too many names
/// the first.
fn list(groups: &[ToolGroup]) -> Vec<String> {
    let all: usize = groups.iter().map(|group| group.tools.len()).sum();
    if all == 0 {
        return Vec::new();
    }
    let line = |tool: &ToolDeclaration| {
        let about = one_line(tool.about.lines().next().unwrap_or_default(), MAX_ABOUT);
        format!("{}: {about}", tool.name)
    };
    let tools = || groups.iter().flat_map(|group| &group.tools);
    let with_about = std::iter::once(HEAD.to_owned()).chain(tools().map(line));
    let with_about: Vec<String> = with_about.collect();
    if size(&with_about) <= MAX_LIST {
        return parts(with_about);
    }
    let mut lines = vec![HEAD.to_owned(), SHORT.to_owned()];
    let room = MAX_LIST - size(&lines) - MAX_ABOUT;
    let mut used = 0;
    let mut shown = 0;
    'all: for ToolGroup { prefix, tools } in groups {
        let mut line = String::new();
        for tool in tools {
            let (before, name) = match tool.name.strip_prefix(prefix.as_str()) {
                Some(rest) if !rest.is_empty() => (prefix.as_str(), rest),
                Some(_) | None => ("", tool.name.as_str()),
            };
            let start = match before {
                "" => "whole names:".to_owned(),
                before => format!("{before}:"),
            };
            let fits = line.starts_with(&start) && line.len() + name.len() < MAX_NAMES;
            if !line.is_empty() && !fits {
                lines.push(std::mem::take(&mut line));
            }
            if line.is_empty() {
                line.push_str(&start);
                used += start.len() + 1;
            }
            used += name.len() + 1;
            if used > room {
                lines.push(line);
                break 'all;
            }
            line.push(' ');
            line.push_str(name);
            shown += 1;
        }
        lines.push(line);
    }
    lines.retain(|line| !line.is_empty() && !line.ends_with(':'));
    if all > shown {
        let more = counted((all - shown) as u64, "more tool", "more tools");
        lines.push(format!("and {more}, which ToolSearch finds"));
    }
    parts(lines)
}

/// The bytes of lines as a text.
fn size(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum()
}

/// Lines as texts of at most [`MAX_PART`].
fn parts(lines: Vec<String>) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for line in lines {
        match parts.last_mut() {
            Some(last) if last.len() + line.len() < MAX_PART => {
                last.push('\n');
                last.push_str(&line);
            }
            Some(_) | None => parts.push(line),
        }
    }
    parts
}

/// What is looked for.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(description = "")]
struct Query {
    /// Words, or whole names of tools.
    query: String,
}

/// The tools, and their index once something was searched: most runs search nothing.
struct Live {
    groups: Arc<[ToolGroup]>,
    index: OnceLock<Index>,
}

/// Tools by their words.
struct Index {
    tools: Vec<Indexed>,
    /// How many tools have a word.
    spread: BTreeMap<String, u32>,
    /// The mean number of words.
    mean: f64,
}

struct Indexed {
    tool: ToolDeclaration,
    /// How often it has each of its words.
    words: BTreeMap<String, u32>,
    length: f64,
}

impl Index {
    fn of<'a>(tools: impl Iterator<Item = &'a ToolDeclaration>) -> Self {
        let tools: Vec<Indexed> = tools.map(Indexed::of).collect();
        let mut spread = BTreeMap::new();
        for word in tools.iter().flat_map(|tool| tool.words.keys()) {
            *spread.entry(word.clone()).or_default() += 1;
        }
        let sum: f64 = tools.iter().map(|tool| tool.length).sum();
        let mean = sum / (tools.len().max(1) as f64);
        Self {
            tools,
            spread,
            mean,
        }
    }

    /// The best tools for a query, best first; those that it names before all others.
    fn hits(&self, query: &str) -> Vec<&ToolDeclaration> {
        let named: BTreeSet<&str> = query
            .split(|c: char| c.is_whitespace() || c == ',')
            .collect();
        let wanted: BTreeSet<String> = words(query).collect();
        let score = |of: &Indexed| match named.contains(of.tool.name.as_str()) {
            true => f64::INFINITY,
            false => wanted.iter().map(|word| self.weight(of, word)).sum(),
        };
        let mut hits: Vec<(f64, &ToolDeclaration)> = self
            .tools
            .iter()
            .map(|of| (score(of), &of.tool))
            .filter(|(score, _)| *score > 0.0)
            .collect();
        hits.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.name.cmp(&other.name)));
        hits.into_iter()
            .take(MAX_HITS)
            .map(|(_, tool)| tool)
            .collect()
    }

    fn weight(&self, of: &Indexed, word: &str) -> f64 {
        let Some(times) = of.words.get(word) else {
            return 0.0;
        };
        let times = f64::from(*times);
        let have = f64::from(self.spread.get(word).copied().unwrap_or_default());
        let rarity = (1.0 + (self.tools.len() as f64 - have + 0.5) / (have + 0.5)).ln();
        let long = 1.0 - LENGTH + LENGTH * of.length / self.mean.max(1.0);
        rarity * times * (SATURATION + 1.0) / (times + SATURATION * long)
    }
}

impl Live {
    async fn search(self: Arc<Self>, query: Query, _: ToolContext) -> ToolResult {
        let tools = || self.groups.iter().flat_map(|group| &group.tools);
        let index = self.index.get_or_init(|| Index::of(tools()));
        let hits = index.hits(&query.query);
        if hits.is_empty() {
            let text = "no tool has these words; try others, or a name of the list";
            return Ok(answer("nothing was found", text.to_owned()));
        }
        let mut text = String::new();
        let mut left_out = Vec::new();
        for ToolDeclaration {
            name,
            about,
            schema,
            ..
        } in &hits
        {
            let found = format!("{name}\n{about}\narguments: {schema}\n\n");
            match text.is_empty() || text.len() + found.len() <= MAX_FOUND {
                true => text.push_str(&found),
                false => left_out.push(name.as_str()),
            }
        }
        text.push_str("Call one with CallTool.");
        if !left_out.is_empty() {
            text.push_str(&format!(
                " Also found, and too long to be shown here; search for each by its name: {}",
                left_out.join(", ")
            ));
        }
        let found = counted(hits.len() as u64, "tool", "tools");
        Ok(answer(&format!("found {found}"), text))
    }

    /// Never called: the host calls the named tool instead.
    async fn call(self: Arc<Self>, named: NamedCall, _: ToolContext) -> ToolResult {
        let text = format!("{} is not called this way", named.name);
        Err(fail(ErrorKind::Unavailable, text))
    }
}

impl Indexed {
    fn of(tool: &ToolDeclaration) -> Self {
        let schema: Value = serde_json::from_str(&tool.schema).unwrap_or_default();
        let arguments = schema.get("properties").and_then(Value::as_object);
        let arguments = arguments.into_iter().flatten().map(|(name, _)| name);
        // What a tool is called says more than a word of its description.
        let texts = [&tool.name, &tool.name, &tool.about]
            .into_iter()
            .chain(arguments);
        let mut found = BTreeMap::new();
        let mut length = 0.0;
        for word in texts.flat_map(|text| words(text)) {
            *found.entry(word).or_default() += 1;
            length += 1.0;
        }
        Self {
            tool: tool.clone(),
            words: found,
            length,
        }
    }
}

/// The words of a text in lower case, without the `s` of a plural; `listPages` are two.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut parted = String::new();
    let mut was_lower = false;
    for c in text.chars() {
        if was_lower && c.is_uppercase() {
            parted.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        match c.is_alphanumeric() {
            true => parted.extend(c.to_lowercase()),
            false => parted.push(' '),
        }
    }
    let words: Vec<String> = parted
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| match word.strip_suffix('s') {
            Some(one) if one.len() > 2 => one.to_owned(),
            Some(_) | None => word.to_owned(),
        })
        .collect();
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use llm_worker::ToolDefinition;
    use serde_json::json;

    fn tool(name: &str, about: &str, arguments: &[&str]) -> ToolDeclaration {
        let of = |name: &&str| ((*name).to_owned(), json!({}));
        let properties: serde_json::Map<String, Value> = arguments.iter().map(of).collect();
        let schema = json!({ "type": "object", "properties": properties });
        ToolDeclaration::of(ToolDefinition {
            name: name.to_owned(),
            description: about.to_owned(),
            schema: schema.to_string().into(),
            effect: ToolEffect::Effectful,
        })
    }

    fn many(count: usize, about: &str) -> ToolGroup {
        let prefix = "mcp__a-server__".to_owned();
        let name = |number| format!("{prefix}read_a_resource_{number}");
        let tools = (0..count).map(|number| tool(&name(number), about, &["text"]));
        ToolGroup {
            tools: tools.collect(),
            prefix,
        }
    }

    #[test]
    fn words_of_names_descriptions_and_arguments_are_found() {
        let all = [
            tool("mcp__git__list_pull_requests", "Lists them.", &["repo"]),
            tool("mcp__git__createIssue", "File one.", &["title", "labels"]),
            tool(
                "mcp__db__query",
                "Run SQL over the pages of a table.",
                &["sql"],
            ),
        ];
        let index = Index::of(all.iter());
        for (query, found) in [
            ("pull request", &["mcp__git__list_pull_requests"][..]),
            ("label an issue", &["mcp__git__createIssue"]),
            ("SQL page", &["mcp__db__query"]),
            (
                "git",
                &["mcp__git__createIssue", "mcp__git__list_pull_requests"],
            ),
            (
                "sql mcp__git__createIssue",
                &[
                    "mcp__git__createIssue",
                    "mcp__db__query",
                    "mcp__git__list_pull_requests",
                ],
            ),
            ("weather", &[]),
            ("", &[]),
        ] {
            let hits: Vec<&str> = index
                .hits(query)
                .iter()
                .map(|tool| tool.name.as_str())
                .collect();
            assert_eq!(hits, found, "{query}");
        }
        let crowd = many(20, "Crowd.");
        assert_eq!(Index::of(crowd.tools.iter()).hits("crowd").len(), MAX_HITS);
    }

    #[test]
    fn five_hundred_tools_cost_a_bounded_list() {
        let short = ToolSearch([many(20, "Read a resource.\nAnd more.")].into()).descriptor();
        let text = &short.instructions[0].text;
        assert!(
            text.contains("\nmcp__a-server__read_a_resource_7: Read a resource."),
            "{text}"
        );
        assert!(!text.contains("And more"), "{text}");
        for (count, about) in [(500, "Read a resource of the server."), (2_000, "x")] {
            let mut group = many(count, about);
            group.tools[3].name = "renamed".to_owned();
            let descriptor = ToolSearch([group].into()).descriptor();
            assert_eq!(descriptor.problems(), [""; 0]);
            let texts: Vec<&str> = descriptor
                .instructions
                .iter()
                .map(|one| one.text.as_str())
                .collect();
            let list = texts.join("\n\n");
            assert!(list.len().div_ceil(4) <= 4_000, "{}", list.len());
            assert!(
                list.contains("\nmcp__a-server__: read_a_resource_0 read_a_resource_1 "),
                "{list}"
            );
            assert!(list.contains("\nwhole names: renamed\n"), "{list}");
            assert_eq!(
                list.contains("more tools, which ToolSearch finds"),
                count > 500,
                "{list}"
            );
            let schemas: usize = descriptor
                .declared_tools
                .iter()
                .map(ToolDeclaration::bytes)
                .sum();
            assert!(schemas.div_ceil(4) <= 2_000, "{schemas}");
        }
        assert!(declared().instructions.is_empty());
    }
}
