//! The offline model from outside: prompts in, chunks out.

use polyloop_session::history::{Message, Prompt, Tools};
use polyloop_session::item::{Fault, ItemKind, Part, Usage};
use polyloop_session::{Heal, Text};

use super::*;
use crate::model::{CUT_CODE, Stop};

mod purposes;
mod replies;
mod script;
mod streams;

/// A reply as a client would have put it together.
#[derive(Debug, PartialEq)]
struct Answer {
    parts: Vec<AssistantPart>,
    /// The arguments so far of a call that was not ended.
    torn_args: Option<String>,
    usage: Option<Usage>,
    end: AnswerEnd,
}

#[derive(Debug, PartialEq)]
enum AnswerEnd {
    Done,
    Failed(Fault),
    Cut,
}

impl Answer {
    /// All text of it, one line a block.
    fn said(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            AssistantPart::Text { text, .. } => Some(&**text),
            AssistantPart::Reasoning { .. } | AssistantPart::ToolCall { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    fn calls(&self) -> Vec<(Text, Text, Text)> {
        let calls = self.parts.iter().filter_map(|part| match part {
            AssistantPart::ToolCall { call_ref, name, args, .. } => {
                Some((call_ref.clone(), name.clone(), args.clone()))
            }
            AssistantPart::Text { .. } | AssistantPart::Reasoning { .. } => None,
        });
        calls.collect()
    }

    /// The reply in short: `think x, say y, bash {…}`.
    fn shown(&self) -> String {
        let parts = self.parts.iter().map(|part| match part {
            AssistantPart::Text { text, .. } => format!("say {text}"),
            AssistantPart::Reasoning { text, .. } => format!("think {text}"),
            AssistantPart::ToolCall { name, args, .. } => format!("{name} {args}"),
        });
        parts.collect::<Vec<_>>().join(", ")
    }
}

fn text_part(text: &str) -> AssistantPart {
    AssistantPart::Text { text: text.into(), opaque: None }
}

fn user(text: &str) -> Message {
    Message::User(vec![Part::Text { text: text.into() }])
}

fn result(call_ref: &str, name: &str, output: &str, is_error: bool) -> Message {
    let (call_ref, name, output) = (call_ref.into(), name.into(), output.into());
    Message::ToolResult { call_ref, name, output, is_error }
}

fn request(purpose: Purpose, messages: &[Message]) -> Request {
    let prompt = Prompt { purpose, messages: messages.to_vec(), tools: Tools::None };
    Request { prompt, instructions: "".into(), tools: Default::default() }
}

fn chunks(purpose: Purpose, messages: &[Message]) -> Vec<Chunk> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(Offline::new().ask(request(purpose, messages)).collect())
}

fn answer(messages: &[Message]) -> Answer {
    assembled(chunks(Purpose::Think, messages))
}

/// Puts the chunks together and checks on the way that they keep the order a model owes.
fn assembled(chunks: Vec<Chunk>) -> Answer {
    let mut answer =
        Answer { parts: Vec::new(), torn_args: None, usage: None, end: AnswerEnd::Cut };
    let mut open: Option<(ItemKind, String)> = None;
    let mut next_block = 0;
    for chunk in chunks {
        assert_eq!(answer.end, AnswerEnd::Cut, "nothing comes after the end: {chunk:?}");
        match chunk {
            Chunk::Started { block, kind } => {
                assert!(open.is_none(), "block {block} began inside another");
                assert_eq!(block, next_block);
                next_block += 1;
                open = Some((kind, String::new()));
            }
            Chunk::Text { block, text } => {
                let (kind, grown) = open.as_mut().unwrap();
                assert_eq!(block + 1, next_block);
                assert!(!text.is_empty() && !matches!(kind, ItemKind::ToolCall { .. }));
                grown.push_str(&text);
            }
            Chunk::Args { block, text } => {
                let (kind, grown) = open.as_mut().unwrap();
                assert_eq!(block + 1, next_block);
                assert!(!text.is_empty() && matches!(kind, ItemKind::ToolCall { .. }));
                grown.push_str(&text);
            }
            Chunk::Ended { block, opaque } => {
                assert_eq!((block + 1, opaque), (next_block, None));
                let (kind, grown) = open.take().unwrap();
                let text: Text = grown.into();
                answer.parts.push(match kind {
                    ItemKind::Text => AssistantPart::Text { text, opaque: None },
                    ItemKind::Reasoning => AssistantPart::Reasoning { text, opaque: None },
                    ItemKind::ToolCall { name, call_ref, .. } => {
                        AssistantPart::ToolCall { call_ref, name, args: text, opaque: None }
                    }
                });
            }
            Chunk::Raw { json, .. } => panic!("the offline model has nothing raw: {json}"),
            Chunk::Usage(usage) => {
                assert!(open.is_none() && answer.usage.is_none());
                answer.usage = Some(usage);
            }
            Chunk::Done(stop) => {
                assert!(open.is_none() && answer.usage.is_some(), "usage comes before the end");
                assert_eq!(stop, Stop::End);
                answer.end = AnswerEnd::Done;
            }
            Chunk::Failed(failure) => {
                assert_eq!(failure.heal, Heal::Never, "the same prompt fails again");
                answer.end = match &*failure.fault.code {
                    CUT_CODE => AnswerEnd::Cut,
                    _ => AnswerEnd::Failed(failure.fault),
                };
            }
        }
    }
    answer.torn_args = open.map(|(_, args)| args);
    answer
}

/// Follows a script to the end of its turn, every call answered by `output`.
fn follow(messages: &mut Vec<Message>, output: &str, is_error: bool) -> Vec<Answer> {
    let mut answers = Vec::new();
    loop {
        let answer = answer(messages);
        let calls = answer.calls();
        if answer.end == AnswerEnd::Done {
            messages.push(Message::Assistant(answer.parts.clone()));
        }
        let ended = calls.is_empty() || answer.end != AnswerEnd::Done;
        answers.push(answer);
        if ended {
            return answers;
        }
        for (call_ref, name, _) in calls {
            messages.push(result(&call_ref, &name, output, is_error));
        }
    }
}

#[test]
fn it_has_a_name_and_a_window() {
    assert_eq!(Offline::new().name(), "offline");
    assert_eq!(Offline::new().card().tokens_max, 128_000);
}
