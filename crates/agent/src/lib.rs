//! Who *does* it: the session actor, the log, the models and the tools.
//!
//! Knows no client's wire format and no web framework. Decisions are made in `session`; this
//! crate performs them and keeps what they need.

pub mod actor;
pub mod audit;
pub mod clock;
mod follower;
pub mod gate;
pub mod log;
pub mod memories;
pub mod messages;
pub mod meter;
pub mod model;
pub mod patch;
pub mod peers;
pub mod perform;
pub mod place;
pub mod rails;
pub mod rules;
pub mod sessions;
pub mod shell;
mod sqlite;
mod stand;
pub mod subscriber;
pub mod todos;
pub mod tokens;
pub mod tool;
