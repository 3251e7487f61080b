//! Copies a session's messages up to an entry, under a birth of its own; its record comes last and
//! makes it a session.
//!
//! Long texts stay where they are: a copied message says where that is. Lines about one client
//! alone are left out.

use std::sync::Arc;

use bytes::Bytes;
use polyloop_session::{LogEntry, Seq, SessionId, Timestamp};

use super::super::files::journal;
use super::super::files::load::Pass;
use super::super::{Fork, ForkedAt, Line, LogError, TakenGrowth};
use super::direct::Stored;
use super::message::Marks;
use super::publish::{Publish, Refused};
use super::records::Record;
use super::{Store, failed};

pub(super) async fn fork(store: &Arc<Store>, fork: &Fork) -> Result<ForkedAt, LogError> {
    let Some((source, _)) = store.record(&fork.from).await? else {
        return Ok(ForkedAt::NotFound);
    };
    let subject = store.streams.log_subject(&source.birth);
    let newest = store.streams.newest(&store.streams.log, &subject).await?;
    let end = newest.as_ref().map_or(0, |newest| newest.sequence);
    let marks = newest.and_then(|newest| Marks::read(&newest.headers)).unwrap_or_default();
    let (last, upto) = (marks.seq, fork.upto.unwrap_or(marks.seq));
    if upto == Seq::NONE || upto > last {
        return Ok(ForkedAt::Beyond { last });
    }
    let mut record = Record::new(&fork.to);
    record.copied_from =
        std::iter::once(&source.birth).chain(&source.copied_from).cloned().collect();
    record.kept_bytes = source.kept_bytes;
    let mut copy = Copy::new(store, &record);
    let mut read = 0;
    while read < end {
        for message in store.after(&store.streams.log, &subject, read).await? {
            read = message.sequence;
            copy.take(&fork.from, &message, upto).await?;
        }
    }
    copy.end(&fork.entry(upto, copy.last_at)).await?;
    let grown = match &fork.growth {
        TakenGrowth::Left if upto == last => {
            let (mut records, mut read) = (Vec::new(), 0);
            let live = store.streams.live_subject(&source.birth);
            store.read_live(&live, &mut records, &mut read).await?;
            records
        }
        TakenGrowth::Told { at, growths } if *at == upto => {
            let mut records = Vec::new();
            journal::write(growths, &mut records);
            records
        }
        TakenGrowth::Left | TakenGrowth::Told { .. } => Vec::new(),
    };
    copy.grown(&grown).await?;
    record.sum_up(&copy.pass.summary(&fork.to), copy.newest);
    match store.create_record(&record).await? {
        true => Ok(ForkedAt::Done { upto }),
        false => Err(failed(&fork.to, "there is such a session already")),
    }
}

/// A copy on its way.
struct Copy<'a> {
    store: &'a Store,
    id: &'a SessionId,
    birth: &'a str,
    pass: Pass,
    newest: u64,
    count: u64,
    last_at: Timestamp,
}

impl<'a> Copy<'a> {
    fn new(store: &'a Store, record: &'a Record) -> Copy<'a> {
        let (id, birth) = (&record.id, &*record.birth);
        let (pass, last_at) = Default::default();
        Copy { store, id, birth, pass, newest: 0, count: 0, last_at }
    }

    /// Copies what a message holds up to an entry.
    async fn take(
        &mut self,
        from: &SessionId,
        message: &Stored,
        upto: Seq,
    ) -> Result<(), LogError> {
        let Some(marks) = Marks::read(&message.headers) else { return Ok(()) };
        let mut text = String::new();
        for read in self.store.lines_of(from, &marks, message, |_| true).await? {
            let seq = match &read.line {
                Line::Entry(entry) => {
                    self.last_at = self.last_at.max(entry.at);
                    entry.seq
                }
                Line::Foreign { at, .. } => {
                    self.last_at = self.last_at.max(*at);
                    self.pass.last.next()
                }
                Line::More { seq } => *seq,
                Line::Damaged { seq, .. } => seq.unwrap_or(self.pass.last),
                Line::Audit => continue,
            };
            if seq > upto {
                break;
            }
            text.push_str(&read.text);
            text.push('\n');
            let at = self.store.codec.line_time(&read.text);
            self.pass.line(read.line, at, 0);
        }
        self.publish(text, marks.objects).await
    }

    /// The entry behind the copied ones.
    async fn end(&mut self, entry: &LogEntry) -> Result<(), LogError> {
        let lines = self.store.codec.encoder(self.id).lines(entry);
        for line in &lines.lines {
            let at = self.store.codec.line_time(line.trim_end());
            let read = self.store.codec.read(line.trim_end(), &|_| None);
            self.pass.line(read, at, 0);
        }
        self.publish(lines.lines.concat(), format!("{}/0", self.birth)).await
    }

    async fn publish(&mut self, text: String, objects: String) -> Result<(), LogError> {
        if text.is_empty() {
            return Ok(());
        }
        self.count += 1;
        let by = format!("0-{}", self.count);
        let (seq, lines) = (self.pass.last, self.pass.lines);
        let mut marks = Marks { seq, lines, objects, object: None, by };
        let mut payload = Bytes::from(text);
        if payload.len() > self.store.streams.payload_bytes_max() {
            let name = format!("{}/0/batch-{}", self.birth, self.count);
            self.store.put(&name, &payload).await?;
            (marks.object, payload) = (Some(name), Bytes::new());
        }
        let subject = self.store.streams.log_subject(self.birth);
        let (stream, headers) = (&self.store.streams.log, marks.headers());
        let publish = Publish { stream, subject: &subject, headers, payload, behind: self.newest };
        self.newest = self.stored(&publish, &marks.by).await?;
        Ok(())
    }

    /// What was shown of items that are open, in as many messages as it takes.
    async fn grown(&mut self, records: &[u8]) -> Result<(), LogError> {
        let subject = self.store.streams.live_subject(self.birth);
        let mut behind = 0;
        for piece in records.chunks(self.store.streams.payload_bytes_max().max(1)) {
            self.count += 1;
            let by = format!("0-{}", self.count);
            let headers = Marks { by: by.clone(), ..Marks::default() }.headers();
            let (stream, payload) = (&self.store.streams.live, Bytes::copy_from_slice(piece));
            let publish = Publish { stream, subject: &subject, headers, payload, behind };
            behind = self.stored(&publish, &by).await?;
        }
        Ok(())
    }

    async fn stored(&self, publish: &Publish<'_>, by: &str) -> Result<u64, LogError> {
        let is_ours = |newest: &Stored| Marks::read(&newest.headers).is_some_and(|m| m.by == by);
        self.store.streams.publish(publish, is_ours).await.map_err(|refused| match refused {
            Refused::Failed { why } => failed(self.id, why),
            Refused::Moved { .. } => failed(self.id, "somebody else writes the copy"),
        })
    }
}
