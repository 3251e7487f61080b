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
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinePiece {
    /// The entry that put it there.
    pub seq: Seq,
    pub tokens: u64,
    pub piece: Piece,
}

impl LinePiece {
    /// Whether it stays where a summary takes the place of all up to `upto`.
    pub(crate) fn stays(&self, upto: Seq, turn: Option<TurnId>) -> bool {
        let asked = turn.is_some_and(|turn| turn.0 == self.seq);
        self.seq > upto || asked && matches!(self.piece, Piece::User { .. })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pieces: Vec<LinePiece>,
    tokens: u64,
}

impl Line {
    pub fn pieces(&self) -> &[LinePiece] {
        &self.pieces
    }

    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    pub(super) fn push(&mut self, seq: Seq, tokens: u64, piece: Piece) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.pieces.push(LinePiece { seq, tokens, piece });
    }

    /// Takes out what a failed call had put in.
    pub(crate) fn forget(&mut self, failed: CallId) {
        self.retain(|piece| {
            let from = match &piece.piece {
                Piece::Agent { call, .. } | Piece::ToolCall { call, .. } => *call,
                Piece::Reasoning { call, .. } => Some(*call),
                Piece::User { .. }
                | Piece::ToolResult { .. }
                | Piece::Explanation { .. }
                | Piece::Summary { .. } => None,
            };
            from != Some(failed)
        });
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
        self.pieces.retain(keep);
        self.tokens = self.pieces.iter().fold(0, |sum, p| sum.saturating_add(p.tokens));
    }
}
