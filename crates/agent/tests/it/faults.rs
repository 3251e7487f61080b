//! A log around another log: it notes what is written, and breaks where a test says so.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use polyloop_agent::log::{
    Flush, Flushing, Fork, ForkedAt, LinePlace, Log, LogError, Occasion, OpenMode, Opened, Summary,
    Writer,
};
use polyloop_session::{Growth, Live, LogEntry, Seq, SessionId, State, Timestamp};
use tokio::sync::{Semaphore, watch};

use super::rig::in_time;

pub struct Faulty {
    inner: Arc<dyn Log>,
    shared: Arc<Shared>,
}

struct Shared {
    fault: Mutex<Option<Fault>>,
    open_fault: Mutex<Option<How>>,
    writes: AtomicUsize,
    opens: AtomicUsize,
    /// Opens and archivings that are under way: now, and at most.
    busy: Mutex<(usize, usize)>,
    gate: Mutex<Option<Arc<Semaphore>>>,
    page_entries_max: AtomicUsize,
    dead: AtomicBool,
    /// Writers that were used again although they had failed.
    misused: AtomicUsize,
    writers: watch::Sender<usize>,
    /// Nothing becomes safe for now.
    holds_flushes: watch::Sender<bool>,
    /// Flushes that were owed, and begun.
    owed_flushes: watch::Sender<usize>,
    owed_flush_fails: AtomicBool,
    kept: Mutex<HashMap<SessionId, Kept>>,
}

/// What the log holds of one session, as far as its writer has said so.
#[derive(Clone, Default)]
pub struct Kept {
    pub last: Seq,
    pub live: Live,
}

type Fault = Box<dyn FnMut(&Write<'_>) -> Option<Break> + Send>;

/// A use of a writer that changes something.
pub struct Write<'a> {
    /// Counted from 0, over all sessions.
    pub number: usize,
    pub op: Op<'a>,
}

pub enum Op<'a> {
    Append { entries: &'a [Arc<LogEntry>], flush: Flush },
    Grow,
    Forget,
    Audit,
}

#[derive(Clone, Copy, Debug)]
pub struct Break {
    pub moment: Moment,
    pub how: How,
}

/// Whether the inner log is still asked to do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Before,
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Error,
    /// No session can be opened any more either: as far as the store can tell, the server is dead.
    Death,
    Panic,
}

pub const BROKEN: &str = "the disk is on fire";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl How {
    fn happen(self) -> LogError {
        match self {
            How::Error | How::Death => LogError::store("session", BROKEN),
            How::Panic => panic!("{BROKEN}"),
        }
    }
}

impl Faulty {
    pub fn new(inner: Arc<dyn Log>) -> Arc<Faulty> {
        let shared = Shared {
            fault: Mutex::default(),
            open_fault: Mutex::default(),
            writes: AtomicUsize::new(0),
            opens: AtomicUsize::new(0),
            busy: Mutex::default(),
            gate: Mutex::default(),
            page_entries_max: AtomicUsize::new(usize::MAX),
            dead: AtomicBool::new(false),
            misused: AtomicUsize::new(0),
            writers: watch::Sender::new(0),
            holds_flushes: watch::Sender::new(false),
            owed_flushes: watch::Sender::new(0),
            owed_flush_fails: AtomicBool::new(false),
            kept: Mutex::default(),
        };
        Arc::new(Faulty { inner, shared: Arc::new(shared) })
    }

    /// Asked before every write until it says where to break; that breaks one writer for good.
    pub fn break_when(&self, fault: impl FnMut(&Write<'_>) -> Option<Break> + Send + 'static) {
        *lock(&self.shared.fault) = Some(Box::new(fault));
    }

    /// Whether what must reach the disk waits on its way there.
    pub fn hold_flushes(&self, hold: bool) {
        self.shared.holds_flushes.send_replace(hold);
    }

    /// The next flush that is owed fails.
    pub fn break_owed_flush(&self) {
        self.shared.owed_flush_fails.store(true, Ordering::SeqCst);
    }

    /// Waits until what was shown before it was flushed is being flushed.
    pub async fn until_owed_flushes(&self, count: usize) {
        let mut owed = self.shared.owed_flushes.subscribe();
        in_time("a flush that is owed", owed.wait_for(|begun| *begun >= count)).await.unwrap();
    }

    /// Breaks the write with that number.
    pub fn break_at(&self, number: usize, broken: Break) {
        self.break_when(move |write| (write.number == number).then_some(broken));
    }

    /// Breaks the next `open`.
    pub fn break_open(&self, how: How) {
        *lock(&self.shared.open_fault) = Some(how);
    }

    /// From now on every `open` and `archive` needs a permit. It goes on when nobody waits for it
    /// any more, as work on another thread does.
    pub fn hold(&self) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        *lock(&self.shared.gate) = Some(gate.clone());
        gate
    }

    /// From now on no page of entries is longer.
    pub fn cut_pages(&self, entries_max: usize) {
        self.shared.page_entries_max.store(entries_max, Ordering::SeqCst);
    }

    /// How much is under way now that needs a permit.
    pub fn busy(&self) -> usize {
        lock(&self.shared.busy).0
    }

    pub fn busy_max(&self) -> usize {
        lock(&self.shared.busy).1
    }

    /// Whether a break that was asked for is still to come.
    pub fn is_armed(&self) -> bool {
        lock(&self.shared.fault).is_some()
    }

    pub fn opens(&self) -> usize {
        self.shared.opens.load(Ordering::SeqCst)
    }

    pub fn misused(&self) -> usize {
        self.shared.misused.load(Ordering::SeqCst)
    }

    pub fn kept(&self, id: &SessionId) -> Kept {
        lock(&self.shared.kept).get(id).cloned().unwrap_or_default()
    }

    /// Sessions that are open for writing.
    pub fn writers(&self) -> usize {
        *self.shared.writers.borrow()
    }

    pub async fn until_writers(&self, count: usize) {
        let mut writers = self.shared.writers.subscribe();
        let what = format!("{count} open sessions");
        in_time(&what, writers.wait_for(|open| *open == count)).await.unwrap();
    }
}

impl Faulty {
    async fn behind_gate<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let gate = lock(&self.shared.gate).clone();
        let Some(gate) = gate else { return work.await };
        let shared = self.shared.clone();
        let working = tokio::spawn(async move {
            {
                let mut busy = lock(&shared.busy);
                *busy = (busy.0 + 1, busy.1.max(busy.0 + 1));
            }
            gate.acquire().await.unwrap().forget();
            let done = work.await;
            lock(&shared.busy).0 -= 1;
            done
        });
        working.await.unwrap()
    }
}

impl Shared {
    fn fault(&self, op: Op<'_>) -> Option<Break> {
        let write = Write { number: self.writes.fetch_add(1, Ordering::SeqCst), op };
        let mut fault = lock(&self.fault);
        let broken = fault.as_mut()?(&write)?;
        *fault = None;
        self.dead.store(broken.how == How::Death, Ordering::SeqCst);
        Some(broken)
    }
}

impl Log for Faulty {
    fn open<'a>(
        &'a self,
        id: &'a SessionId,
        mode: OpenMode,
    ) -> BoxFuture<'a, Result<Option<Opened>, LogError>> {
        async move {
            self.shared.opens.fetch_add(1, Ordering::SeqCst);
            let broken = lock(&self.shared.open_fault).take();
            if let Some(how) = broken {
                return Err(how.happen());
            }
            if self.shared.dead.load(Ordering::SeqCst) {
                return Err(How::Death.happen());
            }
            let (inner, own) = (self.inner.clone(), id.clone());
            let opened = self.behind_gate(async move { inner.open(&own, mode).await }).await?;
            let Some(opened) = opened else { return Ok(None) };
            let Opened { writer, folded, live } = opened;
            let kept = Kept { last: folded.state.last_seq(), live: live.clone() };
            lock(&self.shared.kept).insert(id.clone(), kept);
            self.shared.writers.send_modify(|open| *open += 1);
            let (id, shared) = (id.clone(), self.shared.clone());
            let (inner, dead, owes_flush) = (Some(writer), false, false);
            let writer = Box::new(FaultyWriter { inner, id, shared, dead, owes_flush });
            Ok(Some(Opened { writer, folded, live }))
        }
        .boxed()
    }

    fn read<'a>(
        &'a self,
        id: &'a SessionId,
        after: Seq,
        upto: Seq,
    ) -> BoxFuture<'a, Result<Vec<Arc<LogEntry>>, LogError>> {
        async move {
            let mut page = self.inner.read(id, after, upto).await?;
            page.truncate(self.shared.page_entries_max.load(Ordering::SeqCst));
            Ok(page)
        }
        .boxed()
    }

    fn lines<'a>(
        &'a self,
        id: &'a SessionId,
        from: LinePlace,
        upto: LinePlace,
    ) -> BoxFuture<'a, Result<(Vec<String>, LinePlace), LogError>> {
        self.inner.lines(id, from, upto)
    }

    fn line_place<'a>(
        &'a self,
        id: &'a SessionId,
        count: u64,
    ) -> BoxFuture<'a, Result<LinePlace, LogError>> {
        self.inner.line_place(id, count)
    }

    fn summary<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Summary>, LogError>> {
        self.inner.summary(id)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Summary>, LogError>> {
        self.inner.list()
    }

    fn archive<'a>(
        &'a self,
        id: &'a SessionId,
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, LogError>> {
        let (inner, own) = (self.inner.clone(), id.clone());
        self.behind_gate(async move { inner.archive(&own, at).await }).boxed()
    }

    fn fork<'a>(&'a self, fork: &'a Fork) -> BoxFuture<'a, Result<ForkedAt, LogError>> {
        let (inner, own) = (self.inner.clone(), fork.clone());
        self.behind_gate(async move { inner.fork(&own).await }).boxed()
    }

    fn kept_content<'a>(
        &'a self,
        id: &'a SessionId,
        hash: &'a str,
    ) -> BoxFuture<'a, Result<Option<Bytes>, LogError>> {
        self.inner.kept_content(id, hash)
    }
}

struct FaultyWriter {
    inner: Option<Box<dyn Writer>>,
    id: SessionId,
    shared: Arc<Shared>,
    dead: bool,
    owes_flush: bool,
}

impl FaultyWriter {
    /// What becomes safe when flushes are not held any more.
    fn held(&self, flushing: Option<Flushing>) -> Flushing {
        let mut holds = self.shared.holds_flushes.subscribe();
        let held = async move {
            // Nobody holds anything any more when the log is gone.
            let _ = holds.wait_for(|holds| !*holds).await;
            flushing.unwrap_or_else(|| std::future::ready(Ok(())).boxed()).await
        };
        held.boxed()
    }

    fn before(&mut self, op: Op<'_>) -> Result<Option<Break>, LogError> {
        if self.dead {
            self.shared.misused.fetch_add(1, Ordering::SeqCst);
            return Err(LogError::store("session", "used after it had failed"));
        }
        match self.shared.fault(op) {
            Some(Break { moment: Moment::Before, how }) => {
                self.dead = true;
                Err(how.happen())
            }
            other => Ok(other),
        }
    }

    fn after(&mut self, broken: Option<Break>) -> Result<(), LogError> {
        match broken {
            Some(broken) => {
                self.dead = true;
                Err(broken.how.happen())
            }
            None => Ok(()),
        }
    }

    fn inner(&mut self) -> &mut dyn Writer {
        &mut **self.inner.as_mut().unwrap()
    }

    fn note(&self, note: impl FnOnce(&mut Kept)) {
        note(lock(&self.shared.kept).entry(self.id.clone()).or_default());
    }
}

impl Writer for FaultyWriter {
    fn append_ahead<'a>(
        &'a mut self,
        expected_last: Seq,
        entries: &'a [Arc<LogEntry>],
        flush: Flush,
    ) -> BoxFuture<'a, Result<Option<Flushing>, LogError>> {
        async move {
            let broken = self.before(Op::Append { entries, flush })?;
            let flushing = self.inner().append_ahead(expected_last, entries, flush).await?;
            self.note(|kept| kept.last = entries.last().map_or(kept.last, |entry| entry.seq));
            self.after(broken)?;
            self.owes_flush = flush == Flush::Soon || self.owes_flush && flush != Flush::Disk;
            match flush == Flush::Disk && *self.shared.holds_flushes.borrow() {
                true => Ok(Some(self.held(flushing))),
                false => Ok(flushing),
            }
        }
        .boxed()
    }

    fn flush_owed(&mut self) -> Option<Flushing> {
        if !std::mem::take(&mut self.owes_flush) {
            return None;
        }
        let flushing = self.inner().flush_owed();
        self.shared.owed_flushes.send_modify(|begun| *begun += 1);
        if self.shared.owed_flush_fails.swap(false, Ordering::SeqCst) {
            self.dead = true;
            return Some(std::future::ready(Err(How::Error.happen())).boxed());
        }
        Some(self.held(flushing))
    }

    fn grow<'a>(&'a mut self, growths: &'a [Growth]) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            let broken = self.before(Op::Grow)?;
            self.inner().grow(growths).await?;
            self.note(|kept| growths.iter().for_each(|growth| kept.live.grow(growth)));
            self.after(broken)
        }
        .boxed()
    }

    fn confirmed(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        self.inner().confirmed()
    }

    fn forget_growth(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        async move {
            let broken = self.before(Op::Forget)?;
            self.inner().forget_growth().await?;
            self.note(|kept| kept.live = Live::default());
            self.after(broken)
        }
        .boxed()
    }

    fn audit<'a>(&'a mut self, line: &'a str) -> BoxFuture<'a, Result<(), LogError>> {
        async move {
            let broken = self.before(Op::Audit)?;
            self.inner().audit(line).await?;
            self.after(broken)
        }
        .boxed()
    }

    fn keep_content<'a>(
        &'a mut self,
        hash: &'a str,
        content: &'a Bytes,
    ) -> BoxFuture<'a, Result<bool, LogError>> {
        async move { self.inner().keep_content(hash, content).await }.boxed()
    }

    fn keep<'a>(&'a mut self, state: &'a State, occasion: Occasion) -> BoxFuture<'a, ()> {
        async move {
            if !self.dead {
                self.inner().keep(state, occasion).await;
            }
        }
        .boxed()
    }
}

impl Drop for FaultyWriter {
    fn drop(&mut self) {
        // Its files are let go of before anyone is told.
        self.inner = None;
        self.shared.writers.send_modify(|open| *open -= 1);
    }
}
