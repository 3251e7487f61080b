//! A view that shows the updates themselves, and lets a test look on at the very moment when they
//! are sent.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use polyloop_agent::subscriber::View;
use polyloop_session::{LogEntry, Seq, SessionId, Update};

/// Views of one kind share a probe; each test makes its own.
#[derive(Clone, Copy)]
pub struct Kind(pub &'static Probe);

type Hook = Box<dyn FnMut(&Update) + Send>;

#[derive(Default)]
pub struct Probe {
    opened: AtomicUsize,
    dropped: AtomicUsize,
    skipped: AtomicUsize,
    seen: AtomicUsize,
    recalled: Mutex<Vec<LogEntry>>,
    hook: Mutex<Option<Hook>>,
}

impl Kind {
    pub fn new() -> Kind {
        Kind(Box::leak(Box::default()))
    }

    /// Called in the actor, before the frame goes to anyone.
    pub fn on_see(self, hook: impl FnMut(&Update) + Send + 'static) {
        *self.0.hook.lock().unwrap() = Some(Box::new(hook));
    }

    pub fn seen(self) -> usize {
        self.0.seen.load(Ordering::SeqCst)
    }

    pub fn skipped(self) -> usize {
        self.0.skipped.load(Ordering::SeqCst)
    }

    /// Entries from further back that views were given, in their order.
    pub fn recalled(self) -> Vec<LogEntry> {
        self.0.recalled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn opened(self) -> usize {
        self.0.opened.load(Ordering::SeqCst)
    }

    /// Views that are there now.
    pub fn open(self) -> usize {
        self.opened() - self.0.dropped.load(Ordering::SeqCst)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Kind {}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kind")
    }
}

pub struct Seeing(&'static Probe);

#[derive(Clone, Debug)]
pub struct Frame(pub Update);

impl View for Seeing {
    type Kind = Kind;
    type Frame = Frame;
    type Bundle = Vec<Frame>;

    fn open(kind: Kind, _: &SessionId, _: Seq) -> Seeing {
        kind.0.opened.fetch_add(1, Ordering::SeqCst);
        Seeing(kind.0)
    }

    fn skip(&mut self, _: &LogEntry) {
        self.0.skipped.fetch_add(1, Ordering::SeqCst);
    }

    fn recall(&mut self, entry: &LogEntry) {
        let recalled = &self.0.recalled;
        recalled.lock().unwrap_or_else(PoisonError::into_inner).push(entry.clone());
    }

    fn see(&mut self, update: &Update) -> Vec<Frame> {
        self.0.seen.fetch_add(1, Ordering::SeqCst);
        if let Some(hook) = &mut *self.0.hook.lock().unwrap_or_else(PoisonError::into_inner) {
            hook(update);
        }
        vec![Frame(update.clone())]
    }

    fn bundle(frames: Vec<Frame>) -> Vec<Frame> {
        frames
    }

    fn bundle_bytes(bundle: &Vec<Frame>) -> usize {
        let bytes = |Frame(update): &Frame| match update {
            Update::Logged(_) => 1,
            Update::Grew(growth) => growth.text.len(),
            Update::Raw(raw) => raw.json.len(),
        };
        bundle.iter().map(bytes).sum()
    }
}

impl Drop for Seeing {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}
