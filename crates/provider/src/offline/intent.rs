//! What a prompt asks for: one intent per clause, or the clause that is not understood.

use super::lex::{Clause, Joint, Kind, Lang, Token, clauses, extension, is, is_glob, is_identifier, regex_escape};

/// Something asked for.
#[derive(Debug)]
pub(super) enum Intent {
    List { what: Listing, scope: Scope },
    Find { glob: String, shown: String, scope: Scope },
    Search { what: Sought, files: bool, scope: Scope },
    Count { what: Counted, scope: Scope },
    Read { path: String, part: Part },
    SummariseFile { path: String },
    SummariseDir { path: Option<String>, focus: Focus },
    Replace { old: String, new: String, whole_word: bool, scope: Scope },
    Create { path: String, content: String, overwrite: bool },
    Run { task: Task },
}

/// Which files; everything under the working directory when empty.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) path: Option<String>,
    pub(super) glob: Option<String>,
    pub(super) lang: Option<&'static Lang>,
}

#[derive(Debug)]
pub(super) enum Listing {
    Entries,
    Directories,
    Tree,
    Largest(Option<usize>),
}

#[derive(Debug)]
pub(super) enum Sought {
    /// Lines that match.
    Regex { regex: String, shown: String, ignore_case: bool },
    /// Definitions of these kinds, under a name or any.
    Defined { kinds: &'static [Kind], noun: String, name: Option<String> },
    /// Lines that use a name, its definitions apart.
    Used { name: String },
}

#[derive(Debug)]
pub(super) enum Counted {
    Lines,
    Files,
    Directories,
    Matches(Sought),
    FilesWith(Sought),
}

#[derive(Debug)]
pub(super) enum Part {
    All,
    Lines(u64, u64),
    Last(u64),
    Key(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Focus {
    All,
    Languages,
    Entries,
}

#[derive(Debug)]
pub(super) enum Task {
    Command(String),
    Script(String),
    Tests,
    Build,
}

/// The intents of a prompt with how each hangs on the one before, or the words that fit none.
pub(super) fn parse(prompt: &str) -> Result<Vec<(Joint, Intent)>, String> {
    let mut out = Vec::new();
    let mut last = None;
    let clauses = clauses(prompt);
    if clauses.is_empty() {
        return Err(prompt.trim().to_owned());
    }
    for clause in &clauses {
        let words = Words { tokens: &clause.tokens, clause, last: last.as_deref() };
        let found = words.intents().ok_or_else(|| clause.text.to_owned())?;
        last = clause.tokens.iter().rfind(|t| t.is_path() && !is_glob(t.text)).map(|t| t.text.to_owned()).or(last);
        out.extend(found.into_iter().map(|intent| (clause.joint, intent)));
    }
    Ok(out)
}

pub(super) const ALL_DEFS: &[Kind] = &[
    Kind::Function,
    Kind::Struct,
    Kind::Enum,
    Kind::Trait,
    Kind::Alias,
    Kind::Class,
    Kind::Constant,
    Kind::Module,
    Kind::Macro,
];
const PREPOSITIONS: &str = "in under inside within into from of below across throughout to at on";
const PLACES: &str = "\
    project repo repository codebase workspace crate package code tree directory folder dir here program library app \
    application thing module";
/// Words of the grammar that are never what is looked for.
const COMMON: &str = "\
    a an the this that my our its all any every each some me us it is are was does do did be being get gets there \
    where what what's which who how many much times time find show list search grep look looking for count number \
    tell give print locate file files line lines define defines defined definition definitions declared declaration \
    declares implemented implementation use uses used usage usages reference references referenced refer refers call \
    calls called caller callers import imports imported include includes included require requires contain contains \
    containing mention mentions mentioning mentioned matching match matches occur occurs occurrence occurrences \
    appear appears appearing instances instance string text word words phrase symbol name named variable identifier \
    and or with have has by total source sources lives live everywhere places place exactly regex pattern case \
    ignoring insensitively now please if not";
pub(super) const TODO: &str = r"\b(?:TODO|FIXME)\b";
const PROGRAMS: &str = "\
    cargo git npm npx node python python3 pytest go rustc ls make echo cat wc date pwd grep true false uname sh bash \
    gcc cc java ruby du df env head tail sort which whoami sleep mkdir touch cp mv rm sed awk diff tree";

struct Words<'a> {
    tokens: &'a [Token<'a>],
    clause: &'a Clause<'a>,
    last: Option<&'a str>,
}

impl<'a> Words<'a> {
    fn intents(&self) -> Option<Vec<Intent>> {
        let one = self
            .run()
            .or_else(|| self.replace())
            .or_else(|| self.create())
            .or_else(|| self.count())
            .or_else(|| self.search())
            .or_else(|| self.find())
            .or_else(|| self.list())
            .or_else(|| self.summarise_dir());
        one.map(|intent| vec![intent]).or_else(|| self.files())
    }

    fn low(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |t| t.low.as_str())
    }

    fn has(&self, words: &str) -> bool {
        self.at(words).is_some()
    }

    fn at(&self, words: &str) -> Option<usize> {
        self.tokens.iter().position(|t| is(&t.low, words))
    }

    fn from(&self, at: usize) -> &'a [Token<'a>] {
        self.tokens.get(at..).unwrap_or_default()
    }

    /// The prompt's own text from a token to the end of the clause.
    fn text_from(&self, at: usize) -> Option<&'a str> {
        let offset = self.tokens.get(at)?.span.0 - self.tokens.first()?.span.0;
        self.clause.text.get(offset..)
    }

    fn run(&self) -> Option<Intent> {
        let first = self.low(0);
        let tests = self.has("tests test");
        let passing = self.has("pass passes passing green succeed");
        let verb = is(first, "run execute rerun");
        let only = |more: &str| self.from(1).iter().all(|t| is(&t.low, PLACES) || is(&t.low, more));
        const TEST_WORDS: &str = "the this its all it unit test tests suite again of in our my project's";
        if tests && passing || (verb && tests || first == "test") && only(TEST_WORDS) {
            return Some(Intent::Run { task: Task::Tests });
        }
        let build = is(first, "build compile") && only("the this it again my our");
        if build || first == "does" && self.has("build compile") && self.tokens.len() <= 4 {
            return Some(Intent::Run { task: Task::Build });
        }
        let skipped = usize::from(verb);
        let rest = self.from(skipped);
        let named =
            rest.iter().take_while(|t| verb && is(&t.low, "the this command shell script program file")).count();
        let start = skipped + named;
        let (head, alone) = (self.tokens.get(start), self.tokens.len() == start + 1);
        if verb && head.is_none_or(|t| alone && is(&t.low, "it that")) {
            return self.last.map(|path| Intent::Run { task: Task::Script(path.to_owned()) });
        }
        let head = head?;
        if alone && (verb && head.quote.is_some() || head.quote == Some('`')) {
            return Some(Intent::Run { task: Task::Command(head.text.to_owned()) });
        }
        if verb && alone && head.is_path() && !head.text.starts_with("./") && extension(head.text).is_some() {
            return Some(Intent::Run { task: Task::Script(head.text.to_owned()) });
        }
        let bare = is(&head.low, "git cargo npm npx pytest python3 go");
        let known = is(head.text, PROGRAMS) || head.text.starts_with("./");
        if !(verb && known || bare && head.text == head.low && self.tokens.len() > start + 1) {
            return None;
        }
        let command = self.text_from(start)?;
        match self.tokens {
            [.., word, dir] if word.low == "in" && dir.is_path() => {
                let cut = command.len().checked_sub(dir.span.1 - word.span.0)?;
                let command = format!("cd {} && {}", shell_quote(dir.text), command.get(..cut)?.trim_end());
                Some(Intent::Run { task: Task::Command(command) })
            }
            _ => Some(Intent::Run { task: Task::Command(command.to_owned()) }),
        }
    }

    fn replace(&self) -> Option<Intent> {
        let verb_at = self.at("replace rename substitute change swap")?;
        let verb = self.low(verb_at);
        let links: &str = match verb {
            "rename" | "change" => "to into",
            "swap" => "for with",
            _ => "with by",
        };
        let link = self.at(links).filter(|link| *link > verb_at)?;
        let (left, right) = (self.tokens.get(verb_at + 1..link)?, self.from(link + 1));
        let (mut kind, mut exact, mut article) = (false, false, false);
        let lead = left
            .iter()
            .take_while(|t| {
                kind |= kind_of(&t.low).is_some() || is(&t.low, "variable identifier symbol field word name");
                exact |= is(&t.low, "text string substring phrase");
                article |= t.low == "the";
                let filler =
                    is(&t.low, "all every each any the occurrence occurrences instance instances of uses usages from");
                t.quote.is_none()
                    && (filler
                        || kind_of(&t.low).is_some()
                        || is(&t.low, "variable identifier symbol field word name text string substring phrase"))
            })
            .count();
        let (old, left_rest) = left.get(lead..)?.split_first()?;
        let (new, right_rest) = right.split_first()?;
        let around: Vec<Token<'_>> =
            self.tokens.get(..verb_at)?.iter().chain(left_rest).chain(right_rest).cloned().collect();
        // Anything not understood about where to change files means nothing is changed.
        let understood = around.iter().all(|t| {
            let word = t.low.as_str();
            t.is_path()
                || is(word, PREPOSITIONS)
                || is(word, PLACES)
                || Lang::named(word).is_some()
                || is(word, "all every the this my our files file everywhere whole source sources entire")
                || word.starts_with('.')
                || scope_word(&around, word)
        });
        let code_like = |t: &Token<'_>| t.quote.is_some() || t.text.chars().any(|c| !c.is_lowercase());
        let vague = old.quote.is_none() && (article && !kind && !exact || is(verb, "change swap") && !code_like(old));
        if !understood || vague || old.text.is_empty() || old.text.contains('\n') || old.text == new.text {
            return None;
        }
        if verb == "rename" && (old.is_path() && new.is_path() || left.iter().any(|t| t.low == "file")) {
            let (from, to) = (shell_quote(old.text), shell_quote(new.text));
            let command = format!("if [ -e {to} ]; then echo {to} exists already; exit 1; fi; mv -- {from} {to}");
            return around.is_empty().then_some(Intent::Run { task: Task::Command(command) });
        }
        let called = old.text.ends_with("()") && new.text.ends_with("()");
        let (old_text, new_text) = if called { (old.symbol(), new.symbol()) } else { (old.text, new.text) };
        let literal = exact || !kind && verb != "rename" && matches!(old.quote, Some('\'' | '"' | '“' | '‘'));
        let whole_word = is_identifier(old_text) && !literal;
        Some(Intent::Replace { old: old_text.to_owned(), new: new_text.to_owned(), whole_word, scope: scope(&around)? })
    }

    fn create(&self) -> Option<Intent> {
        let verb = self.low(0);
        if !is(verb, "create write make add generate overwrite put save touch") {
            return None;
        }
        let overwrite = verb == "overwrite";
        let filler = |t: &Token<'_>| {
            t.quote.is_none()
                && is(
                    &t.low,
                    "a an the new empty file called named text script python shell module to into in me program rust simple small",
                )
        };
        let lead = 1 + self.from(1).iter().take_while(|t| filler(t)).count();
        let first = self.tokens.get(lead)?;
        let make = |path: &str, content: String| {
            let content = if content.is_empty() || content.ends_with('\n') { content } else { content + "\n" };
            Some(Intent::Create { path: path.to_owned(), content, overwrite })
        };
        if first.quote.is_some() && self.tokens.len() > lead + 1 && !first.is_path() {
            let path = self.from(lead + 1).iter().find(|t| !filler(t))?;
            return if path.is_path() && self.tokens.last()?.span == path.span {
                make(path.text, first.text.to_owned())
            } else {
                None
            };
        }
        if !first.is_path() || is_glob(first.text) || first.text.ends_with('/') {
            return None;
        }
        let mut at = lead + 1;
        if at == self.tokens.len() {
            return make(first.text, String::new());
        }
        let prints = self.from(at).iter().take(3).any(|t| is(&t.low, "prints printing says outputs"));
        let opened = first.tail == ':' || is(self.low(at), "with containing that which whose saying printing");
        if !opened {
            return None;
        }
        let link = |t: &Token<'_>| {
            t.quote.is_none()
                && is(
                    &t.low,
                    "with containing contains that which whose the this content contents text line following code is are says saying prints printing outputs as its",
                )
        };
        at += self.from(at).iter().take_while(|t| link(t)).count();
        let body = self.tokens.get(at)?;
        let quoted = body.quote.is_some() && at + 1 == self.tokens.len();
        let offset = body.span.0 - self.tokens.first()?.span.0;
        let text = if quoted { body.text } else { self.clause.loose.get(offset..)? };
        make(first.text, if prints { print_program(first.text, text)? } else { text.to_owned() })
    }

    fn count(&self) -> Option<Intent> {
        let cue = match (self.low(0), self.at("many"), self.at("number")) {
            ("count", _, _) => 0,
            (_, Some(at), _) if at > 0 && self.low(at - 1) == "how" => at,
            (_, None, Some(at)) => at,
            ("how", _, _) if self.has("long") => 0,
            _ => return None,
        };
        let rest = self.from(cue + 1);
        let noun = rest.iter().position(|t| count_noun(&t.low));
        let word = noun.and_then(|at| rest.get(at)).map_or("", |t| t.low.as_str());
        let (what, skip) = if self.low(0) == "how" && self.low(1) == "long" {
            (Counted::Lines, None)
        } else if word.starts_with("file")
            && self
                .has("import imports use uses contain contains mention mentions containing reference require include")
        {
            let (sought, skip) = self.sought(true)?;
            (Counted::FilesWith(sought), skip)
        } else {
            match word {
                "lines" | "line" | "loc" => (Counted::Lines, None),
                "files" | "file" => (Counted::Files, None),
                "directories" | "folders" | "dirs" | "subdirectories" => (Counted::Directories, None),
                "todo" | "todos" | "fixmes" | "fixme" => (Counted::Matches(todo()), None),
                _ if kind_of(word).is_some() => {
                    let (kinds, noun) = kind_of(word)?;
                    (Counted::Matches(Sought::Defined { kinds, noun: noun.to_owned(), name: None }), None)
                }
                _ => {
                    let (at, subject) = self.subject(cue + 1)?;
                    // an unknown noun is not guessed at: only words quoted, or asked for as text
                    let asked = subject.quote.is_some() || !word.is_empty() || self.has("appear occur used called");
                    (Counted::Matches(asked.then(|| text(subject, self))?), Some(at))
                }
            }
        };
        Some(Intent::Count { what, scope: self.scope(skip)? })
    }

    /// The thing a search is about: a quoted string, else the first word that is not grammar.
    fn subject(&self, from: usize) -> Option<(usize, &'a Token<'a>)> {
        let placed = |at: usize| {
            let before = if self.low(at.wrapping_sub(1)) == "the" { at.wrapping_sub(2) } else { at.wrapping_sub(1) };
            at > 0 && is(self.low(before), "in under inside within across")
        };
        let candidates = || self.tokens.iter().enumerate().skip(from);
        candidates().find(|(at, t)| t.quote.is_some() && !placed(*at)).or_else(|| {
            candidates().find(|(at, t)| {
                let grammar =
                    is(&t.low, COMMON) || is(&t.low, PREPOSITIONS) || kind_of(&t.low).is_some() && t.text == t.low;
                !grammar && !placed(*at) && !is(&t.low, PLACES) && !is_glob(t.text)
            })
        })
    }

    /// What to look for, and the place of its name in the clause.
    fn sought(&self, loose: bool) -> Option<(Sought, Option<usize>)> {
        let subject = self.subject(usize::from(is(self.low(0), COMMON)));
        let name = subject.map(|(_, t)| t.symbol().to_owned());
        let at = subject.map(|(at, _)| at);
        if self.has("import imports imported include includes require requires") && name.is_some() {
            return Some((Sought::Defined { kinds: &[Kind::Import], noun: "imports".into(), name }, at));
        }
        if self.has("defined defines define definition definitions declared declaration implemented implementation") {
            let defined = Sought::Defined { kinds: ALL_DEFS, noun: "definitions".into(), name };
            return subject.map(|_| (defined, at));
        }
        if self.has("used usage usages references reference referenced calls called callers use uses")
            && !self.has("search grep")
        {
            return name.map(|name| (Sought::Used { name }, at));
        }
        let asked = loose
            || self.has("search grep contain contains containing mention mentions mentioning occurrences matches")
            || self.low(0) == "look";
        let quoted =
            self.low(0) == "find" && subject.is_some_and(|(_, t)| t.quote.is_some()) && !self.has("named called file");
        let (at, subject) = subject.filter(|(_, t)| asked || quoted && !t.is_path())?;
        Some((text(subject, self), Some(at)))
    }

    fn search(&self) -> Option<Intent> {
        let first = self.low(0);
        let asks = is(first, "find search grep look where which who what list show print give tell are is locate");
        if !asks {
            return None;
        }
        if self.has("todo todos fixme fixmes") {
            return Some(Intent::Search { what: todo(), files: self.has("files"), scope: self.scope(None)? });
        }
        let files = self.has("file files modules") && (is(first, "which what find list show"))
            || first == "what" && self.has("imports");
        let noun = self.tokens.iter().position(|t| kind_of(&t.low).is_some() && t.text == t.low);
        if let Some(at) = noun.filter(|at| !is(self.low(at + 1), "file files directory folder")) {
            let (kinds, noun) = kind_of(self.low(at))?;
            let next =
                self.tokens.get(at + 1).filter(|t| !is(&t.low, COMMON) && !is(&t.low, PREPOSITIONS) && !t.is_path());
            let plural = self.low(at).ends_with('s') && self.low(at) != "class";
            if next.is_none() && plural && self.at("of").is_none() && !(noun == "imports" && files) {
                let what = Sought::Defined { kinds, noun: noun.to_owned(), name: None };
                return Some(Intent::Search { what, files: false, scope: self.scope(None)? });
            }
            if let (Some(name), "find" | "show" | "locate" | "where", false) =
                (next, first, self.has("used called usages references"))
            {
                let what = Sought::Defined {
                    kinds: ALL_DEFS,
                    noun: "definitions".into(),
                    name: Some(name.symbol().to_owned()),
                };
                return Some(Intent::Search { what, files: false, scope: self.scope(Some(at + 1))? });
            }
        }
        let (what, at) = self.sought(false)?;
        Some(Intent::Search { what, files, scope: self.scope(at)? })
    }

    fn find(&self) -> Option<Intent> {
        let first = self.low(0);
        if !is(first, "find locate list show where which is are does do what look give search")
            || self.has("largest biggest longest")
        {
            return None;
        }
        let file_word = self.has("file files");
        let named = self
            .at("named called matching ending")
            .and_then(|at| self.from(at + 1).iter().find(|t| !is(&t.low, "a the with in extension")));
        let ends = self.at("extension ending").is_some();
        let subject = named.or_else(|| self.tokens.iter().find(|t| is_glob(t.text)));
        let subject = subject.or_else(|| {
            self.tokens.iter().find(|t| {
                t.is_path() && (is(first, "find locate where is does") || ends)
                    || ends && self.low_after("extension") == Some(t.low.as_str())
            })
        });
        let test_files = self.has("test tests") && file_word;
        let at = subject.and_then(|s| self.tokens.iter().position(|t| t.span == s.span));
        let scope = self.scope(at)?;
        let (name, shown) = match (subject, scope.lang, scope.glob.clone()) {
            (Some(t), _, _) if ends => (format!("*.{}", t.text.trim_start_matches(['*', '.'])), t.text.to_owned()),
            (Some(t), _, _) if is_glob(t.text) || t.is_path() => (t.text.to_owned(), t.text.to_owned()),
            (Some(t), _, _) => (format!("*{}*", t.text), t.text.to_owned()),
            (None, Some(lang), _) if file_word => (lang.glob(), format!("{} files", lang.name)),
            (None, None, Some(glob)) if file_word => (glob.clone(), glob),
            (None, None, None) if test_files => {
                ("{test_*,*_test,*.test,*_spec,*.spec,tests}.*".into(), "test files".into())
            }
            _ => return None,
        };
        let glob = if name.contains('/') { name } else { format!("**/{name}") };
        Some(Intent::Find { glob, shown, scope: Scope { path: scope.path, ..Scope::default() } })
    }

    fn low_after(&self, word: &str) -> Option<&str> {
        self.at(word).map(|at| self.low(at + 1))
    }

    fn list(&self) -> Option<Intent> {
        let first = self.low(0);
        let asks = is(first, "list ls show what what's which display print give find view");
        let mut scope = self.scope(None)?;
        if let ("ls" | "list", [_, only]) = (first, self.tokens)
            && !is(&only.low, COMMON)
            && !is(&only.low, "directories folders contents everything")
        {
            scope.path = scope.path.or_else(|| Some(only.text.to_owned()));
        }
        let largest = self.has("largest biggest longest huge") || self.has("most") && self.has("lines");
        let folder = scope
            .path
            .as_deref()
            .is_some_and(|p| p.ends_with('/') || extension(p).is_none() && p != "README" && p != "LICENSE");
        let what = if largest && self.has("file files") {
            Listing::Largest(self.tokens.iter().find_map(|t| t.text.parse().ok()))
        } else if self.has("tree structure layout recursively") && asks {
            Listing::Tree
        } else if self.has("directories folders subdirectories dirs") && asks {
            Listing::Directories
        } else if asks && first != "find" && (self.has("files contents entries everything") || first == "ls" || folder)
            || is(first, "list") && (self.tokens.len() == 1 || self.has("directory folder it"))
            || asks && self.has("here")
        {
            Listing::Entries
        } else {
            return None;
        };
        // "the files that …" asks for more than a listing
        let odd_and = self.at("and").is_some_and(|at| !is(self.low(at + 1), "files directories folders sizes"));
        let more = odd_and || self.has("named called that smallest oldest newest modified changed recent functions");
        (!more).then_some(Intent::List { what, scope })
    }

    fn summarise_dir(&self) -> Option<Intent> {
        let scope = self.scope(None)?;
        if scope.path.as_deref().is_some_and(|p| !p.ends_with('/') && (extension(p).is_some() || p == "README")) {
            return None;
        }
        let asks = is(
            self.low(0),
            "what what's which summarise summarize describe explain give tell show list how overview where in",
        );
        let place = self.has(PLACES) || self.has("this it") || scope.path.is_some();
        let focus = if asks && self.has("language languages") {
            Focus::Languages
        } else if asks && (self.has("entry entrypoint entrypoints")) {
            Focus::Entries
        } else if is(self.low(0), "summarise summarize describe") && (place || self.tokens.len() == 1)
            || asks
                && self.has("overview summary architecture structured organised organized about")
                && !self.has("file")
            || is(self.low(0), "explain") && self.has(PLACES) && self.tokens.len() <= 4
            || is(self.low(0), "what what's")
                && place
                && self.tokens.len() <= 5
                && (self.has("do for") || self.tokens.len() <= 4 && self.has("is what's"))
        {
            Focus::All
        } else {
            return None;
        };
        Some(Intent::SummariseDir { path: scope.path, focus })
    }

    /// Reading and summarising, one intent for each file named.
    fn files(&self) -> Option<Vec<Intent>> {
        let first = self.low(0);
        let mut paths: Vec<&str> =
            self.tokens.iter().filter(|t| t.is_path() && !is_glob(t.text)).map(|t| t.text).collect();
        let reads = is(
            first,
            "last first top show read print cat open display view see get give head tail what what's which tell lines line contents list",
        );
        let tells = is(first, "summarise summarize describe explain outline")
            || self.has("summary overview outline about")
            || is(first, "what what's") && self.has("do for") && !self.has("say contain");
        if paths.is_empty() && self.has("it that them") {
            paths.extend(self.last);
        }
        if let Some(key) = self.key(first) {
            let path = paths.first().map_or_else(|| "*".to_owned(), |p| (*p).to_owned());
            return Some(vec![Intent::Read { path, part: Part::Key(key) }]);
        }
        if !(reads || tells) || paths.is_empty() {
            return None;
        }
        let summarise = |path: &str| Intent::SummariseFile { path: path.to_owned() };
        let read = |path: &str| Intent::Read { path: path.to_owned(), part: self.part() };
        Some(paths.into_iter().map(|p| if tells { summarise(p) } else { read(p) }).collect())
    }

    /// "what is the version in Cargo.toml": the key asked for.
    fn key(&self, first: &str) -> Option<String> {
        let named = self.at("version name license licence edition description author authors");
        let path = self.tokens.iter().any(|t| t.is_path());
        if !is(first, "what what's which show tell print get give") {
            return None;
        }
        if let Some(at) = named {
            let of = self.at("of").filter(|of| *of == at + 1).and_then(|of| self.tokens.get(of + 1));
            let other = of.filter(|t| !t.is_path() && !is(&t.low, PLACES) && !is(&t.low, "the this it my our"));
            let place = path || self.has(PLACES) || self.has("this it use used");
            return place.then(|| other.map_or(self.low(at), |t| t.text).to_owned());
        }
        let the = self.at("the").filter(|_| path && is(first, "what what's"))?;
        is(self.low(the + 2), "in of from")
            .then(|| self.tokens.get(the + 1))
            .flatten()
            .filter(|t| !is(&t.low, "content contents purpose text"))
            .map(|t| t.text.to_owned())
    }

    fn part(&self) -> Part {
        let numbers: Vec<u64> = self
            .tokens
            .iter()
            .filter(|t| !t.is_path())
            .flat_map(|t| t.text.split(['-', '–', ':', '.']).filter_map(|n| n.trim_start_matches('L').parse().ok()))
            .collect();
        let lines = self.has("line lines head tail");
        match numbers.as_slice() {
            [from, to, ..] if lines && from <= to && *from > 0 => Part::Lines(*from, *to),
            [n, ..] if lines && self.has("last tail") => Part::Last(*n),
            [n, ..] if lines && self.has("first top head beginning") => Part::Lines(1, *n),
            [n, ..] if lines && self.has("line") => Part::Lines(*n, *n),
            _ if self.has("tail end") => Part::Last(10),
            _ if self.has("head beginning top") => Part::Lines(1, 10),
            _ => Part::All,
        }
    }

    fn scope(&self, skip: Option<usize>) -> Option<Scope> {
        let rest: Vec<Token<'_>> =
            self.tokens.iter().enumerate().filter(|(at, _)| Some(*at) != skip).map(|(_, t)| t.clone()).collect();
        scope(&rest)
    }
}

/// Where to look; `None` when more than one place is named, which no intent can take.
fn scope(tokens: &[Token<'_>]) -> Option<Scope> {
    let mut scope = Scope::default();
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map_or("", |t| t.low.as_str());
        let previous = at.checked_sub(1).and_then(|p| tokens.get(p)).map_or("", |t| t.low.as_str());
        let files = is(next, "file files code source sources functions lines tests structs");
        let ext = token.text.strip_prefix('.').filter(|e| Lang::of(e).is_some() || files);
        let lang = Lang::named(&token.low).filter(|_| files || !is(&token.low, "go c node js ts py"));
        let path = if let Some(ext) = ext {
            scope.glob = Some(format!("*.{ext}"));
            None
        } else if is_glob(token.text) && token.is_path() {
            scope.glob = Some(token.text.to_owned());
            None
        } else if token.is_path() || scope_word_at(tokens, at) {
            Some(token.text)
        } else {
            scope.lang = scope.lang.or(lang.filter(|_| token.quote.is_none() && previous != "named"));
            None
        };
        if let Some(path) = path.filter(|p| *p != ".")
            && scope.path.replace(path.to_owned()).is_some()
        {
            return None;
        }
    }
    Some(scope)
}

/// A bare word that names a directory: "in src", "the src folder".
fn scope_word_at(tokens: &[Token<'_>], at: usize) -> bool {
    let low = |i: Option<usize>| i.and_then(|i| tokens.get(i)).map_or("", |t| t.low.as_str());
    let Some(token) = tokens.get(at).filter(|t| is_identifier(&t.text.replace(['-', '.'], "_"))) else { return false };
    let word = token.low.as_str();
    let grammar = is(word, COMMON)
        || is(word, PLACES)
        || is(word, PREPOSITIONS)
        || Lang::named(word).is_some()
        || is(word, "whole entire order current general detail short brief dependencies");
    let before = if low(at.checked_sub(1)) == "the" { low(at.checked_sub(2)) } else { low(at.checked_sub(1)) };
    let folder = is(low(Some(at + 1)), "directory folder dir");
    !grammar && (folder || is(before, "in under inside within below across"))
}

fn scope_word(tokens: &[Token<'_>], word: &str) -> bool {
    tokens.iter().position(|t| t.low == word).is_some_and(|at| scope_word_at(tokens, at))
}

fn todo() -> Sought {
    Sought::Regex { regex: TODO.into(), shown: "TODO or FIXME".into(), ignore_case: false }
}

/// A quoted string is meant exactly, a bare name as a whole word where the clause asks about its use.
fn text(token: &Token<'_>, words: &Words<'_>) -> Sought {
    let ignore_case = words.has("case insensitively case-insensitive case-insensitively");
    let shown = token.text.to_owned();
    let whole = token.quote.is_none()
        && is_identifier(token.symbol())
        && !words.has("search grep look contain contains containing");
    let regex = match (words.has("regex pattern"), whole) {
        (true, _) => shown.clone(),
        (false, true) => format!(r"\b{}\b", token.symbol()),
        (false, false) => regex_escape(&shown),
    };
    Sought::Regex { regex, shown, ignore_case }
}

fn count_noun(word: &str) -> bool {
    kind_of(word).is_some()
        || is(
            word,
            "line lines loc file files directories folders dirs subdirectories todo todos fixme fixmes times occurrences matches mentions usages references uses instances",
        )
}

/// The kinds of definition a noun stands for, and the noun to answer with.
fn kind_of(word: &str) -> Option<(&'static [Kind], &'static str)> {
    Some(match word {
        "function" | "functions" | "fn" | "fns" | "method" | "methods" | "func" | "funcs" => {
            (&[Kind::Function], "functions")
        }
        "struct" | "structs" => (&[Kind::Struct], "structs"),
        "enum" | "enums" => (&[Kind::Enum], "enums"),
        "trait" | "traits" | "interface" | "interfaces" => (&[Kind::Trait], "traits and interfaces"),
        "class" | "classes" => (&[Kind::Class], "classes"),
        "types" => (&[Kind::Struct, Kind::Enum, Kind::Trait, Kind::Class], "types"),
        "constant" | "constants" | "consts" => (&[Kind::Constant], "constants"),
        "modules" => (&[Kind::Module], "modules"),
        "macro" | "macros" => (&[Kind::Macro], "macros"),
        "test" | "tests" => (&[Kind::Test], "tests"),
        "imports" => (&[Kind::Import], "imports"),
        _ => return None,
    })
}

/// A program that prints a text, in the language of the file's extension.
fn print_program(path: &str, text: &str) -> Option<String> {
    let quoted = serde_json::to_string(text).ok()?;
    Some(match extension(path)? {
        "py" | "rb" | "lua" => format!("print({quoted})"),
        "js" | "mjs" | "ts" => format!("console.log({quoted});"),
        "rs" => format!("fn main() {{\n    println!(\"{{}}\", {quoted});\n}}"),
        "sh" => format!("#!/bin/sh\necho {}", shell_quote(text)),
        "md" | "txt" => text.to_owned(),
        _ => return None,
    })
}

/// One word for the shell.
pub(super) fn shell_quote(text: &str) -> String {
    let plain = !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-+=".contains(c))
        && !text.starts_with('-');
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
