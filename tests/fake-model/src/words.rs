//! The script language of a user message: one step a line.
//!
//! A message without a step is no script; then the model says what it was told.

use std::num::NonZeroUsize;

use serde_json::Value;

use crate::ask::{Ask, Last};
use crate::fault;
use crate::reply::{Args, Block, Call, GivenUsage, Id, Reply};

const STEPS: [&str; 8] = ["think", "say", "call", "usage", "pieces", "delay", "fail", "cut"];

/// The reply that a request without a queued one gets.
pub fn reply(ask: &Ask) -> Result<Reply, String> {
    match &ask.last {
        Last::ToolResult(text) => {
            let line = text.trim_start().lines().next().unwrap_or_default().trim_end();
            Ok(Reply::say(format!("Done. {line}").trim_end()))
        }
        Last::User(text) => match steps(text) {
            steps if steps.is_empty() => Ok(Reply::say(&format!("You said: {text}"))),
            steps => script(&steps, ask),
        },
    }
}

/// A step, its words, and the number of its line.
type Step<'a> = (&'static str, String, usize);

/// The steps of a text. Lines behind a `think:` or `say:` that are no step belong to it; all other
/// lines that are no step are left out, so that a client may wrap the text in its own.
fn steps(text: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let step = line.trim_start().split_once(':').and_then(|(word, rest)| {
            let word = STEPS.iter().find(|step| **step == word)?;
            Some((*word, rest.strip_prefix(' ').unwrap_or(rest).to_owned(), at + 1))
        });
        match (step, steps.last_mut()) {
            (Some(step), _) => steps.push(step),
            (None, Some(("think" | "say", words, _))) => {
                words.push('\n');
                words.push_str(line);
            }
            (None, _) => {}
        }
    }
    steps
}

fn script(steps: &[Step<'_>], ask: &Ask) -> Result<Reply, String> {
    let mut reply = Reply::default();
    for (step, words, line) in steps {
        let taken = match *step {
            "think" => text(words).map(|text| reply.blocks.push(Block::think(text))),
            "say" => text(words).map(|text| reply.blocks.push(Block::say(text))),
            "call" => call(words.trim()).map(|call| reply.blocks.push(call)),
            "usage" => usage(words).map(|usage| reply.usage = usage),
            "pieces" => number(words).map(|chars: NonZeroUsize| reply.pieces = Some(chars)),
            "delay" => number(words).map(|ms| reply.delay_ms = ms),
            "cut" => number(words).map(|bytes| reply.cut_bytes = Some(bytes)),
            _ => fault::set_by_word(&mut reply, words.trim(), ask),
        };
        taken.map_err(|problem| format!("fake-model: line {line}: {step}: {problem}"))?;
    }
    Ok(reply)
}

/// Any text will do.
fn text(words: &str) -> Result<&str, String> {
    Ok(words.trim_end())
}

/// `<tool> <json>`; what is no JSON is sent as it is.
fn call(words: &str) -> Result<Block, String> {
    let (name, args) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    if name.is_empty() {
        return Err("no tool is named; write call: <tool> <json>".to_owned());
    }
    let args = match args.trim() {
        "" => Args::default(),
        args => Args::from(Value::from(args)),
    };
    let (call, id) = (name.to_owned(), Id::Made);
    Ok(Block::Call(Call { call, args, id, signature: None, args_object: false }))
}

fn usage(words: &str) -> Result<GivenUsage, String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let (input, output, cached) = match words[..] {
        [input, output] => (input, output, None),
        [input, output, cached] => (input, output, Some(cached)),
        _ => return Err(format!("{} words; write usage: <in> <out> [cached]", words.len())),
    };
    Ok(GivenUsage {
        input: Some(number(input)?),
        output: Some(number(output)?),
        cached: cached.map(number).transpose()?,
        ..GivenUsage::default()
    })
}

fn number<N: std::str::FromStr>(word: &str) -> Result<N, String> {
    let word = word.trim();
    word.parse().map_err(|_| format!("{word:?} is not a number that it can take"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Api;
    use crate::route::Target;
    use serde_json::json;

    fn told(content: &str) -> Result<Reply, String> {
        let body = json!({"messages": [{"role": "user", "content": content}]});
        let target = Target { api: Api::Chat, gemini: None };
        reply(&Ask::read(&target, body.to_string().as_bytes()).unwrap())
    }

    fn texts(reply: &Reply) -> Vec<&str> {
        reply.blocks.iter().filter_map(Block::text).collect()
    }

    #[test]
    fn other_text_is_said_again() {
        assert_eq!(texts(&told("hello: you").unwrap()), ["You said: hello: you"]);
    }

    #[test]
    fn every_step_is_understood() {
        let reply = told(
            "<wrapped>\nthink: hm\nsay: one\ntwo\ncall: bash {\"a\":1}\ncall: x\n\
             usage: 10 20 5\npieces: 3\ndelay: 7\ncut: 9",
        )
        .unwrap();
        assert_eq!(texts(&reply), ["hm", "one\ntwo", r#"{"a":1}"#, "{}"]);
        let usage = reply.usage;
        assert_eq!((usage.input, usage.output, usage.cached), (Some(10), Some(20), Some(5)));
        assert_eq!(reply.pieces.unwrap().get(), 3);
        assert_eq!((reply.delay_ms, reply.cut_bytes), (7, Some(9)));
    }

    #[test]
    fn a_wrong_step_names_its_line() {
        for (text, words) in [
            ("say: x\nusage: many", &["line 2", "usage", "1 words"][..]),
            ("usage: 1 x", &["\"x\""]),
            ("pieces: 0", &["pieces", "\"0\""]),
            ("call:", &["no tool"]),
            ("fail: loudly", &["loudly", "429", "garbage"]),
        ] {
            let problem = told(text).unwrap_err();
            assert!(words.iter().all(|word| problem.contains(word)), "{text}: {problem}");
        }
    }

    #[test]
    fn a_tool_result_is_done() {
        let body = json!({"messages": [{"role": "tool", "content": "\nfirst\nsecond"}]});
        let target = Target { api: Api::Chat, gemini: None };
        let ask = Ask::read(&target, body.to_string().as_bytes()).unwrap();
        assert_eq!(texts(&reply(&ask).unwrap()), ["Done. first"]);
    }
}
