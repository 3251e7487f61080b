use super::*;

fn one(script: &str) -> Reply {
    replies(script.as_bytes()).unwrap().remove(0)
}

fn problem(script: &str) -> String {
    replies(script.as_bytes()).unwrap_err()
}

#[test]
fn reads_every_field() {
    let reply = one(r#"[{"blocks":[{"think":"t","signature":"s"},{"redacted":"r"},{"say":"x"},
            {"call":"bash","args":{"a":1},"id":"c1","signature":"g"},{"shell":["ls"]},
            {"item":{"type":"new"}}],
            "usage":{"input":1,"output":2,"cached":3,"cache_written":4,"reasoning":5},
            "stop":"content_filter","pieces":3,"delay_ms":4,
            "http":{"status":200,"headers":{"a":"b"},"body":{}},
            "error":{"type":"t","code":"c","message":"m","form":"failed"},
            "cut_bytes":1,"cut_block":[0,1],"no_final":true,"hang_bytes":2,"hang":true,
            "disconnect":true,"chunk_bytes":1,"raw":"r","raw_times":2,"content_type":"c",
            "style":{"crlf":true,"no_space":true,"comments":true,"bom":true,"split_data":true,
            "unknown_events":true,"done_twice":true},"repeat":3}]"#);
    assert_eq!(reply.blocks.len(), 6);
    assert_eq!(reply.stop, Stop::ContentFilter);
    assert_eq!(reply.cut_block, Some((0, 1)));
    assert_eq!(reply.repeat.unwrap().get(), 3);
}

#[test]
fn arguments_are_text_and_value() {
    let args = |script: &str| match one(script).blocks.remove(0) {
        Block::Call(call) => call.args,
        other => panic!("{other:?}"),
    };
    let object = args(r#"[{"blocks":[{"call":"t","args":{"a":1}}]}]"#);
    assert_eq!((&*object.text, &object.value["a"]), (r#"{"a":1}"#, &Value::from(1)));
    let raw = args(r#"[{"blocks":[{"call":"t","args":"{\"a\": 1}"}]}]"#);
    assert_eq!((&*raw.text, &raw.value["a"]), (r#"{"a": 1}"#, &Value::from(1)));
    let broken = args(r#"[{"blocks":[{"call":"t","args":"{\"a\":"}]}]"#);
    assert_eq!((&*broken.text, broken.value), (r#"{"a":"#, Value::from(r#"{"a":"#)));
    assert_eq!(args(r#"[{"blocks":[{"call":"t"}]}]"#).text, "{}");
}

#[test]
fn an_id_is_made_given_or_left_out() {
    let id = |script: &str| match one(script).blocks.remove(0) {
        Block::Call(call) => call.id.or_made(|| "made".to_owned()),
        other => panic!("{other:?}"),
    };
    assert_eq!(id(r#"[{"blocks":[{"call":"t"}]}]"#).as_deref(), Some("made"));
    assert_eq!(id(r#"[{"blocks":[{"call":"t","id":"x"}]}]"#).as_deref(), Some("x"));
    assert_eq!(id(r#"[{"blocks":[{"call":"t","id":null}]}]"#), None);
}

#[test]
fn what_nobody_knows_is_named() {
    for (script, words) in [
        (r#"[{},{"blok":[]}]"#, &["[1]", "blok"][..]),
        (r#"[{"blocks":[{"say":"x","loud":true}]}]"#, &["[0].blocks[0]", "loud", "signature"]),
        (r#"[{"blocks":[{"shout":"x"}]}]"#, &["[0].blocks[0]", "shout", "think, redacted"]),
        (r#"[{"blocks":[{"say":"x","think":"y"}]}]"#, &["one of", "say, think"]),
        (r#"[{"usage":{"in":1}}]"#, &["[0].usage", "in"]),
        (r#"[{"style":{"cr":true}}]"#, &["[0].style", "cr"]),
        (r#"[{"http":{"code":1}}]"#, &["[0].http", "code"]),
        (r#"[{"error":{"kind":"x"}}]"#, &["[0].error", "kind"]),
        (r#"[{"stop":"now"}]"#, &["[0].stop", "now"]),
        (r#"[{"repeat":0}]"#, &["[0].repeat", "0"]),
        (r#"[{"pieces":0}]"#, &["[0].pieces"]),
        (r#"[{"cut_block":[1,0],"blocks":[{"say":"x"}]}]"#, &["[0]", "no block 1"]),
        (r#"[{"raw":"a","raw_base64":"YQ=="}]"#, &["[0]", "not both"]),
        (r#"[{"raw_base64":"?"}]"#, &["raw_base64"]),
        (r#"{"blocks":[]}"#, &["sequence"]),
        (r#"[] x"#, &["trailing"]),
    ] {
        let problem = problem(script);
        for word in words {
            assert!(problem.contains(word), "{script}: {problem}");
        }
    }
}
