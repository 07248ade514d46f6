//! Manifests that are read, and what is wrong with others.

use super::*;
use pod::feature::{FeatureRuntimeKind, HostCapability, TouchKind, TouchRule};
use pod::permission::RuleDecision;

const GOOD: &str = r#"
[package]
name = "acme"
version = "1.2.3"
authors = ["A <a@example.org>"]
license = "MIT"
requires = { yoi = ">=0.2, <1" }
metadata = { labels = ["maps"] }

[features.maps]
instructions = [{ name = "use", text = "Use acme_find for places." }]

[[features.maps.tools]]
name = "acme_find"
about = "Find a place."
effect = "read_only"
schema = { type = "object", properties = { place = { type = "string" } }, required = ["place"] }
touches = [{ is = "host", fixed = "maps.example.org" }]

[features.maps.run.acme_find]
program = "python3"
args = ["{package}/find.py", "--place={place}"]
network = true

[features.hello]
display_name = "Hello"
[[features.hello.tools]]
name = "acme_hello"
about = "Say hello."
effect = "read_only"
schema = { type = "object" }
[features.hello.run.acme_hello]
program = "echo"
"#;

fn manifest(text: &str) -> Result<Manifest, BadManifest> {
    Manifest::read(text, &Version::new(0, 2, 0), &BTreeMap::new(), &["lua"])
}

fn feature(name: &str, text: &str) -> Result<DeclaredFeature, String> {
    manifest(text).unwrap().features.remove(name).unwrap()
}

#[test]
fn a_manifest_declares_features_as_any_module() {
    let read = manifest(GOOD).unwrap();
    assert_eq!(read.package.version, Version::new(1, 2, 3));
    let maps = read.features["maps"].as_ref().unwrap();
    assert_eq!(maps.descriptor.id.to_string(), "plugin:acme/maps");
    assert_eq!(
        (maps.descriptor.version.as_str(), maps.descriptor.runtime),
        ("1.2.3", FeatureRuntimeKind::Declarative)
    );
    let tool = &maps.descriptor.declared_tools[0];
    assert!(tool.foreign);
    assert_eq!(
        tool.touches,
        [TouchRule::fixed(TouchKind::Host, "maps.example.org")]
    );
    assert_eq!(
        &*tool.schema,
        r#"{"properties":{"place":{"type":"string"}},"required":["place"],"type":"object"}"#
    );
    let asked: Vec<String> = maps
        .descriptor
        .requested_capabilities
        .iter()
        .map(|asked| asked.capability.to_string())
        .collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    let process = |of: &DeclaredFeature| {
        let all = of.descriptor.requested_capabilities.iter();
        let of = all.filter_map(|asked| match &asked.capability {
            HostCapability::Process { programs, network } => Some((programs.join(" "), *network)),
            _ => None,
        });
        of.collect::<Vec<_>>()
    };
    assert_eq!(process(maps), [("python3".to_owned(), true)]);
    assert_eq!(
        process(read.features["hello"].as_ref().unwrap()),
        [("echo".to_owned(), false)]
    );
    assert_eq!(
        read.features["hello"]
            .as_ref()
            .unwrap()
            .descriptor
            .display_name,
        "Hello"
    );
}

/// A feature with fewer tools requests what these need.
#[test]
fn a_feature_keeps_what_its_tools_need() {
    let maps = feature("maps", GOOD).unwrap();
    let none = maps.keep(|program| !program.network);
    assert!(none.descriptor.declared_tools.is_empty() && none.programs.is_empty());
    assert!(none.descriptor.requested_capabilities.is_empty());
    assert_eq!(maps.keep(|program| program.network), maps);
}

#[test]
fn a_bad_feature_costs_itself_alone() {
    let without = |part: &str, with: &str| GOOD.replacen(part, with, 1);
    for (text, says) in [
        (without("about = \"Find a place.\"\n", ""), "about"),
        (
            without("effect = \"read_only\"", "effect = \"none\""),
            "none",
        ),
        (
            without("[features.maps.run.acme_find]", "[features.maps.run.other]"),
            "has no program",
        ),
        (
            without(
                "[features.maps.run.acme_find]",
                "[features.maps.run.more]\nprogram = \"x\"\n[features.maps.run.acme_find]",
            ),
            "run.more: there is no tool `more`",
        ),
        (
            GOOD.replace("acme_find", "mcp__maps__find"),
            "begin with `mcp__`",
        ),
        (without("--place={place}", "{place}"), "take for an option"),
        (without("--place={place}", "--place={plaice}"), "plaice"),
        (
            without(
                "[features.maps]\n",
                "[features.maps]\nid = \"builtin:files\"\n",
            ),
            "line 11: unknown field `id`",
        ),
        (
            without("[features.maps]\n", "[features.maps]\nsettings = \"{}\"\n"),
            "settings are of guests",
        ),
        (
            without("[features.maps]\n", "[features.maps]\nwhat = 1\n"),
            "what",
        ),
        (
            without(
                "effect = \"read_only\"",
                "for_clients = true\neffect = \"read_only\"",
            ),
            "line 16: unknown field `for_clients`",
        ),
        (
            without(
                "{ is = \"host\", fixed = \"maps.example.org\" }",
                "{ is = \"session\" }",
            ),
            "touches `session`",
        ),
        (without("--place={place}", "-{place}"), "take for an option"),
        (
            without("name = \"acme_find\"", "name = \"acme find\""),
            "has no program",
        ),
        (
            without("name = \"acme_find\"", "name = \"acme\\u001bfind\""),
            "has no program",
        ),
        (
            without(
                "[features.maps]\n",
                "[features.maps]\ndisplay_name = \"a\\u001bb\"\n",
            ),
            "display_name",
        ),
    ] {
        let read = manifest(&text).unwrap();
        let why = read.features["maps"].as_ref().unwrap_err();
        assert!(why.contains(says), "{says}: {why}");
        assert!(!why.contains('\u{1b}') && !why.contains("needs"), "{why}");
        assert!(read.features["hello"].is_ok());
    }
    let hooks = "[features.maps]\n[[features.maps.hooks]]\nname = \"h\"\npoint = \"PreToolCall\"\nclass = \"gate\"\ndeadline_ms = 1\ntools = []\n[features.maps.x]";
    assert!(feature("maps", &without("[features.maps]", hooks)).is_err());
}

#[test]
fn a_schema_is_a_table_or_text() {
    let table = "schema = { type = \"object\", properties = { place = { type = \"string\" } }, required = [\"place\"] }";
    let json = r#"{ "type": "object", "required": ["place"], "properties": { "place": { "type": "string" } } }"#;
    let with = |schema: &str| feature("maps", &GOOD.replacen(table, schema, 1));
    assert_eq!(with(&format!("schema = '{json}'")), with(table));
    assert!(
        with("schema = '{'")
            .unwrap_err()
            .contains("the schema of acme_find: EOF")
    );
}

// claude-code#45106, notion-mcp-server#341, mcpx#28: APIs of models refuse each request with such a tool, so that a pod
// with it never answered; below the top level they take all of it.
#[test]
fn what_apis_of_models_refuse_is_refused_with_its_line() {
    let table = "schema = { type = \"object\", properties = { place = { type = \"string\" } }, required = [\"place\"] }";
    let line = GOOD.lines().position(|line| line == table).unwrap() + 1;
    let with = |schema: &str| {
        feature(
            "maps",
            &GOOD.replacen(table, &format!("schema = '{schema}'"), 1),
        )
    };
    let any = r#"[{"type":"object","required":["place"]}]"#;
    let named =
        |name: &str| format!(r#"{{"type":"object","properties":{{"place":{{}},"{name}":{{}}}}}}"#);
    let mut bad: Vec<(String, &str)> = ["anyOf", "oneOf", "allOf"]
        .map(|key| {
            (
                format!(r#"{{"type":"object","properties":{{"place":{{}}}},"{key}":{any}}}"#),
                key,
            )
        })
        .to_vec();
    bad.push((
        r#"{"type":"object","properties":{"place":{}},"enum":[{}]}"#.to_owned(),
        "enum",
    ));
    bad.push((
        r#"{"type":"object","properties":{"place":{}},"not":{"required":["x"]}}"#.to_owned(),
        "not",
    ));
    let long = "x".repeat(65);
    bad.extend(
        [
            "filter[id]",
            "Account Number",
            "a/b",
            "$top",
            "名",
            "",
            &long,
        ]
        .map(|name| (named(name), "a property")),
    );
    for (schema, says) in bad {
        let why = with(&schema).unwrap_err();
        assert!(
            why.starts_with(&format!("line {line}: ")) && why.contains(says),
            "{schema}: {why}"
        );
    }
    let deep = format!(
        r#"{{"type":"object","properties":{{"place":{{"anyOf":{any},"properties":{{"a b":{{}}}}}}}}}}"#
    );
    for schema in [
        deep,
        named("a.b-c_D9"),
        named(&"x".repeat(64)),
        r#"{"type":"object","properties":{"place":{"not":{}}}}"#.into(),
    ] {
        assert!(with(&schema).is_ok(), "{schema}: {:?}", with(&schema));
    }
    let renamed = GOOD
        .replace("name = \"acme_find\"", "name = \"acme find\"")
        .replace("run.acme_find", "run.'acme find'");
    assert!(
        feature("maps", &renamed)
            .unwrap_err()
            .contains("tool name `acme find` is not")
    );
}

/// A schema is compiled later: a package that nobody granted costs little, whatever is in it.
#[test]
fn a_schema_is_not_compiled_by_reading() {
    let bad = feature(
        "maps",
        &GOOD.replacen("type = \"string\"", "type = \"nothing\"", 1),
    )
    .unwrap();
    assert!(bad.descriptor.problems()[0].contains("not a JSON Schema"));
    let pattern = "(\\\\p{L}{100}){100}";
    let huge = GOOD.replacen("type = \"string\"", &format!("pattern = \"{pattern}\""), 1);
    assert!(
        feature("maps", &huge).unwrap().descriptor.problems()[0].contains("a pattern is too large")
    );
}

#[test]
fn deep_manifests_are_refused() {
    let head = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n";
    let deep = |open: &str, close: &str, times: usize| {
        [open.repeat(times), "1".to_owned(), close.repeat(times)].concat()
    };
    for text in [
        format!("{head}[features.main]\n{}a = 1", "a.".repeat(60_000)),
        format!("{head}[features.{}a]", "a.".repeat(60_000)),
        format!("{head}features = {}", deep("[", "]", 60_000)),
        format!("{head}features = {}", deep("{a=", "}", 40_000)),
        format!("{head}metadata = {}", deep("[", "]", 60_000)),
    ] {
        assert!(
            manifest(&text)
                .unwrap_err()
                .to_string()
                .contains("not valid")
        );
    }
}

#[test]
fn a_bad_package_has_no_features() {
    let without = |part: &str, with: &str| GOOD.replacen(part, with, 1);
    for (text, says) in [
        (without("[package]", "[pack]"), "[package] is missing"),
        (without("name = \"acme\"", "name = \"Acme\""), "[a-z0-9-]"),
        (without("name = \"acme\"", "name = \"../up\""), "[a-z0-9-]"),
        (
            without("name = \"acme\"", &format!("name = \"{}\"", "a".repeat(33))),
            "1 to 32 bytes",
        ),
        (
            without("requires = { yoi", "requires = { other = 1, yoi"),
            "unknown field `other`",
        ),
        (
            without("name = \"acme\"", "name = \"strict\""),
            "no package has this name",
        ),
        (without("version = \"1.2.3\"", "version = \"1\""), "version"),
        (
            without("A <a@example.org>", "A\\u001b[2J"),
            "a control, direction",
        ),
        (without("license", "licence"), "licence"),
        (
            "features = 1\n[package]\nname = \"a\"\nversion = \"1.0.0\"\n".to_owned(),
            "`features` is not a table",
        ),
        (format!("{GOOD}\n[more]\n"), "`more` is not known"),
        (
            without(
                "authors = [",
                &format!("authors = \"{}\" #", "x".repeat(9000)),
            ),
            "line 5: invalid type",
        ),
        ("[package".to_owned(), "not valid: line 1: "),
        (
            without("license = \"MIT\"", "license = MIT"),
            "not valid: line 6: ",
        ),
    ] {
        let why = manifest(&text).unwrap_err().to_string();
        assert!(why.contains(says) && why.len() < 600, "{says}: {why}");
    }
    assert_eq!(
        manifest(&"#".repeat(MAX_MANIFEST + 1)).unwrap_err(),
        BadManifest::TooLong(MAX_MANIFEST + 1)
    );
    let why = Manifest::read(GOOD, &Version::new(1, 0, 0), &BTreeMap::new(), &["lua"])
        .unwrap_err()
        .to_string();
    assert_eq!(why, "the package needs yoi >=0.2, <1; this is 1.0.0");
}

#[test]
fn features_of_a_package_are_bounded() {
    let with = |count: usize| {
        let features: String = (0..count).map(|n| format!("[features.f{n}]\n")).collect();
        manifest(&format!(
            "[package]\nname = \"a\"\nversion = \"1.0.0\"\n{features}"
        ))
    };
    assert_eq!(with(32).unwrap().features.len(), 32);
    assert!(
        with(33)
            .unwrap_err()
            .to_string()
            .contains("over 32 features")
    );
}

/// Two tools with one name would be one program for both.
#[test]
fn tools_with_one_name_are_refused() {
    let rename = BTreeMap::from([(
        "acme".to_owned(),
        BTreeMap::from([("acme_find".to_owned(), "Acme_Hello".to_owned())]),
    )]);
    let hello = GOOD
        .replace("[features.hello]\ndisplay_name = \"Hello\"\n", "")
        .replace("features.hello", "features.maps");
    let read = |renames: &Renames| {
        Manifest::read(&hello, &Version::new(0, 2, 0), renames, &["lua"]).unwrap()
    };
    assert!(read(&Renames::new()).features["maps"].is_ok());
    let other = Renames::from([(
        "acme".to_owned(),
        BTreeMap::from([("acme_find".to_owned(), "acme_hello".to_owned())]),
    )]);
    for renames in [rename, other] {
        assert!(
            read(&renames).features["maps"]
                .as_ref()
                .unwrap_err()
                .contains("declared twice")
        );
    }
}

/// What a package says about itself is bounded.
#[test]
fn a_package_is_described_briefly() {
    let without = |part: &str, with: String| manifest(&GOOD.replacen(part, &with, 1));
    let labels = |length: usize| {
        without(
            "labels = [\"maps\"]",
            format!("labels = \"{}\"", "x".repeat(length)),
        )
    };
    assert!(labels(4096 - r#"{"labels":""}"#.len()).is_ok());
    assert!(
        labels(4097 - r#"{"labels":""}"#.len())
            .unwrap_err()
            .to_string()
            .contains("over 4096 bytes")
    );
    let authors = |count: usize| without("\"A <a@example.org>\"", vec!["\"A\""; count].join(","));
    assert!(authors(16).is_ok());
    assert!(
        authors(17)
            .unwrap_err()
            .to_string()
            .contains("at most 16 authors")
    );
    let license = |length: usize| without("\"MIT\"", format!("\"{}\"", "x".repeat(length)));
    assert!(license(256).is_ok());
    assert!(
        license(257)
            .unwrap_err()
            .to_string()
            .contains("at most 256")
    );
    let about = feature("maps", GOOD).unwrap().descriptor.about.unwrap();
    assert_eq!(
        (about.authors.join(""), about.license),
        ("A <a@example.org>".to_owned(), Some("MIT".to_owned()))
    );
    assert_eq!(about.metadata["labels"][0], "maps");
}

#[test]
fn rules_of_a_package_only_narrow() {
    let with = |rules: &str| {
        feature(
            "maps",
            &GOOD.replacen(
                "[features.maps]\n",
                &format!("[features.maps]\nrules = [{rules}]\n"),
                1,
            ),
        )
    };
    let deny =
        "{ tool = \"Bash\", program = \"git\", subcommand = [\"push\"], decision = \"deny\" }";
    let own = "{ tool = \"acme_find\", decision = \"ask\" }";
    let read = with(&format!("{deny}, {own}")).unwrap();
    assert_eq!(
        read.descriptor
            .rules
            .iter()
            .map(|rule| rule.decision)
            .collect::<Vec<_>>(),
        [RuleDecision::Deny, RuleDecision::Ask]
    );
    for (rules, says) in [
        (deny.replace("deny", "allow"), "not `allow`"),
        (
            deny.replace("tool = \"Bash\"", "tool = \"\""),
            "`tool` is empty",
        ),
        (deny.replace("program", "programs"), "programs"),
        (vec![own; 33].join(","), "at most 32"),
    ] {
        let why = with(&rules).unwrap_err();
        assert!(why.contains(says), "{says}: {why}");
    }
    let text = GOOD.replacen(
        "[features.maps]\n",
        &format!("[features.maps]\nrules = [{own}]\n"),
        1,
    );
    let rename = Renames::from([(
        "acme".to_owned(),
        BTreeMap::from([("acme_find".to_owned(), "other".to_owned())]),
    )]);
    let read = Manifest::read(&text, &Version::new(0, 2, 0), &rename, &["lua"]).unwrap();
    assert_eq!(
        read.features["maps"].as_ref().unwrap().descriptor.rules[0].tool,
        "other"
    );
    // A name for a tool that is not the package's own takes no rule away from it.
    let text = GOOD.replacen(
        "[features.maps]\n",
        &format!("[features.maps]\nrules = [{deny}]\n"),
        1,
    );
    let rename = Renames::from([(
        "acme".to_owned(),
        BTreeMap::from([("Bash".to_owned(), "other".to_owned())]),
    )]);
    let read = Manifest::read(&text, &Version::new(0, 2, 0), &rename, &["lua"]).unwrap();
    let rules = &read.features["maps"].as_ref().unwrap().descriptor.rules;
    assert_eq!(
        rules
            .iter()
            .map(|rule| rule.tool.as_str())
            .collect::<Vec<_>>(),
        ["Bash", "other"]
    );
}

#[test]
fn a_person_gives_tools_other_names() {
    let rename = BTreeMap::from([("acme_find".to_owned(), "find_place".to_owned())]);
    let other = Renames::from([("other".to_owned(), rename.clone())]);
    let read = Manifest::read(GOOD, &Version::new(0, 2, 0), &other, &["lua"]).unwrap();
    assert!(
        read.features["maps"]
            .as_ref()
            .unwrap()
            .programs
            .contains_key("acme_find")
    );
    let rename = Renames::from([("acme".to_owned(), rename)]);
    let read = Manifest::read(GOOD, &Version::new(0, 2, 0), &rename, &["lua"]).unwrap();
    let maps = read.features["maps"].as_ref().unwrap();
    assert_eq!(maps.descriptor.declared_tools[0].name, "find_place");
    assert!(maps.programs.contains_key("find_place"));
    let of_server = BTreeMap::from([("acme_find".to_owned(), "mcp__maps__find".to_owned())]);
    let rename = Renames::from([("acme".to_owned(), of_server)]);
    let read = Manifest::read(GOOD, &Version::new(0, 2, 0), &rename, &["lua"]).unwrap();
    assert!(read.features["maps"].is_err());
}

const REVIEW: &str = include_str!("../../../../../docs/plugins/review-first/plugin.toml");

#[test]
fn guests_answer_the_tools_and_hooks_of_a_feature() {
    let read = feature("main", REVIEW).unwrap();
    let of = &read.descriptor;
    assert_eq!(of.runtime, FeatureRuntimeKind::Guest);
    assert_eq!(
        (
            of.declared_hooks.len(),
            of.states.len(),
            read.programs.len()
        ),
        (1, 1, 0)
    );
    let started: Vec<String> = read.started().map(|(_, of)| of.to_string()).collect();
    assert_eq!(started, ["python3 -B {package}/guest.py"]);
    assert_eq!(of.requested_capabilities.len(), 1);
    let none = read.keep(|_| false).descriptor;
    assert!(none.declared_tools.is_empty() && none.declared_hooks.is_empty());
    assert!(none.states.is_empty() && none.requested_capabilities.is_empty());
    assert_eq!(read.keep(|_| true), read);
    let renamed = Renames::from([(
        "review-first".to_owned(),
        [("Reviewed".to_owned(), "seen".to_owned())].into(),
    )]);
    let renamed = Manifest::read(REVIEW, &"0.2.0".parse().unwrap(), &renamed, &["lua"]).unwrap();
    let renamed = renamed.features["main"].as_ref().unwrap();
    assert_eq!(renamed.own_name("seen"), "Reviewed");
    let guest = "guest = { program = \"python3\", args = [\"-B\", \"{package}/guest.py\"] }\n";
    let alert = "need = \"optional\", reason = \"to tell\"";
    for (part, with, says) in [
        (guest, "", "needs `guest = { program, args }`"),
        ("runtime = \"guest\"\n", "", "`guest` needs `runtime"),
        (
            "[features.main.tools.schema]",
            "[features.main.run.Reviewed]\nprogram = \"x\"\n[features.main.tools.schema]",
            "the guest answers all tools",
        ),
        (
            "runtime",
            &format!(
                "requests = [{{ capability = \"process\", programs = [\"*\"], {alert} }}]\nruntime"
            ),
            "given no handle for",
        ),
        (
            "runtime",
            "tasks = [{ name = \"t\", effect = \"read_only\", triggers = [{ trigger = \"request\" }] }]\nruntime",
            "a guest requests no runs",
        ),
        (
            "runtime",
            "provides = [{ service = \"bell\", version = \"1.0.0\" }]\nruntime",
            "bell",
        ),
        (
            "states = [{ name = \"branches\" }]\n",
            "",
            "touches `session`",
        ),
        ("pre_tool_call", "before_tool", "line 10: unknown variant"),
        ("guest.py", "{who}", "no property `who`"),
    ] {
        let why = feature("main", &REVIEW.replacen(part, with, 1)).unwrap_err();
        assert!(why.contains(says), "{says}: {why}");
    }
    let more = format!(
        "tasks = [{{ name = \"t\", effect = \"read_only\", triggers = [{{ trigger = \"start\" }}] }}]\n\
         provides = [{{ service = \"acme.bell.v1\", version = \"1.0.0\" }}]\n\
         requires = [{{ service = \"acme.clock.v1\", version = \"^1\" }}]\n\
         requests = [{{ capability = \"process\", programs = [\"x\"], {alert} }}]\nruntime"
    );
    let more = feature("main", &REVIEW.replacen("runtime", &more, 1)).unwrap();
    let further = more.further();
    for line in [
        "background task t",
        "provides acme.bell.v1",
        "uses acme.clock.v1",
        "to tell",
    ] {
        assert!(
            further.iter().any(|told| told.contains(line)),
            "{line}: {further:?}"
        );
    }
    let none = more.keep(|_| false).descriptor;
    assert!(none.declared_background_tasks.is_empty() && none.provides.is_empty());
    assert!(none.requires.is_empty());
    let tells = format!("requests = [{{ capability = \"emit_user_alert\", {alert} }}]\nruntime");
    let tells = feature("main", &REVIEW.replacen("runtime", &tells, 1)).unwrap();
    assert_eq!(tells.descriptor.requested_capabilities.len(), 2);
}

const SCRIPT: &str = include_str!("../../../../../docs/plugins/review-first-lua/plugin.toml");

#[test]
fn a_script_is_run_by_this_program_with_a_runtime_that_it_has() {
    let read = feature("main", SCRIPT).unwrap();
    let guest = read.guest.as_ref().unwrap();
    assert_eq!(guest.to_string(), "yoi __lua {package}/main.lua");
    assert_eq!(
        (guest.network, guest.files().next()),
        (false, Some("main.lua"))
    );
    let words = guest.words("{}", std::path::Path::new("/at")).unwrap();
    assert_eq!(words, ["__lua", "/at/main.lua"]);
    // But for the program, it is what a guest in another language is.
    let mut other = feature("main", REVIEW).unwrap().descriptor;
    other.requested_capabilities = read.descriptor.requested_capabilities.clone();
    assert_eq!(read.descriptor, other);
    for (part, with, says) in [
        (
            "\"lua\"",
            "\"rhai\"",
            "the runtime `rhai` is not known; known are program, guest, lua",
        ),
        (
            "\"lua\"",
            "\"guest\"",
            "`script` needs a runtime that reads it",
        ),
        (
            "runtime = \"lua\"\n",
            "",
            "`script` needs a runtime that reads it",
        ),
        (
            "script = \"main.lua\"\n",
            "",
            "`runtime = \"lua\"` needs `script`",
        ),
        (
            "\"main.lua\"",
            "\"../main.lua\"",
            "`script` is the path of a file in the package",
        ),
        ("\"main.lua\"", "\"/main.lua\"", "`script` is the path"),
        ("\"main.lua\"", "\"a//main.lua\"", "`script` is the path"),
        ("\"main.lua\"", "\"{branch}.lua\"", "`script` is the path"),
        ("\"main.lua\"", "\"\"", "`script` is the path"),
        (
            "script =",
            "guest = { program = \"x\" }\nscript =",
            "`guest` needs `runtime = \"guest\"`",
        ),
    ] {
        let why = feature("main", &SCRIPT.replacen(part, with, 1)).unwrap_err();
        assert!(why.contains(says), "{with}: {why}");
    }
}
