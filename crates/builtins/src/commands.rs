//! `builtin:commands`: the commands that people wrote as Markdown files. Off where there is none. The host finds them, and
//! expands one where a person types its name; the model sees nothing of them before.

use crate::front_matter::FrontMatter;
use crate::skills::{Origin, one_line};
use authority::text::Lines;
use pod::feature::{
    CommandCheck, CommandDeclaration, FeatureDescriptor, FeatureId, FeatureInstallContext,
    FeatureInstallError, FeatureModule, MAX_COMMAND,
};
use std::fmt;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("commands");

/// Most bytes of a file of a command: its text and its front matter.
pub const MAX_FILE: u64 = 48 * 1024;
/// Longest description and hint, in characters; each may have four bytes.
const MAX_ABOUT: usize = 240;
const MAX_HINT: usize = 60;

/// The feature that adds the commands that were found, and what is asked before one is expanded.
pub struct Commands(pub Vec<CommandDeclaration>, pub Option<CommandCheck>);

impl fmt::Debug for Commands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Commands").field(&self.0).finish()
    }
}

/// The feature without a command.
pub(crate) fn declared() -> FeatureDescriptor {
    Commands(Vec::new(), None).descriptor()
}

impl FeatureModule for Commands {
    fn descriptor(&self) -> FeatureDescriptor {
        let descriptor = FeatureDescriptor::builder(ID)
            .display_name("Commands")
            .version(env!("CARGO_PKG_VERSION"));
        let commands = self.0.iter().cloned();
        commands
            .fold(descriptor, |descriptor, command| {
                descriptor.command(command)
            })
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        if let Some(check) = &self.1 {
            ctx.check_commands(CommandCheck::clone(check));
        }
        Ok(())
    }
}

/// Reads the file of a command.
///
/// # Errors
/// The name or the text does not fit, or the front matter cannot be read.
pub fn command(name: &str, text: &str, origin: &Origin) -> Result<CommandDeclaration, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if name.len() > 64
        || !name.chars().all(fits)
        || !name.starts_with(|c: char| c.is_ascii_alphanumeric())
    {
        return Err(
            "its name is not 1 to 64 ASCII letters, digits and `-_.:`, a letter or digit first"
                .to_owned(),
        );
    }
    let (fields, body) = FrontMatter::read(text)?;
    let text = body.trim().replace("\r\n", "\n");
    if text.is_empty() {
        return Err("it has no text".to_owned());
    }
    if text.len() > MAX_COMMAND {
        return Err(format!("its text has more than {} KiB", MAX_COMMAND / 1024));
    }
    if let Some(c) = authority::text::find(&text, Lines::Many) {
        let c = c.escape_unicode();
        return Err(format!(
            "its text contains {c}, a control, direction or invisible character"
        ));
    }
    let first = text.lines().next().unwrap_or_default();
    let given = |field: &str| fields.get(field).filter(|text| !text.trim().is_empty());
    let about = given("description").unwrap_or(first);
    let command = CommandDeclaration {
        name: name.to_owned(),
        about: one_line(about, MAX_ABOUT),
        argument_hint: given("argument-hint").map(|hint| one_line(hint, MAX_HINT)),
        source: origin.to_string(),
        text,
    };
    // One that the registry refuses would cost all others.
    command.wrong().map_or(Ok(command), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_command() {
        let text = "---\ndescription: Look: closely\nargument-hint: [file] [line]\nallowed-tools: Bash(rm:*)\n---\n\nLook at $1.\r\n";
        let made = command("look", text, &Origin::Project).unwrap();
        assert_eq!(
            (
                made.about.as_str(),
                made.argument_hint.as_deref(),
                made.text.as_str()
            ),
            ("Look: closely", Some("[file] [line]"), "Look at $1.")
        );
        assert_eq!(made.source, "this repository");
        let plain = command("a:b", "Just do it.\nNow.", &Origin::Person).unwrap();
        assert_eq!(
            (plain.about.as_str(), plain.text.as_str()),
            ("Just do it.", "Just do it.\nNow.")
        );
        let lines = command(
            "c",
            "---\ndescription: ''\nargument-hint: ''\n---\nOne.\r\nTwo.",
            &Origin::Person,
        );
        let lines = lines.unwrap();
        assert_eq!(
            (lines.about.as_str(), lines.text.as_str()),
            ("One.", "One.\nTwo.")
        );
        let problems = Commands(vec![lines, made, plain], None)
            .descriptor()
            .problems();
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn what_is_no_command_is_named() {
        let long = "x".repeat(MAX_COMMAND + 1);
        for (name, text, why) in [
            ("a b", "x", "its name"),
            ("-a", "x", "its name"),
            ("a", "to\u{202e}day", "\\u{202e}"),
            ("a", "to\u{7}day", "\\u{7}"),
            ("a", "---\na: b\n---\n  \n", "no text"),
            ("a", "---\na: b\n", "does not end"),
            ("a", &long, "more than 32 KiB"),
        ] {
            let made = command(name, text, &Origin::Person);
            assert!(
                made.as_ref().is_err_and(|is| is.contains(why)),
                "{why}: {made:?}"
            );
        }
    }
}
