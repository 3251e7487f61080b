//! One binary for all tests that use the crate from outside.
//!
//! `POLYLOOP_CASES` sets how many random sessions each property plays, `POLYLOOP_SEED` from which
//! seed; without them a run is short and always the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod it {
    /// Fails the check with what is wrong, so that the case can be shrunk without a panic.
    macro_rules! ensure {
        ($holds:expr, $($told:tt)*) => {
            if !$holds {
                return Err(format!($($told)*).into());
            }
        };
    }

    mod action;
    mod asks;
    mod audit;
    mod compaction;
    mod decide;
    mod flaw;
    mod fold;
    mod format;
    mod generate;
    mod heard;
    mod history;
    mod kept;
    mod make;
    mod names;
    mod next;
    mod outside;
    mod overflow;
    mod play;
    mod random;
    mod recovery;
    mod retries;
    mod room;
    mod scenes;
    mod script;
    mod session;
    mod sim;
    mod speak;
    mod story;
    mod tools;
}
