//! A session's lines, whole or a page of them, streamed: they are never all in memory.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use polyloop_agent::log::LinePlace;
use polyloop_dialects::rest::{ContextTold, Cost};
use polyloop_session::SessionId;
use polyloop_session::wait::Who;

use super::{bad_id, command_failed, error, json, link, not_found, store_failed, whole_number};
use crate::app::App;
use crate::query::Query;

/// `?after=<count>` leaves out that many lines, `?limit=` says how many follow at most; a `Link`
/// says where the next page is.
pub async fn read(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
    uri: Uri,
) -> Response {
    let id = id.map(|Path(id)| id).unwrap_or_default();
    let (id, is_context) = match id.strip_suffix(":context") {
        Some(id) => (id, true),
        None => (id.as_str(), false),
    };
    let id = match SessionId::parse(id) {
        Ok(id) => id,
        Err(bad) => return bad_id(&bad),
    };
    if is_context {
        return context(&app, id).await;
    }
    let query = Query::of(&uri);
    let (after, limit) = match (whole_number(&query, "after"), whole_number(&query, "limit")) {
        (Ok(after), Ok(limit)) => (after.unwrap_or(0), limit),
        (Err(why), _) | (_, Err(why)) => return error(StatusCode::BAD_REQUEST, why),
    };
    if limit == Some(0) {
        return error(StatusCode::BAD_REQUEST, "limit: use a whole number from 1 on");
    }
    let (lines, agent, spent) = match app.sessions.summary(&id).await {
        Ok(Some(summary)) => {
            (summary.lines, summary.named.agent.unwrap_or_default(), summary.spent)
        }
        Ok(None) => return not_found(),
        Err(failure) => return store_failed(&failure),
    };
    if after > lines {
        let why = format!("after: the session has {lines} events");
        return error(StatusCode::BAD_REQUEST, why);
    }
    let next = limit.map(|limit| after.saturating_add(limit));
    let (from, upto) = match places(&app, &id, after, next).await {
        Ok(places) => places,
        Err(failure) => return store_failed(&failure),
    };
    // A store that fails should do so before the answer has begun.
    let first = match app.sessions.lines(&id, from, upto).await {
        Ok(page) => page,
        Err(failure) => return store_failed(&failure),
    };
    let usage =
        Cost::of(spent.calls, &spent.usage).and_then(|usage| serde_json::to_string(&usage).ok());
    let usage = usage.map(|usage| format!("\"usage\":{usage},")).unwrap_or_default();
    let agent = agent.name();
    let head = format!("{{\"id\":\"{id}\",\"agent\":\"{agent}\",{usage}\"events\":[");
    let head = Bytes::from(head);
    let path = format!("/sessions/{id}");
    let body = Body::from_stream(stream::iter([Ok::<_, std::io::Error>(head)]).chain(pages(
        app,
        id,
        first,
        (from, upto),
    )));
    let mut response = ([(CONTENT_TYPE, "application/json")], body).into_response();
    if let (Some(limit), Some(next)) = (limit, next.filter(|next| *next < lines)) {
        link(&mut response, &format!("{path}?after={next}&limit={limit}"));
    }
    response
}

/// `GET /sessions/{id}:context`: how full its window is, and with what.
async fn context(app: &App, id: SessionId) -> Response {
    match app.sessions.summary(&id).await {
        Ok(Some(_)) => {}
        Ok(None) => return not_found(),
        Err(failure) => return store_failed(&failure),
    }
    match app.sessions.handle(id.clone(), Who::via("rest")).context_info().await {
        Ok(info) => json(StatusCode::OK, &ContextTold::new(&id, &info)),
        Err(failure) => command_failed(app, &failure),
    }
}

async fn places(
    app: &App,
    id: &SessionId,
    after: u64,
    next: Option<u64>,
) -> Result<(LinePlace, LinePlace), polyloop_agent::log::LogError> {
    let from = match after {
        0 => LinePlace::default(),
        after => app.sessions.line_place(id, after).await?,
    };
    let upto = match next {
        None => LinePlace::END,
        Some(next) => app.sessions.line_place(id, next).await?,
    };
    Ok((from, upto))
}

/// Lines, and the place after them.
type Page = (Vec<String>, LinePlace);

fn pages(
    app: Arc<App>,
    id: SessionId,
    first: Page,
    (from, upto): (LinePlace, LinePlace),
) -> impl stream::Stream<Item = Result<Bytes, std::io::Error>> + use<> {
    let begin = Some((from, true, Some(first)));
    stream::unfold(begin, move |place| {
        let (app, id) = (app.clone(), id.clone());
        async move {
            let (from, is_first, read) = place?;
            let page = match read {
                Some(page) => Ok(page),
                None => app.sessions.lines(&id, from, upto).await,
            };
            match page {
                Ok((_, next)) if next == from => Some((Ok(Bytes::from("]}")), None)),
                Ok((lines, next)) => {
                    let comma = if is_first || lines.is_empty() { "" } else { "," };
                    let is_first = is_first && lines.is_empty();
                    let text = format!("{comma}{}", lines.join(","));
                    Some((Ok(Bytes::from(text)), Some((next, is_first, None))))
                }
                // The body has begun, so all that is left is to break it off.
                Err(failure) => Some((Err(std::io::Error::other(failure.to_string())), None)),
            }
        }
    })
}
