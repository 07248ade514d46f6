//! Distinguishing text from binary files, which Read and Grep do not show, by the first bytes.

/// How much of a file's beginning is looked at.
pub(crate) const HEAD: usize = 8 * 1024;

/// From this share of bytes that are not UTF-8 on (one in so many), a file is not shown as text, because too little of it
/// would be readable. Source code with comments in Shift-JIS or GBK is below it, prose far above.
const INVALID_SHARE: usize = 2;

/// The same where there are control characters, as in compressed data. Latin-1 prose is far below it.
const INVALID_WITH_CONTROLS: usize = 4;

const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"\0\0\x01\0", "an icon image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or a document that is one)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "an ELF binary"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\xff\xfe\0\0", "UTF-32 text (Bash: iconv -f UTF-32)"),
    (b"\0\0\xfe\xff", "UTF-32 text (Bash: iconv -f UTF-32)"),
    (b"\xff\xfe", "UTF-16 text (Bash: iconv -f UTF-16)"),
    (b"\xfe\xff", "UTF-16 text (Bash: iconv -f UTF-16)"),
];

/// What a file is that is neither UTF-8 nor near enough, by its first [`HEAD`] bytes (fewer for a shorter file).
pub(crate) fn binary(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return Some("a WebP image");
    }
    for (magic, what) in MAGIC {
        // Short marks occur in text too.
        let sure = magic.len() > 3 || !head.is_ascii();
        if sure && head.starts_with(magic) {
            return Some(what);
        }
    }
    if head.contains(&0) {
        return Some("binary data");
    }
    let invalid: usize = head.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    // A character that the head cuts in two is three bytes at most.
    let controls = head
        .iter()
        .any(|byte| byte.is_ascii_control() && !b"\t\n\r\x0c\x1b".contains(byte));
    let share = if controls {
        INVALID_WITH_CONTROLS
    } else {
        INVALID_SHARE
    };
    if invalid > 3 && invalid * share > head.len() {
        return Some("binary data, or text in another encoding (Bash: file, iconv)");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart() {
        let cut_in_two = [&b"x"[..], &"ä".repeat(HEAD).as_bytes()[..HEAD - 1]].concat();
        let table: &[(&str, &[u8], bool)] = &[
            ("empty", b"", true),
            ("ascii", b"fn main() {}\n", true),
            ("utf-8", "Grüße, 世界\n".as_bytes(), true),
            ("a character cut by the end of the head", &cut_in_two, true),
            ("byte order mark", b"\xef\xbb\xbfhello\n", true),
            (
                "latin-1 prose",
                b"Gr\xfc\xdfe aus K\xf6ln, sch\xf6n hier\n",
                true,
            ),
            ("text that begins like bzip2", b"BZh is a prefix\n", true),
            ("control characters only", b"\x1b[31mred\x1b[0m\n", true),
            (
                "source with a comment in gbk",
                b"# \xd6\xd0\xce\xc4\nx = 1\n",
                true,
            ),
            (
                "source with a string in shift-jis",
                b"say(\"\x93\xfa\x96\x7b\");\n",
                true,
            ),
            (
                "compressed, without a mark",
                b"\x03\x1a\xe8\x9c\xf1\x04\xb7ab\x99 c\xfe=12",
                false,
            ),
            ("one NUL", b"text\0text\n", false),
            ("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", false),
            ("jpeg", b"\xff\xd8\xff\xe0\x00\x10JFIF", false),
            ("webp", b"RIFF\x10\x00\x00\x00WEBPVP8 ", false),
            ("pdf", b"%PDF-1.7\n", false),
            ("utf-16", b"\xff\xfeh\0i\0", false),
            (
                "shift-jis",
                b"\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\x8f\xcd",
                false,
            ),
        ];
        for (name, bytes, text) in table {
            assert_eq!(binary(bytes).is_none(), *text, "{name}");
        }
    }
}
