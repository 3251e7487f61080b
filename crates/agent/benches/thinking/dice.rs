//! Numbers that look random and are always the same.

pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Of a text: equal texts throw equal dice, whenever they come.
    pub fn of(seed: u64, text: &str) -> Dice {
        let hashed = text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Dice(hashed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub fn chance(&mut self, part: f64) -> bool {
        ((self.next() >> 11) as f64) / ((1_u64 << 53) as f64) < part
    }

    /// Takes one out.
    pub fn pick<T>(&mut self, from: &mut Vec<T>) -> Option<T> {
        let at = self.below(from.len() as u64) as usize;
        (!from.is_empty()).then(|| from.swap_remove(at))
    }
}
