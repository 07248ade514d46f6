//! The packages in `tests/plugins`: what is installed of each directory, what is said of the rest, and what a model can call.

use crate::plugins::called_with;
use crate::scene::{Done, Scene};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};

const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plugins");

/// A scene with a copy of one directory of packages.
struct Packages {
    scene: Scene,
    dir: PathBuf,
}

impl Packages {
    fn of(subject: &str) -> Self {
        let scene = Scene::new();
        let dir = scene.path(subject);
        copy(&Path::new(PACKAGES).join(subject), &dir);
        Self { scene, dir }
    }

    fn flag(&self) -> [&str; 2] {
        ["--plugin-dir", self.dir.to_str().unwrap()]
    }

    fn yoi(&self, args: &[&str]) -> Done {
        self.scene.yoi(&[args, &self.flag()].concat())
    }

    /// The same packages, each granted where that is possible.
    fn granted(self) -> Self {
        self.yoi(&["grant", "--all"]).ends(0);
        self
    }

    /// Features of plugins by their ids, and problems of plugins, as the next start has them.
    fn plan(&self) -> (BTreeMap<String, Value>, String) {
        let plan = self.yoi(&["features", "--json"]).ends(0).json();
        let id = |feature: &Value| feature["feature_id"].as_str().unwrap().to_owned();
        let features = plan["features"]
            .as_array()
            .unwrap()
            .iter()
            .map(|feature| (id(feature), feature.clone()));
        let features: BTreeMap<_, _> = features
            .filter(|(id, _)| id.starts_with("plugin:"))
            .collect();
        let own = features
            .values()
            .map(|feature| feature["diagnostics"].to_string());
        let problems = [plan["diagnostics"].to_string()]
            .into_iter()
            .chain(own)
            .collect();
        (features, problems)
    }

    /// What becomes of each feature of a plugin.
    fn outcomes(&self) -> Vec<(String, String)> {
        let outcome =
            |(id, feature): (String, Value)| (id, feature["outcome"].as_str().unwrap().to_owned());
        self.plan().0.into_iter().map(outcome).collect()
    }

    /// What `yoi plugin list` has, by the names of directories.
    fn listed(&self) -> BTreeMap<String, Value> {
        let list = self.yoi(&["plugin", "list", "--json"]).ends(0).json();
        assert_eq!(list["problems"], json!([]), "{list}");
        let name = |plugin: &Value| {
            let dir = Path::new(plugin["directory"].as_str().unwrap())
                .file_name()
                .unwrap();
            dir.to_str().unwrap().to_owned()
        };
        list["plugins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|plugin| (name(plugin), plugin.clone()))
            .collect()
    }

    /// Which of them are granted.
    fn grants(&self) -> Vec<(String, bool)> {
        self.listed()
            .into_iter()
            .map(|(name, plugin)| (name, plugin["granted"].is_string()))
            .collect()
    }

    fn called(&self, pod: &str, calls: &[(&str, Value)]) -> Vec<(bool, String)> {
        let results = called_with(&self.scene, &self.flag(), pod, calls);
        assert_eq!(results.len(), calls.len(), "{results:?}");
        results
    }

    /// A start that needs every plugin.
    fn strict(&self) -> Done {
        self.yoi(&["run", "--strict-plugins", "list the files"])
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

fn pairs<T: Copy, U: From<T>>(expected: &[(&str, T)]) -> Vec<(String, U)> {
    expected
        .iter()
        .map(|(name, value)| ((*name).to_owned(), U::from(*value)))
        .collect()
}

/// Asserts that a call succeeded with these words.
#[track_caller]
fn says((is_error, text): &(bool, String), words: &str) {
    assert!(!is_error && text.contains(words), "`{words}`: {text}");
}

#[test]
fn registration() {
    let packages = Packages::of("registration");
    let both = |outcome| {
        pairs::<_, String>(&[
            ("plugin:acme/calm", outcome),
            ("plugin:acme/words", outcome),
        ])
    };
    assert_eq!(packages.outcomes(), both("disabled"));
    assert_eq!(packages.grants(), pairs::<_, bool>(&[("acme", false)]));
    let push = || ("Bash", json!({ "command": "git push" }));
    let before = packages.called("before", &[("acme_line", json!({ "number": 2 })), push()]);
    assert!(before[0].0 && !before[0].1.contains("green"), "{before:?}");
    let rule = "plugin:acme/calm";
    assert!(!before[1].1.contains(rule), "{before:?}");

    let packages = packages.granted();
    assert_eq!(packages.outcomes(), both("installed"));
    let (features, problems) = packages.plan();
    assert!(!problems.contains("acme"), "{problems}");
    let contributed = |id: &str| {
        let tools = features[id]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].clone());
        (
            features[id]["instructions"].clone(),
            tools.collect::<Value>(),
        )
    };
    assert_eq!(
        contributed("plugin:acme/calm"),
        (json!(["calm"]), json!([]))
    );
    assert_eq!(
        contributed("plugin:acme/words"),
        (json!(["words"]), json!(["acme_count", "acme_line"]))
    );
    assert_eq!(features["plugin:acme/words"]["version"], "1.2.3");
    let listed = &packages.listed()["acme"];
    assert_eq!(
        (&listed["state"], &listed["problems"]),
        (&json!("granted"), &json!([])),
        "{listed}"
    );
    assert_eq!(
        listed["features"][1]["tools"][0]["program"], "sh {package}/count.sh",
        "{listed}"
    );

    let calls = [
        ("acme_count", json!({ "text": "one two  three" })),
        ("acme_line", json!({ "number": 2 })),
        ("acme_line", json!({ "number": 4 })),
        push(),
    ];
    let results = packages.called("after", &calls);
    says(&results[0], "3 words");
    says(&results[1], "green");
    assert!(
        results[2].0 && results[2].1.contains("number"),
        "the schema refuses it: {results:?}"
    );
    assert!(results[3].0 && results[3].1.contains(rule), "{results:?}");
    let surface = packages
        .scene
        .records("after")
        .into_iter()
        .find(|record| record["k"] == "surface")
        .unwrap();
    let system = surface["surface"]["system"].as_str().unwrap();
    for words in ["Count words with acme_count", "Leave pushes to the person"] {
        assert!(system.contains(words), "{system}");
    }
    packages.strict().ends(0);
}

/// The first of two counts; a tool that comes with yoi always does.
#[test]
fn collision() {
    let packages = Packages::of("collision").granted();
    let expected = [
        ("plugin:built-in/main", "skipped"),
        ("plugin:same/main", "installed"),
        ("plugin:tool-a/main", "installed"),
        ("plugin:tool-b/main", "skipped"),
    ];
    assert_eq!(packages.outcomes(), pairs::<_, String>(&expected));
    let granted = [
        ("built-in", true),
        ("name-a", true),
        ("name-b", false),
        ("tool-a", true),
        ("tool-b", true),
    ];
    assert_eq!(packages.grants(), pairs::<_, bool>(&granted));
    let unusable = packages.listed()["name-b"]["state"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        unusable.contains("another plugin is called same, too"),
        "{unusable}"
    );
    let (_, problems) = packages.plan();
    let reasons = [
        "another plugin is called same, too",
        "tool `Read` of plugin:built-in/main has the same name as a tool of builtin:files",
        "tool `shared_say` of plugin:tool-b/main has the same name as a tool of plugin:tool-a/main",
    ];
    for reason in reasons {
        assert!(problems.contains(reason), "{reason}: {problems}");
    }
    packages.strict().ends(78).says(&reasons);

    packages.scene.write("a.txt", "of the project\n");
    let none = || json!({});
    let calls = [
        ("Read", json!({ "path": "a.txt" })),
        ("a_say", none()),
        ("b_say", none()),
        ("shared_say", none()),
    ];
    let results = packages.called("p", &calls);
    says(&results[0], "of the project");
    says(&results[1], "from name-a");
    assert!(
        results[2].0 && !results[2].1.contains("from name-b"),
        "{results:?}"
    );
    says(&results[3], "from tool-a");
    fs::remove_dir_all(packages.dir.join("tool-a")).unwrap();
    says(
        &packages.called("q", &[("shared_say", none())])[0],
        "from tool-b",
    );
}

#[test]
fn isolation() {
    let packages = Packages::of("isolation").granted();
    let installed = [
        ("plugin:good/main", "installed"),
        ("plugin:mixed/main", "installed"),
    ];
    assert_eq!(packages.outcomes(), pairs::<_, String>(&installed));
    assert_eq!(
        packages.grants(),
        pairs::<_, bool>(&[("bad-manifest", false), ("good", true), ("mixed", true)])
    );
    let listed = packages.listed();
    let bad = |name: &str| listed[name]["problems"].to_string();
    assert!(
        bad("bad-manifest").contains("the manifest is not valid"),
        "{listed:?}"
    );
    assert!(
        bad("mixed").contains("plugin:mixed/bad: tool `mixed_lost` has no program"),
        "{listed:?}"
    );
    assert_eq!(bad("good"), "[]");
    let none = || json!({});
    let results = packages.called(
        "p",
        &[
            ("good_say", none()),
            ("mixed_say", none()),
            ("mixed_lost", none()),
        ],
    );
    says(&results[0], "from good");
    says(&results[1], "from mixed");
    assert!(results[2].0, "{results:?}");
    packages
        .strict()
        .ends(78)
        .says(&["plugin bad-manifest (", "plugin:mixed/bad: "]);
}

#[test]
fn strictness() {
    let packages = Packages::of("strictness");
    let waits = ["plugin one: not granted", "plugin two: not granted"];
    packages.yoi(&["run", "list the files"]).ends(0);
    packages.strict().ends(78).says(&waits);
    packages.yoi(&["grant", "plugin:one"]).ends(0);
    assert_eq!(
        packages.grants(),
        pairs::<_, bool>(&[("one", true), ("two", false)])
    );
    let done = packages.strict().ends(78).says(&waits[1..]);
    assert!(!done.err.contains("plugin one"), "{}", done.err);
    packages.yoi(&["grant", "plugin:two"]).ends(0);
    packages.strict().ends(0);
    packages.scene.yoi(&["revoke", "plugin:one"]).ends(0);
    let outcomes = [
        ("plugin:one/main", "disabled"),
        ("plugin:two/main", "installed"),
    ];
    assert_eq!(packages.outcomes(), pairs::<_, String>(&outcomes));
    packages.strict().ends(78).says(&waits[..1]);
}

#[test]
fn versions() {
    let packages = Packages::of("versions").granted();
    assert_eq!(
        packages.outcomes(),
        pairs::<_, String>(&[("plugin:fits/main", "installed")])
    );
    assert_eq!(
        packages.grants(),
        pairs::<_, bool>(&[("fits", true), ("later", false)])
    );
    let listed = packages.listed();
    assert_eq!(
        listed["fits"]["package"]["requires"],
        json!({ "yoi": ">=0.2" })
    );
    let needs = format!(
        "the package needs yoi >=99; this is {}",
        env!("CARGO_PKG_VERSION")
    );
    assert!(
        listed["later"]["state"].as_str().unwrap().contains(&needs),
        "{listed:?}"
    );
    assert!(packages.plan().1.contains(&needs));
    packages.strict().ends(78).says(&[&needs]);
    let results = packages.called("p", &[("fits_say", json!({})), ("later_say", json!({}))]);
    says(&results[0], "from fits");
    assert!(
        results[1].0 && !results[1].1.contains("from later"),
        "{results:?}"
    );
    fs::remove_dir_all(packages.dir.join("later")).unwrap();
    packages.strict().ends(0);
}

/// Its size and its time stay, so that only the content differs.
#[test]
fn drift() {
    let packages = Packages::of("drift").granted();
    let data = packages.dir.join("acme/data.txt");
    let write = |from: &str, to: &str| {
        let time = fs::metadata(&data).unwrap().modified().unwrap();
        fs::write(
            &data,
            fs::read_to_string(&data).unwrap().replacen(from, to, 1),
        )
        .unwrap();
        File::options()
            .write(true)
            .open(&data)
            .unwrap()
            .set_times(FileTimes::new().set_modified(time))
            .unwrap();
    };
    let call = |pod: &str| packages.called(pod, &[("acme_data", json!({}))]).remove(0);
    let stands = || {
        (
            packages.outcomes().remove(0).1,
            packages.grants().remove(0).1,
        )
    };
    assert_eq!(stands(), ("installed".to_owned(), true));
    says(&call("a"), "the weight is 10 kg");
    write("10", "90");
    assert_eq!(stands(), ("disabled".to_owned(), false));
    let state = packages.listed()["acme"]["state"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(state.starts_with("changed since it was granted"), "{state}");
    let (is_error, text) = call("b");
    assert!(is_error && !text.contains("kg"), "{text}");
    packages
        .strict()
        .ends(78)
        .says(&["plugin acme: changed since it was granted"]);
    packages
        .yoi(&["grant"])
        .ends(0)
        .prints(&["changed: data.txt"]);
    write("90", "10");
    assert_eq!(
        stands(),
        ("installed".to_owned(), true),
        "what was granted is there again"
    );
    says(&call("c"), "the weight is 10 kg");
    write("10", "90");
    packages.yoi(&["grant", "--all"]).ends(0);
    says(&call("d"), "the weight is 90 kg");
    packages.strict().ends(0);
}
