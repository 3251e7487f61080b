//! What is read from which answer.

use polyloop_session::history::Message;
use polyloop_session::item::ItemKind;
use polyloop_session::item::Opaque;
use proptest::prelude::*;
use serde_json::json;

use super::plain::Plain;
use super::*;
use crate::model::sse::Event;
use crate::model::testing::*;
use crate::model::{Chunk, Stop};

answers_hold!(API);

/// The chunks of an answer with these deltas, which then stops.
fn read(deltas: &[serde_json::Value]) -> Vec<Chunk> {
    let of = |delta| event(&json!({ "choices": [{ "delta": delta }] }));
    let mut events: Vec<Event> = deltas.iter().map(of).collect();
    events.push(event(&json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] })));
    API.chunks(&events)
}

fn opaques(chunks: &[Chunk]) -> Vec<Opaque> {
    let ended = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Ended { opaque, .. } => opaque.clone(),
        _ => None,
    });
    ended.collect()
}

#[test]
fn details_go_back_as_they_were_put_together() {
    let chunks = API.answer(&API.stream("reasoning-details"));
    let thought = thought("I should look.", opaques(&chunks).pop());
    let call = call("toolu_1", "bash", "{}", None);
    let messages = vec![user("Hi"), Message::Assistant(vec![thought, call])];
    let body = API.body(&API.request(messages), &card());
    let details = json!([
        {
            "type": "reasoning.text", "text": "I should look.", "signature": "EqQB+sig==",
            "format": "anthropic-claude-v1", "index": 0,
        },
        {
            "type": "reasoning.encrypted", "data": "ZW5j", "id": "toolu_1",
            "format": "google-gemini-v1", "index": 1,
        },
    ]);
    assert!(body.contains(&format!(r#""reasoning_details":{details}"#)), "{body}");
}

#[test]
fn a_calls_own_fields_go_back_with_it() {
    let chunks = API.answer(&API.stream("extra-content"));
    let call = call("function-call-1", "bash", "{}", opaques(&chunks).pop());
    let messages = vec![user("Hi"), Message::Assistant(vec![call])];
    let body = API.body(&API.request(messages), &card());
    let extra = r#"},"extra_content":{"google":{"thought_signature":"CpcBAd+/sig="}}}"#;
    assert!(body.contains(extra), "{body}");
}

/// Name and arguments of each call.
fn called(deltas: &[serde_json::Value]) -> Vec<(String, String)> {
    let mut called: Vec<(String, String)> = Vec::new();
    for chunk in read(deltas) {
        match chunk {
            Chunk::Started {
                kind: polyloop_session::item::ItemKind::ToolCall { name, .. },
                ..
            } => {
                called.push((name.to_string(), String::new()));
            }
            Chunk::Args { block, text } => called[block as usize].1.push_str(&text),
            _ => {}
        }
    }
    called
}

#[test]
fn pieces_find_their_call() {
    let one = |call: serde_json::Value| json!({ "tool_calls": [call] });
    let piece = |index: Option<u64>, id: Option<&str>, name: Option<&str>, args: &str| {
        let function = json!({ "name": name, "arguments": args });
        one(json!({ "index": index, "id": id, "function": function }))
    };
    let twice = |args: &str| vec![("bash".to_owned(), args.to_owned()); 2];
    let once = |args: &str| vec![("bash".to_owned(), args.to_owned())];
    let bash = Some("bash");
    let at = Some(0);

    // The name and the id with every piece.
    let pieces = [piece(at, Some("a"), bash, "{\"a"), piece(at, Some("a"), bash, "\":1}")];
    assert_eq!(called(&pieces), once("{\"a\":1}"));
    let pieces = [piece(at, None, bash, "{\"a"), piece(at, None, bash, "\":1}")];
    assert_eq!(called(&pieces), once("{\"a\":1}"));
    // A new id with every piece.
    let pieces = [piece(None, Some("a"), bash, "{"), piece(None, Some("b"), None, "}")];
    assert_eq!(called(&pieces), once("{}"));
    // All calls are number 0, with ids and without.
    let pieces = [piece(at, Some("a"), bash, "{}"), piece(at, Some("b"), bash, "{}")];
    assert_eq!(called(&pieces), twice("{}"));
    let pieces = [piece(at, None, bash, "{}"), piece(at, None, bash, "{}")];
    assert_eq!(called(&pieces), twice("{}"));
    // Only an id tells them apart, and the pieces are mixed.
    let pieces = [
        piece(None, Some("a"), bash, "{"),
        piece(None, Some("b"), bash, "{"),
        piece(None, Some("a"), None, "}"),
        piece(None, Some("b"), None, "}"),
    ];
    assert_eq!(called(&pieces), twice("{}"));
    // The first piece has no index.
    let pieces = [piece(None, Some("a"), bash, ""), piece(at, None, None, "{}")];
    assert_eq!(called(&pieces), once("{}"));
    // It counts from 1, or leaves some out.
    let pieces = [piece(Some(1), Some("a"), bash, "{}"), piece(Some(7), Some("b"), bash, "{}")];
    assert_eq!(called(&pieces), twice("{}"));
    // The name in pieces.
    let pieces = [piece(at, Some("a"), Some("ba"), ""), piece(at, None, Some("sh"), "{}")];
    assert_eq!(called(&pieces), once("{}"));
    // Without arguments, and without a name.
    assert_eq!(called(&[piece(at, Some("a"), bash, "")]), once(""));
    assert_eq!(called(&[piece(at, Some("a"), None, "{}")]), [(String::new(), "{}".to_owned())]);
}

#[test]
fn arguments_do_not_wait_for_a_name_for_ever() {
    let piece =
        json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "x".repeat(50_000) } }] });
    let chunks = read(&vec![piece; 40]);
    let told: usize = chunks
        .iter()
        .map(|chunk| match chunk {
            Chunk::Args { text, .. } => text.len(),
            _ => 0,
        })
        .sum();
    assert_eq!(told, 40 * 50_000);
    assert!(chunks.len() > 30, "{} chunks", chunks.len());
}

#[test]
fn a_reason_to_finish_is_needed_unless_the_last_event_came() {
    let says = event(&json!({ "choices": [{ "delta": { "content": "Hi" } }] }));
    let last = Event { name: String::new(), data: b"[DONE]".to_vec() };
    let ends = |events: &[Event]| API.chunks(events).pop();
    assert!(matches!(ends(std::slice::from_ref(&says)), Some(Chunk::Text { .. })));
    assert_eq!(ends(&[says, last.clone()]), Some(Chunk::Done(Stop::End)));
    assert_eq!(ends(&[last]), Some(Chunk::Done(Stop::End)));
    assert_eq!(ends(&[]), None);
}

#[test]
fn a_message_that_was_not_streamed_is_read() {
    let message = json!({ "role": "assistant", "content": "Hi", "reasoning_content": "Hm" });
    let whole = json!({ "choices": [{ "message": message, "finish_reason": "length" }] });
    let told = API.chunks(&[event(&whole)]);
    assert_eq!(told.len(), 7, "{told:?}");
    assert_eq!(told[6], Chunk::Done(Stop::Length));
}

proptest! {
    #[test]
    fn any_delta_is_read(deltas in proptest::collection::vec(any_json(WORDS), 1..12)) {
        read(&deltas);
    }
}

/// What a decoder makes of events.
fn decoded(events: &[String]) -> Vec<Chunk> {
    let event = |data: &String| Event { name: String::new(), data: data.clone().into_bytes() };
    API.chunks(&events.iter().map(event).collect::<Vec<Event>>())
}

proptest! {
    #[test]
    fn a_plain_event_says_what_any_event_says(
        texts in proptest::collection::vec(any::<String>(), 1..6),
        model in any::<String>(),
        index in 0..2_u64,
        extras in any::<bool>(),
    ) {
        let event = |text: &String, odd: bool| {
            let mut choice = json!({ "index": index, "delta": { "content": text } });
            let mut event = json!({ "id": "x", "object": "chat.completion.chunk", "model": model });
            if extras {
                choice["finish_reason"] = json!(null);
                choice["delta"]["tool_calls"] = json!(null);
                event["usage"] = json!(null);
            }
            if odd {
                // Nobody knows it, so that everything is read.
                event["odd"] = json!(1);
            }
            event["choices"] = json!([choice]);
            event.to_string()
        };
        let all = |odd| texts.iter().map(|text| event(text, odd)).collect::<Vec<String>>();
        prop_assert_eq!(decoded(&all(false)), decoded(&all(true)));
    }
}

#[test]
fn what_is_more_than_a_text_is_not_taken_for_one() {
    let plain = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
    let event = |data: &str| Event { name: String::new(), data: data.as_bytes().to_vec() };
    assert!(Plain::read(&event(plain)).is_some());
    let more = [
        r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a","reasoning":"b"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":[{"text":"a"}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"error":null}"#,
        r#"{"object":"error","choices":[{"index":0,"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}"#,
        r#"{"choices":[{"delta":{"content":"a"}}]} {}"#,
    ];
    for more in more {
        assert!(Plain::read(&event(more)).is_none(), "{more}");
    }
    let named = Event { name: "error".into(), data: plain.as_bytes().to_vec() };
    assert!(Plain::read(&named).is_none());
}

/// Between the same bytes there can be more than a text.
#[test]
fn what_stands_around_a_text_does_not_make_one() {
    let with =
        |text: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let said =
        |text: &str| decoded(&[with("x"), with(text)]).into_iter().skip(2).collect::<Vec<_>>();
    let text = |text: &str| Chunk::Text { block: 0, text: text.into() };
    assert_eq!(said("é🦀"), [text("é🦀")]);
    assert_eq!(said(r"\u0041\n"), [text("A\n")]);
    assert_eq!(said(""), []);
    assert_eq!(said(r#"a"}},{"index":0,"delta":{"content":"b"#), [text("a")]);
    for broken in [r"a\", "a\nb"] {
        assert!(matches!(said(broken)[..], [Chunk::Failed(_)]), "{broken}");
    }
    let thought = decoded(&[with("x"), with(r#"a","reasoning":"b"#)]);
    assert!(
        thought
            .iter()
            .any(|chunk| matches!(chunk, Chunk::Started { kind: ItemKind::Reasoning, .. }))
    );
}
