//! Chats and their messages.

use crate::mapping::{VENDOR_NAME, chat, message, moment, name};
use crate::{SlackWorkspace, refusal, text};
use api_core::arguments::{ChatQuery, MessageQuery, MessageSearch, NewMessage};
use api_core::entity::{Chat, ChatMessage, User};
use api_core::http::{Method, sent};
use api_core::page::ItemPage;
use api_core::provider::{Answer, MessengerProvider};
use api_core::reading::{each, needed, number};
use api_core::{ServiceFault, reading, unfit};
use llm_worker::ErrorKind;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

/// Chats in one piece of their list, and most pieces that are looked through for one page.
const PIECE: &str = "200";
const MAX_PIECES: usize = 10;
/// Slack cuts off a text after so many characters.
const MAX_TEXT: usize = 40_000;
/// Most people whose names are asked for because of one page, and most names that are kept.
const MAX_ASKED: usize = 20;
const MAX_NAMES: usize = 1_000;

impl MessengerProvider for SlackWorkspace {
    fn chats(&self, wanted: ChatQuery) -> Answer<'_, ItemPage<Chat>> {
        Box::pin(self.list_chats(wanted))
    }

    fn messages(&self, wanted: MessageQuery) -> Answer<'_, ItemPage<ChatMessage>> {
        Box::pin(self.list_messages(wanted))
    }

    fn send_message(&self, wanted: NewMessage) -> Answer<'_, ChatMessage> {
        Box::pin(self.send(wanted))
    }

    fn search_messages(&self, wanted: MessageSearch) -> Answer<'_, ItemPage<ChatMessage>> {
        Box::pin(self.search(wanted))
    }
}

/// Where a list of chats goes on: behind so many of the piece at Slack's cursor.
struct Place {
    passed: usize,
    cursor: String,
}

impl Place {
    fn read(cursor: Option<&str>) -> Result<Self, ServiceFault> {
        let Some(text) = cursor.filter(|cursor| !cursor.is_empty()) else {
            return Ok(Self {
                passed: 0,
                cursor: String::new(),
            });
        };
        let parts = text.split_once(':');
        let read = parts.and_then(|(passed, cursor)| Some((passed.parse().ok()?, cursor)));
        let (passed, cursor) =
            read.ok_or_else(|| unfit("`cursor` must be `next_cursor` of the page before"))?;
        Ok(Self {
            passed,
            cursor: cursor.to_owned(),
        })
    }

    fn shown(&self) -> String {
        format!("{}:{}", self.passed, self.cursor)
    }
}

impl SlackWorkspace {
    /// Slack does not search for names of chats, and its pieces may be small or empty where there are more.
    async fn list_chats(&self, wanted: ChatQuery) -> Result<ItemPage<Chat>, ServiceFault> {
        let part = wanted.search.as_deref().unwrap_or_default().to_lowercase();
        let limit = wanted.limit.clamp(1, 100);
        let mut place = Place::read(wanted.cursor.as_deref())?;
        let mut found = Vec::new();
        for _piece in 0..MAX_PIECES {
            let values = [
                ("types", self.types.as_str()),
                ("exclude_archived", "true"),
                ("limit", PIECE),
                ("cursor", &place.cursor),
            ];
            let body = self.get("conversations.list", &values).await?;
            let piece = each(at(&body, "/channels"), VENDOR_NAME, chat)?;
            for chat in piece.into_iter().skip(place.passed) {
                let is_meant = chat.name.to_lowercase().contains(&part);
                if is_meant && found.len() == limit as usize {
                    return Ok(ItemPage::at_cursor(found, limit, Some(place.shown())));
                }
                place.passed += 1;
                found.extend(is_meant.then_some(chat));
            }
            let Some(cursor) = next(&body) else {
                return Ok(ItemPage::at_cursor(found, limit, None));
            };
            place = Place { passed: 0, cursor };
            if found.len() == limit as usize {
                break;
            }
        }
        Ok(ItemPage::at_cursor(found, limit, Some(place.shown())))
    }

    async fn list_messages(
        &self,
        wanted: MessageQuery,
    ) -> Result<ItemPage<ChatMessage>, ServiceFault> {
        let chat = chat_id(&wanted.chat_id)?;
        let thread = thread_id(wanted.thread_id.as_deref())?;
        let bound = |name, time: Option<&str>| {
            let time = time.filter(|time| !time.is_empty());
            time.map_or(Ok(String::new()), |time| moment(name, time))
        };
        let limit = wanted.limit.clamp(1, 100);
        let values = [
            ("channel", chat),
            ("ts", thread),
            ("oldest", &bound("since", wanted.since.as_deref())?),
            ("latest", &bound("until", wanted.until.as_deref())?),
            ("limit", &limit.to_string()),
            ("cursor", wanted.cursor.as_deref().unwrap_or_default()),
        ];
        let method = match thread {
            "" => "conversations.history",
            _ => "conversations.replies",
        };
        let body = self.get(method, &values).await?;
        let read = |of: &Value| message(of, chat);
        let mut messages = each(at(&body, "/messages"), VENDOR_NAME, read)?;
        // Each piece of a thread begins with its first message, which is no reply.
        messages.retain(|message| thread.is_empty() || message.id != thread);
        self.name(&mut messages).await;
        Ok(ItemPage::at_cursor(messages, limit, next(&body)))
    }

    async fn search(&self, wanted: MessageSearch) -> Result<ItemPage<ChatMessage>, ServiceFault> {
        let chat = wanted.chat_id.as_deref().filter(|chat| !chat.is_empty());
        let chat = chat.map(chat_id).transpose()?;
        let query = match chat {
            Some(chat) => format!("{} in:<#{chat}>", wanted.query),
            None => wanted.query,
        };
        let limit = wanted.limit.clamp(1, 100);
        let values = [
            ("query", query.as_str()),
            ("count", &limit.to_string()),
            ("sort", "timestamp"),
            ("cursor", wanted.cursor.as_deref().unwrap_or("*")),
        ];
        let body = self.get("search.messages", &values).await?;
        let read = |of: &Value| message(of, chat.unwrap_or_default());
        let mut messages = each(at(&body, "/messages/matches"), VENDOR_NAME, read)?;
        messages.retain(|message| chat.is_none_or(|chat| message.chat_id == chat));
        self.name(&mut messages).await;
        let mut page = ItemPage::at_cursor(messages, limit, next(&body));
        page.pagination.total = number(&body, "/messages/total");
        Ok(page)
    }

    async fn send(&self, wanted: NewMessage) -> Result<ChatMessage, ServiceFault> {
        let chat = chat_id(&wanted.chat_id)?;
        let thread = thread_id(wanted.thread_id.as_deref())?;
        let text = text::sent(&wanted.text);
        if text.chars().count() > MAX_TEXT {
            let why = format!("`text` is over {MAX_TEXT} characters: send it in parts");
            return Err(unfit(why));
        }
        let thread = (!thread.is_empty()).then_some(thread);
        let body = sent(json!({ "channel": chat, "text": text, "thread_ts": thread }));
        let reply = self
            .http
            .send(Method::POST, "/chat.postMessage", Some(&body));
        let body = refusal::accepted("chat.postMessage", reply.await?.body)?;
        let id = needed(reading::text(&body, "/ts"), VENDOR_NAME, "a message", "ts");
        let id = id.map_err(|fault| {
            ServiceFault::new(
                fault.kind,
                format!("the message was sent, but {}", fault.message),
            )
        })?;
        let mut of = at(&body, "/message").clone();
        if !of.is_object() {
            of = json!({ "text": text });
        }
        if let Some(fields) = of.as_object_mut() {
            fields.insert("ts".to_owned(), id.into());
        }
        let where_sent = reading::text(&body, "/channel");
        message(&of, where_sent.as_deref().unwrap_or(chat))
    }

    /// Adds the names of people, as far as Slack gives them.
    async fn name(&self, messages: &mut [ChatMessage]) {
        let mut authors: Vec<&mut User> = messages
            .iter_mut()
            .filter_map(|message| message.author.as_mut())
            .filter(|author| author.name.is_none() && author.id.starts_with(['U', 'W']))
            .collect();
        let unknown: BTreeSet<String> = {
            let known = self.known();
            let ids = authors.iter().map(|author| &author.id);
            ids.filter(|id| !known.contains_key(*id)).cloned().collect()
        };
        for id in unknown.into_iter().take(MAX_ASKED) {
            if self.is_nameless.load(Ordering::Relaxed) {
                break;
            }
            let found = match self.get("users.info", &[("user", &id)]).await {
                Ok(body) => name(at(&body, "/user")),
                Err(fault) if fault.kind == ErrorKind::FixInput => None,
                Err(fault) => {
                    let is_denied = fault.kind == ErrorKind::Denied;
                    self.is_nameless.fetch_or(is_denied, Ordering::Relaxed);
                    break;
                }
            };
            let mut known = self.known();
            if known.len() >= MAX_NAMES {
                known.clear();
            }
            known.insert(id, found);
        }
        let known = self.known();
        for author in &mut authors {
            author.name = known.get(&author.id).cloned().flatten();
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn at<'a>(body: &'a Value, pointer: &str) -> &'a Value {
    body.pointer(pointer).unwrap_or(&Value::Null)
}

/// What continues a list.
fn next(body: &Value) -> Option<String> {
    let places = [
        "/response_metadata/next_cursor",
        "/messages/paging/next_cursor",
    ];
    places.iter().find_map(|at| reading::text(body, at))
}

/// The id of a chat, or of a person to write to.
fn chat_id(id: &str) -> Result<&str, ServiceFault> {
    let is_id = |id: &str| {
        (2..=32).contains(&id.len())
            && id.starts_with(['C', 'G', 'D', 'U', 'W'])
            && id
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    Some(id.trim())
        .filter(|id| is_id(id))
        .ok_or_else(|| unfit("`chat_id` must be an id from the list of chats, such as C012AB3CD"))
}

/// The id of the first message of a thread; empty without one.
fn thread_id(id: Option<&str>) -> Result<&str, ServiceFault> {
    let id = id.unwrap_or_default().trim();
    let is_id = |(seconds, rest): (&str, &str)| {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        is_number(seconds) && is_number(rest) && id.len() <= 32
    };
    match id.is_empty() || id.split_once('.').is_some_and(is_id) {
        true => Ok(id),
        false => Err(unfit(
            "`thread_id` must be the id of a message, such as 1503435956.000247",
        )),
    }
}
