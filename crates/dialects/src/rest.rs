//! The shapes of the REST interface.

use polyloop_session::{SessionId, Timestamp};
use serde::Serialize;

use crate::time::iso;

#[derive(Serialize)]
pub struct SessionInfo<'a> {
    id: &'a SessionId,
    start_time: String,
    last_update_time: String,
    event_count: u64,
}

impl<'a> SessionInfo<'a> {
    pub fn new(id: &'a SessionId, start: Timestamp, last: Timestamp, lines: u64) -> Self {
        SessionInfo { id, start_time: iso(start), last_update_time: iso(last), event_count: lines }
    }
}

#[derive(Serialize)]
pub struct SessionList<'a> {
    pub sessions: Vec<SessionInfo<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Switched<'a> {
    message: &'static str,
    session_id: &'a SessionId,
    todos_file: String,
    link_path: String,
}

impl<'a> Switched<'a> {
    pub fn new(session_id: &'a SessionId, todos_file: String, link_path: String) -> Self {
        Switched { message: "Session switched successfully", session_id, todos_file, link_path }
    }
}

/// Every error of the REST interface.
#[derive(Serialize)]
pub struct RestError {
    pub error: String,
}
