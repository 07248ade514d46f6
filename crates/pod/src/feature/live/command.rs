//! Commands of a person as installed, and how their text becomes an input. Reads no file, and runs nothing but what a feature
//! staged to make the texts of its commands.

use crate::feature::declare::command::CommandDeclaration;
use crate::feature::declare::id::FeatureId;
use crate::feature::live::registry::FeatureRegistry;
use crate::feature::{ServiceFuture, escape_line};
use crate::foreign::{Broke, Callbacks, contained};
use crate::record::ExpandedCommand;
use authority::text::{Lines, escape_within};
use authority::{Door, Redactor};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a feature may make the text of a command: the inputs behind it wait.
const DEADLINE: Duration = Duration::from_secs(60);

/// The longest text that a feature makes, and why it makes none, in bytes.
const MAX_MADE: usize = 64 << 10;
const MAX_WHY: usize = 1 << 10;

/// The longest expansion, in bytes: a text that repeats its arguments must stay an input.
const MAX_EXPANDED: usize = 1 << 20;

/// The longest line that is typed for a command, in bytes: the record has it beside what it became.
const MAX_TYPED: usize = 64 << 10;

/// Where all of the arguments go.
const ALL: &str = "ARGUMENTS";

/// Says why a command of a feature is not expanded now; asked each time.
pub type CommandCheck = Arc<dyn Fn(&CommandDeclaration) -> Result<(), String> + Send + Sync>;

/// Makes the text of a command of a feature, from its name and what was typed behind it; or says why there is none. Called
/// when a person types it, at most a minute long.
pub type CommandText =
    Arc<dyn Fn(String, String) -> ServiceFuture<'static, Result<String, String>> + Send + Sync>;

/// What a text that a person typed becomes.
pub(crate) enum Expansion {
    Made(String, ExpandedCommand),
    /// Its feature makes it.
    Asked(AskedCommand),
}

/// A command whose feature has to make the text.
pub(crate) struct AskedCommand {
    feature: FeatureId,
    door: Arc<Door>,
    made: ServiceFuture<'static, Result<String, String>>,
    command: ExpandedCommand,
}

impl AskedCommand {
    /// The text, without secrets, and the command.
    ///
    /// # Errors
    /// Its feature made none that fits, with the words for the person.
    pub(crate) async fn text(
        self,
        callbacks: &Callbacks,
        redactor: &Redactor,
    ) -> Result<(String, ExpandedCommand), String> {
        let Self {
            feature,
            door,
            made,
            command,
        } = self;
        let work = async move { contained(&feature, std::slice::from_ref(&door), made).await };
        let ended = callbacks
            .run(DEADLINE, CancellationToken::new(), work)
            .await;
        let made = match ended {
            Err(lost) => Err(format!("no text came back: {lost}")),
            Ok(Err(Broke::Panicked(words))) => Err(format!("its feature panicked: {words}")),
            Ok(Err(Broke::Revoked)) => Err("its grant was revoked".to_owned()),
            Ok(Ok(Err(why))) => Err(why),
            Ok(Ok(Ok(text))) if text.trim().is_empty() => {
                Err("it expands to an empty text".to_owned())
            }
            Ok(Ok(Ok(text))) if text.len() > MAX_MADE => {
                Err(format!("it expands to more than {} KiB", MAX_MADE >> 10))
            }
            Ok(Ok(Ok(text))) => Ok(redactor.text(text.trim()).into_owned()),
        };
        match made {
            // What is escaped is longer.
            Ok(text) => Ok((escape_within(&text, Lines::Many, 2 * MAX_MADE), command)),
            Err(why) => {
                let why = format!("/{}: {}", command.name, redactor.text(&why));
                Err(escape_line(&why, MAX_WHY))
            }
        }
    }
}

/// A command that a person can type.
pub(crate) struct RegisteredCommand {
    pub(crate) feature: FeatureId,
    /// Its grant.
    pub(crate) door: Arc<Door>,
    pub(crate) declaration: CommandDeclaration,
    pub(crate) check: Option<CommandCheck>,
    /// Makes its text, in place of that of the declaration.
    pub(crate) text: Option<CommandText>,
}

impl FeatureRegistry {
    /// What a text becomes that a person typed; none if it is not one of the installed commands.
    ///
    /// # Errors
    /// Its grant was revoked, its feature refuses it, or it is too long, with the words for the person.
    pub(crate) fn expand(&self, text: &str) -> Result<Option<Expansion>, String> {
        let Some((command, rest)) =
            typed(text).and_then(|(name, rest)| Some((self.commands.get(name)?, rest)))
        else {
            return Ok(None);
        };
        let CommandDeclaration { name, source, .. } = &command.declaration;
        let wrong = |why: &str| format!("/{name}: {why}");
        let _use = command
            .door
            .enter()
            .map_err(|_| wrong("its grant was revoked"))?;
        if let Some(check) = &command.check {
            check(&command.declaration).map_err(|why| wrong(&why))?;
        }
        if text.len() > MAX_TYPED {
            let most = format!("at most {} KiB can be typed for a command", MAX_TYPED >> 10);
            return Err(wrong(&most));
        }
        let typed = ExpandedCommand {
            name: name.clone(),
            source: source.clone(),
            digest: command.declaration.digest(),
            typed: text.trim().to_owned(),
        };
        Ok(Some(match &command.text {
            Some(make) => Expansion::Asked(AskedCommand {
                feature: command.feature.clone(),
                door: Arc::clone(&command.door),
                made: make(name.clone(), rest.to_owned()),
                command: typed,
            }),
            None => {
                let made = expanded(&command.declaration.text, rest);
                Expansion::Made(made.map_err(|why| wrong(&why))?, typed)
            }
        }))
    }
}

/// The name behind a slash and the rest; none if the text is something else.
pub(crate) fn typed(text: &str) -> Option<(&str, &str)> {
    let line = text.trim().strip_prefix('/')?;
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    let (name, rest) = line.split_at_checked(end)?;
    (!name.is_empty()).then_some((name, rest.trim()))
}

/// The text with what was typed behind the name. Where the text names no arguments, they follow it.
///
/// # Errors
/// The result would be too long for an input.
pub(crate) fn expanded(text: &str, arguments: &str) -> Result<String, String> {
    let words = command_words(arguments);
    let mut made = String::new();
    let mut rest = text;
    let mut takes = false;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        made.push_str(before);
        let name = from.strip_prefix('$').unwrap_or_default();
        let number = name.chars().next().and_then(|c| c.to_digit(10));
        let is_alone = |length: usize| {
            name.get(length..)
                .and_then(|more| more.chars().next())
                .is_none_or(|next| !next.is_alphanumeric() && next != '_')
        };
        let (value, length) = match number {
            Some(number) if number > 0 && is_alone(1) => {
                let word = usize::try_from(number - 1)
                    .ok()
                    .and_then(|at| words.get(at));
                (word.map_or("", String::as_str), 1)
            }
            _ if name.starts_with(ALL) && is_alone(ALL.len()) => (arguments, ALL.len()),
            _ => {
                made.push('$');
                rest = name;
                continue;
            }
        };
        takes = true;
        made.push_str(value);
        rest = name.get(length..).unwrap_or_default();
        if made.len() > MAX_EXPANDED {
            break;
        }
    }
    made.push_str(rest);
    if !takes && !arguments.is_empty() {
        made.truncate(made.trim_end().len());
        made.push_str(&format!("\n\n{arguments}"));
    }
    let made = made.trim();
    match made.len() {
        0 => Err("it expands to an empty text".to_owned()),
        length if length > MAX_EXPANDED => Err(format!(
            "it expands to more than {} KiB",
            MAX_EXPANDED >> 10
        )),
        _ => Ok(made.to_owned()),
    }
}

/// Words between blanks; quotes keep blanks together.
#[must_use]
pub fn command_words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote = None;
    for c in arguments.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_behind_a_slash_is_a_command() {
        assert_eq!(
            typed("/review  src/a.rs b "),
            Some(("review", "src/a.rs b"))
        );
        assert_eq!(typed("/a:b"), Some(("a:b", "")));
        assert_eq!(typed("/review\nall"), Some(("review", "all")));
        for text in ["/", "/ review", "review", "see /review"] {
            assert_eq!(typed(text), None, "{text}");
        }
    }

    #[test]
    fn arguments_go_where_the_text_names_them() {
        for (text, arguments, expected) in [
            ("Look at $1, then $2.", "a 'b c' d", "Look at a, then b c."),
            ("All: $ARGUMENTS.", "a \"b\" ", "All: a \"b\" ."),
            ("$1 $1$2", "x", "x x"),
            ("No names.\n", "a b", "No names.\n\na b"),
            ("No names.", "", "No names."),
            (
                "Costs $12, $0, $ARGUMENTSX, $a and $",
                "z",
                "Costs $12, $0, $ARGUMENTSX, $a and $\n\nz",
            ),
            ("$1", "$ARGUMENTS", "$ARGUMENTS"),
        ] {
            assert_eq!(expanded(text, arguments).as_deref(), Ok(expected), "{text}");
        }
        assert!(expanded("$1", "").is_err());
        let text = "$ARGUMENTS".repeat(3000);
        let long = "x".repeat(1 << 19);
        assert!(expanded(&text, &long).is_err());
    }
}
