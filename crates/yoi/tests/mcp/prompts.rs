//! Prompts of servers as commands of people: pinned, typed, made by the server and kept in the journal.

use super::{add, lines, scene, yoi};
use serde_json::json;

#[test]
fn a_prompt_is_a_command_whose_text_is_in_the_journal() {
    let Some(scene) = scene() else { return };
    let model = scene.script("done.jsonl", &[json!({ "text": "done" })]);
    for era in ["modern", "legacy"] {
        let added = add(&scene, era, &format!("{era} prompts"));
        added.prints(&[
            "13 tools, 2 left out, 3 prompts, protocol ",
            "a prompt without a name is left out",
        ]);
        yoi(&scene, &["mcp", "show", era])
            .ends(0)
            .prints(&[&format!("/{era}:re_view path [why]  Review a file.")]);
        let typed = format!("/{era}:re_view 'a b.rs' why=speed");
        yoi(&scene, &["run", "--pod", era, "-m", &model, &typed]).ends(0);
        let asked = lines(&scene.file("prompted"));
        let sent = r#"["re view", {"path": "a b.rs", "why": "speed"}]"#;
        assert_eq!(asked.last().map(String::as_str), Some(sent));
        let records = scene.records(era);
        let queued = records.iter().find(|of| of["k"] == "input_queued").unwrap();
        assert_eq!(queued["text"], "Review a b.rs.");
        let command = &queued["command"];
        assert_eq!(command["name"], format!("{era}:re_view"));
        assert_eq!(command["source"], format!("the MCP server {era}"));
        assert_eq!(command["typed"], typed);
        scene.sound(era);
    }
    // No process for a command that is not typed, and none for one that cannot be sent.
    let before = lines(&scene.file("prompted")).len();
    for (typed, why) in [
        ("/modern:re_view", "/modern:re_view: it needs: path [why]"),
        ("/modern:asks x", "/modern:asks: it takes no arguments"),
        ("/modern:asks", "asks a person before it gives this text"),
        ("/modern:long", "it expands to more than 64 KiB"),
    ] {
        let run = yoi(&scene, &["run", "--pod", "q", "-m", &model, typed]);
        assert_ne!(run.code(), Some(0), "{typed}: {run:?}");
        run.says(&[why]);
    }
    assert_eq!(lines(&scene.file("prompted")).len(), before + 2);
    let unknown = yoi(&scene, &["run", "--pod", "q", "-m", &model, "/modern:none"]).ends(2);
    unknown.says(&["there is no command `/modern:none`"]);
}

#[test]
fn prompts_that_change_are_shown_by_pin() {
    let Some(scene) = scene() else { return };
    add(&scene, "fake", "modern prompts");
    yoi(&scene, &["mcp", "pin", "fake", "--dry-run"])
        .ends(0)
        .prints(&["its definitions are as they were"]);
    let text = std::fs::read_to_string(scene.file("server.py")).unwrap();
    let text = text.replace("Review a file.", "Review two files.");
    scene.write(
        "server.py",
        text.replace("{\"name\": \"long\"}", "{\"name\": \"new\"}"),
    );
    let pinned = yoi(&scene, &["mcp", "pin", "fake", "--dry-run"]).ends(0);
    pinned.prints(&["- prompt long", "~ prompt re view", "+ prompt new"]);
}
