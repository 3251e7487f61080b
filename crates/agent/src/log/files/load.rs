//! Opens a session's files: goes on from what the index knows, folds the entries after that,
//! repairs the tail, reads the journal.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::sync::Arc;

use polyloop_session::event::Adopted;
use polyloop_session::{Event, LogEntry, Seq, SessionId, Timestamp};

use super::super::{
    Damage, Folded, Line, LogError, Named, OpenMode, Opened, Spent, Standing, Summary,
};
use super::disk::Access;
use super::index::{self, Beside, Index, Place};
use super::known::Session;
use super::lines::Lines;
use super::writer::{FileWriter, Since};
use super::{Store, journal, lock};

/// Further ones are passed over without a word each.
const DAMAGE_LISTED_MAX: usize = 100;

pub(super) fn open(
    store: &Arc<Store>,
    id: &SessionId,
    mode: OpenMode,
) -> Result<Option<Opened>, LogError> {
    if !store.may_write {
        let why = "it was opened to be read";
        return Err(LogError::store(format!("session store {}", store.dir.display()), why));
    }
    let access = match mode {
        OpenMode::OrCreate => Access::AppendOrMake,
        OpenMode::Existing => Access::Append,
    };
    store.may_go_on(id)?;
    store.write_anew(id).map_err(|error| store.error(id, &error))?;
    let file = match store.disk.open(&store.path(id, "jsonl"), access) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(store.error(id, &error)),
    };
    let opened = load(store, id, file);
    opened.map(Some).map_err(|error| store.error(id, &error))
}

/// What one pass over a session's lines finds.
#[derive(Default)]
pub(in crate::log) struct Pass {
    pub folded: Folded,
    /// Entries of the running turn, for the line encoder to catch up with.
    pub turn: Vec<LogEntry>,
    pub last: Seq,
    /// Lines of the last entry.
    pub last_lines: usize,
    pub lines: u64,
    pub times: Option<(Timestamp, Timestamp)>,
    pub named: Named,
    pub spent: Spent,
    pub standing: Standing,
    pub places: Vec<Place>,
    /// Bytes up to the end of the last line that can stay.
    pub bytes: u64,
    /// The last line lacks its newline but is whole.
    pub unended: bool,
    /// Files of their own that its lines name.
    pub blobs: Vec<String>,
}

fn load(store: &Arc<Store>, id: &SessionId, file: File) -> io::Result<Opened> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("its file is none: a folder, or a pipe"));
    }
    let index = index::read(&store.path(id, "index"), &file);
    let begun = index.and_then(Pass::after).unwrap_or_default();
    let from = begun.bytes;
    let mut pass = pass(store, id, &file, begun)?;
    if file.metadata()?.len() > pass.bytes {
        store.disk.cut(&file, pass.bytes)?;
    }
    if pass.unended {
        store.disk.write(&file, b"\n")?;
        pass.bytes += 1;
    }
    let mut encoder = store.codec.encoder(id);
    let mut missing = Vec::new();
    for entry in &pass.turn {
        let lines = encoder.lines(entry);
        if entry.seq == pass.last {
            missing = lines.lines.into_iter().skip(pass.last_lines).collect();
        }
    }
    if !missing.is_empty() {
        // The batch was torn between the lines of its last entry, whose event says them all.
        pass.lines += missing.len() as u64;
        let missing = missing.concat();
        store.disk.write(&file, missing.as_bytes())?;
        pass.bytes += missing.len() as u64;
    }
    flush(store, id, &file, &pass).inspect_err(|error| store.flush_failed(id, error))?;
    let (journal, live) = journal::Journal::open(store.disk.clone(), &store.path(id, "live"))?;
    let since = Since {
        bytes: pass.bytes - from,
        file_bytes: file.metadata()?.len(),
        index_bytes: 0,
        compacted: false,
        turns: pass.folded.turns.clone(),
        beside: Beside::of(&pass.folded),
    };
    let summary = pass.summary(id);
    let Pass { folded, last, places, bytes, .. } = pass;
    let (places, recent) = (Some(places), Default::default());
    let known = Session { summary, bytes, places, recent, leased: true };
    lock(&store.known).insert(id.clone(), known);
    let writer = FileWriter::new(store.clone(), id.clone(), file, journal, encoder, last, since);
    Ok(Opened { writer: Box::new(writer), folded, live })
}

/// Goes over what `begun` has not seen.
pub(super) fn pass(store: &Store, id: &SessionId, file: &File, begun: Pass) -> io::Result<Pass> {
    let mut pass = begun;
    let blobs = RefCell::new(Vec::new());
    let mut lines = Lines::from(file.try_clone()?, pass.bytes)?;
    while let Some(raw) = lines.next()? {
        let read = match raw.text() {
            Some(text) => store.codec.read(text, &|name| {
                let text = store.blob(id, name)?;
                blobs.borrow_mut().push(name.to_owned());
                Some(text)
            }),
            None => Line::Damaged { seq: None, why: "not a text, or too long".into() },
        };
        if !raw.whole {
            if matches!(read, Line::Damaged { .. }) {
                // Torn by a crash: nobody was shown it.
                pass.lines += 1;
                pass.damaged("it was torn by a crash and cut off".into());
                pass.lines -= 1;
                break;
            }
            pass.unended = true;
        }
        let at = raw.text().and_then(|text| store.codec.line_time(text));
        pass.line(read, at, raw.place);
        pass.bytes = lines.place;
    }
    pass.blobs = blobs.into_inner();
    Ok(pass)
}

/// What was found is shown from now on, so it must be as safe as what will be written after it:
/// whoever wrote it may have died, or failed, before it was.
fn flush(store: &Store, id: &SessionId, file: &File, found: &Pass) -> io::Result<()> {
    let dir = store.path(id, "blobs");
    for name in &found.blobs {
        store.disk.flush(&File::open(dir.join(name))?)?;
    }
    if !found.blobs.is_empty() {
        store.disk.flush_names(&dir)?;
    }
    store.disk.flush(file)?;
    if found.last == Seq::NONE || !found.blobs.is_empty() {
        // A new file's name must survive the machine as well as its content.
        store.disk.flush_names(&store.dir)?;
    }
    Ok(())
}

impl Pass {
    /// As if the file had been read up to the index's place. An index is made between turns, so
    /// there is nothing for the line encoder to catch up with.
    pub(super) fn after(index: Index) -> Option<Pass> {
        let Index { head, places, folded } = index;
        let folded = folded?;
        Some(Pass {
            last: folded.state.last_seq(),
            folded,
            lines: head.lines,
            times: Some((head.start, head.last)),
            named: head.named,
            spent: head.spent,
            standing: head.standing,
            places: places.places,
            bytes: head.bytes,
            ..Pass::default()
        })
    }

    pub(in crate::log) fn summary(&self, id: &SessionId) -> Summary {
        let (start, last) = self.times.unwrap_or_default();
        let (named, spent, standing) = (self.named.clone(), self.spent, self.standing.clone());
        Summary { id: id.clone(), start, last, lines: self.lines, named, spent, standing }
    }

    /// The next line, with its time and its place.
    pub(in crate::log) fn line(&mut self, line: Line, at: Option<Timestamp>, place: u64) {
        if let Some(at) = at {
            self.times = Some(self.times.map_or((at, at), |(start, _)| (start, at)));
        }
        self.lines += 1;
        self.take(line, place);
    }

    fn take(&mut self, line: Line, place: u64) {
        match line {
            Line::Entry(entry) if entry.seq <= self.last => {
                self.damaged(format!("entry {} stands here again", entry.seq));
            }
            Line::Entry(entry) => {
                if entry.seq != self.last.next() {
                    let (from, to) = (self.last.next(), entry.seq.before());
                    self.damaged(format!("entries {from} to {to} are missing before this line"));
                }
                self.entry(entry, place);
            }
            Line::Foreign { at, piece } => {
                self.entry(adopted(self.last.next(), at, piece), place);
            }
            Line::More { seq } => self.last_lines += usize::from(seq == self.last),
            Line::Audit => {}
            Line::Damaged { seq, why } => {
                if let Some(seq) = seq.filter(|seq| *seq > self.last) {
                    // Nothing is known of the entry but its number, which is not given again.
                    self.last = seq;
                    self.folded.take(&adopted(seq, Timestamp::default(), None));
                }
                self.damaged(why);
            }
        }
    }

    fn entry(&mut self, entry: LogEntry, place: u64) {
        let place = Place { seq: entry.seq, line: self.lines - 1, byte: place };
        if place.counts_after(self.places.last()) {
            self.places.push(place);
        }
        self.named.take(&entry.event);
        self.spent.take(&entry.event);
        self.standing.take(&entry);
        self.last = entry.seq;
        self.last_lines = 1;
        self.folded.take(&entry);
        match entry.event {
            // Another program's line is its own; there is nothing to complete.
            Event::Adopted { .. } => self.turn.clear(),
            _ => {
                if entry.event.is_beginning() {
                    self.turn.clear();
                }
                self.turn.push(entry);
            }
        }
    }

    fn damaged(&mut self, why: String) {
        if self.folded.damage.len() < DAMAGE_LISTED_MAX {
            self.folded.damage.push(Damage { line: self.lines, why });
        }
    }
}

pub(in crate::log) fn adopted(seq: Seq, at: Timestamp, piece: Option<Adopted>) -> LogEntry {
    LogEntry { seq, at, event: Event::Adopted { piece } }
}
