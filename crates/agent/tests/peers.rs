//! Several servers on one NATS server: real sessions on each, and what servers say to each other
//! held back or lost where the trait is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

/// What the other tests of sessions are made of; not all of it is needed here.
#[allow(dead_code)]
#[path = "it"]
mod it {
    pub mod client;
    pub mod codec;
    pub mod faults;
    pub mod make;
    pub mod model;
    pub mod rig;
    pub mod view;
}

#[allow(dead_code)]
#[path = "../src/log/nats/tests/server.rs"]
mod server;

mod peers {
    mod between;
    mod ends;
    mod growth;
    mod moved;
    mod nobodys;
    mod once;
    mod stage;
}
