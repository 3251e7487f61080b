//! What a test asks of the server, and what it refuses.

use polyloop_fake_model::{FakeModel, Options};
use serde_json::{Value, json};

use crate::client::{APIS, Connection, ask, control, request};

#[tokio::test]
async fn replies_are_taken_in_order_and_then_the_message_is_the_script() {
    let model = FakeModel::start().await.unwrap();
    let script = r#"[{"blocks":[{"say":"one"}]},{"blocks":[{"say":"two"}],"repeat":2}]"#;
    let (status, state) = control(&model, "POST", "/_script", script).await;
    assert_eq!((status, &state["queued"]), (200, &json!(3)));
    for (api, want) in APIS.iter().zip(["one", "two", "two", "You said: hello"]) {
        let text = ask(&model, api, false, "hello").await.unwrap().text();
        assert!(text.contains(&format!("\"{want}\"")), "{api}: {text}");
    }
    control(&model, "POST", "/_script", script).await;
    assert_eq!(control(&model, "DELETE", "/_script", "").await.1["queued"], 0);
}

#[tokio::test]
async fn a_wrong_script_is_refused_whole() {
    let model = FakeModel::start().await.unwrap();
    let script = r#"[{"blocks":[{"say":"fine"}]},{"blocks":[{"say":"x","volume":11}]}]"#;
    let (status, answer) = control(&model, "POST", "/_script", script).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert_eq!(status, 400);
    assert!(message.contains("[1].blocks[0]") && message.contains("volume"), "{message}");
    assert_eq!(model.state()["queued"], 0);
    let (status, answer) = control(&model, "PUT", "/_script", "[]").await;
    assert_eq!(status, 404, "{answer}");
}

#[tokio::test]
async fn requests_are_remembered() {
    let model = FakeModel::start().await.unwrap();
    for api in APIS {
        ask(&model, api, true, "hello").await.unwrap();
    }
    let mut connection = Connection::open(&model).await;
    connection.send("POST", "/x/token", "X-Twice: a\r\nx-twice: b", "grant_type=odd").await;
    assert_eq!(connection.answer().await.unwrap().status, 400);
    let (_, requests) = control(&model, "GET", "/_requests", "").await;
    let requests = requests.as_array().unwrap();
    assert_eq!(*requests, model.requests());
    let numbers: Vec<u64> = requests.iter().map(|it| it["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let times: Vec<u64> = requests.iter().map(|it| it["at_ms"].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    for (request_seen, api) in requests.iter().zip(APIS) {
        let (path, _, body) = request(api, true, "hello");
        assert_eq!((&request_seen["path"], &request_seen["body"]), (&json!(path), &body));
        assert_eq!(request_seen["method"], "POST");
    }
    assert_eq!(requests[4]["headers"]["x-twice"], "a, b");
    assert_eq!(requests[4]["body"], "grant_type=odd");
    control(&model, "DELETE", "/_requests", "").await;
    assert!(model.requests().is_empty());
}

#[tokio::test]
async fn without_a_key_nothing_is_said() {
    let model = FakeModel::start().await.unwrap();
    model.script(&json!([{"blocks": [{"say": "kept"}]}])).unwrap();
    for (api, shape) in [
        ("responses", json!("invalid_api_key")),
        ("chat", json!("invalid_api_key")),
        ("anthropic", json!("authentication_error")),
        ("gemini", json!("UNAUTHENTICATED")),
    ] {
        let (path, _, body) = request(api, true, "x");
        let mut connection = Connection::open(&model).await;
        connection.send("POST", &path, "", &body.to_string()).await;
        let answer = connection.answer().await.unwrap();
        let error = &answer.json()["error"];
        assert_eq!(answer.status, 401, "{api}");
        assert!([&error["code"], &error["type"], &error["status"]].contains(&&shape), "{error}");
    }
    assert_eq!(model.state()["queued"], 1);
    assert_eq!(model.requests().len(), 4);
}

#[tokio::test]
async fn models_are_listed() {
    let model = FakeModel::start().await.unwrap();
    for (path, header, list) in [
        ("/v1/models", "authorization: Bearer k", "/data/0/id"),
        ("/v1/models", "x-api-key: k\r\nanthropic-version: 2023-06-01", "/data/0/display_name"),
        ("/v1beta/models", "x-goog-api-key: k", "/models/0/displayName"),
    ] {
        let mut connection = Connection::open(&model).await;
        connection.send("GET", path, header, "").await;
        let answer = connection.answer().await.unwrap();
        assert_eq!(answer.json().pointer(list), Some(&json!("fake-model")), "{path} {header}");
        connection.send("GET", path, "", "").await;
        assert_eq!(connection.answer().await.unwrap().status, 401, "{path} {header}");
    }
}

#[tokio::test]
async fn what_is_no_request_is_said_in_the_shape_of_the_api() {
    let model = FakeModel::start().await.unwrap();
    for api in APIS {
        let (path, key, _) = request(api, true, "x");
        let mut connection = Connection::open(&model).await;
        connection.send("POST", &path, key, "{no json").await;
        let answer = connection.answer().await.unwrap();
        let message = answer.json()["error"]["message"].to_string();
        assert!(answer.status == 400 && message.contains("no JSON"), "{api}: {message}");
        let answer = ask(&model, api, true, "say: x\nusage: lots").await.unwrap();
        let message = answer.json()["error"]["message"].to_string();
        assert!(answer.status == 400 && message.contains("line 2"), "{api}: {message}");
    }
    let (status, answer) = control(&model, "GET", "/nothing", "").await;
    assert_eq!(status, 404, "{answer}");
}

#[tokio::test]
async fn too_large_a_request_is_refused() {
    let model = FakeModel::start().await.unwrap();
    let mut connection = Connection::open(&model).await;
    let body = "x".repeat(64 * 1024 * 1024 + 1);
    connection.send("POST", "/v1/responses", "authorization: Bearer k", &body).await;
    assert_eq!(connection.answer().await.unwrap().status, 413);
    assert!(model.requests().is_empty());
}

#[tokio::test]
async fn a_tool_result_is_done() {
    let model = FakeModel::start().await.unwrap();
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "ok\nmore"});
    let mut connection = Connection::open(&model).await;
    let body = json!({"input": [{"role": "user", "content": "call: x"}, output]}).to_string();
    connection.send("POST", "/responses", "authorization: Bearer k", &body).await;
    let answer: Value = connection.answer().await.unwrap().json();
    assert_eq!(answer["output"][0]["content"][0]["text"], "Done. ok");
}

#[tokio::test]
async fn it_ends_when_it_is_dropped() {
    let model =
        FakeModel::start_with(Options { token_secs: 5, ..Options::default() }).await.unwrap();
    let address = model.address();
    assert!(address.ip().is_loopback());
    assert_eq!(model.base_url(), format!("http://{address}"));
    let mut connection = Connection::open(&model).await;
    connection.send("GET", "/_state", "", "").await;
    connection.answer().await.unwrap();
    drop(model);
    assert!(connection.answer().await.is_none(), "its connections end too");
}
