//! Reading pages of the web over a grant of the network: [`fetch`] gets one, [`body`] decides what it is, [`page`]
//! makes text of HTML.
//!
//! What comes back was written by a stranger. It is bounded in size and time, freed of what a terminal or a model
//! would read and a person would not see, and marked as data with the address it came from.

mod block;
mod body;
pub mod fetch;
mod page;

/// `text` without control characters but line ends and tabs, without marks that change the direction of text, and
/// without characters that only programs see: what is read is what a person would see.
fn harmless(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || is_unseen(*c))).collect()
}

fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_taken_out() {
        let text = "a\u{1b}[31mb\u{7}\u{9b}\tc\r\nd\u{202e}e\u{200b}f\u{e0041}\u{e0042}g\u{feff}\u{0}ä日";
        assert_eq!(harmless(text), "a[31mb\tc\ndefgä日");
    }
}
