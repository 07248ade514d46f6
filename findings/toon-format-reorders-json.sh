#!/usr/bin/env bash
# A dependency on toon-format, never called, changes what the rest of a program writes as JSON.
#
# Expected: a crate that is only listed changes no output. serde_json's `Map` is ordered by name unless the program asks
#   for something else, and digests of JSON rest on that.
# Happens: toon-format 0.7.0 turns on serde_json's `preserve_order` and `float_roundtrip`, also without its own default
#   features. Features are united for a whole program: objects of unrelated code keep the order in which they were read.
# Matters: signatures, caches and digests over JSON change when such a crate comes in, in code that does not know it.
#   The order cannot be had back for one crate of the program alone.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p without/src with/src
for name in without with; do
    cat >"$name/Cargo.toml" <<TOML
[package]
name = "$name"
version = "0.0.0"
edition = "2021"

[dependencies]
serde_json = "=1.0.154"
TOML
    cat >"$name/src/main.rs" <<'RS'
fn main() {
    let text = r#"{"b": 1, "a": 2}"#;
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    println!("{value}");
}
RS
    printf '\n[workspace]\n' >>"$name/Cargo.toml"
done
sed -i '/^serde_json/a toon-format = { version = "=0.7.0", default-features = false }' with/Cargo.toml
export CARGO_TARGET_DIR=$dir/target
{
    for name in without with; do
        printf '%s: ' "$name"
        cargo run -q --manifest-path "$name/Cargo.toml"
    done
} >seen
cargo tree -q --manifest-path with/Cargo.toml --depth 1 --prefix none
cargo tree -q --manifest-path with/Cargo.toml -e features -i serde_json --prefix none | grep -o 'serde_json feature "[a-z_]*"' | sort -u >features
cat seen features
cat >expected <<'TXT'
without: {"a":2,"b":1}
with: {"b":1,"a":2}
TXT
diff expected seen && grep -q preserve_order features || { echo 'changed: read the difference above' >&2; exit 1; }
echo 'as described'
