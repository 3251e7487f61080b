//! The one way for everything that happens in a session.
//!
//! What happens is numbered and applied at once, and written down before anybody is shown it or
//! told of it. In between the model is asked what follows from it, if anything does: what is asked
//! may be ahead of the log, what is seen never is.

use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use futures_util::StreamExt;
use polyloop_session::event::Level;
use polyloop_session::policy::{Leave, Mode};
use polyloop_session::{Event, Growth, LogEntry, Update};

use super::flush::Shown;
use super::{Actor, Kept, decisions, noted};
use crate::log::{Flush, LogError, Occasion};
use crate::perform::Performed;
use crate::subscriber::{Ending, Tell, View};
use crate::tokens;

/// What was applied and is not written down yet.
#[derive(Default)]
pub(super) struct Unwritten {
    entries: Vec<Arc<LogEntry>>,
    /// What it must survive.
    flush: Flush,
    /// Who is told once it is written.
    told: Vec<Box<Tell>>,
    /// Nothing grows any more behind it.
    closes_growth: bool,
    ends_turn: bool,
    /// A model is about to be asked.
    asks: bool,
}

impl<V: View> Actor<V> {
    /// Numbers and applies. What is taken is written down by the next `settle`.
    pub(super) async fn take(&mut self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let events = tokens::fill(&self.kit.tokens.with, self.with_warning(events)).await;
        let (at, mut seq) = (self.now(), self.state.last_seq());
        let was_open = !self.live.is_empty();
        for event in events {
            seq = seq.next();
            let entry = Arc::new(LogEntry { seq, at, event });
            self.apply(&entry);
            self.unwritten.flush = self.unwritten.flush.max(survives(&entry.event));
            self.unwritten.ends_turn |= matches!(entry.event, Event::TurnEnded { .. });
            self.unwritten.entries.push(entry);
        }
        self.unwritten.closes_growth |= was_open && self.live.is_empty();
        self.tally.stand(&self.state);
    }

    fn apply(&mut self, entry: &Arc<LogEntry>) {
        decisions::tell(self.id.as_str(), &self.state, &entry.event);
        noted::note(&self.kit.audit, self.id.as_str(), &self.state, entry);
        self.spans.see(self.id.as_str(), &self.state, entry, &self.tally);
        self.tally.see(&self.state, &entry.event);
        self.state.apply(entry);
        match &entry.event {
            event if event.is_beginning() => self.turns.push(entry.seq),
            Event::TurnEnded { .. } => self.place = None,
            Event::ItemCompleted { item, .. } => {
                self.live.close(*item);
                self.running.remove(&item.0);
            }
            Event::SandboxRefused { item, .. } => {
                self.running.remove(&item.0);
            }
            Event::CallEnded { call, .. } => {
                self.running.remove(&call.0);
            }
            _ => {}
        }
    }

    /// Takes events and writes them down at once.
    pub(super) async fn record(&mut self, events: Vec<Event>) -> Result<(), LogError> {
        self.take(events).await;
        self.write_out().await
    }

    pub(super) fn about_to_ask(&mut self) {
        self.unwritten.asks = true;
    }

    /// Tells somebody something once what was taken is written and safe.
    pub(super) fn tell(&mut self, tell: impl FnOnce(Result<(), &Ending>) + Send + 'static) {
        match self.unwritten.entries.is_empty() {
            true => {
                self.audience.tell(Box::new(tell));
                self.audience.deliver();
            }
            false => self.unwritten.told.push(Box::new(tell)),
        }
    }

    /// Writes down and sends what was taken, once the model that it asks has been asked. If that has
    /// said something at once, gives it instead: it is written with what it was asked.
    pub(super) async fn settle(&mut self) -> Result<Option<Performed>, LogError> {
        let mut first = None;
        if std::mem::take(&mut self.unwritten.asks) && !self.unwritten.entries.is_empty() {
            first = self.performed().await;
            if first.is_none() {
                // Whatever arrived meanwhile is seen when this thread has looked at its sockets.
                tokio::task::yield_now().await;
                first = self.performed().await;
            }
        }
        if first.is_none() {
            self.write_out().await?;
        }
        Ok(first)
    }

    /// What performers have ready.
    async fn performed(&mut self) -> Option<Performed> {
        let performers = &mut self.performers;
        std::future::poll_fn(|cx| match performers.poll_next_unpin(cx) {
            Poll::Ready(performed) => Poll::Ready(performed),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    /// Appends what was taken, then sends it.
    pub(super) async fn write_out(&mut self) -> Result<(), LogError> {
        self.write_down().await?;
        self.audience.deliver();
        Ok(())
    }

    /// Appends what was taken. Whoever calls it sees to it that it is sent.
    async fn write_down(&mut self) -> Result<(), LogError> {
        let unwritten = std::mem::take(&mut self.unwritten);
        let Unwritten { entries, flush, told, closes_growth, ends_turn, asks } = unwritten;
        self.unwritten.asks = asks;
        if let Err(error) = self.append(&entries, flush).await {
            let ending = Ending::of(&error);
            told.into_iter().for_each(|tell| tell(Err(&ending)));
            return Err(error);
        }
        if ends_turn {
            // Before anybody sees the end, and asks for what was said.
            self.tell_messages();
        }
        for entry in entries {
            self.audience.send(&Update::Logged(entry));
        }
        told.into_iter().for_each(|tell| self.audience.tell(tell));
        if closes_growth || ends_turn {
            // Nobody waits for what is only tidied up.
            self.audience.deliver();
        }
        self.growth_ends |= closes_growth;
        self.end_growth().await?;
        if ends_turn {
            self.writer.keep(&self.state, Occasion::TurnEnded).await;
        }
        Ok(())
    }

    /// What was shown of an item stands until its completion is safe: if the flush fails, that is
    /// taken back.
    pub(super) async fn end_growth(&mut self) -> Result<(), LogError> {
        let is_held = self.flushing.iter().any(|(_, shown)| *shown == Shown::Held);
        if !self.growth_ends || is_held || !self.live.is_empty() {
            return Ok(());
        }
        self.growth_ends = false;
        self.writer.end_growth().await
    }

    async fn append(&mut self, entries: &[Arc<LogEntry>], flush: Flush) -> Result<(), LogError> {
        let Some(first) = entries.first() else { return Ok(()) };
        let begun = Instant::now();
        let flushing = self.writer.append_ahead(first.seq.before(), entries, flush).await?;
        self.kit.meter.appended(flush, begun.elapsed());
        match flushing {
            Some(flushing) => {
                // It flushes what came before it, too.
                self.flush_at = None;
                self.flushing.push_back((flushing, Shown::Held));
                self.audience.hold();
            }
            None => self.will_flush(flush),
        }
        Ok(())
    }

    /// Growth is kept, then sent.
    pub(super) async fn grow(&mut self, growths: Vec<Growth>) -> Result<(), LogError> {
        if growths.is_empty() {
            return Ok(());
        }
        self.write_down().await?;
        self.writer.grow(&growths).await?;
        for growth in growths {
            self.live.grow(&growth);
            self.audience.send(&Update::Grew(growth));
        }
        self.audience.deliver();
        self.flushed_if_much().await
    }

    /// Whoever chooses full-auto where there is no sandbox hears that it asks.
    fn with_warning(&self, mut events: Vec<Event>) -> Vec<Event> {
        let chosen = |event: &Event| match event {
            Event::ModeSet { mode, .. } => *mode == Mode::FullAuto,
            Event::SessionCreated { settings, .. } => settings.mode == Mode::FullAuto,
            _ => false,
        };
        if !self.kit.places.common.sandbox && events.iter().any(chosen) {
            let (level, code) = (Level::Warning, NO_SANDBOX_CODE.into());
            events.push(Event::Noticed { level, text: NO_SANDBOX_TEXT.into(), code });
        }
        events
    }

    /// The user messages are a projection, which follows the log at its own pace.
    fn tell_messages(&self) {
        if let (Kept::InStore, Some(messages)) = (self.kept, &self.kit.messages) {
            messages.touch(&self.id);
        }
    }
}

const NO_SANDBOX_CODE: &str = "no_sandbox";
const NO_SANDBOX_TEXT: &str = "There is no sandbox on this machine, so full-auto asks before it \
                               runs commands that may change something.";

/// What people said, decided and were given must survive the machine, not only the process; and
/// that a tool begins which may change something, or it would begin again. What follows from a
/// message may be shown meanwhile: only the message is lost with it.
fn survives(event: &Event) -> Flush {
    let must = match event {
        Event::MessageQueued { .. } => return Flush::Soon,
        Event::SessionCreated { .. }
        | Event::SessionClosed { .. }
        | Event::SessionReopened { .. }
        | Event::ModeSet { .. }
        | Event::SettingSet { .. }
        | Event::MessageDropped { .. }
        | Event::WaitSettled { .. }
        | Event::TurnStopping { .. }
        | Event::TurnEnded { .. } => true,
        Event::WaitWithdrawn { by, .. } => by.is_some(),
        Event::ToolStarted { leave, .. } => !matches!(leave, Some(Leave::Reads | Leave::Safe)),
        Event::ItemCompleted { result, .. } => result.is_some(),
        Event::SandboxRefused { .. } => true,
        Event::FilesTouched { .. } | Event::UndoStarted { .. } | Event::Undone { .. } => true,
        _ => false,
    };
    if must { Flush::Disk } else { Flush::Process }
}
