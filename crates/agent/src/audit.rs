//! The audit log: who came from where, who decided what. One JSON object a line, in a file of the
//! operator's.
//!
//! Never holds what was said, what a tool was given, or a secret. Nobody waits for it: notes go
//! through a bounded queue to one thread, and one that finds the queue full, or the disk, is lost
//! and counted; the file says how many are missing where they are missing. What was decided in a
//! session stands in the session's own log in any case.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use polyloop_session::wait::Who;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use serde_json::{Map, Value};

use self::file::AuditFile;

mod file;
#[cfg(test)]
mod tests;

/// Notes that may wait for the disk.
const QUEUED_NOTES_MAX: usize = 8 * 1024;
/// Notes that are written together.
const NOTES_TOGETHER_MAX: usize = 256;
/// How long the last notes may take when the server stops.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);
/// Of a text that somebody else chose.
const TEXT_CHARS_MAX: usize = 256;

/// Takes notes; does nothing where there is no audit log.
#[derive(Clone, Default)]
pub struct Audit {
    queue: Option<SyncSender<Queued>>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    written: Counter,
    lost: Counter,
}

enum Queued {
    /// A line, without its end.
    Note(String),
    /// Says when all before it is written.
    End(SyncSender<()>),
}

/// What a note says, in pairs; a pair without a value is left out.
pub type Pairs<const N: usize> = [(&'static str, Value); N];

impl Audit {
    /// Opens the file, which is made if it is not there.
    pub fn open(path: &Path) -> io::Result<Audit> {
        let file = AuditFile::open(path)?;
        Audit::to(file, QUEUED_NOTES_MAX)
    }

    fn to(file: AuditFile, notes_max: usize) -> io::Result<Audit> {
        let (queue, notes) = sync_channel(notes_max);
        let counts = Arc::new(Counts::default());
        let told = counts.clone();
        let thread = std::thread::Builder::new().name("audit".to_owned());
        thread.spawn(move || write(&notes, file, &told))?;
        Ok(Audit { queue: Some(queue), counts })
    }

    pub fn is_on(&self) -> bool {
        self.queue.is_some()
    }

    pub fn register(&self, registry: &mut Registry) {
        let Counts { written, lost } = &*self.counts;
        registry.register("audit_notes", "Lines written to the audit log", written.clone());
        registry.register(
            "audit_notes_lost",
            "Lines that the audit log could not take",
            lost.clone(),
        );
    }

    pub fn note<const N: usize>(&self, what: &'static str, pairs: Pairs<N>) {
        self.note_with(what, [], pairs);
    }

    /// The same, with pairs that many notes have.
    pub(crate) fn note_with<const M: usize, const N: usize>(
        &self,
        what: &'static str,
        common: Pairs<M>,
        pairs: Pairs<N>,
    ) {
        let Some(queue) = &self.queue else { return };
        let pairs = common.into_iter().chain(pairs);
        match queue.try_send(Queued::Note(line(what, pairs))) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.counts.lost.inc();
            }
        }
    }

    /// Waits, not for long, until all notes so far are written.
    pub fn close(&self) {
        let Some(queue) = &self.queue else { return };
        let (done, ended) = sync_channel(1);
        if queue.try_send(Queued::End(done)).is_ok() {
            let _ = ended.recv_timeout(CLOSE_TIME_MAX);
        }
    }
}

fn line(what: &'static str, pairs: impl IntoIterator<Item = (&'static str, Value)>) -> String {
    let mut note = Map::new();
    note.insert("at".to_owned(), jiff::Timestamp::now().to_string().into());
    note.insert("what".to_owned(), what.into());
    for (name, value) in pairs {
        let value = match value {
            Value::Null => continue,
            Value::String(text) => Value::String(cut(text)),
            value => value,
        };
        note.insert(name.to_owned(), value);
    }
    Value::Object(note).to_string()
}

fn cut(text: String) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Who did something, as notes say it.
pub fn who(by: &Who) -> Value {
    let mut told = Map::new();
    told.insert("via".to_owned(), Value::String(cut(by.via.to_string())));
    if let Some(name) = &by.name {
        told.insert("name".to_owned(), Value::String(cut(name.to_string())));
    }
    if let Some(from) = &by.from {
        told.insert("from".to_owned(), from.to_string().into());
    }
    Value::Object(told)
}

fn write(notes: &Receiver<Queued>, mut file: AuditFile, counts: &Counts) {
    let mut told_lost = 0;
    while let Ok(first) = notes.recv() {
        let (mut text, mut lines, mut ends) = (String::new(), 0, Vec::new());
        let mut next = Some(first);
        while let Some(queued) = next.take() {
            match queued {
                Queued::Note(line) => {
                    text.push_str(&line);
                    text.push('\n');
                    lines += 1;
                }
                Queued::End(done) => ends.push(done),
            }
            next = (lines < NOTES_TOGETHER_MAX).then(|| notes.try_recv().ok()).flatten();
        }
        let lost = counts.lost.get();
        if lost > told_lost {
            let missing = line("notes_lost", [("lines", (lost - told_lost).into())]);
            text = format!("{missing}\n{text}");
        }
        match file.append(&text) {
            Ok(()) => {
                told_lost = lost;
                counts.written.inc_by(lines as u64);
            }
            Err(_) => {
                counts.lost.inc_by(lines as u64);
            }
        }
        for done in ends {
            let _ = done.try_send(());
        }
    }
}
