use super::*;

fn last(api: Api, body: Value) -> Last {
    let gemini = (api == Api::Gemini).then(|| ("m".to_owned(), Delivery::Whole));
    Ask::read(&Target { api, gemini }, body.to_string().as_bytes()).unwrap().last
}

fn user(text: &str) -> Last {
    Last::User(text.to_owned())
}

fn result(text: &str) -> Last {
    Last::ToolResult(text.to_owned())
}

#[test]
fn the_last_words_of_responses() {
    let last = |input: Value| last(Api::Responses, json!({ "input": input }));
    assert_eq!(last(json!("hi")), user("hi"));
    let message = json!({"role": "user", "content": [{"type": "input_text", "text": "one"},
        {"type": "input_image"}, {"type": "input_text", "text": "two"}]});
    assert_eq!(last(json!([message])), user("one\ntwo"));
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "done\nmore"});
    assert_eq!(last(json!([message, output])), result("done\nmore"));
    let shell = json!({"type": "local_shell_call_output", "id": "c", "output": "{}"});
    assert_eq!(last(json!([shell])), result("{}"));
    let answer = json!({"type": "message", "role": "assistant", "content": []});
    assert_eq!(last(json!([message, answer])), user("one\ntwo"));
    assert_eq!(last(json!([])), user(""));
}

#[test]
fn the_last_words_of_chat() {
    let last = |messages: Value| last(Api::Chat, json!({ "messages": messages }));
    let said = json!({"role": "user", "content": "hi"});
    assert_eq!(last(json!([said])), user("hi"));
    assert_eq!(last(json!([said, {"role": "tool", "content": "r"}])), result("r"));
    assert_eq!(last(json!([said, {"role": "system", "content": "s"}])), user("hi"));
    assert_eq!(
        last(json!([{"role": "user", "content": [{"type": "text", "text": "p"}]}])),
        user("p")
    );
}

#[test]
fn the_last_words_of_anthropic() {
    let last = |messages: Value| last(Api::Anthropic, json!({ "messages": messages }));
    assert_eq!(last(json!([{"role": "user", "content": "hi"}])), user("hi"));
    let block = json!({"type": "tool_result", "tool_use_id": "t",
        "content": [{"type": "text", "text": "r"}]});
    assert_eq!(last(json!([{"role": "user", "content": [block]}])), result("r"));
    let more = json!({"type": "text", "text": "and now?"});
    assert_eq!(last(json!([{"role": "user", "content": [block, more]}])), user("and now?"));
}

#[test]
fn the_last_words_of_gemini() {
    let last = |contents: Value| last(Api::Gemini, json!({ "contents": contents }));
    let said = json!({"role": "user", "parts": [{"text": "hi"}]});
    assert_eq!(last(said.clone()), user("hi"));
    assert_eq!(last(json!([said, {"role": "model", "parts": [{"text": "x"}]}])), user("hi"));
    let answer = |response: Value| {
        let part = json!({"functionResponse": {"response": response}});
        json!([said, {"role": "user", "parts": [part]}])
    };
    assert_eq!(last(answer(json!({"output": "r"}))), result("r"));
    assert_eq!(last(answer(json!({"x": 1}))), result(r#"{"x":1}"#));
}

#[test]
fn settings_are_repeated() {
    let target = Target { api: Api::Responses, gemini: None };
    let body = json!({"model": "m", "stream": true, "input": "x", "store": false,
        "include": ["reasoning.encrypted_content"], "tools": [{"type": "local_shell"}]});
    let ask = Ask::read(&target, body.to_string().as_bytes()).unwrap();
    assert_eq!((ask.model.as_str(), ask.delivery), ("m", Delivery::Events));
    assert!(ask.encrypted_reasoning && ask.local_shell && !ask.include_usage);
    assert_eq!(ask.settings["store"], false);
    assert_eq!(ask.settings["tools"], body["tools"]);
    assert_eq!(ask.settings["input"], Value::Null);
}

#[test]
fn no_json_is_said() {
    let target = Target { api: Api::Chat, gemini: None };
    let problem = Ask::read(&target, b"{").unwrap_err();
    assert!(problem.contains("no JSON"), "{problem}");
}
