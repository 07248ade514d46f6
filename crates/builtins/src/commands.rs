//! `builtin:commands`: the commands that people wrote as Markdown files. Off where there is none. The host finds them, and
//! expands one where a person types its name; the model sees nothing of them before.

use crate::front_matter::FrontMatter;
use crate::skills::{Origin, one_line};
use pod::feature::{
    CommandDeclaration, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, MAX_COMMAND,
};

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("commands");

/// Most commands of one start.
pub const MAX_COMMANDS: usize = 64;
/// Most bytes of a file of a command: its text and its front matter.
pub const MAX_FILE: u64 = 48 * 1024;
/// Longest description and hint, in characters; each may have four bytes.
const MAX_ABOUT: usize = 240;
const MAX_HINT: usize = 60;

/// The feature that adds the commands that were found.
#[derive(Debug)]
pub struct Commands(pub Vec<CommandDeclaration>);

/// The feature without a command.
pub(crate) fn declared() -> FeatureDescriptor {
    Commands(Vec::new()).descriptor()
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

    fn install(&self, _: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
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
        return Err("its name is not 1 to 64 letters, digits and `-_.`".to_owned());
    }
    let (fields, body) = FrontMatter::read(text)?;
    let text: String = body.trim().chars().filter(|c| is_text(*c)).collect();
    if text.is_empty() {
        return Err("it has no text".to_owned());
    }
    if text.len() > MAX_COMMAND {
        return Err(format!("its text has more than {} KiB", MAX_COMMAND / 1024));
    }
    let first = text.lines().next().unwrap_or_default();
    let about = fields.get("description").unwrap_or(first);
    Ok(CommandDeclaration {
        name: name.to_owned(),
        about: one_line(about, MAX_ABOUT),
        argument_hint: fields
            .get("argument-hint")
            .map(|hint| one_line(hint, MAX_HINT)),
        source: origin.to_string(),
        text,
    })
}

/// Characters of a text; the host refuses declarations with others.
fn is_text(c: char) -> bool {
    c == '\n' || c == '\t' || !c.is_control()
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
        let problems = Commands(vec![made, plain]).descriptor().problems();
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn what_is_no_command_is_named() {
        let long = "x".repeat(MAX_COMMAND + 1);
        for (name, text, why) in [
            ("a b", "x", "its name"),
            ("-a", "x", "its name"),
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
