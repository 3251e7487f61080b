//! `GET /sessions/{id}/frames`: a session's past in a dialect, a page at a time, newest first.
//!
//! Costs what the page holds and the beginning of the turn that it begins in, not what the session
//! holds. Changes nothing, but opens the session as whoever attaches does.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use polyloop_agent::actor::{Beginnings, CommandError};
use polyloop_agent::sessions::Handle;
use polyloop_dialects::history::{Page, Renderer};
use polyloop_dialects::{Dialect, detect};
use polyloop_session::event::Work;
use polyloop_session::wait::Who;
use polyloop_session::{Event, LogEntry, Seq, SessionId};

use crate::app::App;
use crate::query::Query;
use crate::rest::{self, error};
use crate::view::DialectView;

const FRAMES_DEFAULT: u64 = 200;
const FRAMES_MAX: u64 = 1_000;
/// Of a page, unless its one entry has more.
const PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Entries that are read and rendered at once, if turns are short.
const CHUNK_ENTRIES: u64 = 256;
/// Entries of another program's file that are rendered at once; each stands for itself.
const ADOPTED_ENTRIES: u64 = 256;

struct Wanted {
    dialect: &'static dyn Dialect,
    before: Option<Seq>,
    limit: usize,
}

pub async fn frames(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Response {
    let id = match SessionId::parse(&id.map(|Path(id)| id).unwrap_or_default()) {
        Ok(id) => id,
        Err(bad) => return rest::bad_id(&bad),
    };
    let wanted = match wanted(&Query::of(&uri)) {
        Ok(wanted) => wanted,
        Err(why) => return error(StatusCode::BAD_REQUEST, why),
    };
    match app.sessions.summary(&id).await {
        Ok(Some(_)) => {}
        Ok(None) => return rest::not_found(),
        Err(failure) => return rest::store_failed(&failure),
    }
    let handle = app.sessions.handle(id, Who::via("rest"));
    match (History { handle, dialect: wanted.dialect }).page(&wanted).await {
        Ok(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(failure) => rest::command_failed(&app, &failure),
    }
}

fn wanted(query: &Query) -> Result<Wanted, String> {
    let name = query.get("dialect").unwrap_or("unified");
    let dialect =
        detect::by_name(name).ok_or("dialect: use agentloop, unified, loom or chat".to_owned())?;
    let before = rest::whole_number(query, "before")?.map(Seq);
    let limit = rest::whole_number(query, "limit")?.unwrap_or(FRAMES_DEFAULT).min(FRAMES_MAX);
    match usize::try_from(limit) {
        Ok(limit @ 1..) => Ok(Wanted { dialect, before, limit }),
        _ => Err("limit: use a whole number from 1 on".to_owned()),
    }
}

struct History {
    handle: Handle<DialectView>,
    dialect: &'static dyn Dialect,
}

impl History {
    async fn page(&self, wanted: &Wanted) -> Result<Bytes, CommandError> {
        let upto = wanted.before.map_or(Seq(u64::MAX), Seq::before);
        // Hardly any turn is without a frame, so more are not needed.
        let found = self.handle.beginnings(upto, wanted.limit).await?;
        let last = upto.min(found.head);
        let mut page = Page::new(wanted.limit, PAGE_BYTES_MAX);
        let mut end = last;
        let mut turns = found.turns.as_slice();
        while end > Seq::NONE && !page.is_full() {
            let from = match next_chunk(&mut turns, end) {
                Some(turn) => turn.before(),
                None if found.is_all => self.adopted_start(end).await?,
                None => break,
            };
            let mut chunk = page.older();
            self.render(&found, from, end, |seq, frames| chunk.push(seq, frames)).await?;
            page.take(chunk);
            end = from;
        }
        let first = page.first().unwrap_or(end.next());
        let is_begun = page.is_full() || end > Seq::NONE;
        let before = is_begun.then_some(first).filter(|first| *first > Seq(1));
        Ok(body(&page, before, last))
    }

    /// Renders what comes after `from`, which must not be inside a turn, up to `end`.
    async fn render(
        &self,
        found: &Beginnings,
        from: Seq,
        end: Seq,
        mut told: impl FnMut(Seq, Vec<Bytes>),
    ) -> Result<(), CommandError> {
        let mut renderer = Renderer::new(self.dialect, self.handle.id(), from, &found.open);
        let mut after = from;
        while after < end {
            let entries = self.handle.read(after, end).await?;
            let Some(last) = entries.last() else { break };
            after = last.seq;
            for entry in &entries {
                if let Some(named) = named(entry).filter(|named| *named <= from) {
                    let queued = self.handle.read(named.before(), named).await?;
                    queued.iter().for_each(|entry| renderer.recall(entry));
                }
                told(entry.seq, renderer.see(entry));
            }
        }
        Ok(())
    }

    /// Where to begin before the first turn: another program's entries stand each for itself.
    async fn adopted_start(&self, end: Seq) -> Result<Seq, CommandError> {
        let from = Seq(end.0.saturating_sub(ADOPTED_ENTRIES));
        let first = self.handle.read(from, from.next()).await?;
        let is_adopted = first.iter().all(|entry| matches!(entry.event, Event::Adopted { .. }));
        Ok(if is_adopted { from } else { Seq::NONE })
    }
}

/// The turn that the next chunk begins with. Short turns are read together, a long one by itself.
fn next_chunk(turns: &mut &[Seq], end: Seq) -> Option<Seq> {
    let near = turns.iter().take_while(|turn| end.0.saturating_sub(turn.0) < CHUNK_ENTRIES);
    let count = near.count().max(1).min(turns.len());
    let (chunk, older) = turns.split_at(count);
    *turns = older;
    chunk.last().copied()
}

/// The message that an entry names.
fn named(entry: &LogEntry) -> Option<Seq> {
    match &entry.event {
        Event::TurnStarted { work: Work::Message { message }, .. }
        | Event::MessageDropped { message, .. } => Some(message.0),
        _ => None,
    }
}

fn body(page: &Page, before: Option<Seq>, last: Seq) -> Bytes {
    let mut text = Vec::from(b"{\"frames\":[");
    for (at, frame) in page.frames().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        text.extend_from_slice(frame);
    }
    let before = before.map_or_else(|| "null".to_owned(), |before| before.to_string());
    text.extend_from_slice(format!("],\"before\":{before},\"seq\":{last}}}").as_bytes());
    text.into()
}
