//! `[[ … ]]`: its words are expanded, and some are evaluated as arithmetic.

use crate::arithmetic;
use crate::opaque::{OpaqueReason, WordFindings};
use crate::walk::{MAX_DEPTH, PartWalk};
use rable::{Node, NodeKind};

impl PartWalk {
    pub(crate) fn condition(&mut self, node: &Node) {
        if self.depth >= MAX_DEPTH {
            self.odd(
                "[[",
                WordFindings {
                    why: Some(OpaqueReason::TooDeep),
                },
            );
            return;
        }
        self.depth += 1;
        match &node.kind {
            NodeKind::CondAnd { left, right } | NodeKind::CondOr { left, right } => {
                self.condition(left);
                self.condition(right);
            }
            NodeKind::CondNot { operand: inner } | NodeKind::CondParen { inner } => {
                self.condition(inner)
            }
            NodeKind::UnaryTest { op, operand } => {
                if op == "-v" || op == "-R" {
                    self.subscripted(operand);
                }
                self.condition(operand);
            }
            NodeKind::BinaryTest { op, left, right } => {
                if matches!(op.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") {
                    self.number(left);
                    self.number(right);
                }
                self.condition(left);
                self.condition(right);
            }
            NodeKind::CondTerm { value, .. } => self.term(value),
            NodeKind::Word { .. } => self.words_of("[[", [node]),
            // No other node is a condition.
            _ => self.hidden("[[", "a condition that is not known"),
        }
        self.depth -= 1;
    }

    fn subscripted(&mut self, node: &Node) {
        if let NodeKind::CondTerm { value, .. } | NodeKind::Word { value, .. } = &node.kind
            && !value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            self.hidden(value, "a subscript");
        }
    }

    fn number(&mut self, node: &Node) {
        if let NodeKind::CondTerm { value, .. } | NodeKind::Word { value, .. } = &node.kind
            && arithmetic::may_run(value)
        {
            self.hidden(value, "arithmetic over variables");
        }
    }

    fn term(&mut self, value: &str) {
        if ["${", "$(", "$[", "`", "<(", ">("]
            .iter()
            .any(|opener| value.contains(opener))
        {
            let mut found = WordFindings::default();
            self.again(value, None, &mut found);
            if value.contains('`') && value.contains('\\') {
                found.add(OpaqueReason::Hidden("backquotes"));
            }
            self.odd(value, found);
        }
    }
}
