//! What is read from which answer.

use polyloop_session::history::{AssistantPart, Message};

use super::*;
use crate::model::testing::*;

answers_hold!(API);

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
        let stream = API.stream(name);
        let answered = history(&API.answer(&stream)).remove(0);
        let card = Card { native_shell: true, ..card() };
        let request = API.request(vec![user("Hi"), answered]);
        (API.body(&request, &card), items(&stream))
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
    let stream = API.stream("shell");
    let Message::Assistant(mut parts) = history(&API.answer(&stream)).remove(0) else {
        panic!("no answer")
    };
    let AssistantPart::ToolCall { call_ref, .. } = &mut parts[1] else { panic!("no call") };
    *call_ref = "call_new".into();
    let answered = Message::Assistant(parts);
    let messages = vec![user("Hi"), answered, result("call_new", "bash", "fine", false)];
    let card = Card { native_shell: true, ..card() };
    let body = API.body(&API.request(messages), &card);
    assert!(body.contains(r#","call_id":"call_new"},{"id":"lsh_2""#), "{body}");
    assert!(!body.contains("call_s1"), "{body}");
    let output = concat!(
        r#"{"type":"local_shell_call_output","id":"call_new","#,
        r#""call_id":"call_new","output":"fine"}"#,
    );
    assert!(body.contains(output), "{body}");
}
