//! A model without a network: the user's message is its script.
//!
//! Equal prompts get equal answers. It keeps nothing between two calls, reads no clock, and waits
//! only where a script asks for it. A script has one step a line:
//!
//! | line | does |
//! |---|---|
//! | `think: …` | a piece of reasoning |
//! | `say: …` | a text |
//! | `run: <shell command>` | calls `bash` |
//! | `tool: <name> <json>` | calls any tool, with these arguments as they stand (none: `{}`) |
//! | `ask: question \| option \| option` | calls `ask_user` |
//! | `plan: …` | calls `exit_plan_mode` |
//! | `stream: <chunks> <bytes> <delay ms>` | a text of numbered words in chunks of that size |
//! | `usage: <in> <out>` | the usage this reply reports, in place of an estimate |
//! | `fail: 429\|500\|disconnect\|hang\|garbage` | the reply ends like this |
//! | `cut:` | the stream ends inside the arguments of the next call |
//!
//! A reply goes on to the first line that calls a tool; with its result the model is asked again
//! and goes on behind that line. A line that begins with `&` belongs to the same reply as the line
//! above (`run: a`, then `&run: b`: two calls in one reply). A script that ends with a call gets
//! one more line that reports the result. Other lines in a script are said; text without any step
//! gets a greeting that shows what can be tried. The words may be written in capitals.
//!
//! In `think:`, `say:`, `run:`, `ask:` and `plan:` the two characters `\n` mean a newline and `\\`
//! a backslash; a backslash before anything else is itself.
//!
//! The tools a request offers are not looked at: a script may call one that does not exist, to
//! show what then happens.

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use polyloop_session::event::Purpose;
use polyloop_session::history::{AssistantPart, Message, Prompt};
use polyloop_session::state::estimate_tokens;
use tokio::task::coop::consume_budget;

use self::beats::{Asked, Beat, beats};
use self::script::Step;
use crate::model::table::Card;
use crate::model::{Chunk, Model, Request};

mod beats;
mod reply;
mod script;
mod search;
mod summary;
mod talk;

pub use script::{
    SCRIPT_BYTES_MAX, SCRIPT_LINES_MAX, STREAM_BYTES_MAX, STREAM_CHUNK_BYTES_MAX,
    STREAM_CHUNKS_MAX, STREAM_DELAY_MS_MAX,
};

pub const OFFLINE_NAME: &str = "offline";
pub const OFFLINE_TOKENS_MAX: u64 = 128_000;

static CARD: Card = Card {
    tokens_max: OFFLINE_TOKENS_MAX,
    window_known: true,
    output_tokens_max: OFFLINE_TOKENS_MAX,
    price: None,
    images: true,
    reasoning: true,
    native_shell: false,
};

/// Lines to try, each a step: what a person who wrote plain text is shown.
pub const SCRIPT_HELP: &str = "\
say: Hello there!
run: ls -l
think: First I look around.
ask: Which colour? | red | blue
plan: 1. Look around\\n2. Change one thing
stream: 20 12 50";

/// See the module's page for what a script can say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offline;

impl Offline {
    pub fn new() -> Offline {
        Offline
    }
}

impl Model for Offline {
    fn name(&self) -> &str {
        OFFLINE_NAME
    }

    fn card(&self) -> &Card {
        &CARD
    }

    fn ask(&self, request: Request) -> BoxStream<'static, Chunk> {
        let asked = Asked {
            input_tokens: input_tokens(&request),
            ref_prefix: ref_prefix(&request.prompt.messages),
        };
        perform(beats(steps(&request.prompt), asked)).boxed()
    }
}

fn steps(prompt: &Prompt) -> Vec<Step> {
    match prompt.purpose {
        Purpose::Think => reply::due(&prompt.messages),
        Purpose::Explain { wait: _ } => {
            let asked = prompt.messages.iter().rev().find_map(|message| match message {
                Message::User(parts) => Some(reply::user_text(parts)),
                Message::Assistant(_) | Message::ToolResult { .. } => None,
            });
            vec![Step::Say(talk::explanation(&asked.unwrap_or_default()))]
        }
        Purpose::Summarise => vec![Step::Say(summary::summary(&prompt.messages))],
        part => search::part(part, &prompt.messages),
    }
}

fn perform<I: Iterator<Item = Beat> + Send>(beats: I) -> impl stream::Stream<Item = Chunk> {
    stream::unfold(beats, |mut beats| async move {
        loop {
            match beats.next()? {
                Beat::Send(chunk) => {
                    // Nothing here ever waits, so a long answer lets others run now and then.
                    consume_budget().await;
                    return Some((chunk, beats));
                }
                Beat::Pause(delay) => tokio::time::sleep(delay).await,
                Beat::Hang => std::future::pending::<()>().await,
            }
        }
    })
}

fn input_tokens(request: &Request) -> u64 {
    let tool_bytes = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.json().len());
    let bytes = summary::bytes(&request.prompt.messages) + request.instructions.len();
    estimate_tokens(bytes + tool_bytes.sum::<usize>())
}

/// Counts alone would come again after a compaction, so the prompt's whole content is in it.
fn ref_prefix(messages: &[Message]) -> String {
    let mut mark = Mark::default();
    for message in messages {
        match message {
            Message::User(parts) => mark.take("user", &reply::user_text(parts)),
            Message::Assistant(parts) => {
                for part in parts {
                    match part {
                        AssistantPart::Text { text, .. } => mark.take("text", text),
                        AssistantPart::Reasoning { text, .. } => mark.take("reasoning", text),
                        AssistantPart::ToolCall { call_ref, args, .. } => {
                            mark.take(call_ref, args);
                        }
                    }
                }
            }
            Message::ToolResult { call_ref, output, .. } => mark.take(call_ref, output),
        }
    }
    format!("offline_{}_{:08x}", messages.len(), mark.short())
}

/// FNV-1a: the same in every process and every release, unlike the standard library's hashes.
struct Mark(u64);

impl Default for Mark {
    fn default() -> Mark {
        Mark(0xcbf2_9ce4_8422_2325)
    }
}

impl Mark {
    fn take(&mut self, kind: &str, text: &str) {
        for byte in kind.bytes().chain([0]).chain(text.bytes()).chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn short(&self) -> u32 {
        (self.0 ^ (self.0 >> 32)) as u32
    }
}

#[cfg(test)]
mod tests;
