//! Listing the parts of the parser's tree in order. Does not depend on programs.

use crate::arithmetic;
use crate::command_line::{
    Assignment, CommandLine, Function, Part, RedirectKind, Redirection, one_line, words_text,
};
use crate::expansion::{live, only_numbers, parameter};
use crate::opaque::{OpaqueReason, WordFindings};
use crate::places::Places;
use crate::resolve;
use crate::second::{self, Reading};
use crate::variables;
use crate::word::{self, Word};
use rable::{ListOperator, Node, NodeKind};
use std::ops::Range;

/// The deepest nesting that is followed, inside of words, too.
pub(crate) const MAX_DEPTH: usize = 128;

/// Parses `text`, which is within the limits.
pub(crate) fn script(text: &str) -> Result<CommandLine, OpaqueReason> {
    let script = CommandLine::default();
    let places = Places::new(text);
    let mut walk = PartWalk {
        script,
        depth: 0,
        timed: false,
        readings: Vec::new(),
        places,
    };
    for node in &parsed(text)? {
        walk.node(node, None);
    }
    let mut script = walk.script;
    let plain = script.parts.iter().all(|part| part.opaque.is_none());
    if plain && !second::agrees(text, walk.readings) {
        script.parts.push(Part {
            text: one_line(text),
            opaque: Some(OpaqueReason::Ambiguous),
            ..Part::default()
        });
    }
    Ok(script)
}

fn parsed(text: &str) -> Result<Vec<Node>, OpaqueReason> {
    rable::parse(text, false).map_err(|error| OpaqueReason::Syntax(one_line(&error.to_string())))
}

pub(crate) struct PartWalk {
    script: CommandLine,
    pub(crate) depth: usize,
    /// Whether the next command stands behind the reserved word `time`, which takes `--`.
    timed: bool,
    /// Each command as it is written, to be compared with another reading.
    readings: Vec<Reading>,
    places: Places,
}

/// Words that begin what is no simple command.
const RESERVED: [&str; 13] = [
    "!", "{", "}", "if", "while", "until", "for", "select", "case", "[[", "function", "coproc",
    "time",
];

type Stdin = Option<Range<usize>>;

impl PartWalk {
    fn at(&self) -> usize {
        self.script.parts.len()
    }

    fn all<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>, stdin: &Stdin) {
        for node in nodes {
            self.node(node, stdin.clone());
        }
    }

    /// Adds a part for a place that starts nothing by itself but may do more than the text shows.
    pub(crate) fn odd(&mut self, text: &str, found: WordFindings) {
        if found.why.is_some() {
            self.script.parts.push(Part {
                text: one_line(text),
                opaque: found.why,
                ..Part::default()
            });
        }
    }

    pub(crate) fn hidden(&mut self, text: &str, place: &'static str) {
        self.odd(
            text,
            WordFindings {
                why: Some(OpaqueReason::Hidden(place)),
            },
        );
    }

    fn node(&mut self, node: &Node, stdin: Stdin) {
        if self.depth == MAX_DEPTH {
            self.odd(
                "…",
                WordFindings {
                    why: Some(OpaqueReason::TooDeep),
                },
            );
            return;
        }
        self.depth += 1;
        self.command(node, stdin);
        self.depth -= 1;
    }

    fn command(&mut self, node: &Node, stdin: Stdin) {
        match &node.kind {
            NodeKind::Command {
                assignments,
                words,
                redirects,
            } => self.simple(assignments, words, redirects, stdin),
            NodeKind::Pipeline { commands, .. } => self.pipeline(commands, stdin),
            NodeKind::List { items } => {
                for item in items {
                    let from = self.at();
                    self.node(&item.command, stdin.clone());
                    if item.operator == Some(ListOperator::Background) {
                        self.background(from);
                    }
                }
            }
            NodeKind::If {
                condition,
                then_body,
                else_body,
                redirects,
            } => {
                self.all([&**condition, &**then_body], &stdin);
                self.all(else_body.as_deref(), &stdin);
                self.redirected(redirects);
            }
            NodeKind::While {
                condition,
                body,
                redirects,
            }
            | NodeKind::Until {
                condition,
                body,
                redirects,
            } => {
                self.all([&**condition, &**body], &stdin);
                self.redirected(redirects);
            }
            NodeKind::For {
                var,
                words,
                body,
                redirects,
            }
            | NodeKind::Select {
                var,
                words,
                body,
                redirects,
            } => {
                self.looped(var, words.as_deref().unwrap_or_default());
                self.node(body, stdin);
                self.redirected(redirects);
            }
            NodeKind::Case {
                word,
                patterns,
                redirects,
            } => {
                let words =
                    std::iter::once(&**word).chain(patterns.iter().flat_map(|p| &p.patterns));
                self.words_of("case", words);
                self.all(
                    patterns.iter().filter_map(|pattern| pattern.body.as_ref()),
                    &stdin,
                );
                self.redirected(redirects);
            }
            NodeKind::Function { name, body } => {
                let from = self.at();
                self.node(body, None);
                self.script.functions.push(Function {
                    name: name.clone(),
                    body: from..self.at(),
                });
            }
            NodeKind::Subshell { body, redirects } | NodeKind::BraceGroup { body, redirects } => {
                self.node(body, stdin);
                self.redirected(redirects);
            }
            NodeKind::Coproc { command, .. } => {
                let from = self.at();
                self.node(command, None);
                self.background(from);
            }
            NodeKind::Time { pipeline, .. } => {
                self.timed = matches!(
                    pipeline.kind,
                    NodeKind::Command { .. } | NodeKind::Pipeline { .. }
                );
                self.node(pipeline, stdin);
            }
            NodeKind::Negation { pipeline } => self.node(pipeline, stdin),
            NodeKind::ConditionalExpr { body, redirects } => {
                self.condition(body);
                self.redirected(redirects);
            }
            // The rest is arithmetic, or parts of words.
            _ => self.calculated(node, stdin),
        }
    }

    fn calculated(&mut self, node: &Node, stdin: Stdin) {
        match &node.kind {
            NodeKind::ForArith {
                init,
                cond,
                incr,
                body,
                redirects,
            } => {
                if [init, cond, incr]
                    .into_iter()
                    .any(|text| arithmetic::may_run(text))
                {
                    self.hidden(
                        &format!("for (({init}; {cond}; {incr}))"),
                        "arithmetic over variables",
                    );
                }
                self.node(body, stdin);
                self.redirected(redirects);
            }
            NodeKind::ArithmeticCommand {
                redirects,
                raw_content,
                ..
            } => {
                if arithmetic::may_run(raw_content) {
                    self.hidden(&format!("(({raw_content}))"), "arithmetic over variables");
                }
                self.redirected(redirects);
            }
            NodeKind::Empty | NodeKind::Comment { .. } => {}
            // A command that is none of the known ones is not read.
            _ => self.hidden("…", "a construct that is not known"),
        }
    }

    fn background(&mut self, from: usize) {
        for part in self.script.parts.iter_mut().skip(from) {
            part.background = true;
        }
    }

    fn pipeline(&mut self, commands: &[Node], stdin: Stdin) {
        let mut stdin = stdin;
        for command in commands {
            let from = self.at();
            self.node(command, stdin);
            stdin = Some(from..self.at());
        }
    }

    fn looped(&mut self, var: &str, words: &[Node]) {
        self.words_of("for", words);
        if variables::decides(var) {
            self.odd(
                &format!("for {var}"),
                WordFindings {
                    why: Some(OpaqueReason::Variable(var.to_owned())),
                },
            );
        }
    }

    pub(crate) fn words_of<'a>(
        &mut self,
        construct: &str,
        words: impl IntoIterator<Item = &'a Node>,
    ) {
        let mut found = WordFindings::default();
        for word in words {
            self.word(word, &mut found);
        }
        self.odd(construct, found);
    }

    /// Redirections of a compound command. They start nothing; if they write, a part represents them.
    fn redirected(&mut self, redirects: &[Node]) {
        let mut found = WordFindings::default();
        let redirections: Vec<Redirection> = redirects
            .iter()
            .filter_map(|r| self.redirection(r, &mut found))
            .collect();
        if !redirections.is_empty() {
            self.readings.push(reading(&[], &[], &redirections));
        }
        let text = words_text(
            redirections
                .iter()
                .map(|redirection| redirection.target.raw()),
        );
        if redirections.iter().any(Redirection::writes) || found.why.is_some() {
            let text = format!("> {text}");
            self.script.parts.push(Part {
                text,
                redirections,
                opaque: found.why,
                ..Part::default()
            });
        }
    }

    fn simple(&mut self, assignments: &[Node], words: &[Node], redirects: &[Node], stdin: Stdin) {
        let from = self.at();
        let mut found = WordFindings::default();
        let assignments: Vec<Assignment> = assignments
            .iter()
            .map(|node| self.assignment(node, &mut found))
            .collect();
        let words: Vec<Word> = words
            .iter()
            .map(|node| self.word(node, &mut found))
            .collect();
        let redirections: Vec<Redirection> = redirects
            .iter()
            .filter_map(|r| self.redirection(r, &mut found))
            .collect();
        self.readings
            .push(reading(&assignments, &words, &redirections));
        let mut words = words;
        if std::mem::take(&mut self.timed) && words.first().is_some_and(|word| word.raw() == "--") {
            words.remove(0);
            // What may begin a construct is a word for the parser here.
            if words
                .first()
                .is_none_or(|word| RESERVED.contains(&word.raw()))
                || !assignments.is_empty()
            {
                found.add(OpaqueReason::Wrapper("time".to_owned()));
            }
        }
        if let Some(bad) = assignments
            .iter()
            .find(|assignment| variables::dangerous(assignment))
        {
            found.add(OpaqueReason::Variable(bad.name.clone()));
        }
        let inside = from..self.at();
        let reads: Vec<_> = stdin
            .into_iter()
            .chain([inside])
            .filter(|range| !range.is_empty())
            .collect();
        let mut started = resolve::started(&words).into_iter();
        let Some(first) = started.next() else {
            let writes = redirections.iter().any(Redirection::writes);
            if !assignments.is_empty() || writes || found.why.is_some() {
                let text = text(&assignments, None, &redirections);
                let opaque = found.why;
                self.script.parts.push(Part {
                    text,
                    assignments,
                    redirections,
                    opaque,
                    reads,
                    ..Part::default()
                });
            }
            return;
        };
        let text = text(&assignments, Some(&words), &redirections);
        let assignments = assignments.into_iter().chain(first.assignments).collect();
        self.script.parts.push(Part {
            text,
            program: first.program,
            arguments: first.arguments,
            wrappers: first.wrappers,
            assignments,
            redirections,
            opaque: found.why.or(first.opaque),
            reads: reads.clone(),
            background: false,
            also: first.also,
        });
        self.script.parts.extend(started.map(|next| Part {
            reads: reads.clone(),
            ..Part::from(next)
        }));
    }

    /// Reads a word, and adds the commands inside of it as parts.
    fn word(&mut self, node: &Node, found: &mut WordFindings) -> Word {
        let NodeKind::Word { value, parts, .. } = &node.kind else {
            found.add(OpaqueReason::Hidden("a word that is not known"));
            return Word::hidden("…");
        };
        let (mut word, inside) = word::read(value, parts);
        let (first, bytes) = self.places.word(node, value).unzip();
        word.set_place(bytes);
        if inside.escaped_backquote {
            found.add(OpaqueReason::Hidden("backquotes"));
        }
        if inside.torn {
            found.add(OpaqueReason::Hidden("a subscript"));
        }
        if inside.unparsed {
            self.again(value, first, found);
        } else {
            self.inside(parts, first, found);
        }
        word
    }

    /// Parses the content of nested substitutions, which the parser leaves as text; `first`: its first character, if that
    /// is known.
    pub(crate) fn again(&mut self, text: &str, first: Option<usize>, found: &mut WordFindings) {
        if self.depth >= MAX_DEPTH {
            found.add(OpaqueReason::TooDeep);
            return;
        }
        self.depth += 1;
        let nodes = parsed(&format!(": {text}")).unwrap_or_default();
        match nodes.as_slice() {
            [
                Node {
                    kind: NodeKind::Command { words, .. },
                    ..
                },
            ] if !words.is_empty() => {
                for node in words {
                    let NodeKind::Word { value, parts, .. } = &node.kind else {
                        continue;
                    };
                    if word::read(value, parts).1.unparsed {
                        found.add(OpaqueReason::Hidden("an expansion"));
                    }
                    // The text is one word, but for odd characters.
                    self.inside(parts, first.filter(|_| value == text), found);
                }
            }
            _ => found.add(OpaqueReason::Hidden("an expansion")),
        }
        self.depth -= 1;
    }

    /// The parts of a word; `at`: the first character of the next one, if it is known.
    fn inside(&mut self, parts: &[Node], mut at: Option<usize>, found: &mut WordFindings) {
        for part in parts {
            let next = match &part.kind {
                NodeKind::WordLiteral { value } => self.places.passed(at, value),
                NodeKind::ParamExpansion {
                    param, op: None, ..
                } => [format!("${param}"), format!("${{{param}}}")]
                    .iter()
                    .find_map(|written| self.places.passed(at, written)),
                _ => None,
            };
            match &part.kind {
                NodeKind::CommandSubstitution { command, .. }
                | NodeKind::ProcessSubstitution { command, .. } => {
                    let outside = self.places.enter(at);
                    self.node(command, None);
                    at = self.places.leave(outside);
                    continue;
                }
                NodeKind::WordLiteral { .. }
                | NodeKind::AnsiCQuote { .. }
                | NodeKind::BraceExpansion { .. } => {
                    self.text_inside(part, found);
                }
                NodeKind::ParamExpansion { param, op, arg } => {
                    parameter(param, op.as_deref(), arg.as_deref(), found)
                }
                NodeKind::ParamLength { param } => parameter(param, None, None, found),
                NodeKind::ArithmeticExpansion { expression } => {
                    if !expression.as_deref().is_some_and(only_numbers) {
                        found.add(OpaqueReason::Hidden("arithmetic over variables"));
                    }
                }
                NodeKind::LocaleString { content, .. } => {
                    live(content, "a translated string", found)
                }
                // An indirect name, or what no word should have.
                _ => found.add(OpaqueReason::Hidden("an expansion")),
            }
            at = next;
        }
    }

    fn text_inside(&mut self, part: &Node, found: &mut WordFindings) {
        if let NodeKind::BraceExpansion { content } = &part.kind {
            live(content, "braces", found);
        }
    }

    fn assignment(&mut self, node: &Node, found: &mut WordFindings) -> Assignment {
        let word = self.word(node, found);
        let bare = word.bare();
        let name: String = bare
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        let (left, right) = bare.split_once('=').unwrap_or((bare, ""));
        if left.contains('[') && arithmetic::may_run(left.get(name.len() + 1..).unwrap_or_default())
        {
            found.add(OpaqueReason::Hidden("a subscript"));
        }
        if right.starts_with('(') && right.contains("]=") {
            found.add(OpaqueReason::Hidden("a subscript"));
        }
        let value = word.tail(left.len() + 1);
        Assignment { name, value }
    }

    fn redirection(&mut self, node: &Node, found: &mut WordFindings) -> Option<Redirection> {
        match &node.kind {
            NodeKind::Redirect {
                op, target, varfd, ..
            } => {
                if let Some(name) = varfd.as_ref().filter(|name| variables::decides(name)) {
                    found.add(OpaqueReason::Variable(name.clone()));
                }
                let target = self.word(target, found);
                if matches!(op.as_str(), ">&" | "<&") && !target.literal().is_some_and(unchanged) {
                    found.add(OpaqueReason::Hidden("the target of a redirection"));
                }
                Some(Redirection {
                    kind: direction(op, &target),
                    target,
                })
            }
            NodeKind::HereDoc {
                content,
                quoted,
                complete,
                ..
            } => {
                if !quoted {
                    live(content, "a here-document", found);
                }
                if !complete {
                    found.add(OpaqueReason::Hidden("a here-document without an end"));
                }
                Some(Redirection {
                    kind: RedirectKind::Text,
                    target: Word::hidden("<<"),
                })
            }
            // No other node is a redirection.
            _ => {
                found.add(OpaqueReason::Hidden("a redirection that is not known"));
                None
            }
        }
    }
}

fn reading(assignments: &[Assignment], words: &[Word], redirections: &[Redirection]) -> Reading {
    let literal = |word: &Word| word.literal().map(str::to_owned);
    let target = |redirection: &Redirection| match redirection.kind {
        RedirectKind::Descriptor => second::DESCRIPTOR,
        RedirectKind::Read | RedirectKind::Write | RedirectKind::Text => {
            literal(&redirection.target)
        }
    };
    Reading {
        assignments: assignments
            .iter()
            .map(|assignment| assignment.name.clone())
            .collect(),
        words: words.iter().map(literal).collect(),
        redirections: redirections.iter().map(target).collect(),
    }
}

/// Whether a word means the same when it is expanded once more. Bash does that with a target of `>&` that is no
/// descriptor: it takes the quotes away, expands what is left as a word, and opens the file of that name.
fn unchanged(target: &str) -> bool {
    target
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_./+-,:@%".contains(c))
}

fn direction(op: &str, target: &Word) -> RedirectKind {
    let descriptor = |text: &str| {
        text.trim_end_matches('-')
            .chars()
            .all(|c| c.is_ascii_digit())
    };
    match op {
        "<" => RedirectKind::Read,
        "<<<" => RedirectKind::Text,
        "<&" | "<&-" | ">&-" => RedirectKind::Descriptor,
        ">&" if target.literal().is_some_and(descriptor) => RedirectKind::Descriptor,
        _ => RedirectKind::Write,
    }
}

fn text(
    assignments: &[Assignment],
    words: Option<&[Word]>,
    redirections: &[Redirection],
) -> String {
    let set = assignments
        .iter()
        .map(|assignment| format!("{}={}", assignment.name, assignment.value.raw()));
    let words = words
        .unwrap_or_default()
        .iter()
        .map(|word| word.raw().to_owned());
    let files = redirections
        .iter()
        .filter_map(|redirection| match redirection.kind {
            RedirectKind::Read => Some(format!("< {}", redirection.target.raw())),
            RedirectKind::Write => Some(format!("> {}", redirection.target.raw())),
            RedirectKind::Text | RedirectKind::Descriptor => None,
        });
    let all: Vec<String> = set.chain(words).chain(files).collect();
    words_text(all.iter().map(String::as_str))
}
