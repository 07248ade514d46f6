//! Compares a sync and a search with one FTS5 table that is used directly, in one run over the same generated text:
//! `cargo run -p knowledge --example against_fts5 [CHUNKS]`. Prints times and their quotients.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a measurement: it has the clock and a directory of its own"
)]

use authority::{Access, Workspace};
use knowledge::{Connector, ContextIndex, ContextReader, Error, ItemSink, SearchQuery, SourceItem};
use rusqlite::Connection;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Chunks of about so many bytes.
const CHUNK: usize = 1000;

/// Documents have so many chunks.
const PARTS: usize = 10;

/// How often each query is asked; the fastest time counts.
const TIMES: usize = 9;

/// Words as a text has them: few often, many rarely.
struct Words {
    seed: u64,
}

impl Words {
    fn next(&mut self) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.seed >> 33
    }

    fn word(&mut self) -> String {
        // A rank by a power law over 50,000 words.
        let uniform = (self.next() % 1_000_000) as f64 / 1_000_000.0;
        let rank = (50_000f64.powf(uniform)) as u64;
        format!(
            "{}{}",
            ["ka", "lo", "mi", "ter", "sun", "or"][(rank % 6) as usize],
            base(rank)
        )
    }

    fn chunk(&mut self) -> String {
        let mut text = String::new();
        while text.len() < CHUNK {
            text.push_str(&self.word());
            text.push(if self.next().is_multiple_of(12) {
                '\n'
            } else {
                ' '
            });
        }
        text.push_str("\n\n");
        text
    }
}

/// A number in letters.
fn base(mut number: u64) -> String {
    let mut out = String::new();
    loop {
        out.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
        if number == 0 {
            return out;
        }
    }
}

struct Generated(Vec<String>);

impl Connector for Generated {
    fn name(&self) -> &str {
        "generated"
    }

    fn kind(&self) -> &'static str {
        "generated"
    }

    fn scan(&self, sink: &mut dyn ItemSink) -> Result<(), Error> {
        for (number, body) in self.0.iter().enumerate() {
            sink.put(SourceItem {
                source_id: format!("{number}.txt"),
                stamp: "1".to_owned(),
                source_url: String::new(),
                title: format!("{number}.txt"),
                content_type: "text/plain",
                updated_at: 0,
                body: body.clone(),
            })?;
        }
        Ok(())
    }
}

fn main() {
    let chunks: usize = std::env::args()
        .nth(1)
        .map_or(100_000, |many| many.parse().unwrap());
    let mut words = Words { seed: 7 };
    let body = |words: &mut Words| (0..PARTS).map(|_| words.chunk()).collect::<String>();
    let bodies: Vec<String> = (0..chunks / PARTS).map(|_| body(&mut words)).collect();
    let dir = tempfile::tempdir().unwrap();
    let index = Workspace::open(&ambient::claim(), dir.path(), dir.path(), Access::ReadWrite);
    let index = ContextIndex::below(index.unwrap());
    let source = Generated(bodies);

    let synced = timed_sync(&index, &source);
    let again = (0..3).map(|_| timed_sync(&index, &source)).min().unwrap();
    let direct = Connection::open(dir.path().join("direct.sqlite")).unwrap();
    // The same chunks, as the index has them.
    let inserted = timed_inserts(&direct, &dir.path().join("index.sqlite"));
    println!(
        "sync {synced:.2?}, plain inserts {inserted:.2?}: {:.2} of their speed; a sync of nothing new {again:.2?}",
        inserted.as_secs_f64() / synced.as_secs_f64()
    );
    compare_searches(&index.read().unwrap(), &direct);
}

fn timed_sync(index: &ContextIndex, source: &Generated) -> Duration {
    let began = Instant::now();
    let on = &mut |_| ControlFlow::Continue(());
    index.sync(source, SystemTime::now(), false, on).unwrap();
    began.elapsed()
}

/// Inserts the texts of the chunks into one full text table.
fn timed_inserts(direct: &Connection, index: &Path) -> Duration {
    let texts = Connection::open(index).unwrap();
    let mut texts = texts.prepare("SELECT text FROM chunks").unwrap();
    let texts: Vec<String> = texts
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("{} chunks of {} MB", texts.len(), bytes / 1_000_000);
    let pragmas =
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16000;";
    direct.execute_batch(pragmas).unwrap();
    let began = Instant::now();
    direct
        .execute_batch("BEGIN; CREATE VIRTUAL TABLE direct USING fts5(text);")
        .unwrap();
    let mut insert = direct
        .prepare("INSERT INTO direct(text) VALUES(?1)")
        .unwrap();
    for text in &texts {
        insert.execute([text]).unwrap();
    }
    direct.execute_batch("COMMIT").unwrap();
    began.elapsed()
}

/// Asks both for twelve results with their texts.
fn compare_searches(reader: &ContextReader, direct: &Connection) {
    let sql = "SELECT rowid, text, rank FROM direct WHERE direct MATCH ?1 ORDER BY rank LIMIT 12";
    let mut statement = direct.prepare(sql).unwrap();
    let mut asked = Words { seed: 99 };
    let mut ours_sum = Duration::ZERO;
    let mut direct_sum = Duration::ZERO;
    for _ in 0..20 {
        let query: Vec<String> = (0..3).map(|_| asked.word()).collect();
        let text = query.join(" ");
        let quoted: Vec<String> = query.iter().map(|word| format!("\"{word}\"")).collect();
        let quoted = quoted.join(" OR ");
        let ours = fastest(|| {
            let query = SearchQuery {
                text: text.clone(),
                limit: 12,
                ..SearchQuery::default()
            };
            reader.search(&query).unwrap().len()
        });
        let theirs = fastest(|| {
            let rows = statement.query_map([&quoted], |row| {
                let id: i64 = row.get(0)?;
                let rank: f64 = row.get(2)?;
                Ok((id, row.get::<_, String>(1)?, rank))
            });
            rows.unwrap().map(Result::unwrap).count()
        });
        println!("  {text}: {ours:.2?}, direct {theirs:.2?}");
        ours_sum += ours;
        direct_sum += theirs;
    }
    println!(
        "20 searches {ours_sum:.2?}, direct {direct_sum:.2?}: {:.2} of their time",
        ours_sum.as_secs_f64() / direct_sum.as_secs_f64()
    );
}

fn fastest(mut run: impl FnMut() -> usize) -> Duration {
    let once = |_| {
        let began = Instant::now();
        std::hint::black_box(run());
        began.elapsed()
    };
    (0..TIMES).map(once).min().unwrap()
}
