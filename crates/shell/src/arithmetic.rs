//! Detecting arithmetic that can run commands: the value of a variable is evaluated as an expression, and subscripts in
//! it are expanded.

/// Whether evaluating `text` may do more than calculate with numbers that are in it.
pub(crate) fn may_run(text: &str) -> bool {
    let without_counts = text.replace("$#", "0").replace("$?", "0");
    without_counts
        .chars()
        .any(|c| c.is_alphabetic() || matches!(c, '_' | '$' | '`' | '['))
}
