//! Google's Gemini interface. `golden/models/gemini` holds requests and answers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::model::testing::Interface;

mod answers;
mod refusals;
mod requests;

const API: Interface = Interface {
    api: &Gemini,
    folder: "gemini",
    model: "gemini-3-pro-preview",
    instructions: "You help with code.",
    tools: ["Runs a command.", "Changes files."],
    words: WORDS,
    keeps_objects: true,
};

const WORDS: &str = "
    candidates content parts role model text thought thoughtSignature functionCall id name args
    executableCode inlineData finishReason finishMessage index STOP MAX_TOKENS SAFETY
    MALFORMED_FUNCTION_CALL promptFeedback blockReason OTHER usageMetadata promptTokenCount
    candidatesTokenCount thoughtsTokenCount cachedContentTokenCount toolUsePromptTokenCount
    error code message status details @type type.googleapis.com/google.rpc.RetryInfo retryDelay
    3s
";

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
