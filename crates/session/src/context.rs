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

/// Whether the size of a model's window is known, or only what most of its kind have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowSize {
    #[default]
    Known,
    /// Whether a conversation fits is for the provider to say.
    Assumed,
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
    /// What the session's model calls cost so far,
    pub spent: Usage,
    /// and how many they were.
    pub calls: u64,
    pub filled: Filled,
}

pub fn info(state: &State, tokens_max: u64, strategy: Strategy) -> ContextInfo {
    let line = state.line();
    let (tokens, pieces) = (line.used(), line.pieces().len() as u64);
    let (spent, calls, filled) = (*state.spent(), state.calls(), Filled::of(line));
    ContextInfo { tokens, tokens_max, pieces, strategy, spent, calls, filled }
}

/// What fills the window, in tokens as each was counted when it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// Instructions and tools, at the last call.
    pub overhead: u64,
    pub summary: u64,
    /// Of users.
    pub messages: u64,
    /// With what was explained.
    pub answers: u64,
    pub reasoning: u64,
    pub tool_calls: u64,
    pub tool_results: u64,
}

impl Filled {
    fn of(line: &Line) -> Filled {
        let mut filled = Filled { overhead: line.overhead(), ..Filled::default() };
        for piece in line.pieces() {
            let sum = match piece.piece {
                Piece::User { .. } => &mut filled.messages,
                Piece::Agent { .. } | Piece::Explanation { .. } => &mut filled.answers,
                Piece::Reasoning { .. } | Piece::Note { .. } => &mut filled.reasoning,
                Piece::ToolCall { .. } => &mut filled.tool_calls,
                Piece::ToolResult { .. } => &mut filled.tool_results,
                Piece::Summary { .. } => &mut filled.summary,
            };
            *sum = sum.saturating_add(piece.tokens);
        }
        filled
    }
}

/// The last piece that a compaction would fold into its summary. The newest exchanges stay as
/// they are while they fit in a quarter of the whole, and a cut falls only before a user's
/// message, and never between a call and its result. `None` when there is nothing to fold.
pub fn compaction_cut(line: &Line) -> Option<Seq> {
    let pieces = line.pieces();
    let from = keep_from(line, Keep::Quarter, |at| matches!(pieces[at].piece, Piece::User { .. }));
    pieces[..from.unwrap_or(pieces.len())].last().map(|piece| piece.seq)
}

/// How much of the newest stays where a summary is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    /// As much as fits in a quarter of the whole.
    Quarter,
    /// The same, but the last part whatever its size: the model has not seen what came of it.
    LastPart,
}

/// Where what stays begins: as far back as may be, at a piece that begins a part, and never
/// between a call and its result.
fn keep_from(line: &Line, keep: Keep, begins: impl Fn(usize) -> bool) -> Option<usize> {
    let keep_max = line.tokens() / 4;
    let (mut kept, mut from) = (0_u64, None);
    // Results that would stay while their calls, further back, would go.
    let mut parted = BTreeSet::new();
    for (at, piece) in line.pieces().iter().enumerate().rev() {
        kept = kept.saturating_add(piece.tokens);
        if kept > keep_max && (keep == Keep::Quarter || from.is_some()) {
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
        if parted.is_empty() && begins(at) {
            from = Some(at);
        }
    }
    from
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
    // What is left is never nothing for being little.
    let after = (u128::from(used) * u128::from(left)).div_ceil(u128::from(counted));
    let after = u64::try_from(after).unwrap_or(u64::MAX);
    (after < used).then_some((used, after))
}

/// The last piece before the newest steps of a turn, which stay: a step is what one model call
/// said, with its reasoning, its calls and their results.
fn step_cut(line: &Line, turn: TurnId, keep: Keep) -> Option<Seq> {
    let pieces = line.pieces();
    let begins = |at: usize| {
        let (before, piece) = (at.checked_sub(1).map(|at| &pieces[at]), &pieces[at]);
        let is_first = before.is_none_or(|before| before.call() != piece.call());
        piece.seq > turn.0 && piece.call().is_some() && is_first
    };
    let last = keep_from(line, keep, begins)?.checked_sub(1)?;
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
        (last, _) => step_cut(line, turn, Keep::LastPart).or(last),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_never_nothing_for_being_little() {
        assert_eq!(calibrated(10, 3, 2), Some((10, 7)));
        assert_eq!(calibrated(2, 300, 1), Some((2, 1)));
        assert_eq!(calibrated(1, 3, 2), None, "a token that was measured cannot become less");
        assert_eq!(calibrated(0, 3, 2), Some((3, 2)), "nothing was measured");
        assert_eq!(calibrated(10, 3, 3), None);
    }
}
