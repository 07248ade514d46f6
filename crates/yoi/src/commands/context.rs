//! `yoi context`: the index of the project's documents, synced and searched by a person.

use crate::cli::{ContextAction, ContextGetArgs, ContextMode, ContextSearchArgs, ContextSyncArgs};
use crate::look::Look;
use crate::show::out;
use authority::Access;
use authority::text::{escape_line, first_line};
use host::compose::context_index;
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use knowledge::{
    ContextIndex, ContextReader, ErrorKind, IndexedSource, PartScore, QueryVector, SearchMode,
    SearchQuery, SyncProgress, SyncReport,
};
use serde_json::json;
use std::io::Write;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tui::count;

/// The longest line that is shown of a passage, in characters.
const MAX_SHOWN: usize = 160;

/// On a terminal, so many items pass between two states of its line.
const DRAWN: u64 = 500;

pub(crate) fn run(action: &ContextAction, env: &Env) -> Result<Exit, Failure> {
    match action {
        ContextAction::Sync(args) => sync(args, env),
        ContextAction::Search(args) => search(args, env),
        ContextAction::Get(args) => get(args, env),
        ContextAction::Sources(args) => sources(args.json, env),
        ContextAction::Stats(args) => stats(args.json, env),
        // Answered before the environment is read.
        ContextAction::Help(_) => Ok(Exit::Done),
    }
}

fn sync(args: &ContextSyncArgs, env: &Env) -> Result<Exit, Failure> {
    let ambient = ambient::claim();
    let config = Config::load(env)?;
    let now = SystemTime::now();
    let sources = context_index::sources(&ambient, &config, now)?;
    let index = index(&config, env, Access::ReadWrite)?;
    for source in sources {
        let name = source.name().to_owned();
        let mut progress = |progress: SyncProgress| {
            show_progress(&name, progress, args.json);
            ControlFlow::Continue(())
        };
        let synced = index.sync(&*source, now, args.dry_run, &mut progress);
        end_progress(args.json);
        let report = synced.map_err(failure)?;
        match args.json {
            true => out::json(&json!({ "report": report })),
            false => out::wrapped(&told(&report, args.dry_run)),
        }
        if let Some(why) = report.rebuilt.filter(|_| !args.json) {
            out::wrapped(&format!("! the index was built again: {why}"));
        }
    }
    if !args.dry_run {
        embed(&index, &config, env, args.json)?;
    }
    Ok(Exit::Done)
}

/// Adds vectors to what was synced. Without something that makes them, documents are found by their words, and one line says
/// so.
fn embed(index: &ContextIndex, config: &Config, env: &Env, json: bool) -> Result<(), Failure> {
    let embedder = context_index::embedder(&ambient::claim(), config, env);
    let why = match &embedder {
        Ok(Some(_)) => None,
        Ok(None) => Some("no [embeddings] are configured"),
        Err(failure) => Some(failure.message.as_str()),
    };
    if let Some(why) = why {
        match json {
            true if matches!(embedder, Ok(None)) => {}
            true => out::json(&json!({ "embeddings": null, "why": why })),
            false => out::wrapped(&format!("documents are found by their words only: {why}")),
        }
    }
    let Ok(Some(embedder)) = embedder else {
        return Ok(());
    };
    let mut progress = |texts: u64| {
        if !json && Look::of_stderr().is_some() {
            let text = format!("\r\x1b[K{} embedded", count(texts, "text"));
            // A standard error that is gone cannot be told so.
            drop(std::io::stderr().write_all(text.as_bytes()));
        }
        ControlFlow::Continue(())
    };
    let embedded = index.embed(&*embedder, &mut progress);
    end_progress(json);
    let vectors = embedded.map_err(failure)?;
    match json {
        true => out::json(&json!({ "embeddings": vectors })),
        false => {
            let missing = match vectors.missing {
                0 => String::new(),
                many => format!(", {many} passages over the limit without one"),
            };
            out::wrapped(&format!(
                "{} of {}{missing}",
                count(vectors.vectors, "vector"),
                escape_line(&vectors.model)
            ));
        }
    }
    Ok(())
}

/// A line that changes on a terminal; elsewhere, lines of JSON if they are asked for.
fn show_progress(source: &str, progress: SyncProgress, json: bool) {
    if json {
        return out::json(&json!({ "source": source, "progress": progress }));
    }
    if progress.items.is_multiple_of(DRAWN) && Look::of_stderr().is_some() {
        let items = count(progress.items, "file");
        let text = format!(
            "\r\x1b[K{}: {items}, {} changed",
            escape_line(source),
            progress.changed
        );
        // A standard error that is gone cannot be told so.
        drop(std::io::stderr().write_all(text.as_bytes()));
    }
}

fn end_progress(json: bool) {
    if !json && Look::of_stderr().is_some() {
        drop(std::io::stderr().write_all(b"\r\x1b[K"));
    }
}

fn told(report: &SyncReport, dry_run: bool) -> String {
    let SyncReport {
        source,
        added,
        changed,
        renamed,
        removed,
        unchanged,
        skipped,
        ..
    } = report;
    let would = if dry_run { ", nothing was kept" } else { "" };
    let skipped: Vec<String> = skipped
        .iter()
        .map(|(why, items)| format!("{items} {}", why.replace('_', " ")))
        .collect();
    let skipped = match skipped.is_empty() {
        true => String::new(),
        false => format!("; not indexed: {}", skipped.join(", ")),
    };
    format!(
        "{source}: {added} added, {changed} changed, {renamed} renamed, {removed} removed, {unchanged} unchanged{skipped}{would}"
    )
}

fn search(args: &ContextSearchArgs, env: &Env) -> Result<Exit, Failure> {
    let config = Config::load(env)?;
    let reader = index(&config, env, Access::Read)?.read().map_err(failure)?;
    let text = args.query.join(" ");
    let mode = args.mode.map(SearchMode::from);
    let vector = match mode {
        Some(SearchMode::Keyword) => None,
        // What is asked for fails where it cannot be had; what is usual does not.
        Some(_) => Some(vector(&config, env, &text)?),
        None => match reader.vectors().map_err(failure)? {
            Some(known) => vector(&config, env, &text)
                .ok()
                .filter(|vector| vector.model() == known.model),
            None => None,
        },
    };
    let usual = match vector {
        Some(_) => SearchMode::Hybrid,
        None => SearchMode::Keyword,
    };
    let query = SearchQuery {
        text,
        source: args.source.clone(),
        path: args.path.clone(),
        limit: args.limit,
        mode: mode.unwrap_or(usual),
        vector,
    };
    let hits = reader.search(&query).map_err(failure)?;
    if args.json {
        out::json(&json!({ "hits": hits }));
        return Ok(Exit::Done);
    }
    for (number, hit) in (1..).zip(&hits) {
        let heading = match hit.heading.as_str() {
            "" => String::new(),
            heading => format!(", {heading}"),
        };
        out::line(&format!("{number}. {}{heading}", hit.source_id));
        let line = first_line(hit.best_line().trim(), MAX_SHOWN);
        out::line(&format!("   {line}"));
        out::line(&format!("   {}", hit.chunk));
        if args.explain {
            let why = &hit.explain;
            let keyword = why.keyword.map(|part| part_text("BM25", part));
            let semantic = why.semantic.map(|part| part_text("cosine", part));
            let parts: Vec<String> = keyword.into_iter().chain(semantic).collect();
            out::line(&format!(
                "   score {:.3}: candidate {}, {}; terms: {}; digest {}",
                hit.score,
                why.rank,
                parts.join(" and "),
                why.terms.join(", "),
                hit.chunk_digest
            ));
        }
    }
    if hits.is_empty() {
        out::line("nothing found");
    }
    Ok(Exit::Done)
}

/// The meaning of a query.
fn vector(config: &Config, env: &Env, query: &str) -> Result<QueryVector, Failure> {
    let embedder = context_index::embedder(&ambient::claim(), config, env)?;
    let Some(embedder) = embedder else {
        return Err(Failure::new(Exit::Config, "no [embeddings] are configured")
            .help("search with `--mode keyword`, or add [embeddings] to your configuration"));
    };
    QueryVector::of(&*embedder, query).map_err(failure)
}

/// What one side says of a passage.
fn part_text(raw: &str, part: PartScore) -> String {
    let PartScore {
        rank,
        raw: value,
        normalized,
        adds,
    } = part;
    format!("{raw} {value:.3} (place {rank}, scaled {normalized:.3}, adds {adds:.3})")
}

impl From<ContextMode> for SearchMode {
    fn from(mode: ContextMode) -> Self {
        match mode {
            ContextMode::Keyword => Self::Keyword,
            ContextMode::Semantic => Self::Semantic,
            ContextMode::Hybrid => Self::Hybrid,
            ContextMode::Ranks => Self::Ranks,
        }
    }
}

fn get(args: &ContextGetArgs, env: &Env) -> Result<Exit, Failure> {
    let (document, line) = reader(env)?.get(&args.id).map_err(failure)?;
    match args.json {
        true => out::json(&json!({ "document": document, "line": line })),
        false => out::lines(document.text.trim_end_matches('\n')),
    }
    Ok(Exit::Done)
}

fn sources(json: bool, env: &Env) -> Result<Exit, Failure> {
    let sources = reader(env)?.sources().map_err(failure)?;
    if json {
        out::json(&json!({ "sources": sources }));
        return Ok(Exit::Done);
    }
    for source in &sources {
        out::wrapped(&health(source));
    }
    Ok(Exit::Done)
}

/// A source in one line.
pub(super) fn health(source: &IndexedSource) -> String {
    let left_out: u64 = source.skipped.values().sum();
    let left_out = match left_out {
        0 => String::new(),
        some => format!(", {some} not indexed"),
    };
    let synced = match source.synced_at.and_then(|at| u64::try_from(at).ok()) {
        Some(at) => {
            let at = UNIX_EPOCH + Duration::from_secs(at);
            format!("synced {}", humantime::format_rfc3339_seconds(at))
        }
        None => "never synced".to_owned(),
    };
    let error = source
        .error
        .as_ref()
        .map(|why| format!("; the newest sync failed: {why}"));
    format!(
        "{} ({}): {}{left_out}, {synced}{}",
        source.name,
        source.kind,
        count(source.documents, "document"),
        error.unwrap_or_default()
    )
}

fn stats(json: bool, env: &Env) -> Result<Exit, Failure> {
    let sources = reader(env)?.sources().map_err(failure)?;
    let sum = |of: fn(&IndexedSource) -> u64| sources.iter().map(of).sum::<u64>();
    let documents = sum(|source| source.documents);
    let chunks = sum(|source| source.chunks);
    let bytes = sum(|source| source.bytes);
    let dir = context_index::dir(env, &Config::load(env)?)?;
    let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
    let size: u64 = entries
        .filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .sum();
    match json {
        true => out::json(&json!({
            "documents": documents, "chunks": chunks, "bytes": bytes, "index_bytes": size, "directory": env.shown(&dir),
        })),
        false => {
            out::line(&format!(
                "{}, {}, {} KiB of text",
                count(documents, "document"),
                count(chunks, "passage"),
                bytes.div_ceil(1024)
            ));
            out::line(&format!(
                "{} KiB in {}",
                size.div_ceil(1024),
                env.shown(&dir)
            ));
        }
    }
    Ok(Exit::Done)
}

fn reader(env: &Env) -> Result<ContextReader, Failure> {
    let config = Config::load(env)?;
    index(&config, env, Access::Read)?.read().map_err(failure)
}

/// The index of this project.
pub(super) fn index(config: &Config, env: &Env, access: Access) -> Result<ContextIndex, Failure> {
    let dir = context_index::dir(env, config)?;
    let place = context_index::place(&ambient::claim(), &dir, config.secret_names()?, access)?;
    Ok(ContextIndex::below(place))
}

/// An error of the index with its exit code and the next step.
pub(super) fn failure(error: knowledge::Error) -> Failure {
    let (exit, help) = match error.kind() {
        ErrorKind::FixInput => (Exit::Usage, None),
        ErrorKind::Missing => (Exit::Unavailable, Some("`yoi context sync` creates it")),
        ErrorKind::Damaged => (Exit::Data, Some("`yoi context sync` builds it again")),
        ErrorKind::Busy => (Exit::Busy, Some("wait for the other sync to end")),
        ErrorKind::Exhausted | ErrorKind::Denied | ErrorKind::Unavailable => {
            (Exit::Unavailable, None)
        }
        ErrorKind::Cancelled => (Exit::Failed, None),
    };
    let failure = Failure::new(exit, error.to_string());
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}
