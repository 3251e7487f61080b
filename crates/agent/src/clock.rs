//! The wall clock, and ids that nobody can guess. The only room that asks for either.

use std::time::{SystemTime, UNIX_EPOCH};

use polyloop_session::{SessionId, Timestamp};

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// A UUID without dashes: 32 hex digits.
pub fn new_session_id() -> SessionId {
    let id = uuid::Uuid::new_v4().simple().to_string();
    // Hex digits are always an id; the fallback keeps this total.
    SessionId::parse(&id).unwrap_or_else(|_| new_session_id())
}
