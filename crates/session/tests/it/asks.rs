//! Questions and plans: who is asked, what an answer records, and what the model is told.

use polyloop_session::command::WaitReply;
use polyloop_session::decide::{
    EXPIRED_TEXT, NO_ANSWER_TEXT, PLAN_BACK_TEXT, WITHDRAWN_BY_TEXT, expire,
};
use polyloop_session::event::Event;
use polyloop_session::item::End;
use polyloop_session::next::UNREADABLE_TEXT;
use polyloop_session::policy::{Effect, Judgement, Mode, NOBODY_ANSWERS_ADVICE};
use polyloop_session::state::Fate;
use polyloop_session::wait::{Answer, Ask, Given, PLAN_APPROVED_TEXT, Then};
use polyloop_session::{
    Answerable, Command, Delivery, Limits, Proposal, Refusal, Report, Timestamp, WaitRef, decide,
};

use super::make::{
    ASKS_ONE, ASKS_TWO, LIMITS, approve, created, form, judgement, parts, said, sent, who,
};
use super::script::{DENY, DENY_AND_END, Script};

fn asking(mode: Mode, effect: Effect, args: &str) -> Script {
    let mut script = Script::new(mode);
    script.send("go").asks("a", args).answer(&[judgement(effect)]);
    script
}

/// How the one call of the script ended.
fn ended(script: &Script) -> (End, String) {
    let ends = script.sim.log.iter().filter_map(|entry| match &entry.event {
        Event::ItemCompleted { end, text, .. } => Some((*end, text.to_string())),
        _ => None,
    });
    let ends: Vec<_> = ends.collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    ends[0].clone()
}

fn answer(script: &Script) -> Answer {
    let answers = script.sim.log.iter().rev().find_map(|entry| match &entry.event {
        Event::WaitSettled { answer, .. } => Some(answer.clone()),
        _ => None,
    });
    answers.expect("something was settled")
}

fn given(selected: &[&str], text: Option<&str>) -> Given {
    let selected = selected.iter().map(|label| (*label).into()).collect();
    Given { selected, text: text.map(Into::into) }
}

#[test]
fn what_asks_is_asked_in_every_mode_and_never_runs() {
    let modes =
        [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto, Mode::Bypass, Mode::Plan, Mode::DontAsk];
    for mode in modes {
        for (effect, reply) in [(Effect::Question, said("red")), (Effect::Plan, approve())] {
            let mut script = asking(mode, effect, ASKS_ONE);
            let turn = script.sim.state.turn().unwrap();
            let ask = &turn.waits[&script.wait()].ask;
            assert_ne!(*ask, Ask::Approval, "{mode:?}");
            assert_eq!(script.tools(), [], "{mode:?} {effect:?}");
            script.settle(reply);
            assert_eq!(ended(&script).0, End::Whole, "{mode:?} {effect:?}");
            assert!(!script.sim.tally.contains_key("tool_started"), "{mode:?} {effect:?}");
            assert!(script.prompt().contains("\nresult a: The user "), "{}", script.prompt());
        }
    }
}

#[test]
fn a_question_needs_somebody_who_answers_and_leave_somebody_who_approves() {
    let rows = [
        (Effect::Question, false, false, false),
        (Effect::Question, false, true, true),
        (Effect::Question, true, false, true),
        (Effect::Plan, false, true, true),
        (Effect::Plan, false, false, false),
        (Effect::Execute, false, true, false),
        (Effect::Execute, true, false, true),
    ];
    for (effect, approvals, questions, asked) in rows {
        let mut script = Script::new(Mode::Suggest);
        let item = { script.send("go") }.block(super::make::tool("a", "a"), ASKS_ONE);
        let turn = script.sim.state.turn().unwrap();
        let (block, judgement) = (turn.items[&item].block, Box::new(judgement(effect)));
        let proposals = vec![Proposal { block, args: ASKS_ONE.into(), judgement, opaque: None }];
        let answerable = Answerable { approvals, questions };
        let call = script.call();
        script.report(Report::Answered { call, usage: None, proposals, answerable });
        let waits = script.sim.state.turn().unwrap().waits.len();
        assert_eq!(waits == 1, asked, "{effect:?} {answerable:?}");
        if !asked && effect != Effect::Execute {
            assert_eq!(ended(&script), (End::Denied, NOBODY_ANSWERS_ADVICE.into()));
        }
    }
}

#[test]
fn the_model_is_told_what_the_person_said() {
    let deny = |text: &str| WaitReply::Deny { message: Some(text.into()), then: Then::Continue };
    let two = "The user answered:\n- Colour? (no answer)\n- Others? Red, Green, mauve";
    let yes_but = format!("{PLAN_APPROVED_TEXT} They added: but slowly");
    let (question, plan) = (Effect::Question, Effect::Plan);
    let rows = [
        (question, ASKS_ONE, form(0, &["Red"]), End::Whole, "The user answered: Red"),
        (question, ASKS_ONE, form(0, &["my own"]), End::Whole, "The user answered: my own"),
        (question, ASKS_ONE, said(" 2 "), End::Whole, "The user answered: Blue"),
        (question, ASKS_ONE, said("none"), End::Whole, "The user answered: none"),
        (question, ASKS_TWO, form(1, &["red", "Green", "mauve"]), End::Whole, two),
        (question, ASKS_TWO, said("it depends"), End::Whole, "The user answered: it depends"),
        (question, ASKS_ONE, DENY, End::Denied, NO_ANSWER_TEXT),
        (question, ASKS_ONE, deny(" later "), End::Denied, "later"),
        (plan, ASKS_ONE, approve(), End::Whole, PLAN_APPROVED_TEXT),
        (plan, ASKS_ONE, said(" but slowly "), End::Whole, &yes_but),
        (plan, ASKS_ONE, WaitReply::ApproveAlways, End::Whole, PLAN_APPROVED_TEXT),
        (plan, ASKS_ONE, DENY, End::Denied, PLAN_BACK_TEXT),
        (plan, ASKS_ONE, deny("shorter"), End::Denied, "shorter"),
    ];
    for (effect, args, reply, end, told) in rows {
        let mut script = asking(Mode::Suggest, effect, args);
        script.settle(reply.clone());
        assert_eq!(ended(&script), (end, told.to_string()), "{reply:?}");
        let mark = if end == End::Whole { "result" } else { "error" };
        let last = format!("\n{mark} a: {told}");
        assert!(script.prompt().ends_with(&last), "{}", script.prompt());
    }
}

#[test]
fn an_answer_is_kept_by_label_and_in_the_words_it_was_said() {
    let mut script = asking(Mode::Suggest, Effect::Question, ASKS_TWO);
    script.settle(said("blue\n1, 2"));
    let answers = vec![given(&["Blue"], None), given(&["Red", "Green"], None)];
    let want = Answer::Answered { answers, said: Some("blue\n1, 2".into()) };
    assert_eq!(answer(&script), want);
    let mut script = asking(Mode::Suggest, Effect::Question, ASKS_TWO);
    script.settle(form(1, &["green", "and mauve"]));
    let answers = vec![Given::default(), given(&["Green"], Some("and mauve"))];
    assert_eq!(answer(&script), Answer::Answered { answers, said: None });
}

#[test]
fn what_is_no_answer_is_refused_and_the_question_stays_open() {
    let instead = || WaitReply::ApproveInstead {
        args: "{}".into(),
        judgement: Box::new(judgement(Effect::Edit)),
        always: false,
    };
    let rows = [
        (Effect::Question, approve()),
        (Effect::Question, said(" \n")),
        (Effect::Question, WaitReply::ApproveAlways),
        (Effect::Question, instead()),
        (Effect::Question, WaitReply::Explain),
        (Effect::Question, form(1, &["Red"])),
        (Effect::Question, form(0, &["Red", "Blue"])),
        (Effect::Question, WaitReply::Answer { answers: Vec::new() }),
        (Effect::Plan, form(0, &["Red"])),
        (Effect::Plan, instead()),
        (Effect::Execute, form(0, &["Red"])),
    ];
    for (effect, reply) in rows {
        let script = asking(Mode::Suggest, effect, ASKS_ONE);
        let command = Command::Settle { wait: WaitRef::Presented, reply, by: who() };
        let refused = decide(&script.sim.state, command.clone(), &LIMITS).unwrap_err();
        let fits = matches!(refused, Refusal::BadAnswer { .. } | Refusal::NotAnEdit);
        assert!(fits, "{command:?}: {refused:?}");
    }
}

#[test]
fn an_approved_plan_sets_the_mode_back_in_the_same_batch() {
    let mode = |mode| Command::SetMode { mode, by: who() };
    let approves = Command::Settle { wait: WaitRef::Presented, reply: approve(), by: who() };
    // The modes that were set one after the other, the first at the beginning.
    let rows: [(&[Mode], bool, Option<Mode>); 8] = [
        (&[Mode::AutoEdit, Mode::Plan], true, Some(Mode::AutoEdit)),
        (&[Mode::Plan], true, Some(Mode::Suggest)),
        (&[Mode::FullAuto, Mode::Plan, Mode::Plan], true, Some(Mode::FullAuto)),
        (&[Mode::FullAuto, Mode::Plan, Mode::DontAsk, Mode::Plan], true, Some(Mode::DontAsk)),
        (&[Mode::Bypass, Mode::Plan], true, Some(Mode::Bypass)),
        (&[Mode::Bypass, Mode::Plan], false, Some(Mode::Suggest)),
        (&[Mode::Plan, Mode::AutoEdit], true, None),
        (&[Mode::Suggest], true, None),
    ];
    for (modes, bypass_allowed, want) in rows {
        let mut script = Script::after(vec![created(modes[0], 50)]);
        modes[1..].iter().for_each(|next| {
            script.command(mode(*next));
        });
        script.send("go").asks("a", ASKS_ONE).answer(&[judgement(Effect::Plan)]);
        let limits = Limits { bypass_allowed, ..LIMITS };
        script.sim.limits = limits;
        let events = decide(&script.sim.state, approves.clone(), &limits).unwrap();
        let set = events.iter().find_map(|event| match event {
            Event::ModeSet { mode, .. } => Some(*mode),
            _ => None,
        });
        assert_eq!(set, want, "{modes:?}");
        script.command(approves.clone());
        let now = want.unwrap_or(modes[modes.len() - 1]);
        assert_eq!(script.sim.state.mode(), now, "{modes:?}");
    }
}

#[test]
fn a_plan_that_is_sent_back_leaves_the_mode_and_may_end_the_turn() {
    let mut script = asking(Mode::Plan, Effect::Plan, ASKS_ONE);
    script.settle(DENY).asks("b", ASKS_TWO).answer(&[judgement(Effect::Plan)]);
    assert_eq!(script.sim.state.mode(), Mode::Plan);
    script.settle(DENY_AND_END);
    assert!(script.sim.state.turn().is_none());
    assert_eq!(script.sim.state.mode(), Mode::Plan);
}

#[test]
fn a_message_answers_what_is_open_for_it_and_is_queued_otherwise() {
    let consents = |consents| Delivery::Answer { consents };
    let rows = [
        (Effect::Question, Delivery::AnswerQuestion, Some(End::Whole)),
        (Effect::Question, consents(true), Some(End::Whole)),
        (Effect::Question, consents(false), Some(End::Whole)),
        (Effect::Question, Delivery::Queue, None),
        (Effect::Plan, consents(true), Some(End::Whole)),
        (Effect::Plan, consents(false), Some(End::Denied)),
        (Effect::Plan, Delivery::AnswerQuestion, None),
        (Effect::Plan, Delivery::Queue, None),
        (Effect::Execute, consents(true), None),
        (Effect::Execute, Delivery::AnswerQuestion, None),
    ];
    for (effect, delivery, end) in rows {
        let mut script = asking(Mode::Suggest, effect, ASKS_ONE);
        script.command(sent("red", delivery));
        let queued = script.sim.state.queue().len();
        assert_eq!(queued, usize::from(end.is_none()), "{effect:?} {delivery:?}");
        match end {
            Some(end) => assert_eq!(ended(&script).0, end, "{effect:?} {delivery:?}"),
            None => assert_eq!(script.sim.state.turn().unwrap().waits.len(), 1),
        }
    }
    let mut script = Script::new(Mode::Suggest);
    script.command(sent("red", consents(true)));
    assert_eq!(script.prompt(), "user: red");
}

#[test]
fn parts_of_a_message_are_lines_of_one_answer() {
    let mut script = asking(Mode::Suggest, Effect::Question, ASKS_TWO);
    let Command::Send(mut send) = sent("", Delivery::AnswerQuestion) else { unreachable!() };
    send.content = [parts("blue"), parts("green")].concat();
    let events = decide(&script.sim.state, Command::Send(send), &LIMITS).unwrap();
    assert!(script.sim.record(events).is_ok() && script.sim.advance().is_ok());
    let want = "The user answered:\n- Colour? Blue\n- Others? Green";
    assert_eq!(ended(&script), (End::Whole, want.into()));
}

#[test]
fn what_cannot_be_read_is_not_asked_and_the_model_is_told() {
    for args in ["", "{}", "[]", "{\"questions\":[]}", "{\"questions\":\"?\"}", "{\"plan\":1}"] {
        for effect in [Effect::Question, Effect::Plan] {
            let script = asking(Mode::Suggest, effect, args);
            assert_eq!(ended(&script), (End::Failed, UNREADABLE_TEXT.into()), "{args}");
            assert!(!script.sim.tally.contains_key("wait_opened"));
            script.call();
        }
    }
}

#[test]
fn a_question_runs_out_or_is_withdrawn_and_the_turn_goes_on() {
    let mut script = asking(Mode::Suggest, Effect::Question, ASKS_ONE);
    let events = expire(&script.sim.state, Timestamp(i64::MAX), Some(1));
    assert!(script.sim.record(events).is_ok() && script.sim.advance().is_ok());
    assert_eq!(ended(&script), (End::Denied, EXPIRED_TEXT.into()));
    script.call();
    let mut script = asking(Mode::Suggest, Effect::Question, ASKS_ONE);
    let wait = script.wait();
    let target = polyloop_session::Target::Wait(wait);
    script.command(Command::Cancel { target: target.clone(), by: who() });
    assert_eq!(ended(&script), (End::Denied, WITHDRAWN_BY_TEXT.into()));
    assert_eq!(script.sim.state.fate(wait), Some(&Fate::Withdrawn));
    script.call();
    let again = decide(&script.sim.state, Command::Cancel { target, by: who() }, &LIMITS);
    assert_eq!(again, Err(Refusal::UnknownTarget));
}

#[test]
fn a_question_waits_for_what_is_before_it_and_holds_what_is_after() {
    let mut script = Script::new(Mode::Bypass);
    script.send("go").tool("a").asks("b", ASKS_ONE).tool("c");
    let read = judgement(Effect::Read);
    let question = Judgement { safe: true, confined: true, ..judgement(Effect::Question) };
    script.answer(&[read.clone(), question, read]);
    assert_eq!(script.tools().len(), 1);
    assert!(script.sim.state.turn().unwrap().waits.is_empty());
    script.end_tools();
    let (wait, running) = (script.wait(), script.tools());
    assert_eq!(running, []);
    let item = script.sim.state.turn().unwrap().waits[&wait].item;
    let (reply, by) = (said("red"), who());
    script.command(Command::Settle { wait: WaitRef::Item(item), reply, by });
    assert_eq!(script.tools().len(), 1);
    let late = Command::Settle { wait: WaitRef::Item(item), reply: DENY, by: who() };
    let by = who().describe();
    assert_eq!(decide(&script.sim.state, late, &LIMITS), Err(Refusal::AlreadySettled { by }));
}

#[test]
fn a_plan_is_explained_with_its_text_before_it_is_decided_on() {
    let mut script = asking(Mode::Plan, Effect::Plan, ASKS_ONE);
    script.settle(WaitReply::Explain);
    assert!(script.prompt().ends_with("First this, then that"), "{}", script.prompt());
    script.text("because").answer(&[]).settle(approve());
    let told = format!("result a: {PLAN_APPROVED_TEXT}\nuser: Before deciding on that call I was ");
    assert!(script.prompt().contains(&told), "{}", script.prompt());
}
