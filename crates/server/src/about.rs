//! What the server is, for whoever is about to speak with it: `GET /about`, `GET /models`.
//!
//! Tells nothing that a session would not tell its clients, and never a key.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use polyloop_dialects::rest::about::{About, Facts, ModelList, ModelTold};

use crate::app::App;
use crate::rest::json;

pub async fn about(State(app): State<Arc<App>>) -> Response {
    let kit = app.sessions.kit();
    let facts = Facts {
        provider: app.offers.provider,
        model: &kit.settings.model,
        agent: kit.settings.agent.unwrap_or_default(),
        mode: kit.settings.mode,
        bypass_allowed: kit.limits.bypass_allowed,
        working_directory: &kit.settings.cwd,
        // The first one is the working directory.
        workspace_roots: kit.places.roots.get(1..).unwrap_or_default(),
        sandbox: kit.places.common.sandbox,
        keeps_sessions: app.keeps_sessions,
        message_bytes_max: app.message_bytes_max,
        queued_messages_max: kit.limits.queued_messages_max,
    };
    json(StatusCode::OK, &About::new(facts))
}

pub async fn models(State(app): State<Arc<App>>) -> Response {
    let models = app.offers.models.iter().map(|offer| ModelTold {
        model: &offer.name,
        provider: offer.provider,
        context_window: offer.tokens_max,
    });
    let default = &app.sessions.kit().settings.model;
    json(StatusCode::OK, &ModelList { default, models: models.collect() })
}
