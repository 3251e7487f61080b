//! However much a run holds, what shows it stays small; and no log makes the encoder panic.

use polyloop_session::event::{
    Agent, CallOutcome, Level, NodeOutcome, Outcome, PlannedNode, Purpose, Stop, Thought,
    Understanding, Weighed, Work,
};
use polyloop_session::id::{NodeId, ThoughtId};
use polyloop_session::item::{End, Fault, ItemKind, ToolResult};
use polyloop_session::policy::Effect;
use polyloop_session::wait::{Answer, Ask, Then};
use polyloop_session::{CallId, Event, MessageId, Seq, Stream, Text, TurnId, WaitId};
use proptest::prelude::*;

use super::make::*;
use super::world::{Moment, frames, json, sent};
use crate::loom::Loom;
use crate::{Frame, Own, View};

const EVENT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the largest event that shows the run's state.
fn largest(frames: impl IntoIterator<Item = Frame>) -> usize {
    let mut own = Own::default();
    let sizes = frames.into_iter().map(|frame| {
        let frame = own.finish(frame);
        let kind = json(&frame)["event"]["type"].clone();
        let shows = ["values", "updates", "checkpoint"].iter().any(|shows| kind == **shows);
        if shows { frame.text.len() } else { 0 }
    });
    sizes.max().unwrap_or(0)
}

fn all(log: &Log) -> impl Iterator<Item = Frame> {
    sent(&log.updates).into_iter().flatten()
}

#[test]
fn five_hundred_calls_with_a_megabyte_each() {
    let big: Text = "line \"one\"\u{1}\n".repeat(1024 * 1024 / 12).into();
    let mut log = Log::default();
    log.turn(queued(&big, None, true));
    for _ in 0..500 {
        let call = log.add(think());
        let text = log.add(item(call, ItemKind::Text));
        log.add(said(text, big.clone()));
        let bash = log.add(item(call, tool("bash")));
        log.add(proposed(bash, big.clone(), Effect::Read));
        log.add(answered(call, Some(usage(1, 1))));
        log.add(runs(bash));
        log.add(done(bash, big.clone()));
    }
    log.add(ended(Outcome::Completed));
    // A client that comes late folds it all; what it is then shown is the last round.
    let mut view = View::new(&Loom, &session(), Seq::NONE);
    let mut entries = Moment::after(&log.updates).log;
    let shown = entries.split_off(entries.len() - 9);
    entries.iter().for_each(|entry| view.skip(entry));
    let frames: Vec<Frame> = shown.iter().flat_map(|entry| view.see_entry(entry, 0)).collect();
    let ends =
        frames.iter().find(|f| f.text.windows(10).any(|part| part == b"\"tool_end\"")).unwrap();
    assert!(ends.text.len() < 20_000, "a result is shortened");
    let bytes = largest(frames);
    assert!((20_000..EVENT_BYTES_MAX).contains(&bytes), "{bytes}");
}

#[test]
fn a_long_run_is_shown_in_part() {
    let mut log = Log::default();
    log.turn(queued("Begin", None, true));
    for round in 0..500 {
        let call = log.add(think());
        let text = log.add(item(call, ItemKind::Text));
        log.add(said(text, format!("Round {round} ").repeat(400)));
        let bash = log.add(item(call, tool("bash")));
        log.add(proposed(bash, "{}", Effect::Read));
        log.add(answered(call, Some(usage(1, 1))));
        log.add(runs(bash));
        log.add(done(bash, "\u{0}".repeat(5_000)));
    }
    log.add(ended(Outcome::Completed));
    let bytes = largest(all(&log));
    assert!((20_000..EVENT_BYTES_MAX).contains(&bytes), "{bytes}");
    let got = frames(&log.updates);
    let state = &got[got.len() - 2]["event"]["state"];
    let messages = state["messages"].as_array().unwrap();
    assert_eq!(messages[0]["User"], "Begin", "what was asked stays");
    let omitted = state["omitted_messages"].as_u64().unwrap();
    assert_eq!(omitted + messages.len() as u64, 1 + 2 * 500);
    assert_eq!(state["turn_count"], 500);
    let count = state["message_count_after_last_think"].as_u64().unwrap();
    assert_eq!(count, 1 + 2 * 500 - 1);
    let last = messages.last().unwrap()["Tool"]["content"].as_str().unwrap();
    assert!(last.ends_with('…'), "{last:?}");
}

/// Messages and results of a loop on the session's own line, as much as a run shows.
fn fill(log: &mut Log, big: &Text) {
    for _ in 0..3 {
        let call = log.add(think());
        let text = log.add(item(call, ItemKind::Text));
        log.add(said(text, big.clone()));
        let items: Vec<u64> = (0..20).map(|_| log.add(item(call, tool(big)))).collect();
        items.iter().for_each(|id| {
            log.add(proposed(*id, big.clone(), Effect::Read));
        });
        log.add(answered(call, Some(usage(u64::MAX, u64::MAX))));
        items.iter().for_each(|id| {
            log.add(done(*id, big.clone()));
        });
    }
}

#[test]
fn searches_of_any_size() {
    let hostile: Text = "\u{1}\"\\".repeat(1_000).into();
    let call = CallId(Seq(3));
    let (parent, text) = (None, hostile.clone());
    let planned = |_| PlannedNode {
        name: hostile.clone(),
        task: hostile.clone(),
        needs: vec![0, 1, 2],
        attempts: 1,
        refine: 0,
    };
    let thought = |_| Thought { text: hostile.clone(), last: false };
    let node = |index| NodeId { planned: Seq(3), index };
    let thoughts = (0..100).map(|index| ThoughtId { expanded: Seq(3), index });
    let weighed = thoughts.map(|thought| Weighed { thought, score: 333 }).collect();
    let constraints = vec![hostile.clone(); 100];
    let searches = [
        (
            Agent::Dup,
            vec![
                Event::Understood {
                    call,
                    part: Understanding::Question { goal: hostile.clone() },
                    tokens: 1,
                },
                Event::Understood {
                    call,
                    part: Understanding::Information { constraints, context: hostile.clone() },
                    tokens: 1,
                },
            ],
        ),
        (
            Agent::Tot,
            vec![
                Event::Expanded { call, from: None, thoughts: (0..100).map(thought).collect() },
                Event::Chosen { depth: 1, beam: Vec::new(), weighed },
            ],
        ),
        (Agent::Got, {
            let nodes = (0..100).map(planned).collect();
            let mut events = vec![Event::Planned { call, parent, nodes }];
            events.extend((0..100).map(|index| Event::NodeEnded {
                node: node(index),
                outcome: match index % 2 {
                    0 => NodeOutcome::Done { result: text.clone(), tokens: 1 },
                    _ => NodeOutcome::Failed { fault: Fault::new("x", &*text) },
                },
            }));
            events
        }),
    ];
    for (agent, events) in searches {
        let mut log = Log::default();
        let message = MessageId(Seq(log.add(queued(&hostile, None, true))));
        let (work, cwd, earlier) = (Work::Message { message }, None, Some(u64::MAX));
        log.add(Event::TurnStarted { work, agent: Some(agent), cwd, earlier });
        events.into_iter().for_each(|event| {
            log.add(event);
        });
        fill(&mut log, &hostile);
        log.add(ended(Outcome::Completed));
        let bytes = largest(all(&log));
        assert!((30_000..EVENT_BYTES_MAX).contains(&bytes), "{agent:?}: {bytes}");
        let got = frames(&log.updates);
        let state = &got[got.len() - 2]["event"]["state"];
        let shown = ["understood", "tot", "got"].map(|part| state[part].to_string().len());
        assert!(shown.into_iter().any(|bytes| bytes > 5_000), "{agent:?}: {shown:?}");
        let sizes = got.iter().map(|frame| frame.to_string().len());
        assert!(sizes.max().unwrap() < 2 * EVENT_BYTES_MAX, "{agent:?}: no event is huge");
    }
}

#[test]
fn many_calls_at_once() {
    let mut log = Log::default();
    log.turn(queued("Begin", None, true));
    let call = log.add(think());
    let name = "\u{1}".repeat(9_000);
    let items: Vec<u64> = (0..300).map(|_| log.add(item(call, tool(&name)))).collect();
    for id in &items {
        log.add(proposed(*id, "\"".repeat(9_000), Effect::Read));
    }
    log.add(answered(call, None));
    for id in &items {
        log.add(completed(*id, End::Denied, "\\".repeat(9_000), Some(ToolResult::default())));
    }
    log.add(ended(Outcome::Completed));
    let bytes = largest(all(&log));
    assert!((30_000..EVENT_BYTES_MAX).contains(&bytes), "{bytes}");
    let got = frames(&log.updates);
    let act = got.iter().rfind(|f| f["event"]["node_id"] == "run-act-1").unwrap();
    assert_eq!(act["event"]["state"]["omitted_tool_results"], 300 - 16);
    let think = got.iter().rfind(|f| f["event"]["node_id"] == "run-think-0").unwrap();
    assert_eq!(think["event"]["state"]["omitted_tool_calls"], 300 - 16);
    let last = &got[got.len() - 2]["event"]["state"];
    let shown = last["messages"].as_array().unwrap().len() as u64;
    assert_eq!(last["omitted_messages"].as_u64().unwrap() + shown, 301);
}

fn any_event() -> impl Strategy<Value = Event> {
    let text = prop_oneof![Just(""), Just("x"), Just("{\"a\":1}"), Just("ü\u{0}…")];
    (0..20_u8, 1..12_u64, 1..12_u64, text).prop_map(|(kind, a, b, text)| {
        let outcome = |which: u64| match which % 3 {
            0 => Outcome::Completed,
            1 => Outcome::Failed { fault: Fault::new("x", text) },
            _ => Outcome::Interrupted { reason: text.into() },
        };
        let wait = WaitId(Seq(a));
        let answer = Answer::Denied { message: text.into(), then: Then::Continue };
        match kind {
            0 => queued(text, None, a % 2 == 0),
            1 => started(Work::Message { message: MessageId(Seq(a)) }),
            2 => started(Work::Resume { turn: TurnId(Seq(a)), by: who() }),
            3 => ended(outcome(a)),
            4 | 5 => think(),
            6 => calls(Purpose::Explain { wait }),
            7 => calls(Purpose::Summarise),
            8 => answered(a, Some(usage(a, b))),
            9 => ended_call(a, CallOutcome::Failed { fault: Fault::new("x", text) }, None),
            10 => item(a, ItemKind::Text),
            11 | 12 => item(a, tool(text)),
            13 => proposed(a, text, Effect::Read),
            14 => runs(a),
            15 => done(a, text),
            16 => completed(a, End::Interrupted, text, None),
            17 => asks(a, Ask::Approval),
            18 => Event::WaitSettled { wait, answer, by: who() },
            _ if b % 3 == 0 => {
                Event::Noticed { level: Level::Info, text: text.into(), code: "c".into() }
            }
            _ if b % 3 == 1 => {
                let reason = Stop::Denied { wait };
                Event::TurnStopping { reason }
            }
            _ => Event::MessageDropped { message: MessageId(Seq(a)), by: who() },
        }
    })
}

proptest! {
    /// Entries that do not fit give JSON frames and no panic, and skipping counts as seeing does.
    #[test]
    fn no_log_makes_it_panic(events in proptest::collection::vec(any_event(), 0..40)) {
        let mut log = Log::default();
        let new = || View::new(&Loom, &session(), Seq::NONE);
        let (mut seeing, mut skipping, mut busy) = (new(), new(), new());
        let (mut own, mut count) = (Own::default(), (None, 0));
        for event in events {
            let seq = log.add(event);
            let entry = log.last_entry();
            for frame in seeing.see_entry(&entry, 0) {
                let frame = own.finish(frame);
                let told = json(&frame);
                let number = told["event"]["event_id"].as_u64().or(told["event_id"].as_u64());
                count = (frame.run.map(|run| run.turn), number.unwrap_or(count.1));
            }
            skipping.skip(&entry);
            if count.0.is_some() {
                prop_assert_eq!(skipping.run(), count);
            }
            busy.see_entry(&entry, 0);
            for stream in [Stream::Text, Stream::Args, Stream::Output] {
                log.grow(seq, stream, 0, "grown");
                busy.see(log.updates.last().unwrap());
            }
            let _ = (busy.opening(), busy.pending());
        }
    }
}

#[test]
fn the_agents_have_their_own_names_for_thinking() {
    for (agent, want) in [(Agent::React, "think"), (Agent::Dup, "plan"), (Agent::Got, "think")] {
        let mut log = Log::default();
        let (work, by) = (TurnId(Seq(1)), who());
        let work = Work::Resume { turn: work, by };
        log.add(Event::TurnStarted { work, agent: Some(agent), cwd: None, earlier: None });
        log.add(think());
        let got = frames(&log.updates);
        assert_eq!(got[0]["event"]["agent"], agent.name());
        assert_eq!(got[1]["event"]["id"], want);
    }
}
