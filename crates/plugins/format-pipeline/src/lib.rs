//! Shorter results for a model: the encoding with the fewest tokens, and a budget. Functions from texts to texts;
//! they know no tool, no pod, no file and no clock.

pub mod budget;
pub mod encoding;
pub mod json;
pub mod strategy;
pub mod table;
pub mod token_counter;
pub mod toon;
pub mod tree;
pub mod trim;
pub mod truncation;
