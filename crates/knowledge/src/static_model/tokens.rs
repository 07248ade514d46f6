//! Texts as the tokens of a static model, as its `tokenizer.json` describes them: WordPiece over words, as BERT has it, or byte
//! pairs over whole texts, as Llama has them. A file that asks for something else is refused.

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory as Category;
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Most tokens that a file adds to those of its model: each is looked for in each text.
const MAX_ADDED: usize = 256;

/// How a text becomes tokens.
#[derive(Debug)]
pub(super) struct Tokenizer {
    added: Vec<AddedToken>,
    normalizer: Option<Normalizer>,
    has_words: bool,
    /// The token of unknown words, which is left out where a text names it.
    unknown: Option<u32>,
    model: Model,
}

#[derive(Debug)]
enum Model {
    WordPiece {
        vocabulary: HashMap<String, u32>,
        prefix: String,
        longest: usize,
    },
    Pairs {
        vocabulary: HashMap<String, u32>,
        merges: HashMap<(u32, u32), Merged>,
        has_bytes: bool,
    },
}

/// What two tokens become. The lowest rank is merged first.
#[derive(Clone, Copy, Debug)]
struct Merged {
    rank: u32,
    id: u32,
}

#[derive(Deserialize)]
struct TokenizerFile {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    normalizer: Option<Normalizer>,
    pre_tokenizer: Option<PreTokenizer>,
    model: ModelFile,
}

#[derive(Debug, Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
enum Normalizer {
    Sequence {
        normalizers: Vec<Normalizer>,
    },
    Prepend {
        prepend: String,
    },
    Replace {
        pattern: Pattern,
        content: String,
    },
    Lowercase,
    #[serde(rename = "NFC")]
    Nfc,
    #[serde(rename = "NFD")]
    Nfd,
    #[serde(rename = "NFKC")]
    Nfkc,
    #[serde(rename = "NFKD")]
    Nfkd,
    StripAccents,
    #[serde(rename = "BertNormalizer")]
    Bert {
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: Option<bool>,
        lowercase: bool,
    },
}

/// What is replaced: a text, no expression.
#[derive(Debug, Deserialize)]
enum Pattern {
    String(String),
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum PreTokenizer {
    #[serde(rename = "BertPreTokenizer")]
    Bert,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum ModelFile {
    WordPiece {
        vocab: HashMap<String, u32>,
        #[serde(default = "word_prefix")]
        continuing_subword_prefix: String,
        unk_token: String,
        #[serde(default = "word_length")]
        max_input_chars_per_word: usize,
    },
    #[serde(rename = "BPE")]
    Pairs {
        vocab: HashMap<String, u32>,
        merges: Vec<MergeLine>,
        #[serde(default)]
        byte_fallback: bool,
        continuing_subword_prefix: Option<String>,
        end_of_word_suffix: Option<String>,
        #[serde(default)]
        ignore_merges: bool,
    },
}

/// Two tokens, in the older and in the newer form.
#[derive(Deserialize)]
#[serde(untagged)]
enum MergeLine {
    Line(String),
    Pair(String, String),
}

fn word_prefix() -> String {
    "##".to_owned()
}

fn word_length() -> usize {
    100
}

impl Tokenizer {
    /// Reads a `tokenizer.json`; the error says what it has that is not known here.
    pub(super) fn parse(json: &[u8]) -> Result<Self, String> {
        let file: TokenizerFile =
            serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if file.added_tokens.len() > MAX_ADDED {
            return Err(format!("more than {MAX_ADDED} added tokens"));
        }
        let has_words = file.pre_tokenizer.is_some();
        let unknown = match &file.model {
            ModelFile::WordPiece {
                vocab, unk_token, ..
            } => vocab.get(unk_token).copied(),
            ModelFile::Pairs { .. } => None,
        };
        let model = match file.model {
            ModelFile::WordPiece { .. } if !has_words => {
                return Err("WordPiece without BertPreTokenizer".to_owned());
            }
            ModelFile::WordPiece {
                vocab,
                continuing_subword_prefix,
                max_input_chars_per_word,
                ..
            } => Model::WordPiece {
                vocabulary: vocab,
                prefix: continuing_subword_prefix,
                longest: max_input_chars_per_word,
            },
            ModelFile::Pairs {
                ignore_merges: true,
                ..
            }
            | ModelFile::Pairs {
                continuing_subword_prefix: Some(_),
                ..
            }
            | ModelFile::Pairs {
                end_of_word_suffix: Some(_),
                ..
            } => return Err("BPE with prefixes, suffixes or ignore_merges".to_owned()),
            ModelFile::Pairs {
                vocab,
                merges,
                byte_fallback,
                ..
            } => Model::Pairs {
                merges: merged(&vocab, &merges)?,
                vocabulary: vocab,
                has_bytes: byte_fallback,
            },
        };
        let added = file.added_tokens.into_iter();
        Ok(Self {
            added: added.filter(|token| !token.content.is_empty()).collect(),
            normalizer: file.normalizer,
            has_words,
            unknown,
            model,
        })
    }

    /// The tokens of a text, without those that the model does not know.
    pub(super) fn tokens(&self, text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some((at, token)) = self.first_added(rest) {
            let (before, from) = rest.split_at(at);
            self.add_tokens(before, &mut tokens);
            tokens.push(token.id);
            rest = from.get(token.content.len()..).unwrap_or_default();
        }
        self.add_tokens(rest, &mut tokens);
        tokens.retain(|token| Some(*token) != self.unknown);
        tokens
    }

    /// The first added token in a text, of several at one place the longest.
    fn first_added(&self, text: &str) -> Option<(usize, &AddedToken)> {
        let places = self.added.iter();
        let places = places.filter_map(|token| Some((text.find(&token.content)?, token)));
        places.min_by_key(|(at, token)| (*at, Reverse(token.content.len())))
    }

    fn add_tokens(&self, text: &str, tokens: &mut Vec<u32>) {
        if text.is_empty() {
            return;
        }
        let normalized = match &self.normalizer {
            Some(normalizer) => normalizer.apply(text.to_owned()),
            None => text.to_owned(),
        };
        match self.has_words {
            true => words(&normalized).for_each(|word| self.model.add(word, tokens)),
            false => self.model.add(&normalized, tokens),
        }
    }
}

/// The merges by the tokens that they merge.
fn merged(
    vocabulary: &HashMap<String, u32>,
    lines: &[MergeLine],
) -> Result<HashMap<(u32, u32), Merged>, String> {
    let id = |token: &str| {
        let known = vocabulary.get(token).copied();
        known.ok_or_else(|| "a merge of tokens that are not in the vocabulary".to_owned())
    };
    let mut merges = HashMap::with_capacity(lines.len());
    for (rank, line) in (0..).zip(lines) {
        let (left, right) = match line {
            MergeLine::Pair(left, right) => (left.as_str(), right.as_str()),
            MergeLine::Line(line) => line.split_once(' ').ok_or("a merge of one token")?,
        };
        let merge = Merged {
            rank,
            id: id(&format!("{left}{right}"))?,
        };
        merges.insert((id(left)?, id(right)?), merge);
    }
    Ok(merges)
}

impl Normalizer {
    fn apply(&self, text: String) -> String {
        match self {
            Self::Sequence { normalizers } => {
                normalizers.iter().fold(text, |text, one| one.apply(text))
            }
            Self::Prepend { prepend } if !text.is_empty() => format!("{prepend}{text}"),
            Self::Prepend { .. } => text,
            Self::Replace {
                pattern: Pattern::String(pattern),
                content,
            } => text.replace(pattern.as_str(), content),
            Self::Lowercase => lowercase(&text),
            Self::Nfc => ComposingNormalizerBorrowed::new_nfc()
                .normalize(&text)
                .into_owned(),
            Self::Nfd => decomposed(&text),
            Self::Nfkc => ComposingNormalizerBorrowed::new_nfkc()
                .normalize(&text)
                .into_owned(),
            Self::Nfkd => DecomposingNormalizerBorrowed::new_nfkd()
                .normalize(&text)
                .into_owned(),
            Self::StripAccents => without_marks(&text),
            Self::Bert {
                clean_text,
                handle_chinese_chars,
                strip_accents,
                lowercase: lower,
            } => {
                let mut text = text;
                if *clean_text {
                    text = text.chars().filter_map(clean).collect();
                }
                if *handle_chinese_chars {
                    text = apart(&text);
                }
                if strip_accents.unwrap_or(*lower) {
                    text = without_marks(&decomposed(&text));
                }
                match *lower {
                    true => lowercase(&text),
                    false => text,
                }
            }
        }
    }
}

fn category(c: char) -> Category {
    CodePointMapData::<Category>::new().get(c)
}

fn decomposed(text: &str) -> String {
    let apart = DecomposingNormalizerBorrowed::new_nfd();
    apart.normalize(text).into_owned()
}

fn without_marks(text: &str) -> String {
    let kept = text.chars();
    kept.filter(|c| category(*c) != Category::NonspacingMark)
        .collect()
}

/// Each character by itself, without the rule for a final sigma.
fn lowercase(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Whitespace as a space; no control characters.
fn clean(c: char) -> Option<char> {
    if c.is_whitespace() {
        return Some(' ');
    }
    let is_other = matches!(
        category(c),
        Category::Control | Category::Format | Category::PrivateUse
    );
    (!is_other && c != '\u{fffd}').then_some(c)
}

/// Spaces around Chinese characters.
fn apart(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let is_chinese = matches!(c,
            '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}' | '\u{2a700}'..='\u{2b73f}'
            | '\u{2b740}'..='\u{2b81f}' | '\u{2b920}'..='\u{2ceaf}' | '\u{f900}'..='\u{faff}'
            | '\u{2f800}'..='\u{2fa1f}');
        match is_chinese {
            true => out.extend([' ', c, ' ']),
            false => out.push(c),
        }
    }
    out
}

/// Words between whitespace; each punctuation mark is one.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().flat_map(|run| {
        let mut rest = run;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let end = match is_punctuation(first) {
                true => first.len_utf8(),
                false => rest.find(is_punctuation).unwrap_or(rest.len()),
            };
            let (word, behind) = rest.split_at(end);
            rest = behind;
            Some(word)
        })
    })
}

fn is_punctuation(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_punctuation(),
        false => matches!(
            category(c),
            Category::ConnectorPunctuation
                | Category::DashPunctuation
                | Category::OpenPunctuation
                | Category::ClosePunctuation
                | Category::InitialPunctuation
                | Category::FinalPunctuation
                | Category::OtherPunctuation
        ),
    }
}

impl Model {
    fn add(&self, text: &str, tokens: &mut Vec<u32>) {
        match self {
            Self::WordPiece {
                vocabulary,
                prefix,
                longest,
            } => {
                if text.chars().count() <= *longest {
                    tokens.extend(pieces(text, vocabulary, prefix).unwrap_or_default());
                }
            }
            Self::Pairs {
                vocabulary,
                merges,
                has_bytes,
            } => {
                let mut symbols = Vec::new();
                for c in text.chars() {
                    let mut buffer = [0; 4];
                    let c: &str = c.encode_utf8(&mut buffer);
                    match vocabulary.get(c) {
                        Some(id) => symbols.push(Some(*id)),
                        None if *has_bytes => symbols.extend(as_bytes(c, vocabulary)),
                        None => symbols.push(None),
                    }
                }
                Pairs::of(symbols, merges).add_to(tokens);
            }
        }
    }
}

/// The bytes of a character as tokens; one that is not known where one of them has none.
fn as_bytes(c: &str, vocabulary: &HashMap<String, u32>) -> Vec<Option<u32>> {
    let tokens = c
        .bytes()
        .map(|byte| vocabulary.get(&format!("<0x{byte:02X}>")).copied());
    let tokens: Option<Vec<u32>> = tokens.collect();
    match tokens {
        Some(tokens) => tokens.into_iter().map(Some).collect(),
        None => vec![None],
    }
}

/// The longest tokens that a word consists of, from its beginning; none if a part is not known.
fn pieces(word: &str, vocabulary: &HashMap<String, u32>, prefix: &str) -> Option<Vec<u32>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    while from < word.len() {
        let ends = word.get(from..)?.char_indices().rev();
        let ends = ends.map(|(at, c)| from + at + c.len_utf8());
        let longest = ends.filter_map(|end| {
            let part = word.get(from..end)?;
            let id = match from {
                0 => vocabulary.get(part),
                _ => vocabulary.get(&format!("{prefix}{part}")),
            };
            Some((end, *id?))
        });
        let (end, id) = longest.take(1).next()?;
        pieces.push(id);
        from = end;
    }
    Some(pieces)
}

/// A text while its tokens are merged: a list of symbols, linked in both directions.
struct Pairs<'m> {
    symbols: Vec<Symbol>,
    merges: &'m HashMap<(u32, u32), Merged>,
    /// By rank, then by place.
    queue: BinaryHeap<Reverse<(u32, usize, u32)>>,
}

#[derive(Clone, Copy)]
struct Symbol {
    /// `None` for what the model does not know.
    id: Option<u32>,
    is_gone: bool,
    before: Option<usize>,
    after: Option<usize>,
}

impl<'m> Pairs<'m> {
    fn of(ids: Vec<Option<u32>>, merges: &'m HashMap<(u32, u32), Merged>) -> Self {
        let last = ids.len().saturating_sub(1);
        let symbol = |(at, id): (usize, Option<u32>)| Symbol {
            id,
            is_gone: false,
            before: at.checked_sub(1),
            after: (at < last).then_some(at + 1),
        };
        let mut pairs = Self {
            symbols: ids.into_iter().enumerate().map(symbol).collect(),
            merges,
            queue: BinaryHeap::new(),
        };
        (0..last).for_each(|at| pairs.offer(at));
        pairs
    }

    fn symbol(&self, at: Option<usize>) -> Option<Symbol> {
        self.symbols
            .get(at?)
            .copied()
            .filter(|symbol| !symbol.is_gone)
    }

    /// What the symbol at a place and the next one become.
    fn merge_at(&self, at: usize) -> Option<Merged> {
        let left = self.symbol(Some(at))?;
        let right = self.symbol(left.after)?;
        self.merges.get(&(left.id?, right.id?)).copied()
    }

    fn offer(&mut self, at: usize) {
        if let Some(merge) = self.merge_at(at) {
            self.queue.push(Reverse((merge.rank, at, merge.id)));
        }
    }

    fn add_to(mut self, tokens: &mut Vec<u32>) {
        while let Some(Reverse((_, at, id))) = self.queue.pop() {
            // A pair that has changed since is skipped, unless it still becomes the same.
            if self.merge_at(at).is_some_and(|merge| merge.id == id) {
                self.merge(at, id);
            }
        }
        let left = self.symbols.iter().filter(|symbol| !symbol.is_gone);
        tokens.extend(left.filter_map(|symbol| symbol.id));
    }

    fn merge(&mut self, at: usize, id: u32) {
        let Some(left) = self.symbol(Some(at)) else {
            return;
        };
        let Some(right) = self.symbol(left.after) else {
            return;
        };
        if let Some(gone) = left.after.and_then(|next| self.symbols.get_mut(next)) {
            gone.is_gone = true;
        }
        if let Some(kept) = self.symbols.get_mut(at) {
            (kept.id, kept.after) = (Some(id), right.after);
        }
        if let Some(next) = right.after.and_then(|next| self.symbols.get_mut(next)) {
            next.before = Some(at);
        }
        if let Some(before) = left.before {
            self.offer(before);
        }
        self.offer(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn numbered<'w>(words: impl Iterator<Item = &'w str>) -> Value {
        words
            .zip(0..)
            .map(|(word, id)| (word.to_owned(), json!(id)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    fn added(names: [&str; 2]) -> Value {
        let token = |(id, content)| json!({ "id": id, "content": content, "special": true });
        names.iter().enumerate().map(token).collect()
    }

    fn word_pieces() -> Value {
        let words =
            "[UNK] [CLS] un ##aff ##able unaff cafe 知 識 , ! hello ##s a “ ” हिनद ##ी σας ##σ ς";
        json!({
            "added_tokens": added(["[UNK]", "[CLS]"]),
            "normalizer": {
                "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                "lowercase": true,
            },
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "model": {
                "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 12, "vocab": numbered(words.split(' ')),
            },
        })
    }

    fn pairs() -> Value {
        let bytes: Vec<String> = (0..256).map(|byte| format!("<0x{byte:02X}>")).collect();
        let bytes = bytes.iter().map(String::as_str);
        let words = ["<unk>", "<s>"].into_iter().chain(bytes);
        let words = words.chain("▁ a b c ab bc abc ▁a ▁ab aa aaa".split(' '));
        json!({
            "added_tokens": added(["<unk>", "<s>"]),
            "normalizer": { "type": "Sequence", "normalizers": [
                { "type": "Prepend", "prepend": "▁" },
                { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
            ] },
            "pre_tokenizer": null,
            "model": {
                "type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "vocab": numbered(words),
                "merges": ["b c", "▁ a", ["a", "b"], "ab c", "a bc", "▁a b", "a a", "aa a"],
            },
        })
    }

    fn tokenizer(json: &Value) -> Result<Tokenizer, String> {
        Tokenizer::parse(json.to_string().as_bytes())
    }

    /// Texts with their tokens.
    type Texts<'t> = &'t [(&'t str, &'t [u32])];

    /// The numbers are those of the Python package `tokenizers` 0.23.3 for the same files, without the unknown words of the
    /// first one.
    #[test]
    fn tokens_are_those_of_the_usual_program() {
        let cases: [(Value, Texts<'_>); 2] = [
            (
                word_pieces(),
                &[
                    ("unaffable", &[5, 4]),
                    ("Unaffable, HELLOS!", &[5, 4, 9, 11, 12, 10]),
                    ("Café cafe\u{301} 知識a", &[6, 6, 7, 8, 13]),
                    ("“hello” [CLS]a[UNK]", &[14, 11, 15, 1, 13]),
                    ("helloworld a", &[13]),
                    ("unaffableunaffable", &[]),
                    ("he\u{ad}llo\u{200b}\tnul\0", &[11]),
                    ("हिन्दी ", &[16, 17]),
                    ("ΣΑΣ", &[]),
                    ("", &[]),
                ],
            ),
            (
                pairs(),
                &[
                    ("abc", &[265, 263]),
                    ("a b c", &[265, 258, 260, 258, 261]),
                    ("aaaaa abab", &[265, 267, 267, 266, 262]),
                    ("é", &[258, 197, 171]),
                    ("<s>ab<unk>c", &[1, 266, 0, 258, 261]),
                    ("  ", &[258, 258, 258]),
                    ("abcabc\n", &[265, 263, 264, 12]),
                    ("", &[]),
                ],
            ),
        ];
        for (file, texts) in cases {
            let tokenizer = tokenizer(&file).unwrap();
            for (text, wanted) in texts {
                assert_eq!(tokenizer.tokens(text), *wanted, "{text:?}");
            }
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let with = |path: &str, value: Value| {
            let mut file = pairs();
            *file.pointer_mut(path).unwrap() = value;
            tokenizer(&file).err()
        };
        assert_eq!(with("/model/merges/0", json!("b c")), None);
        for (path, value) in [
            ("/model/type", json!("Unigram")),
            ("/model/merges/0", json!("zz c")),
            ("/model/merges/0", json!("bc")),
            ("/pre_tokenizer", json!({ "type": "ByteLevel" })),
            ("/normalizer", json!({ "type": "Precompiled" })),
            (
                "/added_tokens",
                json!(vec![json!({ "id": 1, "content": "x" }); 300]),
            ),
        ] {
            assert!(with(path, value).is_some(), "{path}");
        }
        assert!(Tokenizer::parse(b"{").is_err());
    }
}
