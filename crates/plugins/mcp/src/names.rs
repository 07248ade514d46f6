//! The names of servers, and of their tools before a model.

/// The longest name of a server, in bytes: what is left of a tool's name has room for most tools.
pub const MAX_SERVER_NAME: usize = 24;

/// The longest name of a tool before a model, and of a command, in bytes.
const MAX_TOOL_NAME: usize = 64;

/// How much of the digest of a long name stands at its end, in hexadecimal digits.
const DIGEST: usize = 8;

/// Whether a text is the name of a server: 1 to 24 characters of `a-z`, `0-9` and `-`.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_SERVER_NAME).contains(&name.len()) && name.bytes().all(fits)
}

/// What a model calls a tool of a server. Other characters than those of names become `_`, and a long name is cut before a
/// part of its digest.
pub(crate) fn model_name(server: &str, tool: &str) -> String {
    named(format!("mcp__{server}__"), tool, "_-")
}

/// What a person types for a prompt of a server, mapped in the same way.
pub(crate) fn command_name(server: &str, prompt: &str) -> String {
    named(format!("{server}:"), prompt, "_-.:")
}

/// `own` behind `name`, with letters, digits and these other characters.
fn named(mut name: String, own: &str, others: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    name.extend(own.chars().map(|c| if fits(c) { c } else { '_' }));
    if name.len() > MAX_TOOL_NAME {
        let digest = blake3::hash(own.as_bytes()).to_hex();
        // All of it is ASCII.
        name.truncate(MAX_TOOL_NAME - DIGEST - 1);
        name.push('_');
        name.extend(digest.chars().take(DIGEST));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_have_names_that_models_take() {
        for (tool, expected) in [
            ("get_file", "mcp__git__get_file"),
            ("show log/größe", "mcp__git__show_log_gr__e"),
            ("a.b", "mcp__git__a_b"),
            ("", "mcp__git__"),
        ] {
            assert_eq!(model_name("git", tool), expected, "{tool}");
        }
        assert_eq!(command_name("git", "a.b c"), "git:a.b_c");
        assert_eq!(command_name("git", &"x".repeat(80)).len(), 64);
        let long = |end: &str| model_name("git", &format!("{}{end}", "x".repeat(80)));
        assert_eq!(long("a").len(), 64);
        assert_ne!(long("a"), long("b"));
        assert!(is_server_name("git-2") && is_server_name(&"x".repeat(24)));
        for name in ["", "Git", "a_b", "a/b", &"x".repeat(25)] {
            assert!(!is_server_name(name), "{name}");
        }
    }
}
