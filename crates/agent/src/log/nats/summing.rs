//! From messages to lines, and from lines to what a list shows.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use async_nats::jetstream::stream::Stream;
use polyloop_session::{LogEntry, Seq, SessionId, Timestamp};
use tokio::time::{Instant, sleep};

use super::super::files::load::adopted;
use super::super::{Codec, Line, LogError, Summary};
use super::direct::{PAGE_MESSAGES_MAX, Stored};
use super::message::Marks;
use super::records::Record;
use super::{Store, TRY_EVERY, TRYING_TIME_MAX, failed, failed_to, lock};

/// A line as it stands, and what it says.
pub(super) struct Read {
    pub text: String,
    pub line: Line,
    /// Of the line and its long texts.
    pub bytes: usize,
}

impl Store {
    /// The text of a message: its lines, each with its end.
    pub(super) async fn text(
        &self,
        id: &SessionId,
        marks: &Marks,
        message: &Stored,
    ) -> Result<String, LogError> {
        let content = match &marks.object {
            None => message.payload.clone(),
            Some(name) => {
                let found = self.get(name).await?;
                found.ok_or_else(|| failed(id, format!("the object {name} is missing")))?
            }
        };
        String::from_utf8(content.into()).map_err(|error| failed(id, error))
    }

    /// The lines of a message. Long texts are fetched for what `wanted` says.
    pub(super) async fn lines_of(
        &self,
        id: &SessionId,
        marks: &Marks,
        message: &Stored,
        wanted: impl Fn(Option<Seq>) -> bool,
    ) -> Result<Vec<Read>, LogError> {
        let text = self.text(id, marks, message).await?;
        let mut lines = Vec::new();
        for text in text.lines() {
            let (line, bytes) = self.line_of(marks, text, &wanted).await?;
            lines.push(Read { text: text.to_owned(), line, bytes: text.len() + bytes });
        }
        Ok(lines)
    }

    /// What a line says, and how long its long texts are.
    async fn line_of(
        &self,
        marks: &Marks,
        text: &str,
        wanted: impl Fn(Option<Seq>) -> bool,
    ) -> Result<(Line, usize), LogError> {
        let mut found: HashMap<String, String> = HashMap::new();
        loop {
            let bytes = found.values().map(String::len).sum();
            let (line, missing) = look(&*self.codec, text, &found);
            let is_wanted = match &line {
                Line::Damaged { seq, .. } => wanted(*seq),
                _ => true,
            };
            if missing.is_empty() || !is_wanted {
                return Ok((line, bytes));
            }
            let before = found.len();
            self.texts(&marks.objects, &missing, &mut found).await?;
            if found.len() == before {
                return Ok((line, bytes)); // It is not there.
            }
        }
    }

    /// What a list shows of a session, by now.
    pub(super) async fn summary(&self, id: &SessionId) -> Result<Option<Summary>, LogError> {
        if let Some(leased) = lock(&self.leased).get(id) {
            return Ok(Some(leased.summary.clone()).filter(|summary| summary.lines > 0));
        }
        let Some((record, _)) = self.record(id).await? else { return Ok(None) };
        let (summary, _) = self.summed_up(&record).await?;
        Ok(Some(summary).filter(|summary| summary.lines > 0))
    }

    /// The record, and what came after it up to the newest message, whose number is given.
    pub(super) async fn summed_up(&self, record: &Record) -> Result<(Summary, u64), LogError> {
        let (mut summary, mut upto) = (record.summary(), record.upto);
        let subject = self.streams.log_subject(&record.birth);
        let newest = self.streams.newest(&self.streams.log, &subject).await?;
        let newest = newest.map_or(0, |newest| newest.sequence);
        while upto < newest {
            for message in self.after(&self.streams.log, &subject, upto).await? {
                upto = message.sequence;
                let Some(marks) = Marks::read(&message.headers) else { continue };
                for read in self.lines_of(&record.id, &marks, &message, |_| true).await? {
                    summary.add(&*self.codec, &read);
                }
            }
        }
        Ok((summary, upto))
    }

    /// The next messages of a subject that has some; waits for a replica that is behind.
    pub(super) async fn after(
        &self,
        stream: &Stream,
        subject: &str,
        after: u64,
    ) -> Result<Vec<Stored>, LogError> {
        let until = Instant::now() + TRYING_TIME_MAX;
        let stream = &stream.cached_info().config.name;
        loop {
            let page = self.streams.messages(stream, subject, after + 1, PAGE_MESSAGES_MAX);
            let page = page.await?;
            if !page.is_empty() {
                return Ok(page);
            }
            if Instant::now() >= until {
                return Err(failed_to("read", "no replica has what the leader has"));
            }
            sleep(TRY_EVERY).await;
        }
    }
}

/// What a line says with these texts, and which it lacks.
fn look(codec: &dyn Codec, text: &str, found: &HashMap<String, String>) -> (Line, Vec<String>) {
    let missing = RefCell::new(Vec::new());
    let line = codec.read(text, &|name| {
        let text = found.get(name).cloned();
        if text.is_none() {
            missing.borrow_mut().push(name.to_owned());
        }
        text
    });
    (line, missing.into_inner())
}

impl Summary {
    fn add(&mut self, codec: &dyn Codec, read: &Read) {
        if let Some(at) = codec.line_time(&read.text) {
            if self.lines == 0 {
                self.start = at;
            }
            self.last = at;
        }
        self.lines += 1;
        match &read.line {
            Line::Entry(entry) => self.take(entry),
            Line::Foreign { at, piece } => self.take(&adopted(Seq::NONE, *at, piece.clone())),
            Line::More { .. } | Line::Audit | Line::Damaged { .. } => {}
        }
    }

    /// An entry; its lines and its time are counted apart.
    pub(super) fn take(&mut self, entry: &LogEntry) {
        self.named.take(&entry.event);
        self.spent.take(&entry.event);
        self.standing.take(entry);
    }

    pub(super) fn append(&mut self, entries: &[Arc<LogEntry>], lines: u64) {
        let at = |entry: Option<&Arc<LogEntry>>, or: Timestamp| entry.map_or(or, |e| e.at);
        if self.lines == 0 {
            self.start = at(entries.first(), self.start);
        }
        self.last = at(entries.last(), self.last);
        self.lines += lines;
        entries.iter().for_each(|entry| self.take(entry));
    }
}
