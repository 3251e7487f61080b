//! What error bodies say, and objects as they come.

use super::*;

fn refusal_of(status: u16, body: &[u8]) -> Failure {
    let answer = Refused { status, body, model: "m-1", retry_after_ms: Some(3_000) };
    refusal("The server", &answer)
}

fn message_of(status: u16, body: &str) -> String {
    refusal_of(status, body.as_bytes()).fault.message.to_string()
}

#[test]
fn bodies_of_all_servers_are_read() {
    let bad = |said: &str| format!("The server did not accept the request (400: {said})");
    let openai = r#"{"error":{"message":"Unknown parameter: 'x'.","type":"invalid_request_error",
        "param":"x","code":"unknown_parameter"}}"#;
    assert_eq!(message_of(400, openai), bad("unknown_parameter: Unknown parameter: 'x'."));
    let no_code = r#"{"error":{"message":"No.","type":"invalid_request_error","code":null}}"#;
    assert_eq!(message_of(400, no_code), bad("invalid_request_error: No."));
    let vllm = r#"{"object":"error","message":"No.","type":"BadRequestError","code":400}"#;
    assert_eq!(message_of(400, vllm), bad("BadRequestError: No."));
    let openrouter = r#"{"error":{"message":"Provider returned error","code":400,
        "metadata":{"raw":"{\"no\":1}","provider_name":"P"}},"user_id":"u"}"#;
    assert_eq!(message_of(400, openrouter), bad("Provider returned error: {\"no\":1}"));
    assert_eq!(message_of(400, r#"{"error":"model 'm' not found"}"#), bad("model 'm' not found"));
    assert_eq!(message_of(400, r#"{"error":{"what":1}}"#), bad(r#"{"what":1}"#));
    assert_eq!(message_of(400, r#"{"error":["x"]}"#), bad(r#"["x"]"#));
    assert_eq!(message_of(400, r#"{"detail":"Not here"}"#), bad("Not here"));
    assert_eq!(message_of(400, r#"{"detail":[{"loc":1}]}"#), bad(r#"[{"loc":1}]"#));
    assert_eq!(
        message_of(400, r#"[{"error":{"message":"In a list","code":3}}]"#),
        bad("3: In a list")
    );
    assert_eq!(message_of(400, r#"{"other":1}"#), bad(r#"{"other":1}"#));
    assert_eq!(
        message_of(400, r#"{"error":{"message":"cut of"#),
        bad(r#"{"error":{"message":"cut of"#)
    );
    assert_eq!(message_of(400, "plain\n  text\u{7}"), bad("plain text"));
}

#[test]
fn what_is_no_json_is_told_in_words() {
    let page = "<html><head><title>502 Bad Gateway</title></head>\n<body>nginx</body>";
    assert_eq!(message_of(502, page), "The server has trouble (502: 502 Bad Gateway nginx)");
    let long = format!("<p>{}</p>", "word ".repeat(1_000));
    assert!(message_of(502, &long).chars().count() < 300);
    assert_eq!(message_of(503, ""), "The server has trouble (503)");
    assert_eq!(message_of(503, "<html"), "The server has trouble (503)");
    let packed = [0x1f, 0x8b, 8, 0, 0xff, 0xfe, 0, 3, 0x9d, 0xc1, 0xb1];
    assert_eq!(&*refusal_of(500, &packed).fault.code, "provider_error");
}

#[test]
fn a_refusal_keeps_status_and_time() {
    let failure =
        refusal_of(429, br#"{"error":{"message":"Slow down","code":"rate_limit_exceeded"}}"#);
    assert_eq!(failure.heal, Heal::Later { after_ms: Some(3_000) });
    assert_eq!(&*failure.fault.code, "rate_limited");
    assert_eq!(
        &*failure.fault.message,
        "The server is rate limiting m-1 (429: rate_limit_exceeded: Slow down)"
    );
    let quota = br#"{"error":{"message":"You exceeded it.","code":"insufficient_quota"}}"#;
    assert_eq!(refusal_of(429, quota).heal, Heal::Never);
    let long = br#"{"error":{"message":"Too much","code":"context_length_exceeded"}}"#;
    assert_eq!(refusal_of(400, long).heal, Heal::Shorter);
}

#[test]
fn inside_a_stream_a_word_says_what_could_help() {
    let heal = |json: &str| {
        let fields = Object::read(json).unwrap();
        let failure = broken("The server", "", told(&fields).unwrap());
        (failure.heal, failure.fault.code.to_string())
    };
    let later = |after_ms| Heal::Later { after_ms };
    let cases = [
        (r#"{"error":{"code":"server_error","message":"x"}}"#, later(None), "provider_error"),
        (r#"{"error":{"code":503,"message":"x"}}"#, later(None), "provider_error"),
        (r#"{"error":{"code":"429","message":"x"}}"#, later(None), "rate_limited"),
        (r#"{"error":{"code":401,"message":"x"}}"#, Heal::Never, "unauthorized"),
        (r#"{"error":{"code":"misalignment_policy_violation"}}"#, Heal::Never, "refused"),
        (r#"{"error":{"code":"image_too_large"}}"#, Heal::Never, "invalid_request"),
        (r#"{"error":"try again in 2s"}"#, later(Some(2_000)), "overloaded"),
        (r#"{"type":"error","message":"hm"}"#, later(None), "provider_error"),
    ];
    for (json, expected, code) in cases {
        assert_eq!(heal(json), (expected, code.to_owned()), "{json}");
    }
    let nothing = broken("The server", "", Told::nothing());
    assert_eq!(&*nothing.fault.message, "The server has trouble (no reason was given)");
}
