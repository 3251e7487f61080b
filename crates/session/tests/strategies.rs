//! The strategies, each played to its end with a model that is a function of its prompt.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod strategies {
    mod bounds;
    mod dup;
    mod ends;
    mod got;
    mod order;
    mod play;
    mod resume;
    mod tot;
}
