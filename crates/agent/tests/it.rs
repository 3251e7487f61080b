//! One binary for the tests that use sessions and logs from outside: the real actor and the real
//! logs, with a view that shows the updates themselves, and faults put in where the traits are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod it {
    mod answerable;
    mod answers;
    mod archive;
    mod attach;
    mod client;
    mod close;
    mod codec;
    mod crash;
    mod disk;
    mod faults;
    mod files;
    mod folders;
    mod index;
    mod instructions;
    mod interrupt;
    mod make;
    mod messages;
    mod model;
    mod onlookers;
    mod opening;
    mod order;
    mod panics;
    mod passing;
    mod patch;
    mod plans;
    mod questions;
    mod race;
    mod raw;
    mod recall;
    mod recorded;
    mod resume;
    mod rig;
    mod sleep;
    mod store;
    mod story;
    mod subscribers;
    mod thinking;
    mod view;
}
