//! The dialect against its documents: every example is read, every event is written as they show
//! it, and whoever comes back misses nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod calls;
mod catch_up;
mod decode;
mod events;
mod hostile;
mod make;
mod replies;
mod scenarios;
