//! The tool calls of an answer, put together from their pieces.
//!
//! Calls should have an index, an id and a name, and should send each once. Servers leave out any
//! of them, repeat them, count every call 0, or send a new id with every piece.

use polyloop_session::item::{ItemKind, Opaque};

use super::NAME;
use crate::model::Chunk;
use crate::model::json::{self, Fields, Object};
use crate::model::openai::word;

/// Of arguments that wait for the name of what is called.
const WAITING_BYTES_MAX: usize = 64 * 1024;
/// Of the fields that go back with a call.
const EXTRA_BYTES_MAX: usize = 256 * 1024;

#[derive(Default)]
pub struct Calls(Vec<Call>);

struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    args: String,
    extra: Fields,
    extra_bytes: usize,
    /// Its block, once it began: a name and some arguments are there.
    block: Option<u32>,
}

/// A piece of a call.
pub struct Piece {
    index: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    args: String,
    extra: Fields,
}

impl Piece {
    /// Of an entry of `tool_calls`.
    pub fn of_call(call: &Object<'_>) -> Piece {
        let function = call.object("function").unwrap_or_default();
        Piece {
            index: call.count("index"),
            id: word(call, "id"),
            extra: call.without(&["index", "id", "type", "function"]),
            ..Piece::of_function(&function)
        }
    }

    /// Of a `function_call`, which older servers send.
    pub fn of_function(function: &Object<'_>) -> Piece {
        let args = function.raw("arguments");
        // Some servers send the object itself.
        let args = args.map(|args| json::text(args).unwrap_or_else(|| args.get().to_owned()));
        Piece {
            index: None,
            id: None,
            name: word(function, "name"),
            args: args.unwrap_or_default(),
            extra: Fields::default(),
        }
    }
}

impl Calls {
    /// Takes a piece; `next` counts the blocks.
    pub fn take(&mut self, piece: Piece, next: &mut u32, chunks: &mut Vec<Chunk>) {
        let at = self.find(&piece);
        if at.is_none() {
            // What was called before is known by now.
            self.begin_named(next, chunks);
        }
        let at = at.unwrap_or_else(|| {
            self.0.push(Call::new(piece.index));
            self.0.len() - 1
        });
        let Some(call) = self.0.get_mut(at) else { return };
        call.take(piece, chunks);
        let waits = call.name.is_empty() && call.args.len() <= WAITING_BYTES_MAX;
        if !waits && !call.args.is_empty() {
            call.begin(next, chunks);
        }
    }

    /// The call that a piece belongs to, if it is no new one.
    fn find(&self, piece: &Piece) -> Option<usize> {
        let by_id = || {
            piece.id.as_ref()?;
            self.0.iter().rposition(|call| Some(&call.id) == piece.id.as_ref())
        };
        let by_index = || self.0.iter().rposition(|call| call.index == piece.index);
        let last = || self.0.len().checked_sub(1);
        let found = match piece.index {
            // Another index with a name begins another call, even under the same id.
            Some(_) => by_index()
                .or_else(|| {
                    let same = |at: &usize| piece.name.is_none() || self.0[*at].index.is_none();
                    by_id().filter(same)
                })
                .or_else(|| {
                    // Its first piece had no index.
                    last().filter(|at| piece.name.is_none() && self.0[*at].index.is_none())
                }),
            None => by_id().or_else(last),
        };
        found.filter(|at| self.0[*at].goes_on(piece))
    }

    /// Begins the calls that have a name and no arguments yet: something else comes now.
    pub fn begin_named(&mut self, next: &mut u32, chunks: &mut Vec<Chunk>) {
        for call in self.0.iter_mut().filter(|call| !call.name.is_empty()) {
            call.begin(next, chunks);
        }
    }

    /// The answer has ended well.
    pub fn end(&mut self, next: &mut u32, chunks: &mut Vec<Chunk>) {
        for mut call in std::mem::take(&mut self.0) {
            call.begin(next, chunks);
            call.end(chunks);
        }
    }
}

impl Call {
    fn new(index: Option<u64>) -> Call {
        let (id, name, args) = (String::new(), String::new(), String::new());
        Call { index, id, name, args, extra: Fields::default(), extra_bytes: 0, block: None }
    }

    fn goes_on(&self, piece: &Piece) -> bool {
        let Some(name) = &piece.name else {
            // Without a name it begins nothing, whatever its id.
            return true;
        };
        match &piece.id {
            Some(id) if *id == self.id => true,
            Some(_) if !self.id.is_empty() => false,
            _ if self.name.is_empty() => true,
            // The name of the same call again, or the next call of the same tool?
            _ if *name == self.name => Object::read(&self.args).is_none(),
            // More of a name, which only an index can tell from another.
            _ => piece.index.is_some() && self.args.is_empty() && self.block.is_none(),
        }
    }

    fn take(&mut self, piece: Piece, chunks: &mut Vec<Chunk>) {
        let Piece { index: _, id, name, args, extra } = piece;
        if let Some(id) = id.filter(|_| self.id.is_empty()) {
            self.id = id;
        }
        if let Some(name) = name.filter(|name| self.block.is_none() && *name != self.name) {
            self.name.push_str(&name);
        }
        self.extra_bytes += if extra.is_empty() { 0 } else { extra.json().len() };
        if self.extra_bytes <= EXTRA_BYTES_MAX {
            self.extra.extend(extra);
        }
        self.args.push_str(&args);
        if let Some(block) = self.block.filter(|_| !args.is_empty()) {
            chunks.push(Chunk::Args { block, text: args.into() });
        }
    }

    fn begin(&mut self, next: &mut u32, chunks: &mut Vec<Chunk>) {
        if self.block.is_some() {
            return;
        }
        let block = *next;
        *next = next.saturating_add(1);
        self.block = Some(block);
        let (name, call_ref) = (self.name.as_str().into(), self.id.as_str().into());
        let kind = ItemKind::ToolCall { name, call_ref, native: false };
        chunks.push(Chunk::Started { block, kind });
        if !self.args.is_empty() {
            chunks.push(Chunk::Args { block, text: self.args.as_str().into() });
        }
    }

    fn end(&self, chunks: &mut Vec<Chunk>) {
        let Some(block) = self.block else { return };
        let json = self.extra.json();
        // Of a field that came twice, the last counts.
        let extra = Object::read(&json).map(|extra| extra.without(&[])).unwrap_or_default();
        let json = (!extra.is_empty()).then(|| extra.json());
        let opaque = json.map(|json| Opaque { provider: NAME.into(), json: json.into() });
        chunks.push(Chunk::Ended { block, opaque });
    }
}
