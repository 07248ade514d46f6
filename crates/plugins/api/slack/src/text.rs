//! The text of messages: Slack escapes `&`, `<` and `>`, and writes links and mentions between `<` and `>`.

/// The text to send. Mentions of people and channels by their ids, such as `<@U012AB3CD>`, stay; those of everybody do not.
pub(crate) fn sent(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let end = mention(found).unwrap_or(1);
        let (found, after) = found.split_at(end);
        out.push_str(match found {
            "&" => "&amp;",
            "<" => "&lt;",
            ">" => "&gt;",
            mention => mention,
        });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The length of the mention at the beginning.
fn mention(text: &str) -> Option<usize> {
    let (inner, _) = text.strip_prefix('<')?.split_once('>')?;
    let id = inner.strip_prefix(['@', '#'])?;
    let is_id = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    (!id.is_empty() && id.bytes().all(is_id)).then_some(inner.len() + 2)
}

/// The text as it is shown: links as in Markdown, mentions with their ids as [`sent`] takes them.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(&plain(before));
        let Some((inner, after)) = after.split_once('>') else {
            out.push('<');
            rest = after;
            continue;
        };
        let (target, label) = inner.split_once('|').unwrap_or((inner, ""));
        let target = plain(target);
        let label = plain(label);
        match (target.chars().next(), label.as_str()) {
            (Some('@' | '#'), "") => out.push_str(&format!("<{target}>")),
            (Some('@' | '#'), label) => out.push_str(&format!("<{target}> ({label})")),
            (Some('!'), "") => out.push_str(&target.replacen('!', "@", 1)),
            (Some('!'), label) => out.push_str(label),
            (_, "") => out.push_str(&target),
            (_, label) if target.ends_with(label) => out.push_str(label),
            (_, label) => out.push_str(&format!("[{label}]({target})")),
        }
        rest = after;
    }
    out.push_str(&plain(rest));
    out
}

/// A text without escapes, each read once.
fn plain(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_shown_as_it_was() {
        for (text, wire) in [
            ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
            ("&lt;", "&amp;lt;"),
            ("hi <@U012AB3CD>, see <#C1>", "hi <@U012AB3CD>, see <#C1>"),
            ("наука <<", "наука &lt;&lt;"),
            ("", ""),
        ] {
            assert_eq!(sent(text), wire);
            assert_eq!(shown(wire), text);
        }
        // Nobody is called who is not named.
        for (text, wire) in [
            ("<!channel>", "&lt;!channel&gt;"),
            ("<@>", "&lt;@&gt;"),
            ("<@U1|x>", "&lt;@U1|x&gt;"),
            ("<https://a|b>", "&lt;https://a|b&gt;"),
            ("<@U1", "&lt;@U1"),
        ] {
            assert_eq!(sent(text), wire);
        }
    }

    #[test]
    fn links_and_mentions_are_shown() {
        for (wire, text) in [
            (
                "<https://a.example/?x=1&amp;y=2>",
                "https://a.example/?x=1&y=2",
            ),
            (
                "see <https://a.example|the page>",
                "see [the page](https://a.example)",
            ),
            ("<mailto:a@b.example|a@b.example>", "a@b.example"),
            ("<!here> <!subteam^S1|@team>", "@here @team"),
            ("<#C1|general> <@U1>", "<#C1> (general) <@U1>"),
            ("<open &amp;", "<open &"),
            ("<>", ""),
        ] {
            assert_eq!(shown(wire), text);
        }
    }
}
