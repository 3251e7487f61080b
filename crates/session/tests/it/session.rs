//! Ending a session and taking it up, cancelling, settings, and runs with options of their own.

use polyloop_session::command::{Send, Target};
use polyloop_session::decide::{
    CANCELLED_REASON, CLOSED_REASON, METADATA_BYTES_MAX, TITLE_CHARS_MAX,
};
use polyloop_session::event::{Agent, Event, Outcome, RunOptions, Setting};
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::state::{CLOSED_WAITS_MAX, Fate};
use polyloop_session::{Command, Delivery, Refusal, Seq, Text, WaitRef, decide};

use super::make::{LIMITS, created, judgement, origin, parts, queued, who};
use super::script::{DENY, Script};

fn named(text: &str, client_ref: &str) -> Command {
    run(text, Some(client_ref), None)
}

fn run(text: &str, client_ref: Option<&str>, run: Option<RunOptions>) -> Command {
    Command::Send(Box::new(Send {
        content: parts(text),
        origin: origin(),
        client_ref: client_ref.map(Into::into),
        delivery: Delivery::Queue,
        tokens: 1,
        run: run.map(Box::new),
    }))
}

fn cancel(target: Target) -> Command {
    Command::Cancel { target, by: who() }
}

fn by_name(name: &str) -> Command {
    cancel(Target::ClientRef(name.into()))
}

fn set(setting: Setting) -> Command {
    Command::Set { setting, by: who() }
}

/// The newest start of a turn: the folder, and the pieces before it.
fn last_start(script: &Script) -> (Option<Text>, Option<u64>) {
    let starts = script.sim.log.iter().rev().find_map(|entry| match &entry.event {
        Event::TurnStarted { cwd, earlier, .. } => Some((cwd.clone(), *earlier)),
        _ => None,
    });
    starts.expect("a turn began")
}

fn last_outcome(script: &Script) -> Outcome {
    let ends = script.sim.log.iter().rev().find_map(|entry| match &entry.event {
        Event::TurnEnded { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    ends.expect("a turn ended")
}

#[test]
fn an_ended_session_stops_drops_its_queue_and_rests_until_somebody_speaks() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").send("two").send("three").close();
    let state = &script.sim.state;
    assert!(state.is_closed() && state.queue().is_empty());
    assert!(state.turn().unwrap().stopping.is_some(), "its call is still to be stopped");
    script.stopped();
    assert_eq!(last_outcome(&script), Outcome::Interrupted { reason: CLOSED_REASON.into() });
    assert_eq!(script.sim.running, []);
    let again = decide(&script.sim.state, Command::Close { by: who() }, &LIMITS);
    assert_eq!(again, Err(Refusal::AlreadyClosed));
    let before = script.last_seq();
    script.command(Command::Reopen { by: who() });
    assert_eq!(script.since(before), [Event::SessionReopened { by: who() }]);
    assert_eq!(script.sim.running, []);
    script.close();
    let before = script.last_seq();
    script.send("four");
    let told = script.since(before);
    let [Event::SessionReopened { .. }, Event::MessageQueued { .. }, ..] = &told[..] else {
        panic!("{told:?}")
    };
    assert!(!script.sim.state.is_closed());
    assert_eq!(script.prompt(), "user: one\nuser: four");
}

#[test]
fn a_message_to_a_session_that_is_still_ending_is_kept() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").close().send("two");
    assert!(!script.sim.state.is_closed());
    assert_eq!(script.sim.state.queue().len(), 1);
    script.stopped().send("three");
    assert!(script.prompt().ends_with("user: two"), "{}", script.prompt());
}

#[test]
fn what_takes_up_an_ended_session_opens_it_so_that_it_can_be_ended_again() {
    for command in [Command::Resume { by: who() }, Command::Compact { by: who() }] {
        let mut script = Script::new(Mode::Suggest);
        script.send("one").interrupt().stopped().close().command(command.clone());
        assert!(!script.sim.state.is_closed(), "{command:?}");
        assert_eq!(script.sim.running.len(), 1, "{command:?}");
        script.close().stopped();
        assert!(script.sim.state.is_closed() && script.sim.state.turn().is_none());
    }
}

#[test]
fn nothing_of_an_ended_session_is_left_to_be_taken_up_by_itself() {
    let wanted = |script: &Script| script.sim.state.interrupted().unwrap().by_person;
    let mut script = Script::new(Mode::Suggest);
    script.send("one").crash();
    assert!(!wanted(&script));
    script.close();
    assert!(wanted(&script), "ended after the crash");
    let mut script = Script::new(Mode::Suggest);
    script.send("one");
    let by = polyloop_session::wait::Who::via(polyloop_session::state::SHUTDOWN_VIA);
    script.command(Command::Interrupt { turn: None, reason: "stops".into(), by });
    script.close().stopped();
    assert!(wanted(&script), "ended while the server stopped");
}

#[test]
fn a_crash_while_a_session_is_ended_leaves_it_ended_or_at_rest() {
    for fuse in 0..4 {
        let mut script = Script::new(Mode::Suggest);
        script.send("one").send("two");
        script.sim.fuse = Some(fuse);
        let done = script.sim.command(Command::Close { by: who() }).is_ok();
        script.crash();
        assert_eq!(script.sim.running, []);
        assert!(script.sim.state.turn().is_none());
        assert_eq!(script.sim.state.is_closed(), done, "{fuse}");
        assert_eq!(script.sim.state.queue().len(), usize::from(fuse == 0));
    }
}

#[test]
fn a_name_cancels_the_newest_message_of_that_name_then_the_turn() {
    let mut script = Script::new(Mode::Suggest);
    script.command(named("one", "mine")).command(named("two", "mine"));
    script.command(named("three", "mine")).command(named("four", "yours"));
    let left = |script: &Script| script.sim.state.queue().len();
    script.command(by_name("mine"));
    assert!(script.sim.log.iter().any(|entry| match &entry.event {
        Event::MessageDropped { message, .. } => {
            let newest = script.sim.log.iter().rfind(|entry| match &entry.event {
                Event::MessageQueued { client_ref, .. } => client_ref.as_deref() == Some("mine"),
                _ => false,
            });
            newest.is_some_and(|entry| entry.seq == message.0)
        }
        _ => false,
    }));
    script.command(by_name("mine"));
    assert_eq!(left(&script), 1);
    assert!(script.sim.state.turn().unwrap().stopping.is_none());
    script.command(by_name("mine"));
    assert!(script.sim.state.turn().unwrap().stopping.is_some());
    let again = decide(&script.sim.state, by_name("mine"), &LIMITS);
    assert_eq!(again, Ok(Vec::new()), "it stops already");
    script.stopped();
    assert_eq!(last_outcome(&script), Outcome::Interrupted { reason: CANCELLED_REASON.into() });
    let again = decide(&script.sim.state, by_name("mine"), &LIMITS);
    assert_eq!(again, Err(Refusal::UnknownTarget));
    script.send("five");
    assert!(script.prompt().ends_with("user: four"), "{}", script.prompt());
}

#[test]
fn a_cancelled_request_does_not_run_and_the_model_goes_on() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").tool("a").answer(&[judgement(Effect::Execute)]);
    script.command(cancel(Target::Wait(script.wait())));
    assert!(!script.sim.tally.contains_key("tool_started"));
    let want = "\nerror a: Not run: the request for it was withdrawn.";
    assert!(script.prompt().ends_with(want), "{}", script.prompt());
}

#[test]
fn an_interrupt_may_name_its_turn() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one");
    let turn = script.sim.state.turn().unwrap().id;
    let interrupt = |turn| Command::Interrupt { turn: Some(turn), reason: "r".into(), by: who() };
    script.command(interrupt(turn)).stopped().send("two");
    let late = decide(&script.sim.state, interrupt(turn), &LIMITS);
    assert_eq!(late, Err(Refusal::NoSuchTurn));
}

#[test]
fn settings_count_from_the_next_call_or_turn_on() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one");
    let model = Setting::Model { model: "other".into(), tokens_max: 77 };
    script.command(set(model)).command(set(Setting::CallsMax { calls_max: 1 }));
    let before = script.last_seq();
    script.tool("a").answer(&[judgement(Effect::Read)]).end_tools();
    let calls = |script: &Script, since: Seq| -> Vec<(Text, u64)> {
        let calls = script.since(since).into_iter().filter_map(|event| match event {
            Event::CallStarted { model, tokens_max, .. } => Some((model, tokens_max)),
            _ => None,
        });
        calls.collect()
    };
    assert_eq!(calls(&script, before), [("other".into(), 77)], "this turn may make 50 calls");
    script.text("done").answer(&[]).send("two");
    script.tool("b").answer(&[judgement(Effect::Read)]).end_tools();
    let Outcome::Failed { fault } = last_outcome(&script) else { panic!("one call is all") };
    assert_eq!(&*fault.code, "max_turns");
    script.command(set(Setting::Title { title: "T".into() }));
    script.command(set(Setting::Metadata { json: "{\"x\":1.50}".into() }));
    script.command(set(Setting::Agent { agent: Agent::React }));
    let settings = script.sim.state.settings().unwrap();
    assert_eq!(settings.title.as_deref(), Some("T"));
    assert_eq!(settings.metadata.as_deref(), Some("{\"x\":1.50}"));
    assert_eq!(script.sim.state.tokens_max(&LIMITS), 77);
}

#[test]
fn a_setting_that_does_not_fit_is_refused() {
    let state = Script::new(Mode::Suggest).sim.state;
    let fits = |setting| decide(&state, set(setting), &LIMITS).map(|events| events.len());
    let title = |chars: usize| Setting::Title { title: "é".repeat(chars).into() };
    let metadata = |bytes: usize| Setting::Metadata { json: "1".repeat(bytes).into() };
    assert_eq!(fits(title(TITLE_CHARS_MAX)), Ok(1));
    assert_eq!(fits(metadata(METADATA_BYTES_MAX)), Ok(1));
    for bad in [
        title(TITLE_CHARS_MAX + 1),
        metadata(METADATA_BYTES_MAX + 1),
        Setting::CallsMax { calls_max: 0 },
    ] {
        let why = fits(bad.clone()).unwrap_err();
        assert!(matches!(why, Refusal::BadSetting { .. }), "{bad:?}: {why:?}");
    }
    for agent in [Agent::React, Agent::Dup, Agent::Tot, Agent::Got] {
        assert_eq!(fits(Setting::Agent { agent }), Ok(1));
    }
}

fn options() -> RunOptions {
    let (cwd, calls_max) = (Some("/elsewhere".into()), Some(1));
    RunOptions { cwd, calls_max, agent: Some(Agent::React), ..RunOptions::default() }
}

#[test]
fn a_run_has_its_own_options_and_the_next_does_not() {
    let mut script = Script::new(Mode::Suggest);
    script.command(run("one", None, Some(options())));
    assert_eq!(last_start(&script), (Some("/elsewhere".into()), Some(0)));
    assert_eq!(script.sim.state.turn().unwrap().cwd.as_deref(), Some("/elsewhere"));
    script.tool("a").answer(&[judgement(Effect::Read)]).end_tools();
    assert!(matches!(last_outcome(&script), Outcome::Failed { .. }), "one call was all");
    script.send("two");
    assert_eq!(last_start(&script), (Some("/w".into()), Some(3)));
    script.tool("b").answer(&[judgement(Effect::Read)]).end_tools();
    script.call();
}

/// What was to be done in one folder is not done in another because the server stopped.
#[test]
fn an_interrupted_run_is_taken_up_with_its_options() {
    let mut script = Script::new(Mode::Suggest);
    script.command(run("one", None, Some(options()))).interrupt().stopped();
    for _ in 0..2 {
        script.resume();
        assert_eq!(last_start(&script).0.as_deref(), Some("/elsewhere"));
        assert_eq!(script.sim.state.turn().unwrap().calls_max, 1);
        script.crash();
    }
    script.send("two");
    assert_eq!(last_start(&script).0.as_deref(), Some("/w"));
    let Event::MessageQueued { content, origin, client_ref, tokens, .. } = queued("q", 1) else {
        panic!("a message")
    };
    let own = Some(Box::new(options()));
    let waiting =
        Event::MessageQueued { content, origin, client_ref, tokens, run: own, waits: true };
    let mut script = Script::after(vec![created(Mode::Suggest, 50), waiting]);
    script.crash().resume();
    assert_eq!(last_start(&script).0.as_deref(), Some("/elsewhere"), "it had not begun");
}

#[test]
fn the_fate_of_the_last_waits_is_remembered_beyond_their_turns() {
    let mut script = Script::new(Mode::Suggest);
    let mut waits = Vec::new();
    for _ in 0..=CLOSED_WAITS_MAX {
        script.send("go").tool("a").answer(&[judgement(Effect::Execute)]);
        waits.push(script.wait());
        script.settle(DENY).text("done").answer(&[]);
    }
    let fate = |wait| script.sim.state.fate(wait).cloned();
    assert_eq!(fate(waits[0]), None);
    assert_eq!(fate(waits[1]), Some(Fate::Settled { by: who() }));
    let late = |wait| {
        let command = Command::Settle { wait: WaitRef::Id(wait), reply: DENY, by: who() };
        decide(&script.sim.state, command, &LIMITS).unwrap_err()
    };
    assert_eq!(late(waits[0]), Refusal::NoPendingApproval);
    assert_eq!(late(waits[1]), Refusal::AlreadySettled { by: "a client of test".into() });
}
