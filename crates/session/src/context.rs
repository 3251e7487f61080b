//! How full the model's window is, and where a compaction would cut.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::{Seq, TurnId};
use crate::state::{Line, Piece, State};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    #[default]
    Threshold,
    Dummy,
}

/// What clients are told when they ask how full the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextInfo {
    pub tokens: u64,
    pub tokens_max: u64,
    pub pieces: u64,
    pub strategy: Strategy,
}

pub fn info(state: &State, tokens_max: u64, strategy: Strategy) -> ContextInfo {
    let line = state.line();
    ContextInfo { tokens: line.tokens(), tokens_max, pieces: line.pieces().len() as u64, strategy }
}

/// The last piece that a compaction would fold into its summary. The newest exchanges stay as
/// they are while they fit in a quarter of the whole, and a cut falls only before a user's
/// message, and never between a call and its result. `None` when there is nothing to fold.
pub fn compaction_cut(line: &Line) -> Option<Seq> {
    let keep_max = line.tokens() / 4;
    let (mut kept, mut keep_from) = (0_u64, line.pieces().len());
    // Results that would stay while their calls, further back, would go.
    let mut parted = BTreeSet::new();
    for (at, piece) in line.pieces().iter().enumerate().rev() {
        kept = kept.saturating_add(piece.tokens);
        if kept > keep_max {
            break;
        }
        match &piece.piece {
            Piece::User { .. } if parted.is_empty() => keep_from = at,
            Piece::ToolResult { item, .. } => {
                parted.insert(*item);
            }
            Piece::ToolCall { item, .. } => {
                parted.remove(item);
            }
            Piece::User { .. }
            | Piece::Agent { .. }
            | Piece::Reasoning { .. }
            | Piece::Explanation { .. }
            | Piece::Summary { .. } => {}
        }
    }
    line.pieces()[..keep_from].last().map(|piece| piece.seq)
}

/// The last piece that a summary made inside a turn would take the place of: what came before the
/// turn, if that is a good part of the whole; else as `compaction_cut`.
pub(crate) fn turn_cut(line: &Line, turn: TurnId) -> Option<Seq> {
    let mut before = line.pieces().iter().filter(|piece| piece.seq < turn.0);
    let tokens = before.clone().fold(0_u64, |sum, piece| sum.saturating_add(piece.tokens));
    match before.next_back() {
        Some(last) if tokens >= line.tokens() / 4 => Some(last.seq),
        _ => compaction_cut(line),
    }
}

/// Whether there is anything for such a summary to take the place of: what the turn is about stays
/// as it was said.
pub(crate) fn has_folds(line: &Line, turn: TurnId) -> bool {
    let Some(upto) = turn_cut(line, turn) else { return false };
    line.pieces().iter().any(|piece| !piece.stays(upto, Some(turn)))
}

/// Whether that would leave the turn's own work as it is.
pub(crate) fn cuts_before(line: &Line, turn: TurnId) -> bool {
    turn_cut(line, turn).is_some_and(|upto| upto < turn.0)
}

/// Tokens that would be left after folding everything up to `upto` into a summary, but for what
/// the turn is about.
pub fn tokens_after(line: &Line, upto: Seq, turn: Option<TurnId>, summary_tokens: u64) -> u64 {
    let kept = line.pieces().iter().filter(|piece| piece.stays(upto, turn));
    kept.fold(summary_tokens, |sum, piece| sum.saturating_add(piece.tokens))
}
