//! Search: the best chunk of each document by its words (BM25), by its meaning (cosines of vectors) or by both, with the
//! reasons.

use crate::connector::MARKDOWN;
use crate::index::ContextReader;
use crate::terms::{AskedTerms, Terms};
use crate::vectors::{ChunkFilter, OF_CHUNKS, QueryVector};
use crate::{Error, ErrorKind};
use rusqlite::{Row, params};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The longest query, in bytes.
pub const MAX_QUERY: usize = 4096;

/// Most hits of one search.
pub const MAX_RESULTS: usize = 50;

/// How many chunks each side gives: the best of each document among them is a hit.
const CANDIDATES: usize = 80;

/// How much of a score is that of meaning, where a search has both sides.
const OF_MEANING: f64 = 0.6;

/// What is added to a rank before it is inverted: more, and the first ranks count less before the others.
const RANKS: f64 = 60.0;

/// How much a term counts in the words of a chunk, in the other ways to write them, and in its headings, title and path. Chosen
/// by the questions of `tests/recall`.
const BM25: &str = "bm25(1.0, 0.5, 2.0)";

/// What is looked for. The filters apply before anything is ranked.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// Words as a person types them, at most [`MAX_QUERY`] bytes. Nothing in it is syntax.
    pub text: String,
    /// Only this source.
    pub source: Option<String>,
    /// Only documents whose id in their source begins so, for files a directory.
    pub path: Option<String>,
    /// Most hits, 1 to [`MAX_RESULTS`].
    pub limit: usize,
    /// What is compared.
    pub mode: SearchMode,
    /// The meaning of `text`; needed for a mode that compares it.
    pub vector: Option<QueryVector>,
}

/// What a search compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchMode {
    /// Words.
    #[default]
    Keyword,
    /// Meaning.
    Semantic,
    /// Both: of the scores, each scaled from 0 to 1 among its candidates, meaning counts 0.6 and words 0.4.
    Hybrid,
    /// Both: the sum of 1 / (60 + rank) of each side.
    Ranks,
}

impl SearchMode {
    fn has_words(self) -> bool {
        self != Self::Semantic
    }

    fn has_meaning(self) -> bool {
        self != Self::Keyword
    }

    /// What a candidate of a side adds to its score.
    fn adds(self, part: &PartScore, of_both: f64) -> f64 {
        match self {
            Self::Keyword | Self::Semantic => part.normalized,
            Self::Hybrid => of_both * part.normalized,
            Self::Ranks => 1.0 / (RANKS + part.rank as f64),
        }
    }
}

impl SearchQuery {
    /// The chunks that it may find.
    fn among(&self) -> ChunkFilter<'_> {
        ChunkFilter {
            source: self.source.as_deref(),
            path: self.path.as_deref(),
        }
    }
}

/// The best chunk of a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchHit {
    /// The id of the chunk: `DOCUMENT#NUMBER`.
    pub chunk: String,
    /// BLAKE3 of `text`, 32 hexadecimal digits.
    pub chunk_digest: String,
    /// The id of its document.
    pub document: String,
    pub source: String,
    pub source_id: String,
    pub source_url: String,
    pub title: String,
    pub content_type: String,
    /// The headings above the chunk, outermost first.
    pub heading: String,
    pub text: String,
    /// When the document last changed, in seconds since 1970.
    pub updated_at: i64,
    /// The sum of what both sides add (`explain.keyword.adds` and `explain.semantic.adds`); of a search by words alone from 0
    /// to 1, where 1 is its best candidate.
    pub score: f64,
    pub explain: Explanation,
}

impl SearchHit {
    /// The line of the passage with most of the terms that were found, the first of several. A heading only if no other line
    /// has one.
    #[must_use]
    pub fn best_line(&self) -> &str {
        let score = |line: &str| {
            let Terms { words, parts } = Terms::of(line);
            let own: BTreeSet<&str> = words.split(' ').chain(parts.split(' ')).collect();
            let found = self.explain.terms.iter();
            let found = found.filter(|term| own.contains(term.as_str())).count();
            let is_heading = line.starts_with('#') && self.content_type == MARKDOWN;
            (found > 0 && !is_heading, found)
        };
        let lines = self.text.lines().filter(|line| !line.trim().is_empty());
        let best = lines.rev().max_by_key(|line| score(line));
        best.unwrap_or_default()
    }
}

/// Why a hit is where it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The place of the chunk among all candidates, from 1.
    pub rank: usize,
    /// The BM25 score; more is better. 0 if the chunk is no candidate by its words.
    pub bm25: f64,
    /// `bm25` between the worst candidate (0) and the best (1).
    pub normalized: f64,
    /// The terms of the query that the chunk, its headings or its path have.
    pub terms: Vec<String>,
    /// What its words add, if it is a candidate by them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyword: Option<PartScore>,
    /// What its meaning adds, if it is a candidate by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semantic: Option<PartScore>,
}

/// What one side says of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PartScore {
    /// The place among the candidates of this side, from 1.
    pub rank: usize,
    /// BM25, or the cosine.
    pub raw: f64,
    /// `raw` between the worst candidate (0) and the best (1).
    pub normalized: f64,
    /// What it adds to the score of the hit.
    pub adds: f64,
}

/// A chunk that one side or both found.
#[derive(Clone, Copy, Default)]
struct FoundChunk {
    keyword: Option<PartScore>,
    semantic: Option<PartScore>,
}

impl FoundChunk {
    fn score(&self) -> f64 {
        let adds = |part: &Option<PartScore>| part.map_or(0.0, |part| part.adds);
        adds(&self.keyword) + adds(&self.semantic)
    }
}

/// The best chunk of a document, before its text is read.
struct Candidate {
    chunk: i64,
    rank: usize,
    found: FoundChunk,
    document: String,
    source_id: String,
    updated_at: i64,
}

impl ContextReader {
    /// The best documents for a query, the best first; ties by date, then by id. Empty if no chunk has one of its words.
    ///
    /// # Errors
    /// `FixInput` for a query without words, over its bounds, or by a meaning that the index has no vectors for; `Damaged`; see
    /// [`ErrorKind`].
    pub fn search(&self, query: &SearchQuery) -> Result<Vec<SearchHit>, Error> {
        let wrong = |text: String| Error::new(ErrorKind::FixInput, text);
        if query.text.len() > MAX_QUERY {
            return Err(wrong(format!("the query has over {MAX_QUERY} bytes")));
        }
        if !(1..=MAX_RESULTS).contains(&query.limit) {
            return Err(wrong(format!("the limit is 1 to {MAX_RESULTS}")));
        }
        let asked = AskedTerms::of(&query.text);
        let asked = asked.ok_or_else(|| wrong("the query has no words".to_owned()))?;
        let mut found: BTreeMap<i64, FoundChunk> = BTreeMap::new();
        if query.mode.has_words() {
            for (chunk, part) in parts(self.ranked(&asked, query)?, query.mode, 1.0 - OF_MEANING) {
                found.entry(chunk).or_default().keyword = Some(part);
            }
        }
        if query.mode.has_meaning() {
            let vector = query.vector.as_ref();
            let vector = vector.ok_or_else(|| wrong("the query has no vector".to_owned()))?;
            let near = self.nearest(vector, query.among(), CANDIDATES)?;
            for (chunk, part) in parts(near, query.mode, OF_MEANING) {
                found.entry(chunk).or_default().semantic = Some(part);
            }
        }
        let mut ranked: Vec<(i64, FoundChunk)> = found.into_iter().collect();
        ranked.sort_by(|(_, a), (_, b)| b.score().total_cmp(&a.score()));
        let mut hits = Vec::new();
        for candidate in self.of_each_document(ranked)? {
            if hits.len() == query.limit {
                break;
            }
            if !self.may_show(&candidate.source_id) {
                continue;
            }
            let FoundChunk { keyword, semantic } = candidate.found;
            let explain = Explanation {
                rank: candidate.rank,
                bm25: keyword.map_or(0.0, |part| part.raw),
                normalized: keyword.map_or(0.0, |part| part.normalized),
                terms: Vec::new(),
                keyword,
                semantic,
            };
            let mut hit = self.hit(candidate.chunk, candidate.found.score(), explain)?;
            hit.explain.terms = matched(&asked, &hit);
            hits.push(hit);
        }
        Ok(hits)
    }

    /// The best chunk of each document, the best first; ties by date, then by id.
    fn of_each_document(&self, ranked: Vec<(i64, FoundChunk)>) -> Result<Vec<Candidate>, Error> {
        let sql = "SELECT d.uuid, d.source_id, d.updated_at FROM chunks c JOIN documents d ON d.id = c.document WHERE c.id = ?1";
        let mut documents = self.db.prepare(sql)?;
        let mut known = BTreeSet::new();
        let mut candidates = Vec::new();
        for (rank, (chunk, found)) in (1..).zip(ranked) {
            let read = |row: &Row<'_>| {
                Ok(Candidate {
                    chunk,
                    rank,
                    found,
                    document: row.get(0)?,
                    source_id: row.get(1)?,
                    updated_at: row.get(2)?,
                })
            };
            let candidate = documents.query_row([chunk], read)?;
            if known.insert(candidate.document.clone()) {
                candidates.push(candidate);
            }
        }
        candidates.sort_by(|a, b| {
            let by_date = b.updated_at.cmp(&a.updated_at);
            let by_score = b.found.score().total_cmp(&a.found.score());
            let order = by_score.then(by_date);
            order.then_with(|| a.document.cmp(&b.document))
        });
        Ok(candidates)
    }

    /// The best chunks with their scores.
    fn ranked(&self, asked: &AskedTerms, query: &SearchQuery) -> Result<Vec<(i64, f64)>, Error> {
        let filter = match query.among().sql() {
            None => String::new(),
            // The plus keeps the table from being asked once for each chunk.
            Some(filter) => format!("AND +rowid IN (SELECT c.id {OF_CHUNKS} WHERE {filter})"),
        };
        let sql = format!(
            "SELECT rowid, rank FROM terms WHERE terms MATCH ?1 AND rank MATCH '{BM25}' {filter} ORDER BY rank LIMIT ?2"
        );
        let mut ranked = self.db.prepare(&sql)?;
        let read = |row: &Row<'_>| -> Result<(i64, f64), rusqlite::Error> {
            Ok((row.get(0)?, -row.get::<_, f64>(1)?))
        };
        let most = i64::try_from(CANDIDATES).unwrap_or(i64::MAX);
        let expression = asked.expression();
        let rows = match query.among().sql() {
            None => ranked.query_map(params![expression, most], read)?,
            Some(_) => {
                ranked.query_map(params![expression, most, query.source, query.path], read)?
            }
        };
        Ok(rows.collect::<Result<_, rusqlite::Error>>()?)
    }

    fn hit(&self, chunk: i64, score: f64, explain: Explanation) -> Result<SearchHit, Error> {
        let sql = format!(
            "SELECT d.uuid, c.seq, c.digest, s.name, d.source_id, d.source_url, d.title, d.content_type, c.heading,
            c.text, d.updated_at {OF_CHUNKS} WHERE c.id = ?1"
        );
        let read = |row: &Row<'_>| {
            let document: String = row.get(0)?;
            Ok::<_, rusqlite::Error>(SearchHit {
                chunk: format!("{document}#{}", row.get::<_, i64>(1)?),
                document,
                chunk_digest: row.get(2)?,
                source: row.get(3)?,
                source_id: row.get(4)?,
                source_url: row.get(5)?,
                title: row.get(6)?,
                content_type: row.get(7)?,
                heading: row.get(8)?,
                text: row.get(9)?,
                updated_at: row.get(10)?,
                score,
                explain,
            })
        };
        Ok(self.db.query_row(&sql, [chunk], read)?)
    }
}

/// The candidates of one side, the best first, with what each adds.
fn parts(
    ranked: Vec<(i64, f64)>,
    mode: SearchMode,
    of_both: f64,
) -> impl Iterator<Item = (i64, PartScore)> {
    let best = ranked.first().map_or(0.0, |(_, raw)| *raw);
    let worst = ranked.last().map_or(0.0, |(_, raw)| *raw);
    let spread = best - worst;
    (1..).zip(ranked).map(move |(rank, (chunk, raw))| {
        let mut part = PartScore {
            rank,
            raw,
            normalized: match spread > 0.0 {
                true => (raw - worst) / spread,
                false => 1.0,
            },
            adds: 0.0,
        };
        part.adds = mode.adds(&part, of_both);
        (chunk, part)
    })
}

/// The terms of a query that a hit has.
fn matched(asked: &AskedTerms, hit: &SearchHit) -> Vec<String> {
    let mut wanted: BTreeMap<&str, bool> = asked.shown().map(|term| (term, false)).collect();
    for part in [&hit.text, &hit.heading, &hit.title, &hit.source_id] {
        let Terms { words, parts } = Terms::of(part);
        for term in words.split(' ').chain(parts.split(' ')) {
            if let Some(found) = wanted.get_mut(term) {
                *found = true;
            }
        }
    }
    let found = asked.shown().filter(|term| wanted.get(term) == Some(&true));
    found.map(str::to_owned).collect()
}
