//! What a file is that a model is to see: its type by its first bytes, its size in pixels, and the bounds of vendors. Reads
//! heads only: what a decoder would say is not known. Does not depend on files or names.

use crate::ErrorKind;
use protocol::blob::Digest;
use protocol::item::{Attachment, MediaType};

/// The most bytes of an image: Anthropic takes 5 MiB of base 64, which is the lowest bound of a vendor.
pub const MAX_IMAGE: usize = (5 << 20) / 4 * 3;

/// The most pixels of a side: Anthropic's bound.
pub const MAX_SIDE: u32 = 8_000;

/// The most bytes of a document; a request of Gemini has at most 20 MB in base 64.
pub const MAX_DOCUMENT: usize = 10 << 20;

/// The most files beside one text.
pub const MAX_FILES: usize = 16;

/// The most bytes of all files of one request: in base 64 they take 32 MiB, which is Anthropic's bound of a request.
pub const MAX_TOTAL: u64 = 24 << 20;

/// Refuses more files than one request can have, those that occur twice counted twice.
///
/// # Errors
/// They have more than [`MAX_TOTAL`] bytes; the text begins with their number.
pub fn check_total(bytes: impl Iterator<Item = u64>) -> Result<(), String> {
    let total = bytes.fold(0, u64::saturating_add);
    if total > MAX_TOTAL {
        return Err(format!(
            "{total} bytes of files; one request can have at most {MAX_TOTAL}"
        ));
    }
    Ok(())
}

/// The most bytes of a name that are kept.
const MAX_NAME: usize = 128;

/// Why a file is not shown to a model. The text begins with what the file is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotShown {
    #[error("not a PNG, JPEG, WebP or GIF image and no PDF document")]
    Unknown,
    #[error("a damaged or incomplete {} file", .0.word())]
    Damaged(MediaType),
    #[error("a {} file of {bytes} bytes; at most {limit} can be sent: make it smaller", .media.word())]
    TooLarge {
        media: MediaType,
        bytes: usize,
        limit: usize,
    },
    #[error(
        "an image of {0}×{1} pixels; at most {MAX_SIDE} on each side can be sent: make it smaller"
    )]
    TooWide(u32, u32),
}

impl NotShown {
    /// Always `FixInput`.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::FixInput
    }
}

/// The file of these bytes.
///
/// # Errors
/// It is of no type that a model can see, its head is damaged, or it is over a bound.
pub fn attachment(name: &str, bytes: &[u8]) -> Result<Attachment, NotShown> {
    let media = media(bytes).ok_or(NotShown::Unknown)?;
    let limit = if media.is_image() {
        MAX_IMAGE
    } else {
        MAX_DOCUMENT
    };
    let size = pixels(media, bytes);
    if size.is_none() && media.is_image() {
        return Err(NotShown::Damaged(media));
    }
    if let Some((width, height)) = size
        && width.max(height) > MAX_SIDE
    {
        return Err(NotShown::TooWide(width, height));
    }
    if bytes.len() > limit {
        return Err(NotShown::TooLarge {
            media,
            bytes: bytes.len(),
            limit,
        });
    }
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    Ok(Attachment {
        media,
        digest: Digest::of(bytes),
        bytes: bytes.len() as u64,
        width: size.map(|(width, _)| width),
        height: size.map(|(_, height)| height),
        name: name
            .get(..name.floor_char_boundary(MAX_NAME))
            .unwrap_or_default()
            .to_owned(),
    })
}

/// The type of a file that begins with these bytes; none if no model sees such a file.
#[must_use]
pub fn media(head: &[u8]) -> Option<MediaType> {
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return Some(MediaType::Webp);
    }
    let table: [(&[u8], MediaType); 5] = [
        (b"\x89PNG\r\n\x1a\n", MediaType::Png),
        (b"\xff\xd8\xff", MediaType::Jpeg),
        (b"GIF87a", MediaType::Gif),
        (b"GIF89a", MediaType::Gif),
        (b"%PDF-", MediaType::Pdf),
    ];
    table
        .into_iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map(|(_, media)| media)
}

/// Width and height, both above 0; none if the head does not have them.
fn pixels(media: MediaType, bytes: &[u8]) -> Option<(u32, u32)> {
    let (width, height) = match media {
        MediaType::Png => png(bytes)?,
        MediaType::Jpeg => jpeg(bytes)?,
        MediaType::Gif => (little(bytes, 6, 2)?, little(bytes, 8, 2)?),
        MediaType::Webp => webp(bytes)?,
        MediaType::Pdf => return None,
    };
    (width > 0 && height > 0).then_some((width, height))
}

fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.get(12..16)? == b"IHDR").then_some(())?;
    Some((big(bytes, 16, 4)?, big(bytes, 20, 4)?))
}

/// From the first frame header; the segments before it say how long they are.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        (*bytes.get(at)? == 0xff).then_some(())?;
        let marker = *bytes.get(at + 1)?;
        match marker {
            // Fill bytes.
            0xff => at += 1,
            // Frame headers, but not the tables between their numbers.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
            }
            // The image data begins, or the file ends.
            0xd9 | 0xda => return None,
            0x01 | 0xd0..=0xd8 => at += 2,
            _ => {
                let length = usize::try_from(big(bytes, at + 2, 2)?).ok()?;
                (length >= 2).then_some(())?;
                at += 2 + length;
            }
        }
    }
}

/// From the first chunk: of a lossy, a lossless or an extended file.
fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    const SIDE: u32 = 0x3fff;
    match bytes.get(12..16)? {
        b"VP8 " => {
            (bytes.get(23..26)? == b"\x9d\x01\x2a").then_some(())?;
            Some((little(bytes, 26, 2)? & SIDE, little(bytes, 28, 2)? & SIDE))
        }
        b"VP8L" => {
            (*bytes.get(20)? == 0x2f).then_some(())?;
            let both = little(bytes, 21, 4)?;
            Some(((both & SIDE) + 1, (both >> 14 & SIDE) + 1))
        }
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        _ => None,
    }
}

/// A number of `len` bytes, at most 4, the highest first.
fn big(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(len)?)?;
    Some(
        digits
            .iter()
            .fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
    )
}

/// The same, the lowest first.
fn little(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(len)?)?;
    let digits = digits.iter().rev();
    Some(digits.fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let head: [&[u8]; 5] = [
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
            &width.to_be_bytes(),
            &height.to_be_bytes(),
            b"\x08\x06\0\0\0",
            b"rest",
        ];
        head.concat()
    }

    type Pixels = Option<(u32, u32)>;

    #[test]
    fn a_file_is_known_by_its_bytes_and_has_its_size() {
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc4\0\x02\xff\xc2\0\x0b\x08\0\x20\0\x30\x03";
        let lossy = b"RIFF....WEBPVP8 ....\0\0\0\x9d\x01\x2a\x10\x40\x20\x80";
        let lossless = b"RIFF....WEBPVP8L....\x2f\x0f\xc0\x07\0";
        let extended = b"RIFF....WEBPVP8X....\0\0\0\0\x0f\0\0\x1f\0\0";
        let table: [(&[u8], MediaType, Pixels, usize); 7] = [
            (&png(640, 480), MediaType::Png, Some((640, 480)), 24),
            (jpeg, MediaType::Jpeg, Some((48, 32)), 22),
            (b"GIF89a\x05\0\x06\0", MediaType::Gif, Some((5, 6)), 10),
            (lossy, MediaType::Webp, Some((16, 32)), 30),
            (lossless, MediaType::Webp, Some((16, 32)), 25),
            (extended, MediaType::Webp, Some((16, 32)), 30),
            (b"%PDF-1.7\n", MediaType::Pdf, None, 5),
        ];
        for (bytes, media, size, needed) in table {
            let file = attachment("a\nb.txt", bytes).unwrap();
            assert_eq!((file.media, file.width.zip(file.height)), (media, size));
            assert_eq!((&*file.name, file.bytes), ("ab.txt", bytes.len() as u64));
            assert_eq!(file.digest, Digest::of(bytes));
            // Cut anywhere before the end of its size, it is no such file.
            assert!(attachment("", &bytes[..needed]).is_ok(), "{media:?}");
            for end in 0..needed {
                assert!(attachment("", &bytes[..end]).is_err(), "{media:?} {end}");
            }
        }
    }

    #[test]
    fn what_no_model_sees_is_named() {
        let large = [png(9, 9), vec![0; MAX_IMAGE]].concat();
        let table: [(&[u8], &str); 7] = [
            (b"", "not a PNG"),
            (b"<svg/>", "not a PNG"),
            (
                b"\x89PNG\r\n\x1a\n",
                "a damaged or incomplete image/png file",
            ),
            (&png(0, 4), "a damaged or incomplete image/png file"),
            (
                b"\xff\xd8\xff\xe0\0\x01",
                "a damaged or incomplete image/jpeg",
            ),
            (&png(8_001, 4), "an image of 8001×4 pixels; at most 8000"),
            (&large, "at most 3932160 can be sent"),
        ];
        for (bytes, why) in table {
            let refused = attachment("x.png", bytes).unwrap_err();
            assert!(refused.to_string().contains(why), "{refused}");
        }
    }
}
