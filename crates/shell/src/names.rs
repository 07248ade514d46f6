//! Names of programs, and lists of words. No file is read.

/// The system's directories of programs.
pub const SYSTEM: [&str; 6] = [
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/usr/local/sbin/",
];

/// Whether a word is one of a list, which is written with spaces between.
pub(crate) fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// The last component of a path.
#[must_use]
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether `path` is a file right in one of the system's directories, written without `.` and `..`.
#[must_use]
pub fn is_system_path(path: &str) -> bool {
    let name = base_name(path);
    !matches!(name, "" | "." | "..")
        && SYSTEM
            .iter()
            .any(|directory| path.strip_prefix(directory) == Some(name))
}

/// What the names of compilers for other machines begin with: `x86_64-linux-gnu-gcc`.
const MACHINES: &[&str] = &[
    "x86_64",
    "i386",
    "i486",
    "i586",
    "i686",
    "aarch64",
    "arm",
    "riscv",
    "powerpc",
    "ppc64",
    "s390",
    "mips",
    "sparc",
    "loongarch",
    "wasm",
    "m68k",
    "avr",
    "alpha",
    "hppa",
    "sh4",
];

/// Whether a program of this name is `program`, for a machine that its name begins with, in a version that it ends with.
#[must_use]
pub fn is_named(name: &str, program: &str) -> bool {
    let rest = |name: &str| {
        name.strip_prefix(program)
            .is_some_and(|rest| versionless(rest).is_empty())
    };
    !program.is_empty() && forms(name).any(rest)
}

/// The name, what stands behind the machine that it begins with, and before the one that it ends with.
pub(crate) fn forms(name: &str) -> impl Iterator<Item = &str> {
    let machine = |name: &str| MACHINES.iter().any(|machine| name.starts_with(machine));
    let dashed = move || {
        name.match_indices('-')
            .filter_map(|(at, _)| Some((name.get(..at)?, name.get(at + 1..)?)))
    };
    let ends = dashed().filter(move |_| machine(name)).map(|(_, end)| end);
    std::iter::once(name).chain(ends).chain(
        dashed()
            .filter(move |(_, end)| machine(end))
            .map(|(start, _)| start),
    )
}

/// A name without the version at its end.
pub(crate) fn versionless(name: &str) -> &str {
    let name = name.rsplit_once('@').map_or(name, |(name, _)| name);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
}
