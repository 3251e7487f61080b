//! The running line: the pieces of the prompt since the last compaction.

use super::*;

/// What stands for what did not fit the model's window.
pub const LEFT_OUT_TEXT: &str = "[Messages that did not fit, and what came of them, are left out.]";

/// One piece of a prompt. `call` names the model call a piece came from, so that a failed call's
/// pieces can be taken out again; adopted pieces have none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Piece {
    User {
        content: Vec<Part>,
    },
    Agent {
        call: Option<CallId>,
        item: ItemId,
        text: Text,
        opaque: Option<Opaque>,
    },
    Reasoning {
        call: CallId,
        item: ItemId,
        text: Text,
        opaque: Option<Opaque>,
    },
    ToolCall {
        call: Option<CallId>,
        item: ItemId,
        name: Text,
        call_ref: Text,
        args: Text,
        opaque: Option<Opaque>,
    },
    ToolResult {
        item: ItemId,
        output: Text,
        is_error: bool,
    },
    /// What the model explained of a call that waited for approval.
    Explanation {
        text: Text,
    },
    Summary {
        text: Text,
    },
    /// What the model is told of what came before, by the strategy.
    Note {
        text: Text,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinePiece {
    /// The entry that put it there.
    pub seq: Seq,
    pub tokens: u64,
    pub piece: Piece,
}

impl LinePiece {
    /// The model call that it came from; a result has none, nor has what people said.
    pub(crate) fn call(&self) -> Option<CallId> {
        match &self.piece {
            Piece::Agent { call, .. } | Piece::ToolCall { call, .. } => *call,
            Piece::Reasoning { call, .. } => Some(*call),
            Piece::User { .. }
            | Piece::ToolResult { .. }
            | Piece::Explanation { .. }
            | Piece::Note { .. }
            | Piece::Summary { .. } => None,
        }
    }

    /// Whether it stays where a summary takes the place of all up to `upto`.
    /// What the turn is about does, and what its strategy told: the sub-task, or the way that was
    /// found.
    pub(crate) fn stays(&self, upto: Seq, turn: Option<TurnId>) -> bool {
        let told = turn.is_some_and(|turn| match self.piece {
            Piece::User { .. } => turn.0 == self.seq,
            Piece::Note { .. } => turn.0 < self.seq && self.tokens <= NOTE_TOKENS_MAX,
            _ => false,
        });
        self.seq > upto || told
    }
}

/// A longer note gives way to a summary like everything else.
const NOTE_TOKENS_MAX: u64 = 4_000;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pieces: Vec<LinePiece>,
    tokens: u64,
    measured: Option<Measured>,
    tried: Option<Tried>,
    /// What instructions and tools took at the last call that said so.
    overhead: u64,
    /// What is open of the todos, as a tool told it last.
    todos: Option<Text>,
}

/// What all up to an entry takes, as the provider counted it or a compaction left it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Measured {
    upto: Seq,
    tokens: u64,
    /// What of it instructions and tools took, by our own count.
    overhead: u64,
}

/// What was in use after the last attempt to make room.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Tried {
    tokens: u64,
    tokens_max: u64,
    /// The provider has counted it since.
    measured: bool,
}

impl Line {
    pub fn pieces(&self) -> &[LinePiece] {
        &self.pieces
    }

    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Tokens in use: the provider's own count where there is one, and what came after it; else
    /// what was counted piece by piece, instructions and tools with it.
    pub fn used(&self) -> u64 {
        self.used_with(self.overhead)
    }

    pub(crate) fn used_with(&self, overhead: u64) -> u64 {
        let Some(Measured { upto, tokens, overhead: before }) = self.measured else {
            return self.tokens.saturating_add(overhead);
        };
        // They may have changed since.
        let tokens = tokens.saturating_add(overhead).saturating_sub(before);
        let newer = self.pieces.iter().rev().take_while(|piece| piece.seq > upto);
        newer.fold(tokens, |sum, piece| sum.saturating_add(piece.tokens))
    }

    pub(crate) fn overhead(&self) -> u64 {
        self.overhead
    }

    pub(crate) fn todos(&self) -> Option<&Text> {
        self.todos.as_ref()
    }

    /// Whether making room may be tried: never, or enough has come since.
    pub(crate) fn may_try(&self, used: u64, tokens_max: u64) -> bool {
        self.tried.is_none_or(|tried| {
            let enough = tried.tokens.saturating_add(crate::room::least_gain(tokens_max));
            // In a larger window nothing more is to be gained.
            tokens_max < tried.tokens_max || used >= enough
        })
    }

    pub(super) fn set_overhead(&mut self, tokens: u64) {
        self.overhead = tokens;
    }

    pub(super) fn set_todos(&mut self, open: Text) {
        self.todos = (!open.is_empty()).then_some(open);
    }

    /// The provider said what the call up to this entry took.
    pub(super) fn measure(&mut self, upto: Seq, tokens: u64) {
        self.measured = Some(Measured { upto, tokens, overhead: self.overhead });
        if let Some(tried) = self.tried.as_mut().filter(|tried| !tried.measured) {
            tried.tokens = tried.tokens.max(tokens);
            tried.measured = true;
        }
    }

    /// Making room was tried, and this is what is in use now.
    pub(super) fn try_made(&mut self, tokens_max: u64) {
        let tokens = self.used();
        self.tried = Some(Tried { tokens, tokens_max, measured: false });
    }

    /// A compaction left so many tokens in use.
    pub(super) fn left(&mut self, upto: Seq, tokens: u64, window: &Window) {
        self.overhead = window.overhead_tokens.unwrap_or(self.overhead);
        self.measured = Some(Measured { upto, tokens, overhead: self.overhead });
    }

    /// These outputs give way to the stub.
    pub(super) fn trim(&mut self, items: &[ItemId], stub: &Text, stub_tokens: u64) {
        for piece in &mut self.pieces {
            if let Piece::ToolResult { item, output, .. } = &mut piece.piece
                && items.contains(item)
            {
                *output = stub.clone();
                piece.tokens = stub_tokens;
            }
        }
        self.retain(|_| true);
    }

    pub(super) fn push(&mut self, seq: Seq, tokens: u64, piece: Piece) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.pieces.push(LinePiece { seq, tokens, piece });
    }

    /// Takes out what a failed call had put in.
    pub(crate) fn forget(&mut self, failed: CallId) {
        self.retain(|piece| piece.call() != Some(failed));
    }

    /// Takes out all that came with a turn which did not fit, and says so at its end.
    pub(super) fn leave_out(&mut self, from: Seq, at: Seq) {
        // A summary tells of what came before, wherever it was cut.
        let stays =
            |piece: &LinePiece| piece.seq < from || matches!(piece.piece, Piece::Summary { .. });
        self.retain(stays);
        let text: Text = LEFT_OUT_TEXT.into();
        let tokens = estimate_tokens(text.len());
        self.push(at, tokens, Piece::User { content: vec![Part::Text { text }] });
    }

    /// Inside a turn what it is about stays as it was said.
    pub(super) fn compact(&mut self, upto: Seq, turn: Option<TurnId>, summary: Text, tokens: u64) {
        self.retain(|piece| piece.stays(upto, turn));
        self.tokens = self.tokens.saturating_add(tokens);
        let piece = Piece::Summary { text: summary };
        // It stands before what the turn is about, so that its place is there too.
        let seq = match self.pieces.first() {
            Some(first) if first.seq <= upto => Seq(first.seq.0.saturating_sub(1)),
            Some(_) | None => upto,
        };
        self.pieces.insert(0, LinePiece { seq, tokens, piece });
    }

    /// The newest adopted call with that reference which has no result yet.
    pub(super) fn adopted_call(&self, wanted: &str) -> Option<ItemId> {
        let answered = |id: ItemId| {
            let is_result =
                |p: &LinePiece| matches!(&p.piece, Piece::ToolResult { item, .. } if *item == id);
            self.pieces.iter().any(is_result)
        };
        self.pieces.iter().rev().find_map(|piece| match &piece.piece {
            Piece::ToolCall { item, call_ref, .. } if &**call_ref == wanted => {
                (!answered(*item)).then_some(*item)
            }
            _ => None,
        })
    }

    fn retain(&mut self, keep: impl Fn(&LinePiece) -> bool) {
        let goes = |piece: &LinePiece, upto| piece.seq <= upto && !keep(piece);
        // A count of what is there no longer says nothing.
        self.measured.take_if(|m| self.pieces.iter().any(|piece| goes(piece, m.upto)));
        self.pieces.retain(keep);
        self.tokens = self.pieces.iter().fold(0, |sum, p| sum.saturating_add(p.tokens));
    }
}
