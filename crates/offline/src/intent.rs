//! What a prompt asks for: one intent for each thing asked, or the clause that is not understood.
//!
//! Every word of a clause is a word of the grammar, a place, or the thing asked about. A clause with a word left over
//! is not understood: nothing is guessed.

use super::lex::Word::*;
use super::lex::{ALL_DEFS, Clause, Joint, Lang, Token, Word, clauses};
use super::lex::{extension, is, is_identifier, is_path, noun, regex_escape};

/// Something asked for.
#[derive(Debug)]
pub(super) enum Intent {
    List { depth: u64, path: Option<String> },
    Largest { most: u64, path: Option<String> },
    Find { glob: String, path: Option<String> },
    Search { what: Sought, files: bool, scope: Scope },
    Count { what: Counted, scope: Scope },
    Read { path: String, part: Part },
    SummariseFile { path: String },
    SummariseDir { path: Option<String> },
    Replace { old: String, new: String, whole_word: bool, scope: Scope },
    Create { path: String, content: String, overwrite: bool },
    Run(Task),
}

/// Files that say what a project is.
pub(super) const MANIFESTS: &str = "{Cargo.toml,package.json,pyproject.toml,setup.py,go.mod}";

/// Which files; everything under the working directory when empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) path: Option<String>,
    pub(super) glob: Option<String>,
    pub(super) lang: Option<&'static Lang>,
}

#[derive(Debug)]
pub(super) enum Sought {
    /// Lines that match.
    Text { regex: String, shown: String },
    /// Definitions of these kinds, under a name or any.
    Defined { kinds: &'static str, plural: &'static str, name: Option<String> },
}

#[derive(Debug)]
pub(super) enum Counted {
    Lines,
    Files,
    Found { what: Sought, files: bool },
}

#[derive(Debug)]
pub(super) enum Part {
    All,
    Lines(u64, u64),
    Last(u64),
}

#[derive(Debug)]
pub(super) enum Task {
    Command(String),
    Script(String),
    /// The project's own tests, or its build.
    Project {
        tests: bool,
        path: Option<String>,
    },
}

/// The intents of a prompt with how each hangs on the one before, or the words that fit none.
pub(super) fn parse(prompt: &str) -> Result<Vec<(Joint, Intent)>, String> {
    let (mut out, mut last) = (Vec::new(), None);
    let clauses = clauses(prompt);
    if clauses.is_empty() {
        return Err(prompt.trim().to_owned());
    }
    for clause in &clauses {
        let found = intents(clause, last).ok_or_else(|| text(clause, 0))?;
        last = clause.tokens.iter().rfind(|t| t.word == Path).map(|t| t.text).or(last);
        out.extend(found.into_iter().map(|intent| (clause.joint, intent)));
    }
    Ok(out)
}

/// The prompt's own text from a token to the clause's last.
fn text(clause: &Clause<'_>, from: usize) -> String {
    let (start, end) = (clause.tokens.get(from).map(|t| t.span.0), clause.tokens.last().map(|t| t.span.1));
    clause.prompt.get(start.unwrap_or(0)..end.unwrap_or(0)).unwrap_or_default().to_owned()
}

fn intents(clause: &Clause<'_>, last: Option<&str>) -> Option<Vec<Intent>> {
    let acts = run(clause, last).or_else(|| replace(clause)).or_else(|| create(clause));
    acts.map(|intent| vec![intent]).or_else(|| Frame::of(clause.prompt, &clause.tokens, last)?.intents())
}

/// The words of a clause by what they are for.
#[derive(Default)]
struct Frame<'a> {
    words: Vec<Word>,
    noun: Option<(&'static str, &'static str)>,
    key: Option<String>,
    names: Vec<&'a Token<'a>>,
    paths: Vec<&'a str>,
    numbers: Vec<u64>,
    glob: Option<String>,
    lang: Option<&'static Lang>,
    prompt: &'a str,
}

impl<'a> Frame<'a> {
    /// `None` when two globs, languages or nouns are named.
    fn of(prompt: &'a str, tokens: &'a [Token<'a>], last: Option<&'a str>) -> Option<Self> {
        let mut frame = Frame { prompt, ..Frame::default() };
        let literal = tokens.iter().any(|t| matches!(t.word, Search | Contain | Times));
        for (at, token) in tokens.iter().enumerate() {
            let next = tokens.get(at + 1).map_or(Glue, |t| t.word);
            let before = tokens.iter().take(at).rev().map(|t| t.word).find(|w| *w != Glue).unwrap_or(Glue);
            // "import json", but "search python files"
            let subject =
                matches!(before, Import | Used | Contain | Search) && !matches!(next, File | Place | Line | Def);
            let folder = before == In || next == Folder || before == Folder;
            let word = match token.word {
                // "files named list"
                word if before == Named && !matches!(word, Path | Glob | Word::Lang | In | Glue) => Name,
                Name if is_path(token.text) && !literal || folder && is_identifier(&token.text.replace('-', "_")) => {
                    Path
                }
                Def if before == In => Path,
                Word::Lang if subject => Name,
                word => word,
            };
            let ext = token.text.strip_prefix('.').map(|ext| format!("*.{ext}"));
            let twice = match word {
                Glob => frame.glob.replace(ext.unwrap_or_else(|| token.text.to_owned())).is_some(),
                Word::Lang => frame.lang.replace(Lang::named(&token.low())?).is_some(),
                Def => frame.noun.replace(noun(&token.low())?).is_some(),
                _ => false,
            };
            match word {
                _ if twice => return None,
                Name => frame.names.push(token),
                Path => frame.paths.extend(Some(token.text).filter(|path| *path != ".")),
                Number => frame.numbers.extend(token.text.split('-').filter_map(|n| n.parse::<u64>().ok())),
                It => frame.paths.extend(last),
                Key => frame.key = Some(token.low()),
                _ => {}
            }
            frame.words.push(word);
        }
        // "README" and "a/b.rs" are files, "src" and "a/b" are not.
        let file = |path: &&str| extension(path).is_some() || is_path(path) && !path.contains('/');
        frame.words.extend(frame.paths.iter().map(|path| if file(path) { Doc } else { Dir }));
        let quoted = frame.names.iter().any(|name| name.quote.is_some());
        let code = frame.names.iter().any(|name| name.text.contains(|c: char| !c.is_lowercase()));
        frame.words.extend(quoted.then_some(Quoted));
        frame.words.extend((quoted || code).then_some(Code));
        Some(frame)
    }

    fn has(&self, words: &[Word]) -> bool {
        self.words.iter().any(|w| words.contains(w))
    }

    /// `None` when more than one place is named.
    fn scope(&self) -> Option<Scope> {
        let path = self.paths.first().map(|&path| path.to_owned());
        (self.paths.len() < 2).then(|| Scope { path, glob: self.glob.clone(), lang: self.lang })
    }

    /// What is asked about. Several words are one thing only where text is searched for and they stand together.
    fn subject(&self) -> Option<String> {
        match self.names.as_slice() {
            [] => Some(String::new()),
            [one] => Some(if one.quote.is_some() { one.text } else { one.symbol() }.to_owned()),
            [first, .., last] => {
                let words = self.prompt.get(first.span.0..last.span.1)?;
                let one = words.split_whitespace().count() == self.names.len() && self.has(&[Search, Contain]);
                one.then(|| words.to_owned())
            }
        }
    }

    fn intents(&self) -> Option<Vec<Intent>> {
        let fits = |(all, none, _): &&Rule| all.iter().all(|any| self.has(any)) && !self.has(none);
        let (.., ask) = RULES.iter().find(fits)?;
        let (name, scope) = (self.subject()?, self.scope());
        let whole = is_identifier(&name) && !self.has(&[Quoted, Search, Contain]);
        let regex = if whole { format!(r"\b{name}\b") } else { regex_escape(&name) };
        let glob = scope.as_ref().and_then(|s| s.glob.clone().or_else(|| s.lang.map(Lang::glob)));
        let path = scope.as_ref().and_then(|s| s.path.clone());
        let (kinds, plural) = self.noun.unwrap_or((ALL_DEFS, "definitions"));
        let what = match ask {
            Ask::Nothing => return None,
            Ask::Read => {
                return Some(
                    self.paths.iter().map(|&path| Intent::Read { path: path.to_owned(), part: self.part() }).collect(),
                );
            }
            Ask::Outline => {
                return Some(self.paths.iter().map(|&path| Intent::SummariseFile { path: path.to_owned() }).collect());
            }
            Ask::Named => Err(Intent::Find { glob: if name.contains('.') { name } else { format!("*{name}*") }, path }),
            Ask::Glob => Err(Intent::Find { glob: glob?, path }),
            Ask::File => Err(Intent::Find { glob: path?, path: None }),
            Ask::Folder => Err(Intent::List { depth: 1, path: Some(name) }),
            Ask::Entries => Err(Intent::List { depth: 1, path }),
            Ask::Tree => Err(Intent::List { depth: 4, path }),
            Ask::Largest => Err(Intent::Largest { most: self.numbers.first().copied().unwrap_or(10), path }),
            Ask::Summary => Err(Intent::SummariseDir { path }),
            Ask::Lines => Err(Intent::Count { what: Counted::Lines, scope: scope.clone()? }),
            Ask::Files => Err(Intent::Count { what: Counted::Files, scope: scope.clone()? }),
            Ask::Key => Ok(key(self.key.as_deref().unwrap_or(&name))),
            Ask::Todo => Ok(Sought::Text { regex: r"\b(?:TODO|FIXME)\b".into(), shown: "TODO or FIXME".into() }),
            Ask::Text => Ok(Sought::Text { regex, shown: name }),
            Ask::Imports => Ok(Sought::Defined { kinds: "import", plural: "imports", name: Some(name) }),
            Ask::Defined => Ok(Sought::Defined { kinds, plural, name: Some(name).filter(|name| !name.is_empty()) }),
        };
        // Without a file, a key is looked for in whatever manifest there is.
        let manifest = Some(MANIFESTS.to_owned()).filter(|_| matches!(ask, Ask::Key) && self.paths.is_empty());
        let (scope, files) = (scope?, self.has(&[File]));
        let scope = Scope { glob: scope.glob.clone().or(manifest), ..scope };
        Some(vec![match what {
            Err(intent) => intent,
            Ok(what) if self.has(COUNTS) => Intent::Count { what: Counted::Found { what, files }, scope },
            Ok(what) => Intent::Search { what, files, scope },
        }])
    }

    fn part(&self) -> Part {
        let lines = self.has(&[Line]);
        match self.numbers.as_slice() {
            [from, to] if lines && *from > 0 && from <= to => Part::Lines(*from, *to),
            [n] if self.has(&[Last]) => Part::Last(*n),
            [n] if self.has(&[First]) => Part::Lines(1, *n),
            [n] if lines && *n > 0 => Part::Lines(*n, *n),
            _ => Part::All,
        }
    }
}

/// What can be asked of files.
#[derive(Clone, Copy)]
enum Ask {
    Nothing,
    Read,
    Outline,
    Named,
    Glob,
    File,
    Folder,
    Entries,
    Tree,
    Largest,
    Summary,
    Lines,
    Files,
    Key,
    Todo,
    Text,
    Imports,
    Defined,
}

/// One word of each group is there, and none of the others.
type Rule = (&'static [&'static [Word]], &'static [Word], Ask);

const COUNTS: &[Word] = &[Many, Count, Long];
const LOOKS: &[Word] = &[List, Show, Find, Search, What, Where, Is, Many, Count];

/// The first that fits decides.
const RULES: &[Rule] = &[
    (&[&[Name], &[File], &[Named, Called]], COUNTS, Ask::Named),
    (&[&[Name], &[Import], LOOKS], &[], Ask::Imports),
    (&[&[Name], &[Search, Contain, Times, Used, Called], LOOKS], &[], Ask::Text),
    (&[&[Quoted], &[Many, Count, Find]], &[Defined, Def], Ask::Text),
    (&[&[Name], COUNTS], &[], Ask::Nothing),
    (&[&[Name], &[Defined, Where], LOOKS], &[], Ask::Defined),
    (&[&[Name], &[Find, Show, What], &[Def, Code]], &[Doc, Dir], Ask::Defined),
    (&[&[Name], &[What], &[Doc]], &[], Ask::Key),
    (&[&[Name], &[List]], &[File, Doc, Dir, Glob, Word::Lang, And, Largest], Ask::Folder),
    (&[&[Name]], &[], Ask::Nothing),
    (&[&[Def], LOOKS], &[File, Summarise], Ask::Defined),
    (&[&[Def]], &[], Ask::Nothing),
    (&[&[Todo], LOOKS], &[Summarise], Ask::Todo),
    (&[&[Line, Long], COUNTS], &[], Ask::Lines),
    (&[&[File, Glob, Word::Lang], COUNTS], &[], Ask::Files),
    (&[COUNTS], &[], Ask::Nothing),
    (&[&[Largest], &[File]], &[Glob, Word::Lang], Ask::Largest),
    (&[&[Glob, Word::Lang], &[File, Find, List]], &[Summarise], Ask::Glob),
    (&[&[Glob, Word::Lang]], &[], Ask::Nothing),
    (&[&[Doc], &[Find, Where, Named, Called]], &[], Ask::File),
    (&[&[Key], &[What, Show]], &[Summarise], Ask::Key),
    (&[&[Summarise], &[Doc]], &[], Ask::Outline),
    (&[&[Summarise]], &[], Ask::Summary),
    (&[&[What], &[Doc]], &[In, Contain, Line, First, Last, Contents], Ask::Outline),
    (&[&[Doc], &[Show, First, Last, Line, What, List]], &[], Ask::Read),
    (&[&[What], &[Place, Dir]], &[File, In, Contents, Tree, Line], Ask::Summary),
    (&[&[Tree], LOOKS], &[], Ask::Tree),
    (&[&[List, What, Show], &[File, Contents, Folder, Dir, List]], &[Largest, Named, Called, Line], Ask::Entries),
];

/// Lines that give a key a value.
fn key(name: &str) -> Sought {
    Sought::Text { regex: format!(r#"^\s*["']?{}["']?\s*[.:=]"#, regex_escape(name)), shown: name.to_owned() }
}

/// Programs that "run" may be followed by; any other command is quoted.
const PROGRAMS: &str = "cargo git npm npx node python python3 pytest go rustc ls make echo cat wc date pwd true false \
                        uname sh bash gcc cc ruby du df env head tail sort which whoami mkdir touch cp mv rm sed awk diff";

fn run(clause: &Clause<'_>, last: Option<&str>) -> Option<Intent> {
    let tokens = clause.tokens.as_slice();
    let first = tokens.first()?;
    let frame = Frame::of(clause.prompt, tokens, last)?;
    let (verb, tests) = (first.word == Run, frame.noun.is_some_and(|(kinds, _)| kinds == "test"));
    let other = [List, Show, Find, Search, Count, Summarise, Many, What, Where, How, File, Line, Todo, Key, Name];
    let plain = !frame.has(&other);
    let asked = if tests { verb || frame.has(&[Pass]) || first.word == Def } else { frame.has(&[Build]) };
    if frame.names.is_empty() && plain && asked {
        return Some(Intent::Run(Task::Project { tests, path: frame.scope()?.path }));
    }
    let lead = |t: &&Token<'_>| matches!(t.word, Run | Glue | Place) || is(t.text, "command shell script");
    let start = tokens.iter().take_while(lead).count();
    let alone = tokens.len() == start + 1;
    Some(Intent::Run(match tokens.get(start) {
        Some(head) if alone && (verb && head.quote.is_some() || head.quote == Some('`')) => {
            Task::Command(head.text.to_owned())
        }
        Some(head) if verb && alone && head.word == It => Task::Script(last?.to_owned()),
        Some(head) if verb && alone && extension(head.text).is_some() => Task::Script(head.text.to_owned()),
        Some(head) if verb && (is(head.text, PROGRAMS) || head.text.starts_with("./")) => {
            Task::Command(text(clause, start))
        }
        Some(_) | None => return None,
    }))
}

fn replace(clause: &Clause<'_>) -> Option<Intent> {
    let tokens = clause.tokens.as_slice();
    let verb = tokens.iter().position(|t| t.word == Replace)?;
    let link = tokens.iter().position(|t| matches!(t.word, With | To)).filter(|link| *link > verb)?;
    let left = tokens.get(verb + 1..link)?;
    let says = |words: &str| left.iter().any(|t| t.quote.is_none() && is(&t.low(), words));
    let (kind, exact) = (
        left.iter().any(|t| t.word == Def) || says("variable identifier symbol word name"),
        says("text string phrase"),
    );
    let lead = |t: &&Token<'_>| matches!(t.word, Glue | Def | Times | Used | Key);
    let (old, left_rest) = left.get(left.iter().take_while(lead).count()..)?.split_first()?;
    let (new, right_rest) = tokens.get(link + 1..)?.split_first()?;
    // Anything not understood about where to change files means that nothing is changed.
    let around: Vec<Token<'_>> = tokens.get(..verb)?.iter().chain(left_rest).chain(right_rest).cloned().collect();
    let place = Frame::of(clause.prompt, &around, None)?;
    let known = |w: &Word| matches!(w, In | Place | File | Folder | Glue | Path | Doc | Dir | Glob | Word::Lang);
    let clear = place.words.iter().all(known);
    let vague = old.quote.is_none() && says("the") && !kind && !exact || old.word == Path;
    if !clear || vague || old.text.is_empty() || old.text.contains('\n') || old.text == new.text {
        return None;
    }
    let called = old.text.ends_with("()") && new.text.ends_with("()");
    let (from, to) = if called { (old.symbol(), new.symbol()) } else { (old.text, new.text) };
    // Names are meant whole; what is quoted as text is meant exactly.
    let literal = exact
        || !kind
            && tokens.get(verb).is_some_and(|t| t.low() != "rename")
            && old.quote.is_some_and(|quote| quote != '`');
    let whole_word = is_identifier(from) && !literal;
    Some(Intent::Replace { old: from.to_owned(), new: to.to_owned(), whole_word, scope: place.scope()? })
}

/// Words between a new file's name and what is to be in it; the first must be one of [`OPENERS`].
const LINKS: &str = "with containing saying the this content contents text line code";
const OPENERS: &str = "with containing saying";

fn create(clause: &Clause<'_>) -> Option<Intent> {
    let tokens = clause.tokens.as_slice();
    let overwrite = tokens.first().filter(|t| matches!(t.word, Create | Overwrite))?.word == Overwrite;
    let filler = |t: &&Token<'_>| matches!(t.word, Glue | File | Called | Named | In | To) || is(t.text, "new empty");
    let lead = 1 + tokens.iter().skip(1).take_while(filler).count();
    let (first, rest) = tokens.get(lead..)?.split_first()?;
    let named = |t: &Token<'_>| is_path(t.text) || t.quote.is_none() && extension(t.text).is_some();
    let links = rest.iter().take_while(|t| t.quote.is_none() && is(&t.low(), LINKS)).count();
    let opens = rest.first().is_some_and(|t| is(&t.low(), OPENERS));
    let (path, content) = match rest.get(links..)? {
        [] if named(first) && links == 0 => (first, ""),
        [body] if named(first) && opens && body.quote.is_some() => (first, body.text),
        // What is not quoted goes on to the end of the clause, brackets and all.
        [body, ..] if named(first) && opens => (first, clause.prompt.get(body.span.0..)?),
        [.., path]
            if first.quote.is_some()
                && !named(first)
                && named(path)
                && rest.iter().filter(|t| !filler(t)).count() == 1 =>
        {
            (path, first.text)
        }
        _ => return None,
    };
    let content =
        if content.is_empty() || content.ends_with('\n') { content.to_owned() } else { format!("{content}\n") };
    Some(Intent::Create { path: path.text.to_owned(), content, overwrite })
}

/// One word for the shell.
pub(super) fn shell_quote(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-+=".contains(c));
    if plain && !text.is_empty() { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
