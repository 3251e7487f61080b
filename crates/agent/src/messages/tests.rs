//! The fold alone, on logs that no session would write: damaged ones, and calls that overlap. And
//! what the database does when two write it.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyloop_session::event::{CallOutcome, Outcome, Purpose};
use polyloop_session::item::{End, Fault, ItemKind};
use polyloop_session::wait::Who;
use polyloop_session::{
    CallId, Event, ItemId, LogEntry, MessageId, Seq, SessionId, Timestamp, WaitId,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Role;
use super::database::Mark;
use super::fold::{Batch, Fold, Row, words};
use super::store::{Store, Written};

/// Events that gain fields now and then, as the oldest logs have them.
fn written(event: Value) -> Event {
    serde_json::from_value(event).unwrap()
}

fn queued(texts: &[&str]) -> Event {
    let part = |text: &&str| json!({ "type": "text", "text": text });
    let content: Vec<Value> = texts.iter().map(part).collect();
    let origin = json!({ "via": "test", "can_approve": true });
    let kind = "message_queued";
    written(json!({ "type": kind, "content": content, "origin": origin, "tokens": 1 }))
}

fn begun(message: u64) -> Event {
    let work = json!({ "kind": "message", "message": message });
    written(json!({ "type": "turn_started", "work": work }))
}

fn compacting() -> Event {
    let work = json!({ "kind": "compact", "by": { "via": "test" } });
    written(json!({ "type": "turn_started", "work": work }))
}

fn ended() -> Event {
    Event::TurnEnded { outcome: Outcome::Completed, usage: Default::default() }
}

fn asked(purpose: Purpose) -> Event {
    Event::CallStarted {
        purpose,
        model: "m".into(),
        tokens_max: 1,
        overhead_tokens: None,
        line: None,
    }
}

fn answered(call: u64, outcome: CallOutcome) -> Event {
    Event::CallEnded { call: CallId(Seq(call)), outcome, usage: None }
}

fn failed() -> CallOutcome {
    CallOutcome::Failed { fault: Fault::new("500", "no") }
}

fn started(call: u64, item: ItemKind) -> Event {
    Event::ItemStarted { call: CallId(Seq(call)), block: 0, item }
}

fn completed(item: u64, end: End, text: &str) -> Event {
    let item = ItemId(Seq(item));
    Event::ItemCompleted { item, end, text: text.into(), opaque: None, result: None, tokens: 1 }
}

fn log(events: Vec<Event>) -> Vec<Arc<LogEntry>> {
    let entry = |(seq, event)| Arc::new(LogEntry { seq: Seq(seq), at: Timestamp(0), event });
    (1..).zip(events).map(entry).collect()
}

/// Takes entries as reading a log does: words that the fold has not seen are looked for in `all`.
fn take(fold: &mut Fold, entry: &Arc<LogEntry>, all: &[Arc<LogEntry>]) {
    let Some(message) = fold.take(entry) else { return };
    let found = all.iter().find(|other| other.seq == message.0).map(|other| &other.event);
    if let Some(Event::MessageQueued { content, .. }) = found {
        fold.begun(entry.seq, words(content));
    }
}

fn rows(events: Vec<Event>) -> (Vec<Row>, u64) {
    let (log, mut fold) = (log(events), Fold::default());
    log.iter().for_each(|entry| take(&mut fold, entry, &log));
    fold.batch().map_or((Vec::new(), 0), |Batch { rows, upto }| (rows, upto.seq.0))
}

fn row(seq: u64, role: Role, content: &str) -> Row {
    Row { seq: Seq(seq), role, content: content.into() }
}

#[test]
fn words_stand_where_their_turn_began() {
    let (rows, upto) = rows(vec![
        queued(&["one", "two"]),
        queued(&[""]),
        queued(&["later"]),
        begun(1),
        ended(),
        begun(3),
        ended(),
        begun(2),
    ]);
    let want = vec![row(4, Role::User, "one\ntwo"), row(6, Role::User, "later")];
    assert_eq!(rows, want);
    assert_eq!(upto, 8);
}

#[test]
fn only_what_was_said_to_the_user_counts() {
    let explain = Purpose::Explain { wait: WaitId(Seq(1)) };
    let cases = [
        (Purpose::Think, ItemKind::Text, End::Whole, CallOutcome::Answered, true),
        (explain, ItemKind::Text, End::Whole, CallOutcome::Answered, true),
        (Purpose::Think, ItemKind::Text, End::Cut, CallOutcome::Stopped, true),
        (Purpose::Think, ItemKind::Text, End::Whole, CallOutcome::Stopped, true),
        (explain, ItemKind::Text, End::Cut, CallOutcome::Lost, true),
        (Purpose::Summarise, ItemKind::Text, End::Whole, CallOutcome::Answered, false),
        (Purpose::Think, ItemKind::Reasoning, End::Whole, CallOutcome::Answered, false),
        (Purpose::Think, ItemKind::Text, End::Discarded, failed(), false),
        (Purpose::Think, ItemKind::Text, End::Whole, failed(), false),
    ];
    for (purpose, item, end, outcome, counts) in cases {
        let what = format!("{purpose:?} {item:?} {end:?} {outcome:?}");
        let mut events = vec![asked(purpose), started(1, item), completed(2, end, "text")];
        assert_eq!(rows(events.clone()), (vec![], 0), "{what}: it can still fail");
        events.push(answered(1, outcome));
        let want = if counts { vec![row(3, Role::Assistant, "text")] } else { vec![] };
        assert_eq!(rows(events), (want, 4), "{what}");
    }
}

#[test]
fn beside_an_open_call_nothing_is_final() {
    let mut events = vec![
        asked(Purpose::Think),
        asked(Purpose::Think),
        started(1, ItemKind::Text),
        started(2, ItemKind::Text),
        completed(4, End::Whole, "second"),
        answered(2, CallOutcome::Answered),
    ];
    assert_eq!(rows(events.clone()), (vec![], 0));
    events.extend([completed(3, End::Whole, "first"), answered(1, CallOutcome::Answered)]);
    let want = vec![row(5, Role::Assistant, "second"), row(7, Role::Assistant, "first")];
    assert_eq!(rows(events), (want, 8));
}

/// A call whose end is missing is over with its turn, so the rest is not held up for ever.
#[test]
fn a_lost_end_holds_nothing_up() {
    let call = [asked(Purpose::Think), started(1, ItemKind::Text), completed(2, End::Cut, "half")];
    for end in [ended(), begun(99), compacting()] {
        let events = call.iter().cloned().chain([end]).collect();
        assert_eq!(rows(events), (vec![row(3, Role::Assistant, "half")], 4));
    }
    let no_start = vec![started(9, ItemKind::Text), completed(1, End::Whole, "of no call")];
    assert_eq!(rows(no_start), (vec![], 1));
}

/// Any event, about any earlier entry.
fn any_event() -> impl Strategy<Value = (u8, u64, u8)> {
    (0..12_u8, 1..6_u64, 0..4_u8)
}

fn event(seq: u64, (kind, back, variant): (u8, u64, u8)) -> Event {
    let about = seq.saturating_sub(back);
    let text = format!("{seq}");
    let purpose = match variant {
        0 => Purpose::Summarise,
        1 => Purpose::Explain { wait: WaitId(Seq(about)) },
        _ => Purpose::Think,
    };
    let outcome = match variant {
        0 => failed(),
        1 => CallOutcome::Lost,
        _ => CallOutcome::Answered,
    };
    match kind {
        0 => queued(&[&text]),
        1 | 2 => begun(about),
        3 => ended(),
        4 => Event::MessageDropped { message: MessageId(Seq(about)), by: Who::via("test") },
        5 | 6 => asked(purpose),
        7 | 8 => started(about, if variant == 0 { ItemKind::Reasoning } else { ItemKind::Text }),
        9 | 10 => completed(about, if variant == 0 { End::Discarded } else { End::Whole }, &text),
        _ => answered(about, outcome),
    }
}

proptest! {
    /// Left and taken up again at every place where it may be, the fold finds the same, and each
    /// row once.
    #[test]
    fn it_can_be_taken_up_anywhere(draws in prop::collection::vec(any_event(), 0..120)) {
        let log = log((1..).zip(draws).map(|(seq, draw)| event(seq, draw)).collect());
        let mut whole = Fold::default();
        log.iter().for_each(|entry| take(&mut whole, entry, &log));
        let whole = whole.batch().map_or(Vec::new(), |batch| batch.rows);

        let (mut pieces, mut fold) = (Vec::new(), Fold::default());
        for entry in &log {
            take(&mut fold, entry, &log);
            if let Some(batch) = fold.batch() {
                pieces.extend(batch.rows);
                fold = Fold::default();
            }
        }
        let by_seq: BTreeMap<Seq, &Row> = pieces.iter().map(|row| (row.seq, row)).collect();
        prop_assert_eq!(by_seq.len(), pieces.len());
        prop_assert_eq!(pieces, whole);
    }
}

/// A writer that has not seen the last write does nothing: not twice, not in its place, and not
/// with a gap before it.
#[tokio::test]
async fn nobody_writes_onto_what_they_have_not_seen() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("messages.db")).await.unwrap();
    let id = SessionId::parse("s").unwrap();
    let entries = log((1..=4).map(|_| ended()).collect());
    let mark = |seq: usize| Some(Mark::of(&entries[seq - 1]));
    let write = async |onto: Option<Mark>, seq: usize, text: &str| {
        let (upto, rows) = (entries[seq - 1].clone(), vec![row(seq as u64, Role::User, text)]);
        let new = Mark::of(&upto);
        store.write(&id, onto, Batch { rows, upto }, new).await.unwrap()
    };
    let found = async || {
        let page = store.page(&id, None, 10).await.unwrap();
        page.messages.into_iter().map(|message| message.content).collect::<Vec<_>>()
    };
    assert_eq!(write(mark(1), 2, "onto nothing").await, Written::Raced);
    assert_eq!(write(None, 1, "one").await, Written::Done);
    assert_eq!(write(mark(1), 2, "two").await, Written::Done);
    for stale in [None, mark(1), mark(3)] {
        assert_eq!(write(stale, 3, "stale").await, Written::Raced);
    }
    let same_place = LogEntry { at: Timestamp(1), ..(*entries[1]).clone() };
    assert_eq!(write(Some(Mark::of(&same_place)), 3, "stale").await, Written::Raced);
    assert_eq!(store.clear(&id, Mark::of(&same_place)).await.unwrap(), Written::Raced);
    assert_eq!(found().await, ["one", "two"]);
    assert_eq!(write(mark(2), 4, "four").await, Written::Done);
    assert_eq!(found().await, ["one", "two", "four"]);
    assert_eq!(store.mark(&id).await.unwrap(), mark(4));
    assert_eq!(store.sessions().await.unwrap(), std::slice::from_ref(&id));
    assert_eq!(store.clear(&id, Mark::of(&entries[3])).await.unwrap(), Written::Done);
    assert!(found().await.is_empty());
    assert_eq!(store.mark(&id).await.unwrap(), None);
}
