//! Takes in what a performer reports.
//!
//! Total: a report may be stale (its call was stopped, its item closed), and then gives no events.

use crate::decide::Limits;
use crate::event::{CallOutcome, Event, Level};
use crate::growth::Stream;
use crate::id::{CallId, ItemId, Text};
use crate::item::{End, Fault, FileChange, ItemKind, Opaque, ToolResult, Usage};
use crate::live::Live;
use crate::policy::Judgement;
use crate::retry::{self, Chance, Failed, Heal};
use crate::state::{Item, State, Stopped, ToolPhase, Turn, estimate_tokens};

/// What came of a step. Performers of a model call speak of `(call, block)`.
#[derive(Clone, Debug)]
pub enum Report {
    BlockStarted {
        call: CallId,
        block: u32,
        kind: ItemKind,
    },
    /// A text or a piece of reasoning is whole.
    BlockEnded {
        call: CallId,
        block: u32,
        opaque: Option<Opaque>,
    },
    /// The call ended well; each tool call in it was judged.
    Answered {
        call: CallId,
        usage: Option<Usage>,
        proposals: Vec<Proposal>,
        answerable: Answerable,
    },
    CallFailed {
        call: CallId,
        fault: Fault,
        heal: Heal,
        chance: Chance,
        /// What it cost all the same, where the provider said.
        usage: Option<Usage>,
    },
    CallStopped {
        call: CallId,
    },
    ToolEnded {
        item: ItemId,
        end: End,
        result: Box<ToolResult>,
    },
    /// The sandbox stopped a tool that ran in it; `result` is what the run came to.
    ToolStopped {
        item: ItemId,
        reason: Text,
        result: Box<ToolResult>,
        answerable: Answerable,
    },
    Noticed {
        level: Level,
        code: Text,
        text: Text,
    },
    /// A tool is about to change files, and waits until that is recorded.
    ToolTouches {
        item: ItemId,
        files: Vec<FileChange>,
        made: Vec<Text>,
        removed: Vec<Text>,
    },
}

/// Who could answer when calls were proposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answerable {
    /// Somebody who can give leave began the turn or is attached.
    pub approvals: bool,
    /// The same for questions and plans.
    pub questions: bool,
}

#[derive(Clone, Debug)]
pub struct Proposal {
    pub block: u32,
    pub args: Text,
    pub judgement: Box<Judgement>,
    pub opaque: Option<Opaque>,
}

pub fn absorb(state: &State, live: &Live, limits: &Limits, report: Report) -> Vec<Event> {
    // A notice is about no step, so it is never stale.
    if let Report::Noticed { level, code, text } = report {
        return vec![Event::Noticed { level, text, code }];
    }
    let Some(turn) = state.turn() else { return Vec::new() };
    match report {
        Report::BlockStarted { call, block, kind } => {
            if turn.calls.contains_key(&call) && turn.item_of(call, block).is_none() {
                vec![Event::ItemStarted { call, block, item: kind }]
            } else {
                Vec::new()
            }
        }
        Report::BlockEnded { call, block, opaque } => {
            let found = turn.item_of(call, block).and_then(|id| turn.items.get_key_value(&id));
            match found {
                Some((id, Item { kind: ItemKind::Text | ItemKind::Reasoning, .. })) => {
                    vec![whole(*id, live, opaque)]
                }
                // A tool call outlives its block: it is proposed when the call has ended.
                Some((_, Item { kind: ItemKind::ToolCall { .. }, .. })) | None => Vec::new(),
            }
        }
        Report::Answered { call, usage, proposals, answerable } => {
            answered(turn, live, call, usage, proposals, answerable)
        }
        Report::CallFailed { call, fault, heal, chance, usage } => {
            let Some(open) = turn.calls.get(&call) else { return Vec::new() };
            let retries_max = limits.retries_max;
            let failed = Failed { call, fault, heal, chance, retries_max };
            let (outcome, told) = retry::outcome(state, turn, open, failed);
            let mut events = ended(turn, live, call, End::Discarded, outcome, usage);
            events.extend(told);
            events
        }
        Report::CallStopped { call } => {
            ended(turn, live, call, End::Cut, CallOutcome::Stopped, None)
        }
        Report::ToolEnded { item, end, result } => match turn.items.get(&item) {
            Some(Item { tool: Some(ToolPhase::Running { .. }), stopped, .. }) => {
                let text: Text = live.text(item, Stream::Output).into();
                let mut result = Box::new(Stopped::before(stopped.as_deref(), *result));
                if state.edits().get(item).is_some() {
                    // The content before stands in the log already.
                    result.files.iter_mut().for_each(|file| file.before = None);
                }
                let seen = result.seen.as_ref().unwrap_or(&text);
                let tokens = estimate_tokens(seen.len());
                let result = Some(result);
                vec![Event::ItemCompleted { item, end, text, opaque: None, result, tokens }]
            }
            _ => Vec::new(),
        },
        Report::ToolStopped { item, reason, result, answerable } => {
            let text: Text = live.text(item, Stream::Output).into();
            match turn.items.get(&item).and_then(|item| item.tool.as_ref()) {
                Some(ToolPhase::Running { sandboxed: Some(_), .. }) => {
                    let answerable = answerable.approvals;
                    vec![Event::SandboxRefused { item, reason, text, result, answerable }]
                }
                _ => Vec::new(),
            }
        }
        Report::Noticed { .. } => Vec::new(), // Taken in above.
        Report::ToolTouches { item, files, made, removed } => match turn.runs(item) {
            true => vec![Event::FilesTouched { item, files, made, removed }],
            false => Vec::new(),
        },
    }
}

fn whole(item: ItemId, live: &Live, opaque: Option<Opaque>) -> Event {
    let text: Text = live.text(item, Stream::Text).into();
    let tokens = estimate_tokens(text.len());
    Event::ItemCompleted { item, end: End::Whole, text, opaque, result: None, tokens }
}

fn answered(
    turn: &Turn,
    live: &Live,
    call: CallId,
    usage: Option<Usage>,
    proposals: Vec<Proposal>,
    answerable: Answerable,
) -> Vec<Event> {
    let Some(open) = turn.calls.get(&call) else { return Vec::new() };
    // What only tells something calls no tool that is run.
    let may_propose = open.purpose.is_step();
    let mut events = Vec::new();
    for (id, item) in items_of(turn, call) {
        let proposal = proposals.iter().find(|p| may_propose && p.block == item.block);
        match (&item.kind, proposal) {
            (ItemKind::ToolCall { name, .. }, Some(proposal)) => {
                let answerable = match proposal.judgement.effect.asks() {
                    true => answerable.approvals || answerable.questions,
                    false => answerable.approvals,
                };
                events.push(Event::ToolProposed {
                    item: id,
                    args: proposal.args.clone(),
                    judgement: proposal.judgement.clone(),
                    answerable,
                    tokens: estimate_tokens(name.len() + proposal.args.len()),
                    opaque: proposal.opaque.clone(),
                });
            }
            (ItemKind::ToolCall { .. }, None) => events.push(cut(id, item, live, End::Cut)),
            (ItemKind::Text | ItemKind::Reasoning, _) => events.push(whole(id, live, None)),
        }
    }
    events.push(Event::CallEnded { call, outcome: CallOutcome::Answered, usage });
    events
}

fn ended(
    turn: &Turn,
    live: &Live,
    call: CallId,
    end: End,
    outcome: CallOutcome,
    usage: Option<Usage>,
) -> Vec<Event> {
    if !turn.calls.contains_key(&call) {
        return Vec::new();
    }
    let mut events: Vec<Event> =
        items_of(turn, call).map(|(id, item)| cut(id, item, live, end)).collect();
    events.push(Event::CallEnded { call, outcome, usage });
    events
}

fn items_of(turn: &Turn, call: CallId) -> impl Iterator<Item = (ItemId, &Item)> {
    turn.items.iter().filter(move |(_, item)| item.call == call).map(|(id, item)| (*id, item))
}

/// Closes an item whose stream stopped inside it, with all that was shown of it.
pub(crate) fn cut(id: ItemId, item: &Item, live: &Live, end: End) -> Event {
    let stream = match item.kind {
        ItemKind::Text | ItemKind::Reasoning => Stream::Text,
        ItemKind::ToolCall { .. } => Stream::Args,
    };
    let text: Text = live.text(id, stream).into();
    let tokens = estimate_tokens(text.len());
    Event::ItemCompleted { item: id, end, text, opaque: None, result: None, tokens }
}
