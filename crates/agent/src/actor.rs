//! One task a session. It takes commands from its mailbox and reports from its performers, and is
//! the only one that changes the session.
//!
//! Everything that happens goes through `record`: numbered and applied, then appended and sent,
//! in that order, so no client sees what a restart could forget. When the store fails the
//! actor ends; the session is opened anew from its log.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use polyloop_session::command::WaitReply;
use polyloop_session::decide::expire;
use polyloop_session::event::{Level, Setting, Settings};
use polyloop_session::policy::Mode;
use polyloop_session::recover::recover_with;
use polyloop_session::shown;
use polyloop_session::state::{AUTO_RESUME_VIA, ToolPhase};
use polyloop_session::wait::Who;
use polyloop_session::{
    Command, Event, Growth, Limits, Live, MessageId, Refusal, Seq, SessionId, State, Text,
    Timestamp, TurnId, WaitRef, decide,
};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::audit::Audit;
use crate::clock;
use crate::gate::Gates;
use crate::log::memory::Memory;
use crate::log::{DAMAGED_CODE, Damage, Flushing, Folded, Log, LogError, Occasion, Opened, Writer};
use crate::messages::Messages;
use crate::meter::{Meter, ModelMeter, Tally};
use crate::model::{Model, Models};
use crate::peers::Peers;
use crate::perform;
use crate::place::{Instructions, Places};
use crate::stand::Stand;
use crate::subscriber::{Audience, Ending, Feed, View};
use crate::tokens::Counted;
use crate::tool::{Place, ToolList};

mod decisions;
mod due;
mod flush;
pub(crate) mod noted;
mod performers;
mod record;
mod remote;
mod request;
mod room;
mod spans;
mod undo;
mod work;

pub(crate) use request::Request;
pub use request::{Attach, Attached, Beginnings, CommandError, Look, MOVED, Recorded};
pub use spans::TARGET as SPAN_TARGET;
pub use undo::{UndoError, Undone};

use due::{Due, run_out};
use flush::{flush_due, next_flushed};
use performers::Performers;
use request::Answered;

pub const MAILBOX_REQUESTS_MAX: usize = 64;

/// What every session of a server shares.
pub struct Kit {
    pub log: Arc<dyn Log>,
    /// Other servers on that log, if there may be some.
    pub peers: Option<Arc<dyn Peers>>,
    /// Where sessions live that end with their connection.
    pub passing: Arc<Memory>,
    pub messages: Option<Messages>,
    pub models: Arc<dyn Models>,
    pub instructions: Instructions,
    pub tools: ToolList,
    pub tokens: Counted,
    pub places: Places,
    pub settings: Settings,
    pub limits: Limits,
    pub approval_timeout: Option<Duration>,
    /// How much runs at once.
    pub gates: Gates,
    /// Sessions in memory at once; 0 is any number.
    pub awake_sessions_max: usize,
    /// How long a session that nobody uses stays in memory.
    pub sleep_after: Duration,
    /// Unfinished turns go on by themselves.
    pub auto_resume: bool,
    pub meter: Arc<Meter>,
    pub audit: Audit,
}

/// Whether a session is kept, or ends with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    InStore,
    Passing,
}

impl Kit {
    /// The model that a client names, or what is wrong with the name.
    pub fn find_model(&self, name: &str) -> Result<Arc<dyn Model>, Refusal> {
        self.models.find(name).map_err(|why| {
            let shown: String = name.chars().take(80).collect();
            Refusal::BadSetting { why: format!("model: {shown:?} {why}") }
        })
    }

    pub(crate) fn log_of(&self, kept: Kept) -> &dyn Log {
        match kept {
            Kept::InStore => &*self.log,
            Kept::Passing => &*self.passing,
        }
    }
}

pub(crate) struct Actor<V: View> {
    id: SessionId,
    kit: Arc<Kit>,
    kept: Kept,
    writer: Box<dyn Writer>,
    state: State,
    live: Live,
    turns: Vec<Seq>,
    last_at: Timestamp,
    audience: Audience<V>,
    /// What was appended and is not safe yet, the oldest first, and whether the audience holds what
    /// follows from it.
    flushing: VecDeque<(Flushing, flush::Shown)>,
    /// When what was shown and not flushed must be.
    flush_at: Option<Instant>,
    /// No item is open whose growth is kept.
    growth_ends: bool,
    /// What has happened and nobody else knows.
    unwritten: record::Unwritten,
    tally: Tally,
    spans: spans::Spans,
    mailbox: mpsc::Receiver<Box<Request<V>>>,
    performers: Performers,
    running: HashMap<Seq, CancellationToken>,
    /// Where the running turn works.
    place: Option<(TurnId, Arc<Place>)>,
    room: room::Room,
    /// The one that was last asked for by name, and where it is counted.
    model: Option<(Arc<dyn Model>, Arc<ModelMeter>)>,
    /// The request that runs out next.
    due: Option<Due>,
    /// The server stops: what runs is wound down, and nothing begins.
    closing: bool,
    /// What was asked of this server while another one had the session.
    backlog: VecDeque<Box<Request<V>>>,
}

/// What a session that is taken over comes with.
pub(crate) struct Inherited<V: View> {
    pub audience: Audience<V>,
    pub backlog: VecDeque<Box<Request<V>>>,
}

/// What a session begins with.
pub(crate) struct Birth {
    pub id: SessionId,
    pub kept: Kept,
    /// For a new one, where they are not the server's own.
    pub settings: Option<Settings>,
    pub by: Who,
}

/// What the loop does after a request.
enum Flow {
    GoOn,
    End,
}

impl<V: View> Actor<V> {
    /// Takes over an opened session: closes what a crash left open, and makes a new one a session.
    pub(crate) async fn start(
        birth: Birth,
        kit: Arc<Kit>,
        opened: Opened,
        mailbox: mpsc::Receiver<Box<Request<V>>>,
        inherited: Option<Inherited<V>>,
    ) -> Result<Actor<V>, LogError> {
        let Birth { id, kept, settings, by } = birth;
        let Opened { writer, folded, live } = opened;
        let Folded { state, turns, damage, damage_told, last_at } = folded;
        let meter = kit.meter.clone();
        let fresh =
            || Inherited { audience: Audience::new(meter.clone()), backlog: VecDeque::new() };
        let Inherited { mut audience, backlog } = inherited.unwrap_or_else(fresh);
        if let (Some(peers), Kept::InStore) = (&kit.peers, kept) {
            audience.feed(Feed::new(peers.clone(), id.clone()));
        }
        let mut actor = Actor {
            id,
            kit,
            kept,
            writer,
            state,
            live,
            turns,
            last_at,
            audience,
            flushing: VecDeque::new(),
            flush_at: None,
            growth_ends: false,
            unwritten: record::Unwritten::default(),
            tally: Tally::open(meter),
            spans: spans::Spans::default(),
            mailbox,
            performers: Performers::default(),
            running: HashMap::new(),
            place: None,
            due: None,
            room: room::Room::default(),
            model: None,
            closing: false,
            backlog,
        };
        if let Err(error) = actor.take_up(settings, by, &damage, damage_told).await {
            actor.audience.end(&Ending::of(&error));
            return Err(error);
        }
        Ok(actor)
    }

    async fn take_up(
        &mut self,
        settings: Option<Settings>,
        by: Who,
        damage: &[Damage],
        damage_told: Option<Text>,
    ) -> Result<(), LogError> {
        if self.state.settings().is_none() {
            let settings = settings.unwrap_or_else(|| self.kit.settings.clone());
            self.record(vec![Event::SessionCreated { settings, by }]).await?;
        }
        let journal = self.kit.places.common.journal.as_ref();
        let found = journal.map(|journal| journal.found(&self.id)).unwrap_or_default();
        self.take_up_undo(&found).await?;
        let closing = recover_with(&self.state, &self.live, &found);
        self.record(closing).await?;
        // Until then it is all that is left of what a crash cut off.
        self.flushed().await?;
        self.live = Live::of(&self.state);
        self.writer.forget_growth().await?;
        let shown: Vec<Growth> = self.live.growths().collect();
        self.writer.grow(&shown).await?;
        // The server may allow less than it did when the session last ran.
        if self.state.mode() == Mode::Bypass && !self.kit.limits.bypass_allowed {
            let (mode, by) = (Mode::default(), Who::via("server"));
            self.record(vec![Event::ModeSet { mode, by }]).await?;
        }
        if let Some(text) = damage_text(damage)
            && damage_told.as_deref() != Some(text.as_str())
        {
            tracing::warn!(session = %self.id, "{text}");
            let (level, code) = (Level::Warning, DAMAGED_CODE.into());
            self.record(vec![Event::Noticed { level, text: text.into(), code }]).await?;
        }
        if self.kit.auto_resume && self.state.interrupted().is_some_and(|i| !i.by_person) {
            let resume = Command::Resume { by: Who::via(AUTO_RESUME_VIA) };
            let resumed = decide(&self.state, resume, &self.kit.limits);
            self.record(resumed.unwrap_or_default()).await?;
        }
        self.flushed().await?;
        Ok(())
    }

    /// A session whose model cannot be had any more goes on with the server's own; of one that is
    /// there the window may be known better by now.
    pub(super) async fn check_model(&mut self) -> Result<(), LogError> {
        let Some(settings) = self.state.settings() else { return Ok(()) };
        let (wanted, before) = (settings.model.clone(), settings.tokens_max);
        let known = self.model.as_ref().map(|(model, _)| model);
        // Who runs a name does not change while the server runs.
        let found = match known.filter(|model| model.name() == &*wanted) {
            Some(known) => Ok(known.clone()),
            None => self.kit.models.find(&wanted),
        };
        let why = match found {
            Ok(model) if before.is_none_or(|before| before == model.card().tokens_max) => {
                return Ok(());
            }
            Ok(model) => {
                let tokens_max = model.card().tokens_max;
                let (setting, by) =
                    (Setting::Model { model: wanted, tokens_max }, Who::via("server"));
                return self.record(vec![Event::SettingSet { setting, by }]).await;
            }
            Err(why) => why,
        };
        let preset = self.kit.models.preset();
        let (model, tokens_max) = (Text::from(preset.name()), preset.card().tokens_max);
        let text = format!("Model {wanted:?} {why}. The session goes on with {model:?}.").into();
        let setting = Setting::Model { model, tokens_max };
        let (level, code) = (Level::Warning, "model_gone".into());
        let by = Who::via("server");
        let told = Event::Noticed { level, text, code };
        self.record(vec![Event::SettingSet { setting, by }, told]).await
    }

    /// Runs until the session sleeps, is closed, or its store fails.
    pub(crate) async fn run(mut self) -> Ending {
        let ending = match self.serve().await {
            Ok(()) => {
                self.writer.keep(&self.state, Occasion::Leaving).await;
                Ending::Closed
            }
            Err(error) if error.is_lost() => {
                tracing::warn!(session = %self.id, %error, "another server has the session now");
                Ending::Moved
            }
            Err(error) => {
                tracing::error!(session = %self.id, %error, "the session's store failed");
                self.kit.meter.store_failed();
                Ending::of(&error)
            }
        };
        self.audience.end(&ending);
        ending
    }

    async fn serve(&mut self) -> Result<(), LogError> {
        self.work().await?;
        // What is on its way to the disk is told of.
        self.flushed().await
    }

    async fn work(&mut self) -> Result<(), LogError> {
        let mut idle_since = None;
        self.advance().await?;
        while let Some(request) = self.backlog.pop_front() {
            if let Flow::End = Box::pin(self.handle(*request)).await? {
                return Ok(());
            }
            self.advance().await?;
        }
        loop {
            if let Some(first) = self.settle().await? {
                self.take_in(first).await?;
                self.advance().await?;
                continue;
            }
            self.audience.tidy();
            let due = self.due();
            let idle = self.audience.is_empty() && self.state.turn().is_none();
            idle_since = idle.then(|| idle_since.unwrap_or_else(Instant::now));
            let sleeps_at = idle_since.unwrap_or_else(Instant::now) + self.kit.sleep_after;
            tokio::select! {
                request = self.mailbox.recv() => match request {
                    Some(request) => {
                        idle_since = idle_since.filter(|_| request.is_of_servers());
                        match Box::pin(self.handle(*request)).await? {
                            Flow::GoOn => {}
                            Flow::End => return Ok(()),
                        }
                    }
                    None => return Ok(()),
                },
                flushed = next_flushed(&mut self.flushing), if !self.flushing.is_empty() => {
                    self.release(flushed).await?;
                }
                () = flush_due(self.flush_at) => {
                    self.flush_owed();
                    continue;
                }
                Some(first) = self.performers.next(), if !self.performers.is_empty() => {
                    if !self.take_in(first).await? {
                        continue;
                    }
                }
                Some(due) = run_out(due) => {
                    let timeout = self.kit.approval_timeout.map(|t| t.as_millis() as i64);
                    let events = expire(&self.state, due.at, timeout);
                    self.record(events).await?;
                }
                () = self.audience.left() => {}
                () = self.audience.feed_due() => {}
                () = tokio::time::sleep_until(sleeps_at), if idle => return Ok(()),
            }
            self.advance().await?;
        }
    }

    async fn handle(&mut self, request: Request<V>) -> Result<Flow, LogError> {
        let request = match request {
            Request::Command { command, reply } => {
                let done = self.command(command).await;
                return self.answer(reply, done);
            }
            Request::SettleWithPatch { wait, patch, always, by, reply } => {
                let done = self.settle_with_patch(wait, &patch, always, by).await;
                return self.answer(reply, done);
            }
            request => request,
        };
        // Whoever looks sees only what is safe.
        self.flushed().await?;
        match request {
            Request::Command { .. } | Request::SettleWithPatch { .. } => {}
            Request::Attach { ask, reply } => {
                if let Err(error) = self.confirm(ask.since).await {
                    let _ = reply.send(Err(CommandError::told_of(&error)));
                    return Err(error);
                }
                let attached = self.stand().attach(ask).await;
                let _ = reply.send(attached.map_err(CommandError::from));
            }
            request @ (Request::Beginnings { .. }
            | Request::ContextInfo { .. }
            | Request::Look { .. }
            | Request::Shown { .. }) => self.stand().tell(request),
            Request::Remote { asked, reply } => return self.remote(asked, reply).await,
            Request::OwnerChanged | Request::LetGo => {
                if self.is_lost() {
                    return Err(LogError::lost(format!("session {}", self.id)));
                }
            }
            Request::Audit { line } => {
                let line = line(self.now(), self.state.last_seq());
                self.writer.audit(&line).await?;
            }
            Request::CloseIfIdle { reply } => {
                self.audience.tidy();
                let idle = self.audience.is_empty() && self.state.turn().is_none();
                let _ = reply.send(idle);
                if idle {
                    return Ok(Flow::End);
                }
            }
            Request::Close => {
                self.close().await?;
                return Ok(Flow::End);
            }
            Request::Undo { which, by, reply } => {
                let done = self.undo(which, by).await;
                let failed = match &done {
                    Err(UndoError::Store(why)) => Some(LogError::store("session", why)),
                    Ok(_) | Err(UndoError::Refused(_) | UndoError::Conflicts(_)) => None,
                };
                let _ = reply.send(done);
                return failed.map_or(Ok(Flow::GoOn), Err);
            }
        }
        Ok(Flow::GoOn)
    }

    async fn command(&mut self, command: Command) -> Answered {
        if matches!(command, Command::Resume { .. } | Command::Compact { .. }) {
            self.check_model().await?;
        }
        let events =
            decide(&self.state, command, &self.kit.limits).map_err(CommandError::Refused)?;
        let queues = |event: &Event| matches!(event, Event::MessageQueued { .. });
        let at = events.iter().position(queues).map(|at| at as u64 + 1);
        let last = self.state.last_seq().0;
        self.take(events).await;
        Ok(Recorded { message: at.map(|at| MessageId(Seq(last + at))) })
    }

    async fn settle_with_patch(
        &mut self,
        wait: WaitRef,
        patch: &Text,
        always: bool,
        by: Who,
    ) -> Answered {
        let proposed = self.proposed_patch(wait);
        let shown = proposed.as_deref().map(shown::patch);
        if proposed.as_ref() == Some(patch) || shown.as_deref() == Some(&**patch) {
            let reply = match always {
                true => WaitReply::ApproveAlways,
                false => WaitReply::Approve { message: None },
            };
            return self.command(Command::Settle { wait, reply, by }).await;
        }
        // Somebody changed what was shown: the codes in it stand for what they stood for there.
        let patch: Text = match shown != proposed.as_deref().map(str::to_owned) {
            true => shown::read_back(patch).into(),
            false => patch.clone(),
        };
        let args: Text = serde_json::json!({ "patch": patch }).to_string().into();
        let place = self.place();
        let judgement = perform::judge("apply_patch", &args, &place).await;
        if judgement.patch.is_none() {
            // It does not parse or does not apply: the request stays open.
            let reason = judgement.reason;
            return Err(CommandError::Refused(Refusal::Refused { reason }));
        }
        let judgement = Box::new(judgement);
        let reply = WaitReply::ApproveInstead { args, judgement, always };
        self.command(Command::Settle { wait, reply, by }).await
    }

    /// The patch that a wait is about; clients may send it back as it was, or as it was shown.
    fn proposed_patch(&self, wait: WaitRef) -> Option<Text> {
        let turn = self.state.turn()?;
        let open = match wait {
            WaitRef::Presented => turn.waits.values().next()?,
            WaitRef::Id(id) => turn.waits.get(&id)?,
            WaitRef::Item(item) => turn.waits.values().find(|open| open.item == item)?,
        };
        match turn.items.get(&open.item)?.tool.as_ref()? {
            ToolPhase::Waiting { judgement, .. } => judgement.patch.clone(),
            _ => None,
        }
    }

    fn stand(&mut self) -> Stand<'_, V> {
        Stand {
            id: &self.id,
            kit: &self.kit,
            log: self.kit.log_of(self.kept),
            state: &self.state,
            live: &self.live,
            turns: &self.turns,
            audience: &mut self.audience,
        }
    }

    /// Never goes back, whatever the clock does.
    fn now(&mut self) -> Timestamp {
        self.last_at = self.last_at.max(clock::now());
        self.last_at
    }
}

fn damage_text(damage: &[Damage]) -> Option<String> {
    const SHOWN_MAX: usize = 3;
    if damage.is_empty() {
        return None;
    }
    let shown: Vec<String> =
        damage.iter().take(SHOWN_MAX).map(|d| format!("line {}: {}", d.line, d.why)).collect();
    let more = match damage.len().saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown = shown.join("; ");
    Some(format!("The session's file was damaged; everything legible was kept. {shown}{more}"))
}
