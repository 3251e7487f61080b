#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

#[test]
fn fields_are_found_whatever_their_kind() {
    let json = r#"{"a": "x", "n": 3, "f": 4.0, "q": "5", "minus": -1, "t": true, "none": null,
        "o": {"b" : [1, 2]}, "a": "last"}"#;
    let object = Object::read(json).unwrap();
    assert_eq!(object.text("a").as_deref(), Some("last"));
    assert_eq!(object.text("n"), None);
    assert_eq!([object.count("n"), object.count("f"), object.count("q")], [3, 4, 5].map(Some));
    assert_eq!([object.count("minus"), object.count("a"), object.count("t")], [None; 3]);
    assert!(object.is_true("t") && !object.is_true("n") && object.raw("none").is_none());
    assert_eq!(object.object("o").unwrap().list("b").len(), 2);
    assert!(object.object("a").is_none() && object.list("o").is_empty());
    let rest = object.without(&["n", "f", "q", "minus", "t"]);
    assert_eq!(rest.json(), r#"{"a":"last","o":{"b":[1,2]}}"#);
    assert!(Object::read("[]").is_none() && Object::read("{} {}").is_none());
}

#[test]
fn half_a_character_does_not_cost_the_text() {
    let object = Object::read(r#"{"t":"a\ud83db","whole":"\ud83d\ude00"}"#).unwrap();
    let text = object.text("t").unwrap();
    assert!(text.starts_with('a') && text.ends_with('b') && text.contains('\u{fffd}'));
    assert_eq!(object.text("whole").as_deref(), Some("😀"));
}

#[test]
fn blanks_inside_texts_stay() {
    let json = "{ \"a b\" :\t\"c \\\" d\\\\\" ,\r\n \"n\" : [ 1.0 , 2e3 ] }";
    assert_eq!(compact(json), r#"{"a b":"c \" d\\","n":[1.0,2e3]}"#);
}

#[test]
fn arguments_are_always_an_object() {
    let given = |args| arguments(args).get().to_owned();
    assert_eq!(given(r#"{ "b": 1.0, "a": [ ] }"#), r#"{"b":1.0,"a":[]}"#);
    assert_eq!(given(" "), "{}");
    assert_eq!(given("[1]"), r#"{"invalid_json":"[1]"}"#);
    assert_eq!(given(r#"{"a": "cut"#), r#"{"invalid_json":"{\"a\": \"cut"}"#);
}

#[test]
fn pages_are_told_in_words() {
    let page = b"<!DOCTYPE html><html><head><style>p { color: red }</style>\n<title>502 Bad \
        Gateway</title></head><!-- <b>no</b> --><body><SCRIPT>alert(1)</SCRIPT><h1>502</h1></body>";
    assert_eq!(told(page), "502 Bad Gateway 502");
    assert_eq!(told(b"upstream connect error\n"), "upstream connect error");
    assert_eq!(told(b""), "");
    assert_eq!(told(b"<html"), "");
    assert_eq!(told(b"\xff\xfe\0x"), "\u{fffd}\u{fffd}x");
    assert_eq!(told("é".repeat(900).as_bytes()).chars().count(), TOLD_CHARS_MAX);
}

proptest! {
    #[test]
    fn compact_json_means_the_same(depth in 0_u32..4, seed in any::<u64>()) {
        let value = sample(depth, seed);
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(compact(&pretty), serde_json::to_string(&value).unwrap());
    }

    #[test]
    fn any_body_is_told(body in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(told(&body).chars().count() <= TOLD_CHARS_MAX);
    }

    #[test]
    fn any_page_is_told(page in "[<>a-z/!\\- é]{0,80}|(<style>|</style|<script|<!--|-->|x){0,9}") {
        prop_assert!(!told(page.as_bytes()).contains('<'));
    }
}

fn sample(depth: u32, seed: u64) -> serde_json::Value {
    use serde_json::json;
    match (depth, seed % 5) {
        (0, 0) | (_, 4) => json!(seed),
        (0, 1) => json!(" a \" \\ \n b "),
        (0, 2) => json!(null),
        (0, _) => json!(true),
        (_, 0 | 1) => json!([sample(depth - 1, seed / 5), sample(depth - 1, seed / 7)]),
        (_, _) => json!({"a b": sample(depth - 1, seed / 5), "c": sample(depth - 1, seed / 3)}),
    }
}
