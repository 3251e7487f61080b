//! Sessions that end with their connection: as good as any while they last, and gone afterwards.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use polyloop_agent::actor::CommandError;
use polyloop_agent::log::{Flush, LinePlace, Log, OpenMode};
use polyloop_agent::sessions::{Handle, Sessions};
use polyloop_agent::subscriber::{Ending, Presence};
use polyloop_agent::todos::Todos;
use polyloop_session::policy::Mode;
use polyloop_session::{Seq, SessionId, WaitRef};
use tokio::sync::Barrier;

use super::client::{APPROVE, Client, PID};
use super::make::{approve, entry, queued, send, settle, who};
use super::rig::{Rig, Setup, files, helper, in_time, is_running, read_all, stop, temp_dir};
use super::view::{Kind, Seeing};

async fn attach(handle: &Handle<Seeing>) -> Client {
    Client::attach(handle.clone(), Kind::new()).await.unwrap()
}

async fn discard(sessions: &Sessions<Seeing>, id: &SessionId) {
    in_time("the end of the session", sessions.discard(id)).await;
}

/// Nothing of it can be found, wherever one looks.
async fn check_unknown(sessions: &Sessions<Seeing>, id: &SessionId) {
    assert!(sessions.list().await.unwrap().is_empty());
    assert_eq!(sessions.summary(id).await.unwrap(), None);
    assert!(sessions.lines(id, LinePlace::default(), LinePlace::END).await.unwrap().0.is_empty());
    assert!(read_all(&*sessions.kit().log, id).await.is_empty());
}

async fn check_gone(sessions: &Sessions<Seeing>, id: &SessionId) {
    check_unknown(sessions, id).await;
    assert!(sessions.kit().passing.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_passing_session_leaves_no_trace() {
    let (work, store, lists) = (temp_dir(), temp_dir(), temp_dir());
    let log = files(store.path());
    let todos = Todos::open(lists.path()).unwrap();
    let sessions = Sessions::new(Setup::new(log.clone()).kit(work.path()), Some(todos));
    let empty = |dir: &tempfile::TempDir| std::fs::read_dir(dir.path()).unwrap().count() == 0;
    let before = empty(&store);
    let handle = sessions.passing(who());
    assert_ne!(handle.id(), sessions.passing(who()).id());
    let mut client = attach(&handle).await;
    client.send("stream: 9 9 0\nsay: one").await.unwrap();
    client.until_idle().await.unwrap();
    client.send("say: two").await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts()[1..], ["one", "two"]);
    // It is there for whoever has its name.
    let again = attach(&sessions.handle(handle.id().clone(), who())).await;
    assert_eq!(again.entries, client.entries);
    check_unknown(&sessions, handle.id()).await;
    assert_eq!((empty(&store), empty(&lists)), (before, true));

    discard(&sessions, handle.id()).await;
    assert_eq!(client.until_end().await, Ending::Closed);
    check_gone(&sessions, handle.id()).await;
    assert!(handle.read(Seq::NONE, Seq(99)).await.unwrap().is_empty());
    discard(&sessions, handle.id()).await;
    drop((client, again));
    assert_eq!((empty(&store), empty(&lists)), (before, true));
    drop(handle);
    stop(sessions, log).await;
}

#[tokio::test]
async fn a_command_that_runs_in_it_is_killed() {
    let rig = Rig::new(|setup| Setup { mode: Mode::Bypass, helper: helper(), ..setup });
    let handle = rig.sessions.passing(who());
    let mut client = attach(&handle).await;
    client.send("run: echo pid $$; sleep 300 & echo pid $!; sleep 300").await.unwrap();
    client.until("the ids of both processes", |c| c.output(PID).len() == 2).await.unwrap();
    let processes = client.output(PID);
    assert!(processes.iter().all(|process| is_running(process)), "{processes:?}");
    discard(&rig.sessions, handle.id()).await;
    assert!(!processes.iter().any(|process| is_running(process)), "{processes:?} run on");
    assert_eq!(client.until_end().await, Ending::Closed);
    check_gone(&rig.sessions, handle.id()).await;
}

/// A call that hangs, a request that is open, a message in the queue: none holds it up.
#[tokio::test]
async fn whatever_it_is_doing_it_ends() {
    for script in ["fail: hang", "run: touch file", "ask: Well? | yes", "plan: do it"] {
        let plans = temp_dir();
        let rig = Rig::new(|setup| Setup { plans: Some(plans.path().into()), ..setup });
        let handle = rig.sessions.passing(who());
        let mut client = attach(&handle).await;
        client.send(script).await.unwrap();
        client.send("say: queued").await.unwrap();
        let busy = |c: &Client| c.state.turn().is_some_and(|t| !t.calls.is_empty());
        client.until("work", |c| c.wait().is_some() || busy(c)).await.unwrap();
        if !script.starts_with("fail") {
            client.until("the request", |c| c.wait().is_some()).await.unwrap();
        }
        discard(&rig.sessions, handle.id()).await;
        assert_eq!(client.until_end().await, Ending::Closed, "{script}");
        assert!(client.texts().is_empty(), "{script}: nothing new began");
        check_gone(&rig.sessions, handle.id()).await;
        assert_eq!(std::fs::read_dir(plans.path()).unwrap().count(), 0, "{script}: a plan is left");
    }
}

/// One that is kept under the same name is another session.
#[tokio::test]
async fn a_stored_session_is_never_touched() {
    let rig = Rig::offline();
    let handle = rig.sessions.passing(who());
    let name = handle.id().clone();
    let mut opened = rig.log.open(&name, OpenMode::OrCreate).await.unwrap().unwrap();
    let kept = [Arc::new(entry(1, queued("kept")))];
    opened.writer.append(Seq::NONE, &kept, Flush::Process).await.unwrap();
    drop(opened);
    let mut client = attach(&handle).await;
    assert_eq!(client.entries.len(), 1, "it does not begin with another's entries");
    client.send("say: passing").await.unwrap();
    client.until_idle().await.unwrap();
    discard(&rig.sessions, &name).await;
    assert_eq!(read_all(&*rig.log, &name).await, kept);
    // And what is kept is not discarded.
    discard(&rig.sessions, &name).await;
    let mut client = rig.client("s").await;
    client.send("say: kept").await.unwrap();
    client.until_idle().await.unwrap();
    discard(&rig.sessions, client.handle.id()).await;
    client.send("say: as well").await.unwrap();
    client.until_idle().await.unwrap();
    assert_eq!(client.texts(), ["kept", "as well"]);
    assert_eq!(read_all(&*rig.log, &name).await, kept);
}

/// It sleeps like any other when nobody is there, and knows what was said when it comes back.
#[tokio::test]
async fn it_sleeps_and_comes_back() {
    let rig = Rig::new(|setup| Setup { sleep_after: Duration::from_millis(10), ..setup });
    let opened: Arc<Mutex<Vec<SessionId>>> = Arc::default();
    let told = opened.clone();
    rig.sessions.on_open(move |id| told.lock().unwrap().push(id.clone()));
    let handle = rig.sessions.passing(who());
    for n in 1..4 {
        let mut client = attach(&handle).await;
        client.send(&format!("say: {n}")).await.unwrap();
        client.until_idle().await.unwrap();
        assert_eq!(client.texts().len(), n);
        assert_eq!(*opened.lock().unwrap(), vec![handle.id().clone(); n]);
        let (power, presence) = (APPROVE, Presence::Onlooker);
        let onlooker = Client::attach_as(handle.clone(), Kind::new(), power, presence).await;
        drop(client);
        assert_eq!(onlooker.unwrap().until_end().await, Ending::Closed);
    }
    discard(&rig.sessions, handle.id()).await;
    check_gone(&rig.sessions, handle.id()).await;
}

/// Whoever still holds it is told that it is over; it does not come back as a session that stays.
#[tokio::test]
async fn a_handle_that_outlives_it_brings_nothing_back() {
    let rig = Rig::offline();
    let handle = rig.sessions.passing(who());
    let mut client = attach(&handle).await;
    client.send("ask: Well? | yes").await.unwrap();
    client.until("the question", |c| c.wait().is_some()).await.unwrap();
    discard(&rig.sessions, handle.id()).await;
    for command in [send("say: late"), settle(WaitRef::Presented, approve())] {
        let late = client.try_command(command).await;
        assert!(
            matches!(
                late,
                Err(CommandError::Store(_) | CommandError::Failed(_) | CommandError::Moved)
            ),
            "{late:?}"
        );
    }
    assert!(Client::attach(handle.clone(), Kind::new()).await.is_err());
    assert!(handle.look().await.is_err());
    check_gone(&rig.sessions, handle.id()).await;
    assert_eq!(rig.log.opens(), 0);
}

/// Requests that come at the very moment when it ends: done in it, or refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_that_race_with_its_end_bring_nothing_back() {
    const ASKERS: usize = 4;
    for _ in 0..50 {
        let rig = Rig::offline();
        let handle = rig.sessions.passing(who());
        handle.command(send("fail: hang")).await.unwrap();
        let together = Arc::new(Barrier::new(ASKERS + 1));
        let asking: Vec<_> = (0..ASKERS)
            .map(|_| {
                let (handle, together) = (handle.clone(), together.clone());
                tokio::spawn(async move {
                    together.wait().await;
                    for _ in 0..20 {
                        match handle.command(send("say: hi")).await {
                            Ok(_) | Err(CommandError::Refused(_)) => {}
                            Err(
                                CommandError::Store(_)
                                | CommandError::Failed(_)
                                | CommandError::Moved,
                            ) => return,
                        }
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        together.wait().await;
        discard(&rig.sessions, handle.id()).await;
        for asked in asking {
            in_time("all answers", asked).await.unwrap();
        }
        check_gone(&rig.sessions, handle.id()).await;
        assert_eq!(rig.log.opens(), 0);
    }
}
