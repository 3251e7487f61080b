//! The message types of the unified protocol, as its documents write them, and the additions.

mod asks;
mod client;
mod number;
mod server;

pub(super) use asks::*;
pub(super) use client::*;
pub(super) use number::{Fraction, Json, is_shallow};
pub(super) use server::*;
