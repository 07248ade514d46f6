#!/usr/bin/env bash
# serde_json reads the integer `-0` as a float, except into 128 bits.
#
# Expected: RFC 8259 allows `-0`, and it is a number without fraction and exponent, so it fits each signed integer type.
#   Python's json and JavaScript's parse agree that it is zero.
# Happens: `i64` (and every smaller type) refuses `-0` with "floating point `-0.0`", `i128` reads the same text as 0, and a
#   `Value` writes it back as `-0.0`. A whole number in another notation (`5e0`, `3.0`) is refused by all of them.
# Matters: a model that writes `-0` for an offset gets an error about a float that it did not write; a document that only
#   passes through a `Value` gets other bytes, and another digest. An integer argument has to be read from its text.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "minus-zero"
version = "0.0.0"
edition = "2021"

[dependencies]
serde = "=1.0.229"
serde_json = "=1.0.154"

[workspace]
TOML
cat >src/main.rs <<'RS'
fn read<T: serde::de::DeserializeOwned + ToString>(text: &str) -> String {
    serde_json::from_str::<T>(text).map_or("refused".into(), |number| number.to_string())
}

fn main() {
    for text in ["0", "-1", "-0", "5e0"] {
        println!(
            "{text}: i8 {} i64 {} i128 {} Value {}",
            read::<i8>(text),
            read::<i64>(text),
            read::<i128>(text),
            read::<serde_json::Value>(text)
        );
    }
}
RS
cargo run -q >seen
cargo tree -q --depth 1 --prefix none | grep '^serde'
cat seen
cat >expected <<'TXT'
0: i8 0 i64 0 i128 0 Value 0
-1: i8 -1 i64 -1 i128 -1 Value -1
-0: i8 refused i64 refused i128 0 Value -0.0
5e0: i8 refused i64 refused i128 refused Value 5.0
TXT
diff expected seen || { echo 'changed: read the difference above' >&2; exit 1; }
echo 'as described'
