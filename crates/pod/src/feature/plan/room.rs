//! What all features together may put before the model, and at one point: each is bounded by itself, but the sum goes
//! into one record of the log.

use crate::feature::diagnostic::{DiagnosticCode, FeatureDiagnostic};
use crate::feature::id::FeatureId;
use crate::hook::HookPoint;
use std::collections::BTreeMap;

/// Most bytes, written as JSON, of all tools and instructions. The rest of a system prompt still has room beside them
/// in a record.
pub(in crate::feature) const MAX_SURFACE: usize = 768 * 1024;

/// Most transforms at one point: what each of them did stands in the record of the call.
pub(in crate::feature) const MAX_TRANSFORMS: usize = 128;

/// What stands around one tool in its record.
const AROUND: usize = 64;

/// What is left of it.
pub(in crate::feature) struct Room {
    bytes: usize,
    transforms: BTreeMap<HookPoint, usize>,
}

/// What one feature takes.
#[derive(Default)]
pub(in crate::feature) struct Wanted {
    bytes: usize,
    transforms: BTreeMap<HookPoint, usize>,
}

impl Wanted {
    pub(in crate::feature) fn tool(&mut self, name: &str, description: &str, schema: &str) {
        self.bytes += AROUND + [name, description, schema].into_iter().map(written).sum::<usize>();
    }

    pub(in crate::feature) fn instruction(&mut self, text: &str) {
        self.bytes += AROUND + written(text);
    }

    pub(in crate::feature) fn transform(&mut self, point: HookPoint) {
        *self.transforms.entry(point).or_default() += 1;
    }
}

impl Room {
    pub(in crate::feature) fn new() -> Self {
        Self { bytes: MAX_SURFACE, transforms: BTreeMap::new() }
    }

    /// Takes all that a feature wants, or nothing.
    pub(in crate::feature) fn take(&mut self, id: &FeatureId, wanted: Wanted) -> Result<(), Box<FeatureDiagnostic>> {
        let Wanted { bytes, transforms } = wanted;
        let full = |message| Err(Box::new(FeatureDiagnostic::new(DiagnosticCode::TooManyFeatures, id, message)));
        let Some(left) = self.bytes.checked_sub(bytes) else {
            let left = self.bytes;
            return full(format!(
                "the tools and instructions of {id} have {bytes} bytes and only {left} of {MAX_SURFACE} are left beside \
                 those before it; switch off what is not needed"
            ));
        };
        let have = |point| self.transforms.get(point).copied().unwrap_or_default();
        if let Some((point, _)) = transforms.iter().find(|(point, more)| have(point) + **more > MAX_TRANSFORMS) {
            return full(format!("{id} has transforms at {point}, where {MAX_TRANSFORMS} at most stand already"));
        }
        self.bytes = left;
        for (point, more) in transforms {
            *self.transforms.entry(point).or_default() += more;
        }
        Ok(())
    }
}

/// Bytes of a text as a JSON string.
fn written(text: &str) -> usize {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(byte).sum()
}
