//! What providers say, and what comes of it.

use super::*;

fn told(status: Option<u16>, code: &str, message: &str) -> Failure {
    let said = Said { code: code.into(), message: message.into() };
    failure(Error { provider: "OpenAI", model: "m-1", status, said, retry_after_ms: None })
}

const LATER: Heal = Heal::Later { after_ms: None };

#[test]
fn each_fault_has_its_code_and_its_cure() {
    let cases: [(Option<u16>, &str, &str, &str, Heal); 28] = [
        (Some(400), "context_length_exceeded", "Too long", TOO_LONG_CODE, Heal::Shorter),
        (None, "context_length_exceeded", "Too long", TOO_LONG_CODE, Heal::Shorter),
        (
            Some(400),
            "invalid_request_error",
            "prompt is too long: 201000 tokens > 200000 maximum",
            TOO_LONG_CODE,
            Heal::Shorter,
        ),
        (
            Some(400),
            "INVALID_ARGUMENT",
            "The input token count (1048577) exceeds the maximum number of tokens allowed",
            TOO_LONG_CODE,
            Heal::Shorter,
        ),
        (
            Some(400),
            "exceed_context_size_error",
            "the request exceeds the available context size",
            TOO_LONG_CODE,
            Heal::Shorter,
        ),
        (Some(429), "insufficient_quota", "You exceeded it", "insufficient_quota", Heal::Never),
        (Some(429), "", "You exceeded your current quota", "insufficient_quota", Heal::Never),
        (Some(400), "", "Your credit balance is too low", "insufficient_quota", Heal::Never),
        (Some(402), "", "", "insufficient_quota", Heal::Never),
        (
            Some(429),
            "rate_limit_exceeded",
            "Add a payment method at example.org/account/billing; current quota",
            "rate_limited",
            LATER,
        ),
        (Some(429), "rate_limit_exceeded", "Slow down", "rate_limited", LATER),
        (None, "rate_limit_exceeded", "Slow down", "rate_limited", LATER),
        (None, "RESOURCE_EXHAUSTED", "Slow down", "rate_limited", LATER),
        (Some(529), "overloaded_error", "Overloaded", "provider_error", LATER),
        (None, "overloaded_error", "Overloaded", "overloaded", LATER),
        (None, "server_is_overloaded", "", "overloaded", LATER),
        (Some(500), "", "", "provider_error", LATER),
        (Some(503), "UNAVAILABLE", "Down", "provider_error", LATER),
        (None, "server_error", "Oops", "provider_error", LATER),
        (None, "", "", "provider_error", LATER),
        (Some(401), "invalid_api_key", "No", "unauthorized", Heal::Never),
        (Some(403), "permission_error", "No", "unauthorized", Heal::Never),
        (Some(404), "model_not_found", "No", "not_found", Heal::Never),
        (Some(302), "", "", "redirected", Heal::Never),
        (Some(407), "", "", "proxy", LATER),
        (Some(400), "invalid_request_error", "messages: empty", "invalid_request", Heal::Never),
        (Some(413), "request_too_large", "Too many bytes", "invalid_request", Heal::Never),
        (None, "invalid_prompt", "Not this", "refused", Heal::Never),
    ];
    for (status, code, message, expected, heal) in cases {
        let failure = told(status, code, message);
        let got = (&*failure.fault.code, failure.heal);
        assert_eq!(got, (expected, heal), "{status:?} {code} {message}");
        if !message.is_empty() {
            assert!(failure.fault.message.contains(message), "{}", failure.fault.message);
        }
    }
}

#[test]
fn the_wait_is_read_from_headers_first_then_from_words() {
    let said = Said { code: "".into(), message: "Please try again in 11.054s.".into() };
    let mut error = Error {
        provider: "OpenAI",
        model: "m",
        status: Some(429),
        said,
        retry_after_ms: Some(3_000),
    };
    let heal = |error: &Error<'_>| failure(error.clone()).heal;
    assert_eq!(heal(&error), Heal::Later { after_ms: Some(3_000) });
    error.retry_after_ms = None;
    assert_eq!(heal(&error), Heal::Later { after_ms: Some(11_054) });
    let cases = [
        ("try again in 20ms", Some(20)),
        ("Retry in 1.5 seconds", Some(1_500)),
        ("please retry after 2 minutes", Some(120_000)),
        ("Try again in 1h", Some(3_600_000)),
        ("try again in a while", None),
        ("try again in 5 years", None),
        ("try again in ", None),
        ("try again in ..s", None),
        ("İ try again in 3s", Some(3_000)),
    ];
    for (message, after_ms) in cases {
        assert_eq!(asked_ms(message), after_ms, "{message}");
    }
}

#[test]
fn a_long_or_dirty_sentence_is_made_short_and_clean() {
    let failure = told(Some(400), "bad", &format!("a\n\tb \u{1b}[31m{}", "x".repeat(2_000)));
    let message = &*failure.fault.message;
    assert!(message.starts_with("OpenAI did not accept the request (400: bad: a b [31mxxx"));
    assert!(message.len() < 700 && !message.contains(char::is_control), "{message:?}");
    assert_eq!(&*told(Some(500), "", "").fault.message, "OpenAI has trouble (500)");
    assert_eq!(&*told(None, "boom", "").fault.message, "OpenAI has trouble (boom)");
}
