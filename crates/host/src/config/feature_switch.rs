//! Switching a feature on or off in the user's own configuration file. One key changes, and everything else stays as it is
//! written.

use super::UserRules;
use super::lines::KeyLines;
use super::read::{self, MAX_FILE};
use crate::exit::{Exit, Failure};
use toml::de::DeTable;
use toml::{Table, Value};

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchChange {
    /// As TOML, with the table that it stands in.
    pub toml: String,
    /// The line that it replaces or stands behind, from 1; none at the end of the file.
    pub line: Option<usize>,
    old: String,
    whole: String,
}

impl UserRules {
    /// What switching this feature on or off would write.
    ///
    /// # Errors
    /// The file is not valid, says it already, or has the feature in a form that only its owner can change.
    pub fn switch(&self, id: &str, on: bool) -> Result<SwitchChange, Failure> {
        let old = self.text()?;
        let table = read::parse(&old, self.shown.clone())?.table;
        if enabled(&table, id) == Some(on) {
            let what = if on { "on" } else { "off" };
            return Err(Failure::new(
                Exit::Config,
                format!("{} switches {id} {what} already", self.shown),
            )
            .help("it counts from the next start of the pod"));
        }
        let header = header(id);
        let key = format!("enabled = {on}\n");
        let candidates = [
            replaced(&old, id, on),
            inserted(&old, id, &key),
            Some(appended(&old, &header, &key)),
        ];
        let fits = |(whole, _): &(String, Option<usize>)| {
            let now: Option<Table> = read::parse(whole, self.shown.clone())
                .ok()
                .map(|text| text.table);
            whole.len() as u64 <= MAX_FILE
                && now.is_some_and(|now| is_only_change(table.clone(), now, id, on))
        };
        let Some((whole, line)) = candidates.into_iter().flatten().find(fits) else {
            let place = KeyLines::of(&old).at(&["features", id]);
            let place = place.map_or_else(
                || self.shown.clone(),
                |line| format!("{}:{line}", self.shown),
            );
            return Err(Failure::new(
                Exit::Config,
                format!("{place}: this form cannot be changed here"),
            )
            .help(format!(
                "set enabled = {on} under {} yourself",
                header.trim()
            )));
        };
        Ok(SwitchChange {
            toml: format!("{header}{key}"),
            line,
            old,
            whole,
        })
    }

    /// Writes a change, if the file is still what it was planned for. The caller holds the lock.
    pub fn write_switch(&self, change: &SwitchChange) -> Result<(), Failure> {
        if self.text()? != change.old {
            return Err(Failure::new(
                Exit::Config,
                format!("{} was changed meanwhile", self.shown),
            )
            .help("look again"));
        }
        self.write(&change.whole)
            .map_err(|why| Failure::new(Exit::Config, format!("{}: {why}", self.shown)))
    }
}

fn header(id: &str) -> String {
    format!("[features.{}]\n", serde_json::Value::from(id))
}

fn enabled(table: &Table, id: &str) -> Option<bool> {
    table.get("features")?.get(id)?.get("enabled")?.as_bool()
}

/// The value that stands there, replaced.
fn replaced(old: &str, id: &str, on: bool) -> Option<(String, Option<usize>)> {
    let table = DeTable::parse(old).ok()?;
    let features = table.get_ref().get("features")?.get_ref().as_table()?;
    let span = features
        .get(id)?
        .get_ref()
        .as_table()?
        .get("enabled")?
        .span();
    let (before, rest) = old.split_at_checked(span.start)?;
    let behind = rest.get(span.end.checked_sub(span.start)?..)?;
    let line = before.matches('\n').count() + 1;
    Some((format!("{before}{on}{behind}"), Some(line)))
}

/// The key below the line that begins the table of the feature.
fn inserted(old: &str, id: &str, key: &str) -> Option<(String, Option<usize>)> {
    let line = KeyLines::of(old).at(&["features", id])?;
    let mut lines: Vec<&str> = old.split_inclusive('\n').collect();
    let begins = lines.get(line.checked_sub(1)?)?;
    if !begins.trim_start().starts_with('[') {
        return None;
    }
    let end = if begins.ends_with('\n') { "" } else { "\n" };
    let key = format!("{end}{key}");
    lines.insert(line, &key);
    Some((lines.concat(), Some(line)))
}

fn appended(old: &str, header: &str, key: &str) -> (String, Option<usize>) {
    let apart = match old {
        "" => "",
        old if old.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    (format!("{old}{apart}{header}{key}"), None)
}

/// Whether the files differ in this key alone.
fn is_only_change(mut old: Table, mut new: Table, id: &str, on: bool) -> bool {
    if enabled(&new, id) != Some(on) {
        return false;
    }
    let without = |table: &mut Table| {
        let features = table
            .entry("features")
            .or_insert_with(|| Value::Table(Table::new()));
        let feature = features
            .as_table_mut()
            .map(|all| all.entry(id).or_insert_with(|| Value::Table(Table::new())));
        feature
            .and_then(Value::as_table_mut)
            .map(|feature| drop(feature.remove("enabled")))
    };
    without(&mut old).is_some() && without(&mut new).is_some() && old == new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;

    fn switched(old: &str, on: bool) -> Result<(String, Option<usize>), String> {
        let home = tempfile::tempdir().unwrap();
        let env = Env::with(&[
            ("XDG_CONFIG_HOME", home.path()),
            ("XDG_STATE_HOME", home.path()),
        ]);
        let path = home.path().join("yoi/config.toml");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, old).unwrap();
        let file = UserRules::of(&env).unwrap();
        let change = file
            .switch("builtin:web", on)
            .map_err(|failure| failure.message)?;
        file.write_switch(&change)
            .map_err(|failure| failure.message)?;
        assert!(
            file.write_switch(&change).is_err(),
            "the file is another one now"
        );
        Ok((std::fs::read_to_string(path).unwrap(), change.line))
    }

    #[test]
    fn one_key_changes_and_the_rest_stays() {
        let web = "[features.\"builtin:web\"]";
        let cases = [
            ("", format!("{web}\nenabled = false\n"), None),
            (
                "# mine\nmodel = \"m\"",
                format!("# mine\nmodel = \"m\"\n\n{web}\nenabled = false\n"),
                None,
            ),
            (
                "[features.\"builtin:web\"] # w\nenabled = true # why\n[limits]\n",
                format!("{web} # w\nenabled = false # why\n[limits]\n"),
                Some(2),
            ),
            (
                "[features]\n\"builtin:web\" = { enabled = true }\n",
                "[features]\n\"builtin:web\" = { enabled = false }\n".to_owned(),
                Some(2),
            ),
            (
                "[features.'builtin:web']",
                "[features.'builtin:web']\nenabled = false\n".to_owned(),
                Some(1),
            ),
            (
                "[features.\"builtin:web\".grant]\n",
                format!("[features.\"builtin:web\".grant]\n\n{web}\nenabled = false\n"),
                None,
            ),
        ];
        for (old, wanted, line) in cases {
            assert_eq!(switched(old, false), Ok((wanted, line)), "{old}");
        }
    }

    #[test]
    fn what_cannot_be_changed_is_left_to_its_owner() {
        let said = switched("[features.\"builtin:web\"]\nenabled = false\n", false).unwrap_err();
        assert!(said.ends_with("switches builtin:web off already"), "{said}");
        let said = switched("[features]\n\"builtin:web\" = {}\n", false).unwrap_err();
        assert!(
            said.ends_with(":2: this form cannot be changed here"),
            "{said}"
        );
        assert!(switched("model = ", false).is_err());
    }
}
