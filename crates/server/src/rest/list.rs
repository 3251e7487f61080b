//! The list of sessions: what is told of each, pages of it, and a search. Opens no session.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use polyloop_agent::log::Summary;
use polyloop_dialects::rest::{Cost, SessionInfo, SessionList, Stand};

use super::{error, json, link, store_failed, whole_number};
use crate::app::App;
use crate::query::{self, Query};

const PAGE_SESSIONS_MAX: usize = 10_000;

/// Newest first; `?limit=` and `?before=<id of the last one seen>` page through them, and a `Link`
/// says where the next page is. `?search=` leaves out what does not have that text.
pub async fn list(State(app): State<Arc<App>>, uri: Uri) -> Response {
    let query = Query::of(&uri);
    let limit = match whole_number(&query, "limit") {
        Ok(limit) => limit.map_or(PAGE_SESSIONS_MAX, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX).min(PAGE_SESSIONS_MAX)
        }),
        Err(why) => return error(StatusCode::BAD_REQUEST, why),
    };
    let all = match app.sessions.list().await {
        Ok(all) => all,
        Err(failure) => return store_failed(&failure),
    };
    let from = match query.get("before") {
        None => 0,
        Some(id) => match all.iter().position(|session| session.id.as_str() == id) {
            Some(at) => at + 1,
            None => return error(StatusCode::BAD_REQUEST, "before: no session has that id"),
        },
    };
    let search = query.get("search").filter(|text| !text.is_empty());
    let words = search.map(str::to_lowercase);
    let rest = all.iter().skip(from);
    let mut found = rest.filter(|summary| words.as_ref().is_none_or(|w| has(summary, w)));
    let page: Vec<&Summary> = found.by_ref().take(limit).collect();
    let info = page.iter().map(|summary| {
        let awake = if app.sessions.is_awake(&summary.id) { Awake::Yes } else { Awake::No };
        told(summary, awake)
    });
    let mut response = json(StatusCode::OK, &SessionList { sessions: info.collect() });
    if let (Some(last), Some(_)) = (page.last(), found.next()) {
        let search = search.map(|text| format!("&search={}", query::encode(text)));
        let search = search.unwrap_or_default();
        link(&mut response, &format!("/sessions?limit={limit}&before={}{search}", last.id));
    }
    response
}

/// Whether title, id or preview has the text, which is in lower case.
fn has(summary: &Summary, words: &str) -> bool {
    let texts = [summary.named.title.as_deref(), summary.standing.preview.as_deref()];
    let mut texts = texts.into_iter().flatten().chain([summary.id.as_str()]);
    texts.any(|text| text.to_lowercase().contains(words))
}

/// Whether somebody has the session in memory: a turn that did not end runs only there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awake {
    Yes,
    No,
}

/// What a list says of a session.
pub fn told(summary: &Summary, awake: Awake) -> SessionInfo<'_> {
    let Summary { id, start, last, lines, named, spent, standing } = summary;
    let usage = Cost::of(spent.calls, &spent.usage);
    let agent = named.agent.unwrap_or_default();
    let stand = Stand {
        closed: standing.closed,
        running: standing.in_turn && awake == Awake::Yes,
        waiting: standing.waits.len(),
        preview: standing.preview.as_ref(),
    };
    SessionInfo::new(id, (*start, *last), *lines, &named.title, agent, usage, stand)
}
