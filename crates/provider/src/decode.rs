//! What every vendor's decoder is: bytes in, events out, whatever the fragmentation.

use crate::vendor_error::VendorError;
use llm_worker::ModelEvent;

/// The answer to one request, while its bytes come.
pub(crate) trait Decode: Default + Send {
    /// Takes some bytes.
    fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;

    /// Whether the vendor said that nothing follows.
    fn done(&self) -> bool;

    /// Whether the answer is one document, which shows by itself whether it is whole.
    fn one_document(&self) -> bool;

    /// The body came to its proper end, or the vendor said that nothing follows: yields the stop event, or says why
    /// there is none.
    fn finish(self, out: &mut Vec<ModelEvent>) -> Result<(), DecodeError>;
}

/// Why bytes did not make an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum DecodeError {
    /// The vendor reported an error where the answer should be.
    Vendor(VendorError),
    /// Not what this API's answers look like; says what.
    Malformed(String),
    /// The stream ended before the answer did.
    Cut,
}
