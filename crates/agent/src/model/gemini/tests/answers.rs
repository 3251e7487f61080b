//! What is read from which answer.

use polyloop_session::Heal;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::sse::Event;
use crate::model::testing::{answers_hold, any_json, card, event, history, user};
use crate::model::{Chunk, Stop};

answers_hold!(API);

/// Everything may stand in one event, or in many.
#[test]
fn events_may_hold_any_number_of_parts() {
    let part = |text: &str| format!(r#"{{"text": "{text}", "thought": false}}"#);
    let event = |parts: &[String]| {
        let parts = parts.join(",");
        format!("data: {{\"candidates\": [{{\"content\": {{\"parts\": [{parts}]}}}}]}}\n\n")
    };
    let end = "data: {\"candidates\": [{\"finishReason\": \"STOP\"}]}\n\n";
    let all = ["a", "", "b"].map(part);
    let one = API.answer((event(&all) + end).as_bytes());
    let apart: String = all.iter().map(|part| event(std::slice::from_ref(part))).collect();
    assert_eq!(one, API.answer((apart + end).as_bytes()));
    assert_eq!(one.last(), Some(&Chunk::Done(Stop::End)));
}

/// Nothing is no growth.
#[test]
fn arguments_that_are_an_empty_text_are_none() {
    let call = r#"{"functionCall": {"name": "ls", "args": ""}}"#;
    let event = format!("data: {{\"candidates\": [{{\"content\": {{\"parts\": [{call}]}}}}]}}\n\n");
    let end = "data: {\"candidates\": [{\"finishReason\": \"STOP\"}]}\n\n";
    let chunks = API.answer((event + end).as_bytes());
    assert!(!chunks.iter().any(|chunk| matches!(chunk, Chunk::Args { .. })), "{chunks:?}");
}

fn finished(reason: &str) -> Vec<Chunk> {
    let event = format!("data: {{\"candidates\": [{{\"finishReason\": \"{reason}\"}}]}}\n\n");
    API.answer(event.as_bytes())
}

#[test]
fn reasons_to_finish() {
    for reason in ["STOP", "OTHER", "FINISH_REASON_UNSPECIFIED", "NO_IMAGE", "NEW"] {
        assert_eq!(finished(reason), [Chunk::Done(Stop::End)], "{reason}");
    }
    assert_eq!(finished("MAX_TOKENS"), [Chunk::Done(Stop::Length)]);
    let refusals = [
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    ];
    for reason in refusals {
        let [Chunk::Failed(failure)] = &finished(reason)[..] else { panic!("{reason}") };
        assert_eq!((failure.heal, &*failure.fault.code), (Heal::Never, "refused"));
        let told = format!("Google refused to answer ({reason})");
        assert_eq!(*failure.fault.message, *told);
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let [Chunk::Failed(failure)] = &finished(reason)[..] else { panic!("{reason}") };
        assert_eq!((failure.heal, &*failure.fault.code), (Heal::Once, "bad_answer"));
    }
}

/// What Gemini may send, one part at a time.
fn any_part() -> impl Strategy<Value = Value> {
    let signature = prop::option::weighted(0.3, "[A-Za-z0-9+/]{4}");
    let signed = move |part: Value| {
        signature.clone().prop_map(move |signature| {
            let mut part = part.clone();
            if let Some(signature) = signature {
                part["thoughtSignature"] = signature.into();
            }
            part
        })
    };
    let text = "|[a-zé👋]{1,5}";
    let call = |call: Value| json!({"functionCall": call});
    let part = prop_oneof![
        4 => text.prop_map(|text| json!({"text": text})),
        3 => text.prop_map(|text| json!({"text": text, "thought": true})),
        2 => "[a-z]{0,3}".prop_map(move |arg| call(json!({"name": "bash", "args": {"a": arg}}))),
        1 => "[a-z]{1,9}".prop_map(move |id| call(json!({"name": "x", "args": {}, "id": id}))),
        1 => Just(json!({"executableCode": {"language": "PYTHON", "code": "1"}})),
    ];
    part.prop_flat_map(signed)
}

/// Parts without what need not go back, and without seams that mean nothing.
fn essence(parts: &[Value]) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for part in parts {
        let is_signed = part["thoughtSignature"].is_string();
        let plain = part["text"].is_string() && !is_signed;
        if plain && (part["text"] == "" || part["thought"] == true) {
            continue;
        }
        match kept.last_mut() {
            Some(last)
                if plain && last["text"].is_string() && last.get("thoughtSignature").is_none() =>
            {
                let text =
                    format!("{}{}", last["text"].as_str().unwrap(), part["text"].as_str().unwrap());
                last["text"] = text.into();
            }
            Some(_) | None => kept.push(part.clone()),
        }
    }
    kept
}

proptest! {
    /// Every signature goes back on the part it came with, in the same place.
    #[test]
    fn any_answer_goes_back(
        answers in prop::collection::vec(prop::collection::vec(any_part(), 0..3), 1..8),
    ) {
        let wrap = |parts| json!({"candidates": [{"content": {"parts": parts}}]});
        let mut events: Vec<Event> = answers.iter().map(|parts| event(&wrap(parts))).collect();
        events.push(event(&json!({"candidates": [{"finishReason": "STOP"}]})));
        let mut messages = vec![user("Go.")];
        messages.extend(history(&API.chunks(&events)));
        let body = API.value(&API.request(messages), &card());
        let nothing = Vec::new();
        let back = match &body["contents"][1] {
            content if content["role"] == "model" => content["parts"].as_array().unwrap(),
            _ => &nothing,
        };
        prop_assert_eq!(essence(back), essence(&answers.concat()));
    }

    #[test]
    fn any_parts_are_read(parts in prop::collection::vec(any_json(WORDS), 0..12)) {
        let whole = json!({"candidates": [{"content": {"parts": parts}}]});
        let end = json!({"candidates": [{"finishReason": "STOP"}]});
        API.chunks(&[event(&whole), event(&end)]);
    }
}
