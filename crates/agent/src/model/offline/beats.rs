//! Turns the steps of a reply into the chunks of a stream.
//!
//! Lazy and pure: what is to be waited for is a beat of its own, so a long stream costs no memory
//! and the order of everything can be tested without a clock.

use std::fmt::Write;
use std::time::Duration;

use polyloop_session::history::AssistantPart;
use polyloop_session::item::{Fault, ItemKind, Usage};
use polyloop_session::state::estimate_tokens;
use polyloop_session::{Heal, Text};

use super::script::{Failure, Numbers, STREAM_BYTES_MAX, Step};
use crate::model::{self, CUT_CODE, CUT_TEXT, Chunk, Stop};

/// A text is sent in pieces of about this many bytes, cut behind a word where there is one.
const PIECE_BYTES_MIN: usize = 8;
const PIECE_BYTES_MAX: usize = 24;
/// A call's arguments are sent in about this many pieces.
const ARGS_PIECES: usize = 4;
/// A numbered word: seven digits and a space.
const NUMBER_BYTES: u64 = 8;
const _: () = assert!(STREAM_BYTES_MAX / NUMBER_BYTES <= 10_000_000, "seven digits must do");

/// What the stream does next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Beat {
    Send(Chunk),
    Pause(Duration),
    /// Never goes on.
    Hang,
}

/// What the caller knows of the call that is answered.
pub(super) struct Asked {
    pub input_tokens: u64,
    /// Begins the name of each tool call; no other prompt of the session gives the same.
    pub ref_prefix: String,
}

pub(super) fn beats(steps: Vec<Step>, asked: Asked) -> impl Iterator<Item = Beat> + Send + 'static {
    let Reply { blocks, usage, ending } = reply(steps, &asked);
    let blocks = blocks.into_iter().zip(0..).flat_map(|(block, number)| block.beats(number));
    let end = match ending {
        Ending::Done => {
            vec![Beat::Send(Chunk::Usage(usage)), Beat::Send(Chunk::Done(Stop::End))]
        }
        // The same prompt would fail again, so nothing is gained by asking again.
        Ending::Failed(fault) => {
            vec![Beat::Send(Chunk::Failed(model::Failure { fault, heal: Heal::Never }))]
        }
        Ending::Hang => vec![Beat::Hang],
    };
    blocks.chain(end)
}

/// Whether that piece of a prompt is all that the step says.
pub(super) fn says(step: &Step, part: &AssistantPart) -> bool {
    match (step, part) {
        (Step::Say(text), AssistantPart::Text { text: said, .. }) => text == said,
        (Step::Think(text), AssistantPart::Reasoning { text: said, .. }) => text == said,
        (Step::Stream(numbers), AssistantPart::Text { text: said, .. }) => {
            said.len() as u64 == numbers.bytes() && **said == *numbered(0, numbers.bytes())
        }
        (
            Step::Say(_)
            | Step::Think(_)
            | Step::Stream(_)
            | Step::Call { .. }
            | Step::Usage { .. }
            | Step::Fail(_)
            | Step::Cut,
            _,
        ) => false,
    }
}

struct Reply {
    blocks: Vec<Block>,
    usage: Usage,
    ending: Ending,
}

struct Block {
    kind: ItemKind,
    body: Body,
}

enum Body {
    Text(Text),
    Numbers(Numbers),
    Args(Text),
    /// The stream ends inside them.
    CutArgs(Text),
}

enum Ending {
    Done,
    Failed(Fault),
    Hang,
}

fn reply(steps: Vec<Step>, asked: &Asked) -> Reply {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut told, mut ending, mut cutting) = (None, Ending::Done, false);
    for step in steps {
        let (kind, body) = match step {
            Step::Think(text) => (ItemKind::Reasoning, Body::Text(text)),
            Step::Say(text) => (ItemKind::Text, Body::Text(text)),
            Step::Stream(numbers) => (ItemKind::Text, Body::Numbers(numbers)),
            Step::Call { name, args } => {
                let kind = tool_call(name, asked, blocks.len());
                (kind, if cutting { Body::CutArgs(args) } else { Body::Args(args) })
            }
            Step::Usage { input_tokens, output_tokens } => {
                told = Some(Usage { input_tokens, output_tokens, ..Usage::default() });
                continue;
            }
            Step::Cut => {
                cutting = true;
                continue;
            }
            Step::Fail(failure) => {
                ending = failed(failure);
                cutting = false;
                break;
            }
        };
        let cut = matches!(body, Body::CutArgs(_));
        blocks.push(Block { kind, body });
        if cut {
            break;
        }
    }
    if cutting {
        if !blocks.iter().any(|block| matches!(block.body, Body::CutArgs(_))) {
            let kind = tool_call("bash".into(), asked, blocks.len());
            let args = r#"{"command":"echo This call is never whole."}"#;
            blocks.push(Block { kind, body: Body::CutArgs(args.into()) });
        }
        ending = cut();
    }
    let output_tokens = blocks.iter().map(|block| block.body.tokens()).sum();
    let input_tokens = asked.input_tokens;
    let counted = Usage { input_tokens, output_tokens, ..Usage::default() };
    Reply { blocks, usage: told.unwrap_or(counted), ending }
}

fn tool_call(name: Text, asked: &Asked, block: usize) -> ItemKind {
    let call_ref = format!("{}_{block}", asked.ref_prefix).into();
    ItemKind::ToolCall { name, call_ref, native: false }
}

fn failed(failure: Failure) -> Ending {
    match failure {
        Failure::TooManyRequests => Ending::Failed(Fault::new(
            "429",
            "429 Too Many Requests: the offline model was told to refuse this call (fail: 429)",
        )),
        Failure::ServerError => Ending::Failed(Fault::new(
            "500",
            "500 Internal Server Error: the offline model was told to fail here (fail: 500)",
        )),
        Failure::Garbage => Ending::Failed(Fault::new(
            "bad_answer",
            "the model sent something that is not an answer",
        )),
        Failure::Disconnect => cut(),
        Failure::Hang => Ending::Hang,
    }
}

fn cut() -> Ending {
    Ending::Failed(Fault::new(CUT_CODE, CUT_TEXT))
}

type Beats = Box<dyn Iterator<Item = Beat> + Send>;

impl Block {
    fn beats(self, block: u32) -> impl Iterator<Item = Beat> + Send {
        let Block { kind, body } = self;
        let send = move |text: Text| Beat::Send(Chunk::Text { block, text });
        let send_args = move |text: Text| Beat::Send(Chunk::Args { block, text });
        let ends = !matches!(body, Body::CutArgs(_));
        let middle: Beats = match body {
            Body::Text(text) => Box::new(Pieces { rest: text, at: 0 }.map(send)),
            Body::Numbers(numbers) => Box::new(numbers.beats(send)),
            Body::Args(args) => Box::new(args_pieces(&args).into_iter().map(send_args)),
            Body::CutArgs(args) => {
                let shown = &args[..args.floor_char_boundary(args.len() / 2)];
                Box::new(args_pieces(shown).into_iter().map(send_args))
            }
        };
        let ended = ends.then_some(Beat::Send(Chunk::Ended { block, opaque: None }));
        std::iter::once(Beat::Send(Chunk::Started { block, kind })).chain(middle).chain(ended)
    }
}

impl Body {
    fn tokens(&self) -> u64 {
        match self {
            Body::Text(text) | Body::Args(text) | Body::CutArgs(text) => {
                estimate_tokens(text.len())
            }
            Body::Numbers(numbers) => numbers.bytes().div_ceil(4),
        }
    }
}

impl Numbers {
    fn bytes(&self) -> u64 {
        self.chunks.saturating_mul(self.chunk_bytes)
    }

    fn beats(self, send: impl Fn(Text) -> Beat + Send) -> impl Iterator<Item = Beat> + Send {
        (0..self.chunks).flat_map(move |at| {
            let pause = (at > 0 && !self.delay.is_zero()).then_some(Beat::Pause(self.delay));
            let text = numbered(at * self.chunk_bytes, self.chunk_bytes);
            pause.into_iter().chain([send(text.into())])
        })
    }
}

/// A stretch of `0000000 0000001 0000002 …`: whoever finds a number at another place than eight
/// times itself has lost or doubled something.
fn numbered(from: u64, bytes: u64) -> String {
    let end = from.saturating_add(bytes);
    let words = from / NUMBER_BYTES..end.div_ceil(NUMBER_BYTES);
    let mut text = String::with_capacity((bytes + 2 * NUMBER_BYTES) as usize);
    for word in words {
        // Writing to a string does not fail.
        let _ = write!(text, "{word:07} ");
    }
    text.drain(..(from % NUMBER_BYTES) as usize);
    text.truncate(bytes as usize);
    text
}

/// A text in small pieces that never part a character and together are the whole.
struct Pieces {
    rest: Text,
    at: usize,
}

impl Iterator for Pieces {
    type Item = Text;

    fn next(&mut self) -> Option<Text> {
        let rest = self.rest.get(self.at..).filter(|rest| !rest.is_empty())?;
        let piece = &rest[..piece_bytes(rest)];
        self.at += piece.len();
        Some(piece.into())
    }
}

fn piece_bytes(rest: &str) -> usize {
    if rest.len() <= PIECE_BYTES_MAX {
        return rest.len();
    }
    // Looks no further than a piece may reach: the rest may be one long word.
    let reach = &rest[..rest.floor_char_boundary(PIECE_BYTES_MAX)];
    let behind_words = reach.char_indices().filter(|(_, c)| c.is_whitespace());
    let mut ends = behind_words.map(|(at, c)| at + c.len_utf8());
    ends.find(|end| *end >= PIECE_BYTES_MIN).unwrap_or(reach.len())
}

fn args_pieces(args: &str) -> Vec<Text> {
    let size = args.len().div_ceil(ARGS_PIECES).max(PIECE_BYTES_MIN);
    let (mut pieces, mut rest) = (Vec::new(), args);
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        pieces.push(piece.into());
        rest = more;
    }
    pieces
}
