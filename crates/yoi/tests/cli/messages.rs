//! Every text that people and scripts read, in a few files below `snapshots/`: help, errors with the command above
//! each, what the model is told, reports, and the JSON of a run. A person reviews each change of these files. To
//! rewrite them: `INSTA_UPDATE=always cargo test -p yoi --test cli messages`.

mod page;

use crate::endpoint::{Endpoint, Reply, delta, text};
use crate::hosts::{Host, until};
use crate::scene::{Scene, fifo};
use page::Page;
use serde_json::{Value, json};
use std::fs;

fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

/// People who know another program type its words.
#[test]
fn words_of_other_programs_name_what_they_are_here() {
    let scene = Scene::new();
    let table: [(&[&str], &str); 8] = [
        (&["fix the bug"], "`yoi run \"PROMPT\"`"),
        (&["-p", "fix it"], "`yoi run \"PROMPT\"`"),
        (&["exec", "fix it"], "`yoi run \"PROMPT\"`"),
        (&["run", "-p", "fix it"], "`yoi run \"PROMPT\"`"),
        (&["--continue"], "`yoi run --continue \"PROMPT\"`"),
        (&["-r"], "`yoi attach NAME`"),
        (&["statu"], "did you mean `status`?"),
        (&["send", "--continue"], "`yoi send --help`"),
    ];
    for (args, help) in table {
        scene.yoi(args).ends(2).says(&[help]);
    }
}

#[test]
fn help() {
    let mut page = Page::new();
    page.yoi(&[]).yoi(&["--help"]).yoi(&["--version"]);
    for command in [
        "run",
        "start",
        "send",
        "attach",
        "notify",
        "schedule",
        "schedule list",
        "schedule add",
        "schedule cancel",
        "status",
        "stop",
        "pause",
        "resume",
        "cancel",
        "approve",
        "ps",
        "ls",
        "log",
        "verify",
        "diff",
        "undo",
        "rm",
        "features",
        "feature",
        "feature new",
        "doctor",
        "config",
        "config show",
        "config path",
        "config check",
        "config init",
        "config schema",
        "grant",
        "revoke",
        "models",
        "agents",
        "completions",
        "man",
        "help",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        page.yoi(&[&words[..], &["--help"]].concat());
        let short = [&words[..], &["-h"]].concat();
        if page.output(&short) != page.output(&[&words[..], &["--help"]].concat()) {
            page.yoi(&short);
        }
    }
    assert_eq!(
        fs::read_dir(page.scene.path("state")).unwrap().count(),
        0,
        "help writes nothing"
    );
    page.keep("help");
}

/// In a terminal of 80 columns no line is broken twice, and `help` prints what `--help` does.
#[test]
fn help_at_80_columns() {
    let mut page = Page::new();
    for command in ["", "run", "start", "send", "config", "completions"] {
        let words: Vec<&str> = command
            .split(' ')
            .filter(|word| !word.is_empty())
            .chain(["--help"])
            .collect();
        page.var("COLUMNS", "80", &words);
        page.fits(80);
    }
    for (help, option) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "run"], &["run", "--help"]),
        (&["help", "help"], &["help", "--help"]),
        (&["help", "config", "show"], &["config", "show", "--help"]),
        (&["config", "help", "show"], &["config", "show", "--help"]),
        (&["feature", "help"], &["feature", "--help"]),
        (
            &["help", "--", "run", "--", "list files"],
            &["run", "--help"],
        ),
    ] {
        assert_eq!(page.output(help), page.output(option), "{help:?}");
    }
    page.scene
        .yoi(&["help", "rnu"])
        .ends(2)
        .says(&["`rnu` is not a command"]);
    // What no person calls was suggested: "did you mean `__host`?".
    for word in ["__hos", "host", "__host x", "hots"] {
        let args: Vec<_> = word.split(' ').collect();
        let said = page
            .scene
            .yoi(&[&["help"], args.as_slice()].concat())
            .ends(2)
            .err;
        assert!(
            !said.replace("`__host` is not", "").contains("__host"),
            "{word}: {said}"
        );
    }
    page.keep("help_at_80_columns");
}

#[test]
fn command_line() {
    let mut page = Page::new();
    let wrong = [
        "rnu",
        "log",
        "run",
        "run list files",
        "run -q list the files",
        "run --pod a list $HOME",
        "run --max-steps 0 x",
        "approve p x",
        "run --max-cost -1 x",
        "run --timeout soon x",
        "run --timeout 0 x",
        "run --sandbox maybe x",
        "run -c --pod a x",
        "run --ephemeral --pod a x",
        "run --read-only --sandbox off x",
        "run --pod ../a x",
        "run --pod -a x",
        "run --add-dir nowhere x",
        "run --add-write-dir nowhere x",
        "run -C /nonexistent x",
        "run --output-schema none.json x",
        "run --output-schema bad.json x",
        "run -c",
        "run --pod a",
        "run -c x",
        "rm ../home",
        "log nobody",
        "log nobody --from x",
        "rm nobody",
        "send nobody x",
        "send nobody list files",
        "attach nobody",
        "notify nobody x",
        "send",
        "status nobody",
        "stop nobody",
        "pause",
        "ps nobody",
        "features --diff 1",
        "features --diff x",
        "features --explain Bahs",
        "features --explain Bash --plan",
        "feature new My_Feat",
        "feature new mine",
        "feature new mine --yoi .",
        "grant 7",
        "revoke 7",
        "completions tcsh",
    ];
    page.scene.write("bad.json", "{\"type\": \"strin\"}");
    for line in wrong {
        page.yoi(&line.split(' ').collect::<Vec<_>>());
        assert!(
            page.last_code() == Some(2) || line.contains("output-schema"),
            "{line}: {:?}",
            page.last_code()
        );
    }
    page.yoi(&["run", "--allow", "Bahs git", "x"])
        .yoi(&["run", "--allow", "Bash git:*", "x"]);
    page.yoi(&["run", ""]).yoi(&["log", ""]);
    assert_eq!(page.scene.pods(), Vec::<String>::new());
    page.keep("command_line");
}

const PROVIDER: &str =
    "[providers.x]\napi = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";

#[test]
fn configuration() {
    let loops = "[features.\"builtin:loop-detect\"]\nenabled = true\n";
    let rule = |more: &str| format!("[[permissions.rules]]\n{more}\n");
    let wrong = [
        "[limits]\nmax_stepps = 3\n".to_owned(),
        "modle = \"x\"\n".into(),
        "model = \n".into(),
        "model = \"nonsense\"\n".into(),
        "[limits]\nmax_steps = \"three\"\n".into(),
        "[limits]\nmax_steps = 0\n".into(),
        "[limits]\nmax_cost_usd = -1\n".into(),
        "[limits]\ntool_concurrency = 99\n".into(),
        "[audio]\nlimit = 1\n".into(),
        "[sandbox]\nmode = \"offf\"\n".into(),
        "[providers.x]\napi = \"openai-chat\"\n".into(),
        PROVIDER.replace("openai-chat", "openai"),
        PROVIDER.replace("http://", "http://user:secret@"),
        PROVIDER.replace("http://", "ftp://"),
        format!("{PROVIDER}key = \"sk-0123456789\"\n"),
        format!("{PROVIDER}api_key = \"sk-0123456789\"\n"),
        format!("{PROVIDER}key = {{}}\n"),
        format!("{PROVIDER}key = {{ env = \"A\", file = \"b\" }}\n"),
        format!("{PROVIDER}attempts = 0\n"),
        format!("{PROVIDER}timeouts = {{ connect_s = -1 }}\n"),
        "[features.\"builtin:shel\"]\nenabled = false\n".into(),
        "[features.\"no id\"]\nenabled = true\n".into(),
        "[features.\"builtin:shell\"]\nenabeld = true\n".into(),
        format!("{loops}windw = 4\n"),
        format!("{loops}window = \"four\"\n"),
        format!("{loops}window = 1\n"),
        "[features.\"builtin:write-policy\"]\nenabled = true\n".into(),
        "[features.\"builtin:shell\"]\ngrant = { netwrk = [] }\n".into(),
        "[features.\"builtin:shell\"]\ngrant = { fs = { workspace = \"rw\" } }\n".into(),
        "[features.\"builtin:shell\"]\ngrant = { process = [\"\"] }\n".into(),
        rule("tool = \"Bsh\"\ndecision = \"deny\""),
        rule("tool = \"Write\"\npath = \"[\"\ndecision = \"deny\""),
        rule("tool = \"Bash\"\nprogram = \"git push\"\ndecision = \"deny\""),
    ];
    let mut page = Page::new();
    for text in &wrong {
        page.given(text).scene.config(text);
        page.yoi(&["config", "check"]);
        assert_eq!(page.last_code(), Some(78), "{text}");
    }
    // What is found only when a run begins.
    let at_start = [
        "[features.\"builtin:shell\"]\nenabled = false\nrequired = true\n".to_owned(),
        "[features.\"builtin:work-item\"]\nenabled = true\nrequired = true\n".into(),
    ];
    for text in &at_start {
        page.given(text).scene.config(text);
        page.yoi(&["run", "-q", "list the files"]);
    }
    page.scene.config("");
    for text in ["[limits]\nmax_stepps = 1\n", "model = \"x\"\n"] {
        page.given(&format!("yoi.toml of the project:\n{text}"))
            .scene
            .write("yoi.toml", text);
        page.yoi(&["config", "check"]);
    }
    page.given("yoi.toml of the project is not UTF-8")
        .scene
        .write("yoi.toml", b"model = \"\xff\"\n");
    page.yoi(&["config", "check"]);
    let asks = "[sandbox]\nmode = \"off\"\n[state]\nany_file_system = true\n";
    page.given(&format!("yoi.toml of the project:\n{asks}"))
        .scene
        .write("yoi.toml", asks);
    page.yoi(&["run", "--ephemeral", "list the files"])
        .yoi(&["config", "check"])
        .yoi(&["grant"]);
    page.yoi(&["grant", "sandbox"])
        .yoi(&["grant", "1"])
        .yoi(&["grant", "--all"])
        .yoi(&["revoke"]);
    page.yoi(&["revoke", "--all"]).yoi(&["revoke", "--all"]);
    page.given("inside a run")
        .var("YOI_CALL", "a/1/c00000001", &["grant", "--all"]);
    fs::remove_file(page.scene.file("yoi.toml")).unwrap();
    fs::remove_file(page.scene.path("config/yoi/config.toml")).unwrap();
    page.given("no file")
        .yoi(&["config", "init"])
        .yoi(&["config", "init"])
        .yoi(&["config", "check"]);
    for (name, value) in [
        ("YOI_MAX_STEPS", "many"),
        ("YOI_MAX_STEPS", "0"),
        ("YOI_MAX_COST", "much"),
        ("YOI_SANDBOX", "none"),
        ("YOI_MODEL", "nonsense"),
        ("YOI_MODLE", "offline"),
    ] {
        page.var(name, value, &["run", "x"]);
    }
    page.keep("configuration");
}

#[test]
fn models() {
    let mut page = Page::new();
    page.scene
        .write("bad.jsonl", "{\"text\":\"x\"}\n{\"txet\":1}\n");
    for model in [
        "nope",
        "nowhere/x",
        "openai/x",
        "anthropic/x",
        "scripted:none.jsonl",
        "scripted:bad.jsonl",
    ] {
        page.yoi(&["run", "-m", model, "x"]);
    }
    page.var("OPENAI_API_KEY", " ", &["run", "-m", "openai/x", "x"]);
    for key in [
        "{ env = \"X_KEY\" }",
        "{ file = \"~/none\" }",
        "{ command = [\"false\"] }",
        "{ command = [\"true\"] }",
        "{ command = [] }",
        "{ command = [\"./evil\"] }",
        "{ command = [\"no-such-program\"] }",
        "{ command = [\"sh\", \"-c\", \"yes\"] }",
    ] {
        page.given(&format!("key = {key}"))
            .scene
            .config(&format!("{PROVIDER}key = {key}\n"));
        page.yoi(&["run", "-m", "x/y", "hi"]);
    }
    page.given("nobody listens")
        .scene
        .config(&format!("{PROVIDER}attempts = 1\n"));
    page.yoi(&["run", "-m", "x/y", "--pod", "p", "hi"]);
    let status = |line: &'static str| {
        move || {
            Reply::Status(
                line,
                "",
                json!({ "error": { "message": "the reason that the provider gives", "type": "x" } }).to_string(),
            )
        }
    };
    type Always = Box<dyn Fn() -> Reply + Send + Sync>;
    let always: [(&str, Always); 14] = [
        (
            "the connection breaks in an answer",
            Box::new(|| Reply::Cut(vec![delta(&json!({ "content": "half" }))])),
        ),
        (
            "the connection breaks before an answer",
            Box::new(|| Reply::Cut(Vec::new())),
        ),
        ("no answer begins", Box::new(|| Reply::Hang(Vec::new()))),
        (
            "an answer stops",
            Box::new(|| Reply::Hang(vec![delta(&json!({ "content": "half" }))])),
        ),
        (
            "what comes is no JSON",
            Box::new(|| Reply::Stream("data: {no\n\n".into())),
        ),
        ("status 400", Box::new(status("400 Bad Request"))),
        ("status 401", Box::new(status("401 Unauthorized"))),
        ("status 402", Box::new(status("402 Payment Required"))),
        ("status 403", Box::new(status("403 Forbidden"))),
        ("status 404", Box::new(status("404 Not Found"))),
        ("status 413", Box::new(status("413 Content Too Large"))),
        ("status 429", Box::new(status("429 Too Many Requests"))),
        ("status 500", Box::new(status("500 Internal Server Error"))),
        ("status 503", Box::new(status("503 Service Unavailable"))),
    ];
    for (what, reply) in always {
        let endpoint = Endpoint::start(move |_, _| reply());
        let quick = "timeouts = { connect_s = 5, first_byte_s = 0.3, between_bytes_s = 0.3 }\nattempts = 2\n";
        page.given(what).scene.config(&endpoint.config(quick));
        page.var("FAKE_KEY", "sk-0123456789", &["run", "--pod", "p", "go"]);
    }
    let well = Endpoint::start(|_, _| text("well"));
    page.given("all is well").scene.config(&well.config(""));
    page.var("FAKE_KEY", "sk-0123456789", &["run", "--pod", "p", "go"]);
    page.given("no key").yoi(&["run", "--pod", "p", "go"]);
    page.keep("models");
}

#[test]
fn pods() {
    let mut page = Page::new();
    page.yoi(&["ls"]);
    let write = call("Write", json!({ "path": "sub/a.txt", "content": "x\n" }));
    let bash = call("Bash", json!({ "command": "echo x" }));
    let answers = [
        json!({ "calls": [write] }),
        json!({ "calls": [bash] }),
        json!({ "text": "done" }),
    ];
    let model = page.scene.script("s.jsonl", &answers);
    for name in ["alpha", "alpine"] {
        page.yoi(&["run", "--pod", name, "-m", &model, "go"]);
        fs::remove_dir_all(page.scene.file("sub")).unwrap();
    }
    page.yoi(&["log", "al"])
        .yoi(&["rm", "alp"])
        .yoi(&["verify", "alpha"]);
    page.scene.write("sub/a.txt", "mine\n");
    page.yoi(&["diff", "alpha"]).yoi(&["undo", "alpha"]);
    page.scene.write("sub/a.txt", "x\n");
    page.yoi(&["undo", "alpha"])
        .yoi(&["undo", "alpha"])
        .yoi(&["diff", "alpha"]);
    page.yoi(&["features", "alpha", "--diff", "4"])
        .yoi(&["features", "alpha", "--diff", "1..1"]);
    page.yoi(&["log", "alpha", "--from", "9"]);

    page.given("a pod of a run that ended at once");
    fs::create_dir_all(page.scene.pod("bare")).unwrap();
    for command in ["log", "verify", "diff", "undo", "features"] {
        page.yoi(&[command, "bare"]);
    }

    page.given("a pod in use");
    fifo(&page.scene.file("go"));
    let wait = call("Bash", json!({ "command": "read line < go" }));
    let waiting = page.scene.script(
        "wait.jsonl",
        &[json!({ "calls": [wait] }), json!({ "text": "done" })],
    );
    let run = page
        .scene
        .command(&["run", "--pod", "busy", "-m", &waiting, "go"])
        .spawn()
        .unwrap();
    // It is open once the command waits for the other end.
    let mut gate = fs::OpenOptions::new()
        .write(true)
        .open(page.scene.file("go"))
        .unwrap();
    page.yoi(&["run", "--pod", "busy", "-m", &model, "x"])
        .yoi(&["rm", "busy"])
        .yoi(&["undo", "busy"]);
    std::io::Write::write_all(&mut gate, b"\n").unwrap();
    drop(gate);
    crate::scene::finish(run).ends(0);

    page.given("a damaged pod");
    let path = page.scene.log_file("busy");
    let good = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        good.replacen("\"k\":\"response\"", "\"k\":\"respinse\"", 1),
    )
    .unwrap();
    for args in [
        &["verify", "busy"][..],
        &["log", "busy", "--from", "12"],
        &["run", "--pod", "busy", "-m", &model, "x"],
        &["undo", "busy"],
        &["diff", "busy"],
        &["features", "busy"],
        &["verify", "busy", "--salvage", "alpha"],
        &["verify", "busy", "--salvage", "copy"],
        &["verify", "copy"],
        &["run", "--pod", "copy", "-m", "offline", "list the files"],
    ] {
        page.yoi(args);
    }
    page.given("a pod that was cut off in a write");
    let path = page.scene.log_file("alpine");
    fs::write(
        &path,
        [&fs::read(&path).unwrap()[..], b"{\"c\":\"12345678\",\"n\":"].concat(),
    )
    .unwrap();
    page.yoi(&["verify", "alpine"]).yoi(&[
        "run",
        "--pod",
        "alpine",
        "-m",
        "offline",
        "list the files",
    ]);
    page.yoi(&["rm", "alpine"]).yoi(&["rm", "alpha", "--purge"]);

    page.given("a state directory that is a file");
    fs::remove_dir_all(page.scene.path("state")).unwrap();
    fs::write(page.scene.path("state"), "").unwrap();
    page.yoi(&["run", "-m", &model, "x"]).yoi(&["ls"]);
    page.keep("pods");
}

#[test]
fn endings() {
    let mut page = Page::new();
    page.scene.write("a.txt", "a\n");
    let read = json!({ "calls": [call("Read", json!({ "path": "a.txt" }))] });
    let refused = json!({ "calls": [call("Write", json!({ "path": ".env", "content": "x\n" }))] });
    let done = json!({ "text": "done" });
    let number = json!({ "text": "{\"n\": 1}" });
    page.scene.write(
        "text.json",
        "{\"type\": \"object\", \"required\": [\"text\"]}",
    );
    let table: [(&str, Vec<Value>, &[&str]); 10] = [
        ("a refused call", vec![refused, done.clone()], &[]),
        (
            "the step limit",
            vec![read.clone(), done.clone()],
            &["--max-steps", "1"],
        ),
        (
            "an answer that is cut",
            vec![json!({ "text": "half", "stop": "max_tokens" })],
            &[],
        ),
        ("an empty answer", vec![json!({ "text": " " })], &[]),
        (
            "a model that refuses",
            vec![json!({ "text": "no", "stop": "refusal" })],
            &[],
        ),
        ("a script that is over", vec![read.clone()], &[]),
        (
            "a record that is too large",
            vec![json!({ "text": "\u{1}".repeat(300 * 1024) })],
            &[],
        ),
        (
            "an answer that does not fit",
            vec![number; 9],
            &["--output-schema", "text.json"],
        ),
        ("no price", vec![done.clone()], &["--max-cost", "1"]),
        ("done", vec![read, done], &[]),
    ];
    for (what, answers, flags) in table {
        let model = page.scene.script("s.jsonl", &answers);
        page.given(what)
            .yoi(&[&["run", "-m", &model][..], flags, &["go"]].concat());
    }
    page.given("the planner does not understand")
        .yoi(&["run", "-q", "why is the sky blue?"]);
    page.given("the planner cannot do it")
        .yoi(&["run", "-q", "show none.txt"]);
    page.given("no file may grow over 50 KiB");
    let list = json!({ "calls": [call("List", json!({}))] });
    let model = page.scene.script("s.jsonl", &vec![list; 200]);
    page.limited(
        "ulimit -f 100",
        &["run", "--pod", "p", "-q", "-m", &model, "x"],
    );
    page.given("no file may be opened").limited(
        "ulimit -n 10",
        &["run", "--ephemeral", "-q", "-m", &model, "x"],
    );
    page.keep("endings");
}

#[test]
fn live_pods() {
    let mut page = Page::new();
    let model = page
        .scene
        .script("s.jsonl", &vec![json!({ "text": "done" }); 9]);
    let host = Host::start(&page.scene, &["-m", &model, "--max-steps", "3"]);
    page.yoi(&["start", "p"])
        .yoi(&["start", "p", "more"])
        .yoi(&["start", "p", "--max-steps", "9"]);
    page.yoi(&["send", "p", "hello", "--wait"]);
    let is_idle = |scene: &Scene| scene.yoi(&["status", "p", "--json"]).json()["state"] == "idle";
    until("the turn is over", || is_idle(&page.scene));
    page.yoi(&["cancel", "p"]).yoi(&["resume", "p"]);
    page.given("held")
        .yoi(&["pause", "p"])
        .yoi(&["send", "p", "count the files"])
        .yoi(&["status", "p"]);
    page.yoi(&["notify", "p", "the branch was rebased"])
        .yoi(&["rm", "p"]);
    page.yoi(&[
        "run",
        "--pod",
        "p",
        "-m",
        "offline",
        "--sandbox",
        "off",
        "x",
    ]);
    page.given("continued")
        .yoi(&["resume", "p"])
        .yoi(&["send", "p", "and then?", "--wait"]);
    until("all turns are over", || is_idle(&page.scene));
    page.yoi(&["stop", "p"]);
    until("the host has ended", || host.is_gone());
    page.given("stopped")
        .yoi(&["send", "p", "x"])
        .yoi(&["stop", "p"])
        .yoi(&["status", "p"])
        .yoi(&["attach"]);
    page.keep("live_pods");
}

/// What the model is told of calls that fail, and the person with it.
#[test]
fn refusals() {
    let mut page = Page::new();
    page.scene
        .write("a.txt", "one\ntwo\ntwo\n")
        .write("b.txt", "b\n")
        .write("bin", [0, 159, 1])
        .write(".env", "k=v\n");
    page.scene
        .config("[[permissions.rules]]\ntool = \"Bash\"\nprogram = \"rm\"\ndecision = \"deny\"\n");
    let edit = |old: &str| {
        call(
            "Edit",
            json!({ "path": "a.txt", "edits": [{ "old": old, "new": "x" }] }),
        )
    };
    let calls = [
        call("Raed", json!({})),
        call("Read", json!({})),
        call("Read", json!({ "path": "none.txt" })),
        call("Read", json!({ "path": "none/none.txt" })),
        call("Read", json!({ "path": "." })),
        call("Read", json!({ "path": "bin" })),
        call("Read", json!({ "path": "/etc/passwd" })),
        call("Read", json!({ "path": ".env" })),
        call("Read", json!({ "path": "a.txt", "offset": 99 })),
        call("Read", json!({ "path": "a.txt", "ofset": 1 })),
        call("List", json!({ "path": "none" })),
        call("List", json!({ "path": "a.txt" })),
        call("Write", json!({ "path": "b.txt", "content": "x" })),
        call("Write", json!({ "path": "/etc/x", "content": "x" })),
        call("Write", json!({ "path": ".env", "content": "x" })),
        call("Write", json!({ "path": ".git/config", "content": "x" })),
        call("Write", json!({ "path": "a.txt/b", "content": "x" })),
        call("Read", json!({ "path": "a.txt" })),
        edit("three"),
        edit("two"),
        edit(""),
        call("Grep", json!({ "pattern": "(" })),
        call("Grep", json!({ "pattern": "nothing like it" })),
        call("Glob", json!({ "pattern": "[" })),
        call("Glob", json!({ "pattern": "*.rs" })),
        call("Bash", json!({ "command": "rm a.txt" })),
        call("Bash", json!({ "command": "exit 3" })),
        call("Bash", json!({ "command": "sleep 5", "timeout_s": 1 })),
        call("Bash", json!({ "command": "" })),
        call("ReadOutput", json!({ "handle": "o-9" })),
        call("TaskGet", json!({ "id": 7 })),
        call("TaskUpdate", json!({ "id": 7, "status": "done" })),
        call("WorkItemList", json!({})),
    ];
    page.calls(&calls, &[]);
    page.given("--read-only")
        .calls(&calls[12..13], &["--read-only"]);
    page.calls(
        &[call(
            "Bash",
            json!({ "command": "{ echo x > c.txt; } 2>/dev/null" }),
        )],
        &["--read-only"],
    );
    page.given("--sandbox off").calls(
        &[call("Bash", json!({ "command": "echo one && true" }))],
        &["--sandbox", "off"],
    );
    let outside = call(
        "Write",
        json!({ "path": page.scene.path("other/x"), "content": "x" }),
    );
    fs::create_dir(page.scene.path("other")).unwrap();
    page.given("--add-dir")
        .calls(&[outside], &["--add-dir", "../other"]);
    page.keep("refusals");
}

#[test]
fn reports() {
    let mut page = Page::new();
    page.yoi(&["features"]).json(&["features", "--json"]);
    page.scene.config(
        "[features.\"builtin:files\"]\ngrant = { fs = { workspace = \"read\" } }\n\
         [features.\"builtin:shell\"]\ngrant = { process = [] }\n[features.\"builtin:work-item\"]\nenabled = true\n",
    );
    page.given("with refusals").yoi(&["features"]);
    page.yoi(&["features", "--explain", "Write"])
        .yoi(&["features", "--explain", "Bash"]);
    page.yoi(&["features", "--explain", "Grep"]);
    let model = page.scene.script(
        "s.jsonl",
        &[json!({ "text": "done" }), json!({ "text": "done" })],
    );
    page.yoi(&["run", "--pod", "p", "-m", &model, "go"])
        .yoi(&["features", "p", "--unused"]);
    page.scene.config("");
    page.yoi(&["run", "--pod", "p", "-m", &model, "go"])
        .yoi(&["features", "p", "--diff", "1"]);
    page.yoi(&["config", "path"])
        .yoi(&["config", "show"])
        .yoi(&["log", "p"]);
    page.keep("reports");
}

/// The records of a run that writes a file and is refused another.
#[test]
fn wire() {
    let mut page = Page::new();
    let write = call("Write", json!({ "path": "a.txt", "content": "x\n" }));
    let refused = call("Write", json!({ "path": ".env", "content": "x\n" }));
    let answers = [
        json!({ "calls": [write] }),
        json!({ "calls": [refused] }),
        json!({ "text": "done" }),
    ];
    let model = page.scene.script("s.jsonl", &answers);
    page.json(&["run", "--pod", "p", "--json", "-m", &model, "go"]);
    for args in [
        &["verify", "p", "--json"][..],
        &["diff", "p", "--json"],
        &["ls", "--json"],
        &["grant", "--json"],
    ] {
        page.json(args);
    }
    page.json(&["run", "--json", "-m", "nope", "go"]);
    page.keep("wire");
}
