//! Prompts of a server as commands of people: the server makes the text when a person types one, and the host records it.

use crate::exchange::Fault;
use crate::names::command_name;
use crate::outcome::{input_required, line, no_files, push};
use crate::pin::{PinnedPrompt, PromptArgument, ServerPin};
use crate::server::{Server, ServerCall};
use crate::wire::RpcError;
use authority::text::{Lines, escape_within};
use pod::feature::{CommandDeclaration, command_words};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a server may take for a text; less than what the host waits.
const WAIT: Duration = Duration::from_secs(50);

/// The longest description, in bytes.
const MAX_ABOUT: usize = 512;

/// The longest hint at arguments, and the longest definition that a command is named by.
const MAX_HINT: usize = 200;
const MAX_DEFINITION: usize = 16 << 10;

/// Most messages of an answer.
const MAX_MESSAGES: usize = 200;

/// The commands of a pin, each with its prompt, and why some are left out.
pub(crate) fn commands(pin: &ServerPin) -> (Vec<(CommandDeclaration, PinnedPrompt)>, Vec<String>) {
    let mut commands: Vec<(CommandDeclaration, PinnedPrompt)> = Vec::new();
    let mut problems = Vec::new();
    for prompt in &pin.prompts {
        let declared = command(pin, prompt);
        let is_taken = |(other, _): &(CommandDeclaration, PinnedPrompt)| {
            other.name.eq_ignore_ascii_case(&declared.name)
        };
        let wrong = match commands.iter().find(|other| is_taken(other)) {
            Some((_, other)) => Some(format!(
                "/{} is that of `{}`",
                declared.name,
                line(&other.name)
            )),
            None => declared.wrong(),
        };
        match wrong {
            None => commands.push((declared, prompt.clone())),
            Some(why) => problems.push(format!(
                "prompt `{}` is left out: {why}",
                line(&prompt.name)
            )),
        }
    }
    (commands, problems)
}

fn command(pin: &ServerPin, prompt: &PinnedPrompt) -> CommandDeclaration {
    let words = [&prompt.description, &prompt.title].into_iter().flatten();
    let about = words.map(|text| text.trim()).find(|text| !text.is_empty());
    let default = format!("The prompt {} of the MCP server {}.", prompt.name, pin.name);
    let definition = serde_json::to_string(prompt).unwrap_or_default();
    CommandDeclaration {
        name: command_name(&pin.name, &prompt.name),
        about: escape_within(about.unwrap_or(&default), Lines::One, MAX_ABOUT),
        argument_hint: (!prompt.arguments.is_empty()).then(|| hint(prompt)),
        source: format!("the MCP server {}", pin.name),
        // It names the definition; the server makes the text.
        text: escape_within(&definition, Lines::One, MAX_DEFINITION),
    }
}

/// The arguments of a prompt, those in brackets that it does without.
fn hint(prompt: &PinnedPrompt) -> String {
    let shown = |of: &PromptArgument| match of.required {
        true => of.name.clone(),
        false => format!("[{}]", of.name),
    };
    let all: Vec<String> = prompt.arguments.iter().map(shown).collect();
    escape_within(&all.join(" "), Lines::One, MAX_HINT)
}

/// The arguments of what was typed: a single one is all of it; of several, `NAME=VALUE` is that one, and other words are the
/// next ones.
///
/// # Errors
/// There are more words than arguments, or one is missing.
fn arguments(prompt: &PinnedPrompt, typed: &str) -> Result<BTreeMap<String, String>, String> {
    let mut given = BTreeMap::new();
    let known = &prompt.arguments;
    if let [only] = known.as_slice() {
        if !typed.is_empty() {
            given.insert(only.name.clone(), typed.to_owned());
        }
    } else {
        for word in command_words(typed) {
            let named = word
                .split_once('=')
                .filter(|(name, _)| known.iter().any(|of| of.name == *name));
            if let Some((name, value)) = named {
                given.insert(name.to_owned(), value.to_owned());
                continue;
            }
            match known.iter().find(|of| !given.contains_key(&of.name)) {
                Some(next) => drop(given.insert(next.name.clone(), word)),
                None if known.is_empty() => return Err("it takes no arguments".to_owned()),
                None => return Err(format!("it takes no more than: {}", hint(prompt))),
            }
        }
    }
    match known
        .iter()
        .find(|of| of.required && !given.contains_key(&of.name))
    {
        Some(_) => Err(format!("it needs: {}", hint(prompt))),
        None => Ok(given),
    }
}

/// Asks the server for the text of a prompt.
///
/// # Errors
/// Why there is none, for the person.
pub(crate) async fn text(
    server: &Arc<Server>,
    prompt: &PinnedPrompt,
    typed: &str,
) -> Result<String, String> {
    let arguments = arguments(prompt, typed)?;
    let request = ServerCall::Prompt {
        name: &prompt.name,
        arguments: &arguments,
    };
    let called = server.call(&request, Instant::now() + WAIT).await;
    let called = called.map_err(|fault| match fault {
        Fault::Changed(why) => why,
        Fault::NotStarted(why) => format!("its server did not start: {why}"),
        Fault::Died(why) => format!("its server is gone: {why}"),
        Fault::Late => "its server did not answer in time and was ended".to_owned(),
        Fault::PodEnded => "the pod has ended".to_owned(),
    })?;
    let refused = |error: RpcError| match error.is_unsent {
        true => error.message,
        false => format!(
            "the server answered with error {}: {}",
            error.code, error.message
        ),
    };
    messages(&called.answer.map_err(refused)?)
}

/// The messages of an answer as one text.
///
/// # Errors
/// It has none that can be read.
fn messages(result: &RawValue) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(default)]
        role: String,
        #[serde(default)]
        content: Value,
    }
    #[derive(Deserialize)]
    struct PromptResult {
        messages: Vec<Message>,
    }
    if input_required(result).is_some() {
        let why = "the server asks a person before it gives this text, which yoi does not pass on";
        return Err(why.to_owned());
    }
    let Ok(PromptResult { messages }) = serde_json::from_str(result.get()) else {
        return Err("the server answered with something else than messages".to_owned());
    };
    if messages.len() > MAX_MESSAGES {
        return Err(format!(
            "the server answered with over {MAX_MESSAGES} messages"
        ));
    }
    let of_people = messages.iter().all(|message| message.role == "user");
    let mut parts = Vec::new();
    for Message { role, content } in &messages {
        let mut text = match of_people {
            true => String::new(),
            false => format!("[{}]\n", line(role)),
        };
        match content {
            Value::Array(blocks) => blocks
                .iter()
                .for_each(|block| push(&mut text, block, &no_files)),
            block => push(&mut text, block, &no_files),
        }
        parts.push(text);
    }
    Ok(parts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::pinned_prompt as pinned;
    use serde_json::json;

    fn prompt(arguments: &[(&str, bool)]) -> PinnedPrompt {
        let argument =
            |(name, required): &(&str, bool)| json!({ "name": name, "required": required });
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        let of = json!({ "name": "p", "arguments": arguments });
        pinned(&RawValue::from_string(of.to_string()).unwrap()).unwrap()
    }

    #[test]
    fn what_is_typed_becomes_arguments() {
        let two = &[("file", true), ("why", false)][..];
        for (known, typed, expected) in [
            (&[][..], "", Ok(json!({}))),
            (&[], "x", Err("it takes no arguments")),
            (
                &[("text", true)],
                "a 'b' c=d",
                Ok(json!({ "text": "a 'b' c=d" })),
            ),
            (&[("text", true)], "", Err("it needs: text")),
            (&[("text", false)], "", Ok(json!({}))),
            (two, "a.rs", Ok(json!({ "file": "a.rs" }))),
            (
                two,
                "why='too slow' a.rs",
                Ok(json!({ "file": "a.rs", "why": "too slow" })),
            ),
            (two, "a=b", Ok(json!({ "file": "a=b" }))),
            (two, "a b c", Err("it takes no more than: file [why]")),
            (two, "why=x", Err("it needs: file [why]")),
        ] {
            let got = arguments(&prompt(known), typed).map(|given| json!(given));
            assert_eq!(got, expected.map_err(str::to_owned), "{typed}");
        }
    }

    #[test]
    fn messages_become_one_text() {
        let text = |role: &str, words: &str| json!({ "role": role, "content": { "type": "text", "text": words } });
        let picture = json!({ "role": "user", "content": [{ "type": "image", "mimeType": "image/png", "data": "AAAA" }] });
        let many = vec![text("user", "x"); MAX_MESSAGES + 1];
        for (answer, expected) in [
            (json!({ "messages": [text("user", "a\nb")] }), Ok("a\nb")),
            (
                json!({ "messages": [text("user", "a"), picture] }),
                Ok("a\n\n[image, image/png, 3 bytes, is not shown: a command shows no files]"),
            ),
            (
                json!({ "messages": [text("user", "a"), text("assistant", "b")] }),
                Ok("[user]\na\n\n[assistant]\nb"),
            ),
            (json!({}), Err("something else than messages")),
            (json!({ "messages": many }), Err("over 200 messages")),
            (
                json!({ "resultType": "input_required", "inputRequests": {}, "requestState": "s" }),
                Err("asks a person before"),
            ),
        ] {
            let got = messages(&RawValue::from_string(answer.to_string()).unwrap());
            match expected {
                Ok(text) => assert_eq!(got.as_deref(), Ok(text)),
                Err(why) => assert!(got.is_err_and(|got| got.contains(why)), "{why}"),
            }
        }
    }

    #[test]
    fn odd_prompts_cost_no_other() {
        let defined = crate::Definitions {
            prompts: ["a b", "a_b", "\u{202e}c"]
                .map(|name| PinnedPrompt {
                    name: name.to_owned(),
                    ..prompt(&[])
                })
                .to_vec(),
            ..crate::Definitions::default()
        };
        let about = (
            crate::Era::Modern,
            String::new(),
            crate::ServerInfo::default(),
        );
        let pin = ServerPin::new("x".to_owned(), crate::Launch::default(), about, defined);
        let (commands, problems) = commands(&pin);
        let names: Vec<&str> = commands.iter().map(|(of, _)| of.name.as_str()).collect();
        assert_eq!(names, ["x:a_b", "x:_c"]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        for odd in ["1", "{}", r#"{"name":"x","arguments":[{}]}"#] {
            assert!(
                pinned(&RawValue::from_string(odd.to_owned()).unwrap()).is_err(),
                "{odd}"
            );
        }
    }
}
