//! Reading the tree: files in a stable order, and Rust text parted into code and comments.

use std::path::{Path, PathBuf};

use crate::finding::Finding;

/// Directories that are not ours to judge: version control and build output.
const SKIPPED: [&str; 3] = [".git", "target", ".direnv"];

/// Crates of the development, used neither as a library nor as a program.
const NOT_SHIPPED: [&str; 3] = ["bench", "fuzz", "tidy"];

/// Folders of crates that belong together; the inner one first.
const GROUPS: [&str; 3] = ["crates/plugins/api/", "crates/plugins/", "crates/"];

/// The folder of the crate that a file belongs to: `crates/pod`, `crates/plugins/package`, `crates/plugins/api/core`.
pub fn crate_folder(path: &str) -> &str {
    let (group, rest) = GROUPS
        .iter()
        .find_map(|group| Some((group, path.strip_prefix(group)?)))
        .unwrap_or((&"", path));
    let name = rest.split('/').next().unwrap_or_default();
    path.get(..group.len() + name.len()).unwrap_or_default()
}

/// A file of text. `path` is relative to the root, with `/`.
#[derive(Debug)]
pub struct Text {
    pub path: String,
    pub text: String,
}

/// A Rust file, parted. All three strings have the same lines; what belongs elsewhere is blanked with spaces.
#[derive(Debug)]
pub struct Source {
    pub path: String,
    pub text: String,
    /// Without comments and without the insides of string and character literals.
    pub code: String,
    /// Comments alone.
    pub comments: String,
}

impl Source {
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let (code, comments) = part(&text);
        Self {
            path: path.into(),
            text,
            code,
            comments,
        }
    }

    /// True for integration tests, benches and modules of tests: code that does not ship.
    pub fn is_test_file(&self) -> bool {
        let mut parts = self.path.split('/');
        let file = parts.next_back().unwrap_or_default();
        file == "tests.rs" || parts.any(|p| p == "tests" || p == "benches")
    }

    /// Code of a crate that others use or run; not its tests.
    pub fn ships(&self) -> bool {
        let shipped = crate_folder(&self.path)
            .rsplit('/')
            .next()
            .is_some_and(|name| !NOT_SHIPPED.contains(&name));
        shipped && self.path.contains("/src/") && !self.is_test_file()
    }

    /// The code with every `#[cfg(test)] mod … { … }` blanked.
    pub fn shipped_code(&self) -> String {
        let mut code = self.code.clone().into_bytes();
        for block in test_modules(&self.code) {
            for byte in code
                .iter_mut()
                .take(block.end)
                .skip(block.start)
                .filter(|b| **b != b'\n')
            {
                *byte = b' ';
            }
        }
        String::from_utf8_lossy(&code).into_owned()
    }

    /// The insides of the literals of that code, each where it stands.
    pub fn shipped_literals(&self) -> String {
        let tests = test_modules(&self.code);
        let code = self.code.bytes();
        let comments = self.comments.bytes();
        let parted = self.text.bytes().zip(code.zip(comments)).enumerate().map(
            |(at, (byte, (code, comment)))| {
                let elsewhere = code == byte
                    || comment == byte
                    || tests.iter().any(|t| (t.start..t.end).contains(&at));
                if elsewhere && byte != b'\n' {
                    b' '
                } else {
                    byte
                }
            },
        );
        String::from_utf8_lossy(&parted.collect::<Vec<u8>>()).into_owned()
    }
}

/// A stretch of code: byte range, first line (from 1), number of lines, and its name.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    pub name: String,
    pub start: usize,
    pub end: usize,
    pub line: usize,
    pub lines: usize,
}

/// Every file under `root/within`, sorted; unreadable directories become findings.
pub fn files(root: &Path, within: &str) -> (Vec<PathBuf>, Vec<Finding>) {
    let mut found = Vec::new();
    let mut bad = Vec::new();
    let start = if within.is_empty() {
        root.to_path_buf()
    } else {
        root.join(within)
    };
    let mut open = if start.exists() {
        vec![start]
    } else {
        Vec::new()
    };
    while let Some(dir) = open.pop() {
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) => {
                bad.push(Finding::unreadable(&dir, e));
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let skipped = path
                .file_name()
                .is_some_and(|n| SKIPPED.iter().any(|s| n == *s));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !skipped => open.push(path),
                Ok(kind) if kind.is_file() => found.push(path),
                Ok(_) => {}
                Err(e) => bad.push(Finding::unreadable(&path, e)),
            }
        }
    }
    found.sort();
    (found, bad)
}

/// Files of UTF-8 text under `root/within` that `want` accepts by relative path. Other bytes are passed over.
pub fn texts(root: &Path, within: &str, want: impl Fn(&str) -> bool) -> (Vec<Text>, Vec<Finding>) {
    let (paths, mut bad) = files(root, within);
    let mut found = Vec::new();
    for path in paths {
        let shown = relative(root, &path);
        if !want(&shown) {
            continue;
        }
        match std::fs::read(&path).map(String::from_utf8) {
            Ok(Ok(text)) => found.push(Text { path: shown, text }),
            Ok(Err(_)) => {}
            Err(e) => bad.push(Finding::unreadable(&path, e)),
        }
    }
    (found, bad)
}

/// Rust files of the crates, without the fixtures of compile-fail suites, which are wrong on purpose.
pub fn sources(root: &Path) -> (Vec<Source>, Vec<Finding>) {
    let rust = |p: &str| {
        p.ends_with(".rs") && !p.contains("/tests/ui/") && !p.contains("/tests/compile_fail/")
    };
    let (texts, bad) = texts(root, "crates", rust);
    (
        texts
            .into_iter()
            .map(|t| Source::new(t.path, t.text))
            .collect(),
        bad,
    )
}

pub fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// The line (from 1) of a byte offset.
pub fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|b| *b == b'\n').count() + 1
}

/// Offsets at which `word` stands in `code` with no identifier character on either side.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let before = at
                .checked_sub(1)
                .and_then(|i| code.as_bytes().get(i))
                .copied();
            let after = code.as_bytes().get(at + word.len()).copied();
            !before.is_some_and(is_ident) && !after.is_some_and(is_ident)
        })
}

pub fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Functions with a body, from the line of `fn` to the closing brace. Function pointer types have no name and are none.
pub fn functions(code: &str) -> Vec<Block> {
    words(code, "fn")
        .filter_map(|at| named_block(code, at, at + 2))
        .collect()
}

/// `#[cfg(test)] mod name { … }`, from the attribute to the closing brace.
pub fn test_modules(code: &str) -> Vec<Block> {
    const MARK: &str = "#[cfg(test)]";
    let module = |(at, _): (usize, &str)| {
        let mut rest = code.get(at + MARK.len()..)?.trim_start();
        while rest.starts_with("#[") {
            rest = rest.split_once(']')?.1.trim_start();
        }
        rest = rest.strip_prefix("pub").unwrap_or(rest).trim_start();
        if rest.starts_with('(') {
            rest = rest.split_once(')')?.1.trim_start();
        }
        let rest = rest.strip_prefix("mod ")?;
        named_block(code, at, code.len() - rest.len())
    };
    code.match_indices(MARK).filter_map(module).collect()
}

/// The block whose name begins at or after `name_at`; `None` for a declaration that ends in `;`.
fn named_block(code: &str, start: usize, name_at: usize) -> Option<Block> {
    let rest = code.get(name_at..)?;
    let trimmed = rest.trim_start();
    let name: String = trimmed
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    if name.is_empty() {
        return None;
    }
    let body = name_at + opening(rest)?;
    let end = body + closing(code.get(body..)?)? + 1;
    let lines = code
        .get(start..end)?
        .bytes()
        .filter(|b| *b == b'\n')
        .count()
        + 1;
    Some(Block {
        name,
        start,
        end,
        line: line_of(code, start),
        lines,
    })
}

/// Offset of the brace that opens the body: the first one outside parentheses and brackets, before any `;`.
fn opening(code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Offset of the brace that closes the one at offset 0.
fn closing(code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at),
            b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// Parts Rust text into code and comments. Quotes stay in the code, their insides do not.
fn part(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let blank = |b: &u8| if *b == b'\n' { b'\n' } else { b' ' };
    let mut code: Vec<u8> = bytes.iter().map(blank).collect();
    let mut comments = code.clone();
    let keep = |to: &mut [u8], from: usize, end: usize| {
        if let (Some(slots), Some(kept)) = (to.get_mut(from..end), bytes.get(from..end)) {
            slots.copy_from_slice(kept);
        }
    };
    let mut at = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let after_ident = at
            .checked_sub(1)
            .and_then(|i| bytes.get(i))
            .is_some_and(|b| is_ident(*b));
        let (length, kind) = token(rest, after_ident);
        let end = at + length;
        match kind {
            Token::Code => keep(&mut code, at, end),
            Token::Comment => keep(&mut comments, at, end),
            Token::Literal => {
                keep(&mut code, at, at + 1);
                keep(&mut code, end - 1, end);
            }
        }
        at = end;
    }
    (
        String::from_utf8_lossy(&code).into_owned(),
        String::from_utf8_lossy(&comments).into_owned(),
    )
}

enum Token {
    Code,
    Comment,
    Literal,
}

/// The length (at least 1) and kind of what `rest` begins with.
fn token(rest: &[u8], after_ident: bool) -> (usize, Token) {
    match rest {
        [b'/', b'/', ..] => (
            rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
            Token::Comment,
        ),
        [b'/', b'*', ..] => (block_comment(rest), Token::Comment),
        [b'"', ..] => (quoted(rest, b'"'), Token::Literal),
        [b'\'', ..] => character(rest).map_or((1, Token::Code), |n| (n, Token::Literal)),
        [b'r', ..] | [b'b' | b'c', b'r', ..] if !after_ident => {
            raw_string(rest).map_or((1, Token::Code), |n| (n, Token::Literal))
        }
        _ => (1, Token::Code),
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match rest.get(at..) {
            Some([b'/', b'*', ..]) => (depth, at) = (depth + 1, at + 2),
            Some([b'*', b'/', ..]) => (depth, at) = (depth.saturating_sub(1), at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match *byte {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `'x'` and `'\n'` are characters, `'a` without a closing quote is a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    match rest.get(1)? {
        b'\\' => Some(quoted(rest, b'\'')),
        first => {
            let width = match first {
                0xf0.. => 4,
                0xe0.. => 3,
                0xc0.. => 2,
                _ => 1,
            };
            (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
        }
    }
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = rest
        .iter()
        .take_while(|b| matches!(b, b'b' | b'c' | b'r'))
        .count();
    let hashes = rest.iter().skip(prefix).take_while(|b| **b == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"')
        .chain(std::iter::repeat_n(b'#', hashes))
        .collect();
    let body = rest.get(open + 1..)?;
    let end = body.windows(close.len()).position(|w| w == close);
    Some(end.map_or(rest.len(), |e| open + 1 + e + close.len()))
}
