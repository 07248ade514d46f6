//! A static model: one vector for each token, read from files. The vector of a text is the mean of those of its tokens. Nothing
//! is downloaded.

mod tokens;

use crate::vectors::{Embedder, unit};
use crate::{Error, ErrorKind};
use authority::{Workspace, escape};
use serde::Deserialize;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use tokens::Tokenizer;

/// The files of a model.
const MATRIX: &str = "model.safetensors";
const TOKENIZER: &str = "tokenizer.json";

/// Bytes of a matrix, and of its tokenizer.
const MAX_MATRIX: u64 = 512 << 20;
const MAX_TOKENIZER: u64 = 64 << 20;

/// Texts that are embedded between two transactions.
const BATCH: usize = 256;

/// A model of two files.
#[derive(Debug)]
pub struct StaticModel {
    name: String,
    tokenizer: Tokenizer,
    /// A row of `width` numbers for each token.
    matrix: Vec<f32>,
    width: usize,
    /// How much a token counts, and which row it has, where the file says so.
    weights: Option<Vec<f32>>,
    rows: Option<Vec<usize>>,
}

impl StaticModel {
    /// Reads `model.safetensors` and `tokenizer.json` in the project directory of `dir`: a matrix `embeddings` or
    /// `embedding.weight` of 16 or 32 bit numbers, with optional `weights` and `mapping`.
    ///
    /// # Errors
    /// `Unavailable` when a file is missing, too long, or of a form that is not known.
    pub fn read(dir: &Workspace) -> Result<Self, Error> {
        let matrix = bytes(dir, MATRIX, MAX_MATRIX)?;
        let tokenizer = bytes(dir, TOKENIZER, MAX_TOKENIZER)?;
        let wrong = |file: &str, why: String| {
            let path = dir.project().join(file);
            let text = format!("{} is no static model: {why}", escape(&path));
            Error::new(ErrorKind::Unavailable, text)
        };
        let mut digest = blake3::Hasher::new();
        digest.update(&matrix).update(&tokenizer);
        let digest = digest.finalize().to_hex();
        let tokenizer = Tokenizer::parse(&tokenizer).map_err(|why| wrong(TOKENIZER, why))?;
        let tensors = Tensors::parse(&matrix).map_err(|why| wrong(MATRIX, why))?;
        let (shape, matrix) = tensors.matrix().map_err(|why| wrong(MATRIX, why))?;
        let column = |name| tensors.column(name).map_err(|why| wrong(MATRIX, why));
        let rows = column("mapping")?;
        Ok(Self {
            name: format!("static:{}", digest.get(..32).unwrap_or_default()),
            tokenizer,
            matrix,
            width: shape,
            weights: column("weights")?,
            rows: rows.map(|rows| rows.into_iter().map(|row| row as usize).collect()),
        })
    }

    /// The vector of a text; all zeros if it has no token of the model.
    fn vector(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0; self.width];
        for token in self.tokenizer.tokens(text) {
            let token = token as usize;
            let row = match &self.rows {
                Some(rows) => rows.get(token).copied(),
                None => Some(token),
            };
            let weight = match &self.weights {
                Some(weights) => weights.get(token).copied().unwrap_or(1.0),
                None => 1.0,
            };
            let from = row.and_then(|row| row.checked_mul(self.width));
            let row = from.and_then(|from| self.matrix.get(from..from.checked_add(self.width)?));
            for (sum, value) in sum.iter_mut().zip(row.unwrap_or_default()) {
                *sum += value * weight;
            }
        }
        unit(&mut sum);
        sum
    }
}

impl Embedder for StaticModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

fn bytes(dir: &Workspace, name: &str, most: u64) -> Result<Vec<u8>, Error> {
    let at = dir.inside(Path::new(name))?;
    let mut bytes = Vec::new();
    let file = dir.open_file(&at)?.take(most + 1);
    let failed = |why: String| {
        Error::new(
            ErrorKind::Unavailable,
            format!("{}: {why}", escape(at.path())),
        )
    };
    { file }
        .read_to_end(&mut bytes)
        .map_err(|error| failed(error.to_string()))?;
    match bytes.len() as u64 > most {
        true => Err(failed(format!("over {most} bytes"))),
        false => Ok(bytes),
    }
}

/// The arrays of a safetensors file.
struct Tensors<'b> {
    known: HashMap<String, Tensor>,
    data: &'b [u8],
}

#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl<'b> Tensors<'b> {
    fn parse(file: &'b [u8]) -> Result<Self, String> {
        let cut = || "it ends early".to_owned();
        let (length, rest) = file.split_first_chunk::<8>().ok_or_else(cut)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
        let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
        let header: HashMap<String, serde_json::Value> =
            serde_json::from_slice(header).map_err(|error| error.to_string())?;
        let arrays = header
            .into_iter()
            .filter(|(name, _)| name != "__metadata__");
        let known = arrays.map(|(name, array)| {
            let tensor = serde_json::from_value(array).map_err(|error| error.to_string())?;
            Ok((name, tensor))
        });
        Ok(Self {
            known: known.collect::<Result<_, String>>()?,
            data,
        })
    }

    /// The width of the vectors, and all of them.
    fn matrix(&self) -> Result<(usize, Vec<f32>), String> {
        let names = ["embeddings", "embedding.weight"];
        let found = names.into_iter().find_map(|name| self.known.get(name));
        let found = found.ok_or("it has no array `embeddings` or `embedding.weight`")?;
        match found.shape.as_slice() {
            [height, width @ 1..=crate::vectors::MAX_WIDTH] => {
                let numbers = self.numbers(found)?;
                match height.checked_mul(*width) == Some(numbers.len()) {
                    true => Ok((*width, numbers)),
                    false => Err("the shape of its array is not its size".to_owned()),
                }
            }
            other => Err(format!("its array has the shape {other:?}")),
        }
    }

    fn column(&self, name: &str) -> Result<Option<Vec<f32>>, String> {
        let found = self.known.get(name);
        found.map(|column| self.numbers(column)).transpose()
    }

    fn numbers(&self, of: &Tensor) -> Result<Vec<f32>, String> {
        let (from, to) = of.data_offsets;
        let bytes = self.data.get(from..to).ok_or("it ends early")?;
        let numbers = match of.dtype.as_str() {
            "F32" => each(bytes, f32::from_le_bytes),
            "F16" => each(bytes, |bytes| half(u16::from_le_bytes(bytes))),
            "BF16" => each(bytes, |bytes| {
                f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
            }),
            "F64" => each(bytes, |bytes| f64::from_le_bytes(bytes) as f32),
            "I32" => each(bytes, |bytes| i32::from_le_bytes(bytes) as f32),
            "I64" => each(bytes, |bytes| i64::from_le_bytes(bytes) as f32),
            other => return Err(format!("its numbers are {other}")),
        };
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err("it has numbers that are not finite".to_owned());
        }
        Ok(numbers)
    }
}

fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes
        .as_chunks::<N>()
        .0
        .iter()
        .copied()
        .map(number)
        .collect()
}

/// A number of 16 bits: a sign, five bits of exponent, ten of fraction.
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let fraction = u32::from(bits & 0x3ff);
    match (bits >> 10) & 0x1f {
        0 => {
            let small = fraction as f32 / f32::from(1u16 << 14) / 1024.0;
            f32::from_bits(small.to_bits() | sign)
        }
        0x1f => f32::from_bits(sign | 0x7f80_0000 | (fraction << 13)),
        exponent => f32::from_bits(sign | ((u32::from(exponent) + 112) << 23) | (fraction << 13)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use authority::Access;
    use serde_json::json;
    use std::fs;

    /// Files of a model with three words; the matrix has these bytes behind its header.
    fn model(header: &serde_json::Value, data: &[u8]) -> Result<StaticModel, Error> {
        let dir = tempfile::tempdir().unwrap();
        let header = header.to_string();
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        file.extend(data);
        fs::write(dir.path().join(MATRIX), file).unwrap();
        let tokenizer = json!({
            "normalizer": null, "pre_tokenizer": { "type": "BertPreTokenizer" },
            "model": { "type": "WordPiece", "unk_token": "[UNK]", "vocab": { "[UNK]": 0, "ship": 1, "sea": 2 } },
        });
        fs::write(dir.path().join(TOKENIZER), tokenizer.to_string()).unwrap();
        let ambient = ambient::claim();
        let dir = Workspace::open(&ambient, dir.path(), dir.path(), Access::Read).unwrap();
        StaticModel::read(&dir)
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    #[test]
    fn a_text_is_the_mean_of_its_words() {
        let header =
            json!({ "embeddings": { "dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24] } });
        let plain = model(&header, &floats(&[9.0, 9.0, 3.0, 0.0, 0.0, 4.0])).unwrap();
        let vectors = plain.embed(&["ship", "ship sea thing", "thing"]).unwrap();
        assert_eq!(vectors, [[1.0, 0.0], [0.6, 0.8], [0.0, 0.0]]);
        // The words share rows, and count by their weights; numbers of 16 bits.
        let header = json!({
            "__metadata__": { "format": "pt" },
            "embeddings": { "dtype": "F16", "shape": [2, 2], "data_offsets": [0, 8] },
            "weights": { "dtype": "F32", "shape": [3], "data_offsets": [8, 20] },
            "mapping": { "dtype": "I32", "shape": [3], "data_offsets": [20, 32] },
        });
        let mut data = [0x3c00u16, 0, 0, 0xbc00].map(u16::to_le_bytes).concat();
        data.extend(floats(&[1.0, 3.0, 4.0]));
        data.extend([1i32, 0, 1].map(i32::to_le_bytes).concat());
        let mapped = model(&header, &data).unwrap();
        assert_eq!(mapped.embed(&["sea ship"]).unwrap(), [[0.6, -0.8]]);
        assert_ne!(plain.name(), mapped.name());
    }

    #[test]
    fn numbers_of_16_bits() {
        for (bits, value) in [
            (0x0001, 2f32.powi(-24)),
            (0x03ff, 2f32.powi(-14) - 2f32.powi(-24)),
            (0x0400, 2f32.powi(-14)),
            (0x3555, 0.333_251_95),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(half(bits), value, "{bits:x}");
        }
        assert!(half(0x8000).is_sign_negative() && half(0x7e00).is_nan());
    }

    #[test]
    fn files_that_are_no_model_are_refused() {
        let array = |array: serde_json::Value| json!({ "embeddings": array });
        for (header, data) in [
            (json!({}), 24),
            (json!([]), 24),
            (
                array(json!({ "dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24] })),
                23,
            ),
            (
                array(json!({ "dtype": "F32", "shape": [3, 2], "data_offsets": [0, 20] })),
                24,
            ),
            (
                array(json!({ "dtype": "F32", "shape": [6], "data_offsets": [0, 24] })),
                24,
            ),
            (
                array(json!({ "dtype": "F32", "shape": [0, 0], "data_offsets": [24, 24] })),
                24,
            ),
            (
                array(json!({ "dtype": "I8", "shape": [3, 2], "data_offsets": [0, 6] })),
                24,
            ),
            (
                array(json!({ "dtype": "F32", "shape": [usize::MAX, 2], "data_offsets": [8, 0] })),
                24,
            ),
        ] {
            let refused = model(&header, &vec![0; data]).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unavailable, "{header}");
        }
    }
}
