//! Each command in each situation, as one table; and what the accepted ones record.

use polyloop_session::command::{Target, WaitReply};
use polyloop_session::decide::{DENY_CONTINUE_TEXT, EXPIRED_TEXT, deadline, expire};
use polyloop_session::event::{Agent, Event, Outcome, Setting, Stop, Work};
use polyloop_session::policy::{Effect, Judgement, Mode};
use polyloop_session::wait::{Answer, Then, Who};
use polyloop_session::{Command, Delivery, Limits, Refusal, Seq, Timestamp, WaitRef, decide};

use super::make::{
    ASKS_ONE, LIMITS, approve, created, form, interrupt, judgement, key, message, said, send, sent,
    turn, wait, who,
};
use super::script::{DENY, DENY_AND_END, Script};

const SITUATIONS: [&str; 14] = [
    "nothing yet",
    "new",
    "calling",
    "waiting",
    "explaining",
    "running",
    "stopping",
    "answered",
    "interrupted",
    "full",
    "compacting",
    "asking",
    "planning",
    "ended",
];

fn situation(name: &str) -> Script {
    let mut script = match name {
        "nothing yet" => return Script::after(Vec::new()),
        _ => Script::new(Mode::Suggest),
    };
    match name {
        "new" => return script,
        _ => script.send("go"),
    };
    let command = judgement(Effect::Execute);
    match name {
        "calling" => &mut script,
        "waiting" => script.tool("a").answer(&[command]),
        "explaining" => script.tool("a").answer(&[command]).settle(WaitReply::Explain),
        "running" => script.tool("a").answer(&[command]).settle(approve()),
        "stopping" => script.interrupt(),
        "answered" => script.text("done").answer(&[]),
        "interrupted" => script.interrupt().stopped(),
        "full" => script.send("1").send("2").send("3"),
        "compacting" => script.text("done").answer(&[]).compact(),
        "asking" => script.asks("a", ASKS_ONE).answer(&[judgement(Effect::Question)]),
        "planning" => script.asks("a", ASKS_ONE).answer(&[judgement(Effect::Plan)]),
        "ended" => script.text("done").answer(&[]).close(),
        _ => panic!("no situation is called {name}"),
    };
    script
}

fn cancel(target: Target) -> Command {
    Command::Cancel { target, by: who() }
}

fn settle(wait: WaitRef, reply: WaitReply) -> Command {
    Command::Settle { wait, reply, by: who() }
}

fn commands(script: &Script) -> Vec<(&'static str, Command)> {
    let by = who;
    let state = &script.sim.state;
    let first = state.queue().front().map_or(message(999), |queued| queued.id);
    let running = match state.turn().map(|turn| &turn.work) {
        Some(Work::Message { message }) => *message,
        _ => message(999),
    };
    let open = state.turn().and_then(|turn| turn.waits.keys().next().copied());
    let set = |setting| Command::Set { setting, by: by() };
    let other = Command::Interrupt { turn: Some(turn(1)), reason: "r".into(), by: by() };
    vec![
        ("send", send("more")),
        ("send nothing", send(" \n")),
        ("send an answer", sent("red", Delivery::Answer { consents: false })),
        ("drop the first", cancel(Target::Message(first))),
        ("drop another", cancel(Target::Message(message(1)))),
        ("cancel the turn", cancel(Target::Message(running))),
        ("cancel the wait", cancel(Target::Wait(open.unwrap_or(wait(999))))),
        ("cancel a name", cancel(Target::ClientRef("mine".into()))),
        ("approve", settle(WaitRef::Presented, approve())),
        ("approve, saying", settle(WaitRef::Presented, said("red"))),
        ("deny", settle(WaitRef::Presented, DENY)),
        ("explain", settle(WaitRef::Presented, WaitReply::Explain)),
        ("fill the form", settle(WaitRef::Presented, form(0, &["Red"]))),
        ("answer another", settle(WaitRef::Id(wait(1)), approve())),
        ("interrupt", interrupt()),
        ("interrupt another", other),
        ("resume", Command::Resume { by: by() }),
        ("compact", Command::Compact { by: by() }),
        ("set plan", Command::SetMode { mode: Mode::Plan, by: by() }),
        ("set bypass", Command::SetMode { mode: Mode::Bypass, by: by() }),
        ("set a title", set(Setting::Title { title: "t".into() })),
        ("set got", set(Setting::Agent { agent: Agent::Got })),
        ("set no calls", set(Setting::CallsMax { calls_max: 0 })),
        ("close", Command::Close { by: by() }),
        ("reopen", Command::Reopen { by: by() }),
    ]
}

/// One column a situation, in their order; the letters are those of `word`.
const TABLE: &str = "
send              | + + + + + + + + + f + + + +
send nothing      | e e e e e e e e e e e e e e
send an answer    | + + + + + + + + + f + + + +
drop the first    | u u u u u u u u u + u u u u
drop another      | u u u u u u u u u u u u u u
cancel the turn   | u u + + + + = u u + u + + u
cancel the wait   | u u u + + u u u u u u + + u
cancel a name     | u u u u u u u u u u u u u u
approve           | n n n + + n n n n n n a + n
approve, saying   | n n n + + n n n n n n + + n
deny              | n n n + + n n n n n n + + n
explain           | n n n + t n n n n n n a + n
fill the form     | n n n a a n n n n n n + a n
answer another    | n n n n n n n n n n n n n n
interrupt         | i i + + + + = i i + + + + i
interrupt another | T T T T T T T T T T T T T T
resume            | w w r r r r r w + r r r r w
compact           | c c r r r r r + + r r r r +
set plan          | + + + + + + + + + + + + + +
set bypass        | b b b b b b b b b b b b b b
set a title       | + + + + + + + + + + + + + +
set got           | + + + + + + + + + + + + + +
set no calls      | S S S S S S S S S S S S S S
close             | + + + + + + + + + + + + + x
reopen            | = = = = = = = = = = = = = +
";

/// `+` is accepted with events, `=` without any.
fn word(decided: Result<Vec<Event>, Refusal>) -> &'static str {
    match decided {
        Ok(events) if events.is_empty() => "=",
        Ok(_) => "+",
        Err(Refusal::EmptyMessage) => "e",
        Err(Refusal::QueueFull { .. }) => "f",
        Err(Refusal::NoPendingApproval) => "n",
        Err(Refusal::AlreadySettled { .. }) => "s",
        Err(Refusal::Withdrawn) => "W",
        Err(Refusal::AlreadyExplaining) => "t",
        Err(Refusal::NotAnEdit) => "E",
        Err(Refusal::Refused { .. }) => "R",
        Err(Refusal::UnknownTarget) => "u",
        Err(Refusal::BadAnswer { .. }) => "a",
        Err(Refusal::NoSuchTurn) => "T",
        Err(Refusal::AlreadyClosed) => "x",
        Err(Refusal::BadSetting { .. }) => "S",
        Err(Refusal::NothingRunning) => "i",
        Err(Refusal::NothingToResume) => "w",
        Err(Refusal::TurnRunning) => "r",
        Err(Refusal::NothingToCompact) => "c",
        Err(Refusal::BypassNotAllowed) => "b",
        Err(Refusal::NothingToUndo | Refusal::NoSuchEdit | Refusal::AlreadyUndone) => "U",
        // Of the server, before there is a session to decide.
        Err(Refusal::TooManySessions { .. }) => "M",
    }
}

#[test]
fn each_command_in_each_situation() {
    let limits = Limits { bypass_allowed: false, ..LIMITS };
    for (column, name) in SITUATIONS.iter().enumerate() {
        let script = situation(name);
        let rows: Vec<&str> = TABLE.trim().lines().collect();
        let commands = commands(&script);
        assert_eq!(rows.len(), commands.len());
        for (row, (called, command)) in rows.iter().zip(commands) {
            let (title, cells) = row.split_once('|').unwrap();
            let cells: Vec<&str> = cells.split_whitespace().collect();
            assert_eq!((title.trim(), cells.len()), (called, SITUATIONS.len()));
            let got = word(decide(&script.sim.state, command, &limits));
            assert_eq!(got, cells[column], "{called}, when {name}");
        }
    }
}

fn accepted(script: &Script, command: Command) -> Vec<Event> {
    decide(&script.sim.state, command, &LIMITS).expect("the command is accepted")
}

#[test]
fn the_first_answer_wins_and_the_second_is_told_by_whom() {
    let mut script = situation("waiting");
    let id = script.wait();
    let by = Who { via: "unified".into(), name: Some("Ada".into()), from: None };
    script.command(Command::Settle { wait: WaitRef::Id(id), reply: approve(), by });
    let late = decide(&script.sim.state, settle(WaitRef::Id(id), DENY), &LIMITS);
    assert_eq!(late, Err(Refusal::AlreadySettled { by: "Ada (unified)".into() }));
}

#[test]
fn a_withdrawn_wait_cannot_be_answered() {
    let mut script = situation("waiting");
    let id = script.wait();
    script.interrupt();
    let late = decide(&script.sim.state, settle(WaitRef::Id(id), DENY), &LIMITS);
    assert_eq!(late, Err(Refusal::Withdrawn));
}

#[test]
fn always_grants_what_the_judgement_named_and_once_grants_nothing() {
    let script = situation("waiting");
    let granted = |reply| match &accepted(&script, settle(WaitRef::Presented, reply))[..] {
        [Event::WaitSettled { answer: Answer::Approved { grants, .. }, .. }] => grants.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(granted(WaitReply::ApproveAlways), [key("touch")]);
    assert_eq!(granted(approve()), []);
}

#[test]
fn a_denial_has_a_text_and_may_end_the_turn() {
    let script = situation("waiting");
    let deny = |message: Option<&str>| {
        let message = message.map(Into::into);
        settle(WaitRef::Presented, WaitReply::Deny { message, then: Then::Continue })
    };
    for (given, told) in
        [(None, DENY_CONTINUE_TEXT), (Some(" \n"), DENY_CONTINUE_TEXT), (Some(" no "), "no")]
    {
        let want = Answer::Denied { message: told.into(), then: Then::Continue };
        match &accepted(&script, deny(given))[..] {
            [Event::WaitSettled { answer, .. }] => assert_eq!(*answer, want),
            other => panic!("{other:?}"),
        }
    }
    let events = accepted(&script, settle(WaitRef::Presented, DENY_AND_END));
    let [Event::WaitSettled { .. }, Event::TurnStopping { reason }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(*reason, Stop::Denied { wait: script.wait() });
}

#[test]
fn other_arguments_only_for_an_edit_and_only_if_not_refused() {
    let instead = |judgement: Judgement, always: bool| {
        let (args, judgement) = ("p".into(), judgement.into());
        let reply = WaitReply::ApproveInstead { args, judgement, always };
        settle(WaitRef::Presented, reply)
    };
    let edit = judgement(Effect::Edit);
    let command = situation("waiting");
    let refused = decide(&command.sim.state, instead(edit.clone(), false), &LIMITS);
    assert_eq!(refused, Err(Refusal::NotAnEdit));
    let mut script = Script::new(Mode::Suggest);
    script.send("go").tool("a").answer(std::slice::from_ref(&edit));
    let never = Judgement { refusal: Some("the store".into()), ..edit.clone() };
    let refused = decide(&script.sim.state, instead(never, true), &LIMITS);
    assert_eq!(refused, Err(Refusal::Refused { reason: "the store".into() }));
    let theirs = Judgement { keys: vec![key("theirs")], ..edit };
    for (always, want) in [(false, vec![]), (true, vec![key("theirs")])] {
        match &accepted(&script, instead(theirs.clone(), always))[..] {
            [Event::WaitSettled { answer: Answer::Approved { grants, instead, .. }, .. }] => {
                assert_eq!(*grants, want);
                assert!(instead.is_some());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_full_queue_that_nothing_empties_still_takes_the_message_that_wakes_it() {
    let mut script = situation("full");
    script.interrupt().stopped();
    assert_eq!(script.sim.state.queue().len(), LIMITS.queued_messages_max);
    assert!(script.sim.state.is_paused());
    script.send("wake up");
    assert!(script.prompt().ends_with("user: 1"), "{}", script.prompt());
    assert_eq!(script.sim.state.queue().len(), LIMITS.queued_messages_max);
    let refused = decide(&script.sim.state, send("more"), &LIMITS);
    assert_eq!(refused, Err(Refusal::QueueFull { limit: LIMITS.queued_messages_max }));
}

#[test]
fn an_interrupted_turn_is_resumed_once() {
    let mut script = situation("interrupted");
    let interrupted = script.sim.state.interrupted().unwrap().turn;
    let want = Work::Resume { turn: interrupted, by: who() };
    let events = accepted(&script, Command::Resume { by: who() });
    let [Event::TurnStarted { work, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(*work, want);
    script.resume().text("done").answer(&[]);
    let again = decide(&script.sim.state, Command::Resume { by: who() }, &LIMITS);
    assert_eq!(again, Err(Refusal::NothingToResume));
}

#[test]
fn bypass_is_set_only_where_it_is_allowed() {
    let script = situation("new");
    let bypass = Command::SetMode { mode: Mode::Bypass, by: who() };
    assert_eq!(accepted(&script, bypass), [Event::ModeSet { mode: Mode::Bypass, by: who() }]);
}

#[test]
fn a_wait_runs_out_at_its_deadline_and_not_before() {
    let mut script = situation("waiting");
    let opened = script.sim.state.turn().unwrap().waits[&script.wait()].opened_at;
    let state = &script.sim.state;
    assert_eq!(deadline(state, None), None);
    assert_eq!(expire(state, Timestamp(i64::MAX), None), []);
    let due = deadline(state, Some(500)).unwrap();
    assert_eq!(due, Timestamp(opened.0 + 500));
    assert_eq!(expire(state, Timestamp(due.0 - 1), Some(500)), []);
    let events = expire(state, due, Some(500));
    let answer = Answer::Denied { message: EXPIRED_TEXT.into(), then: Then::Continue };
    let by = Who::via("timeout");
    assert_eq!(events, [Event::WaitSettled { wait: script.wait(), answer, by }]);
    let before = script.last_seq();
    assert!(script.sim.record(events).is_ok() && script.sim.advance().is_ok());
    let told = script.since(before);
    assert!(matches!(told.last(), Some(Event::CallStarted { .. })), "the turn goes on: {told:?}");
    assert_eq!(deadline(&script.sim.state, Some(500)), None);
}

#[test]
fn a_compaction_without_gain_fails_and_changes_nothing() {
    let mut script = situation("answered");
    let before = script.sim.state.line().clone();
    script.compact().text(&"long ".repeat(50)).answer(&[]);
    let log = script.since(Seq::NONE);
    let Some(Event::TurnEnded { outcome: Outcome::Failed { fault }, .. }) = log.last() else {
        panic!("{log:?}")
    };
    assert_eq!(&*fault.code, "context_floor");
    assert!(fault.message.contains("no gain"), "{fault:?}");
    assert_eq!(*script.sim.state.line(), before);
}

#[test]
fn a_compaction_ends_whatever_its_call_does() {
    let ends: [fn(&mut Script) -> &mut Script; 4] = [
        |script| script.fail(),
        |script| script.stopped(),
        |script| script.answer(&[]),
        |script| script.text("x").tool("a").answer(&[judgement(Effect::Read)]),
    ];
    for (at, end) in ends.into_iter().enumerate() {
        let mut script = situation("compacting");
        end(&mut script);
        assert!(script.sim.state.turn().is_none(), "case {at}");
        let tools = script.since(Seq::NONE).into_iter();
        assert_eq!(tools.filter(|e| matches!(e, Event::ToolStarted { .. })).count(), 0);
    }
}

#[test]
fn a_mode_can_be_set_where_another_program_left_no_settings() {
    let mut script = Script::after(vec![Event::Adopted { piece: None }]);
    script.command(Command::SetMode { mode: Mode::Plan, by: who() });
    assert_eq!(script.sim.state.mode(), Mode::Plan);
    assert!(script.sim.record(vec![created(Mode::AutoEdit, 5)]).is_ok());
    assert_eq!(script.sim.state.mode(), Mode::AutoEdit);
}
