//! Does what the state asks for: starts and stops steps, takes in what comes of them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use polyloop_session::history::Tools;
use polyloop_session::item::ItemKind;
use polyloop_session::policy::Leave;
use polyloop_session::state::{SHUTDOWN_VIA, ToolPhase};
use polyloop_session::wait::Who;
use polyloop_session::{
    Answerable, CallId, Chance, Command, Event, Growth, ItemId, Next, Raw, Report, Seq, Step,
    Stream, Text, Update, absorb, decide, history, next,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Actor, Kept};
use crate::log::LogError;
use crate::meter::ModelMeter;
use crate::model::Model;
use crate::perform::{self, Asked, Performed, Ran};
use crate::subscriber::{Power, View};
use crate::tool::{Place, Run, ToolList, Unasked};

/// Reports taken in at one wake-up before the journal is written and clients are sent anything.
const REPORTS_TOGETHER_MAX: usize = 64;

impl<V: View> Actor<V> {
    /// Records what follows from the state, then starts and stops what is open.
    pub(super) async fn advance(&mut self) -> Result<(), LogError> {
        while self.may_go_on() {
            let limits = self.limits().await;
            match next(&self.state, &limits) {
                Next::Record(events) => {
                    let begins = |event: &Event| matches!(event, Event::TurnStarted { .. });
                    let begins = events.iter().any(begins);
                    if begins {
                        self.check_model().await?;
                    }
                    self.take(events).await;
                    if begins {
                        self.tell_unpriced().await;
                    }
                }
                Next::Steps(steps) => {
                    // That a tool begins must be known before it changes anything; a model may be
                    // asked meanwhile, and files may be read: nobody hears what comes of it before
                    // the question is safe.
                    if steps.iter().any(|step| self.changes(step)) {
                        self.flushed().await?;
                    }
                    steps.into_iter().for_each(|step| self.perform(step));
                    self.forget_told();
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether a step is a tool that does not run yet and may change something.
    fn changes(&self, step: &Step) -> bool {
        let Step::Run(id) = step else { return false };
        if self.running.contains_key(&id.0) {
            return false;
        }
        let item = self.state.turn().and_then(|turn| turn.items.get(id));
        match item.map(|item| (&item.kind, &item.tool)) {
            Some((
                ItemKind::ToolCall { name, .. },
                Some(ToolPhase::Running { leave, sandboxed: None, .. }),
            )) => match leave {
                Leave::Reads => false,
                // Of other tools there are calls that are harmless and write.
                Leave::Safe => &**name != "bash",
                Leave::Mode { .. } | Leave::Granted | Leave::Rule { .. } | Leave::Person => true,
            },
            _ => true,
        }
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::StopCall(call) => self.cancel(call.0),
            Step::StopTool(item) => self.cancel(item.0),
            Step::Ask(call) => {
                let Some(stop) = self.begin(call.0) else { return };
                let Some(prompt) = history::prompt(&self.state, call, &self.kit.limits) else {
                    return;
                };
                let tools = match prompt.tools {
                    Tools::All => self.kit.tools.clone(),
                    Tools::Reading => self.kit.tools.reading(),
                    Tools::None => ToolList::default(),
                };
                let place = self.place();
                let instructions = self.instructions(&place);
                let delay = Duration::from_millis(self.delay_ms(call));
                let (model, meter) = self.known_model();
                let passage = self.tally.asks(call, meter);
                let (gate, session) = (self.kit.gates.calls.told_to(passage), self.id.clone());
                let asked =
                    Asked { call, delay, prompt, instructions, tools, place, stop, gate, session };
                self.performers.push(perform::ask(model, asked));
                self.about_to_ask();
            }
            Step::Run(item) => {
                let Some(stop) = self.begin(item.0) else { return };
                let place = self.place();
                let Some(ran) = self.tool(item, place, stop) else { return };
                self.performers.push(perform::run(ran));
            }
        }
    }

    /// A retry waits; `0` for a first attempt.
    fn delay_ms(&self, call: CallId) -> u64 {
        let turn = self.state.turn();
        turn.and_then(|turn| turn.calls.get(&call)).map_or(0, |call| call.delay_ms)
    }

    pub(super) fn model(&mut self) -> Arc<dyn Model> {
        self.known_model().0
    }

    fn known_model(&mut self) -> (Arc<dyn Model>, Arc<ModelMeter>) {
        let wanted = self.state.settings().map(|settings| &*settings.model);
        if let (Some(known), Some(wanted)) = (&self.model, wanted)
            && known.0.name() == wanted
        {
            return known.clone();
        }
        let found = wanted.and_then(|name| self.kit.models.find(name).ok());
        let model = found.unwrap_or_else(|| self.kit.models.preset());
        let provider = self.kit.models.provider(model.name());
        let known = (model.clone(), self.kit.meter.model(model.name(), provider));
        self.model = Some(known.clone());
        known
    }

    /// Where the running turn works: its own folder, its session's, or the server's.
    pub(super) fn place(&mut self) -> Arc<Place> {
        let turn = self.state.turn();
        let id = turn.map(|turn| turn.id);
        if let (Some((made, place)), Some(id)) = (&self.place, id)
            && *made == id
        {
            return place.clone();
        }
        let cwd = turn.and_then(|turn| turn.cwd.as_deref());
        let user = turn.and_then(|turn| turn.origin.who.name.as_deref());
        let mut place = self.kit.places.place(&self.id, cwd, user);
        if self.kept == Kept::Passing {
            place.plans = None;
            place.outputs = None;
            place.todos = None;
        }
        let place = Arc::new(place);
        self.place = id.map(|id| (id, place.clone()));
        place
    }

    /// `None` when the step runs already.
    fn begin(&mut self, step: Seq) -> Option<CancellationToken> {
        if self.running.contains_key(&step) {
            return None;
        }
        let stop = CancellationToken::new();
        self.running.insert(step, stop.clone());
        Some(stop)
    }

    fn cancel(&self, step: Seq) {
        if let Some(stop) = self.running.get(&step) {
            stop.cancel();
        }
    }

    fn tool(&self, id: ItemId, place: Arc<Place>, stop: CancellationToken) -> Option<Ran> {
        let item = self.state.turn()?.items.get(&id)?;
        let ItemKind::ToolCall { name, .. } = &item.kind else { return None };
        let Some(ToolPhase::Running { args, sandboxed, leave, reads: _ }) = &item.tool else {
            return None;
        };
        let unasked = match leave {
            Leave::Person => None,
            leave => Some(Unasked {
                leave: leave.clone(),
                mode: self.state.mode(),
                grants: self.state.grants().into(),
            }),
        };
        let (args, sandboxed) = (args.clone(), sandboxed.is_some());
        // What it writes is written down as its own, so that it can be told what became of it.
        let place = match place.journal.as_ref().map(|journal| journal.of_call(&self.id, id)) {
            Some(journal) => Arc::new(Place { journal: Some(journal), ..(*place).clone() }),
            None => place,
        };
        let run = Run { args, place, sandboxed, unasked, stop };
        let gate = self.kit.gates.processes.told_to(self.tally.runs(id));
        let session = self.id.clone();
        let again = item.stopped.is_some();
        Some(Ran { item: id, name: name.clone(), run, gate, session, again })
    }

    /// Takes in what performers have ready, growth of one item together. False when it was growth
    /// alone, from which nothing follows.
    pub(super) async fn take_in(&mut self, first: Performed) -> Result<bool, LogError> {
        let mut growths: Vec<Growth> = Vec::new();
        let mut performed = Some(first);
        let (mut taken, mut reported, mut heard) = (0, false, false);
        while let Some(one) = performed.take() {
            let opens = matches!(one, Performed::Report(Report::BlockStarted { .. }));
            match one {
                Performed::Grew { call, block, stream, text } => {
                    heard |= self.tally.hears(call);
                    let item = self.state.turn().and_then(|turn| turn.item_of(call, block));
                    self.more(&mut growths, item, stream, text);
                }
                Performed::Output { item, text } => {
                    let open = self.state.turn().is_some_and(|t| t.items.contains_key(&item));
                    self.more(&mut growths, open.then_some(item), Stream::Output, text);
                }
                Performed::Raw { call, provider, json } => {
                    self.grow(std::mem::take(&mut growths)).await?;
                    self.write_out().await?;
                    self.audience.send(&Update::Raw(Raw { call, provider, json }));
                    self.audience.deliver();
                }
                Performed::Report(report) => {
                    reported = true;
                    self.grow(std::mem::take(&mut growths)).await?;
                    Box::pin(self.report(report)).await?;
                }
                Performed::Touches { item, touches } => {
                    reported = true;
                    self.grow(std::mem::take(&mut growths)).await?;
                    Box::pin(self.touches(item, touches)).await?;
                }
            }
            taken += 1;
            // What one alone has ready it has given already, but for the first words of a block.
            if taken < REPORTS_TOGETHER_MAX && (self.performers.len() > 1 || opens) {
                performed = self.performers.next().now_or_never().flatten();
            }
        }
        self.grow(growths).await?;
        if heard {
            // Whoever waits for it may wait for this core, too, while the rest of an answer that
            // came whole is written down.
            std::thread::yield_now();
        }
        Ok(reported)
    }

    fn more(&self, growths: &mut Vec<Growth>, item: Option<ItemId>, stream: Stream, text: Text) {
        let Some(item) = item.filter(|_| !text.is_empty()) else { return };
        let same = |growth: &&mut Growth| growth.item == item && growth.stream == stream;
        if let Some(growth) = growths.last_mut().filter(same) {
            growth.text = [&*growth.text, &*text].concat().into();
            return;
        }
        let pending = growths.iter().filter(|g| g.item == item && g.stream == stream);
        let pending: u64 = pending.map(|growth| growth.text.len() as u64).sum();
        let offset = self.live.len(item, stream) + pending;
        growths.push(Growth { item, stream, offset, text });
    }

    pub(super) async fn report(&mut self, mut report: Report) -> Result<(), LogError> {
        if let Report::Answered { answerable, .. } | Report::ToolStopped { answerable, .. } =
            &mut report
        {
            let origin = self.state.turn().map(|turn| &turn.origin);
            let approves = origin.is_some_and(|origin| origin.can_approve);
            let answers = origin.is_some_and(|origin| origin.can_answer);
            *answerable = Answerable {
                approvals: approves || self.audience.can(Power::Approve),
                questions: answers || self.audience.can(Power::Answer),
            };
        }
        if let Report::CallFailed { chance, .. } = &mut report {
            *chance = Chance((Uuid::new_v4().as_u128() % 1_000) as u16);
        }
        let events = absorb(&self.state, &self.live, &self.kit.limits, report);
        let ends = |event: &Event| matches!(event, Event::CallEnded { .. });
        let ended = events.iter().any(ends);
        self.take(events).await;
        self.advance_if_settled(ended).await
    }

    /// A report that ends something may open the next step of a turn; what follows must not wait
    /// for other reports.
    async fn advance_if_settled(&mut self, ended: bool) -> Result<(), LogError> {
        match self.state.turn() {
            Some(turn) if ended || turn.calls.is_empty() => self.advance().await,
            _ => Ok(()),
        }
    }

    /// Stops what runs and waits for its last words, so that nothing is left to recover.
    pub(super) async fn close(&mut self) -> Result<(), LogError> {
        self.closing = true;
        // A turn that waits for an answer goes on after the restart; any other ends here.
        let waits = self.state.turn().is_some_and(|turn| !turn.waits.is_empty());
        if !waits && !self.running.is_empty() {
            let by = Who::via(SHUTDOWN_VIA);
            let reason: Text = "The server is shutting down".into();
            let stopping = decide(
                &self.state,
                Command::Interrupt { turn: None, reason, by },
                &self.kit.limits,
            );
            self.record(stopping.unwrap_or_default()).await?;
        }
        self.running.values().for_each(CancellationToken::cancel);
        self.advance().await?;
        while let Some(performed) = self.performers.next().await {
            self.take_in(performed).await?;
            self.advance().await?;
        }
        Ok(())
    }

    /// Whether anything may follow from the state: nothing new begins while the server stops.
    fn may_go_on(&self) -> bool {
        !self.closing || self.state.turn().is_some_and(|turn| turn.stopping.is_some())
    }
}
