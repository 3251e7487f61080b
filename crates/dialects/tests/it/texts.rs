//! Texts that are hard to write to a file and read back.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Just over what stays in a line.
pub const LONG_BYTES: usize = polyloop_dialects::agentloop::file::TEXT_IN_LINE_BYTES_MAX + 1;

/// Short, around the length from which texts are referred to, and very long.
fn plain() -> impl Strategy<Value = String> {
    let filled = |range| {
        (range, ".{1,6}").prop_map(|(bytes, unit): (usize, String)| {
            let mut text = unit.repeat(bytes / unit.len() + 1);
            text.truncate((0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
            text
        })
    };
    prop_oneof![
        4 => ".{0,20}",
        4 => filled(120..140_usize),
        4 => filled(200..400_usize),
        1 => filled(LONG_BYTES - 2..LONG_BYTES + 200),
        1 => filled(2 * LONG_BYTES..2 * LONG_BYTES + 9),
        1 => "[\u{0}-\u{1f}\u{7f}\u{2028}\u{feff}\\\\\"]{0,200}",
        2 => select(vec![
            r#"{"$in":"/payload/content/0/text"}"#,
            r#"{"$in":"@/text"}"#,
            r#"{"$blob":"1-0","bytes":3}"#,
            "@/text", "#", "/", "~0", "null", "[]", "{}",
        ]).prop_map(str::to_string),
    ]
}

/// Texts of which some hold others as JSON, under names that are hard to point to.
pub fn related() -> impl Strategy<Value = Vec<String>> {
    let names = select(vec!["patch", "output", "a/b", "~", "#", "", "$in", "@", "x#/y", "ü"]);
    let wrapped = (any::<prop::sample::Index>(), names, any::<bool>());
    (vec(plain(), 1..4), vec(wrapped, 0..4)).prop_map(|(mut texts, wrapped)| {
        for (which, name, padded) in wrapped {
            let inner = texts[which.index(texts.len())].clone();
            let mut fields = serde_json::Map::new();
            fields.insert(name.to_string(), Value::from(inner));
            if padded {
                fields.insert("more".into(), json!(["x".repeat(130), {"deep": "y".repeat(130)}]));
            }
            texts.push(Value::Object(fields).to_string());
        }
        texts
    })
}
