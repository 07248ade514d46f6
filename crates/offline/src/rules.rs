//! The language as data: what is asked for, and the patterns of `grammar` that ask for it.

/// What a rule asks for.
#[rustfmt::skip]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Help, Entries, Tree, Find, Largest, Lines, NumberOfFiles, Read, Summary, Outline,
    ReplaceAny, ReplaceWord, ReplaceText, Create, Overwrite, Command, Script, Tests, Build,
    // The lines with something, the files with it, or the number of either.
    Show(Topic), Files(Topic), Count(Topic), CountFiles(Topic),
}

/// What lines are searched for.
#[rustfmt::skip]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic { Text, Uses, Defined, Imports, Todo, Key }

impl Ask {
    /// Whether it can be asked of text that was piped in.
    pub(crate) fn of_text(self) -> bool {
        use Topic::{Text, Todo};
        matches!(self, Self::Help | Self::Lines | Self::Show(Text | Todo) | Self::Count(Text | Todo))
    }
}

/// Everything that is understood; the first pattern that takes a whole clause decides.
#[rustfmt::skip]
pub(crate) const RULES: &[(Ask, &str)] = &[
    (Ask::Help, "help"),
    (Ask::Help, "what can|do you|yoi|offline do here?"),
    (Ask::Help, "how do you|yoi work"),
    (Ask::Help, "who|what are you"),
    (Ask::Find, "~@list all|every @file"),
    (Ask::Find, "~find @file"),
    (Ask::Entries, "~@list|dir @contents?"),
    (Ask::Entries, "~@what @file <are>"),
    (Ask::Tree, "~@list|what? @is? @dirword|file|project? tree|structure|layout"),
    (Ask::Largest, "~@list|@what? @is? {num}? @largest @file"),
    (Ask::Largest, "~@what @file @is|has|have @largest"),
    (Ask::Largest, "~@what @file has|have most lines"),
    (Ask::Find, "~<seek> @file|anything named|called|matching {part}"),
    (Ask::Find, "~does file named|called? {part} exist"),
    (Ask::Find, "~@find {glob} @file?"),
    (Ask::Find, "~<seek> {lang} @file <are>?"),
    (Ask::Find, "~@find @file with|ending extension|ending|in|with {ext}"),
    (Ask::Find, "find|locate|where @is? @file? {whole}"),
    (Ask::Find, "does @file? {whole} exist"),
    (Ask::Find, "@is there {whole}"),
    (Ask::Show(Topic::Todo), "~<seek> <todo> <are>?"),
    (Ask::Count(Topic::Todo), "~<howmany> <todo> <are>?"),
    (Ask::Files(Topic::Todo), "~@what|@find @file @contain|have|has|with <todo>"),
    (Ask::Show(Topic::Defined), "~where @is @sym? {name} @defined"),
    (Ask::Show(Topic::Defined), "~where @is @sym {name}"),
    (Ask::Show(Topic::Defined), "~where @is {code} @sym? @defined?"),
    (Ask::Show(Topic::Defined), "~@what|@find @is? @definition @in @sym? {name}"),
    (Ask::Show(Topic::Defined), "~@find @sym {name}"),
    (Ask::Show(Topic::Defined), "~<seek> {noun} <are>?"),
    (Ask::Files(Topic::Defined), "~@what @file define|defines|declare|declares @sym? {name}"),
    (Ask::Count(Topic::Defined), "~<howmany> {noun} <in>? <are>?"),
    (Ask::Show(Topic::Uses), "~where @is @sym? {name} @used"),
    (Ask::Show(Topic::Uses), "~where @is {code} @sym @used"),
    (Ask::Show(Topic::Uses), "~@find @uses @in|to @sym? {name}"),
    (Ask::Show(Topic::Uses), "~who|what calls|uses|references @sym? {name}"),
    (Ask::Files(Topic::Uses), "~@what @file call|calls|use|uses|reference|references @sym? {name}"),
    (Ask::Files(Topic::Imports), "~@what|@find @file @import {name}"),
    (Ask::Show(Topic::Imports), "~where @is {name} imported|required|included"),
    (Ask::Show(Topic::Imports), "~@find imports of {name}"),
    (Ask::CountFiles(Topic::Imports), "~<howmany> @file @import {name}"),
    (Ask::Show(Topic::Text), "~search|grep|look for? @lit|word? {text}"),
    (Ask::Show(Topic::Text), "search|grep <in> for @lit|word? {text}"),
    (Ask::Show(Topic::Text), "search|grep {dir} @dirword? for @lit|word? {text}"),
    (Ask::Show(Topic::Text), "~@find @lit {text}"),
    (Ask::Show(Topic::Text), "~find|locate|where @is? {quoted}"),
    (Ask::Show(Topic::Text), "~@find @times of @lit|word? {text}"),
    (Ask::Show(Topic::Text), "~where does|do|is @lit|word? {text} @appear"),
    (Ask::Show(Topic::Text), "~does {text} @appear"),
    (Ask::Show(Topic::Text), "~@what|@find lines @contain|with {text}"),
    (Ask::Files(Topic::Text), "~@what|@find|search @file @contain @lit|word? {text}"),
    (Ask::Files(Topic::Text), "~@find|search @file with @lit|word? {code}"),
    (Ask::Count(Topic::Text), "~how many|often times? does|is|do @lit|word? {text} @appear|@used"),
    (Ask::Count(Topic::Text), "~<howmany> @times of @lit|word? {text} <are>?"),
    (Ask::Count(Topic::Text), "~<howmany> lines @contain @lit|word? {text}"),
    (Ask::Count(Topic::Text), "~count @lit? {quoted}"),
    (Ask::CountFiles(Topic::Text), "~<howmany> @file @contain @lit|word? {text}"),
    (Ask::Lines, "~<howmany> {lang}? lines <in>? <are>?"),
    (Ask::Lines, "~@list? line count"),
    (Ask::Lines, "how long is @file? {path}"),
    (Ask::NumberOfFiles, "~<howmany> {glob}? @file <are>?"),
    (Ask::NumberOfFiles, "~<howmany> {lang} @file <are>?"),
    (Ask::Show(Topic::Key), "@what @is? {key} <of>?"),
    (Ask::Show(Topic::Key), "what @is {anykey} @in {manifest}"),
    (Ask::Show(Topic::Key), "@what {key} @is @place"),
    (Ask::Show(Topic::Key), "show|print|get {key} <of>?"),
    (Ask::Read, "<lead> contents|content? @in? @file? {file}"),
    (Ask::Read, "list|head|tail @file? {file}"),
    (Ask::Read, "what does @file? {file} say|contain"),
    (Ask::Read, "<lead> @file? {file} and {file} and? {file}?"),
    (Ask::Read, "<lead>? <part> @in @file? {file}"),
    (Ask::Read, "<lead> {file} <part>"),
    (Ask::Outline, "@show? give? @summarise of? @file? {file}"),
    (Ask::Outline, "what does @file? {file} do"),
    (Ask::Summary, "@show|what? @is? @summarise of? @place|@dirword"),
    (Ask::Summary, "what does|is @place do|about|for?"),
    (Ask::Summary, "give|show? @summarise of? @dirword? {folder} @dirword|@place?"),
    (Ask::Summary, "what does {folder} @dirword? do"),
    (Ask::Summary, "@what languages|language @is|was|does @place|it? written|implemented|used|use? in|here?"),
    (Ask::Summary, "what|show|list @is? entry points|point @in? @place?"),
    (Ask::ReplaceText, "~replace|substitute|change @lit {code} @with|to|into {to}"),
    (Ask::ReplaceWord, "~rename|replace|substitute|change @sym {word} @with|to|into {to}"),
    (Ask::ReplaceWord, "~rename {word} to|into|as {to}"),
    (Ask::ReplaceAny, "~replace|substitute|change <occurrences>? {code} @with|to|into {to}"),
    (Ask::Create, "create|make|write|add empty? new? empty? file? named|called? {new}"),
    (Ask::Create, "create|make|write|add new? file? named|called? {new} with|containing|saying contents|content|text|line|code? {body}"),
    (Ask::Create, "write|put|save {body} to|into|in|as new? file? named|called? {new}"),
    (Ask::Overwrite, "overwrite|replace contents|content? of? file? {new} with contents|content|text? {body}"),
    (Ask::Command, "@run shell? command? {command}"),
    (Ask::Script, "@run script|file|program? {script}"),
    (Ask::Script, "@run {it}"),
    (Ask::Tests, "~@run @place? tests|test suite?"),
    (Ask::Tests, "~do|does|are|check|see that|if|whether? @place? tests|test @pass"),
    (Ask::Tests, "test @place|it"),
    (Ask::Build, "@build @place|it?"),
    (Ask::Build, "@run build"),
    (Ask::Build, "do|does @place|it @build|compiles|builds"),
    (Ask::Entries, "@what|what's|whats @is? @in @dirword? {folder} @dirword?"),
    (Ask::Entries, "@list|dir contents|content? of? @dirword? {folder} @dirword?"),
];
