//! What a script says about one reply. A field nobody knows is refused by its name.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// How many characters a delta has unless the script says it.
pub const PIECE_CHARS: usize = 16;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    pub blocks: Vec<Block>,
    pub usage: GivenUsage,
    pub stop: Stop,
    /// Characters a delta.
    pub pieces: Option<NonZeroUsize>,
    pub delay_ms: u64,
    pub http: Option<Http>,
    pub error: Option<MidError>,
    pub cut_bytes: Option<u64>,
    /// A block and how many characters of it come.
    pub cut_block: Option<(usize, usize)>,
    pub no_final: bool,
    pub hang_bytes: Option<u64>,
    pub hang: bool,
    pub disconnect: bool,
    pub chunk_bytes: Option<NonZeroUsize>,
    pub raw: Option<String>,
    pub raw_base64: Option<Base64>,
    pub raw_times: Option<u64>,
    pub content_type: Option<String>,
    pub style: Style,
    pub repeat: Option<NonZeroU64>,
}

impl Reply {
    pub fn say(text: &str) -> Reply {
        Reply { blocks: vec![Block::say(text)], ..Reply::default() }
    }

    /// A body that is sent as it is.
    pub fn raw_body(&self) -> Option<Bytes> {
        let text = self.raw.as_ref().map(|text| Bytes::copy_from_slice(text.as_bytes()));
        text.or_else(|| self.raw_base64.as_ref().map(|Base64(bytes)| bytes.clone()))
    }

    /// What no field alone could say is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.raw.is_some() && self.raw_base64.is_some() {
            return Err("raw and raw_base64: a reply has one of them, not both".to_owned());
        }
        if let Some((block, _)) = self.cut_block
            && block >= self.blocks.len()
        {
            let blocks = self.blocks.len();
            return Err(format!("cut_block: there is no block {block}; the reply has {blocks}"));
        }
        Ok(())
    }
}

/// Reads the replies of a script: all of them, or none and what is wrong with the first bad one.
pub fn replies(script: &[u8]) -> Result<Vec<Reply>, String> {
    let mut json = serde_json::Deserializer::from_slice(script);
    let replies: Vec<Reply> = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| format!("script: {}: {}", error.path(), error.inner()))?;
    json.end().map_err(|error| format!("script: {error}"))?;
    for (at, reply) in replies.iter().enumerate() {
        reply.check().map_err(|problem| format!("script: [{at}]: {problem}"))?;
    }
    Ok(replies)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    #[default]
    End,
    Length,
    Refusal,
    ContentFilter,
}

/// What a script says about tokens; `input` counts the whole prompt, cached or not, and `output`
/// counts the reasoning too.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GivenUsage {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub cached: Option<u64>,
    pub cache_written: Option<u64>,
    pub reasoning: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    pub status: Option<u16>,
    pub headers: BTreeMap<String, String>,
    pub body: Option<Value>,
}

/// An error after the blocks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MidError {
    /// The API's own word, or one of the words of `fail:`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub code: Option<Value>,
    pub message: Option<String>,
    /// The Responses API has three ways to say it.
    pub form: ErrorForm,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorForm {
    /// As documented: `code` and `message` beside `type`.
    #[default]
    Flat,
    /// As the service often sends it: an `error` object inside the event.
    Nested,
    /// `response.failed`.
    Failed,
}

/// Ways to write server-sent events that are all allowed.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Style {
    pub crlf: bool,
    pub no_space: bool,
    pub comments: bool,
    pub bom: bool,
    pub split_data: bool,
    pub unknown_events: bool,
    pub done_twice: bool,
}

#[derive(Clone, Debug)]
pub struct Base64(pub Bytes);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Base64, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map(|bytes| Base64(bytes.into())).map_err(D::Error::custom)
    }
}

#[derive(Clone, Debug)]
pub enum Block {
    Think(Think),
    Redacted(Redacted),
    Say(Say),
    Call(Call),
    Shell(Shell),
    Item(Item),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Think {
    pub think: String,
    pub signature: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redacted {
    pub redacted: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Say {
    pub say: String,
    pub signature: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub call: String,
    #[serde(default)]
    pub args: Args,
    #[serde(default)]
    pub id: Id,
    pub signature: Option<String>,
    /// A fault of some servers: an object where the OpenAI APIs have a string of JSON.
    #[serde(default)]
    pub args_object: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shell {
    pub shell: Vec<String>,
    #[serde(default)]
    pub id: Id,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    pub item: Map<String, Value>,
}

const BLOCKS: &str = "a block has one of think, redacted, say, call, shell, item";

impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Block, D::Error> {
        let fields = Map::deserialize(from)?;
        let has = |key: &str| fields.contains_key(key);
        let kinds = ["think", "redacted", "say", "call", "shell", "item"].map(has);
        if kinds.iter().filter(|has| **has).count() != 1 {
            let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
            return Err(D::Error::custom(format!("{BLOCKS}, this one has: {}", keys.join(", "))));
        }
        let [think, redacted, say, call, shell, _item] = kinds;
        let value = Value::Object(fields);
        let block = if think {
            Think::deserialize(value).map(Block::Think)
        } else if redacted {
            Redacted::deserialize(value).map(Block::Redacted)
        } else if say {
            Say::deserialize(value).map(Block::Say)
        } else if call {
            Call::deserialize(value).map(Block::Call)
        } else if shell {
            Shell::deserialize(value).map(Block::Shell)
        } else {
            Item::deserialize(value).map(Block::Item)
        };
        block.map_err(D::Error::custom)
    }
}

impl Block {
    pub fn say(text: &str) -> Block {
        Block::Say(Say { say: text.to_owned(), signature: None })
    }

    pub fn think(text: &str) -> Block {
        Block::Think(Think { think: text.to_owned(), signature: None })
    }

    /// What grows piece by piece.
    pub fn text(&self) -> Option<&str> {
        match self {
            Block::Think(Think { think: text, .. }) | Block::Say(Say { say: text, .. }) => {
                Some(text)
            }
            Block::Call(call) => Some(&call.args.text),
            Block::Redacted(_) | Block::Shell(_) | Block::Item(_) => None,
        }
    }
}

impl Shell {
    /// The same command for a request that offers no local shell.
    pub fn as_call(&self) -> Call {
        let args = Args::from(serde_json::json!({ "command": self.shell }));
        let id = self.id.clone();
        Call { call: "shell".to_owned(), args, id, signature: None, args_object: false }
    }
}

/// Arguments as text and as a value; a string that is no JSON stays a string.
#[derive(Clone, Debug)]
pub struct Args {
    pub text: String,
    pub value: Value,
}

impl Default for Args {
    fn default() -> Args {
        Args::from(Value::Object(Map::new()))
    }
}

impl From<Value> for Args {
    fn from(value: Value) -> Args {
        match value {
            Value::String(text) => {
                let value = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(&*text));
                Args { text, value }
            }
            value => Args { text: value.to_string(), value },
        }
    }
}

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Args, D::Error> {
        Value::deserialize(from).map(Args::from)
    }
}

/// The id of a call.
#[derive(Clone, Debug, Default)]
pub enum Id {
    #[default]
    Made,
    /// `null` in the script: a fault of some servers.
    LeftOut,
    Given(String),
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Id, D::Error> {
        Ok(Option::deserialize(from)?.map_or(Id::LeftOut, Id::Given))
    }
}

impl Id {
    pub fn or_made(&self, made: impl FnOnce() -> String) -> Option<String> {
        match self {
            Id::Made => Some(made()),
            Id::LeftOut => None,
            Id::Given(id) => Some(id.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
