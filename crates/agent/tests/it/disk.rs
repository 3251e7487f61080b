//! Random work on a store whose disk fails: full, broken, torn writes, flushes that fail, a
//! process that dies in the middle, a machine that loses what was not flushed, a kernel that tells
//! of a lost page once and then calls it clean. What is found afterwards is always a prefix of what was written, with everything in it that was acknowledged.
//!
//! `POLYLOOP_CASES` sets how many stores are tried, `POLYLOOP_SEED` from which seed.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use polyloop_agent::log::files::Files;
use polyloop_agent::log::files::disk::{Access, Disk};
use polyloop_agent::log::{Flush, Flushing, Log, Occasion, OpenMode, Opened, Writer};
use polyloop_agent::subscriber::Ending;
use polyloop_session::event::{Outcome, Work};
use polyloop_session::item::Usage;
use polyloop_session::policy::Mode;
use polyloop_session::{Event, Growth, ItemId, LogEntry, MessageId, Seq, Stream};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::codec::{LONG_BYTES_MIN, Plain};
use super::faults::Faulty;
use super::make::{entry, fold, id, queued};
use super::rig::{Rig, Setup, helper, read_all, stop, temp_dir};

const WAIT_MAX: Duration = Duration::from_secs(30);
const LIVES: u64 = 5;
const OPERATIONS: u64 = 40;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Small and always the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// A disk that fails now and then.
struct Bad {
    inner: Mutex<Inner>,
}

struct Inner {
    dice: Dice,
    /// One in so many operations fails.
    rate: u64,
    dead: bool,
    faults: u64,
    /// How much of each file is on the disk, by its number.
    flushed: HashMap<u64, u64>,
    /// Files of which a flush has failed: what was not on the disk by then never will be.
    doomed: HashSet<u64>,
    /// A mistake to be found: flushes that only say so.
    lies: bool,
}

enum Fault {
    Error(i32),
    /// A part is done, then the error, and nothing more.
    Torn(i32),
    Death,
}

impl Bad {
    fn new(seed: u64, rate: u64, lies: bool) -> Arc<Bad> {
        let (dice, flushed) = (Dice(seed), HashMap::new());
        let doomed = HashSet::new();
        let inner = Inner { dice, rate, dead: false, faults: 0, flushed, doomed, lies };
        Arc::new(Bad { inner: Mutex::new(inner) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    fn fault(&self) -> Option<Fault> {
        let mut inner = self.inner();
        if inner.dead {
            return Some(Fault::Error(EIO));
        }
        let rate = inner.rate;
        if inner.dice.below(rate) != 0 {
            return None;
        }
        inner.faults += 1;
        Some(match inner.dice.below(6) {
            0 => Fault::Error(EIO),
            1 => Fault::Error(ENOSPC),
            2 => Fault::Torn(ENOSPC),
            3 => Fault::Torn(EIO),
            _ => {
                inner.dead = true;
                Fault::Death
            }
        })
    }

    fn simple(&self) -> io::Result<()> {
        match self.fault() {
            None => Ok(()),
            Some(Fault::Error(code) | Fault::Torn(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(Fault::Death) => Err(io::Error::from_raw_os_error(EIO)),
        }
    }

    fn note_flush(&self, file: &File) -> io::Result<()> {
        let meta = file.metadata()?;
        let mut inner = self.inner();
        if !inner.doomed.contains(&meta.ino()) {
            inner.flushed.insert(meta.ino(), meta.len());
        }
        Ok(())
    }

    /// What was not flushed is gone.
    fn lose_power(&self, dir: &Path) {
        let flushed = self.inner().flushed.clone();
        for file in std::fs::read_dir(dir).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                self.lose_power(&path);
                continue;
            }
            let file = File::options().write(true).open(&path).unwrap();
            let meta = file.metadata().unwrap();
            let kept = flushed.get(&meta.ino()).copied().unwrap_or(0);
            if kept < meta.len() {
                file.set_len(kept).unwrap();
            }
        }
    }
}

impl Disk for Bad {
    fn open(&self, path: &Path, access: Access) -> io::Result<File> {
        self.simple()?;
        struct Real;
        impl Disk for Real {}
        Real.open(path, access)
    }

    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        match self.fault() {
            None => file.write_all(bytes),
            Some(Fault::Error(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(fault) => {
                let part = self.inner().dice.below(bytes.len() as u64 + 1) as usize;
                file.write_all(&bytes[..part])?;
                let code = if let Fault::Torn(code) = fault { code } else { EIO };
                Err(io::Error::from_raw_os_error(code))
            }
        }
    }

    fn cut(&self, file: &File, bytes: u64) -> io::Result<()> {
        self.simple()?;
        file.set_len(bytes)?;
        let number = file.metadata()?.ino();
        let mut inner = self.inner();
        let known = inner.flushed.entry(number).or_insert(0);
        *known = (*known).min(bytes);
        Ok(())
    }

    fn flush(&self, file: &File) -> io::Result<()> {
        let number = file.metadata()?.ino();
        self.simple().inspect_err(|_| _ = self.inner().doomed.insert(number))?;
        if self.inner().lies {
            return Ok(());
        }
        self.note_flush(file)
    }

    fn flush_names(&self, _: &Path) -> io::Result<()> {
        self.simple()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.simple()?;
        std::fs::rename(from, to)
    }
}

/// What must be found: `sure` of these, and nothing else.
#[derive(Default)]
struct Written {
    all: Vec<Arc<LogEntry>>,
    sure: usize,
    /// Of these, so many were flushed.
    flushed: usize,
    /// Items that are complete, and what the next one has grown by.
    ended: u64,
    grown: String,
    grown_is_sure: bool,
}

impl Written {
    /// A complete item does not grow any more.
    fn item(&self) -> ItemId {
        ItemId(Seq(1 + self.ended))
    }
}

struct Life<'a> {
    dice: &'a mut Dice,
    written: &'a mut Written,
    opened: Opened,
}

impl Life<'_> {
    /// `None` when something failed, and the session must be opened anew.
    async fn operation(&mut self) -> Option<()> {
        match self.dice.below(10) {
            0..=3 => self.append().await,
            8 => self.flush_owed().await,
            4 | 5 => self.grow().await,
            6 => {
                self.written.grown_is_sure = false;
                self.opened.writer.forget_growth().await.ok()?;
                (self.written.grown, self.written.grown_is_sure) = (String::new(), true);
                Some(())
            }
            9 => {
                self.written.grown_is_sure = false;
                self.opened.writer.end_growth().await.ok()?;
                self.written.ended += 1;
                (self.written.grown, self.written.grown_is_sure) = (String::new(), true);
                Some(())
            }
            _ => {
                let state = fold(self.written.all.iter().map(|entry| &**entry));
                self.opened.writer.keep(&state, Occasion::Leaving).await;
                Some(())
            }
        }
    }

    async fn append(&mut self) -> Option<()> {
        let last = self.written.all.len() as u64;
        let count = 1 + self.dice.below(3);
        let batch: Vec<_> = (last + 1..=last + count).map(|seq| self.entry(seq)).collect();
        let flush = [Flush::Disk, Flush::Process, Flush::Soon][self.dice.below(3) as usize];
        self.written.all.extend(batch.iter().cloned());
        self.opened.writer.append(Seq(last), &batch, flush).await.ok()?;
        self.written.sure = self.written.all.len();
        if flush == Flush::Disk {
            self.written.flushed = self.written.sure;
        }
        Some(())
    }

    async fn flush_owed(&mut self) -> Option<()> {
        let Some(flushing) = self.opened.writer.flush_owed() else { return Some(()) };
        flushing.await.ok()?;
        self.written.flushed = self.written.sure;
        Some(())
    }

    fn entry(&mut self, seq: u64) -> Arc<LogEntry> {
        let event = match self.dice.below(5) {
            0 => queued(&"x".repeat(LONG_BYTES_MIN + self.dice.below(50) as usize)),
            1 => Event::TurnStarted {
                work: Work::Message { message: MessageId(Seq(seq.saturating_sub(1))) },
                agent: None,
                cwd: None,
                earlier: None,
            },
            2 => Event::TurnEnded { outcome: Outcome::Completed, usage: Usage::default() },
            _ => queued(&format!("message {seq} {}", self.dice.below(1_000))),
        };
        Arc::new(entry(seq, event))
    }

    async fn grow(&mut self) -> Option<()> {
        let text = format!("{} ", self.dice.below(100));
        let offset = self.written.grown.len() as u64;
        let item = self.written.item();
        let growth = Growth { item, stream: Stream::Text, offset, text: text.as_str().into() };
        let was_sure = std::mem::replace(&mut self.written.grown_is_sure, false);
        self.opened.writer.grow(&[growth]).await.ok()?;
        self.written.grown_is_sure = was_sure;
        self.written.grown.push_str(&text);
        Some(())
    }
}

/// What a sound disk says of it, which must fit; that is what goes on.
async fn check(dir: &Path, written: &mut Written, sure: usize) -> Result<(), String> {
    let log = Files::open(dir, Arc::new(Plain)).unwrap().index_from(0);
    let opened = log.open(&id("s"), OpenMode::OrCreate).await.unwrap().unwrap();
    let all = read_all(&log, &id("s")).await;
    if all.len() < sure {
        return Err(format!("{sure} entries were acknowledged, {} are left", all.len()));
    }
    if written.all.get(..all.len()) != Some(&all[..]) {
        return Err("what is left is not what was written".into());
    }
    if opened.folded.state != fold(all.iter().map(|entry| &**entry)) {
        return Err("it is opened as something else".into());
    }
    let live = opened.live.text(written.item(), Stream::Text);
    if written.grown_is_sure && live != written.grown {
        return Err(format!("{:?} was shown, kept is {live:?}", written.grown));
    }
    written.grown = live.to_owned();
    written.grown_is_sure = true;
    let count = all.len();
    (written.all, written.sure, written.flushed) = (all, count, count);
    Ok(())
}

/// One store through several lives; how many faults it met.
async fn live(seed: u64, lies: bool) -> Result<u64, String> {
    let dir = temp_dir();
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut written = Written { grown_is_sure: true, ..Written::default() };
    let mut faults = 0;
    for life in 0..LIVES {
        let rate = [8, 20, 60][dice.below(3) as usize];
        let disk = Bad::new(dice.below(u64::MAX) | 1, rate, lies);
        let log = Files::open_on(disk.clone(), dir.path(), Arc::new(Plain)).unwrap().index_from(0);
        // What was there before was there before the power could go.
        let (mut done, before) = (0, dir.path());
        note_all(&disk, before);
        while done < OPERATIONS && !disk.inner().dead {
            done += 1;
            let Ok(Some(opened)) = log.open(&id("s"), OpenMode::OrCreate).await else { continue };
            let found = opened.folded.state.last_seq().0 as usize;
            if found < written.sure || found > written.all.len() {
                return Err(format!("seed {seed}, life {life}: {found} of {}", written.sure));
            }
            written.all.truncate(found);
            (written.sure, written.flushed) = (found, found);
            let live = opened.live.text(written.item(), Stream::Text).to_owned();
            if written.grown_is_sure && live != written.grown {
                return Err(format!("seed {seed}, life {life}: {live:?}"));
            }
            (written.grown, written.grown_is_sure) = (live, true);
            let mut life = Life { dice: &mut dice, written: &mut written, opened };
            while done < OPERATIONS && life.operation().await.is_some() {
                done += 1;
            }
        }
        drop(log);
        faults += disk.inner().faults;
        let mut sure = written.sure;
        if dice.below(2) == 0 {
            disk.lose_power(dir.path());
            sure = written.flushed.min(sure);
            written.grown_is_sure = false;
        }
        let checked = check(dir.path(), &mut written, sure).await;
        checked.map_err(|why| format!("seed {seed}, life {life}: {why}"))?;
    }
    Ok(faults)
}

/// What a file holds when a life begins is safe.
fn note_all(disk: &Bad, dir: &Path) {
    for file in std::fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        match path.is_dir() {
            true => note_all(disk, &path),
            false => disk.note_flush(&File::open(path).unwrap()).unwrap(),
        }
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[tokio::test]
async fn a_disk_that_fails_loses_nothing_that_was_acknowledged() {
    let (cases, first) = (number("POLYLOOP_CASES", 100), number("POLYLOOP_SEED", 1));
    let mut faults = 0;
    for seed in first..first + cases {
        match live(seed, false).await {
            Ok(met) => faults += met,
            Err(why) => panic!("{why}"),
        }
    }
    println!("{cases} stores, {faults} faults");
    assert!(faults > cases, "hardly any fault was met: {faults}");
}

/// The check itself: flushes that only say so are found out.
#[tokio::test]
async fn a_disk_that_lies_is_found_out() {
    for seed in 1..100 {
        if let Err(why) = live(seed, true).await {
            assert!(why.contains("were acknowledged"), "{why}");
            return;
        }
    }
    panic!("nobody noticed");
}

/// A disk whose flushes come to what a test says.
struct Told {
    asked: mpsc::UnboundedSender<()>,
    outcomes: Mutex<Receiver<io::Result<()>>>,
}

impl Disk for Told {
    fn flush(&self, _: &File) -> io::Result<()> {
        self.asked.send(()).unwrap();
        self.outcomes.lock().unwrap().recv().unwrap()
    }
}

struct Teller {
    asked: mpsc::UnboundedReceiver<()>,
    outcomes: Sender<io::Result<()>>,
    _dir: TempDir,
    _log: Files,
    writer: Box<dyn Writer>,
}

impl Teller {
    /// A session with one message that is to be flushed soon.
    async fn new(dir: TempDir) -> Teller {
        let (ask, asked) = mpsc::unbounded_channel();
        let (outcomes, said) = channel();
        let disk = Arc::new(Told { asked: ask, outcomes: Mutex::new(said) });
        let log = Files::open_on(disk, dir.path(), Arc::new(Plain)).unwrap();
        // It is flushed when it is opened.
        outcomes.send(Ok(())).unwrap();
        let opened = log.open(&id("s"), OpenMode::OrCreate).await.unwrap().unwrap();
        let mut teller = Teller { asked, outcomes, _dir: dir, _log: log, writer: opened.writer };
        teller.until_asked().await;
        assert!(teller.append(1, Flush::Soon).await.is_none());
        teller
    }

    async fn append(&mut self, seq: u64, flush: Flush) -> Option<Flushing> {
        let batch = [Arc::new(entry(seq, queued(&format!("message {seq}"))))];
        self.writer.append_ahead(Seq(seq - 1), &batch, flush).await.unwrap()
    }

    async fn until_asked(&mut self) {
        tokio::time::timeout(WAIT_MAX, self.asked.recv()).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_is_to_be_flushed_soon_is_flushed_by_who_lets_it_go() {
    let teller = Teller::new(temp_dir()).await;
    teller.outcomes.send(Ok(())).unwrap();
    let Teller { writer, mut asked, .. } = teller;
    drop(writer);
    tokio::time::timeout(WAIT_MAX, asked.recv()).await.unwrap().unwrap();
}

/// What was shown stays, and nothing else.
#[tokio::test]
async fn a_failed_flush_of_what_was_shown_takes_back_what_was_not() {
    let dir = temp_dir();
    let path = dir.path().to_owned();
    let mut teller = Teller::new(dir).await;
    let owed = teller.writer.flush_owed().unwrap();
    teller.until_asked().await;
    let held = teller.append(2, Flush::Disk).await.unwrap();
    teller.append(3, Flush::Process).await;
    for _ in 0..2 {
        teller.outcomes.send(Err(io::Error::from_raw_os_error(EIO))).unwrap();
    }
    owed.await.unwrap_err();
    drop(held);
    let text = std::fs::read_to_string(path.join("s.jsonl")).unwrap();
    assert!(text.contains("message 1") && !text.contains("message 2"), "{text}");
}

/// Batches that wait one behind the other are let go one by one.
#[tokio::test]
async fn a_failed_flush_leaves_what_was_flushed_before() {
    let dir = temp_dir();
    let path = dir.path().to_owned();
    let mut teller = Teller::new(dir).await;
    let first = teller.append(2, Flush::Disk).await.unwrap();
    teller.until_asked().await;
    let second = teller.append(3, Flush::Disk).await.unwrap();
    teller.outcomes.send(Ok(())).unwrap();
    first.await.unwrap();
    teller.outcomes.send(Err(io::Error::from_raw_os_error(EIO))).unwrap();
    second.await.unwrap_err();
    let text = std::fs::read_to_string(path.join("s.jsonl")).unwrap();
    assert!(text.contains("message 2") && !text.contains("message 3"), "{text}");
}

/// A disk whose flushes fail from some time on.
#[derive(Default)]
struct Failing(AtomicBool);

impl Disk for Failing {
    fn flush(&self, file: &File) -> io::Result<()> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(io::Error::from_raw_os_error(EIO)),
            false => file.sync_data(),
        }
    }
}

/// The result is taken back, since nobody was shown it; what was shown before is in the journal.
#[tokio::test]
async fn output_that_was_shown_outlives_the_failed_flush_of_its_result() {
    for lines in [1, 2_000] {
        let dir = temp_dir();
        let store = dir.path().join("store");
        let disk = Arc::new(Failing::default());
        let files = Files::open_on(disk.clone(), &store, Arc::new(Plain)).unwrap();
        let log = Faulty::new(Arc::new(files));
        let own = log.clone();
        let rig =
            Rig::new(|setup| Setup { log: own, mode: Mode::Bypass, helper: helper(), ..setup });
        let mut client = rig.client("s").await;
        let go = dir.path().join("go");
        let said = format!(
            "run: seq {lines}; echo shown; while [ ! -e {} ]; do sleep 0.05; done",
            go.display()
        );
        client.send(&said).await.unwrap();
        client.until("its output", |c| c.was_shown("shown\n")).await.unwrap();
        disk.0.store(true, Ordering::SeqCst);
        std::fs::write(&go, "").unwrap();
        assert!(matches!(client.until_end().await, Ending::Failed(_)));
        log.until_writers(0).await;
        let shown = client.shown.iter().find(|((_, stream), _)| *stream == Stream::Output);
        let ((item, _), shown) = shown.map(|(item, text)| (*item, text.clone())).unwrap();
        drop(client);
        let Rig { sessions, log: _, dir: _work, .. } = rig;
        stop(sessions, log).await;

        // As the next start of the server finds it.
        let files = Files::open(&store, Arc::new(Plain)).unwrap();
        let opened = files.open(&id("s"), OpenMode::Existing).await.unwrap().unwrap();
        assert!(opened.folded.state.turn().is_some_and(|turn| turn.items.contains_key(&item)));
        assert_eq!(opened.live.text(item, Stream::Output), shown);
    }
}
