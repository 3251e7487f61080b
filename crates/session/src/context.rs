//! How full the model's window is, and where a compaction would cut.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::id::{Seq, TurnId};
use crate::item::Usage;
use crate::state::{Line, LinePiece, Loop, Piece, Shorten, State, Turn};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    #[default]
    Threshold,
    Dummy,
}

/// What instructions and tools take of every prompt, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    pub instructions: u64,
    pub tools: u64,
}

impl Overhead {
    pub fn total(&self) -> u64 {
        self.instructions.saturating_add(self.tools)
    }
}

/// How near a conversation is to the end of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fullness {
    /// Less than 80 in a hundred.
    Normal,
    Medium,
    /// From 90 on.
    High,
    /// From 95 on.
    Critical,
}

impl Fullness {
    pub fn of(tokens: u64, tokens_max: u64) -> Fullness {
        let part = u128::from(tokens) * 100;
        let at_least = |hundredths: u128| part >= u128::from(tokens_max) * hundredths;
        match () {
            () if tokens_max == 0 => Fullness::Normal,
            () if at_least(95) => Fullness::Critical,
            () if at_least(90) => Fullness::High,
            () if at_least(80) => Fullness::Medium,
            () => Fullness::Normal,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Fullness::Normal => "normal",
            Fullness::Medium => "medium",
            Fullness::High => "high",
            Fullness::Critical => "critical",
        }
    }
}

/// What clients are told when they ask how full the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextInfo {
    pub tokens: u64,
    pub tokens_max: u64,
    pub pieces: u64,
    pub strategy: Strategy,
    /// What the session's model calls cost so far.
    pub spent: Usage,
}

pub fn info(state: &State, tokens_max: u64, strategy: Strategy) -> ContextInfo {
    let line = state.line();
    let (tokens, pieces) = (line.used(), line.pieces().len() as u64);
    ContextInfo { tokens, tokens_max, pieces, strategy, spent: *state.spent() }
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
            | Piece::Note { .. }
            | Piece::Summary { .. } => {}
        }
    }
    line.pieces()[..keep_from].last().map(|piece| piece.seq)
}

/// What is in use before and after, where `counted` tokens become `left`: the count of what is
/// there is the measure of what goes. `None` when that is no gain.
pub(crate) fn calibrated(used: u64, counted: u64, left: u64) -> Option<(u64, u64)> {
    if left >= counted {
        return None;
    }
    // Nothing was measured that could be believed.
    if used == 0 {
        return Some((counted, left));
    }
    let after = u128::from(used) * u128::from(left) / u128::from(counted);
    Some((used, u64::try_from(after).unwrap_or(u64::MAX)))
}

/// How much of a turn's newest work stays where a summary is made inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    /// As much as fits in a quarter of the whole.
    Quarter,
    /// The same, but the last step whatever its size: the model has not seen what came of it.
    LastStep,
}

/// The last piece before the newest steps of a turn, which stay: a step is what one model call
/// said, with its reasoning, its calls and their results.
fn step_cut(line: &Line, turn: TurnId, keep: Keep) -> Option<Seq> {
    let keep_max = line.tokens() / 4;
    let (mut kept, mut keep_from) = (0_u64, None);
    let mut parted = BTreeSet::new();
    let pieces = line.pieces();
    for (at, piece) in pieces.iter().enumerate().rev() {
        kept = kept.saturating_add(piece.tokens);
        let full = kept > keep_max && (keep == Keep::Quarter || keep_from.is_some());
        if full || piece.seq <= turn.0 {
            break;
        }
        match &piece.piece {
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
            | Piece::Note { .. }
            | Piece::Summary { .. } => {}
        }
        let before = at.checked_sub(1).map(|at| &pieces[at]);
        let begins = piece.call().is_some() && before.is_none_or(|b| b.call() != piece.call());
        if begins && parted.is_empty() {
            keep_from = Some(at);
        }
    }
    let last = keep_from?.checked_sub(1)?;
    // Else nothing of the turn's work would go.
    (pieces[last].seq > turn.0).then_some(pieces[last].seq)
}

/// The last piece before the turn, and whether what came before it is a good part of the whole. A
/// summary that is there already is none: it would only be told again.
fn before_turn(line: &Line, turn: TurnId) -> (Option<Seq>, bool) {
    let before = line.pieces().iter().take_while(|piece| piece.seq < turn.0);
    let told = |piece: &&LinePiece| !matches!(piece.piece, Piece::Summary { .. });
    let tokens = before.clone().filter(told);
    let tokens = tokens.fold(0_u64, |sum, piece| sum.saturating_add(piece.tokens));
    (before.last().map(|piece| piece.seq), tokens >= line.tokens() / 4)
}

/// The last piece that a summary made inside a turn would take the place of: what came before the
/// turn, if that is a good part of the whole; else the turn's older steps with it; else as
/// `compaction_cut`.
fn turn_cut(line: &Line, turn: TurnId) -> Option<Seq> {
    match before_turn(line, turn) {
        (Some(last), true) => Some(last),
        (Some(_) | None, _) => step_cut(line, turn, Keep::Quarter).or_else(|| compaction_cut(line)),
    }
}

/// The same while there is still room: the newest exchanges stay with the turn while they fit in
/// a quarter, and so does what the model has not seen.
pub(crate) fn early_cut(line: &Line, turn: TurnId) -> Option<Seq> {
    if let Some(upto) = compaction_cut(line).filter(|upto| *upto < turn.0) {
        return Some(upto);
    }
    match before_turn(line, turn) {
        (Some(last), true) => Some(last),
        (last, _) => step_cut(line, turn, Keep::LastStep).or(last),
    }
}

/// Where the summary cuts that a loop of the turn asked for.
pub(crate) fn cut(line: &Line, turn: &Turn, looped: &Loop) -> Option<Seq> {
    match looped.shorten {
        _ if turn.is_compaction() => compaction_cut(line),
        Shorten::Early { .. } => early_cut(line, turn.id),
        Shorten::No | Shorten::Due(_) | Shorten::Done => turn_cut(line, turn.id),
    }
}

/// What a summary would take the place of that is made while there is still room.
pub(crate) fn foldable_tokens(line: &Line, turn: TurnId) -> u64 {
    let Some(upto) = early_cut(line, turn) else { return 0 };
    let folds = line.pieces().iter().filter(|piece| !piece.stays(upto, Some(turn)));
    folds.fold(0, |sum, piece| sum.saturating_add(piece.tokens))
}

/// Whether there is anything for a summary to take the place of, made because the conversation
/// does not fit: what the turn is about stays as it was said.
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
