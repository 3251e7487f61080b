use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use polyloop_session::{CallId, Report, Seq};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::perform::Performed;

fn gate(max: usize, waiting_max: usize) -> Gate {
    Gate::new(Kind::Calls, max, waiting_max)
}

fn session(name: &str) -> SessionId {
    SessionId::parse(name).unwrap()
}

fn inside(gate: &Gate, name: &str) -> Permit {
    match gate.enter(&session(name)) {
        Entry::In(permit) => permit,
        other => panic!("not let in: {other:?}"),
    }
}

fn waits(gate: &Gate, name: &str) -> Waiting {
    match gate.enter(&session(name)) {
        Entry::Waits(waiting) => waiting,
        other => panic!("does not wait: {other:?}"),
    }
}

fn busy(running: usize, waiting: usize) -> Busy {
    Busy { running, waiting }
}

#[test]
fn sessions_take_turns_however_much_one_asks_for() {
    let gate = gate(1, 100);
    let mut held = Some(inside(&gate, "greedy"));
    let mut queue: Vec<(&str, Waiting)> = Vec::new();
    queue.extend((0..8).map(|_| ("greedy", waits(&gate, "greedy"))));
    queue.push(("modest", waits(&gate, "modest")));
    queue.push(("late", waits(&gate, "late")));
    let mut order = Vec::new();
    while !queue.is_empty() {
        drop(held.take());
        let mut given = Vec::new();
        queue.retain_mut(|(name, waiting)| match waiting.now_or_never() {
            Some(permit) => {
                given.push((*name, permit));
                false
            }
            None => true,
        });
        assert_eq!(given.len(), 1, "one place, one of those who wait");
        assert_eq!(gate.busy(), busy(1, queue.len()));
        let (name, permit) = given.remove(0);
        order.push(name);
        held = Some(permit);
    }
    assert_eq!(order[..4], ["greedy", "modest", "late", "greedy"]);
    assert_eq!(order[4..], ["greedy"; 6]);
    drop(held);
    assert_eq!(gate.busy(), busy(0, 0));
}

#[test]
fn whoever_does_not_fit_into_the_queue_is_told() {
    let gate = gate(1, 2);
    let held = inside(&gate, "a");
    let waiting = [waits(&gate, "a"), waits(&gate, "b")];
    assert_eq!(gate.refused(), 0);
    match gate.enter(&session("c")) {
        Entry::Full(found) => assert_eq!(found, busy(1, 2)),
        other => panic!("a third waits: {other:?}"),
    }
    assert_eq!(gate.refused(), 1, "and counted");
    drop(waiting);
    assert_eq!(gate.busy(), busy(1, 0), "those who gave up wait no more");
    let waiting = waits(&gate, "c");
    drop(held);
    assert!(waiting.now_or_never().is_some());
    assert_eq!(gate.busy(), busy(0, 0));
}

#[test]
fn a_place_that_nobody_takes_goes_to_the_next() {
    let gate = gate(1, 10);
    let held = inside(&gate, "a");
    let (first, second) = (waits(&gate, "b"), waits(&gate, "c"));
    // Given to the first, which leaves before it looks.
    drop(held);
    drop(first);
    let permit = second.now_or_never().expect("the place went on");
    assert_eq!(gate.busy(), busy(1, 0));
    drop(permit);
    assert_eq!(gate.busy(), busy(0, 0));
}

#[test]
fn nothing_is_any_number() {
    let gate = gate(0, 0);
    let inside: Vec<Permit> = (0..1_000).map(|_| inside(&gate, "a")).collect();
    assert_eq!(gate.busy(), busy(inside.len(), 0));
}

const CALL: CallId = CallId(Seq(1));

fn performer(
    gate: &Gate,
    delay: Duration,
    stop: &CancellationToken,
) -> BoxStream<'static, Performed> {
    let waits = Behind {
        gate: gate.clone(),
        session: session("mine"),
        delay,
        stop: stop.clone(),
        stopped: Box::new(|| Report::CallStopped { call: CALL }),
        full: Box::new(|text| Report::Noticed {
            level: polyloop_session::event::Level::Warning,
            code: "full".into(),
            text: text.into(),
        }),
    };
    behind(waits, |permit| {
        let begun = Report::BlockEnded { call: CALL, block: 0, opaque: None };
        let held = move |performed| {
            let _held = &permit;
            performed
        };
        stream::once(std::future::ready(Performed::Report(begun))).map(held).boxed()
    })
}

/// What a performer came to, a word each.
async fn told(mut performer: BoxStream<'static, Performed>) -> Option<String> {
    match performer.next().await? {
        Performed::Report(Report::BlockEnded { .. }) => Some("began".to_owned()),
        Performed::Report(Report::CallStopped { .. }) => Some("stopped".to_owned()),
        Performed::Report(Report::Noticed { code, text, .. }) => Some(format!("{code}: {text}")),
        other => panic!("unexpected: {other:?}"),
    }
}

#[tokio::test]
async fn what_waits_for_its_second_attempt_takes_no_place() {
    let (gate, stop) = (gate(1, 1), CancellationToken::new());
    let mut away = performer(&gate, Duration::from_secs(600), &stop);
    assert!(away.next().now_or_never().is_none());
    assert_eq!(gate.busy(), busy(0, 0));
    let retry = performer(&gate, Duration::from_millis(5), &stop);
    assert_eq!(told(retry).await.as_deref(), Some("began"));
    assert_eq!(gate.busy(), busy(0, 0), "its place is free again");
}

#[tokio::test]
async fn whoever_waits_is_told_once_and_begins_when_there_is_room() {
    let (gate, stop) = (gate(1, 9), CancellationToken::new());
    let held = inside(&gate, "other");
    let mut waiting = performer(&gate, Duration::ZERO, &stop);
    let mut second = performer(&gate, Duration::ZERO, &stop);
    let Some(Performed::Report(Report::Noticed { code, text, .. })) = waiting.next().await else {
        panic!("nobody is told");
    };
    assert_eq!(&*code, "queued");
    assert!(text.contains("1 model calls run (MAX_MODEL_CALLS) and 2 wait"), "{text}");
    let mut both = stream::select(&mut waiting, &mut second);
    let silent = tokio::time::timeout(Duration::from_secs(3), both.next()).await;
    assert!(silent.is_err(), "one word for a session is enough: {silent:?}");
    drop(held);
    assert_eq!(told(waiting).await.as_deref(), Some("began"));
    assert_eq!(told(second).await.as_deref(), Some("began"));
    assert_eq!(gate.busy(), busy(0, 0));
}

#[tokio::test]
async fn whoever_is_stopped_while_it_waits_stops_at_once() {
    let (gate, stop) = (gate(1, 9), CancellationToken::new());
    let held = inside(&gate, "other");
    let waiting = performer(&gate, Duration::ZERO, &stop);
    let away = performer(&gate, Duration::from_secs(600), &stop);
    stop.cancel();
    let at_once = |performer| told(performer).now_or_never().expect("it does not wait");
    assert_eq!(at_once(waiting).as_deref(), Some("stopped"));
    assert_eq!(at_once(away).as_deref(), Some("stopped"));
    assert_eq!(gate.busy(), busy(1, 0), "and waits no more");
    drop(held);
}

#[tokio::test]
async fn a_full_queue_says_what_is_full() {
    let (gate, stop) = (gate(1, 1), CancellationToken::new());
    let (_held, _waiting) = (inside(&gate, "other"), waits(&gate, "other"));
    let told = told(performer(&gate, Duration::ZERO, &stop)).await.unwrap();
    let want = "full: The server is overloaded: 1 model calls run (MAX_MODEL_CALLS) and 1 wait \
                (MAX_WAITING); try again later";
    assert_eq!(told, want);
}
