use proptest::prelude::*;

use serde_json::{Value, json};

use super::*;
use crate::model::json::testing::{
    any_json, card, changed, chunks, events, history, request, user,
};
use crate::model::sse::Event;
use crate::model::{Chunk, Stop};

const WORDS: [&str; 47] = [
    "type",
    "index",
    "message",
    "message_start",
    "message_delta",
    "message_stop",
    "usage",
    "delta",
    "content_block",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "ping",
    "error",
    "text",
    "text_delta",
    "thinking",
    "thinking_delta",
    "signature",
    "signature_delta",
    "redacted_thinking",
    "data",
    "tool_use",
    "id",
    "name",
    "input",
    "input_json_delta",
    "partial_json",
    "citations_delta",
    "server_tool_use",
    "stop_reason",
    "stop_details",
    "refusal",
    "category",
    "explanation",
    "end_turn",
    "max_tokens",
    "overloaded_error",
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens_details",
    "thinking_tokens",
    "bash",
    "{\"a\":1}",
    "",
];

#[test]
fn answers_are_read_as_they_are_written() {
    golden().check_answers(&Anthropic);
}

#[test]
fn pieces_of_a_stream_may_be_of_any_size() {
    golden().check_splits(&Anthropic);
}

#[test]
fn what_came_goes_back() {
    golden().check_ways_back(&Anthropic, "claude-sonnet-4-5");
}

#[test]
fn nothing_follows_the_end() {
    let mut decoder = Anthropic.decoder();
    let stop = events(b"data: {\"type\":\"message_stop\"}\n\n");
    assert_eq!(decoder.event(&stop[0]), [Chunk::Done(Stop::End)]);
    assert!(decoder.event(&stop[0]).is_empty() && decoder.end().is_empty());
}

#[test]
fn an_event_is_known_by_its_name_where_it_has_no_type() {
    let read = chunks(&Anthropic, &events(b"event: message_stop\ndata: {}\n\n"));
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

fn event(data: &Value) -> Event {
    Event { name: String::new(), data: data.to_string().into_bytes() }
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
        messages.extend(history(&chunks(&Anthropic, &events)));
        let body = Anthropic.encode(&request(messages), "claude-opus-5-5", &card());
        let body: Value = serde_json::from_slice(&body).unwrap();
        let came: Vec<Value> = blocks.into_iter().map(|((block, _), _)| block).collect();
        prop_assert_eq!(&body["messages"][1]["content"], &Value::from(came));
    }

    #[test]
    fn any_events_are_read(all in prop::collection::vec(any_json(&WORDS), 0..12)) {
        let events: Vec<Event> = all.iter().map(event).collect();
        chunks(&Anthropic, &events);
    }

    #[test]
    fn any_bytes_are_read(
        data in prop::collection::vec(any::<u8>(), 0..60),
        name in "[a-z_]{0,8}",
    ) {
        chunks(&Anthropic, &[Event { name, data }]);
    }

    #[test]
    fn damaged_answers_are_read(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec(any::<(u8, usize, usize)>(), 1..4),
        value in any_json(&WORDS),
    ) {
        let answers = golden().answers();
        let (_, bytes) = &answers[which.index(answers.len())];
        let mut events = events(bytes);
        for how in damage {
            if !events.is_empty() {
                events = changed(events, how, &value);
            }
        }
        chunks(&Anthropic, &events);
    }
}
