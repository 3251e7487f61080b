//! Whether there is room for the next call of a turn, and how some is made.
//!
//! First old tool outputs are cut to stubs, then older pieces give way to a summary, then the turn
//! fails with what fills the window. Never twice without gain: whatever was tried is remembered
//! with what it left, and nothing is tried again before a good part of the window has come on top.

use std::collections::BTreeSet;

use crate::context::{self, Strategy, WindowSize, calibrated};
use crate::event::{Event, Window};
use crate::id::{ItemId, Text};
use crate::item::Fault;
use crate::state::{Line, Piece, Shorten, estimate_tokens};
use crate::strategy::Desk;

/// The fault of a conversation that cannot be made shorter.
pub const FLOOR_CODE: &str = "context_floor";

/// Making room must promise a tenth of the window, and is tried again only when as much has come.
pub const GAIN_SHARE: u64 = 10;

/// The newest results stay as they are.
pub const RESULTS_KEPT: usize = 4;
/// A result that takes a larger share of the window than one in so many may go even so, where
/// nothing else can.
pub const RESULT_SHARE_MAX: u64 = 4;

pub const TRIMMED_TEXT: &str =
    "[The output of this earlier call was left out to save room. Run it again if it is needed.]";
pub const TOO_LARGE_TEXT: &str = "[The output of this call was left out: it is too long for the \
                                  model's window. Ask for a smaller part of it.]";

pub(crate) enum Room {
    Enough,
    Trim(Event),
    Summarise,
    None(Fault),
}

/// What to do before a loop's next call.
pub(crate) fn before_call(desk: &Desk<'_>) -> Room {
    let Desk { turn, line, looped, limits, .. } = *desk;
    let tokens_max = desk.tokens_max();
    let used = used_now(desk);
    if limits.strategy == Strategy::Dummy || !is_over(used, tokens_max, limits.compact_at) {
        return Room::Enough;
    }
    if looped.shorten == Shorten::No {
        let old = results(line, RESULTS_KEPT, 0);
        if let Some(trimmed) = trimmed(desk, old, TRIMMED_TEXT) {
            return Room::Trim(trimmed);
        }
        let counted = line.tokens().saturating_add(overhead(desk));
        let left = counted.saturating_sub(context::foldable_tokens(line, turn.id));
        let gain = calibrated(used, counted, left).map_or(0, |(before, after)| before - after);
        if line.may_try(used, tokens_max) && gain >= least_gain(tokens_max) {
            return Room::Summarise;
        }
    }
    if fits(desk) {
        return Room::Enough;
    }
    let large = results(line, 0, tokens_max / RESULT_SHARE_MAX);
    match trimmed(desk, large, TOO_LARGE_TEXT) {
        Some(trimmed) => Room::Trim(trimmed),
        None => Room::None(floor(desk)),
    }
}

/// Whether the next call fits as it is. A provider that counted more than the window and answered
/// all the same is asked again, unless our own count says no. Where nobody knows the window, the
/// provider is asked, and believed.
pub(crate) fn fits(desk: &Desk<'_>) -> bool {
    if desk.limits.window == WindowSize::Assumed {
        return true;
    }
    let counted = desk.line.tokens().saturating_add(overhead(desk));
    used_now(desk).min(counted) <= desk.tokens_max()
}

/// What is in use, with what instructions and tools take by now.
fn used_now(desk: &Desk<'_>) -> u64 {
    desk.line.used_with(overhead(desk))
}

pub(crate) fn overhead(desk: &Desk<'_>) -> u64 {
    match desk.limits.overhead.total() {
        0 => desk.line.overhead(),
        counted => counted,
    }
}

fn is_over(used: u64, tokens_max: u64, thousandths: u64) -> bool {
    u128::from(used) * 1_000 > u128::from(tokens_max) * u128::from(thousandths)
}

pub(crate) fn least_gain(tokens_max: u64) -> u64 {
    (tokens_max / GAIN_SHARE).max(1)
}

/// Results of more than so many tokens, but for the newest.
fn results(line: &Line, kept: usize, more_than: u64) -> BTreeSet<ItemId> {
    let results = line.pieces().iter().rev().filter_map(|piece| match &piece.piece {
        Piece::ToolResult { item, .. } => Some((*item, piece.tokens)),
        _ => None,
    });
    let large = results.skip(kept).filter(|(_, tokens)| *tokens > more_than);
    large.map(|(item, _)| item).collect()
}

/// The event that cuts these to a stub, if that gains enough.
fn trimmed(desk: &Desk<'_>, from: BTreeSet<ItemId>, stub: &'static str) -> Option<Event> {
    let (line, tokens_max) = (desk.line, desk.tokens_max());
    let stub: Text = stub.into();
    let stub_tokens = estimate_tokens(stub.len());
    let (mut items, mut gain) = (Vec::new(), 0_u64);
    for piece in line.pieces() {
        let Piece::ToolResult { item, .. } = &piece.piece else { continue };
        if from.contains(item) && piece.tokens > stub_tokens {
            items.push(*item);
            gain = gain.saturating_add(piece.tokens - stub_tokens);
        }
    }
    let overhead = overhead(desk);
    let counted = line.tokens().saturating_add(overhead);
    let (tokens_before, tokens_after) =
        calibrated(line.used_with(overhead), counted, counted.saturating_sub(gain))?;
    if tokens_before - tokens_after < least_gain(tokens_max) {
        return None;
    }
    let pieces = line.pieces().len() as u64;
    let overhead_tokens = (overhead > 0).then_some(overhead);
    let strategy = desk.limits.strategy;
    let (window, line) = (Window { tokens_max, strategy, pieces, overhead_tokens }, desk.on);
    Some(Event::Trimmed { items, stub, stub_tokens, tokens_before, tokens_after, window, line })
}

/// What fills the window, part by part, for people.
pub(crate) fn filled(desk: &Desk<'_>) -> String {
    let (turn, limits) = (desk.turn, desk.limits);
    let (mut earlier, mut asked, mut work) = (0_u64, 0_u64, 0_u64);
    for piece in desk.line.pieces() {
        let own = matches!(piece.piece, Piece::User { .. }) && piece.seq == turn.id.0;
        let sum = match piece.seq < turn.id.0 {
            _ if own => &mut asked,
            true => &mut earlier,
            false => &mut work,
        };
        *sum = sum.saturating_add(piece.tokens);
    }
    let parts = [
        ("instructions", limits.overhead.instructions),
        ("tools", limits.overhead.tools),
        ("the earlier conversation", earlier),
        ("the newest message", asked),
        ("the work on it so far", work),
    ];
    let parts = parts.iter().filter(|(_, tokens)| *tokens > 0);
    let parts: Vec<String> = parts.map(|(what, tokens)| format!("{what} {tokens}")).collect();
    parts.join(", ")
}

/// The fault of a turn whose next call does not fit.
pub(crate) fn floor(desk: &Desk<'_>) -> Fault {
    let (used, tokens_max) = (used_now(desk), desk.tokens_max());
    let filled = filled(desk);
    let bare = Fault::new(FLOOR_CODE, "");
    let advice = match desk.turn.is_hopeless(&bare) {
        true => "This message was left out of the conversation: send a shorter one, or choose",
        false => "What was done stands: go on with less, or choose",
    };
    let message = format!(
        "The conversation takes {used} of the {tokens_max} tokens of the model's window and cannot \
         be made shorter: {filled}. {advice} a model with a larger window"
    );
    Fault { message: message.into(), ..bare }
}
