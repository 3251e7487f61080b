//! Streams: the same words in every style and size of pieces.

use serde_json::{Value, json};

use crate::client::{APIS, Connection, ask, events, grown, request, streamed};
use polyloop_fake_model::FakeModel;

const TEXT: &str = "Grüße, 漢字 and 🙂: \"all\"\nof it.";

fn reply(more: Value) -> Value {
    let mut reply = json!({"blocks": [{"say": TEXT}], "pieces": 4});
    for (key, value) in more.as_object().unwrap() {
        reply[key] = value.clone();
    }
    reply
}

/// Times and numbers of requests differ from one answer to the next.
fn without_ids(text: &str) -> String {
    let mut events = events(text);
    events.iter_mut().for_each(blank);
    Value::from(events).to_string()
}

fn blank(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for key in ["id", "item_id", "created", "created_at", "completed_at", "responseId"] {
                fields.remove(key);
            }
            fields.values_mut().for_each(blank);
        }
        Value::Array(values) => values.iter_mut().for_each(blank),
        _ => {}
    }
}

#[tokio::test]
async fn every_style_says_the_same() {
    let model = FakeModel::start().await.unwrap();
    for api in APIS {
        let plain = streamed(&model, api, &reply(json!({}))).await;
        assert!(plain.is_whole);
        assert_eq!(grown(api, &plain.text()), TEXT, "{api}");
        for style in ["crlf", "no_space", "comments", "bom", "split_data"] {
            let styled = streamed(&model, api, &reply(json!({"style": {style: true}}))).await;
            assert_ne!(styled.body.len(), plain.body.len(), "{api} {style}");
            assert_eq!(without_ids(&styled.text()), without_ids(&plain.text()), "{api} {style}");
        }
        let more = json!({"style": {"unknown_events": true, "done_twice": true}});
        let more = streamed(&model, api, &reply(more)).await;
        assert_eq!(grown(api, &more.text()), TEXT, "{api}");
        assert!(events(&more.text()).len() > events(&plain.text()).len() || api == "chat", "{api}");
    }
}

#[tokio::test]
async fn styles_look_as_they_are_called() {
    let model = FakeModel::start().await.unwrap();
    let text = async |style: &str| {
        streamed(&model, "anthropic", &reply(json!({"style": {style: true}}))).await.text()
    };
    assert!(text("crlf").await.starts_with("event: message_start\r\ndata: {"));
    assert!(text("no_space").await.starts_with("event:message_start\ndata:{"));
    assert!(text("comments").await.starts_with(": "));
    assert!(text("bom").await.starts_with("\u{FEFF}event"));
    assert!(text("split_data").await.starts_with("event: message_start\ndata: {\ndata: \""));
    assert!(text("unknown_events").await.contains("fake_unknown"));
    assert!(text("done_twice").await.matches("event: message_stop").count() == 2);
    let chat = streamed(&model, "chat", &reply(json!({"style": {"done_twice": true}}))).await;
    assert!(chat.text().ends_with("data: [DONE]\n\ndata: [DONE]\n\n"));
}

#[tokio::test]
async fn pieces_are_as_long_as_told() {
    let model = FakeModel::start().await.unwrap();
    for api in APIS {
        for pieces in [1, 7, 1000] {
            let answer = streamed(&model, api, &reply(json!({"pieces": pieces}))).await;
            assert_eq!(grown(api, &answer.text()), TEXT, "{api} {pieces}");
        }
    }
    let one = streamed(&model, "chat", &reply(json!({"pieces": 1}))).await;
    let contents = events(&one.text());
    let contents = contents.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str());
    assert_eq!(contents.filter(|text| !text.is_empty()).count(), TEXT.chars().count());
}

#[tokio::test]
async fn a_write_is_as_long_as_told() {
    let model = FakeModel::start().await.unwrap();
    for api in APIS {
        let whole = streamed(&model, api, &reply(json!({}))).await;
        for bytes in [1, 3, 1000] {
            let answer = streamed(&model, api, &reply(json!({"chunk_bytes": bytes}))).await;
            assert_eq!(without_ids(&answer.text()), without_ids(&whole.text()), "{api} {bytes}");
            let (last, before) = answer.chunks.split_last().unwrap();
            assert!(before.iter().all(|size| *size == bytes) && *last <= bytes, "{api} {bytes}");
        }
    }
}

#[tokio::test]
async fn a_delay_changes_no_byte() {
    let model = FakeModel::start().await.unwrap();
    for api in APIS {
        let whole = streamed(&model, api, &reply(json!({}))).await;
        let slow = streamed(&model, api, &reply(json!({"delay_ms": 1}))).await;
        assert_eq!(without_ids(&slow.text()), without_ids(&whole.text()), "{api}");
        assert!(slow.chunks.len() > whole.chunks.len(), "{api}: each delta goes out alone");
    }
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let model = FakeModel::start().await.unwrap();
    let mut connection = Connection::open(&model).await;
    for (at, api) in APIS.iter().cycle().take(12).enumerate() {
        let stream = at % 2 == 0 || at > 6;
        let (path, key, body) = request(api, stream, "say: again");
        connection.send("POST", &path, key, &body.to_string()).await;
        let answer = connection.answer().await.unwrap();
        assert!(answer.is_whole && answer.text().contains("again"), "{api} {at}");
    }
    assert_eq!(model.requests().len(), 12);
    assert_eq!(model.state(), json!({"open": 0, "aborted": 0, "queued": 0}));
}

#[tokio::test]
async fn hard_calls_are_sent_as_they_are() {
    let model = FakeModel::start().await.unwrap();
    let call = |more: Value| {
        let mut call = json!({"call": "t", "args": {"a": 1}});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"blocks": [call], "repeat": 2})
    };
    for stream in [false, true] {
        for (more, present, absent) in [
            (json!({"id": "same"}), "\"same\"", r#":"call_"#),
            (json!({"id": null}), "\"name\":\"t\"", r#":"call_"#),
            (json!({"args": "{\"a\":"}), r#""{\"a\":""#, "none"),
            (json!({"args_object": true}), r#""arguments":{"a":1}"#, r#"{\"a\":1}"#),
        ] {
            model.script(&json!([call(more.clone())])).unwrap();
            for api in ["responses", "chat"] {
                let text = ask(&model, api, stream, "x").await.unwrap().text();
                assert!(text.contains(present) && !text.contains(absent), "{api} {more}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn items_go_through_untouched() {
    let model = FakeModel::start().await.unwrap();
    let item = json!({"type": "brand_new", "deep": [1, {"x": null}]});
    for stream in [false, true] {
        for api in ["responses", "anthropic", "gemini"] {
            model.script(&json!([{"blocks": [{"item": item}]}])).unwrap();
            let text = ask(&model, api, stream, "x").await.unwrap().text();
            assert!(text.contains(&item.to_string()), "{api}: {text}");
        }
    }
}
