//! What a refusal means.

use polyloop_session::Heal;
use serde_json::{Value, json};

use super::*;
use crate::model::testing::{LATER, check_failure as check};

fn refused(status: u16, body: &[u8], retry_after_ms: Option<u64>) -> Failure {
    API.on("gemini-2.5-pro").refused(status, body, retry_after_ms)
}

fn error(code: u16, status: &str, message: &str, details: Value) -> Value {
    json!({"error": {"code": code, "message": message, "status": status, "details": details}})
}

fn bytes(answer: &Value) -> Vec<u8> {
    serde_json::to_vec_pretty(answer).unwrap()
}

fn quota(id: &str, value: &str) -> Vec<u8> {
    let kind = |name: &str| format!("type.googleapis.com/google.rpc.{name}");
    let violation = json!({
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
        "quotaId": id,
        "quotaDimensions": {"model": "gemini-2.5-pro"},
        "quotaValue": value,
    });
    let details = json!([
        {"@type": kind("QuotaFailure"), "violations": [violation]},
        {"@type": kind("Help"), "links": []},
        {"@type": kind("RetryInfo"), "retryDelay": "3.2s"},
    ]);
    let words = "You exceeded your current quota, please check your plan and billing details.";
    bytes(&json!([error(429, "RESOURCE_EXHAUSTED", words, details)]))
}

#[test]
fn limits_for_a_minute_pass_and_others_do_not() {
    let minute = quota("GenerateRequestsPerMinutePerProjectPerModel", "15");
    let told = "Google is rate limiting gemini-2.5-pro (429: RESOURCE_EXHAUSTED: \
        GenerateRequestsPerMinutePerProjectPerModel)";
    let later = Heal::Later { after_ms: Some(3_200) };
    check(&refused(429, &minute, Some(90_000)), later, "rate_limited", told);
    for gone in [quota("GenerateRequestsPerDayPerProject", "50"), quota("PerMinute", "0")] {
        let failure = refused(429, &gone, None);
        let wanted = (Heal::Never, "insufficient_quota");
        assert_eq!((failure.heal, &*failure.fault.code), wanted);
    }
    let bare = bytes(&error(429, "RESOURCE_EXHAUSTED", "Exhausted.", json!(null)));
    let later = Heal::Later { after_ms: Some(7_000) };
    let told = "Google is rate limiting gemini-2.5-pro (429: RESOURCE_EXHAUSTED: Exhausted.)";
    check(&refused(429, &bare, Some(7_000)), later, "rate_limited", told);
}

#[test]
fn its_own_errors() {
    let refuse = |code, status: &str, message: &str, details: Value| {
        refused(code, &bytes(&error(code, status, message, details)), None)
    };
    let reason = json!([{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
    }]);
    let failure = refuse(400, "INVALID_ARGUMENT", "API key not valid.", reason);
    let told = "Google did not accept the key (400: INVALID_ARGUMENT: API key not valid.)";
    check(&failure, Heal::Never, "unauthorized", told);

    let long = "The input token count (1200000) exceeds the maximum number of tokens allowed.";
    assert_eq!(refuse(400, "INVALID_ARGUMENT", long, json!([])).heal, Heal::Shorter);

    let failure = refuse(503, "UNAVAILABLE", "The model is overloaded.", json!({}));
    let told = "Google has trouble (503: UNAVAILABLE: The model is overloaded.)";
    check(&failure, LATER, "provider_error", told);

    let failure = refuse(404, "NOT_FOUND", "models/x is not found", json!([3]));
    assert_eq!(&*failure.fault.code, "not_found");
    let failure = refuse(403, "PERMISSION_DENIED", "No leave.", json!([]));
    assert_eq!(&*failure.fault.code, "unauthorized");
    let failure = refuse(400, "INVALID_ARGUMENT", "Bad.", json!([]));
    let told = "Google did not accept the request (400: INVALID_ARGUMENT: Bad.)";
    check(&failure, Heal::Never, "invalid_request", told);
}

#[test]
fn errors_of_whoever_stands_in_front() {
    API.check_errors_in_front();
    let page = b"<!DOCTYPE html>\n<title>Error 404 (Not Found)!!1</title><p>That's an error.";
    let failure = refused(404, page, None);
    let told = "(404: Error 404 (Not Found)!!1 That's an error.)";
    assert!(failure.fault.message.ends_with(told), "{failure:?}");
    let cases: [(&[u8], &str); 2] = [
        (b"[{\"error\": {\"code", "Google has trouble (500: [{\"error\": {\"code)"),
        (b"[]", "Google has trouble (500: [])"),
    ];
    for (body, told) in cases {
        check(&refused(500, body, None), LATER, "provider_error", told);
    }
}

#[test]
fn a_wait_is_read_in_seconds() {
    let delayed = |delay: Value| {
        let kind = "type.googleapis.com/google.rpc.RetryInfo";
        let details = json!([{"@type": kind, "retryDelay": delay}]);
        match refused(503, &bytes(&error(503, "UNAVAILABLE", "x", details)), None).heal {
            Heal::Later { after_ms } => after_ms,
            heal => panic!("{heal:?}"),
        }
    };
    assert_eq!(delayed(json!("3s")), Some(3_000));
    assert_eq!(delayed(json!("0.0005s")), Some(1));
    for odd in ["-3s", "3", "s", "NaNs", "infs", ""] {
        assert_eq!(delayed(json!(odd)), None, "{odd}");
    }
    assert_eq!([delayed(json!(3)), delayed(json!(null))], [None, None]);
}
