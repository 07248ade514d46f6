//! The newest output of the running calls, from deltas. The record of a call's result replaces it.

use std::collections::VecDeque;

/// Bytes of an output that are kept at least, once there are more than twice as many: the newest.
pub const MAX_OUTPUT: usize = 4 << 10;

/// Outputs that are kept, and the bytes of a call's name; a pod has fewer.
pub const MAX_OUTPUTS: usize = 64;
const MAX_CALL: usize = 64;

/// Lines that a view keeps free at most, so that it does not become lower while a call runs.
const MAX_ROWS: usize = 32;

/// The end of the output of a running call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveOutput {
    pub text: String,
    /// How many lines that are not blank it had at most, up to a bound.
    pub rows: usize,
    /// Another number with each part, to know it again.
    pub revision: u64,
}

/// The outputs of the running calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outputs {
    calls: VecDeque<(String, LiveOutput)>,
}

impl Outputs {
    /// Appends a part; `anew`: it does not continue what there is.
    pub fn take(&mut self, call: &str, part: &str, anew: bool) {
        if call.len() > MAX_CALL {
            return;
        }
        let at = self
            .calls
            .iter()
            .position(|(known, _)| known == call)
            .unwrap_or_else(|| {
                self.calls
                    .drain(..(self.calls.len() + 1).saturating_sub(MAX_OUTPUTS));
                self.calls
                    .push_back((call.to_owned(), LiveOutput::default()));
                self.calls.len() - 1
            });
        let Some((_, output)) = self.calls.get_mut(at) else {
            return;
        };
        if anew {
            output.text.clear();
        }
        output.text.push_str(part);
        if output.text.len() > 2 * MAX_OUTPUT {
            output.text.drain(
                ..output
                    .text
                    .floor_char_boundary(output.text.len() - MAX_OUTPUT),
            );
        }
        output.rows = output
            .text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(MAX_ROWS)
            .count()
            .max(output.rows);
        output.revision += 1;
    }

    /// The output of this call, if something came of it.
    #[must_use]
    pub fn of(&self, call: &str) -> Option<&LiveOutput> {
        self.calls
            .iter()
            .find(|(known, _)| known == call)
            .map(|(_, output)| output)
    }

    /// How many calls have one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.calls.len()
    }

    /// The call has its result.
    pub fn forget(&mut self, call: &str) {
        self.calls.retain(|(known, _)| known != call);
    }

    /// No call runs, or their output is not continued.
    pub fn clear(&mut self) {
        self.calls.clear();
    }
}
