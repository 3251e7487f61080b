//! Every small reply: two and three proposed calls of each kind, in each mode, however a person
//! answers and in whichever order the tools end. What should happen is worked out from the table
//! of modes below, not from the policy's code.

use polyloop_session::command::WaitReply;
use polyloop_session::event::{Event, Outcome, Purpose};
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Judgement, Mode, Rule, Says};
use polyloop_session::state::OpenWait;
use polyloop_session::wait::{Ask, Then};
use polyloop_session::{ItemId, Step};

use super::make::{ASKS_ONE, approve, created, form, judgement, key, queued, said};
use super::script::{DENY, DENY_AND_END, Script};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Read,
    Safe,
    Refused,
    EditInside,
    EditOutside,
    Sandboxable,
    /// The same, and the sandbox stops it.
    Stopped,
    Command,
    /// It reaches the network, whatever else is found out about it.
    Network,
    /// A command of which a rule says so, which could run in the sandbox.
    RuleAllows,
    RuleAsks,
    RuleDenies,
    Question,
    Plan,
}

const KINDS: [Kind; 14] = [
    Kind::Read,
    Kind::Safe,
    Kind::Refused,
    Kind::EditInside,
    Kind::EditOutside,
    Kind::Sandboxable,
    Kind::Stopped,
    Kind::Command,
    Kind::Network,
    Kind::RuleAllows,
    Kind::RuleAsks,
    Kind::RuleDenies,
    Kind::Question,
    Kind::Plan,
];

const MODES: [Mode; 6] =
    [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto, Mode::Bypass, Mode::Plan, Mode::DontAsk];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Runs,
    Sandboxed,
    Asked,
    Denied,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Person {
    Approves,
    ApprovesAlways,
    Denies,
    DeniesAndEnds,
}

const PERSONS: [Person; 4] =
    [Person::Approves, Person::ApprovesAlways, Person::Denies, Person::DeniesAndEnds];

fn judged(kind: Kind) -> Judgement {
    let plain = |effect| Judgement { keys: vec![key(&format!("{kind:?}"))], ..judgement(effect) };
    let ruled = |says| {
        let rule = Some(Rule { says, line: "a line".into() });
        Judgement { sandbox: true, rule, ..plain(Effect::Execute) }
    };
    match kind {
        Kind::Read => plain(Effect::Read),
        Kind::Safe => Judgement { safe: true, ..plain(Effect::Execute) },
        Kind::Refused => Judgement { refusal: Some("never".into()), ..plain(Effect::Read) },
        Kind::EditInside => Judgement { confined: true, ..plain(Effect::Edit) },
        Kind::EditOutside => plain(Effect::Edit),
        Kind::Sandboxable | Kind::Stopped => Judgement { sandbox: true, ..plain(Effect::Execute) },
        Kind::Command => plain(Effect::Execute),
        Kind::Network => Judgement { safe: true, sandbox: true, ..plain(Effect::Network) },
        Kind::RuleAllows => ruled(Says::Allow),
        Kind::RuleAsks => ruled(Says::Ask),
        Kind::RuleDenies => ruled(Says::Deny),
        Kind::Question => plain(Effect::Question),
        Kind::Plan => plain(Effect::Plan),
    }
}

/// The table of modes: suggest, auto-edit, full-auto, bypass, plan, dontAsk.
fn fate(kind: Kind, mode: Mode, granted: bool) -> Fate {
    use Fate::{Asked as A, Denied as D, Runs as R, Sandboxed as S};
    let row = match (kind, granted) {
        (Kind::Read | Kind::Safe, _) => [R, R, R, R, R, R],
        (Kind::Refused | Kind::RuleDenies, _) => [D, D, D, D, D, D],
        (Kind::RuleAllows, _) => [R, R, R, R, D, R],
        (Kind::RuleAsks, _) => [A, A, A, A, D, D],
        (Kind::Question | Kind::Plan, _) => [A, A, A, A, A, A],
        (Kind::EditInside, false) => [A, R, R, R, D, D],
        (Kind::EditOutside | Kind::Command | Kind::Network, false) => [A, A, A, R, D, D],
        (Kind::Sandboxable | Kind::Stopped, false) => [A, A, S, R, D, D],
        (_, true) => [R, R, R, R, D, R],
    };
    row[MODES.iter().position(|m| *m == mode).unwrap()]
}

/// How each call ends, after which runs (whether in the sandbox), and whether the turn goes on.
fn expected(
    kinds: &[Kind],
    mode: Mode,
    person: Person,
    answerable: bool,
) -> (Vec<(Vec<bool>, End)>, bool) {
    let (mut ends, mut granted, mut goes_on, mut mode) = (Vec::new(), Vec::new(), true, mode);
    for kind in kinds {
        if !goes_on {
            ends.push((Vec::new(), End::Interrupted));
            continue;
        }
        let (inside, outside) = (vec![true], vec![false]);
        let fate = fate(*kind, mode, granted.contains(kind));
        // Stopped in the sandbox, it is asked about as a command without one.
        let stopped = (*kind, fate) == (Kind::Stopped, Fate::Sandboxed);
        let before = if stopped { inside.clone() } else { Vec::new() };
        let ran = || [before.clone(), outside.clone()].concat();
        let end = match fate {
            Fate::Runs => (outside, End::Whole),
            Fate::Sandboxed if !stopped || !answerable => (inside, End::Whole),
            Fate::Denied => (Vec::new(), End::Denied),
            Fate::Asked if !answerable => (Vec::new(), End::Denied),
            Fate::Asked | Fate::Sandboxed => match person {
                Person::Approves | Person::ApprovesAlways if *kind == Kind::Question => {
                    (Vec::new(), End::Whole)
                }
                Person::Approves | Person::ApprovesAlways if *kind == Kind::Plan => {
                    mode = if mode == Mode::Plan { Mode::Suggest } else { mode };
                    (Vec::new(), End::Whole)
                }
                Person::Approves => (ran(), End::Whole),
                Person::ApprovesAlways => {
                    granted.push(*kind);
                    (ran(), End::Whole)
                }
                Person::Denies => (before, End::Denied),
                Person::DeniesAndEnds => {
                    goes_on = false;
                    (before, End::Denied)
                }
            },
        };
        ends.push(end);
    }
    (ends, goes_on)
}

fn waits(script: &Script) -> Option<&OpenWait> {
    script.sim.state.turn().and_then(|turn| turn.waits.values().next())
}

/// Plays one reply to its end. The simulator checks every entry on the way.
fn played(
    kinds: &[Kind],
    mode: Mode,
    person: Person,
    answerable: bool,
    newest_first: bool,
) -> (Vec<(Vec<bool>, End)>, bool) {
    let mut script = Script::after(vec![created(mode, 9)]);
    script.send("go");
    let mut items: Vec<ItemId> = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        match kind {
            Kind::Question | Kind::Plan => script.asks(&format!("t{at}"), ASKS_ONE),
            _ => script.tool(&format!("t{at}")),
        };
        items.push(ItemId(script.last_seq()));
    }
    let judged: Vec<Judgement> = kinds.iter().map(|kind| judged(*kind)).collect();
    let call = script.call();
    script.answer_seen(&judged, answerable);
    let stops = |item: &ItemId| {
        let at = items.iter().position(|other| other == item);
        at.is_some_and(|at| kinds[at] == Kind::Stopped)
    };
    for _ in 0..3 * kinds.len() {
        let tools = script.tools();
        let next = if newest_first { tools.last() } else { tools.first() };
        if let Some(item) = next.filter(|item| stops(item) && script.sim.runs_inside(**item)) {
            script.stop_tool(*item, answerable);
        } else if let Some(item) = next {
            script.end_tool(*item, End::Whole, None);
        } else if let Some(open) = waits(&script) {
            let question = matches!(open.ask, Ask::Question { .. });
            script.settle(match person {
                Person::Approves if question => said("red"),
                Person::ApprovesAlways if question => form(0, &["Blue"]),
                Person::Approves => approve(),
                Person::ApprovesAlways => WaitReply::ApproveAlways,
                Person::Denies => DENY,
                Person::DeniesAndEnds => DENY_AND_END,
            });
        }
    }
    let log = script.since(call.0);
    let ends = items.iter().map(|id| {
        let ran = log.iter().filter_map(|event| match event {
            Event::ToolStarted { item, sandboxed, .. } if item == id => Some(*sandboxed),
            _ => None,
        });
        let end = log.iter().find_map(|event| match event {
            Event::ItemCompleted { item, end, .. } if item == id => Some(*end),
            _ => None,
        });
        (ran.collect(), end.expect("every call is completed"))
    });
    let asks_again = matches!(log.last(), Some(Event::CallStarted { purpose: Purpose::Think, .. }));
    let completed =
        matches!(log.last(), Some(Event::TurnEnded { outcome: Outcome::Completed, .. }));
    assert!(asks_again || completed, "{kinds:?} {mode:?} {person:?} {log:?}");
    (ends.collect(), asks_again)
}

fn check(kinds: &[Kind], mode: Mode, person: Person, answerable: bool, newest_first: bool) {
    let want = expected(kinds, mode, person, answerable);
    let got = played(kinds, mode, person, answerable, newest_first);
    assert_eq!(got, want, "{kinds:?} {mode:?} {person:?} {answerable} {newest_first}");
}

#[test]
fn every_reply_of_two_calls() {
    for first in KINDS {
        for second in KINDS {
            for mode in MODES {
                for person in PERSONS {
                    // Only reading calls run side by side, so that there is an order.
                    let beside = (first, second) == (Kind::Read, Kind::Read);
                    for answerable in [true, false] {
                        check(&[first, second], mode, person, answerable, beside);
                    }
                }
            }
        }
    }
}

#[test]
fn every_reply_of_three_calls() {
    let kinds = [Kind::Read, Kind::Refused, Kind::EditInside, Kind::Stopped, Kind::Command];
    for first in kinds {
        for second in kinds {
            for third in kinds {
                for mode in [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto] {
                    for person in PERSONS {
                        check(&[first, second, third], mode, person, true, true);
                    }
                }
            }
        }
    }
}

#[test]
fn only_reading_calls_run_side_by_side() {
    use Kind::{EditInside as Edit, Read, Refused, Safe};
    let rows: [(&[Kind], &[usize]); 8] = [
        (&[Read, Read, Read], &[0, 1, 2]),
        (&[Read, Edit, Read], &[0]),
        (&[Edit, Read], &[0]),
        (&[Edit, Edit], &[0]),
        (&[Read, Refused, Read], &[0, 2]),
        (&[Refused, Edit, Edit], &[1]),
        (&[Safe, Read], &[0]),
        (&[Read, Safe], &[0]),
    ];
    for (kinds, want) in rows {
        let mut script = Script::new(Mode::AutoEdit);
        script.send("go");
        let first = script.last_seq().0 + 1;
        let judged: Vec<Judgement> = kinds.iter().map(|kind| judged(*kind)).collect();
        kinds.iter().for_each(|_| {
            script.tool("t");
        });
        script.answer(&judged);
        let got: Vec<u64> = script.tools().iter().map(|item| item.0.0 - first).collect();
        assert_eq!(got, want.iter().map(|at| *at as u64).collect::<Vec<_>>(), "{kinds:?}");
    }
}

#[test]
fn a_mode_counts_from_the_next_decision_on() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").tool("a").tool("b");
    script.answer(&[judged(Kind::Command), judged(Kind::Command)]);
    let mode = |mode| polyloop_session::Command::SetMode { mode, by: super::make::who() };
    script.command(mode(Mode::Bypass));
    assert_eq!(script.tools(), [], "what waits goes on waiting");
    script.settle(DENY);
    assert_eq!(script.tools().len(), 1, "the next call runs without being asked about");
    script.command(mode(Mode::Plan));
    assert_eq!(script.tools().len(), 1, "what runs goes on running");
}

#[test]
fn an_approval_may_put_other_arguments_in_place() {
    let mut script = Script::new(Mode::Suggest);
    script.send("go").tool("a").answer(&[judged(Kind::EditOutside)]);
    let judgement = Box::new(judged(Kind::EditInside));
    script.settle(WaitReply::ApproveInstead { args: "theirs".into(), judgement, always: false });
    let item = script.tools()[0];
    let told = format!("{:?}", script.sim.state.turn().unwrap().items[&item].tool);
    assert!(told.contains("args: \"theirs\""), "{told}");
}

#[test]
fn think_calls_stop_at_the_limit_and_explanations_count_but_are_never_refused() {
    let mut script = Script::after(vec![created(Mode::Suggest, 2)]);
    script.send("go").tool("a").answer(&[judged(Kind::Command)]);
    for _ in 0..3 {
        script.settle(WaitReply::Explain).text("because").answer(&[]);
    }
    let before = script.last_seq();
    script.settle(WaitReply::Deny { message: None, then: Then::Continue });
    let log = script.since(before);
    let Some(Event::TurnEnded { outcome: Outcome::Failed { fault }, .. }) = log.last() else {
        panic!("four calls are more than two: {log:?}")
    };
    assert_eq!(&*fault.code, "max_turns");
}

#[test]
fn a_turn_without_any_calls_fails_at_once_and_the_queue_moves_on() {
    let mut script = Script::after(vec![created(Mode::Suggest, 0)]);
    script.send("one").send("two");
    let failed =
        |event: &&Event| matches!(event, Event::TurnEnded { outcome: Outcome::Failed { .. }, .. });
    assert_eq!(script.since(super::make::turn(0).0).iter().filter(failed).count(), 2);
}

#[test]
fn nothing_begins_before_a_client_speaks_once_a_turn_was_interrupted() {
    let mut script = Script::after(vec![created(Mode::Suggest, 5), queued("one", 1)]);
    script.send("two").send("three").interrupt().stopped();
    assert_eq!((script.sim.running.clone(), script.sim.state.queue().len()), (vec![], 2));
    script.send("four");
    assert!(matches!(script.sim.running[..], [Step::Ask(_)]));
    assert!(script.prompt().ends_with("user: two"), "the oldest goes first");
}

#[test]
fn whoever_speaks_while_a_turn_is_stopping_is_heard_when_it_has_stopped() {
    let mut script = Script::after(vec![created(Mode::Suggest, 5)]);
    script.send("one").interrupt().send("two").stopped();
    assert!(matches!(script.sim.running[..], [Step::Ask(_)]), "{:?}", script.sim.running);
    assert!(script.prompt().ends_with("user: two"), "{}", script.prompt());
}
