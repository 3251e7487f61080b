//! What goes on by itself and what does not: unfinished turns, and requests that nobody answers.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use polyloop_agent::model::{Model, Request};
use polyloop_agent::patch::Journal;
use polyloop_agent::sessions::Sessions;
use polyloop_session::decide::EXPIRED_TEXT;
use polyloop_session::event::{Outcome, Work};
use polyloop_session::history::Message;
use polyloop_session::item::End;
use polyloop_session::policy::Mode;
use polyloop_session::recover::CRASHED_TOOL_TEXT;
use polyloop_session::state::RESUME_TEXT;
use polyloop_session::wait::{Answer, Then};
use polyloop_session::{Command, Event, LogEntry};
use serde_json::json;
use tempfile::TempDir;

use super::client::Client;
use super::faults::{Break, Faulty, How, Moment, Op};
use super::make::{approve, id, interrupt, parts, send, who};
use super::model::{Puppet, acting, adding, in_turn, said};
use super::rig::{Rig, Setup, count, in_time, memory, read_all, temp_dir};
use super::view::{Kind, Seeing};

/// A log that outlives the servers on it.
struct Store {
    dir: TempDir,
    log: Arc<Faulty>,
}

fn broken() -> Break {
    Break { moment: Moment::Before, how: How::Death }
}

impl Store {
    fn new() -> Store {
        Store { dir: temp_dir(), log: memory() }
    }

    /// A server whose store can be broken alone.
    fn server(&self, change: impl FnOnce(Setup) -> Setup) -> (Arc<Faulty>, Sessions<Seeing>) {
        let log = Faulty::new(self.log.clone());
        let sessions = change(Setup::new(log.clone())).start(self.dir.path());
        (log, sessions)
    }

    /// A server that dies while a turn runs, with another message in its queue.
    async fn crash_amid(&self, message: &str) {
        let (log, sessions) = self.server(|setup| setup);
        let mut client =
            Client::attach(sessions.handle(id("s"), who()), Kind::new()).await.unwrap();
        client.send(message).await.unwrap();
        client.until("the words", |c| !c.texts().is_empty()).await.unwrap();
        log.break_when(|_| Some(broken()));
        assert!(client.send("say: lost").await.is_err());
        client.until_end().await;
    }

    async fn entries(&self) -> Vec<Arc<LogEntry>> {
        read_all(&*self.log, &id("s")).await
    }
}

/// Counts its calls, and says whether it was asked to go on.
fn counting() -> (Arc<dyn Model>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let model = Puppet(move |request: Request| {
        counted.fetch_add(1, Ordering::SeqCst);
        let last = request.prompt.messages.last();
        let goes_on = last == Some(&Message::User(parts(RESUME_TEXT)));
        in_turn(said(if goes_on { "gone on" } else { "asked anew" }))
    });
    (Arc::new(model), calls)
}

fn resumed(entries: &[Arc<LogEntry>]) -> usize {
    let is_resume = |entry: &&Arc<LogEntry>| {
        matches!(entry.event, Event::TurnStarted { work: Work::Resume { .. }, .. })
    };
    entries.iter().filter(is_resume).count()
}

#[tokio::test]
async fn a_turn_that_a_crash_cut_goes_on_by_itself_if_it_may() {
    let store = Store::new();
    store.crash_amid("say: half\nfail: hang").await;
    let (model, calls) = counting();
    let (log, sessions) = store.server(|setup| {
        Setup { auto_resume: true, sleep_after: Duration::from_millis(10), ..setup }.model(model)
    });
    in_time("all to be opened", sessions.resume_unfinished()).await;
    // With nobody attached: it works, ends, and goes to sleep.
    log.until_writers(0).await;
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let entries = store.entries().await;
    assert_eq!(resumed(&entries), 1);
    let mut client = Client::attach(sessions.handle(id("s"), who()), Kind::new()).await.unwrap();
    assert_eq!(client.texts(), ["half", "gone on"]);
    // It is finished now, so opening it again does nothing more.
    client.send("and?").await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts(), ["half", "gone on", "asked anew"]);
    assert_eq!(resumed(&store.entries().await), 1);
}

#[tokio::test]
async fn nothing_is_called_after_a_crash_before_a_client_asks() {
    let store = Store::new();
    store.crash_amid("say: half\nfail: hang").await;
    let (model, calls) = counting();
    let (_, sessions) = store.server(|setup| setup.model(model));
    in_time("all to be opened", sessions.resume_unfinished()).await;
    let mut client = Client::attach(sessions.handle(id("s"), who()), Kind::new()).await.unwrap();
    client.handle.context_info().await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert!(client.state.interrupted().is_some_and(|interrupted| !interrupted.by_person));
    client.command(Command::Resume { by: who() }).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts(), ["half", "gone on"]);
}

#[tokio::test]
async fn what_a_person_interrupted_stays_so() {
    let store = Store::new();
    let (_, first) = store.server(|setup| setup);
    let mut client = Client::attach(first.handle(id("s"), who()), Kind::new()).await.unwrap();
    client.send("say: half\nfail: hang").await.unwrap();
    client.until("the words", |c| !c.texts().is_empty()).await.unwrap();
    client.command(interrupt()).await.unwrap();
    client.until_idle().await.unwrap();
    first.close().await;

    let (model, calls) = counting();
    let (_, sessions) = store.server(|setup| Setup { auto_resume: true, ..setup }.model(model));
    in_time("all to be opened", sessions.resume_unfinished()).await;
    let client = Client::attach(sessions.handle(id("s"), who()), Kind::new()).await.unwrap();
    assert!(client.is_idle() && client.state.interrupted().unwrap().by_person);
    client.handle.context_info().await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert_eq!(resumed(&store.entries().await), 0);
}

/// The same when the server died before the interruption was over.
#[tokio::test]
async fn what_a_person_was_interrupting_stays_so() {
    let store = Store::new();
    let (log, first) = store.server(|setup| setup);
    let mut client = Client::attach(first.handle(id("s"), who()), Kind::new()).await.unwrap();
    client.send("say: half\nfail: hang").await.unwrap();
    client.until("the words", |c| !c.texts().is_empty()).await.unwrap();
    log.break_when(|write| match write.op {
        Op::Append { entries, .. } => {
            let stops = matches!(entries[0].event, Event::TurnStopping { .. });
            stops.then_some(Break { moment: Moment::After, how: How::Death })
        }
        _ => None,
    });
    assert!(client.command(interrupt()).await.is_err());
    client.until_end().await;

    let (model, calls) = counting();
    let (_, sessions) = store.server(|setup| Setup { auto_resume: true, ..setup }.model(model));
    let client = Client::attach(sessions.handle(id("s"), who()), Kind::new()).await.unwrap();
    assert!(client.is_idle() && client.state.interrupted().unwrap().by_person);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

/// Nobody wanted the server's own stop, so its turns go on with the next one.
#[tokio::test]
async fn what_a_shutdown_interrupted_goes_on() {
    let store = Store::new();
    let (_, first) = store.server(|setup| setup);
    let mut client = Client::attach(first.handle(id("s"), who()), Kind::new()).await.unwrap();
    client.send("say: half\nfail: hang").await.unwrap();
    client.until("the words", |c| !c.texts().is_empty()).await.unwrap();
    first.close().await;
    let (model, _) = counting();
    let (_, sessions) = store.server(|setup| Setup { auto_resume: true, ..setup }.model(model));
    in_time("all to be opened", sessions.resume_unfinished()).await;
    let mut client = Client::attach(sessions.handle(id("s"), who()), Kind::new()).await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts(), ["half", "gone on"]);
}

/// The result of a call that was cut off says what the next start did with its files.
#[tokio::test]
async fn a_cut_call_is_told_what_became_of_its_edit() {
    let store = Store::new();
    let file = "counted.txt";
    std::fs::write(store.dir.path().join(file), "start\n").unwrap();
    let model = || acting(vec![("apply_patch", adding(file, "ran"))]);
    let auto_edit = |setup: Setup| Setup { mode: Mode::AutoEdit, ..setup };
    let (log, first) = store.server(|setup| auto_edit(setup).model(model()));
    let mut client = Client::attach(first.handle(id("s"), who()), Kind::new()).await.unwrap();
    log.break_when(|write| match write.op {
        Op::Append { entries, .. } => {
            let starts = |entry: &Arc<LogEntry>| matches!(entry.event, Event::ToolStarted { .. });
            let broken = Break { moment: Moment::After, how: How::Death };
            entries.iter().any(starts).then_some(broken)
        }
        _ => None,
    });
    let _ = client.send("go").await;
    client.until_end().await;
    let started = store.entries().await.into_iter().find_map(|entry| match &entry.event {
        Event::ToolStarted { item, .. } => Some(*item),
        _ => None,
    });

    // What a kill leaves when nothing but a spare file has been written.
    let journals = temp_dir();
    let folder = journals.path().join("patches");
    let open = || Journal::open(&folder).unwrap();
    open();
    let root = store.dir.path().canonicalize().unwrap();
    let spare = format!(".polyloop-{}.tmp", "0".repeat(32));
    std::fs::write(root.join(&spare), "start\nran\n").unwrap();
    let facts = root.metadata().unwrap();
    let line = json!({
        "line": "begun",
        "root": { "path": root, "device": facts.dev(), "inode": facts.ino(), "boot": "" },
        "steps": [{ "does": "replace", "path": file, "spare": spare }],
        "call": { "session": "s", "item": started.unwrap() },
    });
    let path = folder.join("1.patch");
    std::fs::write(&path, format!("{line}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let journal = open();
    assert_eq!(journal.replay().len(), 1);
    assert!(!root.join(spare).exists());

    let log = Faulty::new(store.log.clone());
    let mut kit = Setup::new(log).model(model()).kit(store.dir.path());
    kit.places.common.journal = Some(journal);
    let sessions: Sessions<Seeing> = Sessions::new(kit, None);
    let client = Client::attach(sessions.handle(id("s"), who()), Kind::new()).await.unwrap();
    let seen = client.entries.iter().find_map(|entry| match &entry.event {
        Event::ItemCompleted { result: Some(result), .. } => result.seen.clone(),
        _ => None,
    });
    let want = format!(
        "{CRASHED_TOOL_TEXT} The edit it was making ({file}) was undone: all is as it was before \
         that edit."
    );
    assert_eq!(seen.as_deref(), Some(want.as_str()));
}

/// A request for approval that is open when the server dies is neither answered nor resumed.
#[tokio::test]
async fn an_open_request_waits_on_after_a_crash() {
    let store = Store::new();
    let file = "counted.txt";
    std::fs::write(store.dir.path().join(file), "start\n").unwrap();
    let model = || acting(vec![("apply_patch", adding(file, "ran"))]);
    let (log, first) = store.server(|setup| setup.model(model()));
    let mut client = Client::attach(first.handle(id("s"), who()), Kind::new()).await.unwrap();
    client.send("go").await.unwrap();
    client.until("the request", |c| c.wait().is_some()).await.unwrap();
    log.break_when(|_| Some(broken()));
    assert!(client.send("say: lost").await.is_err());
    for auto_resume in [false, true] {
        let (_, sessions) = store.server(|setup| Setup { auto_resume, ..setup }.model(model()));
        let again = Client::attach(sessions.handle(id("s"), who()), Kind::new()).await.unwrap();
        assert_eq!(again.wait(), client.wait());
        sessions.close().await;
    }
    let (_, sessions) = store.server(|setup| setup.model(model()));
    let mut again = Client::attach(sessions.handle(id("s"), who()), Kind::new()).await.unwrap();
    again.settle(approve()).await.unwrap();
    again.until_idle().await.unwrap();
    assert_eq!(count(&store.dir.path().join(file), "ran"), 1);
}

fn expired(client: &Client) -> usize {
    let is_expired = |entry: &&Arc<LogEntry>| match &entry.event {
        Event::WaitSettled { answer: Answer::Denied { message, then }, by, .. } => {
            &**message == EXPIRED_TEXT && *then == Then::Continue && &*by.via == "timeout"
        }
        _ => false,
    };
    client.entries.iter().filter(is_expired).count()
}

#[tokio::test]
async fn a_request_that_nobody_answers_is_denied_and_the_turn_goes_on() {
    let file = "counted.txt";
    let rig = Rig::new(|setup| {
        Setup { approval_timeout: Some(Duration::from_millis(50)), ..setup }
            .model(acting(vec![("apply_patch", adding(file, "ran"))]))
    });
    rig.countable(file);
    let mut client = rig.client("s").await;
    for n in 1..3 {
        client.send("go").await.unwrap();
        client.until_idle().await.unwrap();
        assert_eq!(expired(&client), n);
        let last = &client.entries.last().unwrap().event;
        assert!(matches!(last, Event::TurnEnded { outcome: Outcome::Completed, .. }), "{last:?}");
        assert_eq!(client.texts().len(), n, "the model was told and had its say");
    }
    assert_eq!(rig.count(file, "ran"), 0);
    let denied = client.entries.iter().filter(|entry| {
        matches!(&entry.event, Event::ItemCompleted { end: End::Denied, text, .. }
            if &**text == EXPIRED_TEXT)
    });
    assert_eq!(denied.count(), 2);
}

/// The time runs on while the server is down.
#[tokio::test]
async fn a_request_may_run_out_while_nobody_runs_the_session() {
    let store = Store::new();
    let file = "counted.txt";
    std::fs::write(store.dir.path().join(file), "start\n").unwrap();
    let model = || acting(vec![("apply_patch", adding(file, "ran"))]);
    let (_, first) = store.server(|setup| setup.model(model()));
    first.handle(id("s"), who()).command(send("go")).await.unwrap();
    let mut client = Client::attach(first.handle(id("s"), who()), Kind::new()).await.unwrap();
    client.until("the request", |c| c.wait().is_some()).await.unwrap();
    assert_eq!(client.texts().len(), 0);
    first.close().await;
    let (_, second) = store.server(|setup| {
        Setup { approval_timeout: Some(Duration::from_millis(1)), ..setup }.model(model())
    });
    let mut again = Client::attach(second.handle(id("s"), who()), Kind::new()).await.unwrap();
    again.until_idle().await.unwrap();
    assert_eq!((expired(&again), again.texts().len()), (1, 1));
}
