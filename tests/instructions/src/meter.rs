//! Says where counting begins and ends, to callgrind.
//!
//! Callgrind is told to put its counts aside whenever `MARK` is entered: a function of the C
//! library, since those have names in any build, and one that nothing else here calls.

use std::hint::black_box;

/// What `std` calls for `parent_id`.
pub const MARK: &str = "getppid";

/// Rounds before counting: what is set up once is no part of what happens often.
const WARM: u64 = 3;

/// Measures one after another, and says what each was on a line of standard output.
pub struct Meter;

impl Meter {
    /// `work` is told which round it is in, counted from 0 and over all rounds.
    pub fn count(&self, name: &str, rounds: u64, mut work: impl FnMut(u64)) {
        (0..WARM).for_each(&mut work);
        mark();
        for round in WARM..WARM + rounds {
            work(black_box(round));
        }
        mark();
        println!("{name}\t{rounds}");
    }

    /// How many rounds `count` makes in all, for what must be made before.
    pub fn all(rounds: u64) -> u64 {
        WARM + rounds
    }
}

pub fn mark() {
    black_box(std::os::unix::process::parent_id());
}
