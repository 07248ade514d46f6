//! The notes on disk: one file each, in one directory.

use super::contract::{Hits, MemoryKeeper, MemoryLookup, NewNote, NoteQuery, NoteSaved};
use super::lint;
use super::note::{Day, Note, NoteName};
use super::rank::{self, MAX_QUERY};
use crate::clock::Now;
use crate::plain;
use crate::store_error::StoreError;
use async_trait::async_trait;
use authority::{FileKind, Located};
use llm_worker::{ErrorKind, ToolContext};
use std::cmp::Reverse;
use std::io::Read as _;
use std::path::Path;

/// Most notes of one project.
pub const MAX_NOTES: usize = 500;
/// Most notes of one search.
pub const MAX_FOUND: usize = 50;
/// The default number of notes of a search.
const FOUND: usize = 10;
/// Most bytes of a file that are read: a text and its front matter.
const MAX_FILE: u64 = 16 * 1024;
/// The extension of a note's file.
const ENDING: &str = ".md";

/// Notes in one directory.
pub(super) struct NoteStore {
    pub(super) files: tools::Files,
    pub(super) now: Now,
}

#[async_trait]
impl MemoryLookup for NoteStore {
    async fn search(&self, query: NoteQuery) -> Result<Hits, StoreError> {
        let question = query.query.unwrap_or_default();
        if question.len() > MAX_QUERY {
            return Err(StoreError::fix(format!(
                "the query has {} bytes; at most {MAX_QUERY}",
                question.len()
            )));
        }
        let question = rank::words(&question);
        let mut notes = Vec::new();
        let mut unreadable = Vec::new();
        for name in self.names()? {
            match self.load(&name) {
                Ok(note) if query.kind.is_none_or(|kind| kind == note.kind) => notes.push(note),
                Ok(_) => {}
                Err(error) => unreadable.push(error.to_string()),
            }
        }
        if question.is_empty() {
            notes.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.name.cmp(&b.name)));
        } else {
            notes.retain(|note| rank::score(note, &question).0 > 0);
            notes.sort_by_cached_key(|note| {
                (Reverse(rank::score(note, &question)), note.name.clone())
            });
        }
        let found = notes.len();
        notes.truncate(query.limit.unwrap_or(FOUND).clamp(1, MAX_FOUND));
        Ok(Hits {
            notes,
            found,
            unreadable,
        })
    }

    async fn read(&self, name: NoteName) -> Result<Note, StoreError> {
        self.load(&name)
    }
}

#[async_trait]
impl MemoryKeeper for NoteStore {
    async fn write(&self, note: NewNote, cx: ToolContext) -> Result<NoteSaved, StoreError> {
        let NewNote {
            name,
            description,
            kind,
            tags,
            text,
            replace,
        } = note;
        let tags = tags.unwrap_or_default();
        if tags.len() > lint::MAX_TAGS {
            return Err(StoreError::fix(format!(
                "{} tags are too many; at most {}",
                tags.len(),
                lint::MAX_TAGS
            )));
        }
        lint::text(&text).map_err(StoreError::fix)?;
        lint::secret("description", &description.to_string()).map_err(StoreError::fix)?;
        let _turn = self.files.one_at_a_time(&cx).await?;
        let names = self.names()?;
        if let Some(link) = lint::dangling(&text, &name, &names) {
            let link: String = link.chars().take(60).collect();
            return Err(StoreError::fix(format!(
                "the text links to [[{link}]], which is no note; write that one first"
            )));
        }
        let at = self.at(&name)?;
        let before = self.files.before(&at, &cx)?;
        let today = Day::of((self.now)());
        let created = match &before {
            None if names.len() >= MAX_NOTES => {
                let text = format!(
                    "there are {MAX_NOTES} notes, the maximum; delete some that are outdated"
                );
                return Err(StoreError::new(ErrorKind::Exhausted, text));
            }
            None => today.clone(),
            Some(_) if replace != Some(true) => {
                return Err(StoreError::fix(format!(
                    "there is a note `{name}` already; read it, then `replace` it"
                )));
            }
            // A note with an invalid file is replaced as a whole.
            Some(before) => {
                let old = Note::parse(&String::from_utf8_lossy(&before.bytes), &name);
                old.map_or_else(|_| today.clone(), |old| old.created)
            }
        };
        let kept = if before.is_some() {
            NoteSaved::Replaced
        } else {
            NoteSaved::Created
        };
        let text = plain::trimmed(&text);
        let note = Note {
            name,
            description,
            kind,
            tags,
            created,
            updated: today,
            text,
        };
        tools::publish(&self.files, &at, before, note.render().as_bytes(), &cx).await?;
        Ok(kept)
    }

    async fn forget(&self, name: NoteName, cx: ToolContext) -> Result<Note, StoreError> {
        let _turn = self.files.one_at_a_time(&cx).await?;
        let note = self.load(&name)?;
        let others = self.names()?.into_iter().filter(|other| *other != name);
        let linking = |other: &NoteName| {
            self.load(other)
                .is_ok_and(|other| lint::links(&other.text).any(|link| link == name.to_string()))
        };
        if let Some(other) = others.into_iter().find(linking) {
            return Err(StoreError::fix(format!(
                "`{other}` links to `{name}`; change that note first"
            )));
        }
        let at = self.at(&name)?;
        if let Some(before) = self.files.before(&at, &cx)? {
            tools::remove(&self.files, &at, before, &cx).await?;
        }
        Ok(note)
    }
}

impl NoteStore {
    /// The names of all notes, sorted.
    fn names(&self) -> Result<Vec<NoteName>, StoreError> {
        let entries = self
            .files
            .workspace()
            .read_dir(&self.files.workspace().inside(Path::new("."))?)?;
        let files = entries
            .iter()
            .filter(|(_, meta)| meta.kind == FileKind::File);
        let names = files.filter_map(|(name, _)| {
            NoteName::try_from(name.to_str()?.strip_suffix(ENDING)?.to_owned()).ok()
        });
        Ok(names.collect())
    }

    /// The file of a note. A link is refused: notes are plain files.
    fn at(&self, name: &NoteName) -> Result<Located, StoreError> {
        let file = format!("{name}{ENDING}");
        let at = self.files.workspace().inside(Path::new(&file))?;
        if at.relative() == Path::new(&file) {
            return Ok(at);
        }
        Err(StoreError::new(
            ErrorKind::Denied,
            format!("the file of `{name}` is a symbolic link; a person must remove it"),
        ))
    }

    fn load(&self, name: &NoteName) -> Result<Note, StoreError> {
        let corrupt = |why: &str| {
            StoreError::new(
                ErrorKind::Corrupt,
                format!("the note `{name}` cannot be read: {why}"),
            )
        };
        let file = match self.files.workspace().open_file(&self.at(name)?) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => {
                return Err(StoreError::fix(format!(
                    "there is no note `{name}`; search to see what there is"
                )));
            }
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        file.take(MAX_FILE)
            .read_to_end(&mut bytes)
            .map_err(|error| corrupt(&error.to_string()))?;
        if bytes.len() as u64 == MAX_FILE {
            return Err(corrupt(&format!("it has more than {MAX_FILE} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| corrupt("it is not UTF-8"))?;
        Note::parse(&text, name).map_err(|why| corrupt(&why))
    }
}
