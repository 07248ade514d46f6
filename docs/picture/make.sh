#!/bin/sh
# Draws docs/picture/session.svg from a real session: builds yoi, runs it in a temporary directory with the offline planner,
# and turns what it printed into an SVG. Needs cargo, git, sh and awk. Uses no network after the build and no API key.
#
#   docs/picture/make.sh            writes docs/picture/session.svg
#   YOI=path docs/picture/make.sh   uses that program and builds nothing
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${YOI:-}" ]; then
    cargo build --quiet --manifest-path "$here/../../Cargo.toml" -p yoi
    YOI=${CARGO_TARGET_DIR:-$here/../../target}/debug/yoi
fi
case $YOI in
*/*) YOI=$(cd "$(dirname "$YOI")" && pwd)/$(basename "$YOI") ;;
*) YOI=$(command -v "$YOI") ;;
esac

work=$(cd "$(mktemp -d)" && pwd)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/words/src" "$work/state" "$work/config" "$work/tmp"
cd "$work/words"
git init -q .

cat >Cargo.toml <<'FILE'
[package]
name = "words"
version = "0.1.0"
edition = "2021"
FILE

cat >src/lib.rs <<'FILE'
//! Counts words.

pub fn count_words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[test]
fn three_words() {
    assert_eq!(count_words("one two three"), 3);
}
FILE

cat >src/main.rs <<'FILE'
fn main() {
    println!("{}", words::count_words("plain words"));
}
FILE

# Runs yoi without the caller's configuration and keys, with colours, and prints the command before its output.
show() { # how the command looks, arguments…
    printf '\033[32m$\033[0m \033[1myoi %s\033[0m\n' "$1"
    shift
    env -i PATH="$PATH" HOME="$HOME" TMPDIR="$work/tmp" \
        ${RUSTUP_HOME:+RUSTUP_HOME="$RUSTUP_HOME"} ${CARGO_HOME:+CARGO_HOME="$CARGO_HOME"} \
        XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config" CLICOLOR_FORCE=1 \
        "$YOI" "$@" </dev/null 2>&1
}

ask='rename count_words to tally_words, then run the tests'
{
    show "run --pod fix '$ask'" run --pod fix "$ask"
    echo
    show 'verify fix' verify fix
    echo
    show 'undo fix' undo fix
} >"$work/terminal"

# The temporary directory has another name in each run: it is shown as `…`.
sed "s|$work|…|g" "$work/terminal" | LC_ALL=C awk -f "$here/svg.awk" >"$here/session.svg"
