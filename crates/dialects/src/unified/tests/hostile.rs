//! Logs that no session writes: nothing panics, every frame is JSON, and skipping an entry leaves
//! the encoder where seeing it does.

use polyloop_session::event::{Outcome, Purpose, Work};
use polyloop_session::item::{End, ItemKind};
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::wait::Ask;
use polyloop_session::{CallId, Event, ItemId, MessageId, Seq, Stream, TurnId, Update, WaitId};
use proptest::prelude::*;

use super::make::*;
use crate::unified::Unified;
use crate::{Cursor, View};

const PLACES: u64 = 24;

fn event() -> impl Strategy<Value = Event> {
    let at = || 1..PLACES;
    let text = || "[a-zé\"\\\\{}\n]{0,6}";
    let end = proptest::sample::select(
        &[End::Whole, End::Cut, End::Discarded, End::Denied, End::Failed, End::Interrupted][..],
    );
    let effect = proptest::sample::select(
        &[Effect::Read, Effect::Edit, Effect::Execute, Effect::Question, Effect::Plan][..],
    );
    let kind = prop_oneof![
        Just(ItemKind::Text),
        Just(ItemKind::Reasoning),
        Just(tool("bash")),
        Just(tool("ask_user")),
    ];
    let purpose = prop_oneof![
        Just(Purpose::Think),
        Just(Purpose::Summarise),
        at().prop_map(|wait| Purpose::Explain { wait: WaitId(Seq(wait)) }),
    ];
    let work = prop_oneof![
        at().prop_map(|message| Work::Message { message: MessageId(Seq(message)) }),
        at().prop_map(|turn| Work::Resume { turn: TurnId(Seq(turn)), by: who() }),
        Just(Work::Compact { by: who() }),
    ];
    let ask = prop_oneof![
        Just(Ask::Approval),
        Just(Ask::Question { questions: Vec::new() }),
        text().prop_map(|plan| Ask::Plan { plan: plan.into(), path: None }),
    ];
    prop_oneof![
        text().prop_map(|said| queued(&said, None)),
        at().prop_map(|m| Event::MessageDropped { message: MessageId(Seq(m)), by: who() }),
        work.prop_map(turn),
        Just(ended(Outcome::Completed)),
        text().prop_map(|reason| ended(Outcome::Interrupted { reason: reason.into() })),
        purpose.prop_map(calling),
        at().prop_map(|call| call_ended(call, Some(usage(u64::MAX, 1, 0)))),
        (at(), kind).prop_map(|(call, kind)| started(call, kind)),
        (at(), text(), effect).prop_map(|(item, args, e)| proposed(item, &args, judgement(e))),
        at().prop_map(runs),
        (at(), end, text()).prop_map(|(item, end, text)| completed(item, end, &text, exited(1))),
        (at(), ask).prop_map(|(item, ask)| opened(item, ask)),
        at().prop_map(|wait| settled(wait, approved(None, false))),
        at().prop_map(|w| Event::WaitWithdrawn {
            wait: WaitId(Seq(w)),
            reason: "".into(),
            by: None
        }),
        Just(Event::ModeSet { mode: Mode::Plan, by: who() }),
        Just(Event::SessionClosed { by: who() }),
        Just(Event::SessionReopened { by: who() }),
    ]
}

/// An entry, or growth of some item.
fn log() -> impl Strategy<Value = Log> {
    let stream = proptest::sample::select(&[Stream::Text, Stream::Args, Stream::Output][..]);
    let grown = (1..PLACES, stream, "[a-zé]{0,4}").prop_map(Err);
    let step = prop_oneof![4 => event().prop_map(Ok), 1 => grown];
    proptest::collection::vec(step, 0..PLACES as usize).prop_map(|steps| {
        let mut log = Log::default();
        for step in steps {
            match step {
                Ok(event) => {
                    log.add(event);
                }
                Err((item, stream, text)) => log.grow(item, stream, &text),
            }
        }
        log
    })
}

proptest! {
    #[test]
    fn frames_are_messages(log in log(), cut in any::<proptest::sample::Index>()) {
        let mut view = View::new(&Unified, &session(), Seq::NONE);
        let cut = cut.index(log.updates.len() + 1);
        for (at, update) in log.updates.iter().enumerate() {
            if at == cut {
                for frame in [view.opening(), view.pending()].concat() {
                    placeless(&json(&frame));
                }
            }
            for frame in told(view.see(update)) {
                let told = placeless(&frame);
                let id = told["id"].as_str().unwrap();
                prop_assert!(id.starts_with("evt-") && told["type"].is_string(), "{told}");
            }
        }
    }

    #[test]
    fn skipping_leaves_the_encoder_where_seeing_does(
        log in log(),
        cut in any::<proptest::sample::Index>(),
    ) {
        let entries = |update: &&Update| matches!(update, Update::Logged(_));
        let updates: Vec<&Update> = log.updates.iter().filter(entries).collect();
        let cut = cut.index(updates.len() + 1);
        let mut seeing = View::new(&Unified, &session(), Seq::NONE);
        let mut skipping = View::new(&Unified, &session(), Seq::NONE);
        for (at, update) in updates.into_iter().enumerate() {
            let Update::Logged(entry) = update else { continue };
            let seen = seeing.see(update);
            if at < cut {
                skipping.skip(entry);
            } else {
                prop_assert_eq!(skipping.see(update), seen);
            }
        }
    }

    /// Whatever a cursor claims to have of an item, the frames are messages.
    #[test]
    fn cursors_are_hostile_input(
        log in log(),
        seq in 0..PLACES,
        parts in 0_u32..4,
        sent in proptest::collection::vec((1..PLACES, 0_u64..9), 0..4),
    ) {
        let sent = sent.into_iter().map(|(item, bytes)| (ItemId(Seq(item)), Stream::Text, bytes));
        let cursor = Cursor { seq: Seq(seq), parts, sent: sent.collect(), events: None };
        let mut view = View::new(&Unified, &session(), Seq::NONE);
        for update in &log.updates {
            let Update::Logged(entry) = update else { continue };
            if entry.seq <= cursor.seq {
                view.skip(entry);
                continue;
            }
            if entry.seq == cursor.seq.next() {
                view.resume(&cursor);
            }
            let parts = if entry.seq == cursor.seq.next() { parts } else { 0 };
            view.see_entry(entry, parts).iter().for_each(|frame| {
                placeless(&json(frame));
            });
        }
    }
}

/// The encoder forgets a turn when it ends: an id of it names nothing afterwards.
#[test]
fn nothing_outlives_its_turn() {
    let mut log = Log::default();
    let call = log.begin("One");
    let item = log.add(started(call, tool("bash")));
    log.add(proposed(item, "{}", judgement(Effect::Execute)));
    let wait = log.add(opened(item, Ask::Approval));
    log.add(ended(Outcome::Completed));
    let mut view = View::new(&Unified, &session(), Seq::NONE);
    log.updates.iter().for_each(|update| {
        view.see(update);
    });
    assert!(view.opening().is_empty() && view.pending().is_empty());
    log.add(completed(item, End::Whole, "x", None));
    assert!(log.last().is_empty());
    log.add(Event::CallEnded {
        call: CallId(Seq(call)),
        outcome: polyloop_session::event::CallOutcome::Answered,
        usage: None,
    });
    assert!(log.last().is_empty(), "{wait}");
}
