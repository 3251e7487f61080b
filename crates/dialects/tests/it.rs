//! One binary for all tests that use the crate from outside.
//!
//! `POLYLOOP_CASES` sets how many random cases each property tries, `POLYLOOP_SEED` from which
//! seed, `POLYLOOP_FRAMES` how many frames each dialect's `decode` is tried with; without them a
//! run is short and always the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod it {
    /// Fails the check with what is wrong, so that the case can be shrunk without a panic.
    macro_rules! ensure {
        ($holds:expr, $($told:tt)*) => {
            if !$holds {
                return Err(format!($($told)*));
            }
        };
    }

    mod action;
    mod agents;
    mod asked;
    mod catch_up;
    mod compare;
    mod decode;
    mod events;
    mod file;
    mod fixture;
    mod foreign;
    mod golden;
    mod history;
    mod hostile;
    mod kinds;
    mod make;
    mod play;
    mod runner;
    mod sealed;
    mod seeds;
    mod shown;
    mod speaks;
    mod strict;
    mod texts;
    mod world;
    mod worth;
}
