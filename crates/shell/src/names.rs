//! Names of programs, and lists of words. No file is read.

/// The system's directories of programs.
const SYSTEM: [&str; 6] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/usr/local/sbin/"];

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
    !matches!(name, "" | "." | "..") && SYSTEM.iter().any(|directory| path.strip_prefix(directory) == Some(name))
}
