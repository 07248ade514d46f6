//! What a prompt asks for: one intent for each thing asked, or the clause that is not understood.
//!
//! Every word of a clause is a word of the grammar, a place, or the thing asked about. A clause with a word left over
//! is not understood: nothing is guessed.

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
    Read { path: Option<String>, part: Part },
    SummariseFile { path: String },
    SummariseDir { path: Option<String> },
    Replace { old: String, new: String, whole_word: bool, scope: Scope },
    Create { path: String, content: String, overwrite: bool },
    Run(Task),
}

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
    Folders,
    Found { what: Sought, files: bool },
}

#[derive(Debug)]
pub(super) enum Part {
    All,
    Lines(u64, u64),
    Last(u64),
    /// The lines that give this key a value.
    Key(String),
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
        last = clause.tokens.iter().rfind(|t| t.word == Word::Path).map(|t| t.text).or(last);
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
        let literal = tokens.iter().any(|t| matches!(t.word, Word::Search | Word::Contain | Word::Times));
        for (at, token) in tokens.iter().enumerate() {
            let next = tokens.get(at + 1).map_or(Word::Glue, |t| t.word);
            let before = tokens.iter().take(at).rev().map(|t| t.word).find(|w| *w != Word::Glue).unwrap_or(Word::Glue);
            // "import json", but "search python files"
            let subject = matches!(before, Word::Import | Word::Used | Word::Contain | Word::Search)
                && !matches!(next, Word::File | Word::Place | Word::Line | Word::Def);
            // "files named list"
            let named = before == Word::Named
                && !matches!(token.word, Word::Path | Word::Glob | Word::Lang | Word::In | Word::Glue);
            let word = if named { Word::Name } else { token.word };
            let unique = match word {
                Word::Glob => frame
                    .glob
                    .replace(token.text.strip_prefix('.').map_or(token.text.to_owned(), |ext| format!("*.{ext}")))
                    .is_none(),
                Word::Lang if !subject => frame.lang.replace(Lang::named(&token.low())?).is_none(),
                Word::Def if before != Word::In => frame.noun.replace(noun(&token.low())?).is_none(),
                _ => true,
            };
            let folder = before == Word::In || next == Word::Folder || before == Word::Folder;
            match word {
                _ if !unique => return None,
                Word::Name if is_path(token.text) && !literal => frame.paths.push(token.text),
                Word::Name if folder && is_identifier(&token.text.replace('-', "_")) => frame.paths.push(token.text),
                Word::Def if before == Word::In => frame.paths.push(token.text),
                Word::Name => frame.names.push(token),
                Word::Lang if subject => frame.names.push(token),
                Word::Path => frame.paths.extend(Some(token.text).filter(|path| *path != ".")),
                Word::Number => frame.numbers.extend(token.text.split('-').filter_map(|n| n.parse::<u64>().ok())),
                Word::It => frame.paths.extend(last),
                Word::Key => frame.key = Some(token.low()),
                _ => {}
            }
            frame.words.push(word);
        }
        Some(frame)
    }

    fn has(&self, words: &[Word]) -> bool {
        self.words.iter().any(|w| words.contains(w))
    }

    /// No word of the grammar but these.
    fn only(&self, words: &[Word]) -> bool {
        use Word::{Def, Glob, Glue, It, Lang, Name, Number, Path};
        let held = [Def, Glob, Glue, It, Lang, Name, Number, Path];
        self.words.iter().all(|w| held.contains(w) || words.contains(w))
    }

    /// `None` when more than one place is named.
    fn path(&self) -> Option<Option<String>> {
        (self.paths.len() < 2).then(|| self.paths.first().map(|&path| path.to_owned()))
    }

    fn scope(&self) -> Option<Scope> {
        Some(Scope { path: self.path()?, glob: self.glob.clone(), lang: self.lang })
    }

    fn intents(&self) -> Option<Vec<Intent>> {
        use Word::{Count, Find, First, How, Is, Last, Line, List, Search, Show, Summarise, What, Where};
        let asks = [Count, Find, First, How, Is, Last, Line, List, Search, Show, Summarise, What, Where];
        if !self.has(&asks) {
            return None;
        }
        let one = match self.names.as_slice() {
            [] => self.defined().or_else(|| self.files()),
            names => self.named(names),
        };
        one.map(|intent| vec![intent]).or_else(|| self.reads())
    }

    fn counts(&self) -> bool {
        self.has(&[Word::Many, Word::Count, Word::Long])
    }

    /// What is asked about a name or a text.
    fn named(&self, names: &[&Token<'_>]) -> Option<Intent> {
        use Word::{Called, Contain, Defined, File, Find, Import, List, Named, Search, Show, Times, Used, What, Where};
        let (first, last) = (names.first()?, names.last()?);
        // Several words are one thing only where text is searched for and they stand together.
        let words = self.prompt.get(first.span.0..last.span.1)?;
        let together = words.split_whitespace().count() == names.len() && self.has(&[Search, Contain]);
        if names.len() > 1 && !together {
            return None;
        }
        let (scope, quoted) = (self.scope()?, first.quote.is_some());
        let name = if names.len() > 1 {
            words
        } else if quoted {
            first.text
        } else {
            first.symbol()
        }
        .to_owned();
        let (files, code) = (self.has(&[File]), quoted || name.contains(|c: char| !c.is_lowercase()));
        if files && self.has(&[Named, Called]) {
            let glob = if name.contains('.') { name } else { format!("*{name}*") };
            return Some(Intent::Find { glob, path: scope.path });
        }
        let whole = is_identifier(&name) && !quoted && !self.has(&[Search, Contain]);
        let regex = if whole { format!(r"\b{name}\b") } else { regex_escape(&name) };
        let text = Sought::Text { regex, shown: name.clone() };
        let (kinds, plural) = self.noun.unwrap_or((ALL_DEFS, "definitions"));
        let what = if self.has(&[Import]) {
            Sought::Defined { kinds: "import", plural: "imports", name: Some(name) }
        } else if self.has(&[Search, Contain, Times, Used, Called])
            || quoted && (self.counts() || self.has(&[Find]) && !self.has(&[Defined]))
        {
            text
        } else if self.counts() {
            return None;
        } else if self.has(&[Defined, Where])
            || self.has(&[Find, Show, What]) && self.paths.is_empty() && (code || self.noun.is_some())
        {
            Sought::Defined { kinds, plural, name: Some(name) }
        } else if self.has(&[What]) && scope.path.is_some() {
            return Some(Intent::Read { path: scope.path, part: Part::Key(name) });
        } else if self.only(&[List]) && self.has(&[List]) && scope.path.is_none() {
            return Some(Intent::List { depth: 1, path: Some(name) });
        } else {
            return None;
        };
        Some(self.look(what, scope))
    }

    fn look(&self, what: Sought, scope: Scope) -> Intent {
        let files = self.has(&[Word::File]);
        if self.counts() {
            Intent::Count { what: Counted::Found { what, files }, scope }
        } else {
            Intent::Search { what, files, scope }
        }
    }

    /// Definitions whatever their names, and notes to do something.
    fn defined(&self) -> Option<Intent> {
        use Word::{File, Find, Is, List, Search, Show, Summarise, Todo, What, Where};
        let asks = self.counts() || self.has(&[List, Show, Find, Search, What, Where, Is]) && !self.has(&[Summarise]);
        let what = match self.noun {
            Some((kinds, plural)) if !self.has(&[File]) => Sought::Defined { kinds, plural, name: None },
            None if self.has(&[Todo]) => {
                Sought::Text { regex: r"\b(?:TODO|FIXME)\b".into(), shown: "TODO or FIXME".into() }
            }
            Some(_) | None => return None,
        };
        Some(self.look(what, self.scope()?)).filter(|_| asks)
    }

    /// What is asked about files and directories.
    fn files(&self) -> Option<Intent> {
        use Word::{
            Called, Contents, File, Find, Folder, Folders, Is, Key, Largest, Line, List, Long, Named, Place, Show,
            Summarise, Tree, What, Where,
        };
        let (scope, narrowed) = (self.scope()?, self.glob.is_some() || self.lang.is_some());
        if self.noun.is_some() {
            return None;
        }
        if self.counts() {
            let what = match (self.has(&[Line, Long]), self.has(&[File]) || narrowed) {
                (true, _) => Counted::Lines,
                (false, true) => Counted::Files,
                (false, false) => self.has(&[Folders]).then_some(Counted::Folders)?,
            };
            return Some(Intent::Count { what, scope });
        }
        // "README" and "a/b.rs" are files, "src" and "a/b" are not.
        let file = scope.path.as_deref().is_some_and(|p| extension(p).is_some() || is_path(p) && !p.contains('/'));
        let whole =
            self.only(&[What, Is, Place, Folder]) && self.has(&[What]) && (self.has(&[Place]) || scope.path.is_some());
        let glob = scope.glob.or_else(|| scope.lang.map(Lang::glob));
        let lists =
            self.has(&[Tree, Folders, File, Contents, Folder]) || scope.path.is_some() || self.only(&[List, Is, What]);
        Some(if self.has(&[Largest]) && self.has(&[File]) && !narrowed {
            Intent::Largest { most: self.numbers.first().copied().unwrap_or(10), path: scope.path }
        } else if let Some(glob) = glob {
            Some(Intent::Find { glob, path: scope.path })
                .filter(|_| self.has(&[File, Find, List]) && !self.has(&[Summarise]))?
        } else if file && self.has(&[Find, Where, Named, Called]) {
            Intent::Find { glob: scope.path?, path: None }
        } else if let Some(key) = self.key.clone().filter(|_| self.has(&[What, Show]) && self.has(&[Key])) {
            Intent::Read { path: scope.path, part: Part::Key(key) }
        } else if !file && (self.has(&[Summarise]) || whole) {
            Intent::SummariseDir { path: scope.path }
        } else if !file && lists && self.has(&[List, What, Show]) && !self.has(&[Largest, Named, Called, Line]) {
            Intent::List { depth: if self.has(&[Tree]) { 4 } else { 1 }, path: scope.path }
        } else {
            return None;
        })
    }

    /// Reading and summarising: one intent for each file named.
    fn reads(&self) -> Option<Vec<Intent>> {
        use Word::{File, First, Is, Last, Line, List, Place, Show, Summarise, What};
        let lines = self.has(&[Line]);
        let part = || match self.numbers.as_slice() {
            [from, to] if lines && *from > 0 && from <= to => Part::Lines(*from, *to),
            [n] if self.has(&[Last]) => Part::Last(*n),
            [n] if self.has(&[First]) => Part::Lines(1, *n),
            [n] if lines && *n > 0 => Part::Lines(*n, *n),
            _ => Part::All,
        };
        let tells = self.has(&[Summarise]) || self.has(&[What]) && self.only(&[What, Is, Place, File]);
        let each = |path: &&str| {
            let path = (*path).to_owned();
            if tells { Intent::SummariseFile { path } } else { Intent::Read { path: Some(path), part: part() } }
        };
        let asked = tells || self.has(&[Show, First, Last, Line, What, List]);
        let plain = self.names.is_empty() && self.noun.is_none() && !self.paths.is_empty() && !self.counts();
        (asked && plain).then(|| self.paths.iter().map(each).collect())
    }
}

/// Programs that "run" may be followed by; any other command is quoted.
const PROGRAMS: &str = "cargo git npm npx node python python3 pytest go rustc ls make echo cat wc date pwd true false \
                        uname sh bash gcc cc ruby du df env head tail sort which whoami mkdir touch cp mv rm sed awk diff";

fn run(clause: &Clause<'_>, last: Option<&str>) -> Option<Intent> {
    let tokens = clause.tokens.as_slice();
    let first = tokens.first()?;
    let frame = Frame::of(clause.prompt, tokens, last)?;
    let (verb, tests) = (first.word == Word::Run, frame.noun.is_some_and(|(kinds, _)| kinds == "test"));
    let plain = frame.only(&[Word::Run, Word::Build, Word::Is, Word::Pass, Word::Place, Word::In, Word::Folder]);
    let asked =
        if tests { verb || frame.has(&[Word::Pass]) || first.word == Word::Def } else { frame.has(&[Word::Build]) };
    if frame.names.is_empty() && plain && asked {
        return Some(Intent::Run(Task::Project { tests, path: frame.path()? }));
    }
    let lead =
        |t: &&Token<'_>| matches!(t.word, Word::Run | Word::Glue | Word::Place) || is(t.text, "command shell script");
    let start = tokens.iter().take_while(lead).count();
    let alone = tokens.len() == start + 1;
    Some(Intent::Run(match tokens.get(start) {
        Some(head) if alone && (verb && head.quote.is_some() || head.quote == Some('`')) => {
            Task::Command(head.text.to_owned())
        }
        Some(head) if verb && alone && head.word == Word::It => Task::Script(last?.to_owned()),
        Some(head) if verb && alone && extension(head.text).is_some() => Task::Script(head.text.to_owned()),
        Some(head) if verb && (is(head.text, PROGRAMS) || head.text.starts_with("./")) => {
            Task::Command(text(clause, start))
        }
        Some(_) | None => return None,
    }))
}

fn replace(clause: &Clause<'_>) -> Option<Intent> {
    let tokens = clause.tokens.as_slice();
    let verb = tokens.iter().position(|t| t.word == Word::Replace)?;
    let link = tokens.iter().position(|t| matches!(t.word, Word::With | Word::To)).filter(|link| *link > verb)?;
    let left = tokens.get(verb + 1..link)?;
    let says = |words: &str| left.iter().any(|t| t.quote.is_none() && is(&t.low(), words));
    let (kind, exact) = (
        left.iter().any(|t| t.word == Word::Def) || says("variable identifier symbol word name"),
        says("text string phrase"),
    );
    let lead = |t: &&Token<'_>| matches!(t.word, Word::Glue | Word::Def | Word::Times | Word::Used | Word::Key);
    let (old, left_rest) = left.get(left.iter().take_while(lead).count()..)?.split_first()?;
    let (new, right_rest) = tokens.get(link + 1..)?.split_first()?;
    // Anything not understood about where to change files means that nothing is changed.
    let around: Vec<Token<'_>> = tokens.get(..verb)?.iter().chain(left_rest).chain(right_rest).cloned().collect();
    let place = Frame::of(clause.prompt, &around, None)?;
    let clear = place.names.is_empty()
        && place.noun.is_none()
        && place.only(&[Word::In, Word::Place, Word::File, Word::Folder]);
    let vague = old.quote.is_none() && says("the") && !kind && !exact || old.word == Word::Path;
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
    let overwrite =
        tokens.first().filter(|t| matches!(t.word, Word::Create | Word::Overwrite))?.word == Word::Overwrite;
    let filler = |t: &&Token<'_>| {
        matches!(t.word, Word::Glue | Word::File | Word::Called | Word::Named | Word::In | Word::To)
            || is(t.text, "new empty")
    };
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
