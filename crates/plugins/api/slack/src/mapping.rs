//! Slack's answers as the words of all providers.

use crate::text::shown;
use api_core::ServiceFault;
use api_core::entity::{Chat, ChatMessage, User};
use api_core::reading::{flag, needed, number, text, texts};
use api_core::time;
use serde_json::Value;

pub(crate) const VENDOR_NAME: &str = "Slack";

pub(crate) fn chat(of: &Value) -> Result<Chat, ServiceFault> {
    let id = needed(text(of, "/id"), VENDOR_NAME, "a chat", "id")?;
    // A conversation of two has no name, but the other one.
    let name = text(of, "/name").or_else(|| text(of, "/user"));
    let kind = match [
        flag(of, "/is_im"),
        flag(of, "/is_mpim"),
        flag(of, "/is_private"),
    ] {
        [true, ..] => "direct",
        [_, true, _] => "group",
        [_, _, true] => "private_channel",
        [false, false, false] => "channel",
    };
    Ok(Chat {
        name: name.unwrap_or_else(|| id.clone()),
        id,
        kind: kind.to_owned(),
        topic: text(of, "/topic/value").map(|topic| shown(&topic)),
        member: flag(of, "/is_member") || flag(of, "/is_im"),
        members: number(of, "/num_members"),
        archived: flag(of, "/is_archived"),
    })
}

/// A message of a chat; `chat` is the id of the chat where the message does not say it.
pub(crate) fn message(of: &Value, chat: &str) -> Result<ChatMessage, ServiceFault> {
    let id = needed(text(of, "/ts"), VENDOR_NAME, "a message", "ts")?;
    let mut attachments = texts(of, "/files", "/name");
    attachments.extend(texts(of, "/attachments", "/fallback"));
    Ok(ChatMessage {
        chat_id: text(of, "/channel/id").unwrap_or_else(|| chat.to_owned()),
        text: text(of, "/text").map_or_else(String::new, |text| shown(&text)),
        author: author(of),
        created_at: millis(&id).map(time::shown),
        thread_id: text(of, "/thread_ts"),
        replies: number(of, "/reply_count"),
        url: text(of, "/permalink"),
        attachments,
        id,
    })
}

fn author(of: &Value) -> Option<User> {
    let first = |all: &[&str]| all.iter().find_map(|at| text(of, at));
    Some(User {
        id: first(&["/user", "/bot_id"])?,
        name: first(&["/username", "/bot_profile/name", "/user_profile/real_name"]),
        email: None,
    })
}

/// The name of a person, as Slack shows it.
pub(crate) fn name(of: &Value) -> Option<String> {
    let names = ["/profile/display_name", "/real_name", "/name"];
    names.iter().find_map(|at| text(of, at))
}

/// The milliseconds since 1970 of a message's id, such as `1503435956.000247`.
fn millis(ts: &str) -> Option<u64> {
    let (seconds, rest) = ts.split_once('.').unwrap_or((ts, ""));
    let part: u64 = rest.get(..3).map_or(Some(0), |part| part.parse().ok())?;
    seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(1000)?
        .checked_add(part)
}

/// A time as Slack compares it with the ids of messages.
pub(crate) fn moment(argument: &str, text: &str) -> Result<String, ServiceFault> {
    let millis = time::millis(argument, text)?;
    Ok(format!("{}.{:03}000", millis / 1000, millis % 1000))
}
