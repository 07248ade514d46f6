//! Keyword search: the best chunk of each document by BM25, with the reasons.

use crate::connector::MARKDOWN;
use crate::index::ContextReader;
use crate::terms::{AskedTerms, Terms};
use crate::{Error, ErrorKind};
use rusqlite::{Row, params};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The longest query, in bytes.
pub const MAX_QUERY: usize = 4096;

/// Most hits of one search.
pub const MAX_RESULTS: usize = 50;

/// How many chunks are compared: the best of each document among them is a hit.
const CANDIDATES: i64 = 80;

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
    /// From 0 to 1, where 1 is the best candidate of this search: `explain.normalized`.
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
    /// The BM25 score; more is better.
    pub bm25: f64,
    /// `bm25` between the worst candidate (0) and the best (1).
    pub normalized: f64,
    /// The terms of the query that the chunk, its headings or its path have.
    pub terms: Vec<String>,
}

/// The best chunk of a document, before its text is read.
struct Candidate {
    chunk: i64,
    rank: usize,
    bm25: f64,
    document: String,
    source_id: String,
    updated_at: i64,
}

impl ContextReader {
    /// The best documents for a query, the best first; ties by date, then by id. Empty if no chunk has one of its words.
    ///
    /// # Errors
    /// `FixInput` for a query without words or over its bounds; `Damaged`; see [`ErrorKind`].
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
        let ranked = self.ranked(&asked, query)?;
        let (Some((_, best)), Some((_, worst))) = (ranked.first(), ranked.last()) else {
            return Ok(Vec::new());
        };
        let spread = best - worst;
        let mut hits = Vec::new();
        for candidate in self.of_each_document(&ranked)? {
            if hits.len() == query.limit {
                break;
            }
            if !self.may_show(&candidate.source_id) {
                continue;
            }
            let normalized = match spread > 0.0 {
                true => (candidate.bm25 - worst) / spread,
                false => 1.0,
            };
            let explain = Explanation {
                rank: candidate.rank,
                bm25: candidate.bm25,
                normalized,
                terms: Vec::new(),
            };
            let mut hit = self.hit(candidate.chunk, explain)?;
            hit.explain.terms = matched(&asked, &hit);
            hits.push(hit);
        }
        Ok(hits)
    }

    /// The best chunk of each document, the best first; ties by date, then by id.
    fn of_each_document(&self, ranked: &[(i64, f64)]) -> Result<Vec<Candidate>, Error> {
        let sql = "SELECT d.uuid, d.source_id, d.updated_at FROM chunks c JOIN documents d ON d.id = c.document WHERE c.id = ?1";
        let mut documents = self.db.prepare(sql)?;
        let mut known = BTreeSet::new();
        let mut candidates = Vec::new();
        for (rank, (chunk, bm25)) in (1..).zip(ranked) {
            let read = |row: &Row<'_>| {
                Ok(Candidate {
                    chunk: *chunk,
                    rank,
                    bm25: *bm25,
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
            let order = b.bm25.total_cmp(&a.bm25).then(by_date);
            order.then_with(|| a.document.cmp(&b.document))
        });
        Ok(candidates)
    }

    /// The best chunks with their scores.
    fn ranked(&self, asked: &AskedTerms, query: &SearchQuery) -> Result<Vec<(i64, f64)>, Error> {
        let filter = match (&query.source, &query.path) {
            (None, None) => "",
            // The plus keeps the table from being asked once for each chunk.
            _ => {
                "AND +rowid IN (SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document JOIN sources s ON s.id = d.source
                WHERE (?3 IS NULL OR s.name = ?3) AND (?4 IS NULL OR substr(d.source_id, 1, length(?4)) = ?4))"
            }
        };
        let sql = format!(
            "SELECT rowid, rank FROM terms WHERE terms MATCH ?1 AND rank MATCH '{BM25}' {filter} ORDER BY rank LIMIT ?2"
        );
        let mut ranked = self.db.prepare(&sql)?;
        let read = |row: &Row<'_>| -> Result<(i64, f64), rusqlite::Error> {
            Ok((row.get(0)?, -row.get::<_, f64>(1)?))
        };
        let rows = match filter {
            "" => ranked.query_map(params![asked.expression(), CANDIDATES], read)?,
            _ => ranked.query_map(
                params![asked.expression(), CANDIDATES, query.source, query.path],
                read,
            )?,
        };
        Ok(rows.collect::<Result<_, rusqlite::Error>>()?)
    }

    fn hit(&self, chunk: i64, explain: Explanation) -> Result<SearchHit, Error> {
        let sql = "SELECT d.uuid, c.seq, c.digest, s.name, d.source_id, d.source_url, d.title, d.content_type, c.heading,
            c.text, d.updated_at
            FROM chunks c JOIN documents d ON d.id = c.document JOIN sources s ON s.id = d.source WHERE c.id = ?1";
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
                score: explain.normalized,
                explain,
            })
        };
        Ok(self.db.query_row(sql, [chunk], read)?)
    }
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
