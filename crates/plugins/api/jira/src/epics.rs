//! Epics: issues of the type above the usual ones.

use crate::JiraProject;
use crate::change::{Content, type_id};
use crate::issues::{quoted, search_words, state};
use crate::mapping::{PREFIX, epic};
use api_core::arguments::{EpicChange, EpicQuery, NewEpic};
use api_core::entity::Epic;
use api_core::page::ItemPage;
use api_core::provider::{Answer, EpicProvider};
use api_core::reading::{number, text};
use api_core::{ServiceFault, key, unfit};
use serde_json::Value;

/// The field in which Jira Data Center wants an epic's title once more.
const EPIC_NAME: &str = "com.pyxis.greenhopper.jira:gh-epic-label";

impl EpicProvider for JiraProject {
    fn epics(&self, wanted: EpicQuery) -> Answer<'_, ItemPage<Epic>> {
        Box::pin(async move {
            let kind = self.epic_type().await?;
            let mut terms = vec![
                format!("project = {}", quoted(&self.key)),
                format!("issuetype = {kind}"),
            ];
            terms.extend(state(wanted.state));
            terms.extend(search_words(wanted.search.as_deref()));
            let jql = format!("{} ORDER BY updated desc", terms.join(" AND "));
            self.search(&self.epics, &jql, wanted.slice(), epic).await
        })
    }

    fn create_epic(&self, wanted: NewEpic) -> Answer<'_, Epic> {
        Box::pin(async move {
            let kind = self.epic_type().await?;
            let title = wanted.title.clone();
            let content = Content {
                title: Some(wanted.title),
                description: wanted.description,
                labels: (!wanted.labels.is_empty()).then_some(wanted.labels),
                ..Content::default()
            };
            let mut fields = self.content(&self.key, content).await?;
            if !self.is_cloud {
                let known = self.fields_of_type(&self.key, &kind).await?;
                let is_name =
                    |of: &&Value| text(of, "/schema/custom").as_deref() == Some(EPIC_NAME);
                let id = known
                    .iter()
                    .find(is_name)
                    .and_then(|of| text(of, "/fieldId"));
                fields.extend(id.map(|id| (id, title.into())));
            }
            epic(&self.made(&self.key, &kind, fields).await?)
        })
    }

    fn update_epic(&self, wanted: EpicChange) -> Answer<'_, Epic> {
        Box::pin(async move {
            let key = key::of_project(&wanted.key, PREFIX)?;
            let content = Content {
                title: wanted.title,
                description: wanted.description,
                labels: wanted.labels,
                ..Content::default()
            };
            let fields = self.content(&self.key, content).await?;
            epic(&self.changed(&key, fields, None, wanted.state).await?)
        })
    }
}

impl JiraProject {
    /// The id of the type of epics: by its level on Jira Cloud, else by its name.
    async fn epic_type(&self) -> Result<String, ServiceFault> {
        let types = self.types(&self.key).await?;
        let is_epic = |of: &&Value| match number(of, "/hierarchyLevel") {
            Some(level) => level == 1,
            None => text(of, "/name").is_some_and(|name| name.eq_ignore_ascii_case("epic")),
        };
        let found = types.iter().find(is_epic);
        type_id(found.ok_or_else(|| unfit(format!("project {} has no epics", self.key)))?)
    }
}
