//! Opens a session's files: folds the entries, repairs the tail, reads the journal.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use polyloop_session::event::Adopted;
use polyloop_session::{Event, LogEntry, Seq, SessionId, Timestamp};

use super::super::{Damage, Folded, Line, LogError, OpenMode, Opened, Summary};
use super::writer::FileWriter;
use super::{FILE_MODE, INDEX_ENTRIES, Known, Lines, Store, journal, lock};

/// Further ones are passed over without a word each.
const DAMAGE_LISTED_MAX: usize = 100;

pub(super) fn open(
    store: &Arc<Store>,
    id: &SessionId,
    mode: OpenMode,
) -> Result<Option<Opened>, LogError> {
    let path = store.path(id, "jsonl");
    let create = mode == OpenMode::OrCreate;
    let made =
        OpenOptions::new().read(true).append(true).create(create).mode(FILE_MODE).open(&path);
    let file = match made {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(store.error(id, &error)),
    };
    let opened = load(store, id, file).and_then(|opened| {
        if opened.folded.state.last_seq() == Seq::NONE {
            // A new file's name must survive the machine as well as its content.
            File::open(&store.dir)?.sync_all()?;
        }
        Ok(opened)
    });
    opened.map(Some).map_err(|error| store.error(id, &error))
}

/// What one pass over the file finds.
#[derive(Default)]
struct Pass {
    folded: Folded,
    /// Entries of the running turn, for the line encoder to catch up with.
    turn: Vec<LogEntry>,
    last: Seq,
    /// Lines of the last entry.
    last_lines: usize,
    lines: u64,
    times: Option<(Timestamp, Timestamp)>,
    index: Vec<(Seq, u64)>,
    /// Bytes up to the end of the last line that can stay.
    bytes: u64,
    /// The last line lacks its newline but is whole.
    unended: bool,
}

fn load(store: &Arc<Store>, id: &SessionId, mut file: File) -> io::Result<Opened> {
    let mut pass = pass(store, id, &file)?;
    if file.metadata()?.len() > pass.bytes {
        file.set_len(pass.bytes)?;
    }
    if pass.unended {
        file.write_all(b"\n")?;
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
        file.write_all(missing.as_bytes())?;
        pass.bytes += missing.len() as u64;
    }
    let (journal, live) = journal::Journal::open(&store.path(id, "live"))?;
    let (start, last) = pass.times.unwrap_or_default();
    let summary = Summary { id: id.clone(), start, last, lines: pass.lines };
    let known = Known { summary, bytes: pass.bytes, index: pass.index, leased: true };
    lock(&store.known).insert(id.clone(), known);
    let writer = FileWriter::new(store.clone(), id.clone(), file, journal, encoder, pass.last);
    Ok(Opened { writer: Box::new(writer), folded: pass.folded, live })
}

fn pass(store: &Store, id: &SessionId, file: &File) -> io::Result<Pass> {
    let mut lines = Lines::new(file.try_clone()?);
    let mut pass = Pass::default();
    while let Some(raw) = lines.next()? {
        let read = match raw.text() {
            Some(text) => store.codec.read(text, &|name| store.blob(id, name)),
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
        if let Some(at) = raw.text().and_then(|text| store.codec.line_time(text)) {
            pass.times = Some(pass.times.map_or((at, at), |(start, _)| (start, at)));
        }
        pass.lines += 1;
        let place = raw.place;
        pass.take(read, place);
        pass.bytes = lines.place;
    }
    Ok(pass)
}

impl Pass {
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
        if entry.seq.0 % INDEX_ENTRIES == 1 {
            self.index.push((entry.seq, place));
        }
        self.last = entry.seq;
        self.last_lines = 1;
        self.folded.take(&entry);
        match entry.event {
            // Another program's line is its own; there is nothing to complete.
            Event::Adopted { .. } => self.turn.clear(),
            Event::TurnStarted { .. } => {
                self.turn.clear();
                self.turn.push(entry);
            }
            _ => self.turn.push(entry),
        }
    }

    fn damaged(&mut self, why: String) {
        if self.folded.damage.len() < DAMAGE_LISTED_MAX {
            self.folded.damage.push(Damage { line: self.lines, why });
        }
    }
}

pub(super) fn adopted(seq: Seq, at: Timestamp, piece: Option<Adopted>) -> LogEntry {
    LogEntry { seq, at, event: Event::Adopted { piece } }
}
