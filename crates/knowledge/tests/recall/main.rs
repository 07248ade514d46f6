//! Questions of people about the documents and the code of this repository: at least nine of ten find a page that answers among
//! the first ten hits. `KNOWLEDGE_STATIC_MODEL=DIR` names a static model, with which they are asked by meaning, too.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: a directory that fails is a failed test"
)]

use authority::{Access, Workspace};
use knowledge::{
    ContextIndex, Filesystem, FilesystemLimits, QueryVector, SearchMode, SearchQuery, StaticModel,
};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Names the directory of a model.
const MODEL: &str = "KNOWLEDGE_STATIC_MODEL";

/// A question, and the pages that answer it.
struct Question {
    text: &'static str,
    pages: Vec<&'static str>,
}

fn questions(lines: &'static str) -> Vec<Question> {
    let parted = lines.lines().map(|line| line.split_once(" | ").unwrap());
    parted
        .map(|(text, pages)| Question {
            text,
            pages: pages.split(' ').collect(),
        })
        .collect()
}

fn open(dir: &Path, access: Access) -> Workspace {
    Workspace::open(&ambient::claim(), dir, dir, access).unwrap()
}

/// An index of directories of this repository, each a source, and how many questions have their page among the first, the
/// first three and the first ten.
fn asked(trees: &[&str], questions: &[Question]) -> [usize; 3] {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let trees: Vec<PathBuf> = trees
        .iter()
        .map(|tree| root.join(tree).canonicalize().unwrap())
        .collect();
    let cache = tempfile::tempdir().unwrap();
    let index = ContextIndex::below(open(cache.path(), Access::ReadWrite));
    let now = SystemTime::now();
    for tree in &trees {
        let files = open(tree, Access::Read);
        let name = tree.display().to_string();
        let source = Filesystem::new(&name, files, FilesystemLimits::USUAL, now);
        let on = &mut |_| ControlFlow::Continue(());
        index.sync(&source, now, false, on).unwrap();
    }
    for page in questions.iter().flat_map(|question| &question.pages) {
        assert!(trees.iter().any(|tree| tree.join(page).exists()), "{page}");
    }
    let found = places(&index, questions, None);
    if let Some(dir) = std::env::var_os(MODEL) {
        let model = StaticModel::read(&open(Path::new(&dir), Access::Read)).unwrap();
        index
            .embed(&model, &mut |_| ControlFlow::Continue(()))
            .unwrap();
        for mode in [SearchMode::Semantic, SearchMode::Hybrid, SearchMode::Ranks] {
            places(&index, questions, Some((&model, mode)));
        }
    }
    found
}

fn places(
    index: &ContextIndex,
    questions: &[Question],
    meaning: Option<(&StaticModel, SearchMode)>,
) -> [usize; 3] {
    let reader = index.read().unwrap();
    let mut found = [0; 3];
    let mut missed = Vec::new();
    for question in questions {
        let query = SearchQuery {
            text: question.text.to_owned(),
            limit: 10,
            mode: meaning.map_or(SearchMode::Keyword, |(_, mode)| mode),
            vector: meaning.map(|(model, _)| QueryVector::of(model, question.text).unwrap()),
            ..SearchQuery::default()
        };
        let hits = reader.search(&query).unwrap();
        let is_answer = |source_id: &str| question.pages.contains(&source_id);
        let place = hits.iter().position(|hit| is_answer(&hit.source_id));
        match place {
            Some(place) => (0..3)
                .filter(|at| place < [1, 3, 10][*at])
                .for_each(|at| found[at] += 1),
            None => missed.push(question.text),
        }
    }
    let mode = meaning.map_or(SearchMode::Keyword, |(_, mode)| mode);
    let [first, three, ten] = found;
    println!(
        "{mode:?}, of {}: first {first}, in three {three}, in ten {ten}; missed {missed:#?}",
        questions.len()
    );
    found
}

#[test]
fn people_find_the_page_that_answers() {
    let questions = questions(include_str!("questions.txt"));
    assert!(questions.len() >= 60);
    let [_, three, ten] = asked(&["docs"], &questions);
    assert!(ten * 10 >= questions.len() * 9, "{ten}");
    assert!(three * 10 >= questions.len() * 7, "{three}");
}

#[test]
fn people_find_the_code_that_does_it() {
    let questions = questions(include_str!("code.txt"));
    assert!(questions.len() >= 40);
    let trees = ["crates/authority/src", "crates/session-store/src"];
    let [_, three, ten] = asked(&trees, &questions);
    assert!(ten * 10 >= questions.len() * 9, "{ten}");
    assert!(three * 10 >= questions.len() * 7, "{three}");
}
