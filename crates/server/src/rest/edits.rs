//! Forks of sessions, and edits taken back, over HTTP.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use polyloop_agent::actor::{CommandError, UndoError};
use polyloop_agent::sessions::Forked;
use polyloop_dialects::rest::{CONFLICTS_ERROR, Changed, UNDO_NOTE, UndoConflicts, Undone};
use polyloop_session::undo::Which;
use polyloop_session::wait::Who;
use polyloop_session::{ItemId, Seq, SessionId, TurnId};

use super::{Awake, command_failed, error, json, not_found, store_failed, told, whole_number};
use crate::app::App;
use crate::query::Query;

/// A number of an entry; nothing where none was given.
fn number(query: &Query, name: &str) -> Result<Option<Seq>, String> {
    match whole_number(query, name) {
        Ok(None) => Ok(None),
        Ok(Some(number)) if number > 0 => Ok(Some(Seq(number))),
        Ok(Some(_)) | Err(_) => Err(format!("{name}: use the number of an entry, from 1 on")),
    }
}

/// `POST /sessions/{id}:fork?at=<seq>`: a new session with the log of this one up to that entry.
pub(super) async fn fork(app: &Arc<App>, id: SessionId, query: &Query, by: Who) -> Response {
    let upto = match number(query, "at") {
        Ok(upto) => upto,
        Err(bad) => return error(StatusCode::BAD_REQUEST, bad),
    };
    match app.sessions.fork(&id, upto, by).await {
        Ok(Forked::Done(summary)) => json(StatusCode::CREATED, &told(&summary, Awake::Yes)),
        Ok(Forked::NotFound) => not_found(),
        Ok(Forked::Beyond { last: Seq::NONE }) => {
            error(StatusCode::CONFLICT, "The session has no entry that could be copied")
        }
        Ok(Forked::Beyond { last }) => {
            error(StatusCode::BAD_REQUEST, format!("at: the session ends with entry {last}"))
        }
        Err(failure) => command_failed(app, &failure),
    }
}

/// `POST /sessions/{id}:undo?turn=<seq>` or `?item=<seq>`: takes file edits back, without either
/// those of the newest turn that has some in place.
pub(super) async fn undo(app: &Arc<App>, id: SessionId, query: &Query, by: Who) -> Response {
    let which = match (number(query, "turn"), number(query, "item")) {
        (Err(bad), _) | (_, Err(bad)) => return error(StatusCode::BAD_REQUEST, bad),
        (Ok(None), Ok(None)) => Which::Newest,
        (Ok(Some(turn)), Ok(None)) => Which::Turn(TurnId(turn)),
        (Ok(None), Ok(Some(item))) => Which::Item(ItemId(item)),
        (Ok(Some(_)), Ok(Some(_))) => {
            return error(StatusCode::BAD_REQUEST, "Give a turn or an item, not both");
        }
    };
    match app.sessions.summary(&id).await {
        Ok(Some(_)) => {}
        Ok(None) => return not_found(),
        Err(failure) => return store_failed(&failure),
    }
    match app.sessions.handle(id.clone(), by.clone()).undo(which, by).await {
        Ok(done) => {
            let files = done.files.iter().map(Changed::new).collect();
            let (made, removed, skipped) = (&done.made[..], &done.removed[..], &done.skipped[..]);
            let (id, seq, note) = (&id, done.seq, UNDO_NOTE);
            json(StatusCode::OK, &Undone { id, seq, files, made, removed, skipped, note })
        }
        Err(UndoError::Conflicts(conflicts)) => {
            let (error, conflicts) = (CONFLICTS_ERROR, &conflicts[..]);
            json(StatusCode::CONFLICT, &UndoConflicts { error, conflicts })
        }
        Err(UndoError::Refused(refusal)) => error(StatusCode::CONFLICT, refusal.to_string()),
        Err(UndoError::Store(why)) => command_failed(app, &CommandError::Store(why)),
    }
}
