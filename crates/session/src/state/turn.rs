//! The open turn: its calls, open items and open waits, and where the strategy stands.

use super::*;

mod calls;
mod loops;

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

    fn propose(&mut self, id: ItemId, tool: ToolPhase, proposed: Proposed<'_>, line: &mut Line) {
        let Some(item) = self.items.get_mut(&id) else { return };
        let ItemKind::ToolCall { name, call_ref, native: _ } = &item.kind else { return };
        let piece = Piece::ToolCall {
            call: Some(item.call),
            item: id,
            name: name.clone(),
            call_ref: call_ref.clone(),
            args: proposed.args.clone(),
            opaque: proposed.opaque.clone(),
        };
        item.tool = Some(tool);
        if let Some(call) = self.calls.get_mut(&item.call) {
            call.proposed_tools = true;
        }
        let on = item.line;
        if let Some((_, line)) = self.at(on, line) {
            line.push(proposed.seq, proposed.tokens, piece);
        }
    }

    fn tool_started(&mut self, item: ItemId, sandboxed: bool, leave: Option<&Leave>) {
        let Some(Item { tool: Some(phase), .. }) = self.items.get_mut(&item) else { return };
        let (args, judgement, reads, leave) = match phase {
            ToolPhase::Proposed { args, judgement, .. } => {
                let reads = judgement.effect == Effect::Read;
                // Entries of earlier versions do not say it; the strictest is taken for them.
                let leave = leave.cloned().unwrap_or(Leave::Safe);
                (args.clone(), Some(judgement.clone()), reads, leave)
            }
            ToolPhase::Approved { args } => (args.clone(), None, false, Leave::Person),
            ToolPhase::Waiting { .. }
            | ToolPhase::Denied { .. }
            | ToolPhase::Answered { .. }
            | ToolPhase::Running { .. } => return,
        };
        let sandboxed = judgement.filter(|_| sandboxed);
        *phase = ToolPhase::Running { args, sandboxed, reads, leave };
    }

    /// The call is proposed again, as one for which there is no sandbox.
    fn sandbox_refused(&mut self, id: ItemId, stopped: Stopped, answerable: bool) {
        let Some(item) = self.items.get_mut(&id) else { return };
        let Some(ToolPhase::Running { args, sandboxed: Some(judgement), .. }) = &item.tool else {
            return;
        };
        let judgement = Box::new(Judgement { sandbox: false, ..(**judgement).clone() });
        item.tool = Some(ToolPhase::Proposed { args: args.clone(), judgement, answerable });
        item.stopped = Some(Box::new(stopped));
    }

    fn item_completed(
        &mut self,
        id: ItemId,
        end: End,
        seq: Seq,
        whole: Completed<'_>,
        line: &mut Line,
    ) {
        let Some(item) = self.items.remove(&id) else { return };
        let purpose = self.calls.get(&item.call).map(|c| c.purpose);
        match (&item.kind, &item.tool) {
            (ItemKind::ToolCall { .. }, Some(_)) => {
                let is_error = end != End::Whole;
                let told = self.explanations.remove(&id).unwrap_or_default();
                // A batch in which one call failed has written them all the same.
                let open: Option<Text> = match (whole.todos, item.todos()) {
                    (Some(open), _) => Some(open.clone()),
                    (None, Some(args)) if !is_error => {
                        Some(todos::open_in(args).unwrap_or_default().into())
                    }
                    (None, _) => None,
                };
                if let Some(open) = &open {
                    // The list is the session's, whoever writes it.
                    line.set_todos(open.clone());
                }
                if let Some((_, line)) = self.at(item.line, line) {
                    if let Some(open) = open {
                        line.set_todos(open);
                    }
                    let output = whole.seen.clone();
                    line.push(seq, whole.tokens, Piece::ToolResult { item: id, output, is_error });
                    for (text, tokens) in told {
                        line.push(seq, tokens, Piece::Explanation { text });
                    }
                }
                self.all_tools_done(item.line);
            }
            // Cut inside its arguments: never proposed, so no part of the prompt.
            (ItemKind::ToolCall { .. }, None) => {}
            (ItemKind::Text, _) => self.text_completed(&item, purpose, end, seq, whole, line),
            (ItemKind::Reasoning, _) => {
                if purpose.is_some_and(Purpose::is_step) && end == End::Whole {
                    let (text, opaque) = (whole.text.clone(), whole.opaque.cloned());
                    let call = item.call;
                    let piece = Piece::Reasoning { call, item: id, text, opaque };
                    if let Some((_, line)) = self.at(item.line, line) {
                        line.push(seq, whole.tokens, piece);
                    }
                }
            }
        }
    }

    fn text_completed(
        &mut self,
        item: &Item,
        purpose: Option<Purpose>,
        end: End,
        seq: Seq,
        whole: Completed<'_>,
        line: &mut Line,
    ) {
        if end == End::Discarded || whole.text.is_empty() {
            return;
        }
        match purpose {
            Some(Purpose::Think | Purpose::Expand { .. }) => {
                let (call, text) = (Some(item.call), whole.text.clone());
                let opaque = whole.opaque.cloned();
                let piece = Piece::Agent { call, item: whole.id, text: text.clone(), opaque };
                if let Some((looped, line)) = self.at(item.line, line) {
                    looped.said.insert(whole.id, text);
                    line.push(seq, whole.tokens, piece);
                }
            }
            Some(Purpose::Explain { .. }) => {
                let about = self.calls.get(&item.call).and_then(|call| call.about.as_ref());
                match about.map(|about| about.item).filter(|id| self.items.contains_key(id)) {
                    Some(open) => {
                        let told = self.explanations.entry(open).or_default();
                        told.push((whole.text.clone(), whole.tokens));
                    }
                    // Settled and done while it was explained.
                    None => {
                        let piece = Piece::Explanation { text: whole.text.clone() };
                        if let Some((_, line)) = self.at(item.line, line) {
                            line.push(seq, whole.tokens, piece);
                        }
                    }
                }
            }
            Some(Purpose::Summarise) => {
                let (text, tokens) = (whole.text.clone(), whole.tokens);
                if let Some((looped, _)) = self.at(item.line, line) {
                    looped.summary = Some(Summary { call: item.call, text, tokens });
                }
            }
            Some(errand) => {
                if let Some(errand) = self.errands.get_mut(&errand) {
                    errand.said.insert(whole.id, whole.text.clone());
                }
            }
            None => {}
        }
    }

    fn wait_opened(&mut self, item: ItemId, ask: &Ask, entry: &LogEntry) {
        let wait = WaitId(entry.seq);
        let Some(Item { tool: Some(phase), .. }) = self.items.get_mut(&item) else { return };
        let ToolPhase::Proposed { args, judgement, .. } = phase else { return };
        let (args, judgement) = (args.clone(), judgement.clone());
        *phase = ToolPhase::Waiting { args, judgement, wait };
        let (ask, opened_at) = (ask.clone(), entry.at);
        let open = OpenWait { item, ask, opened_at, explain: Explain::No };
        self.waits.insert(wait, open);
    }

    fn wait_settled(&mut self, id: WaitId, answer: &Answer, grants: &mut Vec<Key>) {
        let Some(open) = self.waits.remove(&id) else { return };
        let item = self.items.get_mut(&open.item);
        let Some(Item { tool: Some(phase), .. }) = item else { return };
        let ToolPhase::Waiting { args, .. } = phase else { return };
        if !open.ask.for_leave() {
            let (ask, answer) = (Box::new(open.ask), Box::new(answer.clone()));
            *phase = ToolPhase::Answered { ask, answer };
            return;
        }
        *phase = match answer {
            Answer::Approved { grants: fresh, instead, .. } => {
                for key in fresh {
                    if !grants.contains(key) && grants.len() < GRANTS_MAX {
                        grants.push(key.clone());
                    }
                }
                let args = instead.as_ref().map_or_else(|| args.clone(), |i| i.args.clone());
                ToolPhase::Approved { args }
            }
            Answer::Denied { message, then: _ } => ToolPhase::Denied { message: message.clone() },
            // No answer to a request for approval: it does not run.
            Answer::Answered { .. } => ToolPhase::Denied { message: "Not allowed.".into() },
        };
    }

    /// Nobody will answer any more, so the call does not run.
    fn wait_withdrawn(&mut self, id: WaitId, reason: &Text) {
        let Some(open) = self.waits.remove(&id) else { return };
        if let Some(Item { tool: Some(phase), .. }) = self.items.get_mut(&open.item) {
            *phase = ToolPhase::Denied { message: reason.clone() };
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

/// What a proposal carries into the line.
struct Proposed<'a> {
    seq: Seq,
    args: &'a Text,
    tokens: u64,
    opaque: &'a Option<Opaque>,
}

/// What a completion carries, as the turn needs it.
#[derive(Clone, Copy)]
struct Completed<'a> {
    id: ItemId,
    text: &'a Text,
    seen: &'a Text,
    opaque: Option<&'a Opaque>,
    todos: Option<&'a Text>,
    tokens: u64,
}
