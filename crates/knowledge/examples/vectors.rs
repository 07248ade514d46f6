//! Prints the vector of each line of standard input, as JSON, by the static model in a directory:
//! `cargo run -p knowledge --example vectors DIR < LINES`. For comparing with the model's own program.
#![allow(
    clippy::unwrap_used,
    reason = "a measurement: a line that fails ends it"
)]

use authority::{Access, Workspace};
use knowledge::{Embedder, StaticModel};
use std::path::PathBuf;

fn main() {
    let dir = PathBuf::from(std::env::args_os().nth(1).unwrap());
    let files = Workspace::open(&ambient::claim(), &dir, &dir, Access::Read).unwrap();
    let model = StaticModel::read(&files).unwrap();
    for line in std::io::stdin().lines() {
        let text: String = serde_json::from_str(&line.unwrap()).unwrap();
        let vectors = model.embed(&[&text]).unwrap();
        println!("{}", serde_json::to_string(&vectors).unwrap());
    }
}
