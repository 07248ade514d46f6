#!/bin/sh
# Draws the pictures of the README from a real session: builds yoi, runs it on a terminal in a temporary directory with the
# offline planner, and turns what the terminal shows into SVG files, each for dark and for light pages. Needs cargo, git, sh,
# awk and tmux. Uses no network after the build and no API key.
#
#   docs/picture/make.sh            writes docs/picture/*.svg
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
terminal() { tmux -S "$work/tmux-$picture" -f /dev/null "$@"; }
picture=run
trap 'terminal kill-server 2>/dev/null || :; "$work/yoi" stop words >/dev/null 2>&1 || :; rm -rf "$work"' EXIT
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

echo 'KEY=example' >.env
echo target >.gitignore

# Runs yoi without the caller's configuration and keys.
cat >"$work/yoi" <<FILE
#!/bin/sh
exec env -i PATH="$PATH" HOME="$HOME" TMPDIR="$work/tmp" TERM="\$TERM" LANG=C.UTF-8 \
    ${RUSTUP_HOME:+RUSTUP_HOME="$RUSTUP_HOME"} ${CARGO_HOME:+CARGO_HOME="$CARGO_HOME"} \
    XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config" "$YOI" "\$@"
FILE
chmod +x "$work/yoi"

ask='rename count_words to tally_words, then run the tests'
cat >"$work/commands" <<FILE
show() { # how the command looks, arguments…
    printf '\033[32m$\033[0m \033[1myoi %s\033[0m\n' "\$1"
    shift
    "$work/yoi" "\$@"
    echo
}
show "run --pod fix '$ask'" run --pod fix '$ask'
show 'verify fix' verify fix
show 'undo fix -y' undo fix -y
: >"$work/over"
sleep 60
FILE

# Waits at most a minute until a command succeeds.
until_so() {
    left=600
    until "$@"; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || { echo "make.sh: waited a minute for: $*" >&2; exit 1; }
        sleep 0.1
    done
}

shows() { terminal capture-pane -p | grep -q "$1"; }

# The temporary directory has another name in each run: it is shown as `…`.
draw() { # title
    terminal capture-pane -p -e | sed "s|$work|…|g" >"$work/shown"
    LC_ALL=C awk -v title="$1" -f "$here/svg.awk" "$work/shown" >"$here/$picture-dark.svg"
    LC_ALL=C awk -v title="$1" -v light=1 -f "$here/svg.awk" "$work/shown" >"$here/$picture-light.svg"
    terminal kill-server
}

terminal new-session -d -x 80 -y 60 "sh '$work/commands'"
until_so test -e "$work/over"
draw 'A run of yoi in a terminal'

picture=screen
terminal new-session -d -x 80 -y 34 "'$work/yoi'"
until_so shows idle
terminal send-keys -l "$ask"
terminal send-keys Enter
until_so shows 'turn 1: done'
terminal send-keys -l 'show .env'
terminal send-keys Enter
until_so shows 'y allow once'
draw 'The screen of a pod that waits for an approval'
