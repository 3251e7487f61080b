//! Brings one who comes to a session up to date: what was missed, the running turn, what is open,
//! what waits for an answer. The same code for a connection and for the room.

use std::sync::Arc;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use polyloop_agent::log::LogError;
use polyloop_agent::sessions::Handle;
use polyloop_dialects::{Cursor, Dialect, Frame, View};
use polyloop_session::event::Work;
use polyloop_session::{Event, Growth, LogEntry, MessageId, Seq, TurnId, Update};

use crate::view::DialectView;

/// Where a run's count of events goes on.
pub type Count = (Option<TurnId>, u64);

/// What one who comes gets next.
#[derive(Default)]
pub struct Batch {
    /// The count with which the client's run goes on; once, before any frame.
    pub count: Option<Count>,
    pub frames: Vec<Frame>,
}

pub struct CatchUp {
    handle: Handle<DialectView>,
    view: View,
    entries: BoxStream<'static, Result<Arc<LogEntry>, LogError>>,
    from: Seq,
    cursor: Cursor,
    is_new: bool,
    /// What is still asked is shown again.
    reminds: bool,
    resumed: bool,
    live: Option<Vec<Growth>>,
    waiting: Vec<MessageId>,
}

/// The moment at which somebody comes.
pub struct Moment {
    pub head: Seq,
    pub from: Seq,
    pub live: Vec<Growth>,
    /// Messages up to `from` that wait for their turn.
    pub waiting: Vec<MessageId>,
}

impl CatchUp {
    pub fn new(
        dialect: &'static dyn Dialect,
        handle: &Handle<DialectView>,
        moment: Moment,
        since: Option<Cursor>,
    ) -> CatchUp {
        let Moment { head, from, live, waiting } = moment;
        let is_new = since.is_none();
        let cursor = since.unwrap_or_else(|| Cursor::at(head));
        CatchUp {
            handle: handle.clone(),
            view: View::new(dialect, handle.id(), from),
            entries: entries(handle, from, head).fuse().boxed(),
            from,
            cursor: Cursor { seq: cursor.seq.min(head), ..cursor },
            is_new,
            reminds: true,
            resumed: false,
            live: Some(live),
            waiting,
        }
    }

    /// For one who was there all along, and knows what is still asked.
    pub fn leave_out_reminders(&mut self) {
        self.reminds = false;
    }

    /// The next frames; `None` when the client has everything up to the head.
    pub async fn next(&mut self) -> Result<Option<Batch>, LogError> {
        while let Some(entry) = self.entries.next().await {
            let entry = entry?;
            self.recall(&entry).await?;
            if entry.seq <= self.cursor.seq {
                self.view.skip(&entry);
                continue;
            }
            // Not at the cursor's own entry, which may be one that cannot be read.
            let count = self.resume();
            let next = self.cursor.seq.next();
            let parts = if entry.seq == next { self.cursor.parts } else { 0 };
            let frames = self.view.see_entry(&entry, parts);
            return Ok(Some(Batch { count, frames }));
        }
        let Some(live) = self.live.take() else { return Ok(None) };
        let count = self.resume();
        let mut frames = if self.is_new { self.view.opening() } else { Vec::new() };
        for growth in live {
            frames.extend(self.view.see(&Update::Grew(growth)));
        }
        for message in std::mem::take(&mut self.waiting) {
            self.recall_message(message).await?;
        }
        // The view knows from now on what is presented, whoever is shown it.
        let pending = self.view.pending();
        if self.reminds {
            frames.extend(pending);
        }
        Ok(Some(Batch { count, frames }))
    }

    /// Where the client is with all that was given so far.
    pub fn place(&self) -> Cursor {
        self.view.cursor()
    }

    pub fn into_view(self) -> View {
        self.view
    }

    fn resume(&mut self) -> Option<Count> {
        if std::mem::replace(&mut self.resumed, true) {
            return None;
        }
        self.view.resume(&self.cursor);
        let (turn, events) = self.view.run();
        Some((turn, self.cursor.events.unwrap_or(events)))
    }

    /// An entry may name a message from before the place where the view begins.
    async fn recall(&mut self, entry: &LogEntry) -> Result<(), LogError> {
        let (Event::TurnStarted { work: Work::Message { message }, .. }
        | Event::MessageDropped { message, .. }) = &entry.event
        else {
            return Ok(());
        };
        match message.0 <= self.from {
            true => self.recall_message(*message).await,
            false => Ok(()),
        }
    }

    async fn recall_message(&mut self, MessageId(seq): MessageId) -> Result<(), LogError> {
        let named = self.handle.read(seq.before(), seq).await?;
        named.iter().for_each(|entry| self.view.recall(entry));
        Ok(())
    }
}

/// Entries after `from` up to `head`, page by page.
fn entries(
    handle: &Handle<DialectView>,
    from: Seq,
    head: Seq,
) -> impl stream::Stream<Item = Result<Arc<LogEntry>, LogError>> + use<> {
    let handle = handle.clone();
    let pages = stream::unfold(Some(from), move |after| {
        let handle = handle.clone();
        async move {
            let after = after.filter(|after| *after < head)?;
            match handle.read(after, head).await {
                Ok(page) => {
                    let next = page.last().map(|entry| entry.seq);
                    Some((page.into_iter().map(Ok).collect::<Vec<_>>(), next))
                }
                Err(error) => Some((vec![Err(error)], None)),
            }
        }
    });
    pages.flat_map(stream::iter)
}
