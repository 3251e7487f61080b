//! What a picture takes of a prompt, by its size in pixels.
//!
//! Providers differ: one takes a token for 750 pixels, others so many for each tile, and all scale
//! large pictures down. This lies between them. Reads the beginning of a file alone, and trusts
//! nothing in it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use polyloop_session::item::IMAGE_TOKENS;

/// The least that most providers take for a picture.
const IMAGE_TOKENS_MIN: u64 = 258;
const TOKEN_PIXELS: u64 = 750;
/// Of base64, a multiple of four; in a photograph the size stands behind its remarks.
const READ_CHARS_MAX: usize = 128 * 1024;

/// `data` is base64. One whose size cannot be found counts as a large one.
pub(super) fn tokens(data: &str) -> u64 {
    let head = data.get(..data.len().min(READ_CHARS_MAX)).unwrap_or_default();
    let head = STANDARD.decode(head.get(..head.len() / 4 * 4).unwrap_or_default());
    match head.ok().and_then(|head| size(&head)) {
        Some((width, height)) => {
            let pixels = u64::from(width) * u64::from(height);
            (pixels.div_ceil(TOKEN_PIXELS)).clamp(IMAGE_TOKENS_MIN, IMAGE_TOKENS)
        }
        None => IMAGE_TOKENS,
    }
}

/// Width and height, as the file says.
fn size(file: &[u8]) -> Option<(u32, u32)> {
    let two = |at: usize| Some([*file.get(at)?, *file.get(at + 1)?]);
    let small = |at: usize| two(at).map(|pair| u32::from(u16::from_le_bytes(pair)));
    let three = |at: usize| Some(small(at)? | u32::from(*file.get(at + 2)?) << 16);
    let four = |at: usize| Some(u32::from_be_bytes(file.get(at..at + 4)?.try_into().ok()?));
    match file {
        [0x89, b'P', b'N', b'G', ..] => Some((four(16)?, four(20)?)),
        [b'G', b'I', b'F', b'8', ..] => Some((small(6)?, small(8)?)),
        [0xff, 0xd8, ..] => photograph(file),
        [b'R', b'I', b'F', b'F', ..] => match file.get(12..16)? {
            b"VP8X" => Some((three(24)? + 1, three(27)? + 1)),
            b"VP8L" => {
                let bits = four(21)?.swap_bytes();
                Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
            }
            b"VP8 " => Some((small(26)? & 0x3fff, small(28)? & 0x3fff)),
            _ => None,
        },
        _ => None,
    }
}

/// Of a JPEG: its size stands in the one segment that begins a frame.
fn photograph(file: &[u8]) -> Option<(u32, u32)> {
    let two = |at: usize| Some(u32::from(u16::from_be_bytes([*file.get(at)?, *file.get(at + 1)?])));
    let mut at = 2;
    // Each segment has two bytes at least, so this ends.
    while *file.get(at)? == 0xff {
        match *file.get(at + 1)? {
            0xc4 | 0xc8 | 0xcc => {}
            0xc0..=0xcf => return Some((two(at + 7)?, two(at + 5)?)),
            0xff => {
                at += 1;
                continue;
            }
            _ => {}
        }
        at += 2 + (two(at + 2)?.max(2)) as usize;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        file.extend(width.to_be_bytes());
        file.extend(height.to_be_bytes());
        file
    }

    fn of(file: &[u8]) -> u64 {
        tokens(&STANDARD.encode(file))
    }

    #[test]
    fn a_picture_counts_by_its_size_between_bounds() {
        let rows = [(1, 1, 258), (512, 512, 350), (1_000, 750, 1_000), (8_000, 8_000, 1_600)];
        for (width, height, want) in rows {
            assert_eq!(of(&png(width, height)), want, "{width} by {height}");
        }
        assert_eq!(of(&png(u32::MAX, u32::MAX)), IMAGE_TOKENS);
    }

    #[test]
    fn every_kind_says_its_size() {
        let photo = [
            b"\xff\xd8\xff\xe0\0\x06JFIF\xff\xff\xc4\0\x03x".as_slice(),
            b"\xff\xc2\0\x11\x08\x02\xee\x03\xe8",
        ];
        let files: [Vec<u8>; 6] = [
            png(1_000, 750),
            b"GIF89a\xe8\x03\xee\x02".to_vec(),
            photo.concat(),
            b"RIFF....WEBPVP8X\x0a\0\0\0....\xe7\x03\0\xed\x02\0".to_vec(),
            b"RIFF....WEBPVP8L....\x2f\xe7\x43\xbb\0".to_vec(),
            b"RIFF....WEBPVP8 .......\x9d\x01\x2a\xe8\x03\xee\x02".to_vec(),
        ];
        for file in files {
            assert_eq!(size(&file), Some((1_000, 750)), "{file:02x?}");
            // Cut anywhere, it is a picture of unknown size.
            for end in 0..file.len() {
                assert_eq!(size(&file[..end]), None, "{file:02x?} up to {end}");
            }
        }
        for other in ["", "aGk=", "not base64", "é", "////"] {
            assert_eq!(tokens(other), IMAGE_TOKENS, "{other:?}");
        }
    }
}
