//! Calls that fail: what people are told, when the call is made again, and when no more.

use polyloop_session::event::{CallOutcome, Event, Level, Outcome};
use polyloop_session::item::{End, Fault};
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::retry::TOO_LONG_CODE;
use polyloop_session::{Heal, Seq};

use super::make::{LIMITS, approve, created, judgement};
use super::script::{DENY, Script};

const LATER: Heal = Heal::Later { after_ms: None };

fn told(script: &Script) -> Vec<String> {
    let notices = script.since(Seq::NONE).into_iter().filter_map(|event| match event {
        Event::Noticed { level: Level::Warning, text, code } => Some(format!("{code}: {text}")),
        _ => None,
    });
    notices.collect()
}

/// The fault that the last turn ended with.
pub fn fault(script: &Script) -> Fault {
    match script.since(Seq::NONE).pop() {
        Some(Event::TurnEnded { outcome: Outcome::Failed { fault }, .. }) => fault,
        other => panic!("the turn did not fail: {other:?}"),
    }
}

fn delay_ms(script: &Script) -> u64 {
    script.sim.state.turn().unwrap().calls[&script.call()].delay_ms
}

#[test]
fn each_attempt_is_told_and_waits_longer() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go");
    assert_eq!(delay_ms(&script), 0);
    let mut waits = Vec::new();
    for _ in 0..LIMITS.retries_max {
        script.fails(LATER, "overloaded", "The model is overloaded (529).");
        waits.push(delay_ms(&script));
    }
    assert_eq!(waits, [1_200, 2_400, 4_800, 9_600]);
    script.fails(LATER, "overloaded", "The model is overloaded (529).");
    assert_eq!(
        told(&script),
        [
            "retry: The model is overloaded (529); retrying in 1.2 s (1/4)",
            "retry: The model is overloaded (529); retrying in 2.4 s (2/4)",
            "retry: The model is overloaded (529); retrying in 4.8 s (3/4)",
            "retry: The model is overloaded (529); retrying in 9.6 s (4/4)",
        ]
    );
    let want = Fault::new("overloaded", "The model is overloaded (529) (after 4 retries)");
    assert_eq!(fault(&script), want);
    assert_eq!(script.sim.running, []);
}

#[test]
fn one_retry_is_told_as_one() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").fails(LATER, "overloaded", "Busy.").fail();
    assert_eq!(&*fault(&script).message, "It is broken (after 1 retry)");
}

#[test]
fn a_fault_that_stays_is_told_as_it_is() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").fails(Heal::Never, "unauthorized", "The key was not accepted.");
    assert_eq!(told(&script), [""; 0]);
    assert_eq!(fault(&script), Fault::new("unauthorized", "The key was not accepted."));
}

#[test]
fn an_empty_answer_is_asked_for_once_more() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").fails(Heal::Once, "empty", "The model gave an empty answer");
    assert_eq!(told(&script), ["retry: The model gave an empty answer; retrying in 1.2 s (1/1)"]);
    script.fails(Heal::Once, "empty", "The model gave an empty answer");
    assert_eq!(told(&script).len(), 1);
    assert_eq!(&*fault(&script).message, "The model gave an empty answer (after 1 retry)");
    // The next step of the same turn has a second attempt of its own.
    let mut script = Script::new(Mode::Suggest);
    script.send("go").fails(Heal::Once, "empty", "Empty").tool("a");
    script.answer(&[judgement(Effect::Read)]).end_tools().fails(Heal::Once, "empty", "Empty");
    assert_eq!(told(&script).len(), 2);
}

#[test]
fn a_wait_that_the_provider_asks_for_is_kept_up_to_a_minute() {
    let asked = |after_ms| Heal::Later { after_ms: Some(after_ms) };
    let mut script = Script::new(Mode::Suggest);
    script.send("go").fails(asked(3_000), "429", "Slow down");
    assert_eq!(told(&script), ["retry: Slow down; retrying in 3.2 s (1/4)"]);
    assert_eq!(delay_ms(&script), 3_280);
    script.fails(asked(60_000), "429", "Slow down");
    assert_eq!(told(&script)[1], "retry: Slow down; retrying in 61 s (2/4)");
    script.fails(asked(60_001), "429", "Slow down, come back in an hour");
    assert_eq!(told(&script).len(), 2);
    assert_eq!(
        &*fault(&script).message,
        "Slow down, come back in an hour; it asks to wait 61 s (after 2 retries)"
    );
    let mut script = Script::new(Mode::Suggest);
    script.send("go").fails(asked(61_000), "429", "Come back in an hour.");
    assert_eq!(told(&script), [""; 0]);
    assert_eq!(&*fault(&script).message, "Come back in an hour; it asks to wait 61 s");
}

#[test]
fn what_a_failed_attempt_showed_is_kept_and_not_told_again() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").reason("hm").end_block(None).text("whole").end_block(None);
    let (failed, before) = (script.call(), script.last_seq());
    script.text("Half of").tool("a").fails(LATER, "cut", "The stream broke off");
    let events = script.since(before);
    let closed: Vec<(&str, End)> = events
        .iter()
        .filter_map(|event| match event {
            Event::ItemCompleted { text, end, .. } => Some((&**text, *end)),
            _ => None,
        })
        .collect();
    assert_eq!(closed, [("Half of", End::Discarded), ("{a}", End::Discarded)]);
    let ended = events.iter().position(|event| matches!(event, Event::CallEnded { .. })).unwrap();
    let Event::CallEnded { call, outcome: CallOutcome::Retried { after_ms, .. }, usage } =
        &events[ended]
    else {
        panic!("{events:?}")
    };
    assert_eq!((*call, *after_ms, *usage), (failed, 1_200, None));
    assert!(matches!(events[ended + 1], Event::Noticed { .. }));
    assert!(matches!(events[ended + 2], Event::CallStarted { .. }));
    assert_eq!(script.prompt(), "user: go");
    script.text("All of it").answer(&[]).send("more");
    assert_eq!(script.prompt(), "user: go\nassistant: All of it\nuser: more");
}

#[test]
fn attempts_count_as_one_call() {
    let mut script = Script::after(vec![created(Mode::Suggest, 2)]);
    script.send("go");
    for _ in 0..4 {
        script.fails(LATER, "overloaded", "Busy");
    }
    script.tool("a").answer(&[judgement(Effect::Read)]).end_tools();
    for _ in 0..4 {
        script.fails(LATER, "overloaded", "Busy");
    }
    script.tool("b").answer(&[judgement(Effect::Read)]).end_tools();
    assert_eq!(&*fault(&script).code, "max_turns");
    assert_eq!(told(&script).len(), 8);
}

#[test]
fn nothing_is_made_again_in_a_turn_that_stops() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").text("half").interrupt().fails(LATER, "overloaded", "Busy");
    assert_eq!(told(&script), [""; 0]);
    assert!(script.sim.state.turn().is_none());
    let last = script.since(Seq::NONE).pop();
    assert!(
        matches!(last, Some(Event::TurnEnded { outcome: Outcome::Interrupted { .. }, .. })),
        "{last:?}"
    );
}

/// The wait is part of the call, so whoever interrupts need not wait.
#[test]
fn an_interrupt_ends_the_wait() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").fails(LATER, "overloaded", "Busy").interrupt().stopped();
    assert!(script.sim.state.turn().is_none());
    script.resume();
    assert_eq!(delay_ms(&script), 0);
    let want = "user: go\nuser: Go on with the work that was interrupted.";
    assert_eq!(script.prompt(), want);
}

#[test]
fn an_explanation_is_not_made_again_and_its_request_stays() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").tool("a").answer(&[judgement(Effect::Execute)]);
    script.settle(polyloop_session::command::WaitReply::Explain);
    script.fails(LATER, "overloaded", "Busy");
    assert_eq!(told(&script), [""; 0]);
    script.settle(approve());
    assert_eq!(script.tools().len(), 1);
}

#[test]
fn a_compaction_is_retried_too() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").text(&"long ".repeat(50)).answer(&[]).compact();
    script.text("wrong").end_block(None).fails(LATER, "overloaded", "Busy");
    script.text("short").answer(&[]).send("next");
    let want = "user: Summary of the conversation so far, written by the assistant and not by the user:\n\nshort\nuser: next";
    assert_eq!(script.prompt(), want);
}

/// A summary that a failed attempt had finished is no summary.
#[test]
fn nothing_of_a_failed_summary_is_used() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").text(&"long ".repeat(50)).answer(&[]).compact();
    script.text("wrong").end_block(None).fails(LATER, "overloaded", "Busy").answer(&[]);
    assert_eq!(&*fault(&script).code, "compaction_failed");
    assert_eq!(script.sim.state.line().pieces().len(), 2);
}

#[test]
fn without_retries_there_are_none() {
    let heals = [LATER, Heal::Once, Heal::Later { after_ms: Some(1) }];
    for heal in heals {
        let mut script = Script::new(Mode::Suggest);
        script.sim.limits.retries_max = 0;
        script.send("go");
        let (state, live) = (&script.sim.state, &script.sim.live);
        let (call, chance) = (script.call(), polyloop_session::Chance(0));
        let fault = Fault::new("overloaded", "Busy");
        let report =
            polyloop_session::Report::CallFailed { call, fault, heal, chance, usage: None };
        let events = polyloop_session::absorb(state, live, &script.sim.limits, report);
        let [Event::CallEnded { outcome: CallOutcome::Failed { .. }, .. }] = &events[..] else {
            panic!("{heal:?}: {events:?}")
        };
    }
}

/// What heals stands in the log only as the fault's code, so no other code may say the same.
#[test]
fn the_faults_code_says_what_could_help() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").text("two").answer(&[]);
    script.send("go").fails(Heal::Shorter, "413", "Too large");
    assert_eq!(told(&script), ["compacting: Too large; summarising it to make room"]);
    let ended = script.since(Seq::NONE).into_iter().find_map(|event| match event {
        Event::CallEnded { outcome: CallOutcome::Retried { fault, .. }, .. } => Some(fault),
        _ => None,
    });
    assert_eq!(ended.unwrap(), Fault::new(TOO_LONG_CODE, "Too large"));
    for heal in [LATER, Heal::Once] {
        let mut script = Script::new(Mode::Suggest);
        script.send("one").text("two").answer(&[]);
        script.send("go").fails(heal, TOO_LONG_CODE, "Too long");
        assert_eq!(told(&script), ["compacting: Too long; summarising it to make room"]);
    }
}

/// The batch of a failure is cut by a crash: the turn is interrupted, and its work can go on.
#[test]
fn a_crash_inside_a_failure_leaves_work_to_resume() {
    for entries in 0..5 {
        let mut script = Script::new(Mode::Suggest);
        script.send("go").text("whole").end_block(None).text("half").tool("a");
        let (call, fault) = (script.call(), Fault::new("overloaded", "Busy"));
        let (heal, chance) = (LATER, polyloop_session::Chance(0));
        script.sim.fuse = Some(entries);
        let report =
            polyloop_session::Report::CallFailed { call, fault, heal, chance, usage: None };
        assert!(script.sim.report(report).is_err(), "the fuse burns down after {entries}");
        script.crash();
        assert!(script.sim.state.turn().is_none());
        script.resume().text("done").answer(&[]);
        let last = script.since(Seq::NONE).pop();
        assert!(matches!(last, Some(Event::TurnEnded { outcome: Outcome::Completed, .. })));
    }
}

#[test]
fn a_denied_tool_and_a_retry_are_told_in_order() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").text("I would").tool("a").answer(&[judgement(Effect::Execute)]);
    script.settle(DENY).text("Then").fails(LATER, "overloaded", "Busy");
    let prompt = script.prompt();
    assert!(prompt.starts_with("user: go\nassistant: I would + call a{a}\nerror a: "), "{prompt}");
    assert!(!prompt.contains("Then"), "{prompt}");
}
