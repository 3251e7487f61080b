//! Every way to fail.

use polyloop_fake_model::FakeModel;
use serde_json::{Value, json};

use crate::client::{APIS, Connection, ask, events, grown, request, streamed, until_state};

#[tokio::test]
async fn a_cut_after_bytes_is_exact() {
    let model = FakeModel::start().await.unwrap();
    for api in APIS {
        let reply = json!({"blocks": [{"say": "a few words"}]});
        let streamed_bytes = streamed(&model, api, &reply).await.body.len();
        model.script(&json!([reply])).unwrap();
        let whole_bytes = ask(&model, api, false, "x").await.unwrap().body.len();
        for bytes in (0..streamed_bytes).step_by(97) {
            let reply = json!({"blocks": [{"say": "a few words"}], "cut_bytes": bytes});
            let cut = streamed(&model, api, &reply).await;
            assert_eq!(cut.body.len(), bytes, "{api}");
            assert!(!cut.is_whole, "{api} {bytes}");
            model.script(&json!([reply])).unwrap();
            let cut = ask(&model, api, false, "x").await.unwrap();
            assert_eq!(cut.body.len(), bytes.min(whole_bytes), "{api}");
            assert_eq!(cut.is_whole, bytes >= whole_bytes, "{api} {bytes}");
        }
    }
    assert_eq!(model.state(), json!({"open": 0, "aborted": 0, "queued": 0}));
}

#[tokio::test]
async fn a_cut_of_much_is_exact_too() {
    let model = FakeModel::start().await.unwrap();
    let bytes = 5_000_001;
    let reply = json!({"raw": "0123456789", "raw_times": 1_000_000, "cut_bytes": bytes});
    for stream in [false, true] {
        model.script(&json!([reply])).unwrap();
        let cut = ask(&model, "chat", stream, "x").await.unwrap();
        assert_eq!(cut.body.len(), bytes);
        assert!(!cut.is_whole);
    }
}

#[tokio::test]
async fn a_cut_in_a_block_is_exact() {
    let model = FakeModel::start().await.unwrap();
    let text = "Grüße \"all\"";
    for api in APIS {
        for chars in 0..=text.chars().count() {
            let begin: String = text.chars().take(chars).collect();
            let reply = json!({"blocks": [{"think": "Hm. "}, {"say": text}, {"say": "never"}],
                "cut_block": [1, chars], "pieces": 3});
            let cut = streamed(&model, api, &reply).await;
            assert!(!cut.is_whole, "{api}");
            assert_eq!(grown(api, &cut.text()), format!("Hm. {begin}"), "{api}");
            model.script(&json!([reply])).unwrap();
            let cut = ask(&model, api, false, "x").await.unwrap();
            let quoted = Value::from(&*begin).to_string();
            assert!(!cut.is_whole, "{api}");
            assert!(cut.text().ends_with(&quoted[..quoted.len() - 1]), "{api}: {}", cut.text());
        }
    }
}

#[tokio::test]
async fn a_cut_in_arguments_is_exact() {
    let model = FakeModel::start().await.unwrap();
    let args = r#"{"command":"rm -r x"}"#;
    for api in APIS {
        for chars in 0..=args.len() {
            let reply = json!({"blocks": [{"call": "bash", "args": args}], "pieces": 4,
                "cut_block": [0, chars]});
            let cut = streamed(&model, api, &reply).await;
            assert!(!cut.is_whole, "{api}");
            if api == "gemini" {
                // It comes whole or not at all: here not at all.
                assert!(cut.text().ends_with(&args[..chars]), "{}", cut.text());
                assert!(events(&cut.text()).is_empty());
            } else {
                assert_eq!(grown(api, &cut.text()), args[..chars], "{api}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_may_end_without_its_end() {
    let model = FakeModel::start().await.unwrap();
    for api in APIS {
        let answer =
            streamed(&model, api, &json!({"blocks": [{"say": "x"}], "no_final": true})).await;
        let text = answer.text();
        assert!(answer.is_whole && grown(api, &text) == "x", "{api}");
        for word in
            ["completed\"}", "[DONE]", "\"finish_reason\":\"", "message_stop", "finishReason"]
        {
            assert!(!text.contains(word), "{api} {word}: {text}");
        }
    }
}

#[tokio::test]
async fn what_hangs_is_open_until_the_client_goes() {
    let model = FakeModel::start().await.unwrap();
    let mut gone = 0;
    for api in APIS {
        for (reply, bytes) in [
            (json!({"hang": true}), None),
            (json!({"hang_bytes": 0, "blocks": [{"say": "x"}]}), Some(0)),
            (json!({"hang_bytes": 50, "blocks": [{"say": "x"}]}), Some(50)),
            (json!({"delay_ms": 3_600_000, "blocks": [{"say": "x"}]}), Some(0)),
        ] {
            model.script(&json!([reply])).unwrap();
            let (path, key, body) = request(api, true, "x");
            let mut connection = Connection::open(&model).await;
            connection.send("POST", &path, key, &body.to_string()).await;
            if let Some(bytes) = bytes {
                assert_eq!(connection.head().await.unwrap().0, 200);
                let body = connection.bytes_of_open_stream(bytes).await;
                assert!(bytes == 0 || body.len() == bytes, "{api}");
            }
            until_state(&model, "open", 1).await;
            drop(connection);
            gone += 1;
            until_state(&model, "aborted", gone).await;
            assert_eq!(model.state()["open"], 0);
        }
    }
}

#[tokio::test]
async fn a_client_that_goes_in_the_middle_is_counted() {
    let model = FakeModel::start().await.unwrap();
    let text = "word ".repeat(10_000);
    model.script(&json!([{"blocks": [{"say": text}], "delay_ms": 10}])).unwrap();
    let (path, key, body) = request("chat", true, "x");
    let mut connection = Connection::open(&model).await;
    connection.send("POST", &path, key, &body.to_string()).await;
    connection.head().await.unwrap();
    connection.bytes_of_open_stream(1000).await;
    assert_eq!(model.state(), json!({"open": 1, "aborted": 0, "queued": 0}));
    drop(connection);
    until_state(&model, "aborted", 1).await;
}

#[tokio::test]
async fn a_disconnect_has_no_answer() {
    let model = FakeModel::start().await.unwrap();
    model.script(&json!([{"disconnect": true}])).unwrap();
    assert!(ask(&model, "chat", true, "x").await.is_none());
    assert!(ask(&model, "chat", true, "fail: disconnect").await.is_none());
    assert_eq!(model.state(), json!({"open": 0, "aborted": 0, "queued": 0}));
}

#[tokio::test]
async fn an_error_in_the_stream_has_the_shape_of_its_api() {
    let model = FakeModel::start().await.unwrap();
    for (api, want) in [
        (
            "responses",
            json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow",
            "param": null, "sequence_number": 6}),
        ),
        (
            "chat",
            json!({"error": {"message": "slow", "type": "requests", "param": null,
            "code": "rate_limit_exceeded"}}),
        ),
        (
            "anthropic",
            json!({"type": "error", "error": {"type": "rate_limit_error",
            "message": "slow"}}),
        ),
        (
            "gemini",
            json!({"error": {"code": 429, "message": "slow",
            "status": "RESOURCE_EXHAUSTED"}}),
        ),
    ] {
        let reply = json!({"blocks": [{"say": "x"}], "error": {"type": "429", "message": "slow"}});
        let text = streamed(&model, api, &reply).await.text();
        let mut last = events(&text).pop().unwrap();
        for (path, key) in [("", "request_id"), ("/error", "details"), ("", "sequence_number")] {
            if let Some(Value::Object(fields)) = last.pointer_mut(path) {
                fields.remove(key);
            }
        }
        let mut want = want;
        want.as_object_mut().unwrap().remove("sequence_number");
        assert_eq!(last, want, "{api}");
        assert_eq!(grown(api, &text), "x", "{api}");
        assert!(!text.contains("[DONE]"), "{api}");
    }
}

#[tokio::test]
async fn every_word_of_fail_fails() {
    let model = FakeModel::start().await.unwrap();
    let status = |api: &str, word: &str| match (word, api) {
        ("context", _) => 400,
        ("quota", "anthropic") => 402,
        ("quota", _) => 429,
        ("overloaded", "anthropic") => 529,
        ("overloaded", _) => 503,
        (word, _) => word.parse().unwrap(),
    };
    for api in APIS {
        for stream in [false, true] {
            for word in ["429", "500", "529", "401", "400", "context", "quota", "overloaded"] {
                let text = format!("say: never\nfail: {word}");
                let answer = ask(&model, api, stream, &text).await.unwrap();
                assert_eq!(answer.status, status(api, word), "{api} {word}");
                let message = &answer.json()["error"]["message"];
                assert!(message.as_str().is_some_and(|text| !text.is_empty()), "{api} {word}");
                let says_when = answer.status == 429 && word != "quota" && api != "gemini";
                assert_eq!(answer.head.contains("retry-after"), says_when, "{api} {word}");
                let has_delay = answer.text().contains("retryDelay");
                assert_eq!(has_delay, word == "429" && api == "gemini", "{api} {word}");
            }
            let refused = ask(&model, api, stream, "fail: refusal").await.unwrap().text();
            assert!(refused.contains("cannot help") || refused.contains("PROHIBITED"), "{refused}");
            let garbage = ask(&model, api, stream, "fail: garbage").await.unwrap();
            assert!(
                garbage.status == 200 && serde_json::from_slice::<Value>(&garbage.body).is_err()
            );
        }
    }
}

#[tokio::test]
async fn an_answer_may_be_anything() {
    let model = FakeModel::start().await.unwrap();
    model
        .script(&json!([
            {"http": {"status": 302, "headers": {"location": "/elsewhere"}, "body": "gone"}},
            {"http": {"status": 404, "body": {"odd": true}}},
            {"raw": "<html>", "content_type": "text/html", "http": {"status": 502}},
            {"raw_base64": "/wD+", "http": {"headers": {"content-encoding": "gzip"}}},
            {"raw": "ab", "raw_times": 3},
            {"blocks": [{"say": "x"}], "http": {"status": 201, "headers": {"x-more": "1"}}},
        ]))
        .unwrap();
    let next = async || ask(&model, "chat", false, "x").await.unwrap();
    let answer = next().await;
    assert_eq!((answer.status, answer.text()), (302, "gone".to_owned()));
    assert!(answer.head.contains("location: /elsewhere"));
    let answer = next().await;
    assert_eq!((answer.status, answer.json()), (404, json!({"odd": true})));
    let answer = next().await;
    assert_eq!((answer.status, answer.text()), (502, "<html>".to_owned()));
    assert!(answer.head.contains("content-type: text/html"));
    let answer = next().await;
    assert_eq!(answer.body, [0xFF, 0x00, 0xFE]);
    assert!(answer.head.contains("content-encoding: gzip"));
    assert_eq!(next().await.text(), "ababab");
    let answer = next().await;
    assert!(answer.status == 201 && answer.head.contains("x-more: 1"));
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "x");
}
