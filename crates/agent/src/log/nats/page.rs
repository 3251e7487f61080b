//! Pages of a session: its entries, or its lines. Costs what the page holds, and a search for where
//! it begins where no writer in this process knows.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use polyloop_session::{LogEntry, Seq, SessionId};
use tokio::time::{Instant, sleep};

use super::super::files::load::adopted;
use super::super::files::page::gap;
use super::super::{Codec, Line, LinePlace, LogError};
use super::direct::{PAGE_MESSAGES_MAX, Stored};
use super::leased::Near;
use super::message::Marks;
use super::summing::Read;
use super::{Store, TRY_EVERY, TRYING_TIME_MAX, failed_to, lock};

const PAGE_ENTRIES_MAX: usize = 256;
const PAGE_LINES_MAX: usize = 256;
const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// So few messages, of all sessions together, are read faster than searched.
const SEARCHED_MESSAGES_MIN: u64 = 32;

/// Where a session is read.
struct Here {
    subject: String,
    /// No message before this one is what is looked for.
    from: u64,
    /// The newest message.
    upto: u64,
}

impl Store {
    pub(super) async fn page(
        &self,
        id: &SessionId,
        after: Seq,
        upto: Seq,
    ) -> Result<Vec<Arc<LogEntry>>, LogError> {
        if after >= upto {
            return Ok(Vec::new());
        }
        let is_behind = |marks: &Marks| marks.seq <= after;
        let Some(here) = self.find(id, after.next(), is_behind).await? else {
            return Ok(Vec::new());
        };
        let (mut page, mut seq, mut bytes) = (Vec::new(), Seq::NONE, 0);
        let mut messages = Messages::new(self, &here);
        while let Some(message) = messages.next().await? {
            let Some(marks) = Marks::read(&message.headers) else { continue };
            if marks.seq <= after {
                seq = marks.seq;
                continue;
            }
            let wanted = |seq: Option<Seq>| seq.is_none_or(|seq| seq > after && seq <= upto);
            for read in self.lines_of(id, &marks, &message, wanted).await? {
                let more = read.bytes;
                let Some(entry) = self.entry(seq, read) else { continue };
                if entry.seq > upto || !page.is_empty() && bytes + more > PAGE_BYTES_MAX {
                    return Ok(page);
                }
                let fresh = entry.seq > seq;
                seq = entry.seq.max(seq);
                if fresh && entry.seq > after {
                    bytes += more;
                    page.push(Arc::new(entry));
                }
            }
            if seq >= upto || page.len() >= PAGE_ENTRIES_MAX || messages.is_page_done(&page) {
                break;
            }
        }
        Ok(page)
    }

    /// The entry of a line; `last` is the one before it.
    fn entry(&self, last: Seq, read: Read) -> Option<LogEntry> {
        match read.line {
            Line::Entry(entry) => Some(entry),
            Line::Foreign { at, piece } => Some(adopted(last.next(), at, piece)),
            Line::Damaged { seq: Some(seq), why } => Some(gap(&*self.codec, seq, &read.text, &why)),
            Line::Damaged { seq: None, .. } | Line::More { .. } | Line::Audit => None,
        }
    }

    pub(super) async fn line_place(
        &self,
        id: &SessionId,
        count: u64,
    ) -> Result<LinePlace, LogError> {
        let known = lock(&self.leased).get(id).map(|leased| leased.summary.lines);
        let lines = match known {
            Some(lines) => lines,
            None => match self.newest_of(id).await? {
                Some((_, newest)) => newest.map_or(0, |(_, marks)| marks.lines),
                None => 0,
            },
        };
        Ok(LinePlace(count.min(lines)))
    }

    pub(super) async fn raw_lines(
        &self,
        id: &SessionId,
        from: LinePlace,
        upto: LinePlace,
    ) -> Result<(Vec<String>, LinePlace), LogError> {
        let is_behind = |marks: &Marks| marks.lines <= from.0;
        // Nobody knows which entry a line belongs to, but for the first.
        let seq = if from.0 == 0 { Seq::NONE.next() } else { Seq::NONE };
        let found = self.find(id, seq, is_behind).await?;
        let Some(here) = found else { return Ok((Vec::new(), from)) };
        let (mut page, mut at, mut bytes) = (Vec::new(), from.0, 0);
        let mut messages = Messages::new(self, &here);
        while let Some(message) = messages.next().await? {
            let Some(marks) = Marks::read(&message.headers) else { continue };
            if marks.lines <= at {
                continue;
            }
            let text = self.text(id, &marks, &message).await?;
            let lines: Vec<&str> = text.lines().collect();
            let before = marks.lines.saturating_sub(lines.len() as u64);
            for (number, line) in (before..).zip(lines) {
                if number < at {
                    continue;
                }
                if number >= upto.0 || page.len() >= PAGE_LINES_MAX || bytes > PAGE_BYTES_MAX {
                    return Ok((page, LinePlace(at)));
                }
                at = number + 1;
                let shown = self.shown(&marks, line).await?;
                bytes += shown.as_ref().map_or(0, String::len);
                page.extend(shown);
            }
            if messages.is_page_done(&page) {
                break;
            }
        }
        Ok((page, LinePlace(at)))
    }

    /// A line as it is shown, with its long texts; `None` where it cannot be.
    async fn shown(&self, marks: &Marks, line: &str) -> Result<Option<String>, LogError> {
        if !line.contains("\"$blob\"") {
            return Ok(self.codec.line_time(line).map(|_| line.to_owned()));
        }
        let (names, mut found) = (names_in(&*self.codec, line), HashMap::new());
        self.texts(&marks.objects, &names, &mut found).await?;
        Ok(self.codec.restored(line, &|name| found.get(name).cloned()))
    }

    /// A session's subject, and its newest message that is ours.
    async fn newest_of(
        &self,
        id: &SessionId,
    ) -> Result<Option<(String, Option<(u64, Marks)>)>, LogError> {
        let Some((record, _)) = self.record(id).await? else { return Ok(None) };
        let subject = self.streams.log_subject(&record.birth);
        let newest = self.streams.newest(&self.streams.log, &subject).await?;
        let newest =
            newest.and_then(|newest| Some((newest.sequence, Marks::read(&newest.headers)?)));
        Ok(Some((subject, newest)))
    }

    /// Where to begin to read: before the first message that is not behind what is looked for.
    /// `seq` is an entry there, if one is known.
    async fn find(
        &self,
        id: &SessionId,
        seq: Seq,
        is_behind: impl Fn(&Marks) -> bool,
    ) -> Result<Option<Here>, LogError> {
        let known = lock(&self.leased).get(id).map(|leased| leased.near(seq));
        let Near { subject, mut from, mut before, newest } = match known {
            Some(near) => near,
            None => {
                let Some((subject, newest)) = self.newest_of(id).await? else { return Ok(None) };
                let Some((newest, marks)) = newest else { return Ok(None) };
                if is_behind(&marks) {
                    return Ok(None);
                }
                Near { subject, from: 1, before: newest, newest }
            }
        };
        let is_from_start = seq == Seq::NONE.next();
        let stream = &self.streams.log.cached_info().config.name;
        while !is_from_start && before.saturating_sub(from) >= SEARCHED_MESSAGES_MIN {
            let middle = from + (before - from) / 2;
            let found = self.streams.messages(stream, &subject, middle, 1).await?;
            let found = found.into_iter().next();
            match found.and_then(|found| Some((found.sequence, Marks::read(&found.headers)?))) {
                Some((sequence, marks)) if is_behind(&marks) => from = sequence + 1,
                Some(_) | None => before = middle,
            }
        }
        Ok(Some(Here { subject, from, upto: newest }))
    }
}

/// The long texts that a line names.
fn names_in(codec: &dyn Codec, line: &str) -> Vec<String> {
    let names = RefCell::new(Vec::new());
    // Only for the names in it.
    let _ = codec.restored(line, &|name| {
        names.borrow_mut().push(name.to_owned());
        Some(String::new())
    });
    names.into_inner()
}

/// Messages of a session, up to the newest that is known.
struct Messages<'a> {
    store: &'a Store,
    here: &'a Here,
    read: std::vec::IntoIter<Stored>,
    next: u64,
}

impl<'a> Messages<'a> {
    fn new(store: &'a Store, here: &'a Here) -> Messages<'a> {
        Messages { store, here, read: Vec::new().into_iter(), next: here.from }
    }

    async fn next(&mut self) -> Result<Option<Stored>, LogError> {
        let until = Instant::now() + TRYING_TIME_MAX;
        loop {
            if let Some(message) = self.read.next() {
                self.next = message.sequence + 1;
                return Ok(Some(message));
            }
            if self.next > self.here.upto {
                return Ok(None);
            }
            let streams = &self.store.streams;
            let stream = &streams.log.cached_info().config.name;
            let page =
                streams.messages(stream, &self.here.subject, self.next, PAGE_MESSAGES_MAX).await?;
            if page.is_empty() {
                // The replica that answered is behind the leader.
                if Instant::now() >= until {
                    return Err(failed_to("read", "no replica has what the leader has"));
                }
                sleep(TRY_EVERY).await;
            }
            self.read = page.into_iter();
        }
    }

    /// What was fetched is used up, and there is something to show for it.
    fn is_page_done<T>(&self, page: &[T]) -> bool {
        self.read.len() == 0 && !page.is_empty()
    }
}
