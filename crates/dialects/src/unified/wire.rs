//! The message types of the unified protocol, as its documents write them, and the additions.

mod asks;
mod client;
mod number;
mod queue;
mod server;
mod todos;

pub(super) use asks::*;
pub(super) use client::*;
pub(super) use number::{Fraction, Json, is_shallow};
pub(super) use queue::*;
pub(super) use server::*;
pub(super) use todos::*;
