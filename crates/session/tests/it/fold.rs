//! The fold is total: entries that do not fit, logs with lost lines, and pure nonsense still give
//! a state that the rest of the crate can work with.

use polyloop_session::context::{compaction_cut, info};
use polyloop_session::decide::expire;
use polyloop_session::event::{
    Agent, CallOutcome, Event, Level, Outcome, Purpose, RunOptions, Setting, Stop, Work,
};
use polyloop_session::history::prompt;
use polyloop_session::item::{End, Fault, ItemKind, ToolResult, Usage};
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::retry::TOO_LONG_CODE;
use polyloop_session::wait::{Answer, Ask, Then};
use polyloop_session::{
    Answerable, Chance, Live, LogEntry, Next, Report, Seq, State, Timestamp, absorb, decide, next,
    recover,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

use super::audit::Checked;
use super::flaw::FLAWS;
use super::generate::{runner, sessions};
use super::make::{
    ASKS_ONE, LIMITS, call, created, entries, fold, interrupt, item, judgement, message, queued,
    tool, turn, wait, who,
};
use super::play::play;
use super::script::Script;
use super::story::provider_accepts;

fn noticed() -> Event {
    Event::Noticed { level: Level::Info, text: "".into(), code: "".into() }
}

fn completed(seq: u64, end: End) -> Event {
    let result = Some(Box::new(ToolResult::default()));
    Event::ItemCompleted { item: item(seq), end, text: "t".into(), opaque: None, result, tokens: 1 }
}

fn proposed(seq: u64) -> Event {
    let effect = match seq % 4 {
        0 => Effect::Question,
        1 => Effect::Plan,
        _ => Effect::Execute,
    };
    let judgement = Box::new(judgement(effect));
    let (args, answerable, tokens) = (ASKS_ONE.into(), true, u64::MAX / 3);
    Event::ToolProposed { item: item(seq), args, judgement, answerable, tokens, opaque: None }
}

fn refused(seq: u64, answerable: bool) -> Event {
    let (reason, text) = ("r".into(), "half".into());
    let result = Box::new(ToolResult { seen: Some("seen".into()), ..ToolResult::default() });
    Event::SandboxRefused { item: item(seq), reason, text, result, answerable }
}

fn settled(seq: u64, approved: bool) -> Event {
    let answer = if seq.is_multiple_of(5) {
        Answer::Answered { answers: Vec::new(), said: approved.then(|| "red".into()) }
    } else if approved {
        let grants = judgement(Effect::Execute).keys;
        Answer::Approved { grants, instead: None, message: None, always: true }
    } else {
        Answer::Denied { message: "no".into(), then: Then::Continue }
    };
    Event::WaitSettled { wait: wait(seq), answer, by: who() }
}

fn withdrawn(seq: u64) -> Event {
    Event::WaitWithdrawn { wait: wait(seq), reason: "gone".into(), by: None }
}

fn asked(purpose: Purpose) -> Event {
    Event::CallStarted {
        purpose,
        model: "m".into(),
        tokens_max: 9,
        overhead_tokens: None,
        line: None,
    }
}

fn call_ended(seq: u64, outcome: CallOutcome) -> Event {
    Event::CallEnded { call: call(seq), outcome, usage: Some(Usage::default()) }
}

fn turn_ended(outcome: Outcome) -> Event {
    Event::TurnEnded { outcome, usage: Usage::default() }
}

fn turn_started(work: Work) -> Event {
    Event::TurnStarted { work, agent: None, cwd: None, earlier: None }
}

fn started(seq: u64, kind: ItemKind) -> Event {
    Event::ItemStarted { call: call(seq), block: 0, item: kind }
}

#[test]
fn an_entry_that_does_not_fit_changes_nothing_but_the_number() {
    let mut waiting = Script::new(Mode::Suggest);
    waiting.send("go").tool("a").answer(&[judgement(Effect::Execute)]);
    let open = waiting.sim.state.turn().unwrap().items.keys().next().unwrap().0.0;
    let ended = waiting.sim.state.turn().unwrap().id.0.next().0;
    let cases = [
        turn_started(Work::Message { message: message(99) }),
        Event::MessageDropped { message: message(99), by: who() },
        proposed(99),
        Event::ToolStarted { item: item(99), sandboxed: false, leave: None },
        Event::ToolStarted { item: item(open), sandboxed: false, leave: None },
        refused(99, true),
        refused(open, true),
        completed(99, End::Whole),
        call_ended(99, CallOutcome::Answered),
        call_ended(ended, CallOutcome::Answered),
        Event::WaitOpened { item: item(99), ask: Ask::Approval },
        Event::WaitOpened { item: item(open), ask: Ask::Approval },
        settled(99, true),
        withdrawn(99),
        Event::ExplainAsked { wait: wait(99), by: who() },
    ];
    check_unchanged(&waiting.sim.state, &cases);
    let idle = Script::new(Mode::Suggest);
    let cases = [
        turn_ended(Outcome::Completed),
        turn_ended(Outcome::Interrupted { reason: "r".into() }),
        Event::TurnStopping { reason: Stop::Denied { wait: wait(1) } },
        asked(Purpose::Think),
        started(1, ItemKind::Text),
        settled(1, true),
    ];
    check_unchanged(&idle.sim.state, &cases);
    let setting = Setting::Title { title: "t".into() };
    let cases = [Event::SettingSet { setting, by: who() }, Event::SessionReopened { by: who() }];
    check_unchanged(&State::default(), &cases);
}

fn check_unchanged(state: &State, cases: &[Event]) {
    let (seq, at) = (Seq(200), Timestamp(0));
    let mut want = state.clone();
    want.apply(&LogEntry { seq, at, event: noticed() });
    for event in cases {
        let mut got = state.clone();
        got.apply(&LogEntry { seq, at, event: event.clone() });
        assert_eq!(got, want, "{event:?}");
    }
}

/// The line with a turn's end may be damaged; the next turn's start says as much.
#[test]
fn a_turn_whose_end_was_lost_gives_way_to_the_next() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").text("done").answer(&[]).send("two");
    let whole = script.sim.state.clone();
    let lost = |entry: &&LogEntry| !matches!(entry.event, Event::TurnEnded { .. });
    let log: Vec<&LogEntry> = script.sim.log.iter().filter(lost).collect();
    assert_eq!(log.len() + 1, script.sim.log.len());
    assert_eq!(fold(log), whole);
}

/// Whatever the log, everything that reads the state comes to an end, and a crash or an interrupt
/// brings the session to rest.
fn usable(mut state: State) -> Checked {
    let record = |state: &mut State, events: Vec<Event>| {
        for event in events {
            let seq = state.last_seq().next();
            state.apply(&LogEntry { seq, at: Timestamp(9), event });
        }
    };
    info(&state, 9, LIMITS.strategy);
    compaction_cut(state.line());
    expire(&state, Timestamp(99), Some(1));
    let mut live = state.clone();
    come_to_rest(&mut live)?;
    let _ = decide(&state, interrupt(), &LIMITS);
    let events = recover(&state, &Live::default());
    record(&mut state, events);
    let stays = state.turn().is_some_and(|turn| !turn.waits.is_empty());
    ensure!(stays || state.turn().is_none(), "the turn is open after a crash: {state:?}");
    if stays {
        let events = decide(&state, interrupt(), &LIMITS).map_err(|refusal| refusal.to_string())?;
        record(&mut state, events);
        come_to_rest(&mut state)?;
        ensure!(state.turn().is_none(), "an interrupt does not end the turn: {state:?}");
    }
    record(&mut state, vec![queued("again", 1)]);
    come_to_rest(&mut state)?;
    if let Some(open) = state.turn().and_then(|turn| turn.calls.keys().next()) {
        let prompt = prompt(&state, *open, &LIMITS).ok_or("an open call without a prompt")?;
        provider_accepts(&prompt.messages)?;
    }
    Ok(())
}

fn come_to_rest(state: &mut State) -> Checked {
    for _ in 0..200 {
        match next(state, &LIMITS) {
            Next::Steps(_) => return Ok(()),
            Next::Record(events) => {
                for event in events {
                    let seq = state.last_seq().next();
                    state.apply(&LogEntry { seq, at: Timestamp(9), event });
                }
            }
        }
    }
    Err(format!("next does not come to rest: {state:?}"))
}

#[test]
fn a_log_with_lost_lines_is_still_a_session() {
    let strategy = (sessions(), vec(any::<u16>(), 1..6), any::<u16>());
    let ran = runner().run(&strategy, |((start, actions), lost, upto)| {
        let mut log = play(&start, &actions).map_err(TestCaseError::fail)?.log;
        // The log of a crash: cut at any entry, and some lines before that are damaged.
        log.truncate(usize::from(upto) % (log.len() + 1));
        for at in lost {
            if !log.is_empty() {
                log.remove(usize::from(at) % log.len());
            }
        }
        usable(fold(&log)).map_err(TestCaseError::fail)
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}

fn nonsense() -> impl Strategy<Value = Event> {
    let seq = || 0..16_u64;
    let outcome = select(vec![
        CallOutcome::Answered,
        CallOutcome::Failed { fault: Fault::new("c", "m") },
        CallOutcome::Retried { fault: Fault::new("c", "m"), after_ms: u64::MAX },
        CallOutcome::Retried { fault: Fault::new(TOO_LONG_CODE, "m"), after_ms: 0 },
        CallOutcome::Stopped,
        CallOutcome::Lost,
    ]);
    let kind = select(vec![ItemKind::Text, ItemKind::Reasoning, tool("bash", "r")]);
    let end = select(vec![End::Whole, End::Cut, End::Discarded, End::Denied, End::Interrupted]);
    let turn_end = select(vec![Outcome::Completed, Outcome::Interrupted { reason: "r".into() }]);
    let purpose = prop_oneof![
        3 => Just(Purpose::Think),
        1 => Just(Purpose::Summarise),
        1 => seq().prop_map(|w| Purpose::Explain { wait: wait(w) }),
    ];
    let work = prop_oneof![
        4 => seq().prop_map(|m| Work::Message { message: message(m) }),
        1 => seq().prop_map(|t| Work::Resume { turn: turn(t), by: who() }),
        1 => Just(Work::Compact { by: who() }),
    ];
    let turns = prop_oneof![
        2 => (0..4_u64).prop_map(|quarters| queued("hi", u64::MAX / 4 * quarters)),
        3 => work.prop_map(turn_started),
        1 => turn_end.prop_map(turn_ended),
        1 => seq().prop_map(|w| Event::TurnStopping { reason: Stop::Denied { wait: wait(w) } }),
        1 => (seq(), seq()).prop_map(|(c, upto)| compacted(c, upto)),
        1 => Just(created(Mode::Suggest, 3)),
        1 => whole_session(),
    ];
    let items = prop_oneof![
        3 => purpose.prop_map(asked),
        2 => (seq(), outcome).prop_map(|(c, outcome)| call_ended(c, outcome)),
        4 => (seq(), kind).prop_map(|(c, kind)| started(c, kind)),
        4 => seq().prop_map(proposed),
        2 => (seq(), any::<bool>()).prop_map(|(i, sandboxed)| Event::ToolStarted {
            item: item(i),
            sandboxed,
            leave: None,
        }),
        2 => (seq(), any::<bool>()).prop_map(|(i, answerable)| refused(i, answerable)),
        2 => (seq(), end).prop_map(|(i, end)| completed(i, end)),
        3 => (seq(), ask()).prop_map(|(i, ask)| Event::WaitOpened { item: item(i), ask }),
        1 => (seq(), any::<bool>()).prop_map(|(w, approved)| settled(w, approved)),
        1 => seq().prop_map(withdrawn),
        1 => seq().prop_map(|w| Event::ExplainAsked { wait: wait(w), by: who() }),
    ];
    prop_oneof![1 => turns.boxed(), 2 => items.boxed()]
}

fn whole_session() -> impl Strategy<Value = Event> {
    let run = RunOptions { calls_max: Some(0), cwd: Some("/e".into()), ..RunOptions::default() };
    let Event::MessageQueued { content, origin, client_ref, tokens, .. } = queued("run", 1) else {
        panic!("a message")
    };
    select(vec![
        Event::SessionClosed { by: who() },
        Event::SessionReopened { by: who() },
        Event::ModeSet { mode: Mode::Plan, by: who() },
        Event::SettingSet { setting: Setting::CallsMax { calls_max: 0 }, by: who() },
        Event::SettingSet { setting: Setting::Agent { agent: Agent::Got }, by: who() },
        Event::MessageQueued {
            content,
            origin,
            client_ref,
            tokens,
            run: Some(Box::new(run)),
            waits: false,
        },
    ])
}

/// What is asked need not be what was proposed.
fn ask() -> impl Strategy<Value = Ask> {
    select(vec![
        Ask::Approval,
        Ask::Outside { reason: "r".into() },
        Ask::Question { questions: Vec::new() },
        Ask::Plan { plan: "p".into(), path: None },
    ])
}

fn compacted(c: u64, upto: u64) -> Event {
    let (summary, summary_tokens) = ("s".into(), u64::MAX / 2);
    let strategy = LIMITS.strategy;
    let window = polyloop_session::event::Window {
        tokens_max: 1,
        strategy,
        pieces: 1,
        overhead_tokens: None,
    };
    let (tokens_before, tokens_after) = (2, 1);
    let (call, upto) = (call(c), Seq(upto));
    Event::Compacted {
        call,
        upto,
        summary,
        summary_tokens,
        tokens_before,
        tokens_after,
        window,
        line: None,
    }
}

#[test]
fn nonsense_is_a_session_too() {
    let ran = runner().run(&vec(nonsense(), 0..40), |events| {
        let log = entries(events);
        let state = fold(&log);
        for seq in 0..16 {
            let stopped = Report::CallStopped { call: call(seq) };
            absorb(&state, &Live::default(), &LIMITS, stopped);
            for flaw in FLAWS {
                let (fault, heal, chance) = (flaw.fault(), flaw.heal(), Chance(u16::MAX));
                let failed =
                    Report::CallFailed { call: call(seq), fault, heal, chance, usage: None };
                absorb(&state, &Live::default(), &LIMITS, failed);
            }
            let (item, end, result) = (item(seq), End::Whole, Box::default());
            absorb(&state, &Live::default(), &LIMITS, Report::ToolEnded { item, end, result });
            let (reason, result) = ("r".into(), Box::default());
            let answerable = Answerable::default();
            let stopped = Report::ToolStopped { item, reason, result, answerable };
            absorb(&state, &Live::of(&state), &LIMITS, stopped);
            prompt(&state, call(seq), &LIMITS);
        }
        for entry in &log {
            let json = serde_json::to_string(entry).unwrap();
            assert_eq!(serde_json::from_str::<LogEntry>(&json).unwrap(), *entry);
        }
        usable(state).map_err(TestCaseError::fail)
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}
