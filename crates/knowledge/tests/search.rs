//! What people type is found: names, paths and options of code, accents, scripts of several kinds; and nothing of it is syntax.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests: a directory that fails is a failed test"
)]

mod support;

use knowledge::{
    Embedder, Error, ErrorKind, MAX_QUERY, MAX_RESULTS, QueryVector, SearchMode, SearchQuery,
};
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use support::{Listing, Project, item, sync};

fn query(text: &str) -> SearchQuery {
    SearchQuery {
        text: text.to_owned(),
        limit: 12,
        ..SearchQuery::default()
    }
}

/// An index of these texts, each under its number.
fn texts(texts: &[&str]) -> Project {
    let project = Project::new();
    sync(
        &project.index(),
        &Listing(|sink: &mut dyn knowledge::ItemSink| {
            let mut all = texts.iter().enumerate();
            all.try_for_each(|(number, text)| sink.put(item(&number.to_string(), text)))
        }),
    );
    project
}

#[test]
fn each_is_found_first_as_people_type_it() {
    let documents = [
        "call fooBar(1) to begin",
        "the value of foo_bar is read once",
        "written in C++ and nothing else",
        "the class HTTPServer listens",
        "set --max-wall to a number",
        "see crates/host/src/limits.rs for it",
        "un café à la crème brûlée",
        "हिन्दी में ज्ञान की खोज",
        "هٰذَا كِتَابٌ جَدِيدٌ",
        "שָׁלוֹם עֲלֵיכֶם",
        "我们需要一个知识索引来搜索文档",
        "日本語の検索エンジンを作る",
        "서울에서 만나요",
        "Straße und Fußgänger",
        "written in C and nothing besides",
        "error E0308: mismatched types",
        "ประเทศไทยมีอาหารอร่อย",
        // What a query would find if names were cut at what joins them.
        "C C c; foo bar foo bar; a wall, its max; crates of a host",
        "हिन दी और हिन दी",
    ];
    let project = texts(&documents);
    let mut wrong = Vec::new();
    for (typed, wanted) in [
        ("fooBar", 0),
        ("foobar(", 0),
        ("foo_bar", 1),
        ("foo bar value", 1),
        ("C++", 2),
        ("c++", 2),
        ("HTTPServer", 3),
        ("http server", 3),
        ("httpserver", 3),
        ("--max-wall", 4),
        ("max wall", 4),
        ("maxWall", 4),
        ("crates/host/src/limits.rs", 5),
        ("limits.rs", 5),
        ("src/limits", 5),
        ("cafe creme brulee", 6),
        ("CAFÉ", 6),
        ("cafe\u{301}", 6),
        ("ज्ञान", 7),
        ("हिन्दी", 7),
        ("كتاب", 8),
        ("كِتَاب جديد", 8),
        ("שלום", 9),
        ("עליכם", 9),
        ("知识索引", 10),
        ("搜索", 10),
        ("識", usize::MAX),
        ("检", usize::MAX),
        ("检索", usize::MAX),
        ("検索", 11),
        ("エンジン", 11),
        ("ｴﾝｼﾞﾝ", 11),
        ("서울", 12),
        ("strasse", 13),
        ("STRASSE fussgänger", 13),
        ("E0308", 15),
        ("อาหาร", 16),
    ] {
        let first = project.found(typed).first().cloned();
        let wanted = (wanted != usize::MAX).then(|| wanted.to_string());
        if first != wanted {
            wrong.push((typed, wanted, first));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_query_is_never_syntax() {
    let project = texts(&[
        "and or not near words",
        "column words of parts",
        "plain text",
    ]);
    let reader = project.reader();
    for odd in [
        "\"",
        "'",
        "words:",
        "words : x",
        "AND",
        "NOT plain",
        "OR OR OR",
        "NEAR(plain text, 3)",
        "pla*",
        "^plain",
        "{words parts}: x",
        "-plain",
        "plain + text",
        "(plain",
        "plain)",
        "a\"b",
        "%",
        "?1",
        ";DROP TABLE terms",
        "\u{0}plain",
        "\u{e02b}",
        "terms:plain",
    ] {
        match reader.search(&query(odd)) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::FixInput, "{odd}: {error}"),
        }
    }
    assert_eq!(project.found("NEAR(plain text, 3)")[0], "2");
    assert_eq!(project.found("NOT plain"), ["2"]);
    assert_eq!(project.found("column:"), ["1"]);
    let mut long = query(&"word ".repeat(MAX_QUERY / 5 + 1));
    assert_eq!(
        reader.search(&long).unwrap_err().kind(),
        ErrorKind::FixInput
    );
    long = query(&"word ".repeat(MAX_QUERY / 5));
    reader.search(&long).unwrap();
    for limit in [0, MAX_RESULTS + 1] {
        let wrong = SearchQuery {
            limit,
            ..query("plain")
        };
        assert_eq!(
            reader.search(&wrong).unwrap_err().kind(),
            ErrorKind::FixInput
        );
    }
}

#[test]
fn an_explanation_adds_up_to_the_score() {
    let long = format!("rare words here\n\n{}", "filler of a page\n\n".repeat(500));
    let project = texts(&[
        "rare rare rare",
        "one rare among many other words",
        &long,
        "nothing",
    ]);
    let hits = project.reader().search(&query("rare words")).unwrap();
    let documents: Vec<&str> = hits.iter().map(|hit| hit.source_id.as_str()).collect();
    assert_eq!(documents.len(), 3, "{documents:?}");
    let best = hits.first().unwrap().explain.bm25;
    let worst = hits.last().unwrap().explain.bm25;
    assert!(best > worst && hits[0].score == 1.0 && hits[2].score == 0.0);
    for (place, hit) in hits.iter().enumerate() {
        let explain = &hit.explain;
        assert_eq!(explain.rank, place + 1);
        let wanted = (explain.bm25 - worst) / (best - worst);
        assert!((hit.score - wanted).abs() < 1e-12 && hit.score == explain.normalized);
        let has = |term: &str| explain.terms.iter().any(|known| known == term);
        assert!(
            has("rare") && has("words") == hit.text.contains("words"),
            "{hit:?}"
        );
        assert_eq!(
            hit.chunk_digest,
            &blake3::hash(hit.text.as_bytes()).to_hex()[..32]
        );
    }
}

#[test]
fn filters_apply_before_the_cut() {
    let project = Project::new();
    for n in 0..120 {
        project.write(&format!("src/{n}.txt"), "needle needle needle");
    }
    project.write("docs/one.md", "a needle in a long page of other words");
    project.write("docs_more/two.md", "a needle in a long page of other words");
    project.sync();
    let search = |path: Option<&str>, source: Option<&str>| {
        let query = SearchQuery {
            path: path.map(str::to_owned),
            source: source.map(str::to_owned),
            ..query("needle")
        };
        let hits = project.reader().search(&query).unwrap();
        hits.into_iter()
            .map(|hit| hit.source_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(search(None, None).len(), 12);
    assert_eq!(search(Some("docs/"), None), ["docs/one.md"]);
    assert_eq!(search(Some("docs"), Some("files")).len(), 2);
    assert_eq!(search(Some("%"), None), [""; 0]);
    assert_eq!(search(None, Some("other")), [""; 0]);
}

#[test]
fn a_document_is_one_hit_and_equal_hits_have_an_order() {
    let page = "the same needle\n\n".repeat(400);
    let project = texts(&[&page, "a needle", "a needle"]);
    let first = project.found("needle");
    assert_eq!(first.len(), 3, "{first:?}");
    for _ in 0..3 {
        assert_eq!(project.found("needle"), first);
    }
}

#[test]
fn a_search_ends_when_it_is_told_to() {
    let page = "many words of a page\n\n".repeat(600);
    let project = texts(&[page.as_str(); 20]);
    let reader = project.reader().until(|| true).unwrap();
    let ended = reader.search(&query("words")).unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::Cancelled, "{ended}");
    let reader = project.reader().until(|| false).unwrap();
    assert_eq!(reader.search(&query("words")).unwrap().len(), 12);
}

/// The line that was shown of a passage was its heading, where a heading had as many of the terms as the sentence below it.
#[test]
fn the_line_of_a_passage_is_the_hit_and_not_its_heading() {
    let project = Project::new();
    project.write(
        "lamp.md",
        "# Lamps\n\nAbout something else.\n\n## Cleaning lamps\n\nOne wipes\nthe Lamp-glass while cleaning.\nCleaning of a lamp ends.\n",
    );
    project.write("plain.txt", "# lamps of a script\n\nnothing else\n");
    project.sync();
    let reader = project.reader();
    let line = |text: &str, at: usize| {
        let hit = reader.search(&query(text)).unwrap().remove(at);
        hit.best_line().to_owned()
    };
    assert_eq!(
        line("clean lamps", 0),
        "the Lamp-glass while cleaning.",
        "also by its other forms"
    );
    assert_eq!(line("else", 0), "nothing else");
    assert_eq!(
        line("script", 0),
        "# lamps of a script",
        "no heading where none are"
    );
}

#[test]
fn a_passage_leads_to_its_line() {
    let text: String = (1..=400).map(|n| format!("line {n} is here\n")).collect();
    let project = texts(&[&text]);
    let reader = project.reader();
    let hit = reader.search(&query("line 390")).unwrap().remove(0);
    let (document, line) = reader.get(&hit.chunk).unwrap();
    assert_eq!(document.text, text);
    let begin = document.text.lines().nth(line - 1).unwrap();
    assert!(hit.text.starts_with(begin), "{begin} {}", hit.text);
    assert!(line > 200);
    for odd in [
        "",
        "x",
        "#",
        "#1",
        &format!("{}#999", document.id),
        &format!("{}#x", document.id),
    ] {
        assert_eq!(
            reader.get(odd).unwrap_err().kind(),
            ErrorKind::FixInput,
            "{odd}"
        );
    }
}

/// Vectors of two values: how much a text is about ships, and how much about trees. Counts the texts that it is given.
struct Topics {
    name: &'static str,
    asked: RefCell<Vec<String>>,
    fails_after: Cell<usize>,
}

impl Topics {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            asked: RefCell::default(),
            fails_after: Cell::new(usize::MAX),
        }
    }
}

impl Embedder for Topics {
    fn name(&self) -> &str {
        self.name
    }

    fn batch(&self) -> usize {
        2
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let mut asked = self.asked.borrow_mut();
        if asked.len() >= self.fails_after.get() {
            return Err(Error::new(ErrorKind::Unavailable, "it is gone"));
        }
        asked.extend(texts.iter().map(|text| (*text).to_owned()));
        let about = |text: &str, words: [&str; 3]| {
            let found = words.map(|word| text.matches(word).count());
            found.iter().sum::<usize>() as f32
        };
        let vector = |text: &&str| {
            vec![
                about(text, ["ship", "boat", "sea"]),
                about(text, ["tree", "leaf", "wood"]),
            ]
        };
        Ok(texts.iter().map(vector).collect())
    }
}

fn embed(project: &Project, topics: &Topics) -> Result<knowledge::IndexedVectors, Error> {
    let on = &mut |_| ControlFlow::Continue(());
    project.index().embed(topics, on)
}

#[test]
fn a_text_is_embedded_once() {
    let texts = ["a ship", "a tree", "a ship", "the boat", "no topic"];
    let project = self::texts(&texts);
    assert_eq!(project.reader().vectors().unwrap(), None);
    let topics = Topics::new("topics");
    // What was done before a failure is kept.
    topics.fails_after.set(2);
    assert_eq!(
        embed(&project, &topics).unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    topics.fails_after.set(usize::MAX);
    let vectors = embed(&project, &topics).unwrap();
    assert_eq!((vectors.vectors, vectors.missing), (4, 0));
    embed(&project, &topics).unwrap();
    let mut asked = topics.asked.take();
    asked.sort();
    assert_eq!(asked, ["a ship", "a tree", "no topic", "the boat"]);
    // A change, and a text that is gone.
    sync(
        &project.index(),
        &Listing(|sink: &mut dyn knowledge::ItemSink| {
            sink.put(item("0", "a ship"))?;
            sink.put(item("7", "a leaf"))
        }),
    );
    let vectors = embed(&project, &topics).unwrap();
    assert_eq!((vectors.vectors, vectors.missing), (2, 0));
    assert_eq!(topics.asked.take(), ["a leaf"]);
    let ended = project
        .index()
        .embed(&Topics::new("other"), &mut |_| ControlFlow::Break(()));
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    let vectors = project.reader().vectors().unwrap().unwrap();
    assert_eq!((vectors.model.as_str(), vectors.vectors), ("other", 2));
    project.index().check().unwrap();
}

#[test]
fn meaning_finds_what_words_do_not_and_each_part_is_explained() {
    let project = Project::new();
    let topics = Topics::new("topics");
    project.write("a.txt", "harbour of a boat");
    project.write("b.txt", "the ship and the harbour under a tree");
    project.write("c.txt", "a leaf of a tree in the wood");
    project.write("d/d.txt", "sea sea sea");
    project.write("e.txt", "harbour without a topic");
    project.sync();
    embed(&project, &topics).unwrap();
    let text = "ship harbour";
    let vector = QueryVector::of(&topics, text).unwrap();
    let ask = |mode, path: Option<&str>| SearchQuery {
        mode,
        path: path.map(str::to_owned),
        vector: Some(vector.clone()),
        ..query(text)
    };
    let search = |mode, path| project.reader().search(&ask(mode, path)).unwrap();
    let names = |hits: &[knowledge::SearchHit]| -> Vec<String> {
        let mut names: Vec<String> = hits.iter().map(|hit| hit.source_id.clone()).collect();
        names[1..].sort();
        names
    };
    let semantic = search(SearchMode::Semantic, None);
    let mut found: Vec<&str> = semantic.iter().map(|hit| hit.source_id.as_str()).collect();
    found[..2].sort_unstable();
    assert_eq!(found, ["a.txt", "d/d.txt", "b.txt"], "the tree is no ship");
    let cosine = semantic[2].explain.semantic.unwrap().raw;
    assert!((cosine - 0.5f64.sqrt()).abs() < 1e-6, "{cosine}");
    let keyword = search(SearchMode::Keyword, None);
    assert_eq!(names(&keyword), ["b.txt", "a.txt", "e.txt"]);
    assert!(keyword.iter().all(|hit| hit.explain.semantic.is_none()));
    for mode in [SearchMode::Hybrid, SearchMode::Ranks] {
        let hits = search(mode, None);
        assert_eq!(hits.len(), 4);
        assert!(hits.is_sorted_by(|a, b| a.score >= b.score), "{hits:?}");
        for hit in &hits {
            let explain = &hit.explain;
            let parts = [explain.keyword, explain.semantic];
            let sum: f64 = parts.iter().flatten().map(|part| part.adds).sum();
            assert!((hit.score - sum).abs() < 1e-12, "{hit:?}");
            assert_eq!(explain.bm25, explain.keyword.map_or(0.0, |part| part.raw));
            let weights = [0.4, 0.6];
            for (part, weight) in parts.iter().zip(weights) {
                let Some(part) = part else { continue };
                let wanted = match mode {
                    SearchMode::Ranks => 1.0 / (60.0 + part.rank as f64),
                    _ => weight * part.normalized,
                };
                assert!((part.adds - wanted).abs() < 1e-12, "{hit:?}");
            }
        }
        let below = search(mode, Some("d/"));
        assert_eq!(names(&below), ["d/d.txt"], "filters hold for both sides");
    }
    // Vectors of something else are not compared.
    let other = QueryVector::of(&Topics::new("other"), text).unwrap();
    let wrong = SearchQuery {
        vector: Some(other),
        ..ask(SearchMode::Hybrid, None)
    };
    let refused = project.reader().search(&wrong).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::FixInput, "{refused}");
    let none = SearchQuery {
        vector: None,
        ..ask(SearchMode::Semantic, None)
    };
    assert_eq!(
        project.reader().search(&none).unwrap_err().kind(),
        ErrorKind::FixInput
    );
}
