//! What a refusal means.

use serde_json::json;

use super::*;
use crate::model::testing::{LATER, check_failure as check};

fn refused(status: u16, body: &[u8], retry_after_ms: Option<u64>) -> Failure {
    API.on("claude-opus-4-8").refused(status, body, retry_after_ms)
}

fn error(kind: &str, message: &str) -> Vec<u8> {
    let error = json!({"type": kind, "message": message});
    json!({"type": "error", "error": error, "request_id": "req_1"}).to_string().into_bytes()
}

#[test]
fn its_own_errors() {
    let limited = error("rate_limit_error", "This would exceed your rate limit of 50 requests.");
    let told = "Anthropic is rate limiting claude-opus-4-8 (429: rate_limit_error: This would \
        exceed your rate limit of 50 requests.)";
    let later = Heal::Later { after_ms: Some(3_000) };
    check(&refused(429, &limited, Some(3_000)), later, "rate_limited", told);

    let busy = error("overloaded_error", "Overloaded");
    let told = "Anthropic has trouble (529: overloaded_error: Overloaded)";
    check(&refused(529, &busy, None), LATER, "provider_error", told);

    let key = error("authentication_error", "invalid x-api-key");
    let told = "Anthropic did not accept the key (401: authentication_error: invalid x-api-key)";
    check(&refused(401, &key, None), Heal::Never, "unauthorized", told);

    let model = error("not_found_error", "model: claude-9");
    assert_eq!(&*refused(404, &model, None).fault.code, "not_found");

    let too_long = "prompt is too long: 208310 tokens > 200000 maximum";
    let failure = refused(400, &error("invalid_request_error", too_long), None);
    assert_eq!((failure.heal, &*failure.fault.code), (Heal::Shorter, "context_length_exceeded"));

    let poor = "Your credit balance is too low to access the Anthropic API.";
    let failure = refused(400, &error("invalid_request_error", poor), None);
    assert_eq!((failure.heal, &*failure.fault.code), (Heal::Never, "insufficient_quota"));
}

#[test]
fn reasoning_that_went_stale_is_left_behind_with_a_summary() {
    let stale = "messages.5.content.0: Invalid `signature` in `thinking` block. The block is \
        bound to a different conversation.";
    let failure = refused(400, &error("invalid_request_error", stale), None);
    assert_eq!((failure.heal, &*failure.fault.code), (Heal::Shorter, "invalid_request"));
    assert!(failure.fault.message.contains("messages.5.content.0"), "{failure:?}");
}

#[test]
fn errors_of_whoever_stands_in_front() {
    API.check_errors_in_front();
    for (body, words) in [
        (r#"{"detail":"Not Found"}"#, "Not Found"),
        (r#"{"error":{"message":"nope","code":404}}"#, "nope"),
    ] {
        let failure = refused(404, body.as_bytes(), None);
        assert!(failure.fault.message.ends_with(&format!("(404: {words})")), "{failure:?}");
    }
}
