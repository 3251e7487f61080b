//! Ends the server right before and right after every single write of a whole conversation, takes
//! the store as it is, and goes on with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyloop_agent::log::Log;
use polyloop_agent::subscriber::Ending;
use polyloop_session::item::End;
use polyloop_session::{Event, ItemId, LogEntry, Stream, context};
use tempfile::TempDir;

use super::client::Client;
use super::faults::{Break, Faulty, How, Moment};
use super::make::{fold, id, who};
use super::rig::{LIMITS, Setup, check_at_rest, count, files, memory, read_all, stop, temp_dir};
use super::story::{self, COUNTED, NAMES};
use super::view::Kind;

/// All that clients were shown before the end.
#[derive(Default)]
struct Shown {
    entries: BTreeMap<u64, Arc<LogEntry>>,
    texts: BTreeMap<(ItemId, Stream), String>,
}

impl Shown {
    fn take(&mut self, client: &Client) {
        self.entries.extend(client.entries.iter().map(|entry| (entry.seq.0, entry.clone())));
        for (stream, text) in &client.shown {
            let known = self.texts.entry(*stream).or_default();
            if text.len() > known.len() {
                *known = text.clone();
            }
        }
    }

    /// Every entry and every character is in the log.
    fn check(&self, log: &[Arc<LogEntry>]) {
        for entry in self.entries.values() {
            assert_eq!(log.get(entry.seq.0 as usize - 1), Some(entry));
        }
        for ((item, stream), text) in &self.texts {
            let kept = log.iter().filter_map(|entry| kept(&entry.event, *item, *stream));
            let kept: Vec<&str> = kept.collect();
            let whole = kept.iter().any(|kept| kept.starts_with(text.as_str()));
            assert!(whole, "{item} {stream:?}: {text:?} was shown, kept is {kept:?}");
        }
    }
}

/// What an event says of an item's stream.
fn kept(event: &Event, of: ItemId, stream: Stream) -> Option<&str> {
    match event {
        Event::ItemCompleted { item, text, .. } if *item == of => Some(text),
        Event::ToolProposed { item, args, .. } if *item == of && stream == Stream::Args => {
            Some(args)
        }
        _ => None,
    }
}

/// A store that outlives its servers.
struct Stage {
    work: TempDir,
    store: TempDir,
    memory: Option<Arc<Faulty>>,
    auto_resume: bool,
}

impl Stage {
    fn new(in_memory: bool, auto_resume: bool) -> Stage {
        let work = temp_dir();
        std::fs::write(work.path().join(COUNTED), "start\n").unwrap();
        Stage { work, store: temp_dir(), memory: in_memory.then(memory), auto_resume }
    }

    fn log(&self) -> Arc<Faulty> {
        match &self.memory {
            // Its own counts and faults, around the same content.
            Some(memory) => Faulty::new(memory.clone()),
            None => files(self.store.path()),
        }
    }

    fn setup(&self, log: Arc<dyn Log>) -> Setup {
        Setup { auto_resume: self.auto_resume, ..Setup::new(log) }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Story,
    Rest,
}

/// One life of a server. It breaks at that write, if it comes so far; whether it did is returned.
async fn live(stage: &Stage, shown: &mut Shown, part: Part, at: usize, moment: Moment) -> bool {
    let log = stage.log();
    log.break_at(at, Break { moment, how: How::Death });
    let sessions = stage.setup(log.clone()).start(stage.work.path());
    let handle = sessions.handle(id("s"), who());
    if let Ok(mut client) = Client::attach(handle, Kind::new()).await {
        let told = match part {
            Part::Story => story::tell(&mut client).await,
            Part::Rest => story::settle_down(&mut client).await,
        };
        match told {
            Ok(()) => assert!(log.is_armed(), "write {at} broke and nobody noticed"),
            Err(_) => assert!(matches!(client.until_end().await, Ending::Failed(_))),
        }
        shown.take(&client);
    }
    let broke = !log.is_armed();
    assert_eq!(log.misused(), 0, "a writer that had failed was used again");
    stop(sessions, log).await;
    broke
}

/// The healthy life after all: everything shown is there, and the session works.
async fn go_on(stage: &Stage, shown: &mut Shown) -> Vec<Arc<LogEntry>> {
    let (log, id) = (stage.log(), id("s"));
    let sessions = stage.setup(log.clone()).start(stage.work.path());
    let mut client = Client::attach(sessions.handle(id.clone(), who()), Kind::new()).await.unwrap();
    shown.check(&read_all(&*log, &id).await);

    story::settle_down(&mut client).await.unwrap();
    client.send("say: still here").await.unwrap();
    story::settle_down(&mut client).await.unwrap();
    while !client.texts().contains(&"still here") {
        // Another message was first in the queue, and hung.
        assert!(!client.state.queue().is_empty(), "{:?}", client.texts());
        client.send("say: go on").await.unwrap();
        story::settle_down(&mut client).await.unwrap();
    }
    shown.take(&client);
    let all = read_all(&*log, &id).await;
    shown.check(&all);
    let state = fold(all.iter().map(|entry| &**entry));
    assert_eq!(state, client.state);
    let told = client.handle.context_info().await.unwrap();
    assert_eq!(told, context::info(&state, LIMITS.tokens_max, LIMITS.strategy));

    drop(client);
    stop(sessions, log).await;
    check_at_rest(&*stage.log(), &id).await;
    check_runs(stage, &all);
    all
}

/// Nothing ran twice, what the log says has run did, and what it says has not did not.
fn check_runs(stage: &Stage, log: &[Arc<LogEntry>]) {
    for name in NAMES {
        let ran = count(&stage.work.path().join(COUNTED), name);
        let items = log.iter().filter_map(|entry| match &entry.event {
            Event::ToolProposed { item, args, .. } if args.contains(&format!("+{name}")) => {
                Some(*item)
            }
            _ => None,
        });
        let starts = |item: ItemId| {
            let is_start = |event: &Event| match event {
                Event::ToolStarted { item: started, .. } => *started == item,
                _ => false,
            };
            log.iter().filter(|entry| is_start(&entry.event)).count()
        };
        let ends = |item: ItemId| {
            log.iter().filter_map(move |entry| match entry.event {
                Event::ItemCompleted { item: ended, end, .. } if ended == item => Some(end),
                _ => None,
            })
        };
        let (mut whole, mut started) = (0, 0);
        for item in items {
            assert!(starts(item) <= 1, "{name} was started twice");
            started += starts(item);
            let ends: Vec<End> = ends(item).collect();
            assert_eq!(ends.len(), 1, "{name}: {ends:?}");
            whole += ends.iter().filter(|end| **end == End::Whole).count();
        }
        assert!(ran <= 1, "{name} ran {ran} times");
        assert!(whole <= ran && ran <= started, "{name}: {whole} whole, ran {ran}, {started}");
    }
}

/// Which writes to break at: all when more cases than usual are asked for, else some of them.
fn every(apart: usize) -> usize {
    if std::env::var_os("POLYLOOP_CASES").is_some() { 1 } else { apart }
}

/// Breaks at writes in turn, from the `first`. Returns how many there are.
async fn at_writes(
    (first, apart): (usize, usize),
    (in_memory, auto_resume): (bool, bool),
    moment: Moment,
) -> usize {
    let apart = every(apart);
    for at in (first % apart..).step_by(apart) {
        let stage = Stage::new(in_memory, auto_resume);
        let mut shown = Shown::default();
        let broke = live(&stage, &mut shown, Part::Story, at, moment).await;
        let log = go_on(&stage, &mut shown).await;
        if !broke {
            check_whole_story(&stage, &log);
            return at;
        }
    }
    unreachable!()
}

/// The story is what it says it is, so that breaking it means something.
fn check_whole_story(stage: &Stage, log: &[Arc<LogEntry>]) {
    let ran = NAMES.map(|name| count(&stage.work.path().join(COUNTED), name));
    assert_eq!(ran, [1, 0, 1, 0]);
    let has = |what: fn(&Event) -> bool| log.iter().any(|entry| what(&entry.event));
    assert!(has(|event| matches!(event, Event::Compacted { .. })));
    assert!(has(|event| matches!(event, Event::ExplainAsked { .. })));
    assert!(has(|event| matches!(event, Event::WaitSettled { .. })));
    assert!(has(|event| matches!(event, Event::TurnStopping { .. })));
}

#[tokio::test]
async fn in_memory() {
    for (first, moment) in [(0, Moment::Before), (1, Moment::After)] {
        let writes = at_writes((first, 2), (true, false), moment).await;
        assert!(writes > 50, "{writes}");
    }
}

#[tokio::test]
async fn in_files() {
    for moment in [Moment::Before, Moment::After] {
        let writes = at_writes((0, 1), (false, false), moment).await;
        assert!(writes > 50, "{writes}");
    }
}

/// Turns that the end cut go on by themselves; still nothing is run twice.
#[tokio::test]
async fn with_auto_resume() {
    for (first, moment) in [(1, Moment::Before), (0, Moment::After)] {
        let writes = at_writes((first, 2), (true, true), moment).await;
        assert!(writes > 50, "{writes}");
    }
}

/// Recovering is no safe moment either: a second end at every write of the second life.
#[tokio::test]
async fn twice() {
    let mut second = 0;
    for first in (0..).step_by(every(9)) {
        for at in 0.. {
            let stage = Stage::new(true, first % 2 == 0);
            let mut shown = Shown::default();
            let moment = if first % 2 == 0 { Moment::Before } else { Moment::After };
            if !live(&stage, &mut shown, Part::Story, first, moment).await {
                assert!(first > 50 && second > 40, "{first} {second}");
                return;
            }
            let broke = live(&stage, &mut shown, Part::Rest, at, Moment::After).await;
            go_on(&stage, &mut shown).await;
            if !broke {
                break;
            }
            second += 1;
        }
    }
}
