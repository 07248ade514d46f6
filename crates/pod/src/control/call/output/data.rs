//! The JSON value beside a call's result: without secrets, bounded, and kept in the record or, where it is long, in a blob.

use super::{CallOutput, INLINE};
use crate::record::{Output, ResultData, Stored};
use llm_worker::tool::{CallHost, data};
use serde_json::Value;

impl CallOutput {
    /// The value as hooks may see it; none if it is over a limit, and the person is warned. `null` is no value.
    pub(super) fn bounded_data(&self, value: Value) -> Option<Value> {
        if value.is_null() {
            return None;
        }
        let checked = data::bytes(&value);
        let kept = checked.map_err(|why| self.warn(&format!("its data is not kept: {why}")));
        kept.ok()?;
        let clean = |text: &str| match self.redactor.text(text) {
            std::borrow::Cow::Borrowed(_) => None,
            std::borrow::Cow::Owned(clean) => Some(clean),
        };
        Some(data::map_texts(value, &clean))
    }

    /// Stores it. A value that cannot be stored is not there, and the person is warned: the result itself is.
    pub(super) fn kept_data(&self, value: Value) -> Option<ResultData> {
        let value = self.bounded_data(value)?;
        let text = value.to_string();
        if text.len() <= INLINE {
            return Some(ResultData {
                value: Some(value),
                output: None,
            });
        }
        let blob = self.blobs.put(text.as_bytes());
        let blob = blob.map_err(|error| self.warn(&format!("its data is not kept: {error}")));
        Some(ResultData {
            value: None,
            output: Some(Output::of_data(Stored::from(blob.ok()?))),
        })
    }
}
