//! Ids and opaque texts that nobody gave: they look like the real ones, and the same request number
//! always gets the same ones.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const OPAQUE_BYTES: usize = 48;

/// Numbers that look random, from a seed (the mixing steps of splitmix64).
struct Mixer(u64);

impl Mixer {
    fn new(n: u64, place: usize, salt: u64) -> Mixer {
        Mixer(n.rotate_left(32) ^ (place as u64) ^ salt)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// An id for a thing of request `n`; the prefix says what kind of thing.
pub fn id(prefix: &str, n: u64, place: usize) -> String {
    let salt = prefix.bytes().fold(0, |salt: u64, byte| salt.wrapping_mul(131) + u64::from(byte));
    let mut mixer = Mixer::new(n, place, salt << 16);
    format!("{prefix}{:016x}{:08x}", mixer.next(), mixer.next() as u32)
}

/// A text that only its maker could read, as signatures and encrypted reasoning are.
pub fn opaque(n: u64, place: usize) -> String {
    let mut mixer = Mixer::new(n, place, 0x5EA1 << 40);
    let bytes: Vec<u8> = (0..OPAQUE_BYTES / 8).flat_map(|_| mixer.next().to_le_bytes()).collect();
    STANDARD.encode(bytes)
}

/// A text as it stands between the quotes of a JSON string.
pub fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_repeat() {
        assert_eq!(id("call_", 1, 0), id("call_", 1, 0));
        let ids = [id("call_", 1, 0), id("call_", 1, 1), id("call_", 2, 0), id("fc_", 1, 0)];
        for (at, one) in ids.iter().enumerate() {
            assert!(ids[at + 1..].iter().all(|other| one != other), "{ids:?}");
        }
    }

    #[test]
    fn opaque_texts_are_base64() {
        let text = opaque(1, 0);
        assert_eq!(STANDARD.decode(&text).unwrap().len(), OPAQUE_BYTES);
        assert_ne!(text, opaque(1, 1));
    }

    #[test]
    fn escapes_as_json_does() {
        assert_eq!(escaped("a\"b\nc"), "a\\\"b\\nc");
    }
}
