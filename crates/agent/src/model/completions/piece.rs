//! The event that comes most often, a piece of text and nothing else, read in one go.
//!
//! Whatever is any different is not read here: `None` sends it the long way, which is the one that
//! says what an event means.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The text, and what the server calls its model.
pub struct Piece<'a> {
    pub text: Cow<'a, str>,
    pub model: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    model: Word<'a>,
    #[serde(borrow)]
    object: Word<'a>,
    #[serde(borrow)]
    choices: [Choice<'a>; 1],
    error: Option<IgnoredAny>,
    usage: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: u64,
    #[serde(borrow)]
    delta: Delta<'a>,
    finish_reason: Option<IgnoredAny>,
}

/// Another field may be reasoning, a call, or what nobody knows yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Word<'a>,
    #[serde(rename = "role")]
    _role: Option<IgnoredAny>,
}

/// Borrowed unless something in it is escaped.
#[derive(Deserialize)]
struct Word<'a>(#[serde(borrow)] Cow<'a, str>);

pub fn read(data: &[u8]) -> Option<Piece<'_>> {
    let Event { model, object, choices, error, usage } = serde_json::from_slice(data).ok()?;
    let [Choice { index, delta, finish_reason }] = choices;
    let is_text = error.is_none() && usage.is_none() && finish_reason.is_none();
    let is_first = index == 0 && object.0 != "error" && !model.0.is_empty();
    let piece = Piece { text: delta.content.0, model: model.0 };
    (is_text && is_first && !piece.text.is_empty()).then_some(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(delta: &str, more: &str) -> String {
        format!(
            r#"{{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":null}}]{more}}}"#
        )
    }

    #[test]
    fn a_piece_of_text_is_read_and_anything_else_is_not() {
        for (delta, text) in [
            (r#"{"content":"of interest "}"#, "of interest "),
            (r#"{"role":"assistant","content":"a\n\"b\" \u00fc"}"#, "a\n\"b\" ü"),
        ] {
            let event = event(delta, r#","usage":null,"service_tier":"default""#);
            let piece = read(event.as_bytes()).unwrap();
            assert_eq!((&*piece.text, &*piece.model), (text, "m"));
        }
        for (delta, more) in [
            (r#"{"content":""}"#, ""),
            (r#"{"content":null}"#, ""),
            (r#"{"content":["a"]}"#, ""),
            (r#"{"content":"a","reasoning_content":"b"}"#, ""),
            (r#"{"content":"a","tool_calls":[]}"#, ""),
            (r#"{"content":"a","content":"b"}"#, ""),
            (r#"{"content":"a"}"#, r#","usage":{"prompt_tokens":1}"#),
            (r#"{"content":"a"}"#, r#","error":{"message":"no"}"#),
            (r#"{"content":"a"}"#, "]"),
        ] {
            assert!(read(event(delta, more).as_bytes()).is_none(), "{delta} {more}");
        }
        let text = event(r#"{"content":"a"}"#, "");
        for (from, to) in [
            ("\"index\":0", "\"index\":1"),
            ("\"finish_reason\":null", "\"finish_reason\":\"stop\""),
            ("chat.completion.chunk", "error"),
            ("\"model\":\"m\"", "\"model\":\"\""),
        ] {
            assert!(read(text.replace(from, to).as_bytes()).is_none(), "{to}");
        }
    }
}
