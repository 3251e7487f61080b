#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::model::json::testing::Golden;

mod answers;
mod refusals;
mod requests;

fn golden() -> Golden {
    Golden::new("gemini")
}

#[test]
fn it_is_reached_where_google_is() {
    assert_eq!((Gemini.name(), Gemini.provider()), ("google", "Google"));
    let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
    assert_eq!(Gemini.path("gemini-2.5-pro"), path);
    assert_eq!(Gemini.path("models/gemini-2.5-pro"), path);
    let path = "/v1beta/models/..%2Fa%3Fb%23%C3%A9%20c:streamGenerateContent?alt=sse";
    assert_eq!(Gemini.path("../a?b#é c"), path);
    assert_eq!(Gemini.models_path(), "/v1beta/models?pageSize=1000");
    assert!(Gemini.headers().is_empty());
}
