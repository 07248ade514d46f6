//! The language as data: the requests, and the patterns of `grammar` for each.

/// The request of a rule.
#[rustfmt::skip]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Help, Entries, Tree, Find, Largest, Lines, NumberOfFiles, Read, Summary, Outline,
    ReplaceAny, ReplaceWord, ReplaceText, Create, Overwrite, Command, Script, Tests, Build,
    // The lines with something, the files with it, or the number of either.
    Show(Topic), Files(Topic), Count(Topic), CountFiles(Topic),
}

/// The kind of lines that are searched for.
#[rustfmt::skip]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic { Text, Uses, Defined, Imports, Todo, Key }

impl Ask {
    /// Whether it can be asked of text that was piped in.
    pub(crate) fn of_text(self) -> bool {
        use Topic::{Text, Todo};
        matches!(
            self,
            Self::Help | Self::Lines | Self::Show(Text | Todo) | Self::Count(Text | Todo)
        )
    }
}

/// All rules; `;` separates the patterns of one request. The first pattern that matches a whole clause decides.
#[rustfmt::skip]
pub(crate) const RULES: &[(Ask, &str)] = &[
    (Ask::Help, "help; what can|do you|yoi|offline do here?; how do you|yoi work; who|what are you"),
    (Ask::Find, "~@list all|every @file; ~find @file"),
    (Ask::Entries, "~@list|dir @contents?; ~@what @file <are>; @what|what's|whats @is? @in current? @dirword|@place"),
    (Ask::Tree, "~@list|what? @is? @dirword|file|project? tree|structure|layout"),
    (Ask::Largest, "~@list|@what? @is? {num}? @largest @file; ~@what @file @is|has|have @largest; \
        ~@what @file has|have most lines"),
    (Ask::Find, "~<seek> @file|anything named|called|matching {part}; ~does file named|called? {part} exist; \
        ~@find {glob} @file?; ~<seek> {lang} @file <are>?; ~@find @file with|ending extension|ending|in|with {ext}; \
        find|locate|where @is? @file? {whole}; does @file? {whole} exist; @is there {whole}"),
    (Ask::Show(Topic::Todo), "~<seek> <todo> <are>?"),
    (Ask::Count(Topic::Todo), "~<howmany> <todo> <are>?"),
    (Ask::Files(Topic::Todo), "~@what|@find @file @contain|have|has|with <todo>"),
    (Ask::Show(Topic::Defined), "~where @is @sym? {name} @defined; ~where @is @sym {name}; \
        ~where @is {code} @sym? @defined?; ~@what|@find @is? @definition @in @sym? {name}; ~@find @sym {name}; \
        ~<seek> {noun} <are>?"),
    (Ask::Files(Topic::Defined), "~@what @file define|defines|declare|declares @sym? {name}"),
    (Ask::Count(Topic::Defined), "~<howmany> {noun} <in>? <are>?"),
    (Ask::Show(Topic::Uses), "~where @is @sym? {name} @used; ~where @is {code} @sym @used; \
        ~@find @uses @in|to @sym? {name}; ~who|what calls|uses|references @sym? {name}"),
    (Ask::Files(Topic::Uses), "~@what @file call|calls|use|uses|reference|references @sym? {name}"),
    (Ask::Files(Topic::Imports), "~@what|@find @file @import {name}"),
    (Ask::Show(Topic::Imports), "~where @is {name} imported|required|included; ~@find imports of {name}"),
    (Ask::CountFiles(Topic::Imports), "~<howmany> @file @import {name}"),
    (Ask::Show(Topic::Text), "~search|grep|look for? @lit|word? {text}; search|grep <in> for @lit|word? {text}; \
        search|grep {dir} @dirword? for @lit|word? {text}; ~@find @lit {text}; ~find|locate|where @is? {quoted}; \
        ~@find @times of @lit|word? {text}; ~where does|do|is @lit|word? {text} @appear; ~does {text} @appear; \
        ~@what|@find lines @contain|with {text}"),
    (Ask::Files(Topic::Text), "~@what|@find|search @file @contain @lit|word? {text}; \
        ~@find|search @file with @lit|word? {code}"),
    (Ask::Count(Topic::Text), "~how many|often times? does|is|do @lit|word? {text} @appear|@used; \
        ~<howmany> @times of @lit|word? {text} <are>?; ~<howmany> lines @contain @lit|word? {text}; \
        ~count @lit? {quoted}"),
    (Ask::CountFiles(Topic::Text), "~<howmany> @file @contain @lit|word? {text}"),
    (Ask::Lines, "~<howmany> {lang}? lines <in>? <are>?; ~@list? line count; how long is @file? {path}"),
    (Ask::NumberOfFiles, "~<howmany> {glob}? @file <are>?; ~<howmany> {lang} @file <are>?"),
    (Ask::Show(Topic::Key), "@what @is? {key} <of>?; what @is {anykey} @in {manifest}; @what {key} @is @place; \
        show|print|get {key} <of>?"),
    (Ask::Read, "<lead> contents|content? @in? @file? {file}; list|head|tail @file? {file}; \
        what does @file? {file} say|contain; <lead> @file? {file} and {file} and? {file}?; \
        <lead>? <part> @in @file? {file}; <lead> {file} <part>"),
    (Ask::Outline, "@show? give? @summarise of? @file? {file}; what does @file? {file} do"),
    (Ask::Summary, "@show|what? @is? @summarise of? @place|@dirword; what does|is @place do|about|for?; \
        give|show? @summarise of? @dirword? {folder} @dirword|@place?; what does {folder} @dirword? do; \
        @what languages|language @is|was|does @place|it? written|implemented|used|use? in|here?; \
        what|show|list @is? entry points|point @in? @place?"),
    (Ask::ReplaceText, "~replace|substitute|change @lit {code} @with|to|into {to}"),
    (Ask::ReplaceWord, "~rename|replace|substitute|change @sym {word} @with|to|into {to}; \
        ~rename {word} to|into|as {to}"),
    (Ask::ReplaceAny, "~replace|substitute|change <occurrences>? {code} @with|to|into {to}"),
    (Ask::Create, "create|make|write|add empty? new? empty? file? named|called? {new}; \
        create|make|write|add new? file? named|called? {new} with|containing|saying contents|content|text|line|code? {body}; \
        write|put|save {body} to|into|in|as new? file? named|called? {new}"),
    (Ask::Overwrite, "overwrite|replace contents|content? of? file? {new} with contents|content|text? {body}"),
    (Ask::Command, "@run shell? command? {command}"),
    (Ask::Script, "@run script|file|program? {script}; @run {it}"),
    (Ask::Tests, "~@run @place? tests|test suite?; ~do|does|are|check|see that|if|whether? @place? tests|test @pass; \
        test @place|it"),
    (Ask::Build, "@build @place|it?; @run build; do|does @place|it @build|compiles|builds"),
    (Ask::Entries, "@what|what's|whats @is? @in @dirword? {folder} @dirword?; \
        @list|dir contents|content? of? @dirword? {folder} @dirword?"),
];
