//! What a person changes about the features of a pod: a switch in their own configuration, and what the project's file
//! asks for. Both are shown before they are written, and count from the next start of the pod.

use crate::commands::features;
use crate::commands::person::only_a_person;
use host::config::grants::{self, Grant, Grants};
use host::config::{Config, PendingGrant, SwitchChange, UserRules};
use host::env::Env;
use host::exit::{Exit, Failure};
use serde_json::Value;
use std::path::PathBuf;
use tui::{FeatureChange, FeatureEntry, FeatureList};

/// The files of a person, as they count for the pod of one directory.
pub(super) struct FeatureFiles {
    env: Env,
    user: UserRules,
}

/// A change that was shown.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ShownChange {
    pub(super) id: String,
    pub(super) change: FeatureChange,
    what: Written,
}

#[derive(Clone, Debug, PartialEq)]
enum Written {
    Switch(SwitchChange),
    Grant(Vec<PendingGrant>),
    Revoke(Vec<Grant>),
}

impl FeatureFiles {
    /// `cwd`: the directory of the pod.
    pub(super) fn of(env: &Env, cwd: &str) -> Result<Self, Failure> {
        let mut env = env.clone();
        env.cwd = PathBuf::from(cwd);
        Ok(Self {
            user: UserRules::of(&env)?,
            env,
        })
    }

    /// The report of the pod with what can be changed about each feature. Without a configuration that reads, nothing can.
    pub(super) fn list(&self, report: &Value) -> FeatureList {
        let rows = features::render(report).into_rows();
        let files = Config::load(&self.env).ok().zip(self.grants().ok());
        let all = report
            .get("features")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let texts: Vec<String> = rows.iter().map(|row| row.text.text()).collect();
        let entry = |feature: &Value| {
            let id = feature.get("feature_id")?.as_str()?.to_owned();
            let row = texts
                .iter()
                .position(|text| text.split_whitespace().next() == Some(&id));
            let row = row.or_else(|| {
                texts
                    .iter()
                    .position(|text| text.split([' ', ',']).any(|word| word == id))
            })?;
            let changes = files
                .as_ref()
                .map(|(config, grants)| self.offers(feature, &id, config, grants))
                .unwrap_or_default();
            Some(FeatureEntry { id, row, changes })
        };
        let mut entries: Vec<FeatureEntry> = all.iter().filter_map(entry).collect();
        entries.sort_by_key(|entry| entry.row);
        FeatureList { rows, entries }
    }

    fn grants(&self) -> Result<Grants, Failure> {
        Grants::load(&self.env, &host::project::Project::around(&self.env).root)
    }

    fn offers(
        &self,
        feature: &Value,
        id: &str,
        config: &Config,
        grants: &Grants,
    ) -> Vec<FeatureChange> {
        let text = |key: &str| feature.get(key).and_then(Value::as_str).unwrap_or_default();
        let switches = config.features.get(id);
        let configured = switches.and_then(|switches| switches.enabled.as_ref());
        let is_on = configured.map_or(text("outcome") != "disabled", |enabled| enabled.value);
        // A flag of the start, an agent or a profile says otherwise, and so may the project's file, which is read later.
        let by_start = ["--", "agent ", "profile "]
            .iter()
            .any(|layer| text("disabled_by").starts_with(layer));
        let in_project = |source: &str| {
            config
                .project
                .files
                .iter()
                .any(|file| source.starts_with(&self.env.shown(file)))
        };
        let is_own = !by_start && !configured.is_some_and(|enabled| in_project(&enabled.source));
        let is_required = switches.is_some_and(|switches| switches.required().is_some());
        let mut changes = Vec::new();
        match is_on {
            true if is_own && !is_required => changes.push(FeatureChange::Disable),
            false if is_own => changes.push(FeatureChange::Enable),
            _ => {}
        }
        if config.grants_unread.is_none()
            && config.pending.iter().any(|pending| is_of(&pending.key, id))
        {
            changes.push(FeatureChange::Grant);
        }
        if grants.all().iter().any(|grant| is_of(&grant.key, id)) {
            changes.push(FeatureChange::Revoke);
        }
        changes
    }

    /// What a change would write now.
    pub(super) fn plan(&self, id: &str, change: FeatureChange) -> Result<ShownChange, Failure> {
        let nothing = |what: &str| Failure::new(Exit::Usage, format!("nothing {what} for {id}"));
        let what = match change {
            FeatureChange::Enable => Written::Switch(self.user.switch(id, true)?),
            FeatureChange::Disable => Written::Switch(self.user.switch(id, false)?),
            FeatureChange::Grant => {
                let config = Config::load(&self.env)?;
                config.grants_unread.clone().map_or(Ok(()), Err)?;
                let pending: Vec<_> = config
                    .pending
                    .into_iter()
                    .filter(|asked| is_of(&asked.key, id))
                    .collect();
                if pending.is_empty() {
                    return Err(nothing("is pending"));
                }
                Written::Grant(pending)
            }
            FeatureChange::Revoke => {
                let granted: Vec<_> = self
                    .grants()?
                    .all()
                    .iter()
                    .filter(|grant| is_of(&grant.key, id))
                    .cloned()
                    .collect();
                if granted.is_empty() {
                    return Err(nothing("is granted"));
                }
                Written::Revoke(granted)
            }
        };
        Ok(ShownChange {
            id: id.to_owned(),
            change,
            what,
        })
    }

    /// What is shown of a change, in lines.
    pub(super) fn shown(&self, shown: &ShownChange) -> String {
        let mut lines = Vec::new();
        match &shown.what {
            Written::Switch(SwitchChange { toml, line, .. }) => {
                let place =
                    line.map_or_else(|| "at the end".to_owned(), |line| format!("at line {line}"));
                lines.push(format!(
                    "writes into {}, {place}, for all pods:",
                    self.user.shown
                ));
                lines.extend(toml.lines().map(|line| format!("    {line}")));
            }
            Written::Grant(pending) => {
                lines.push("grants what the project's file asks for:".to_owned());
                for PendingGrant {
                    key,
                    value,
                    source,
                    effect,
                    ..
                } in pending
                {
                    lines.extend([
                        format!("    {key} = {value}"),
                        format!("    ({source}) effect: {effect}"),
                    ]);
                }
            }
            Written::Revoke(granted) => {
                lines.push("revokes what was granted to the project's file:".to_owned());
                lines.extend(
                    granted
                        .iter()
                        .map(|Grant { key, value, .. }| format!("    {key} = {value}")),
                );
            }
        }
        lines.push(
            "counts from the next start of the pod, unless a flag of that start says otherwise"
                .to_owned(),
        );
        lines.join("\n")
    }

    /// Makes a change, if it is still the one that was shown. Gives what was done.
    pub(super) fn write(&self, shown: &ShownChange) -> Result<String, Failure> {
        only_a_person("change its own grants")?;
        let _lock = grants::lock(&self.env)?;
        let now = self.plan(&shown.id, shown.change)?;
        if now != *shown {
            return Err(
                Failure::new(Exit::Config, "the files were changed meanwhile").help("look again"),
            );
        }
        let done = match &now.what {
            Written::Switch(change) => {
                self.user.write_switch(change)?;
                format!("{} was changed", self.user.shown)
            }
            Written::Grant(pending) => {
                let mut kept = self.grants()?;
                pending.iter().try_for_each(|asked| kept.add(asked))?;
                kept.save()?;
                format!("granted: {}", keys(pending.iter().map(|asked| &asked.key)))
            }
            Written::Revoke(granted) => {
                let mut kept = self.grants()?;
                granted.iter().for_each(|grant| kept.remove(&grant.digest));
                kept.save()?;
                format!("revoked: {}", keys(granted.iter().map(|grant| &grant.key)))
            }
        };
        Ok(format!("{done}; it counts from the next start of the pod"))
    }
}

fn keys<'a>(keys: impl Iterator<Item = &'a String>) -> String {
    keys.cloned().collect::<Vec<_>>().join(", ")
}

/// Whether a key is one of this feature.
fn is_of(key: &str, id: &str) -> bool {
    let rest = key
        .strip_prefix("features.")
        .and_then(|rest| rest.strip_prefix(&Value::from(id).to_string()));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
