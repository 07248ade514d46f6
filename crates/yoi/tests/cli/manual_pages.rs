//! `yoi man`: a page for each command, with its options.

use crate::scene::Scene;
use std::fs;

#[test]
fn each_command_has_a_page_with_its_options() {
    let scene = Scene::new();
    scene
        .yoi(&["man", "pages"])
        .ends(0)
        .prints(&["wrote yoi.1 and a manual page for each command to "]);
    let page = |name: &str| {
        fs::read_to_string(scene.file("pages").join(name))
            .unwrap()
            .replace("\\-", "-")
    };
    let help = scene.yoi(&["--help"]).ends(0).out;
    let commands = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    // A description goes on in lines that are further to the right.
    let names: Vec<_> = commands
        .filter(|line| line.chars().position(|c| c != ' ') == Some(2))
        .collect();
    assert!(names.len() > 20, "{help}");
    for name in names
        .iter()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
    {
        assert!(
            page("yoi.1").contains(&format!("yoi-{name}(1)"))
                && page(&format!("yoi-{name}.1")).contains(".SH SYNOPSIS")
        );
    }
    assert!(page("yoi-run.1").contains("--max-steps") && page("yoi.1").contains("Exit codes"));
    // The first lines of a page named the options without their values, and hidden commands had pages.
    let synopses = [
        ("run", "[--pod <NAME>]"),
        ("run", "[-C <DIR>]"),
        ("run", "[--max-cost <USD>]"),
        ("run", "[PROMPT]"),
        ("approve", "[--deny[=<WORDS>]]"),
        ("rm", "[NAME]..."),
        ("schedule", "[-C <DIR>] <NAME> [COMMAND]"),
    ];
    for (name, words) in synopses {
        let page = page(&format!("yoi-{name}.1"));
        let synopsis = page
            .split(".SH ")
            .find(|section| section.starts_with("SYNOPSIS"))
            .unwrap();
        assert!(synopsis.contains(words), "{synopsis}");
    }
    assert!(!scene.file("pages/yoi-__host.1").exists());
    assert!(page("yoi-config-show.1").contains("where it comes from"));
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let scene = Scene::new();
    fs::write(scene.file("taken"), "").unwrap();
    scene
        .yoi(&["man", "taken"])
        .ends(2)
        .says(&["taken", "choose a directory that you can write to"]);
}
