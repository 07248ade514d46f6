//! The meaning of texts as vectors: what makes them, those of an index, and the nearest of these. Vectors belong to texts by
//! their digests: a text that is there twice, moved or renamed is embedded once.

use crate::index::{ContextIndex, ContextReader};
use crate::{Error, ErrorKind};
use rusqlite::types::Null;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use std::ops::ControlFlow;

/// Most values of a vector.
pub(crate) const MAX_WIDTH: usize = 8192;

/// Most vectors of an index: each search compares all of them.
const MAX_VECTORS: u64 = 200_000;

/// Turns texts into vectors.
pub trait Embedder {
    /// What it is: vectors of two names are not compared.
    fn name(&self) -> &str;

    /// How many texts it takes at once.
    fn batch(&self) -> usize;

    /// A vector for each text, in order and of one length.
    ///
    /// # Errors
    /// It cannot be reached, or it refuses them.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error>;
}

/// The meaning of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryVector {
    pub(crate) model: String,
    pub(crate) values: Vec<f32>,
}

impl QueryVector {
    /// Embeds a query.
    ///
    /// # Errors
    /// Those of the embedder; `Unavailable` when it gives something else than one vector.
    pub fn of(embedder: &dyn Embedder, query: &str) -> Result<Self, Error> {
        let mut values = checked(embedder, &[query], None)?.pop().unwrap_or_default();
        unit(&mut values);
        Ok(Self {
            model: embedder.name().to_owned(),
            values,
        })
    }
}

impl QueryVector {
    /// The name of its embedder.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }
}

/// The vectors of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IndexedVectors {
    /// The name of their embedder.
    pub model: String,
    pub vectors: u64,
    /// Texts without a vector: a sync was ended, or the index has more than 200,000.
    pub missing: u64,
}

impl ContextIndex {
    /// Embeds the texts of the index that have no vector of this embedder, and removes vectors of others and of texts that
    /// are gone. Each batch is kept by itself. `on` is told how many texts were embedded so far, and ends it with `Break`.
    ///
    /// # Errors
    /// `Busy` when a sync runs for longer than is waited; the embedder's; `Cancelled`; see [`ErrorKind`].
    pub fn embed(
        &self,
        embedder: &dyn Embedder,
        on: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<IndexedVectors, Error> {
        let _held = self.lock()?;
        let (mut db, _opened) = self.write()?;
        prepare(&mut db, embedder.name())?;
        let mut width = db
            .query_row("SELECT length(vector) FROM vectors LIMIT 1", [], |row| {
                row.get::<_, i64>(0)
            })
            .optional()?
            .and_then(|bytes| usize::try_from(bytes / 4).ok());
        let mut room = MAX_VECTORS.saturating_sub(counted(&db)?.vectors);
        let mut embedded = 0;
        let mut last = 0;
        loop {
            let most = usize::try_from(room).unwrap_or(usize::MAX);
            let most = embedder.batch().max(1).min(most);
            let texts = without_vector(&db, last, most)?;
            let Some((row, _, _)) = texts.last() else {
                break;
            };
            last = *row;
            let asked: Vec<&str> = texts.iter().map(|(_, _, text)| text.as_str()).collect();
            let vectors = checked(embedder, &asked, width)?;
            width = vectors.first().map(Vec::len);
            let batch = db.transaction()?;
            {
                let sql = "INSERT OR IGNORE INTO vectors(digest, vector) VALUES(?1, ?2)";
                let mut add = batch.prepare(sql)?;
                for ((_, digest, _), mut vector) in texts.iter().zip(vectors) {
                    unit(&mut vector);
                    add.execute(params![digest, as_bytes(&vector)])?;
                }
            }
            batch.commit()?;
            let done = texts.len() as u64;
            (embedded, room) = (embedded + done, room.saturating_sub(done));
            if on(embedded).is_break() {
                return Err(Error::new(ErrorKind::Cancelled, "embedding was ended"));
            }
        }
        counted(&db)
    }
}

/// Leaves the vectors of this model and of texts that are there.
fn prepare(db: &mut Connection, model: &str) -> Result<(), Error> {
    db.execute_batch("CREATE INDEX IF NOT EXISTS chunks_digest ON chunks(digest)")?;
    let whole = db.transaction()?;
    let before: Option<String> = whole
        .query_row("SELECT model FROM embeddings", [], |row| row.get(0))
        .optional()?;
    if before.as_deref() != Some(model) {
        whole.execute_batch("DELETE FROM vectors; DELETE FROM embeddings;")?;
        whole.execute("INSERT INTO embeddings(model) VALUES(?1)", [model])?;
    }
    whole.execute(
        "DELETE FROM vectors WHERE digest NOT IN (SELECT digest FROM chunks)",
        [],
    )?;
    Ok(whole.commit()?)
}

/// The next chunks after a row whose texts have no vector: row, digest and text.
fn without_vector(
    db: &Connection,
    after: i64,
    most: usize,
) -> Result<Vec<(i64, String, String)>, Error> {
    let sql = "SELECT id, digest, text FROM chunks c WHERE id > ?1
        AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.digest = c.digest) ORDER BY id LIMIT ?2";
    let mut chunks = db.prepare(sql)?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = chunks.query_map(params![after, most], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The vectors of an embedder that does what it says.
fn checked(
    embedder: &dyn Embedder,
    texts: &[&str],
    width: Option<usize>,
) -> Result<Vec<Vec<f32>>, Error> {
    let vectors = embedder.embed(texts)?;
    let width = width.or_else(|| vectors.first().map(Vec::len));
    let fits = |vector: &Vec<f32>| {
        Some(vector.len()) == width
            && (1..=MAX_WIDTH).contains(&vector.len())
            && vector.iter().all(|value| value.is_finite())
    };
    match vectors.len() == texts.len() && vectors.iter().all(fits) {
        true => Ok(vectors),
        false => Err(Error::new(
            ErrorKind::Unavailable,
            format!(
                "{} gave something else than a vector of 1 to {MAX_WIDTH} numbers for each text, all of one length",
                embedder.name()
            ),
        )),
    }
}

/// A vector of length 1 in the same direction; zeros stay.
pub(crate) fn unit(vector: &mut [f32]) {
    let sum: f64 = vector
        .iter()
        .map(|value| f64::from(*value) * f64::from(*value))
        .sum();
    if sum > 0.0 {
        let length = sum.sqrt();
        for value in vector {
            *value = (f64::from(*value) / length) as f32;
        }
    }
}

fn as_bytes(vector: &[f32]) -> Vec<u8> {
    vector
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// How alike a stored vector and that of a query are: the cosine, as both have length 1.
fn cosine(stored: &[u8], asked: &[f32]) -> f32 {
    let (stored, _) = stored.as_chunks::<4>();
    let (stored, stored_rest) = stored.as_chunks::<8>();
    let (asked, asked_rest) = asked.as_chunks::<8>();
    // Eight sums, so that the processor adds them at once.
    let mut sums = [0f32; 8];
    for (stored, asked) in stored.iter().zip(asked) {
        for (sum, (stored, asked)) in sums.iter_mut().zip(stored.iter().zip(asked)) {
            *sum += f32::from_le_bytes(*stored) * asked;
        }
    }
    let rest = stored_rest.iter().zip(asked_rest);
    let rest: f32 = rest
        .map(|(stored, asked)| f32::from_le_bytes(*stored) * asked)
        .sum();
    sums.iter().sum::<f32>() + rest
}

fn counted(db: &Connection) -> Result<IndexedVectors, Error> {
    let sql = "SELECT coalesce((SELECT model FROM embeddings), ''), (SELECT count(*) FROM vectors),
        (SELECT count(*) FROM chunks c WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.digest = c.digest))";
    let number = |many: i64| u64::try_from(many).unwrap_or_default();
    Ok(db.query_row(sql, [], |row| {
        Ok(IndexedVectors {
            model: row.get(0)?,
            vectors: number(row.get(1)?),
            missing: number(row.get(2)?),
        })
    })?)
}

impl ContextReader {
    /// The vectors of the index, if it has some.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub fn vectors(&self) -> Result<Option<IndexedVectors>, Error> {
        let vectors = counted(&self.db)?;
        Ok((vectors.vectors > 0).then_some(vectors))
    }

    /// The chunks with the nearest vectors and their cosines, the nearest first; only those that the
    /// filters of the query leave.
    pub(crate) fn nearest(
        &self,
        asked: &QueryVector,
        among: ChunkFilter<'_>,
        most: usize,
    ) -> Result<Vec<(i64, f64)>, Error> {
        let known: Option<String> = self
            .db
            .query_row("SELECT model FROM embeddings", [], |row| row.get(0))
            .optional()?;
        if known.as_ref() != Some(&asked.model) {
            let text = format!(
                "the index has no vectors of {}; `yoi context sync` adds them",
                asked.model
            );
            return Err(Error::new(ErrorKind::FixInput, text));
        }
        self.db.execute_batch(MAPPED)?;
        let filter = among.sql();
        let below = match filter {
            Some(filter) => format!("WHERE digest IN (SELECT c.digest {OF_CHUNKS} WHERE {filter})"),
            None => String::new(),
        };
        let ChunkFilter { source, path } = among;
        let sql = format!("SELECT id, vector FROM vectors {below}");
        let mut all = self.db.prepare(&sql)?;
        let mut rows = match filter {
            Some(_) => all.query(params![Null, Null, source, path])?,
            None => all.query([])?,
        };
        let bytes = asked.values.len() * 4;
        let mut near: Vec<(i64, f32)> = Vec::with_capacity(2 * most);
        let order = |a: &(i64, f32), b: &(i64, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        let mut least = f32::MIN;
        while let Some(row) = rows.next()? {
            let stored = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            if stored.len() != bytes {
                return Err(Error::new(
                    ErrorKind::Damaged,
                    "a vector of another length is in the index",
                ));
            }
            let cosine = cosine(stored, &asked.values);
            // Nothing is like a text without known words.
            if cosine > least && cosine > 0.0 {
                near.push((row.get(0)?, cosine));
                if near.len() == 2 * most {
                    near.sort_by(order);
                    near.truncate(most);
                    least = near.last().map_or(f32::MIN, |(_, cosine)| *cosine);
                }
            }
        }
        drop(rows);
        near.sort_by(order);
        let filter = filter.map_or(String::new(), |filter| format!("AND {filter}"));
        let sql = format!(
            "SELECT c.id {OF_CHUNKS} JOIN vectors v ON v.digest = c.digest WHERE v.id = ?1 {filter} ORDER BY c.id"
        );
        let mut chunks = self.db.prepare(&sql)?;
        let mut found = Vec::new();
        for (vector, cosine) in near {
            let read = |row: &Row<'_>| row.get(0);
            let rows = match filter.is_empty() {
                true => chunks.query_map([vector], read)?,
                false => chunks.query_map(params![vector, Null, source, path], read)?,
            };
            for chunk in rows {
                found.push((chunk?, f64::from(cosine)));
            }
        }
        found.truncate(most);
        Ok(found)
    }
}

/// Only the chunks of a source, and only those of documents below a path; without both, all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkFilter<'a> {
    pub(crate) source: Option<&'a str>,
    pub(crate) path: Option<&'a str>,
}

impl ChunkFilter<'_> {
    /// SQL over `c`, `d` and `s`, a chunk, its document and its source, with the source as `?3` and the path as `?4`.
    pub(crate) fn sql(self) -> Option<&'static str> {
        let is_filtered = self.source.is_some() || self.path.is_some();
        is_filtered.then_some(
            "(?3 IS NULL OR s.name = ?3) AND (?4 IS NULL OR substr(d.source_id, 1, length(?4)) = ?4)",
        )
    }
}

/// Vectors are read where the system has them in memory.
const MAPPED: &str = "PRAGMA mmap_size = 1073741824";

/// The tables of a chunk, its document and its source.
pub(crate) const OF_CHUNKS: &str =
    "FROM chunks c JOIN documents d ON d.id = c.document JOIN sources s ON s.id = d.source";
