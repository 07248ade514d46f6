//! A note: seven lines of front matter and a text, in one file named after the note.

use crate::plain;
use authority::text::without_bom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// A name or a tag, in bytes.
const MAX_NAME: usize = 60;
/// One line of a listing, in bytes.
const MAX_DESCRIPTION: usize = 200;

/// Kebab-case, at most 60 bytes; also the name of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct NoteName(String);

/// Kebab-case, at most 60 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Tag(String);

/// One line of at most 200 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Description(String);

/// A day: `2026-01-31`. It sorts as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct Day(String);

/// What sort of knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoteKind {
    Fact,
    Decision,
    Preference,
    Procedure,
}

/// A note as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    pub name: NoteName,
    /// Says when the note is worth reading.
    pub description: Description,
    pub kind: NoteKind,
    /// Words to find it by.
    pub tags: Vec<Tag>,
    pub created: Day,
    pub updated: Day,
    pub text: String,
}

impl Day {
    /// The day of `now`, in UTC.
    #[must_use]
    pub fn of(now: SystemTime) -> Self {
        Self(
            humantime::format_rfc3339_seconds(authority::dated(now))
                .to_string()
                .chars()
                .take(10)
                .collect(),
        )
    }

    fn parse(text: &str) -> Option<Self> {
        const FORM: &[u8] = b"dddd-1d-3d";
        plain::has_form(text, FORM).then(|| Self(text.to_owned()))
    }
}

impl Note {
    /// The file.
    pub(super) fn render(&self) -> String {
        let Self {
            name,
            description,
            kind,
            tags,
            created,
            updated,
            text,
        } = self;
        format!(
            "---\nname: {name}\ndescription: {}\nkind: {kind}\ntags: [{}]\ncreated: {created}\nupdated: {updated}\n---\n\n{text}\n",
            plain::quoted(&description.to_string()),
            plain::joined(tags)
        )
    }

    /// Reads the file of this name; a person may have written it.
    ///
    /// # Errors
    /// What is missing or wrong, by its key.
    pub(super) fn parse(file: &str, name: &NoteName) -> Result<Self, String> {
        let file = without_bom(file).replace("\r\n", "\n");
        let front = file
            .strip_prefix("---\n")
            .and_then(|rest| rest.split_once("\n---\n"));
        let (front, text) = front.ok_or("it has no front matter between two lines of ---")?;
        let value = |key: &str| {
            let values = front
                .lines()
                .filter_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            let mut values = values.map(str::trim);
            values
                .next()
                .ok_or_else(|| format!("its front matter has no `{key}`"))
        };
        let wrong = |key: &str| format!("its `{key}` is invalid");
        if value("name")? != name.0 {
            return Err("its `name` is not that of the file".to_owned());
        }
        let description = value("description")?;
        let description = plain::unquoted(description).unwrap_or_else(|| description.to_owned());
        let kind = value("kind")?;
        let tags = value("tags").unwrap_or("[]");
        Ok(Self {
            name: name.clone(),
            description: Description::try_from(description)?,
            kind: plain::named(kind).ok_or_else(|| wrong("kind"))?,
            tags: list(tags).ok_or_else(|| wrong("tags"))?,
            created: Day::parse(value("created")?).ok_or_else(|| wrong("created"))?,
            updated: Day::parse(value("updated")?).ok_or_else(|| wrong("updated"))?,
            text: text.trim_matches('\n').to_owned(),
        })
    }
}

fn list(value: &str) -> Option<Vec<Tag>> {
    let inner = value.strip_prefix('[')?.strip_suffix(']')?;
    let words = inner
        .split(',')
        .map(str::trim)
        .filter(|_| !inner.trim().is_empty());
    words
        .map(|word| Tag::try_from(word.to_owned()).ok())
        .collect()
}

fn kebab(what: &str, text: String) -> Result<String, String> {
    if plain::is_slug(&text, MAX_NAME) {
        return Ok(text);
    }
    Err(format!(
        "invalid {what}: use small letters, digits and single dashes, at most {MAX_NAME} bytes, like-this-1"
    ))
}

impl TryFrom<String> for NoteName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        kebab("name", text).map(Self)
    }
}

impl TryFrom<String> for Tag {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        kebab("tag", text).map(Self)
    }
}

impl TryFrom<String> for Description {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        plain::line("description", &text, MAX_DESCRIPTION).map(|()| Self(text))
    }
}

plain::texts!(NoteName, Tag, Description, Day);
plain::names!(NoteKind);

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> NoteName {
        NoteName::try_from(name.to_owned()).unwrap()
    }

    #[test]
    fn a_note_reads_as_it_was_written() {
        let note = Note {
            name: named("build"),
            description: Description::try_from(r#"say "--locked" \ always"#.to_owned()).unwrap(),
            kind: NoteKind::Procedure,
            tags: ["ci", "cargo-build"]
                .map(|tag| Tag::try_from(tag.to_owned()).unwrap())
                .to_vec(),
            created: Day::of(std::time::UNIX_EPOCH),
            updated: Day::parse("2026-01-31").unwrap(),
            text: "one\n\n---\nnot front matter".to_owned(),
        };
        assert_eq!(
            Note::parse(&note.render(), &named("build")),
            Ok(note.clone())
        );
        let windows = format!("\u{feff}{}", note.render().replace('\n', "\r\n"));
        assert_eq!(Note::parse(&windows, &named("build")), Ok(note.clone()));
        let bare = Note {
            tags: Vec::new(),
            ..note
        };
        assert_eq!(Note::parse(&bare.render(), &named("build")), Ok(bare));
    }

    #[test]
    fn what_a_person_wrote_wrongly_is_named() {
        let good = "---\nname: a\ndescription: plain words\nkind: fact\ncreated: 2026-01-31\nupdated: 2026-01-31\n---\ntext\n";
        assert_eq!(
            Note::parse(good, &named("a"))
                .unwrap()
                .description
                .to_string(),
            "plain words"
        );
        let cases = [
            ("---\nname", "name", "front matter"),
            ("name: a", "name: b", "name"),
            ("description: plain words\n", "", "description"),
            ("kind: fact", "kind: rumour", "kind"),
            ("created: 2026-01-31", "created: yesterday", "created"),
            ("updated: 2026-01-31", "updated: 2026-31-01", "updated"),
            ("kind: fact", "kind: fact\ntags: [A B]", "tags"),
        ];
        for (old, new, named_problem) in cases {
            let problem = Note::parse(&good.replacen(old, new, 1), &named("a")).unwrap_err();
            assert!(problem.contains(named_problem), "{problem}");
        }
    }
}
