//! Crashes: at every entry of a rich session, and at the moments that matter.

use polyloop_session::command::WaitReply;
use polyloop_session::event::{CallOutcome, Event, Outcome};
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::recover::{CRASH_REASON, CRASHED_TOOL_TEXT, recover_with};
use polyloop_session::{Delivery, Live, recover};

use super::action::{
    Action, Aim, Failure, Go, Halted, Judged, Kind, Reply, Said, Start, There, Wanted,
};
use super::flaw::Flaw;
use super::make::{
    ASKS_ONE, ASKS_TWO, approve, created, interrupt, judgement, queued, said as saying, who,
};
use super::play::play;
use super::script::{DENY, Script};
use super::tools::HALTED;

fn judged(effect: Effect) -> Judged {
    let (safe, confined, sandbox, refused, risky) = (false, true, true, false, false);
    let keys = vec![if effect == Effect::Edit { "edit" } else { "touch" }];
    Judged { effect, safe, confined, sandbox, refused, risky, keys, rule: None }
}

fn said(text: &'static str) -> Said {
    let (can_approve, client_ref, delivery) = (true, None, Delivery::Queue);
    Said { text, image: None, can_approve, client_ref, delivery, run: None }
}

/// A session that meets everything that can be open: streaming, waiting, explaining, running.
fn rich() -> Vec<Action> {
    let say = |blocks: &[(Kind, &'static str)], effects: &[Effect]| Action::Say {
        call: 0,
        blocks: blocks.to_vec(),
        judged: effects.iter().map(|effect| judged(*effect)).collect(),
        there: There::All,
    };
    let send = |text| Action::Send(said(text));
    let settle = |reply| Action::Settle { wait: Wanted::Presented, reply };
    let end = || Action::EndTool { item: 0, end: End::Whole, seen: true };
    let tools = [(Kind::Text, "I do"), (Kind::Tool, "{1}"), (Kind::Tool, "{2}"), (Kind::Tool, "3")];
    vec![
        send("one"),
        send("two"),
        Action::Begin { call: 0, kind: Kind::Reasoning, block: None },
        Action::Grow { item: 0, text: "hm", again: 0 },
        Action::EndBlock { item: 0, signed: true },
        say(&tools, &[Effect::Read, Effect::Execute, Effect::Edit]),
        Action::Grow { item: 0, text: "output", again: 0 },
        end(),
        settle(Reply::Explain),
        Action::Begin { call: 0, kind: Kind::Text, block: None },
        Action::Grow { item: 0, text: "it would", again: 0 },
        settle(Reply::Always),
        Action::Answer { call: 0, judged: Vec::new(), there: There::All },
        Action::Grow { item: 0, text: "more", again: 0 },
        end(),
        settle(Reply::Deny { message: None, ends: true }),
        say(&[(Kind::Tool, "{4}")], &[Effect::Edit]),
        settle(Reply::Approve(None)),
        Action::Grow { item: 0, text: "half", again: 0 },
        Action::Interrupt(None),
        end(),
        Action::Compact,
        say(&[(Kind::Text, "s")], &[]),
        Action::Send(Said { client_ref: Some("mine"), ..said("three") }),
        Action::SetMode(Mode::Plan),
        say(&[(Kind::Tool, ASKS_TWO), (Kind::Tool, ASKS_ONE)], &[Effect::Question, Effect::Plan]),
        settle(Reply::Form(vec![(1, vec!["Red", "my own"])])),
        settle(Reply::Approve(Some("but slowly"))),
        Action::Cancel(Aim::Named("mine")),
        Action::Stopped(0),
        Action::Send(said("four")),
        say(&[(Kind::Tool, ASKS_ONE)], &[Effect::Question]),
        Action::Close,
        Action::Send(Said { delivery: Delivery::AnswerQuestion, ..said("five") }),
        say(&[(Kind::Tool, ASKS_ONE)], &[Effect::Question]),
        Action::Send(Said { delivery: Delivery::AnswerQuestion, ..said("red") }),
        Action::Fail {
            call: 0,
            blocks: vec![(Kind::Text, "whole"), (Kind::Text, "half"), (Kind::Tool, "{5")],
            failures: vec![Failure { flaw: Flaw::Overloaded, chance: 500 }],
        },
        Action::Overflow { summary: "all of it", again: false },
        say(&[(Kind::Reasoning, ""), (Kind::Tool, "{6}")], &[Effect::Read]),
        end(),
        say(&[(Kind::Text, "done")], &[]),
    ]
}

/// A session in which the sandbox stops one command after the other.
fn stopped() -> Vec<Action> {
    let settle = |reply| Action::Settle { wait: Wanted::Presented, reply };
    let end = || Action::EndTool { item: 0, end: End::Whole, seen: false };
    let blocks = vec![(Kind::Text, "it needs the net")];
    vec![
        Action::Send(said("one")),
        Action::Escape(Halted { printed: "inside ", ..HALTED }),
        settle(Reply::Explain),
        Action::Say { call: 0, blocks, judged: Vec::new(), there: There::All },
        settle(Reply::Approve(None)),
        Action::Grow { item: 0, text: "outside", again: 0 },
        end(),
        Action::Escape(Halted { printed: "again ", seen: true, ..HALTED }),
        settle(Reply::Deny { message: None, ends: false }),
        Action::Escape(Halted { printed: "alone ", there: There::Nobody, ..HALTED }),
        Action::Escape(Halted { mode: Some(Mode::Bypass), ..HALTED }),
        end(),
        Action::Escape(Halted { printed: "last ", ..HALTED }),
        settle(Reply::Deny { message: None, ends: true }),
    ]
}

fn start() -> Start {
    let (adopted, mode, calls_max) = (Vec::new(), Mode::Suggest, 50);
    let (tokens_max, budget) = (1_000, None);
    let (created, bypass_allowed, retries_max) = (true, true, 2);
    Start { adopted, created, mode, calls_max, bypass_allowed, retries_max, tokens_max, budget }
}

/// Plays a session that meets all this, with a crash at each of its entries, and twice in a row.
fn crash_anywhere(rich: &[Action], meets: &[&str]) {
    let whole = play(&start(), rich).unwrap();
    for what in meets {
        assert!(whole.tally.contains_key(*what), "the session is not rich any more: no {what}");
    }
    for after in 0..u8::try_from(whole.log.len()).unwrap() {
        for again in [None, Some(0), Some(1), Some(2), Some(3)] {
            let mut actions = vec![Action::Fuse(after)];
            actions.extend_from_slice(rich);
            actions.push(Action::Crash { again, lost: again == Some(3) });
            actions.push(Action::Resume);
            actions.push(Action::Go(Box::new(Go {
                pick: 0,
                said: said("go on"),
                reply: Reply::Approve(None),
                blocks: vec![(Kind::Text, "done")],
                judged: Vec::new(),
                end: End::Whole,
                stopped: false,
            })));
            if let Err(told) = play(&start(), &actions) {
                panic!("after {after} entries, again {again:?}: {told}");
            }
        }
    }
}

#[test]
fn a_crash_at_any_entry_loses_nothing_and_runs_nothing_twice() {
    let meets = [
        "explain_asked",
        "wait_settled",
        "turn_stopping",
        "tool_started",
        "compacted",
        "question answered by form",
        "question answered by message",
        "plan approved in plan mode",
        "cancelled a turn",
        "ended with a turn",
        "spoke to an ended session",
        "made again",
        "compacted inside a turn",
    ];
    crash_anywhere(&rich(), &meets);
}

#[test]
fn a_crash_at_any_entry_forgets_nothing_of_what_the_sandbox_stopped() {
    let meets = [
        "outside explained",
        "ran outside by a person's leave",
        "ran outside by the mode",
        "left inside by a denial",
        "left inside unasked",
        "outside denied, turn ended",
    ];
    crash_anywhere(&stopped(), &meets);
}

#[test]
fn a_cut_call_keeps_every_character_and_ends_as_interrupted() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").text("so f").reason("hm").tool("a");
    let (call, before) = (script.call(), script.last_seq());
    script.crash();
    let told = script.since(before);
    let texts: Vec<(&str, End)> = told
        .iter()
        .filter_map(|event| match event {
            Event::ItemCompleted { text, end, .. } => Some((&**text, *end)),
            _ => None,
        })
        .collect();
    assert_eq!(texts, [("so f", End::Cut), ("hm", End::Cut), ("{a}", End::Cut)]);
    let lost = Event::CallEnded { call, outcome: CallOutcome::Lost, usage: None };
    let outcome = Outcome::Interrupted { reason: CRASH_REASON.into() };
    let over = Event::TurnEnded { outcome, usage: Default::default() };
    assert_eq!(told[3..], [lost, over]);
    script.resume();
    let want = "user: go\nassistant: so f\nuser: Go on with the work that was interrupted.";
    assert_eq!(script.prompt(), want);
}

#[test]
fn a_running_tool_is_closed_with_what_it_said_and_the_model_is_told() {
    let mut script = Script::new(Mode::Bypass);
    script.send("go").tool("a").tool("b");
    script.answer(&[judgement(Effect::Execute), judgement(Effect::Execute)]);
    let a = script.tools()[0];
    script.output(a, "half").crash();
    assert_eq!(script.tools(), []);
    script.resume();
    let prompt = script.prompt();
    let told = format!("error a: half\n{CRASHED_TOOL_TEXT}\nerror b: Not run");
    assert!(prompt.contains(&told), "{prompt}");
}

#[test]
fn what_was_found_out_about_a_running_tool_stands_in_its_result() {
    let mut script = Script::new(Mode::Bypass);
    script.send("go").tool("a").tool("b");
    script.answer(&[judgement(Effect::Execute), judgement(Effect::Execute)]);
    let (a, b) = (script.tools()[0], script.tools().get(1).copied());
    assert_eq!(b, None, "the second waits for the first");
    let found = [(a, "It was undone.".into())].into();
    let events = recover_with(&script.sim.state, &script.sim.live, &found);
    let seen = |event: &Event| match event {
        Event::ItemCompleted { result: Some(result), .. } => result.seen.clone(),
        _ => None,
    };
    let seen: Vec<_> = events.iter().filter_map(seen).collect();
    assert_eq!(&*seen[0], format!("{CRASHED_TOOL_TEXT} It was undone."));
    assert!(seen[1..].iter().all(|seen| !seen.contains("undone")), "{seen:?}");
    // Of what does not run nothing is told.
    let nobody = [(polyloop_session::ItemId(polyloop_session::Seq(9_999)), "x".into())].into();
    let plain = recover(&script.sim.state, &script.sim.live);
    assert_eq!(recover_with(&script.sim.state, &script.sim.live, &nobody), plain);
}

#[test]
fn an_open_wait_survives_and_its_answer_runs_the_tool() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").tool("a").answer(&[judgement(Effect::Execute)]);
    let wait = script.wait();
    script.settle(WaitReply::Explain).text("because").crash();
    assert_eq!(script.wait(), wait);
    assert_eq!(script.sim.running, []);
    script.settle(WaitReply::Explain).text("once more").answer(&[]);
    script.settle(approve()).end_tools();
    let prompt = script.prompt();
    assert!(
        prompt.ends_with("told: because\nuser: Before deciding on that call I was told: once more")
    );
}

#[test]
fn an_interrupt_that_a_crash_overtook_withdraws_the_wait() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").tool("a").answer(&[judgement(Effect::Execute)]);
    script.sim.fuse = Some(1);
    assert!(script.sim.command(interrupt()).is_err(), "the fuse burns down after TurnStopping");
    script.crash();
    assert!(script.sim.state.turn().is_none());
    assert_eq!(script.sim.tally["wait_withdrawn"], 1);
}

#[test]
fn a_message_whose_turn_had_not_begun_is_kept_for_resume() {
    let mut script = Script::after(vec![created(Mode::Suggest, 5), queued("one", 1)]);
    script.crash();
    assert_eq!(script.sim.running, []);
    script.resume();
    assert!(script.prompt().starts_with("user: one\n"), "{}", script.prompt());
}

#[test]
fn a_session_at_rest_needs_no_recovery() {
    let mut script = Script::new(Mode::Suggest);
    assert_eq!(recover(&script.sim.state, &Live::default()), []);
    script.send("go").text("done").answer(&[]);
    assert_eq!(recover(&script.sim.state, &script.sim.live), []);
    script.send("go").interrupt().stopped();
    assert_eq!(recover(&script.sim.state, &script.sim.live), []);
}

#[test]
fn a_turn_that_a_denial_ended_gives_way_to_no_other_before_a_client_asks() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").send("two").tool("a").answer(&[judgement(Effect::Execute)]);
    let wait = polyloop_session::WaitRef::Presented;
    let (reply, by) = (super::script::DENY_AND_END, super::make::who());
    script.sim.fuse = Some(2);
    let command = polyloop_session::Command::Settle { wait, reply, by };
    assert!(script.sim.command(command).is_err(), "the fuse burns down after TurnStopping");
    script.crash();
    assert_eq!(script.sim.running, []);
    script.resume();
    let prompt = script.prompt();
    assert!(prompt.contains("\nuser: two\nuser: Go on"), "{prompt}");
}

#[test]
fn what_a_person_interrupted_is_told_from_what_a_crash_did() {
    let by_person = |script: &Script| script.sim.state.interrupted().unwrap().by_person;
    let mut script = Script::new(Mode::Suggest);
    script.send("go").crash();
    assert!(!by_person(&script));
    script.resume().interrupt().stopped();
    assert!(by_person(&script));
    script.resume().interrupt().crash();
    assert!(by_person(&script), "the crash came after the interrupt");
}

fn asking(mode: Mode, effect: Effect) -> Script {
    let mut script = Script::new(mode);
    script.send("go").asks("a", ASKS_ONE).answer(&[judgement(effect)]);
    script
}

#[test]
fn an_open_question_survives_and_its_answer_goes_on_with_the_turn() {
    for effect in [Effect::Question, Effect::Plan] {
        let mut script = asking(Mode::Plan, effect);
        let (wait, open) = (script.wait(), script.sim.state.turn().unwrap().waits.clone());
        script.crash().crash();
        assert_eq!(script.wait(), wait);
        assert_eq!(script.sim.state.turn().unwrap().waits, open);
        assert_eq!(script.sim.running, []);
        script.settle(saying("red"));
        assert!(script.prompt().contains("\nresult a: The user "), "{}", script.prompt());
    }
}

/// The fuse burns down between the answer and the end of the call it answers.
#[test]
fn an_answer_given_before_a_crash_is_told_to_the_model_after_it() {
    let rows = [
        (Effect::Question, 1, saying("red"), "result a: The user answered: Red"),
        (Effect::Question, 1, DENY, "error a: The user does not want to answer that."),
        (
            Effect::Plan,
            2,
            saying("slowly"),
            "result a: The user approved the plan. Go ahead with it.",
        ),
    ];
    for (effect, fuse, reply, told) in rows {
        let mut script = asking(Mode::Plan, effect);
        script.sim.fuse = Some(fuse);
        let wait = polyloop_session::WaitRef::Presented;
        let command = polyloop_session::Command::Settle { wait, reply, by: who() };
        assert!(script.sim.command(command).is_err(), "{told}");
        assert_eq!(script.sim.tally.get("item_completed"), None);
        script.crash().resume();
        assert!(script.prompt().contains(told), "{}", script.prompt());
        let mode = if effect == Effect::Plan { Mode::Suggest } else { Mode::Plan };
        assert_eq!(script.sim.state.mode(), mode);
    }
}

#[test]
fn a_turn_that_recovery_begins_tells_what_was_before_it() {
    let mut script = asking(Mode::Suggest, Effect::Question);
    script.send("two");
    script.sim.fuse = Some(2);
    let wait = polyloop_session::WaitRef::Presented;
    let (reply, by) = (super::script::DENY_AND_END, who());
    assert!(script.sim.command(polyloop_session::Command::Settle { wait, reply, by }).is_err());
    script.crash();
    let told = script.sim.log.iter().rev().find_map(|entry| match &entry.event {
        Event::TurnStarted { earlier, .. } => *earlier,
        _ => None,
    });
    assert_eq!(told, Some(3), "the message, the question, and its answer");
}
