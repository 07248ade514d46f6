//! Manifests that are read, and what is wrong with others.

use super::*;
use pod::feature::{TouchKind, TouchRule};

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
    Manifest::read(text, &Version::new(0, 2, 0), &BTreeMap::new())
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
    assert_eq!((maps.descriptor.version.as_str(), maps.descriptor.runtime), ("1.2.3", FeatureRuntimeKind::Declarative));
    let tool = &maps.descriptor.declared_tools[0];
    assert!(tool.foreign);
    assert_eq!(tool.touches, [TouchRule::fixed(TouchKind::Host, "maps.example.org")]);
    assert_eq!(&*tool.schema, r#"{"properties":{"place":{"type":"string"}},"required":["place"],"type":"object"}"#);
    let asked: Vec<String> =
        maps.descriptor.requested_capabilities.iter().map(|asked| asked.capability.to_string()).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked.iter().any(|asked| asked.contains("python3")), "{asked:?}");
    assert_eq!(read.features["hello"].as_ref().unwrap().descriptor.display_name, "Hello");
}

#[test]
fn a_bad_feature_costs_itself_alone() {
    let without = |part: &str, with: &str| GOOD.replacen(part, with, 1);
    for (text, says) in [
        (without("about = \"Find a place.\"\n", ""), "about"),
        (without("effect = \"read_only\"", "effect = \"none\""), "none"),
        (without("[features.maps.run.acme_find]", "[features.maps.run.other]"), "has no program"),
        (without("--place={place}", "{place}"), "take for an option"),
        (without("--place={place}", "--place={plaice}"), "plaice"),
        (without("[features.maps]\n", "[features.maps]\nid = \"builtin:files\"\n"), "`id` is set by yoi"),
        (without("[features.maps]\n", "[features.maps]\nsettings = \"{}\"\n"), "no settings"),
        (without("[features.maps]\n", "[features.maps]\nwhat = 1\n"), "what"),
        (without("type = \"string\"", "type = \"nothing\""), "not a JSON Schema"),
        (without("name = \"acme_find\"", "name = \"acme find\""), "has no program"),
        (without("[features.maps]\n", "[features.maps]\ndisplay_name = \"a\\u001bb\"\n"), "display_name"),
    ] {
        let read = manifest(&text).unwrap();
        let why = read.features["maps"].as_ref().unwrap_err();
        assert!(why.contains(says), "{says}: {why}");
        assert!(!why.contains('\u{1b}'), "{why}");
        assert!(read.features["hello"].is_ok());
    }
    let hooks = "[features.maps]\n[[features.maps.hooks]]\nname = \"h\"\npoint = \"PreToolCall\"\nclass = \"gate\"\ndeadline_ms = 1\ntools = []\n[features.maps.x]";
    assert!(feature("maps", &without("[features.maps]", hooks)).is_err());
}

#[test]
fn a_bad_package_has_no_features() {
    let without = |part: &str, with: &str| GOOD.replacen(part, with, 1);
    for (text, says) in [
        (without("[package]", "[pack]"), "[package] is missing"),
        (without("name = \"acme\"", "name = \"Acme\""), "[a-z0-9-]"),
        (without("name = \"acme\"", "name = \"../up\""), "[a-z0-9-]"),
        (without("name = \"acme\"", "name = \"strict\""), "no package has this name"),
        (without("version = \"1.2.3\"", "version = \"1\""), "version"),
        (without("A <a@example.org>", "A\\u001b[2J"), "control characters"),
        (without("license", "licence"), "licence"),
        ("[package]\nname = \"a\"\nversion = \"1.0.0\"\n".to_owned(), "[features.NAME] is missing"),
        (format!("{GOOD}\n[more]\n"), "`more` is not known"),
        ("[package".to_owned(), "not valid"),
    ] {
        let why = manifest(&text).unwrap_err().to_string();
        assert!(why.contains(says), "{says}: {why}");
    }
    assert_eq!(manifest(&"#".repeat(MAX_MANIFEST + 1)).unwrap_err(), BadManifest::TooLong(MAX_MANIFEST + 1));
    let why = Manifest::read(GOOD, &Version::new(1, 0, 0), &BTreeMap::new()).unwrap_err().to_string();
    assert_eq!(why, "the package needs yoi >=0.2, <1; this is 1.0.0");
}

#[test]
fn a_person_gives_tools_other_names() {
    let rename = BTreeMap::from([("acme_find".to_owned(), "find_place".to_owned())]);
    let other = Renames::from([("other".to_owned(), rename.clone())]);
    let read = Manifest::read(GOOD, &Version::new(0, 2, 0), &other).unwrap();
    assert!(read.features["maps"].as_ref().unwrap().programs.contains_key("acme_find"));
    let rename = Renames::from([("acme".to_owned(), rename)]);
    let read = Manifest::read(GOOD, &Version::new(0, 2, 0), &rename).unwrap();
    let maps = read.features["maps"].as_ref().unwrap();
    assert_eq!(maps.descriptor.declared_tools[0].name, "find_place");
    assert!(maps.programs.contains_key("find_place"));
}
