//! Opens a session: folds what it holds and fences off whoever had it before, in the log and in the
//! journal.

use std::collections::VecDeque;
use std::sync::Arc;

use async_nats::header::HeaderMap;
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use polyloop_session::{Live, SessionId};

use super::super::files::index::Beside;
use super::super::files::journal;
use super::super::files::load::Pass;
use super::super::{Folded, LogError, OpenMode, Opened};
use super::direct::Stored;
use super::leased::Leased;
use super::message::Marks;
use super::publish::{Publish, Refused};
use super::records::Record;
use super::writer::NatsWriter;
use super::{Store, failed, lock};

/// How often a fence is tried while others write.
const TRIES_MAX: u32 = 1_000;
const ROLLUP: &str = "Nats-Rollup";
const OTHERS_WRITE: &str = "others do not stop writing it";

/// The number of a fence: the token that later messages of its writer carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch(pub u64);

/// A log that nobody else writes any more.
struct Taken {
    pass: Pass,
    epoch: Epoch,
    /// What was read behind the index.
    since_bytes: usize,
}

pub(super) async fn open(
    store: &Arc<Store>,
    id: &SessionId,
    mode: OpenMode,
) -> Result<Option<Opened>, LogError> {
    let record = match (store.record(id).await?, mode) {
        (Some((record, _)), _) => record,
        (None, OpenMode::Existing) => return Ok(None),
        (None, OpenMode::OrCreate) => made(store, id).await?,
    };
    let Taken { pass, epoch, since_bytes } = store.taken(id, &record).await?;
    let (live, live_last) = store.taken_live(id, &record).await?;
    let mut encoder = store.codec.encoder(id);
    for entry in &pass.turn {
        encoder.lines(entry);
    }
    let summary = pass.summary(id);
    let Pass { folded, last, lines, places, .. } = pass;
    let subject = store.streams.log_subject(&record.birth);
    let leased = Leased {
        subject,
        summary,
        places,
        recent: VecDeque::new(),
        turns: folded.turns.clone(),
        beside: Beside::of(&folded),
        since_bytes,
        newest: epoch.0,
        epoch,
    };
    lock(&store.leased).insert(id.clone(), leased);
    let grown = (live_last, !live.is_empty());
    let writer = NatsWriter::new(store.clone(), record, encoder, epoch, (last, lines), grown);
    Ok(Some(Opened { writer: Box::new(writer), folded, live }))
}

async fn made(store: &Store, id: &SessionId) -> Result<Record, LogError> {
    let record = Record::new(id);
    if store.create_record(&record).await? {
        return Ok(record);
    }
    // Somebody else was faster.
    match store.record(id).await? {
        Some((record, _)) => Ok(record),
        None => Err(failed(id, "it was put away while it was being made")),
    }
}

impl Store {
    /// What the log holds up to a fence of ours, behind which nobody else writes.
    async fn taken(&self, id: &SessionId, record: &Record) -> Result<Taken, LogError> {
        let subject = self.streams.log_subject(&record.birth);
        let (mut pass, mut upto) = self.indexed(record).await.unwrap_or_default();
        let mut since_bytes = 0;
        for _ in 0..TRIES_MAX {
            since_bytes += self.read_on(id, &subject, &mut pass, &mut upto).await?;
            let marks = Marks { seq: pass.last, lines: pass.lines, ..Marks::default() };
            match self.fence_behind(&subject, marks, upto).await {
                Ok(epoch) => return Ok(Taken { pass, epoch, since_bytes }),
                Err(Refused::Moved { .. }) => {}
                Err(Refused::Failed { why }) => return Err(failed(id, why)),
            }
        }
        Err(failed(id, OTHERS_WRITE))
    }

    /// Folds the messages after a number, up to the newest. Gives the bytes that were read.
    async fn read_on(
        &self,
        id: &SessionId,
        subject: &str,
        pass: &mut Pass,
        upto: &mut u64,
    ) -> Result<usize, LogError> {
        let newest = self.newest_number(&self.streams.log, subject).await?;
        let mut bytes = 0;
        while *upto < newest {
            for message in self.after(&self.streams.log, subject, *upto).await? {
                *upto = message.sequence;
                bytes += self.fold(id, pass, &message).await?;
            }
        }
        Ok(bytes)
    }

    /// What a session holds, while whoever has it goes on writing. No batch came in while the
    /// journal was read, so both are of one moment.
    pub(super) async fn peek(&self, id: &SessionId) -> Result<Option<(Folded, Live)>, LogError> {
        let Some((record, _)) = self.record(id).await? else { return Ok(None) };
        let (log, live) = (&self.streams.log, self.streams.live_subject(&record.birth));
        let subject = self.streams.log_subject(&record.birth);
        let (mut pass, mut upto) = self.indexed(&record).await.unwrap_or_default();
        let (mut records, mut live_upto) = (Vec::new(), 0);
        for _ in 0..TRIES_MAX {
            self.read_on(id, &subject, &mut pass, &mut upto).await?;
            self.read_live(&live, &mut records, &mut live_upto).await?;
            if self.newest_number(log, &subject).await? == upto {
                return Ok(Some((pass.folded, journal::read(&records).0)));
            }
        }
        Err(failed(id, OTHERS_WRITE))
    }

    /// Gives the bytes that were read.
    async fn fold(
        &self,
        id: &SessionId,
        pass: &mut Pass,
        message: &Stored,
    ) -> Result<usize, LogError> {
        let Some(marks) = Marks::read(&message.headers) else { return Ok(0) };
        let mut bytes = 0;
        for read in self.lines_of(id, &marks, message, |_| true).await? {
            let at = self.codec.line_time(&read.text);
            bytes += read.bytes;
            pass.line(read.line, at, message.sequence);
        }
        Ok(bytes)
    }

    async fn fence_behind(
        &self,
        subject: &str,
        marks: Marks,
        behind: u64,
    ) -> Result<Epoch, Refused> {
        let by = uuid::Uuid::new_v4().simple().to_string();
        let headers = Marks { by: by.clone(), ..marks }.headers();
        let (stream, payload) = (&self.streams.log, Bytes::new());
        let fence = Publish { stream, subject, headers, payload, behind };
        let is_ours = |newest: &Stored| Marks::read(&newest.headers).is_some_and(|m| m.by == by);
        self.streams.publish(&fence, is_ours).await.map(Epoch)
    }

    /// Keeps everybody from writing a session.
    pub(super) async fn fence(&self, record: &Record, id: &SessionId) -> Result<(), LogError> {
        let subject = self.streams.log_subject(&record.birth);
        for _ in 0..TRIES_MAX {
            let newest = self.streams.newest(&self.streams.log, &subject).await?;
            let behind = newest.as_ref().map_or(0, |newest| newest.sequence);
            let marks = newest.and_then(|newest| Marks::read(&newest.headers)).unwrap_or_default();
            match self.fence_behind(&subject, Marks { object: None, ..marks }, behind).await {
                Ok(_) => return Ok(()),
                Err(Refused::Moved { .. }) => {}
                Err(Refused::Failed { why }) => return Err(failed(id, why)),
            }
        }
        Err(failed(id, OTHERS_WRITE))
    }

    async fn newest_number(&self, stream: &Stream, subject: &str) -> Result<u64, LogError> {
        Ok(self.streams.newest(stream, subject).await?.map_or(0, |newest| newest.sequence))
    }

    /// What the journal holds up to a fence of ours, and the fence's number.
    async fn taken_live(&self, id: &SessionId, record: &Record) -> Result<(Live, u64), LogError> {
        let (stream, subject) = (&self.streams.live, self.streams.live_subject(&record.birth));
        let (mut records, mut upto) = (Vec::new(), 0);
        for _ in 0..TRIES_MAX {
            self.read_live(&subject, &mut records, &mut upto).await?;
            let by = uuid::Uuid::new_v4().simple().to_string();
            let headers = Marks { by: by.clone(), ..Marks::default() }.headers();
            let payload = Bytes::new();
            let fence = Publish { stream, subject: &subject, headers, payload, behind: upto };
            let is_ours =
                |newest: &Stored| Marks::read(&newest.headers).is_some_and(|m| m.by == by);
            match self.streams.publish(&fence, is_ours).await {
                Ok(number) => return Ok((journal::read(&records).0, number)),
                Err(Refused::Moved { .. }) => {}
                Err(Refused::Failed { why }) => return Err(failed(id, why)),
            }
        }
        Err(failed(id, OTHERS_WRITE))
    }

    /// Adds the journal's records after a number, up to the newest.
    pub(super) async fn read_live(
        &self,
        subject: &str,
        records: &mut Vec<u8>,
        upto: &mut u64,
    ) -> Result<(), LogError> {
        let newest = self.newest_number(&self.streams.live, subject).await?;
        while *upto < newest {
            for message in self.after(&self.streams.live, subject, *upto).await? {
                *upto = message.sequence;
                if message.headers.get(ROLLUP).is_some() {
                    records.clear();
                }
                records.extend_from_slice(&message.payload);
            }
        }
        Ok(())
    }
}

/// Makes a message stand for all of its subject before it.
pub(super) fn roll_up(headers: &mut HeaderMap) {
    headers.insert(ROLLUP, "sub");
}
