//! Questions of people about the documents of this repository: at least nine of ten find a page that answers among the first
//! ten hits.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: a directory that fails is a failed test"
)]

use authority::{Access, Workspace};
use knowledge::{ContextIndex, Filesystem, FilesystemLimits, SearchQuery};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::SystemTime;

/// A question, and the pages that answer it.
struct Question {
    text: &'static str,
    pages: Vec<&'static str>,
}

fn questions() -> Vec<Question> {
    let lines = include_str!("questions.txt").lines();
    let parted = lines.map(|line| line.split_once(" | ").unwrap());
    parted
        .map(|(text, pages)| Question {
            text,
            pages: pages.split(' ').collect(),
        })
        .collect()
}

#[test]
fn people_find_the_page_that_answers() {
    let ambient = ambient::claim();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let docs = docs.canonicalize().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let cache = cache.path();
    let index = Workspace::open(&ambient, cache, cache, Access::ReadWrite).unwrap();
    let index = ContextIndex::below(index);
    let files = Workspace::open(&ambient, &docs, &docs, Access::Read).unwrap();
    let now = SystemTime::now();
    let source = Filesystem::new("docs", files, FilesystemLimits::USUAL, now);
    let on = &mut |_| ControlFlow::Continue(());
    index.sync(&source, now, false, on).unwrap();
    let reader = index.read().unwrap();
    let questions = questions();
    let mut places = Vec::new();
    let mut missed = Vec::new();
    for question in &questions {
        assert!(
            question.pages.iter().all(|page| docs.join(page).exists()),
            "{}",
            question.text
        );
        let query = SearchQuery {
            text: question.text.to_owned(),
            limit: 10,
            ..SearchQuery::default()
        };
        let hits = reader.search(&query).unwrap();
        let place = hits
            .iter()
            .position(|hit| question.pages.contains(&hit.source_id.as_str()));
        match place {
            Some(place) => places.push(place),
            None => missed.push(question.text),
        }
    }
    let within = |most: usize| places.iter().filter(|place| **place < most).count();
    println!(
        "of {}: first {}, in three {}, in ten {}; missed {missed:#?}",
        questions.len(),
        within(1),
        within(3),
        within(10)
    );
    assert!(questions.len() >= 60);
    assert!(within(10) * 10 >= questions.len() * 9, "{missed:#?}");
    assert!(within(3) * 10 >= questions.len() * 7, "{missed:#?}");
}
