//! What is read from which answer.

use polyloop_session::history::{AssistantPart, Message};
use polyloop_session::item::ItemKind;
use proptest::prelude::*;

use super::*;
use crate::model::Chunk;
use crate::model::openai::testing::*;
use crate::model::sse::Event;

#[test]
fn answers_are_as_in_the_files() {
    golden().check_answers(&API);
}

#[test]
fn where_bytes_are_split_makes_no_difference() {
    golden().check_splits(&API);
}

/// The parts that an answer leaves in the conversation.
fn parts(chunks: &[Chunk]) -> Vec<AssistantPart> {
    let mut parts: Vec<AssistantPart> = Vec::new();
    for chunk in chunks {
        match chunk {
            Chunk::Started { kind: ItemKind::Text, .. } => parts.push(says("", None)),
            Chunk::Started { kind: ItemKind::Reasoning, .. } => parts.push(thinks("", None)),
            Chunk::Started { kind: ItemKind::ToolCall { name, call_ref, .. }, .. } => {
                parts.push(calls(call_ref, name, "", None));
            }
            Chunk::Text { block, text: more } | Chunk::Args { block, text: more } => {
                let (AssistantPart::Text { text, .. }
                | AssistantPart::Reasoning { text, .. }
                | AssistantPart::ToolCall { args: text, .. }) = &mut parts[*block as usize];
                *text = format!("{text}{more}").into();
            }
            Chunk::Ended { block, opaque: came } => {
                let (AssistantPart::Text { opaque, .. }
                | AssistantPart::Reasoning { opaque, .. }
                | AssistantPart::ToolCall { opaque, .. }) = &mut parts[*block as usize];
                *opaque = came.clone();
            }
            Chunk::Usage(_) | Chunk::Raw { .. } | Chunk::Done(_) | Chunk::Failed(_) => {}
        }
    }
    parts
}

/// The items of an answer, as they came.
fn items(stream: &[u8]) -> Vec<String> {
    let events = events(&[stream]);
    let done = events.iter().filter(|event| event.name == "response.output_item.done");
    done.map(|event| {
        let data = std::str::from_utf8(&event.data).unwrap();
        crate::model::json::Object::read(data).unwrap().raw("item").unwrap().get().to_owned()
    })
    .collect()
}

#[test]
fn what_came_goes_back_byte_for_byte() {
    let back = |name: &str| {
        let stream = golden().answer(name);
        let answered = Message::Assistant(parts(&answer(&API, &stream)));
        let card = Card { native_shell: true, ..card() };
        let request = request(vec![user("Hi"), answered]);
        (String::from_utf8(API.encode(&request, MODEL, &card)).unwrap(), items(&stream))
    };

    let (body, came) = back("calls");
    assert!(body.contains(&came[0]), "the thought is not as it came: {body}");
    let call = concat!(
        r#"{"type":"function_call","call_id":"call_B2","name":"apply_patch","#,
        r#""arguments":"{\"patch\":\"*** Begin\\n*** End\"}","id":"fc_02","namespace":"edit"}"#,
    );
    assert!(body.contains(call), "{body}");
    let message = concat!(
        r#"{"type":"message","role":"assistant","status":"completed","content":"#,
        r#"[{"type":"output_text","text":"I will look at both.","annotations":[]}],"#,
        r#""id":"msg_02","phase":"commentary"}"#,
    );
    assert!(body.contains(message), "{body}");

    let (body, came) = back("shell");
    assert_eq!(came.len(), 4);
    assert!(came.iter().all(|item| body.contains(item)), "{body}");

    // Of what nobody knows, only what asks for no answer.
    let (body, came) = back("unknown");
    assert!(body.contains(&came[0]) && !body.contains("custom_tool_call"), "{body}");
}

#[test]
fn a_call_whose_id_was_taken_goes_back_under_its_new_one() {
    let stream = golden().answer("shell");
    let mut parts = parts(&answer(&API, &stream));
    let AssistantPart::ToolCall { call_ref, .. } = &mut parts[1] else { panic!("no call") };
    *call_ref = "call_new".into();
    let answered = Message::Assistant(parts);
    let messages = vec![user("Hi"), answered, result("call_new", "bash", "fine", false)];
    let card = Card { native_shell: true, ..card() };
    let body = String::from_utf8(API.encode(&request(messages), MODEL, &card)).unwrap();
    assert!(body.contains(r#","call_id":"call_new"},{"id":"lsh_2""#), "{body}");
    assert!(!body.contains("call_s1"), "{body}");
    let output = concat!(
        r#"{"type":"local_shell_call_output","id":"call_new","#,
        r#""call_id":"call_new","output":"fine"}"#,
    );
    assert!(body.contains(output), "{body}");
}

const WORDS: [&str; 54] = [
    "type",
    "item",
    "response",
    "delta",
    "text",
    "arguments",
    "item_id",
    "output_index",
    "id",
    "content_index",
    "summary_index",
    "content",
    "summary",
    "call_id",
    "name",
    "action",
    "command",
    "env",
    "error",
    "code",
    "message",
    "usage",
    "input_tokens",
    "input_tokens_details",
    "output",
    "cached_tokens",
    "incomplete_details",
    "reason",
    "model",
    "refusal",
    "reasoning",
    "output_text",
    "summary_text",
    "reasoning_text",
    "function_call",
    "local_shell_call",
    "max_output_tokens",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.created",
    "encrypted_content",
    "status",
    "0",
];

proptest! {
    #[test]
    fn any_json_is_read(values in proptest::collection::vec(any_json(&WORDS), 1..12)) {
        let event = |value: &serde_json::Value| {
            Event { name: String::new(), data: value.to_string().into_bytes() }
        };
        chunks(&API, &values.iter().map(event).collect::<Vec<_>>());
    }

    #[test]
    fn any_bytes_are_read(data in proptest::collection::vec(any::<u8>(), 0..64), name in ".{0,8}") {
        chunks(&API, &[Event { name, data }]);
    }

    #[test]
    fn changed_answers_are_read(
        at in 0..1_000_usize,
        changes in proptest::collection::vec(any_change(&WORDS), 1..8),
    ) {
        let answers = golden().answers();
        let mut events = events(&[&answers[at % answers.len()].1]);
        for one in changes {
            change(&mut events, one);
        }
        chunks(&API, &events);
    }
}
