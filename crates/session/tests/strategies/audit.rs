//! Reads a log entry by entry, as an auditor who never saw `State`, and says what a strategy must
//! not do.
//!
//! The numbers in brackets name the invariant: 1 a turn makes no more calls than it may, 2 nor are
//! more open at once, 3 what changes something runs alone, 4 a branch only reads and asks nobody,
//! 5 a question is asked once more where its answer cannot be read, and an attempt is made again as
//! often as it may, 6 each node ends once, after what it needs, 7 a tree keeps to its width and
//! depth, 8 a graph to its nodes, 9 its layers and its depth, 10 nothing is left open at a turn's
//! end, and nothing comes after it, 11 a turn that completes has an answer, 12 only what was judged
//! too much is split, 13 a search ends once, and nothing of it comes after.

use std::collections::{BTreeMap, BTreeSet};

use polyloop_session::event::{
    Agent, CallOutcome, Event, LineId, LogEntry, NodeOutcome, Outcome, PlannedNode, Purpose,
    RunOptions, Thought, Weighed, Work,
};
use polyloop_session::id::{NodeId, ThoughtId};
use polyloop_session::policy::Effect;
use polyloop_session::strategy::bounds::{Bounds, Judge, Search};
use polyloop_session::{CallId, ItemId, Limits, MessageId, TurnId, WaitId};

pub type Checked = Result<(), String>;

macro_rules! ensure {
    ($holds:expr, $($told:tt)*) => {
        if !$holds {
            return Err(format!($($told)*));
        }
    };
}

type Run = Option<Box<RunOptions>>;

pub struct Audit {
    limits: Limits,
    calls_max: u32,
    agent: Option<Agent>,
    queue: BTreeMap<MessageId, Run>,
    left: BTreeMap<TurnId, Left>,
    turn: Option<Turn>,
}

/// What an interrupted turn leaves: its options, how it was worked, its calls, what it found.
type Left = (Run, Agent, u32, Finding);

struct Turn {
    id: TurnId,
    agent: Agent,
    run: Run,
    bounds: Bounds,
    calls_max: u32,
    made: u32,
    calls: BTreeMap<CallId, (Purpose, Option<LineId>)>,
    items: BTreeMap<ItemId, Item>,
    waits: BTreeMap<WaitId, ItemId>,
    stopping: bool,
    compacts: bool,
    answered: bool,
    finding: Finding,
}

struct Item {
    call: CallId,
    line: Option<LineId>,
    effect: Option<(Effect, bool)>,
    running: bool,
}

/// What a search has come to; it goes over to the turn that resumes it.
#[derive(Default)]
struct Finding {
    over: bool,
    thoughts: BTreeMap<ThoughtId, Branch>,
    expanded: BTreeSet<Option<ThoughtId>>,
    depth: u32,
    nodes: BTreeMap<NodeId, Node>,
    planned: BTreeSet<Option<NodeId>>,
    misread: BTreeSet<Purpose>,
    answers: BTreeMap<Purpose, u32>,
    retried: BTreeMap<(Purpose, Option<LineId>), u32>,
    /// By call, also of turns before.
    purposes: BTreeMap<CallId, Purpose>,
}

struct Branch {
    depth: u32,
    last: bool,
    weighed: bool,
    tried: bool,
}

impl Branch {
    /// What it must be worth, so that the search does not end without it.
    fn enough(&self, bounds: &Bounds) -> u32 {
        let ends = self.last || self.depth >= bounds.tot_depth;
        match (bounds.tot_judge, bounds.tot_search) {
            (Judge::Vote, _) => 0,
            (Judge::Value, Search::Depth) if ends => bounds.tot_accept.max(bounds.tot_prune),
            (Judge::Value, _) => bounds.tot_prune,
        }
    }
}

struct Node {
    depth: u32,
    parent: Option<NodeId>,
    needs: Vec<NodeId>,
    started: bool,
    complex: Option<bool>,
    ended: Option<bool>,
}

impl Audit {
    pub fn new(limits: Limits) -> Audit {
        let (queue, left) = (BTreeMap::new(), BTreeMap::new());
        Audit { limits, calls_max: 0, agent: None, queue, left, turn: None }
    }

    pub fn all(limits: Limits, log: &[LogEntry]) -> Checked {
        let mut audit = Audit::new(limits);
        log.iter().try_for_each(|entry| audit.entry(entry))
    }

    pub fn entry(&mut self, entry: &LogEntry) -> Checked {
        self.read(entry).map_err(|told| format!("{told}, in {entry:?}"))
    }

    fn read(&mut self, entry: &LogEntry) -> Checked {
        let seq = entry.seq;
        match &entry.event {
            Event::SessionCreated { settings, .. } => {
                (self.calls_max, self.agent) = (settings.calls_max, settings.agent);
            }
            Event::SettingSet { setting, .. } => {
                if let polyloop_session::event::Setting::Agent { agent } = setting {
                    self.agent = Some(*agent);
                }
            }
            Event::MessageQueued { run, .. } => {
                self.queue.insert(MessageId(seq), run.clone());
            }
            Event::TurnStarted { work, agent, .. } => self.started(TurnId(seq), work, *agent)?,
            Event::TurnEnded { outcome, .. } => self.ended(outcome)?,
            Event::Adopted { .. }
            | Event::ModeSet { .. }
            | Event::SessionClosed { .. }
            | Event::SessionReopened { .. }
            | Event::MessageDropped { .. }
            | Event::Noticed { .. }
            | Event::Forked { .. }
            | Event::UndoStarted { .. }
            | Event::UndoFailed { .. }
            | Event::Undone { .. } => {}
            event => {
                let (retries_max, limits) = (self.limits.retries_max, self.limits);
                let turn = self.turn.as_mut().ok_or("[10] outside a turn")?;
                turn.event(entry, event, retries_max, &limits)?;
            }
        }
        Ok(())
    }

    fn started(&mut self, id: TurnId, work: &Work, agent: Option<Agent>) -> Checked {
        ensure!(self.turn.is_none(), "[10] a turn in another");
        let mut made = 0;
        let (run, before, finding) = match work {
            Work::Message { message } => {
                let run = self.queue.remove(message).ok_or("[10] a turn without its message")?;
                self.left.clear();
                (run, None, Finding::default())
            }
            Work::Resume { turn, .. } => {
                let left = self.left.remove(turn).ok_or("[10] resumes what was not left")?;
                self.left.clear();
                let (run, agent, calls, finding) = left;
                // A search that is stopped often does not grow by that.
                made = if finding.over || agent == Agent::React { 0 } else { calls };
                // Whoever takes it up has no retry behind him.
                (run, Some(agent), Finding { retried: BTreeMap::new(), ..finding })
            }
            Work::Compact { .. } => (None, None, Finding { over: true, ..Finding::default() }),
        };
        let own = run.as_deref();
        let wanted = own.and_then(|run| run.agent).or(self.agent).unwrap_or_default();
        let wanted = before.unwrap_or(wanted);
        ensure!(agent.unwrap_or_default() == wanted, "[13] {agent:?} works, not {wanted:?}");
        let bounds = own.and_then(|run| run.bounds.as_deref());
        let bounds = self.limits.bounds.with(bounds, own.is_some_and(|run| run.adaptive));
        let calls_max = own.and_then(|run| run.calls_max).unwrap_or(self.calls_max);
        self.turn = Some(Turn {
            id,
            agent: wanted,
            run,
            bounds,
            calls_max,
            made,
            calls: BTreeMap::new(),
            items: BTreeMap::new(),
            waits: BTreeMap::new(),
            stopping: false,
            compacts: matches!(work, Work::Compact { .. }),
            answered: false,
            finding,
        });
        Ok(())
    }

    fn ended(&mut self, outcome: &Outcome) -> Checked {
        let turn = self.turn.take().ok_or("[10] a turn ends that never began, or twice")?;
        let open = (turn.calls.len(), turn.items.len(), turn.waits.len());
        ensure!(open == (0, 0, 0), "[10] the turn ends with open {open:?}");
        match outcome {
            Outcome::Completed => {
                let done = turn.answered || turn.stopping || turn.compacts;
                ensure!(done, "[11] it completes without an answer");
            }
            Outcome::Interrupted { .. } if !turn.compacts => {
                let left = (turn.run, turn.agent, turn.made, turn.finding);
                self.left.insert(turn.id, left);
            }
            Outcome::Interrupted { .. } | Outcome::Failed { .. } => {}
        }
        Ok(())
    }
}

impl Turn {
    fn event(
        &mut self,
        entry: &LogEntry,
        event: &Event,
        retries_max: u32,
        limits: &Limits,
    ) -> Checked {
        let seq = entry.seq;
        match event {
            Event::TurnStopping { .. } => self.stopping = true,
            Event::CallStarted { purpose, line, .. } => {
                self.call_started(CallId(seq), *purpose, *line, limits)?;
            }
            Event::CallEnded { call, outcome, .. } => {
                self.call_ended(*call, outcome, retries_max)?;
            }
            Event::ItemStarted { call, .. } => {
                let (_, line) = self.calls.get(call).ok_or("[10] an item of no open call")?;
                let (call, line) = (*call, *line);
                self.items.insert(ItemId(seq), Item { call, line, effect: None, running: false });
            }
            Event::ToolProposed { item, judgement, .. } => {
                let item = self.items.get_mut(item).ok_or("[10] an unknown item")?;
                let (purpose, _) = self.calls.get(&item.call).ok_or("[10] of no open call")?;
                ensure!(purpose.is_step(), "[4] {purpose:?} proposes a tool");
                item.effect = Some((judgement.effect, judgement.safe));
            }
            Event::ToolStarted { item, .. } => self.tool_started(*item)?,
            Event::SandboxRefused { item, .. } => {
                self.items.get_mut(item).ok_or("[10] an unknown item")?.running = false;
            }
            Event::ItemCompleted { item, .. } => {
                self.items.remove(item).ok_or("[10] an item ends that is not open")?;
            }
            Event::WaitOpened { item, .. } => {
                let row = self.items.get(item).ok_or("[10] an unknown item")?;
                let branch = matches!(row.line, Some(LineId::Branch { .. }));
                ensure!(!branch, "[4] somebody is asked in a branch");
                self.waits.insert(WaitId(seq), *item);
            }
            Event::WaitSettled { wait, .. } | Event::WaitWithdrawn { wait, .. } => {
                self.waits.remove(wait).ok_or("[10] a wait ends that is not open")?;
            }
            Event::ExplainAsked { .. } | Event::FilesTouched { .. } => {}
            Event::Compacted { .. } | Event::Trimmed { .. } => {}
            found => {
                ensure!(!self.stopping, "[13] a search goes on in a turn that stops");
                ensure!(!self.finding.over, "[13] a search goes on behind its end");
                let idle = self.calls.is_empty();
                self.answered |= matches!(found, Event::Concluded { .. });
                self.finding.learn(entry, found, &self.bounds, idle)?;
            }
        }
        Ok(())
    }

    fn call_started(
        &mut self,
        id: CallId,
        purpose: Purpose,
        line: Option<LineId>,
        limits: &Limits,
    ) -> Checked {
        ensure!(!self.stopping, "[10] a call in a turn that stops");
        if matches!(purpose, Purpose::Explain { .. }) {
            self.calls.insert(id, (purpose, line));
            return Ok(());
        }
        self.answered = false;
        let asks = |(asked, _): &&(Purpose, _)| !matches!(asked, Purpose::Explain { .. });
        let open = self.calls.values().filter(asks).count() + 1;
        let most = limits.bounds.calls_at_once.max(1) as usize;
        ensure!(open <= most, "[2] {open} calls are open, of {most}");
        let same = self.calls.values().any(|open| *open == (purpose, line));
        ensure!(!same, "[5] {purpose:?} is asked twice at once");
        if purpose.is_step() || purpose == Purpose::Summarise {
            let busy = self.items.values().any(|item| item.line == line)
                || self.calls.values().filter(asks).any(|(p, l)| *l == line && !p.is_errand());
            ensure!(!busy, "[5] a loop asks while something of it is open");
        }
        if purpose == Purpose::Summarise {
            // What it makes room for is counted afresh behind it.
            let of_line = |(other, on): &(Purpose, _)| *on == line && other.is_step();
            self.finding.retried.retain(|key, _| !of_line(key));
        }
        if purpose != Purpose::Summarise {
            self.made += 1;
            let (made, most) = (self.made, self.calls_max);
            ensure!(made <= most, "[1] call {made} of {most}");
        }
        let searches = purpose.is_errand() || line.is_some();
        ensure!(!(searches && self.finding.over), "[13] {purpose:?} behind the end of the search");
        if let Some(LineId::Node { node, .. }) = line {
            let node = self.finding.nodes.get(&node).ok_or("[6] a loop of an unknown node")?;
            ensure!(node.started && node.ended.is_none(), "[6] a loop of a node that is not open");
        }
        self.calls.insert(id, (purpose, line));
        self.finding.purposes.insert(id, purpose);
        Ok(())
    }

    fn call_ended(&mut self, id: CallId, outcome: &CallOutcome, retries_max: u32) -> Checked {
        let (purpose, line) = self.calls.remove(&id).ok_or("[10] a call ends that is not open")?;
        let retried = self.finding.retried.entry((purpose, line)).or_default();
        match outcome {
            CallOutcome::Retried { fault, .. } => {
                if purpose != Purpose::Summarise {
                    self.made -= 1;
                }
                // Another call is due then, and this one is counted afresh.
                let too_long = &*fault.code == polyloop_session::retry::TOO_LONG_CODE;
                *retried = if too_long { 0 } else { *retried + 1 };
                let made = *retried;
                ensure!(made <= retries_max, "[5] retry {made} of {retries_max} of {purpose:?}");
            }
            CallOutcome::Answered => {
                *retried = 0;
                if purpose.is_errand() {
                    let answers = self.finding.answers.entry(purpose).or_default();
                    *answers += 1;
                    ensure!(*answers <= 2, "[5] {purpose:?} is answered {answers} times");
                }
                let acts = self.items.values().any(|item| item.call == id && item.effect.is_some());
                self.answered = purpose == Purpose::Think && line.is_none() && !acts;
            }
            CallOutcome::Failed { .. } | CallOutcome::Stopped | CallOutcome::Lost => *retried = 0,
        }
        let mut left = self.items.iter().filter(|(_, item)| item.call == id);
        ensure!(left.all(|(_, item)| item.effect.is_some()), "[10] its items are open");
        Ok(())
    }

    fn tool_started(&mut self, id: ItemId) -> Checked {
        ensure!(!self.stopping, "[10] a tool in a turn that stops");
        let row = self.items.get(&id).ok_or("[10] an unknown item")?;
        let (effect, safe) = row.effect.ok_or("[4] not proposed")?;
        let reads = effect == Effect::Read;
        if matches!(row.line, Some(LineId::Branch { .. })) {
            ensure!(reads || safe, "[4] a branch runs what does more than read");
        }
        for (other, item) in self.items.iter().filter(|(_, item)| item.running) {
            let also = item.effect.is_some_and(|(effect, _)| effect == Effect::Read);
            ensure!(reads && also, "[3] it runs beside {other}");
        }
        self.items.get_mut(&id).ok_or("[10] an unknown item")?.running = true;
        Ok(())
    }
}

impl Finding {
    fn learn(&mut self, entry: &LogEntry, event: &Event, bounds: &Bounds, idle: bool) -> Checked {
        match event {
            Event::Misread { call, .. } => {
                let purpose = *self.purposes.get(call).ok_or("[5] misreads an unknown call")?;
                let first = self.misread.insert(purpose);
                ensure!(first, "[5] {purpose:?} is misread twice");
            }
            Event::Understood { part, .. } => {
                use polyloop_session::event::Understanding;
                self.over |= matches!(part, Understanding::Information { .. });
            }
            Event::Expanded { from, thoughts, .. } => {
                self.expanded(entry, *from, thoughts, bounds)?
            }
            Event::Scored { call, thought, .. } => {
                ensure!(self.purposes.contains_key(call), "[7] scored by an unknown call");
                let known = thought.is_none_or(|thought| self.thoughts.contains_key(&thought));
                ensure!(known, "[7] an unknown thought is voted for");
            }
            Event::Chosen { depth, beam, weighed } => {
                let below = self.depth + 1;
                ensure!(*depth == below, "[7] goes on at depth {depth}, not {below}");
                ensure!(!beam.is_empty() || !weighed.is_empty(), "[7] nothing for nothing");
                self.beam(*depth, beam, weighed, bounds)?;
            }
            Event::Backtracked { to_depth, beam, weighed, .. } => {
                let again = beam.iter().any(|id| self.thoughts.get(id).is_some_and(|b| b.tried));
                ensure!(!again, "[7] goes back to what was tried");
                ensure!(!beam.is_empty(), "[7] goes back to nothing");
                self.beam(*to_depth, beam, weighed, bounds)?;
            }
            Event::PathTaken { thought, .. } => {
                ensure!(idle, "[13] the search ends with open calls");
                let known = thought.is_none_or(|thought| self.thoughts.contains_key(&thought));
                ensure!(known, "[7] an unknown thought is taken");
                self.over = true;
            }
            Event::Planned { parent, nodes, .. } => self.planned(entry, *parent, nodes, bounds)?,
            Event::Judged { node, complex, .. } => {
                ensure!(bounds.got_adaptive, "[12] judged, though nothing is to be split");
                let planned = self.planned.contains(&Some(*node));
                let node = self.nodes.get_mut(node).ok_or("[12] an unknown node is judged")?;
                ensure!(!planned && node.started, "[12] judged at the wrong time");
                // One that was found complex may turn out to have no room.
                ensure!(node.complex != Some(false), "[12] judged twice");
                node.complex = Some(*complex);
            }
            Event::NodeStarted { node, .. } => {
                let needs = self.nodes.get(node).ok_or("[6] an unknown node")?.needs.clone();
                let done = |need: &NodeId| self.nodes.get(need).and_then(|n| n.ended) == Some(true);
                ensure!(needs.iter().all(done), "[6] begins before what it needs");
                let node = self.nodes.get_mut(node).ok_or("[6] an unknown node")?;
                ensure!(!node.started && node.ended.is_none(), "[6] begins twice");
                node.started = true;
            }
            Event::Kept { node, .. } | Event::Refined { node, .. } => {
                let node = self.nodes.get(node).ok_or("[6] an unknown node")?;
                ensure!(node.started && node.ended.is_none(), "[6] a node that is not open");
            }
            Event::NodeEnded { node, outcome } => self.node_ended(*node, outcome)?,
            Event::Gathered { node: Some(node), .. } => {
                ensure!(self.planned.contains(&Some(*node)), "[12] gathers what was not split");
                self.all_ended(Some(*node))?;
            }
            Event::Gathered { node: None, .. } => {
                ensure!(idle, "[13] the graph ends with open calls");
                self.over = true;
            }
            Event::Concluded { .. } => {
                ensure!(idle, "[13] the graph ends with open calls");
                self.all_ended(None)?;
                self.over = true;
            }
            other => return Err(format!("[13] {other:?} is nothing of a search")),
        }
        Ok(())
    }

    fn expanded(
        &mut self,
        entry: &LogEntry,
        from: Option<ThoughtId>,
        thoughts: &[Thought],
        bounds: &Bounds,
    ) -> Checked {
        ensure!(self.expanded.insert(from), "[7] expanded twice");
        let (count, most) = (thoughts.len(), bounds.tot_proposals);
        ensure!(count <= most as usize, "[7] {count} thoughts of {most}");
        let above = from.map(|from| self.thoughts.get(&from).ok_or("[7] from an unknown thought"));
        let depth = match above.transpose()? {
            Some(above) => {
                ensure!(above.tried && !above.last, "[7] expanded, and not to be");
                above.depth + 1
            }
            None => 1,
        };
        ensure!(depth <= bounds.tot_depth, "[7] depth {depth} of {}", bounds.tot_depth);
        for (index, thought) in (0..).zip(thoughts) {
            let id = ThoughtId { expanded: entry.seq, index };
            let (last, weighed, tried) = (thought.last, false, false);
            self.thoughts.insert(id, Branch { depth, last, weighed, tried });
        }
        Ok(())
    }

    fn beam(
        &mut self,
        depth: u32,
        beam: &[ThoughtId],
        weighed: &[Weighed],
        bounds: &Bounds,
    ) -> Checked {
        let most = match bounds.tot_search {
            Search::Breadth => bounds.tot_beam as usize,
            Search::Depth => 1,
        };
        let count = beam.len();
        ensure!(count <= most, "[7] a beam of {count}, of {most}");
        for Weighed { thought, score } in weighed {
            let row = self.thoughts.get_mut(thought).ok_or("[7] an unknown thought is weighed")?;
            ensure!(!row.weighed, "[7] weighed twice");
            ensure!(*score <= 1_000, "[7] worth {score}");
            row.weighed = true;
            let enough = row.enough(bounds);
            ensure!(count > 0 || *score < enough, "[7] worth {score}, and nothing is followed");
        }
        for id in beam {
            let row = self.thoughts.get_mut(id).ok_or("[7] an unknown thought is followed")?;
            ensure!(row.weighed, "[7] followed without being weighed");
            ensure!(row.depth == depth, "[7] followed at depth {depth}, and is at {}", row.depth);
            row.tried = true;
        }
        self.depth = depth;
        Ok(())
    }

    fn planned(
        &mut self,
        entry: &LogEntry,
        parent: Option<NodeId>,
        nodes: &[PlannedNode],
        bounds: &Bounds,
    ) -> Checked {
        ensure!(self.planned.insert(parent), "[8] planned twice");
        let depth = match parent.map(|parent| self.nodes.get(&parent)) {
            None => 1,
            Some(None) => return Err("[8] inside an unknown node".into()),
            Some(Some(above)) => {
                ensure!(above.complex == Some(true), "[12] split, and not judged to be complex");
                ensure!(above.started && above.ended.is_none(), "[12] split, and not open");
                above.depth + 1
            }
        };
        ensure!(depth <= bounds.got_depth, "[9] depth {depth} of {}", bounds.got_depth);
        let (count, most) = (nodes.len(), bounds.got_nodes as usize);
        ensure!((1..=most).contains(&count), "[8] {count} nodes of {most}");
        let (all, most) = (self.nodes.len() + count, bounds.got_nodes_total as usize);
        ensure!(all <= most, "[8] {all} nodes in all, of {most}");
        let mut layers: Vec<Option<u32>> = vec![None; count];
        for _ in 0..count {
            for (at, node) in nodes.iter().enumerate() {
                let below = node.needs.iter().map(|need| *layers.get(*need as usize)?);
                let below: Option<Vec<u32>> = below.collect();
                layers[at] = below.map(|below| below.into_iter().max().unwrap_or(0) + 1);
            }
        }
        let layers: Option<Vec<u32>> = layers.into_iter().collect();
        let deepest = layers.ok_or("[9] a cycle")?.into_iter().max().unwrap_or(0);
        ensure!(deepest <= bounds.got_layers, "[9] layer {deepest} of {}", bounds.got_layers);
        for (index, node) in (0..).zip(nodes) {
            let id = |index| NodeId { planned: entry.seq, index };
            let needs = node.needs.iter().map(|need| id(*need)).collect();
            let (started, complex, ended) = (false, None, None);
            ensure!(node.attempts <= bounds.got_attempts, "[8] {} attempts", node.attempts);
            ensure!(node.refine <= bounds.got_refine, "[8] {} refinements", node.refine);
            self.nodes.insert(id(index), Node { depth, parent, needs, started, complex, ended });
        }
        Ok(())
    }

    fn node_ended(&mut self, id: NodeId, outcome: &NodeOutcome) -> Checked {
        let row = self.nodes.get(&id).ok_or("[6] an unknown node ends")?;
        ensure!(row.ended.is_none(), "[6] a node ends twice");
        let ended = match outcome {
            NodeOutcome::Skipped { missing } => {
                let failed = self.nodes.get(missing).and_then(|node| node.ended) == Some(false);
                ensure!(row.needs.contains(missing) && failed, "[6] skipped for nothing");
                ensure!(!row.started, "[6] skipped after it began");
                false
            }
            NodeOutcome::Done { .. } | NodeOutcome::Failed { .. } => {
                let given_up = matches!(outcome, NodeOutcome::Failed { fault }
                    if &*fault.code == polyloop_session::strategy::react::CALLS_CODE);
                ensure!(row.started || given_up, "[6] ends before it began");
                if self.planned.contains(&Some(id)) {
                    self.all_ended(Some(id))?;
                }
                matches!(outcome, NodeOutcome::Done { .. })
            }
        };
        self.nodes.get_mut(&id).ok_or("[6] an unknown node ends")?.ended = Some(ended);
        Ok(())
    }

    fn all_ended(&self, of: Option<NodeId>) -> Checked {
        let mut inside = self.nodes.values().filter(|node| node.parent == of);
        ensure!(inside.all(|node| node.ended.is_some()), "[6] a graph ends before its nodes");
        Ok(())
    }
}
