//! Limits that are checked before parsing, so that the parser neither takes long nor overflows its stack.

use crate::command_line::{CommandLine, Part, one_line};
use crate::opaque::{MAX_BYTES, OpaqueReason};
use crate::walk;

/// Limit of the square of the number of substitutions times the bytes. The parser reads the content of a substitution
/// again for each enclosing one: at this bound it takes about half a second, and a command of 2 KiB may have 32 of
/// them.
const MAX_REREAD: usize = 2 * 1024 * 1024;

/// Stack for parsing: the longest text of only opening brackets needs less than half of it in a debug build.
const STACK: usize = 64 * 1024 * 1024;

/// The longest text that is parsed on the stack of the caller: of opening brackets alone it needs half a MiB in a debug
/// build, and most commands are shorter. To start a thread takes longer than to parse one of them.
const SHORT: usize = 100;

/// Parses, a longer text in a thread of its own, which has the stack for it; a panic of the parser ends there.
#[allow(
    clippy::disallowed_methods,
    reason = "the one thread of this crate; it ends before the function does"
)]
pub(crate) fn parse(text: &str) -> CommandLine {
    if let Some(why) = refuse(text) {
        return opaque(text, why);
    }
    let parse = || walk::script(text);
    let parsed = if text.len() <= SHORT {
        Ok(std::panic::catch_unwind(parse))
    } else {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            Ok(thread.spawn_scoped(scope, parse)?.join())
        })
    };
    match parsed {
        Ok(Ok(Ok(script))) => script,
        Ok(Ok(Err(why))) => opaque(text, why),
        Ok(Err(_)) => opaque(text, OpaqueReason::Syntax("the parser failed".into())),
        Err(std::io::Error { .. }) => opaque(
            text,
            OpaqueReason::Syntax("no thread was free to parse it".into()),
        ),
    }
}

fn refuse(text: &str) -> Option<OpaqueReason> {
    if text.len() > MAX_BYTES {
        return Some(OpaqueReason::TooLong);
    }
    let strange = |c: &char| {
        (c.is_control() && !matches!(c, '\n' | '\t')) || (c.is_whitespace() && !c.is_ascii())
    };
    if let Some(c) = text.chars().find(strange) {
        return Some(OpaqueReason::Character(c.into()));
    }
    let pairs = ["$(", "<(", ">("]
        .iter()
        .map(|opener| text.matches(opener).count())
        .sum::<usize>();
    let substitutions = pairs + text.matches('`').count().div_ceil(2);
    (substitutions * substitutions * text.len() > MAX_REREAD).then_some(OpaqueReason::TooDeep)
}

fn opaque(text: &str, why: OpaqueReason) -> CommandLine {
    let part = Part {
        text: one_line(text),
        opaque: Some(why),
        ..Part::default()
    };
    CommandLine {
        parts: vec![part],
        functions: Vec::new(),
    }
}
