//! What is read from which answer.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::testing::{answers_hold, card, event, history, user};
use crate::model::{Chunk, Stop};

answers_hold!(API.on("claude-sonnet-4-5"));

#[test]
fn an_event_is_known_by_its_name_where_it_has_no_type() {
    let read = API.answer(b"event: message_stop\ndata: {}\n\n");
    assert_eq!(read, [Chunk::Done(Stop::End)]);
}

/// What Anthropic may send, as it goes back, with the events it comes in.
fn any_block() -> impl Strategy<Value = (Value, Vec<Value>)> {
    let words = "[a-zé👋]{1,5}";
    let start = |block: Value| json!({"type": "content_block_start", "content_block": block});
    let delta = |delta: Value| json!({"type": "content_block_delta", "delta": delta});
    let text = prop::collection::vec(words, 1..4).prop_map(move |pieces| {
        let mut events = vec![start(json!({"type": "text", "text": ""}))];
        events.extend(pieces.iter().map(|text| delta(json!({"type": "text_delta", "text": text}))));
        (json!({"type": "text", "text": pieces.concat()}), events)
    });
    let thinking = (prop::collection::vec(words, 0..3), "[A-Za-z0-9+/]{4}");
    let thinking = thinking.prop_map(move |(pieces, signature)| {
        let whole =
            json!({"type": "thinking", "thinking": pieces.concat(), "signature": signature});
        let mut events = vec![start(json!({"type": "thinking", "thinking": "", "signature": ""}))];
        let grow = |text| delta(json!({"type": "thinking_delta", "thinking": text}));
        events.extend(pieces.iter().map(grow));
        events.push(delta(json!({"type": "signature_delta", "signature": signature})));
        (whole, events)
    });
    let kept = "[A-Za-z0-9+/]{4}".prop_map(move |data| {
        let block = json!({"type": "redacted_thinking", "data": data, "new": null});
        (block.clone(), vec![start(block)])
    });
    let tool = ("[a-z]{1,3}", "[a-z]{0,9}", 0_usize..9).prop_map(move |(id, arg, at)| {
        let args = json!({"command": arg}).to_string();
        let block = |input| json!({"type": "tool_use", "id": id, "name": "bash", "input": input});
        let (head, tail) = args.split_at(at);
        let grow = |json| delta(json!({"type": "input_json_delta", "partial_json": json}));
        (block(json!({"command": arg})), vec![start(block(json!({}))), grow(head), grow(tail)])
    });
    prop_oneof![text, thinking, kept, tool]
}

proptest! {
    /// Every block goes back as it came, in its place, whether its end was told or not.
    #[test]
    fn any_answer_goes_back(
        blocks in prop::collection::vec((any_block(), any::<bool>()), 1..8),
    ) {
        let mut events = Vec::new();
        for ((_, block), ended) in &blocks {
            events.extend(block.iter().map(event));
            events.extend(ended.then(|| event(&json!({"type": "content_block_stop"}))));
        }
        events.push(event(&json!({"type": "message_stop"})));
        let mut messages = vec![user("Go.")];
        messages.extend(history(&API.chunks(&events)));
        let body = API.on("claude-opus-5-5").value(&API.request(messages), &card());
        let came: Vec<Value> = blocks.into_iter().map(|((block, _), _)| block).collect();
        prop_assert_eq!(&body["messages"][1]["content"], &Value::from(came));
    }
}
