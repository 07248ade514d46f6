//! What Slack refuses: the word in its answer, and the next step.

use crate::mapping::VENDOR_NAME;
use ErrorKind::{Denied, FixInput, Retry, Unavailable};
use api_core::ServiceFault;
use api_core::reading::{flag, text};
use authority::text::{Lines, escape_within};
use llm_worker::ErrorKind;
use serde_json::Value;

/// Where Slack's words are in an answer.
pub(crate) const WORDS: &[&str] = &["/error", "/needed", "/response_metadata/messages/0"];
/// The longest of these words, in bytes.
const MAX_WORDS: usize = 512;

/// Methods that Slack limits for apps that are distributed outside its marketplace.
const LIMITED: [&str; 2] = ["conversations.history", "conversations.replies"];

/// A kind of refusals: the errors of Slack, and the next step.
struct Refusal(ErrorKind, &'static str, &'static str);

const REFUSALS: &[Refusal] = &[
    Refusal(
        Denied,
        "missing_scope no_permission",
        "add the scope to the app and install it again, or leave that kind out of `kinds`",
    ),
    Refusal(
        Denied,
        "not_authed invalid_auth account_inactive token_revoked token_expired",
        "the token is missing, wrong or expired: renew the secret that `token` names",
    ),
    Refusal(
        Denied,
        "not_allowed_token_type",
        "this needs the token of a person (xoxp-…)",
    ),
    Refusal(Denied, "not_in_channel", "invite the app to this chat"),
    Refusal(
        Denied,
        "access_denied restricted_action ekm_access_denied team_access_not_granted enterprise_is_restricted",
        "an administrator of the workspace does not allow this",
    ),
    Refusal(
        FixInput,
        "channel_not_found",
        "use an id from the list of chats; the app sees a private one only as a member",
    ),
    Refusal(
        FixInput,
        "thread_not_found message_not_found",
        "`thread_id` is the id of the first message of a thread in this chat",
    ),
    Refusal(FixInput, "invalid_cursor", "begin again without `cursor`"),
    Refusal(
        FixInput,
        "is_archived",
        "the chat is archived, nothing can be sent to it",
    ),
    Refusal(
        Retry,
        "ratelimited rate_limited message_limit_exceeded",
        "try again in a minute",
    ),
    Refusal(
        Unavailable,
        "internal_error fatal_error service_unavailable request_timeout",
        "Slack has a fault: try later",
    ),
];

/// The answer of a method, if it is none with `ok: false`.
pub(crate) fn accepted(method: &str, body: Value) -> Result<Value, ServiceFault> {
    if flag(&body, "/ok") {
        return Ok(body);
    }
    let Some(error) = text(&body, "/error") else {
        let text = format!("{VENDOR_NAME} answered {method} with neither `ok` nor `error`");
        return Err(ServiceFault::new(ErrorKind::Corrupt, text));
    };
    let known = REFUSALS
        .iter()
        .find(|refusal| refusal.1.split(' ').any(|word| word == error));
    let (kind, step) = known.map_or(
        (ErrorKind::FixInput, "change the arguments"),
        |Refusal(kind, _, step)| (*kind, *step),
    );
    let words: Vec<String> = WORDS.iter().filter_map(|at| text(&body, at)).collect();
    let words = escape_within(&words.join("; "), Lines::One, MAX_WORDS);
    let fault = ServiceFault::new(
        kind,
        format!("{VENDOR_NAME} refused {method}: {words}; {step}"),
    );
    Err(limited(method, fault))
}

/// Says why Slack limits a method so much, if it does.
pub(crate) fn limited(method: &str, fault: ServiceFault) -> ServiceFault {
    match fault.kind {
        ErrorKind::Retry if LIMITED.contains(&method) => ServiceFault::new(
            fault.kind,
            format!(
                "{}; of an app that is distributed outside its marketplace Slack takes one such request a minute, for 15 messages",
                fault.message
            ),
        ),
        _ => fault,
    }
}
