//! Expansions that may contain commands.

use crate::opaque::{OpaqueReason, WordFindings};
use crate::{arithmetic, variables};
use rable::{Node, NodeKind};

pub(crate) fn parameter(
    param: &str,
    op: Option<&str>,
    arg: Option<&str>,
    found: &mut WordFindings,
) {
    let subscript = param
        .split_once('[')
        .map(|(_, rest)| rest.trim_end_matches(']'));
    if subscript
        .is_some_and(|subscript| !matches!(subscript, "@" | "*") && arithmetic::may_run(subscript))
    {
        found.add(OpaqueReason::Hidden("a subscript"));
    }
    let arg = arg.unwrap_or_default();
    match op {
        Some(":") if arithmetic::may_run(arg) => {
            found.add(OpaqueReason::Hidden("arithmetic over variables"))
        }
        Some(op) if op.starts_with('@') && (op.contains('P') || arg.contains('P')) => {
            found.add(OpaqueReason::Hidden("a prompt"))
        }
        Some("=" | ":=") if variables::decides(param) => {
            found.add(OpaqueReason::Variable(param.to_owned()))
        }
        Some(_) | None => {}
    }
    live(arg, "an expansion", found);
}

/// Checks text in which the shell expands substitutions but which the parser does not parse.
pub(crate) fn live(text: &str, place: &'static str, found: &mut WordFindings) {
    let braces = text.match_indices("${").any(|(at, _)| {
        let name = text.get(at + 2..).unwrap_or_default();
        let rest = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        !rest.starts_with('}') || rest.len() == name.len()
    });
    if braces
        || ["$(", "`", "$[", "<(", ">("]
            .iter()
            .any(|opener| text.contains(opener))
    {
        found.add(OpaqueReason::Hidden(place));
    }
}

/// Whether an expression calculates with nothing but numbers. The parser bounds its depth.
pub(crate) fn only_numbers(node: &Node) -> bool {
    match &node.kind {
        NodeKind::ArithNumber { value } => !arithmetic::may_run(value),
        NodeKind::ArithBinaryOp { left, right, .. } | NodeKind::ArithComma { left, right } => {
            only_numbers(left) && only_numbers(right)
        }
        NodeKind::ArithUnaryOp { operand, .. } => only_numbers(operand),
        // Any other node is not only numbers.
        _ => false,
    }
}
