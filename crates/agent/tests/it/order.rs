//! Nothing is sent before it is kept. A view is asked for its frames right before they are sent, so
//! it looks at the log in that very moment.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polyloop_agent::log::{Flush, Log, OpenMode};
use polyloop_session::policy::{Leave, Mode};
use polyloop_session::{Event, Growth, Update};

use super::client::Client;
use super::faults::{Kept, Op};
use super::make::{id, who};
use super::model::Strings;
use super::rig::{Rig, Setup, files, in_time, read_all, stop, temp_dir};
use super::story::{self, COUNTED};
use super::view::Kind;

fn holds(kept: &Kept, update: &Update) -> bool {
    match update {
        Update::Logged(entry) => kept.last >= entry.seq,
        Update::Grew(Growth { item, stream, offset, text }) => {
            let live = kept.live.text(*item, *stream);
            live.get(*offset as usize..).is_some_and(|live| live.starts_with(&**text))
        }
        // Never kept.
        Update::Raw(_) => true,
    }
}

#[tokio::test]
async fn what_is_sent_was_written_before() {
    let rig = Rig::offline();
    rig.countable(COUNTED);
    let early: Arc<Mutex<Vec<Update>>> = Arc::default();
    let (log, found) = (rig.log.clone(), early.clone());
    rig.kind.on_see(move |update| {
        if !holds(&log.kept(&id("s")), update) {
            found.lock().unwrap().push(update.clone());
        }
    });
    let mut client = rig.client("s").await;
    story::tell(&mut client).await.unwrap();
    assert!(client.entries.len() > 50 && client.shown.len() > 5);
    assert_eq!(rig.kind.seen(), client.entries.len() - 1 + client.growths);
    let early = early.lock().unwrap();
    assert!(early.is_empty(), "sent before it was kept: {early:?}");
}

/// A session's files, as they are when an update is sent.
struct Moment {
    update: Update,
    entries: Vec<u8>,
    journal: Option<Vec<u8>>,
}

#[tokio::test]
async fn files_that_are_copied_when_something_is_sent_hold_it() {
    let (work, store) = (temp_dir(), temp_dir());
    std::fs::write(work.path().join(COUNTED), "start\n").unwrap();
    let moments: Arc<Mutex<Vec<Moment>>> = Arc::default();
    let kind = Kind::new();
    let (dir, found) = (store.path().to_path_buf(), moments.clone());
    kind.on_see(move |update| {
        let entries = std::fs::read(dir.join("s.jsonl")).unwrap();
        let journal = std::fs::read(dir.join("s.live")).ok();
        found.lock().unwrap().push(Moment { update: update.clone(), entries, journal });
    });
    let log = files(store.path());
    let sessions = Setup::new(log.clone()).start(work.path());
    let mut client = Client::attach(sessions.handle(id("s"), who()), kind).await.unwrap();
    story::tell(&mut client).await.unwrap();
    drop(client);
    stop(sessions, log).await;

    let moments = std::mem::take(&mut *moments.lock().unwrap());
    let growths = moments.iter().filter(|moment| matches!(moment.update, Update::Grew(_))).count();
    assert!(growths > 10, "{growths}");
    for moment in moments {
        let copy = temp_dir();
        std::fs::write(copy.path().join("s.jsonl"), &moment.entries).unwrap();
        if let Some(journal) = &moment.journal {
            std::fs::write(copy.path().join("s.live"), journal).unwrap();
        }
        check_copy(copy.path(), &moment.update).await;
    }
}

async fn check_copy(dir: &Path, update: &Update) {
    let log = files(dir);
    let opened = log.open(&id("s"), OpenMode::Existing).await.unwrap().unwrap();
    assert!(opened.folded.damage.is_empty(), "{:?}", opened.folded.damage);
    match update {
        Update::Logged(entry) => {
            let all = read_all(&*log, &id("s")).await;
            assert_eq!(all.get(entry.seq.0 as usize - 1), Some(entry));
        }
        Update::Grew(_) => {
            let kept = Kept { last: opened.folded.state.last_seq(), live: opened.live };
            assert!(holds(&kept, update), "{update:?}");
        }
        Update::Raw(_) => panic!("the story has none: {update:?}"),
    }
}

/// What people decided and were given is on the disk before anyone sees it, what they said soon
/// after; what a model can say again need not be.
#[tokio::test]
async fn words_decisions_results_and_ends_reach_the_disk() {
    let rig = Rig::offline();
    rig.countable(COUNTED);
    type Batches = Arc<Mutex<Vec<(Flush, Vec<Event>)>>>;
    let batches: Batches = Arc::default();
    let found = batches.clone();
    rig.log.break_when(move |write| {
        if let Op::Append { entries, flush } = write.op {
            let events = entries.iter().map(|entry| entry.event.clone()).collect();
            found.lock().unwrap().push((flush, events));
        }
        None
    });
    story::tell(&mut rig.client("s").await).await.unwrap();
    let batches = batches.lock().unwrap();
    let (mut flushed, mut soon) = (0, 0);
    for (flush, events) in &*batches {
        let said = events.iter().any(|event| matches!(event, Event::MessageQueued { .. }));
        let must = events.iter().any(|event| match event {
            Event::SessionCreated { .. }
            | Event::WaitSettled { .. }
            | Event::SessionClosed { .. }
            | Event::SessionReopened { .. }
            | Event::ModeSet { .. }
            | Event::SettingSet { .. }
            | Event::MessageDropped { .. }
            | Event::TurnStopping { .. }
            | Event::FilesTouched { .. }
            | Event::TurnEnded { .. } => true,
            // Or it would be run again by a machine that lost its power.
            Event::ToolStarted { leave, .. } => !matches!(leave, Some(Leave::Reads | Leave::Safe)),
            Event::WaitWithdrawn { by, .. } => by.is_some(),
            Event::ItemCompleted { result, .. } => result.is_some(),
            _ => false,
        });
        let wanted = match (must, said) {
            (true, _) => Flush::Disk,
            (false, true) => Flush::Soon,
            (false, false) => Flush::Process,
        };
        assert_eq!(*flush, wanted, "{events:?}");
        flushed += usize::from(must);
        soon += usize::from(*flush == Flush::Soon);
    }
    assert!(flushed > 10 && flushed < batches.len() / 2, "{flushed} of {}", batches.len());
    assert!(soon > 3, "{soon} messages");
}

/// The events that were appended, as they come.
fn appended(rig: &Rig) -> Arc<Mutex<Vec<Event>>> {
    let events: Arc<Mutex<Vec<Event>>> = Arc::default();
    let found = events.clone();
    rig.log.break_when(move |write| {
        if let Op::Append { entries, .. } = write.op {
            let events = entries.iter().map(|entry| entry.event.clone());
            found.lock().unwrap().extend(events);
        }
        None
    });
    events
}

async fn until(events: &Mutex<Vec<Event>>, is: fn(&Event) -> bool) {
    in_time("an event in the log", async {
        while !events.lock().unwrap().iter().any(is) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

fn began(event: &Event) -> bool {
    matches!(event, Event::ToolStarted { .. })
}

fn has_ended(client: &Client) -> bool {
    client.count(|event| matches!(event, Event::TurnEnded { .. })) > 0
}

/// Nobody sees what came of it.
#[tokio::test]
async fn what_only_reads_does_not_wait_for_the_disk() {
    let rig = Rig::offline();
    rig.countable(COUNTED);
    let mut client = rig.client("s").await;
    let events = appended(&rig);
    rig.log.hold_flushes(true);
    let script = format!("tool: read {{\"path\": \"{COUNTED}\"}}\nsay: done");
    client.send(&script).await.unwrap();
    until(&events, |event| matches!(event, Event::TurnEnded { .. })).await;
    client.until("the call", |client| client.count(began) > 0).await.unwrap();
    let came = |client: &Client| client.count(|e| matches!(e, Event::ItemCompleted { .. })) > 0;
    // Time in which it could be shown.
    let shown = client.until("what came of it", came);
    assert!(tokio::time::timeout(Duration::from_millis(100), shown).await.is_err());
    rig.log.hold_flushes(false);
    client.until("the end of the turn", has_ended).await.unwrap();
    assert!(client.texts().contains(&"done"), "{:?}", client.texts());
}

#[tokio::test]
async fn what_changes_something_waits_for_the_disk() {
    let rig = Rig::new(|setup| Setup { mode: Mode::AutoEdit, ..setup });
    let mut client = rig.client("s").await;
    let events = appended(&rig);
    rig.log.hold_flushes(true);
    client.send("tool: write_file {\"path\": \"new\", \"content\": \"x\"}").await.unwrap();
    until(&events, began).await;
    // Time in which it could do what it must not.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let last = events.lock().unwrap().last().cloned();
    assert!(matches!(last, Some(Event::ToolStarted { .. })), "{last:?}");
    assert!(!rig.dir.path().join("new").exists());
    rig.log.hold_flushes(false);
    client.until("the end of the turn", has_ended).await.unwrap();
    assert_eq!(std::fs::read(rig.dir.path().join("new")).unwrap(), b"x");
}

/// A disk that takes its time keeps nobody from reading what a model says.
#[tokio::test]
async fn what_follows_from_a_message_is_shown_while_it_is_flushed() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let hand = strings.hand();
    let mut client = rig.client("s").await;
    rig.log.hold_flushes(true);
    client.send("go").await.unwrap();
    hand.begin();
    hand.say("one ");
    client.until("a word", |c| c.was_shown("one ")).await.unwrap();
    // Nothing else asks for a flush: it comes by itself.
    rig.log.until_owed_flushes(1).await;
    hand.say("two ");
    client.until("another word", |c| c.was_shown("two ")).await.unwrap();
    let events = appended(&rig);
    hand.finish();
    // The end of a turn waits for everything before it.
    until(&events, |event| matches!(event, Event::TurnEnded { .. })).await;
    let shown = client.until("an end that nobody may see", has_ended);
    assert!(tokio::time::timeout(Duration::from_millis(100), shown).await.is_err());
    rig.log.hold_flushes(false);
    client.until("the end of the turn", has_ended).await.unwrap();
}

/// Who leaves is flushed first.
#[tokio::test]
async fn a_message_that_waits_is_flushed_when_the_session_ends() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let hand = strings.hand();
    let mut client = rig.client("s").await;
    client.send("go").await.unwrap();
    hand.begin();
    rig.log.until_owed_flushes(1).await;
    client.send("and then").await.unwrap();
    rig.sessions.close().await;
    rig.log.until_owed_flushes(2).await;
}
