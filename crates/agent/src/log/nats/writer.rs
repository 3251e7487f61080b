//! Appends to one session: a batch at a time, the next when the last is acknowledged.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use polyloop_session::{Growth, LogEntry, Seq, State};

use super::super::files::journal;
use super::super::{Flush, Flushing, KEPT_BYTES_MAX, LineEncoder, LogError, Occasion, Writer};
use super::direct::Stored;
use super::index::{self, INDEX_BYTES_MIN};
use super::leased::Added;
use super::message::Marks;
use super::objects::kept_name;
use super::open::{Epoch, roll_up};
use super::publish::{Publish, Refused};
use super::records::Record;
use super::{Store, lock};

/// Why nothing more is written; it can be told several times.
#[derive(Clone)]
enum Failure {
    Moved { expected: Seq, found: Seq },
    Lost { what: String },
    Failed { what: String, why: String },
}

impl From<Failure> for LogError {
    fn from(failure: Failure) -> LogError {
        match failure {
            Failure::Moved { expected, found } => LogError::Conflict { expected, found },
            Failure::Lost { what } => LogError::Lost { what },
            Failure::Failed { what, why } => LogError::Store { what, why },
        }
    }
}

type Sent = Shared<BoxFuture<'static, Result<u64, Failure>>>;

pub(super) struct NatsWriter {
    store: Arc<Store>,
    record: Record,
    subject: String,
    live_subject: String,
    encoder: Box<dyn LineEncoder>,
    epoch: Epoch,
    last: Seq,
    lines: u64,
    /// The batch that is on its way, or the number of the last message.
    sent: Option<Sent>,
    newest: u64,
    live_newest: u64,
    /// There is growth to forget.
    has_grown: bool,
    /// Messages of this writer.
    count: u64,
    failure: Option<Failure>,
}

impl NatsWriter {
    pub fn new(
        store: Arc<Store>,
        record: Record,
        encoder: Box<dyn LineEncoder>,
        epoch: Epoch,
        (last, lines): (Seq, u64),
        (live_newest, has_grown): (u64, bool),
    ) -> NatsWriter {
        let subject = store.streams.log_subject(&record.birth);
        let live_subject = store.streams.live_subject(&record.birth);
        NatsWriter {
            store,
            record,
            subject,
            live_subject,
            encoder,
            epoch,
            last,
            lines,
            sent: None,
            newest: epoch.0,
            live_newest,
            has_grown,
            count: 0,
            failure: None,
        }
    }

    fn what(&self) -> String {
        format!("session {}", self.record.id)
    }

    fn failed(&self, why: impl ToString) -> Failure {
        Failure::Failed { what: self.what(), why: why.to_string() }
    }

    /// Waits until what was sent is acknowledged.
    async fn settled(&mut self) -> Result<(), LogError> {
        if let Some(sent) = self.sent.clone() {
            match sent.await {
                Ok(number) => self.newest = number,
                Err(failure) => self.failure = Some(failure),
            }
            self.sent = None;
        }
        match &self.failure {
            Some(failure) => Err(failure.clone().into()),
            None => Ok(()),
        }
    }

    /// The lines of entries; their long texts are in the object store when this returns.
    async fn encoded(&mut self, entries: &[Arc<LogEntry>]) -> Result<(String, Added), LogError> {
        let (mut text, mut added) = (String::new(), Added { lines: 0, bytes: 0 });
        for entry in entries {
            let lines = self.encoder.lines(entry);
            for (name, content) in &lines.blobs {
                let name = format!("{}/{name}", self.objects());
                self.store.put(&name, content.as_bytes()).await?;
                added.bytes += content.len();
            }
            added.lines += lines.lines.len() as u64;
            lines.lines.iter().for_each(|line| text.push_str(line));
        }
        added.bytes += text.len();
        Ok((text, added))
    }

    /// What the names of this writer's objects begin with: a writer that was fenced off writes
    /// none of the same name.
    fn objects(&self) -> String {
        format!("{}/{}", self.record.birth, self.epoch.0)
    }

    /// Marks and payload of the next message, with these lines behind what there is.
    async fn message(
        &mut self,
        last: Seq,
        text: String,
        lines: u64,
    ) -> Result<(Marks, Bytes), LogError> {
        self.count += 1;
        let by = format!("{}-{}", self.epoch.0, self.count);
        let objects = self.objects();
        let mut marks = Marks { seq: last, lines: self.lines + lines, objects, object: None, by };
        let mut payload = Bytes::from(text);
        if payload.len() > self.store.streams.payload_bytes_max() {
            let name = format!("{}/batch-{}", marks.objects, self.count);
            self.store.put(&name, &payload).await?;
            (marks.object, payload) = (Some(name), Bytes::new());
        }
        Ok((marks, payload))
    }

    /// Sends a message, and notes what it adds when it is acknowledged.
    fn send(
        &self,
        marks: Marks,
        payload: Bytes,
        entries: Vec<Arc<LogEntry>>,
        added: Added,
    ) -> Sent {
        let (store, record) = (self.store.clone(), self.record.clone());
        let (subject, behind) = (self.subject.clone(), self.newest);
        let (expected, epoch, what) = (self.last, self.epoch, self.what());
        let sending = tokio::spawn(async move {
            let by = marks.by.clone();
            let is_ours =
                |newest: &Stored| Marks::read(&newest.headers).is_some_and(|m| m.by == by);
            let (stream, headers) = (&store.streams.log, marks.headers());
            let publish = Publish { stream, subject: &subject, headers, payload, behind };
            let begun = Instant::now();
            match store.streams.publish(&publish, is_ours).await {
                Ok(number) => {
                    if let Some(meter) = store.meter.get() {
                        meter.flushed(begun.elapsed());
                    }
                    store.acknowledged(record, epoch, &entries, added, number);
                    Ok(number)
                }
                Err(refused) => {
                    store.released(&record.id, epoch);
                    Err(failure(refused, expected, what))
                }
            }
        });
        let what = self.what();
        let sent = sending.map(|sent| {
            sent.unwrap_or_else(|error| Err(Failure::Failed { what, why: error.to_string() }))
        });
        sent.boxed().shared()
    }

    /// The text of an index; `None` where there is nothing to gain. It is made between turns: the
    /// line encoder must see a turn from its start.
    fn index(&self, state: &State) -> Option<Vec<u8>> {
        let at_rest = state.turn().is_none() && state.may_be_kept();
        if !at_rest || state.last_seq() != self.last {
            return None;
        }
        let all = lock(&self.store.leased);
        let leased = all.get(&self.record.id).filter(|leased| leased.epoch == self.epoch)?;
        if leased.since_bytes < INDEX_BYTES_MIN {
            return None;
        }
        index::text(leased, state)
    }

    async fn journal(&mut self, payload: Bytes, rolls_up: bool) -> Result<(), LogError> {
        self.count += 1;
        let by = format!("{}-{}", self.epoch.0, self.count);
        let mut headers = Marks { by: by.clone(), ..Marks::default() }.headers();
        if rolls_up {
            roll_up(&mut headers);
        }
        let is_ours = |newest: &Stored| Marks::read(&newest.headers).is_some_and(|m| m.by == by);
        let (stream, subject) = (&self.store.streams.live, &self.live_subject);
        let publish = Publish { stream, subject, headers, payload, behind: self.live_newest };
        match self.store.streams.publish(&publish, is_ours).await {
            Ok(number) => {
                self.live_newest = number;
                Ok(())
            }
            Err(refused) => {
                let failure = match refused {
                    Refused::Moved { .. } => Failure::Lost { what: self.what() },
                    Refused::Failed { why } => self.failed(why),
                };
                self.store.released(&self.record.id, self.epoch);
                self.failure = Some(failure.clone());
                Err(failure.into())
            }
        }
    }
}

fn failure(refused: Refused, expected: Seq, what: String) -> Failure {
    match refused {
        Refused::Failed { why } => Failure::Failed { what, why },
        Refused::Moved { newest } => {
            let found = newest.and_then(|newest| Marks::read(&newest.headers));
            match found.map(|marks| marks.seq).filter(|found| *found != expected) {
                Some(found) => Failure::Moved { expected, found },
                None => Failure::Lost { what },
            }
        }
    }
}

impl Drop for NatsWriter {
    fn drop(&mut self) {
        self.store.released(&self.record.id, self.epoch);
    }
}

impl Writer for NatsWriter {
    fn append_ahead<'a>(
        &'a mut self,
        expected_last: Seq,
        entries: &'a [Arc<LogEntry>],
        _flush: Flush,
    ) -> BoxFuture<'a, Result<Option<Flushing>, LogError>> {
        async move {
            self.settled().await?;
            if self.last != expected_last {
                return Err(LogError::Conflict { expected: expected_last, found: self.last });
            }
            let last = entries.last().map_or(self.last, |entry| entry.seq);
            let made = async {
                let (text, added) = self.encoded(entries).await?;
                let (marks, payload) = self.message(last, text, added.lines).await?;
                Ok::<_, LogError>((marks, payload, added))
            };
            let (marks, payload, added) = match made.await {
                Ok(made) => made,
                Err(error) => {
                    // The encoder has seen entries that the log does not hold.
                    self.failure = Some(self.failed(&error));
                    return Err(error);
                }
            };
            let sent = self.send(marks, payload, entries.to_vec(), added);
            self.sent = Some(sent.clone());
            (self.last, self.lines) = (last, self.lines + added.lines);
            Ok(Some(async move { Ok(sent.await.map(drop)?) }.boxed()))
        }
        .boxed()
    }

    /// By a message that says nothing: what is read may be old, what is taken in is not.
    fn confirmed(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        async move {
            self.settled().await?;
            let (marks, payload) = self.message(self.last, String::new(), 0).await?;
            let nothing = Added { lines: 0, bytes: 0 };
            self.sent = Some(self.send(marks, payload, Vec::new(), nothing));
            self.settled().await
        }
        .boxed()
    }

    fn grow<'a>(&'a mut self, growths: &'a [Growth]) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            if let Some(failure) = &self.failure {
                return Err(failure.clone().into());
            }
            let mut records = Vec::new();
            journal::write(growths, &mut records);
            self.has_grown = true;
            let mut records = Bytes::from(records);
            // Whoever reads them puts them together again.
            let most = self.store.streams.payload_bytes_max();
            while records.len() > most {
                let piece = records.split_to(most);
                self.journal(piece, false).await?;
            }
            self.journal(records, false).await
        }
        .boxed()
    }

    fn forget_growth(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        async move {
            if !std::mem::take(&mut self.has_grown) {
                return Ok(());
            }
            // What takes its place must be there first.
            self.settled().await?;
            self.journal(Bytes::new(), true).await
        }
        .boxed()
    }

    fn audit<'a>(&'a mut self, line: &'a str) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            self.settled().await?;
            let text = format!("{}\n", line.trim_end());
            let added = Added { lines: 1, bytes: text.len() };
            let (marks, payload) = self.message(self.last, text, added.lines).await?;
            self.sent = Some(self.send(marks, payload, Vec::new(), added));
            self.lines += 1;
            Ok(())
        }
        .boxed()
    }

    fn keep_content<'a>(
        &'a mut self,
        hash: &'a str,
        content: &'a Bytes,
    ) -> BoxFuture<'a, Result<bool, LogError>> {
        async move {
            self.settled().await?;
            let bytes = self.record.kept_bytes + content.len() as u64;
            if bytes > KEPT_BYTES_MAX {
                return Ok(false);
            }
            self.store.put(&kept_name(&self.record.birth, hash), content).await?;
            self.record.kept_bytes = bytes;
            Ok(true)
        }
        .boxed()
    }

    fn keep<'a>(&'a mut self, state: &'a State, occasion: Occasion) -> BoxFuture<'a, ()> {
        async move {
            // That a turn ended is shown by lists, so its record is written as it is.
            if occasion == Occasion::TurnEnded || self.settled().await.is_err() {
                return;
            }
            let Some(record) = self.store.summed(&self.record, self.epoch) else { return };
            if let Err(error) = self.store.write_record(&record).await {
                tracing::warn!(session = %record.id, %error, "its record is behind");
            }
            let Some(text) = self.index(state) else { return };
            // Without one the session is read from an earlier place, or whole.
            if let Err(error) = self.store.keep_index(&record, &text).await {
                tracing::debug!(session = %record.id, %error, "no index");
            }
        }
        .boxed()
    }
}
