//! Joins what the agent and the dialects each know half of: how a session looks to a client, and
//! how it is written to its file. Only converts; decides nothing.

use std::sync::Arc;

use polyloop_agent::log::{Codec, Line, LineEncoder, Lines};
use polyloop_agent::subscriber;
use polyloop_dialects::agentloop::file;
use polyloop_dialects::{Dialect, Frame, View};
use polyloop_session::{LogEntry, Seq, SessionId, Timestamp, Update};

#[path = "view/bundle.rs"]
mod bundle;

pub use bundle::Bundle;

/// A session as the clients of one dialect see it.
pub struct DialectView(View);

/// A dialect as a key: one is the other if their names are.
#[derive(Clone, Copy)]
pub struct DialectKind(pub &'static dyn Dialect);

impl PartialEq for DialectKind {
    fn eq(&self, other: &DialectKind) -> bool {
        self.0.name() == other.0.name()
    }
}

impl Eq for DialectKind {}

impl subscriber::View for DialectView {
    type Kind = DialectKind;
    type Frame = Frame;
    type Bundle = Arc<Bundle>;

    fn open(kind: DialectKind, session: &SessionId, at: Seq) -> DialectView {
        DialectView(View::new(kind.0, session, at))
    }

    fn skip(&mut self, entry: &LogEntry) {
        self.0.skip(entry);
    }

    fn recall(&mut self, entry: &LogEntry) {
        self.0.recall(entry);
    }

    fn see(&mut self, update: &Update) -> Vec<Frame> {
        self.0.see(update)
    }

    fn bundle(frames: Vec<Frame>) -> Arc<Bundle> {
        Arc::new(Bundle::new(frames))
    }

    fn bundle_bytes(bundle: &Arc<Bundle>) -> usize {
        bundle.text_bytes
    }
}

/// Writes session files in the form that the AgentLoop documents describe.
pub struct FileCodec;

struct FileLines(file::FileEncoder);

impl FileCodec {
    pub fn shared() -> Arc<dyn Codec> {
        Arc::new(FileCodec)
    }
}

impl Codec for FileCodec {
    fn encoder(&self, id: &SessionId) -> Box<dyn LineEncoder> {
        Box::new(FileLines(file::FileEncoder::new(id)))
    }

    fn read(&self, line: &str, blob: &dyn Fn(&str) -> Option<String>) -> Line {
        match file::read_line(line, blob) {
            file::Line::Entry(entry) => Line::Entry(entry),
            file::Line::More { seq } => Line::More { seq },
            file::Line::Audit => Line::Audit,
            file::Line::Foreign { at, piece } => Line::Foreign { at, piece },
            file::Line::Damaged { seq, why } => Line::Damaged { seq, why },
        }
    }

    fn restored(&self, line: &str, blob: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        file::restored(line, blob)
    }

    fn line_time(&self, line: &str) -> Option<Timestamp> {
        file::line_time(line)
    }
}

impl LineEncoder for FileLines {
    fn lines(&mut self, entry: &LogEntry) -> Lines {
        let file::Lines { lines, blobs } = self.0.lines(entry);
        Lines { lines, blobs: blobs.into_iter().map(|blob| (blob.name, blob.text)).collect() }
    }
}
