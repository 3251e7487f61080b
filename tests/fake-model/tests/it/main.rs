//! The server on real sockets, byte for byte. Whether it speaks the APIs as their providers do is
//! for the providers' own SDKs to say, in `tests/blackbox`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod client;
mod control;
mod faults;
mod streams;
