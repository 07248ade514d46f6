//! The fixed columns of a header and the encoding of numbers in them. Their meaning is known to the encoder and the
//! checker.

use std::ops::Range;

/// The header as every line has it; the gaps are filled in by the encoder and skipped by the checker.
pub(crate) const TEMPLATE: &[u8; HEADER] =
    b"{\"c\":\"00000000\",\"n\":\"00000000\",\"p\":\"00000000\",\"e\":      ,\"q\":            ,\"d\":            ,\"b\":     ,\"t\":                ,\"k\":\"";
/// Where the kind begins.
pub(crate) const HEADER: usize = 127;

/// How every line begins.
pub(crate) const OPENING: &[u8] = b"{\"c\":\"";

pub(crate) const C: Range<usize> = 6..14;
pub(crate) const N: Range<usize> = 21..29;
pub(crate) const P: Range<usize> = 36..44;
pub(crate) const E: Range<usize> = 50..56;
pub(crate) const Q: Range<usize> = 61..73;
pub(crate) const D: Range<usize> = 78..90;
pub(crate) const B: Range<usize> = 95..100;
pub(crate) const T: Range<usize> = 105..121;
/// The checksum covers everything from here to the newline.
pub(crate) const COVERED: usize = 15;

/// The parts between the columns, which are the same in every line.
pub(crate) const FIXED: [Range<usize>; 9] = [
    0..6,
    14..21,
    29..36,
    44..50,
    56..61,
    73..78,
    90..95,
    100..105,
    121..HEADER,
];

/// All bits set at the bytes that the template fixes.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which refuses what is out of bounds"
)]
const MASK: [u8; HEADER] = {
    let mut mask = [0; HEADER];
    let mut part = 0;
    while part < FIXED.len() {
        let mut at = FIXED[part].start;
        while at < FIXED[part].end {
            mask[at] = 0xFF;
            at += 1;
        }
        part += 1;
    }
    mask
};

/// Whether the parts between the columns are right. Compares all at once, because every line is checked.
pub(crate) fn fits(header: &[u8; HEADER]) -> bool {
    let bytes = header.iter().zip(TEMPLATE).zip(&MASK);
    bytes.fold(0, |differ, ((byte, want), mask)| {
        differ | ((byte ^ want) & mask)
    }) == 0
}

/// The largest value a column of `width` digits can hold.
pub(crate) const fn largest(width: usize) -> u64 {
    10u64.pow(width as u32) - 1
}

/// Eight lower-case digits.
pub(crate) fn put_hex(column: &mut [u8], mut value: u32) {
    for digit in column.iter_mut().rev() {
        let low = (value & 15) as u8;
        *digit = if low < 10 {
            b'0' + low
        } else {
            b'a' + low - 10
        };
        value >>= 4;
    }
}

/// Right-aligned with spaces; a value too wide for its column is a bug that the caller has excluded.
pub(crate) fn put_number(column: &mut [u8], mut value: u64) {
    column.fill(b' ');
    for digit in column.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
}

/// Lower case only: bit 5 of a hexadecimal letter may not be free.
pub(crate) fn hex(column: &[u8]) -> Option<u32> {
    column.iter().try_fold(0u32, |sum, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        Some(sum << 4 | u32::from(digit))
    })
}

/// Spaces, then digits without a leading zero (but for zero itself): one way to write each number.
pub(crate) fn number(column: &[u8]) -> Option<u64> {
    let spaces = column.iter().take_while(|byte| **byte == b' ').count();
    let digits = column.get(spaces..)?;
    if digits.is_empty() || (digits.len() > 1 && digits.first() == Some(&b'0')) {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + u64::from(byte - b'0'))
    })
}
