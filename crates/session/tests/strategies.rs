//! The strategies, each played to its end with a model that is a function of its prompt, and
//! random sessions with a model that writes anything.
//!
//! `POLYLOOP_CASES` sets how many random sessions are played, `POLYLOOP_SEED` from which seed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod strategies {
    mod audit;
    mod bounds;
    mod dup;
    mod ends;
    mod faults;
    mod got;
    #[path = "../it/names.rs"]
    mod names;
    mod order;
    mod play;
    mod random;
    mod resume;
    mod tot;
}
