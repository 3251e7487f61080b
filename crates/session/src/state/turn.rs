//! The open turn: its calls, open items and open waits, and where the strategy stands.

use super::*;

mod calls;
mod items;
mod loops;
mod waits;

use items::{Completed, Proposed};
pub use loops::{Aside, Errand, Loop, Misread};

/// Further "always" answers still approve the call they answer, but are not remembered.
pub const GRANTS_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    pub id: TurnId,
    pub work: Work,
    pub origin: Origin,
    /// The client's own name of the message that began it.
    pub client_ref: Option<Text>,
    pub agent: Agent,
    /// Where it works, if it was said.
    pub cwd: Option<Text>,
    /// What it does otherwise than the settings say.
    pub run: Option<Box<RunOptions>>,
    pub calls_max: u32,
    /// Those that were made again count once; the summary that makes room does not.
    pub calls_made: u32,
    /// The model took a step of the work.
    pub(super) answered: bool,
    /// On the session's own line.
    pub main: Loop,
    pub asides: BTreeMap<LineId, Aside>,
    /// Questions of the strategy that are asked, or whose answer waits to be read.
    pub errands: BTreeMap<Purpose, Errand>,
    /// What the strategy has come to.
    pub method: Method,
    pub stopping: Option<Stop>,
    /// Somebody spoke while it was stopping.
    pub spoken_to: bool,
    pub calls: BTreeMap<CallId, Call>,
    pub items: BTreeMap<ItemId, Item>,
    pub waits: BTreeMap<WaitId, OpenWait>,
    pub usage: Usage,
    /// Explanations given while a call waited; they enter the line after the call's result.
    explanations: BTreeMap<ItemId, Vec<(Text, u64)>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub call: CallId,
    pub text: Text,
    pub tokens: u64,
}

/// What became of a conversation that did not fit the model's window.
#[derive(Clone, Debug, PartialEq)]
pub enum Shorten {
    No,
    /// The window, of this size, is filling: a summary is asked for while there is still room.
    Early {
        tokens_max: u64,
    },
    /// A summary is due; with what to say if that fails.
    Due(Fault),
    /// Done; not again before the model has answered.
    Done,
}

/// Where the strategy stands. Set in `apply`, so that `next` costs what is open.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// The model is to be asked.
    Asking,
    /// A call of the strategy is open.
    Calling,
    /// The last call proposed tools; they run or wait.
    Acting,
    /// The last call gave the answer.
    Answered,
    /// The last call gave a summary, in a turn that has other work.
    Summarised,
    Finished,
    Failed(Fault),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub purpose: Purpose,
    pub line: Option<LineId>,
    pub proposed_tools: bool,
    /// How long to wait before it is made.
    pub delay_ms: u64,
    /// The size of its model's window.
    pub tokens_max: u64,
    about: Option<About>,
}

/// What an explanation is about. Kept with its call: the wait may end before the call does.
#[derive(Clone, Debug, PartialEq)]
struct About {
    item: ItemId,
    command: Vec<Text>,
}

impl Call {
    /// What would run, word by word, where the call is to explain it.
    pub(crate) fn command(&self) -> Option<&[Text]> {
        self.about.as_ref().map(|about| about.command.as_slice())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub call: CallId,
    /// Whose loop it is part of.
    pub line: Option<LineId>,
    pub block: u32,
    pub kind: ItemKind,
    pub tool: Option<ToolPhase>,
    /// What a run gave that the sandbox stopped. It stands in the item's completion, whatever
    /// comes after it.
    pub stopped: Option<Box<Stopped>>,
}

impl Item {
    /// The arguments of a running call that writes the list of todos.
    fn todos(&self) -> Option<&Text> {
        match (&self.kind, &self.tool) {
            (ItemKind::ToolCall { name, .. }, Some(ToolPhase::Running { args, .. })) => {
                (&**name == TODOS_TOOL).then_some(args)
            }
            _ => None,
        }
    }
}

/// A run in the sandbox that the sandbox stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Stopped {
    pub reason: Text,
    /// All that was streamed.
    pub text: Text,
    pub result: ToolResult,
}

impl Stopped {
    /// What a call came to, with the files that its first run changed.
    pub(crate) fn before(first: Option<&Stopped>, mut last: ToolResult) -> ToolResult {
        if let Some(first) = first {
            last.files.splice(..0, first.result.files.iter().cloned());
        }
        last
    }
}

/// What is known of a tool call once it was proposed.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolPhase {
    Proposed {
        args: Text,
        judgement: Box<Judgement>,
        answerable: bool,
    },
    Waiting {
        args: Text,
        judgement: Box<Judgement>,
        wait: WaitId,
    },
    Approved {
        args: Text,
    },
    Denied {
        message: Text,
    },
    /// A question or plan that a person answered.
    Answered {
        ask: Box<Ask>,
        answer: Box<Answer>,
    },
    /// `reads`: it may run beside other reading calls.
    Running {
        args: Text,
        /// In the sandbox, with what it was judged by.
        sandboxed: Option<Box<Judgement>>,
        reads: bool,
        leave: Leave,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct OpenWait {
    pub item: ItemId,
    pub ask: Ask,
    pub opened_at: Timestamp,
    pub explain: Explain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explain {
    No,
    Asked,
    Calling(CallId),
}

/// What a turn begins with.
pub(super) struct Begun {
    pub id: TurnId,
    pub work: Work,
    pub origin: Origin,
    pub client_ref: Option<Text>,
    pub agent: Option<Agent>,
    pub cwd: Option<Text>,
    pub run: Option<Box<RunOptions>>,
}

impl Turn {
    pub(super) fn new(begun: Begun, calls_max: u32) -> Turn {
        let Begun { id, work, origin, client_ref, agent, cwd, run } = begun;
        let agent = agent.unwrap_or_default();
        let method = Method::of(agent);
        Turn {
            id,
            work,
            origin,
            client_ref,
            agent,
            cwd,
            run,
            calls_max,
            calls_made: 0,
            answered: false,
            main: Loop::default(),
            asides: BTreeMap::new(),
            errands: BTreeMap::new(),
            method,
            stopping: None,
            spoken_to: false,
            calls: BTreeMap::new(),
            items: BTreeMap::new(),
            waits: BTreeMap::new(),
            usage: Usage::default(),
            explanations: BTreeMap::new(),
        }
    }

    /// Whether a tool runs for that item.
    pub fn runs(&self, item: ItemId) -> bool {
        let phase = self.items.get(&item).and_then(|item| item.tool.as_ref());
        matches!(phase, Some(ToolPhase::Running { .. }))
    }

    /// The item that a performer calls `(call, block)`.
    pub fn item_of(&self, call: CallId, block: u32) -> Option<ItemId> {
        let found = self.items.iter().find(|(_, i)| i.call == call && i.block == block);
        found.map(|(id, _)| *id)
    }

    pub(super) fn apply(&mut self, entry: &LogEntry, line: &mut Line, grants: &mut Vec<Key>) {
        match &entry.event {
            Event::CallStarted { purpose, tokens_max, overhead_tokens, line: on, model: _ } => {
                let (purpose, tokens_max, overhead) = (*purpose, *tokens_max, *overhead_tokens);
                let started = Started { purpose, tokens_max, overhead, line: *on };
                self.call_started(CallId(entry.seq), started, line);
            }
            Event::CallEnded { call, outcome, usage } => {
                self.call_ended(*call, outcome, usage.as_ref(), entry.seq, line);
            }
            Event::ItemStarted { call, block, item } => {
                let (call, block, kind) = (*call, *block, item.clone());
                let line = self.calls.get(&call).and_then(|call| call.line);
                let item = Item { call, line, block, kind, tool: None, stopped: None };
                self.items.insert(ItemId(entry.seq), item);
            }
            Event::ToolProposed { item, args, judgement, answerable, tokens, opaque } => {
                let (judgement, answerable) = (judgement.clone(), *answerable);
                let tool = ToolPhase::Proposed { args: args.clone(), judgement, answerable };
                let proposed = Proposed { seq: entry.seq, args, tokens: *tokens, opaque };
                self.propose(*item, tool, proposed, line);
            }
            Event::ToolStarted { item, sandboxed, leave } => {
                self.tool_started(*item, *sandboxed, leave.as_ref());
            }
            Event::SandboxRefused { item, reason, text, result, answerable } => {
                let (reason, text, result) = (reason.clone(), text.clone(), (**result).clone());
                self.sandbox_refused(*item, Stopped { reason, text, result }, *answerable);
            }
            Event::ItemCompleted { item, end, text, opaque, result, tokens } => {
                let seen = result.as_ref().and_then(|r| r.seen.as_ref()).unwrap_or(text);
                let todos = result.as_ref().and_then(|result| result.todos.as_ref());
                let (opaque, tokens) = (opaque.as_ref(), *tokens);
                let whole = Completed { id: *item, text, seen, opaque, todos, tokens };
                self.item_completed(*item, *end, entry.seq, whole, line);
            }
            Event::WaitOpened { item, ask } => self.wait_opened(*item, ask, entry),
            Event::WaitSettled { wait, answer, by: _ } => self.wait_settled(*wait, answer, grants),
            Event::WaitWithdrawn { wait, reason, by: _ } => self.wait_withdrawn(*wait, reason),
            Event::ExplainAsked { wait, .. } => {
                if let Some(open) = self.waits.get_mut(wait) {
                    open.explain = Explain::Asked;
                }
            }
            _ => self.learn(entry, line),
        }
    }

    fn all_tools_done(&mut self, on: Option<LineId>) {
        let done = self.items.values().all(|item| item.line != on || item.tool.is_none());
        let looped = match on {
            None => Some(&mut self.main),
            Some(on) => self.asides.get_mut(&on).map(|aside| &mut aside.looped),
        };
        if let Some(looped) = looped.filter(|looped| done && looped.phase == Phase::Acting) {
            looped.phase = Phase::Asking;
        }
    }

    /// The loop of a line, and the line.
    fn at<'a>(
        &'a mut self,
        on: Option<LineId>,
        line: &'a mut Line,
    ) -> Option<(&'a mut Loop, &'a mut Line)> {
        match on {
            None => Some((&mut self.main, line)),
            Some(on) => self.asides.get_mut(&on).map(|aside| (&mut aside.looped, &mut aside.line)),
        }
    }

    /// The loop of a line.
    pub fn looped(&self, on: Option<LineId>) -> Option<&Loop> {
        match on {
            None => Some(&self.main),
            Some(on) => self.asides.get(&on).map(|aside| &aside.looped),
        }
    }
}

/// What a call begins with.
#[derive(Clone, Copy)]
struct Started {
    purpose: Purpose,
    tokens_max: u64,
    overhead: Option<u64>,
    line: Option<LineId>,
}
