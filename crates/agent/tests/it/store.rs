//! When the store fails: whoever asked is told, nothing that was not kept is shown, the failed
//! writer is left alone, and the next use opens the session anew.

use std::sync::mpsc;

use polyloop_agent::actor::{CommandError, Recorded};
use polyloop_agent::log::Flush;
use polyloop_agent::subscriber::Ending;
use polyloop_session::event::Outcome;
use polyloop_session::item::End;
use polyloop_session::policy::Mode;
use polyloop_session::{Command, Event, Stream};

use super::client::Client;
use super::faults::{BROKEN, Break, How, Moment, Op, Write};
use super::make::{id, send, who};
use super::model::Strings;
use super::rig::{Rig, Setup, check_at_rest, in_time, read_all};

const BREAKS: [Break; 4] = [
    Break { moment: Moment::Before, how: How::Error },
    Break { moment: Moment::After, how: How::Error },
    Break { moment: Moment::Before, how: How::Panic },
    Break { moment: Moment::After, how: How::Panic },
];

fn appends(write: &Write<'_>, is: fn(&Event) -> bool) -> bool {
    match write.op {
        Op::Append { entries, .. } => entries.iter().any(|entry| is(&entry.event)),
        Op::Grow | Op::Forget | Op::Audit => false,
    }
}

fn is_message(event: &Event) -> bool {
    matches!(event, Event::MessageQueued { .. })
}

fn ends_item(event: &Event) -> bool {
    matches!(event, Event::ItemCompleted { .. })
}

fn why(done: Result<Recorded, CommandError>) -> String {
    match done {
        Err(CommandError::Store(why) | CommandError::Failed(why)) => why,
        other => panic!("the store did not fail: {other:?}"),
    }
}

/// The session works, and so does another one that was open all the while.
async fn check_works(rig: &Rig, other: &mut Client) {
    let mut again = rig.client("s").await;
    for client in [&mut again, other] {
        client.send("say: works").await.unwrap();
        client.until_idle().await.unwrap();
        assert_eq!(client.texts().last(), Some(&"works"));
    }
    assert_eq!(rig.log.misused(), 0, "a writer that had failed was used again");
    drop(again);
    rig.sessions.close().await;
    check_at_rest(&*rig.log, &id("s")).await;
}

#[tokio::test]
async fn a_failed_append_is_told_and_shown_to_nobody() {
    for broken in BREAKS {
        let rig = Rig::offline();
        let (mut client, mut other) = (rig.client("s").await, rig.client("other").await);
        let (had, seen) = (client.entries.len(), rig.kind.seen());
        rig.log.break_when(move |write| appends(write, is_message).then_some(broken));

        let told = why(client.try_command(send("say: lost")).await);
        let ending = client.until_end().await;
        match (broken.how, ending) {
            (How::Panic, Ending::Failed(_)) => {}
            (_, Ending::Failed(why)) => assert!(why.contains(BROKEN) && told.contains(BROKEN)),
            (_, ending) => panic!("{broken:?}: {ending:?}"),
        }
        assert_eq!((client.entries.len(), rig.kind.seen()), (had, seen), "{broken:?}");
        let kept = read_all(&*rig.log, &id("s")).await;
        let is_kept = kept.iter().any(|entry| is_message(&entry.event));
        assert_eq!(is_kept, broken.moment == Moment::After);
        rig.log.until_writers(1).await;

        check_works(&rig, &mut other).await;
        // A message that was written although its sender was told otherwise is not answered by
        // itself, but nor is it forgotten.
        let all = read_all(&*rig.log, &id("s")).await;
        let interrupted = all.iter().any(|entry| {
            let Event::TurnEnded { outcome, .. } = &entry.event else { return false };
            matches!(outcome, Outcome::Interrupted { .. })
        });
        assert_eq!(interrupted, is_kept);
    }
}

/// The writer's own doing: it wrote, and could not say that it is safe.
#[tokio::test]
async fn a_failed_flush_is_final_for_its_writer() {
    let rig = Rig::offline();
    let (mut client, mut other) = (rig.client("s").await, rig.client("other").await);
    let broken = Break { moment: Moment::After, how: How::Error };
    rig.log.break_when(move |write| match write.op {
        Op::Append { flush: Flush::Disk, .. } => Some(broken),
        _ => None,
    });
    let opens = rig.log.opens();
    why(client.try_command(Command::SetMode { mode: Mode::AutoEdit, by: who() }).await);
    assert!(matches!(client.until_end().await, Ending::Failed(_)));
    assert_eq!(rig.log.opens(), opens, "it is opened anew when it is used, not before");
    drop(rig.client("s").await);
    assert_eq!(rig.log.opens(), opens + 1);
    check_works(&rig, &mut other).await;
}

/// What was shown before it was flushed is not taken back, but the session takes nothing more.
#[tokio::test]
async fn a_flush_that_was_owed_and_fails_ends_the_session() {
    let (model, strings) = Strings::new();
    let rig = Rig::new(|setup| setup.model(model));
    let hand = strings.hand();
    let mut client = rig.client("s").await;
    rig.log.break_owed_flush();
    client.send("go").await.unwrap();
    hand.begin();
    match client.until_end().await {
        Ending::Failed(why) => assert!(why.contains(BROKEN), "{why}"),
        ending => panic!("{ending:?}"),
    }
    assert!(client.entries.iter().any(|entry| is_message(&entry.event)));
    rig.log.until_writers(0).await;
    assert_eq!(rig.log.misused(), 0);
    let kept = read_all(&*rig.log, &id("s")).await;
    assert_eq!(kept, client.entries);
}

#[tokio::test]
async fn a_store_that_fails_after_the_answer_ends_the_session_too() {
    for broken in BREAKS {
        let rig = Rig::offline();
        let (mut client, mut other) = (rig.client("s").await, rig.client("other").await);
        rig.log.break_when(move |write| appends(write, ends_item).then_some(broken));
        let told = client.try_command(send("say: lost")).await;
        // What a model says at once is written with the message, and ends soon after: nobody may be
        // left to tell what was kept. It is seen by whoever comes back.
        assert!(told.is_ok() || broken.how == How::Panic, "{broken:?}: {told:?}");
        assert!(matches!(client.until_end().await, Ending::Failed(_)));
        let kept = read_all(&*rig.log, &id("s")).await;
        assert!(kept.iter().any(|entry| is_message(&entry.event)));
        assert!(!client.entries.iter().any(|entry| ends_item(&entry.event)));
        check_works(&rig, &mut other).await;
    }
}

#[tokio::test]
async fn growth_that_is_not_kept_is_not_shown() {
    for broken in BREAKS {
        let (model, strings) = Strings::new();
        let rig = Rig::new(|setup| setup.model(model));
        let hand = strings.hand();
        let mut client = rig.client("s").await;
        client.send("go").await.unwrap();
        hand.begin();
        hand.say("one ");
        client.until("a word", |c| c.was_shown("one ")).await.unwrap();
        rig.log.break_when(move |write| matches!(write.op, Op::Grow).then_some(broken));
        hand.say("two ");
        assert!(matches!(client.until_end().await, Ending::Failed(_)));
        let shown: Vec<&String> = client.shown.values().collect();
        assert_eq!(shown, ["one "], "{broken:?}");

        let again = rig.client("s").await;
        let want = match broken.moment {
            Moment::Before => "one ",
            Moment::After => "one two ",
        };
        assert_eq!(again.texts(), [want]);
        let ends: Vec<End> = ends(&again);
        assert_eq!(ends, [End::Cut]);
        assert_eq!(rig.log.misused(), 0);
    }
}

fn ends(client: &Client) -> Vec<End> {
    let end = |event: &Event| match event {
        Event::ItemCompleted { end, .. } => Some(*end),
        _ => None,
    };
    client.entries.iter().filter_map(|entry| end(&entry.event)).collect()
}

#[tokio::test]
async fn a_journal_that_cannot_be_emptied_doubles_nothing() {
    for broken in BREAKS {
        let rig = Rig::offline();
        let (mut client, mut other) = (rig.client("s").await, rig.client("other").await);
        rig.log.break_when(move |write| matches!(write.op, Op::Forget).then_some(broken));
        client.send("say: hello").await.ok();
        assert!(matches!(client.until_end().await, Ending::Failed(_)));
        // The whole was kept and shown before the journal was to be emptied.
        assert_eq!(client.texts(), ["hello"]);
        assert_eq!(client.shown.keys().filter(|(_, s)| *s == Stream::Text).count(), 1);
        let again = rig.client("s").await;
        assert_eq!(again.texts(), ["hello"]);
        check_works(&rig, &mut other).await;
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_can_be_later() {
    for how in [How::Error, How::Panic] {
        let rig = Rig::offline();
        rig.log.break_open(how);
        why(in_time("an answer", rig.handle("s").command(send("say: lost"))).await);
        let mut client = rig.client("s").await;
        assert_eq!(client.entries.len(), 1, "{:?}", client.entries);
        client.send("say: works").await.unwrap();
        client.until_idle().await.unwrap();
        assert_eq!(client.texts(), ["works"]);
    }
}

#[tokio::test]
async fn a_failed_audit_line_ends_the_session() {
    let rig = Rig::offline();
    let (mut client, mut other) = (rig.client("s").await, rig.client("other").await);
    let broken = Break { moment: Moment::Before, how: How::Error };
    rig.log.break_when(move |write| matches!(write.op, Op::Audit).then_some(broken));
    client
        .handle
        .audit(|at, seq| format!("{{\"audit\":true,\"at\":{},\"seq\":{seq}}}\n", at.0))
        .await;
    assert!(matches!(client.until_end().await, Ending::Failed(_)));
    check_works(&rig, &mut other).await;
}

/// An unfinished turn is to go on by itself, and that cannot be written.
#[tokio::test]
async fn a_session_that_cannot_go_on_by_itself_is_not_opened() {
    let (model, _strings) = Strings::new();
    let rig = Rig::new(|setup| Setup { auto_resume: true, ..setup }.model(model));
    let mut client = rig.client("s").await;
    client.send("a question").await.unwrap();
    client
        .until("the call", |c| c.state.turn().is_some_and(|turn| !turn.calls.is_empty()))
        .await
        .unwrap();
    let broken = Break { moment: Moment::Before, how: How::Error };
    rig.log.break_when(move |_| Some(broken));
    why(client.try_command(Command::SetMode { mode: Mode::Plan, by: who() }).await);
    client.until_end().await;
    rig.log.break_when(move |write| {
        let starts = appends(write, |event| matches!(event, Event::TurnStarted { .. }));
        starts.then_some(broken)
    });
    assert!(Client::attach(rig.handle("s"), rig.kind).await.is_err());
    assert_eq!(rig.log.writers(), 0);
    let again = rig.client("s").await;
    assert!(again.state.turn().is_some(), "it goes on when it can");
}

/// Whoever waited in line when the session broke is told that nobody knows, and nothing is done
/// behind their back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn commands_behind_a_failure_are_not_repeated() {
    let rig = Rig::offline();
    let client = rig.client("s").await;
    let (release, wait) = mpsc::channel::<()>();
    let broken = Break { moment: Moment::Before, how: How::Error };
    rig.log.break_when(move |_| {
        wait.recv().unwrap();
        Some(broken)
    });
    let mut waiting = Vec::new();
    for n in 0..5 {
        let handle = client.handle.clone();
        let said = tokio::spawn(async move { handle.command(send(&format!("say: {n}"))).await });
        waiting.push(said);
    }
    // All are in line before the first fails; those that come later find a new session, which is
    // as good.
    tokio::task::yield_now().await;
    release.send(()).unwrap();
    let mut failed = 0;
    for done in waiting {
        match in_time("an answer", done).await.unwrap() {
            Ok(_) => {}
            Err(CommandError::Store(_) | CommandError::Failed(_) | CommandError::Moved) => {
                failed += 1
            }
            Err(CommandError::Refused(refusal)) => panic!("{refusal}"),
        }
    }
    assert!(failed >= 1);
    let mut again = rig.client("s").await;
    again.until_idle().await.unwrap();
    let all = read_all(&*rig.log, &id("s")).await;
    let messages = all.iter().filter(|entry| is_message(&entry.event)).count();
    assert_eq!(messages, 5 - failed);
}
