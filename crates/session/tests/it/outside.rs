//! What the sandbox stopped: asked about, run outside it or not again, and never forgotten.

use polyloop_session::command::{Target, WaitReply};
use polyloop_session::event::Event;
use polyloop_session::item::{End, FileChange, Operation, ToolResult};
use polyloop_session::next::{NOT_RUN_TEXT, OUTSIDE_TEXT};
use polyloop_session::policy::{Effect, Judgement, Leave, Mode, Rule, Says};
use polyloop_session::recover::CRASHED_TOOL_TEXT;
use polyloop_session::wait::Ask;
use polyloop_session::{Answerable, Command, ItemId, Live, Report, Stream};

use super::make::{approve, judgement, key, who};
use super::script::{DENY, DENY_AND_END, Script};

fn inside() -> Judgement {
    Judgement { sandbox: true, keys: vec![key("curl")], ..judgement(Effect::Execute) }
}

/// A command that prints `half` in the sandbox; the sandbox has not stopped it yet.
fn running() -> (Script, ItemId) {
    let mut script = Script::new(Mode::FullAuto);
    script.send("go").tool("a").answer(&[inside()]);
    let item = script.tools()[0];
    script.output(item, "half");
    (script, item)
}

/// The same, stopped: somebody is asked.
fn stopped() -> (Script, ItemId) {
    let (mut script, item) = running();
    script.stop_tool(item, true);
    (script, item)
}

fn completion(script: &Script, id: ItemId) -> (End, String, ToolResult) {
    let found = script.sim.log.iter().find_map(|entry| match &entry.event {
        Event::ItemCompleted { item, end, text, result, .. } if *item == id => {
            Some((*end, text.to_string(), *result.clone().expect("a tool's result")))
        }
        _ => None,
    });
    found.expect("the call is completed")
}

fn leaves(script: &Script) -> Vec<(bool, Leave)> {
    let starts = script.sim.log.iter().filter_map(|entry| match &entry.event {
        Event::ToolStarted { sandboxed, leave, .. } => Some((*sandboxed, leave.clone()?)),
        _ => None,
    });
    starts.collect()
}

const BY_MODE: Leave = Leave::Mode { mode: Mode::FullAuto };

#[test]
fn one_call_has_two_runs_one_stream_and_one_result() {
    let (mut script, item) = stopped();
    let open = script.sim.state.turn().unwrap().waits.values().next().unwrap().clone();
    assert_eq!(open.ask, Ask::Outside { reason: "no network".into() });
    assert_eq!(script.sim.live.text(item, Stream::Output), "half", "it stays shown");
    script.settle(approve()).output(item, " and whole").end_tool(item, End::Whole, None);
    assert_eq!(leaves(&script), [(true, BY_MODE), (false, Leave::Person)]);
    assert_eq!(completion(&script, item).1, "half and whole");
    assert!(script.prompt().ends_with("\nresult a: half and whole"), "{}", script.prompt());
}

#[test]
fn files_of_both_runs_are_told_in_their_order() {
    let (mut script, item) = running();
    let file = |path: &str| FileChange {
        path: path.into(),
        operation: Operation::Create,
        ..FileChange::default()
    };
    let result = |path| Box::new(ToolResult { files: vec![file(path)], ..ToolResult::default() });
    let answerable = Answerable { approvals: true, questions: true };
    let (reason, first) = ("no".into(), result("first"));
    script.report(Report::ToolStopped { item, reason, result: first, answerable });
    script.settle(approve());
    script.report(Report::ToolEnded { item, end: End::Whole, result: result("second") });
    assert_eq!(completion(&script, item).2.files, [file("first"), file("second")]);
}

#[test]
fn a_denial_tells_the_model_after_what_it_had() {
    for (reply, why) in [
        (DENY, "The user did not allow this. Do not run it; go on with the rest another way."),
        (DENY_AND_END, "The user did not allow this and stopped the turn."),
    ] {
        let (mut script, item) = stopped();
        script.settle(reply);
        let (end, text, result) = completion(&script, item);
        assert_eq!((end, &*text, result.exit_code), (End::Denied, "half", Some(1)));
        assert_eq!(result.seen, Some(format!("half\n{OUTSIDE_TEXT} {why}").into()));
        assert_eq!(leaves(&script).len(), 1, "it ran once");
    }
}

#[test]
fn a_sentence_does_not_say_twice_that_it_was_not_run() {
    let (mut script, item) = stopped();
    script.interrupt();
    let why = NOT_RUN_TEXT.strip_prefix("Not run: ").unwrap();
    let seen = completion(&script, item).2.seen.unwrap();
    assert_eq!(&*seen, format!("half\n{OUTSIDE_TEXT} {why}"));
    let (mut script, item) = stopped();
    script.command(Command::Cancel { target: Target::Wait(script.wait()), by: who() });
    let seen = completion(&script, item).2.seen.unwrap();
    assert_eq!(&*seen, format!("half\n{OUTSIDE_TEXT} the request for it was withdrawn."));
    let (mut script, item) = running();
    script.interrupt().stop_tool(item, true);
    let (end, _, result) = completion(&script, item);
    assert_eq!(end, End::Interrupted);
    assert_eq!(result.seen, Some(format!("half\n{OUTSIDE_TEXT} {why}").into()));
}

#[test]
fn always_counts_for_the_next_such_call_which_runs_outside_at_once() {
    let (mut script, _) = stopped();
    script.settle(WaitReply::ApproveAlways).end_tools();
    script.tool("b").answer(&[inside()]);
    assert_eq!(leaves(&script)[1..], [(false, Leave::Person), (false, Leave::Granted)]);
}

#[test]
fn where_nobody_may_be_asked_the_call_ends_with_what_it_had() {
    let rows = [
        (None, false, Some(1), End::Whole),
        (None, false, None, End::Failed),
        (Some(Mode::Plan), true, Some(1), End::Whole),
        (Some(Mode::DontAsk), true, None, End::Failed),
    ];
    for (mode, answerable, exit_code, want) in rows {
        let (mut script, item) = running();
        if let Some(mode) = mode {
            script.command(Command::SetMode { mode, by: who() });
        }
        let result = ToolResult { exit_code, seen: Some("gist".into()), ..ToolResult::default() };
        let answerable = Answerable { approvals: answerable, questions: true };
        let (reason, result) = ("no".into(), Box::new(result));
        script.report(Report::ToolStopped { item, reason, result: result.clone(), answerable });
        assert_eq!(completion(&script, item), (want, "half".into(), *result), "{mode:?}");
    }
}

#[test]
fn the_mode_in_force_when_it_is_stopped_counts() {
    let (mut script, item) = running();
    script.command(Command::SetMode { mode: Mode::Bypass, by: who() }).stop_tool(item, false);
    let bypass = Leave::Mode { mode: Mode::Bypass };
    assert_eq!(leaves(&script), [(true, BY_MODE), (false, bypass)]);
    let (mut script, item) = running();
    script.command(Command::SetMode { mode: Mode::Suggest, by: who() }).stop_tool(item, true);
    assert!(matches!(
        script.sim.state.turn().unwrap().waits[&script.wait()].ask,
        Ask::Outside { .. }
    ));
}

#[test]
fn only_what_runs_in_the_sandbox_can_be_stopped_by_it() {
    let (mut script, item) = stopped();
    let before = script.last_seq();
    script.stop_tool(item, true);
    assert_eq!(script.since(before), [], "it does not run");
    script.settle(approve());
    let before = script.last_seq();
    script.stop_tool(item, true);
    assert_eq!(script.since(before), [], "it runs outside");
    script.end_tools();
    let before = script.last_seq();
    script.stop_tool(item, true);
    assert_eq!(script.since(before), [], "it is completed");
}

/// The process may die while somebody is asked; the machine may take the journal with it.
#[test]
fn what_the_first_run_showed_outlives_any_crash() {
    for lost in [false, true] {
        let (mut script, item) = stopped();
        let crash = |script: &mut Script| {
            if lost {
                script.sim.lose_journal();
            }
            script.crash();
        };
        crash(&mut script);
        crash(&mut script);
        assert_eq!(script.sim.live, Live::of(&script.sim.state));
        script.settle(WaitReply::Explain).text("because").answer(&[]).settle(approve());
        script.output(item, " and more");
        let mut whole = Script { sim: script.sim };
        crash(&mut whole);
        let (end, text, result) = completion(&whole, item);
        let shown = if lost { "half" } else { "half and more" };
        assert_eq!((end, &*text), (End::Interrupted, shown));
        assert_eq!(result.seen, Some(format!("{shown}\n{CRASHED_TOOL_TEXT}").into()));
    }
}

#[test]
fn leave_that_a_crash_overtook_is_not_used() {
    let (mut script, item) = stopped();
    script.sim.fuse = Some(1);
    let wait = polyloop_session::WaitRef::Presented;
    let command = Command::Settle { wait, reply: approve(), by: who() };
    assert!(script.sim.command(command).is_err(), "the fuse burns down after WaitSettled");
    script.crash();
    let (end, text, result) = completion(&script, item);
    assert_eq!((end, &*text), (End::Interrupted, "half"));
    assert!(result.seen.unwrap().contains(OUTSIDE_TEXT));
    assert_eq!(leaves(&script), [(true, BY_MODE)]);
}

#[test]
fn a_reading_call_that_a_rule_asks_about_holds_those_after_it() {
    let rule = Some(Rule { says: Says::Ask, line: "read *".into() });
    let asked = Judgement { rule, ..judgement(Effect::Read) };
    let mut script = Script::new(Mode::Suggest);
    script.send("go").tool("a").tool("b").tool("c");
    script.answer(&[judgement(Effect::Read), asked, judgement(Effect::Read)]);
    assert_eq!(leaves(&script), [(false, Leave::Reads)], "the one after it waits as well");
    script.settle(approve()).end_tools().end_tools();
    let after = [(false, Leave::Reads), (false, Leave::Person), (false, Leave::Reads)];
    assert_eq!(leaves(&script), after);
}

#[test]
fn a_rule_decides_before_the_mode_and_says_so() {
    let ruled = |says| Judgement { rule: Some(Rule { says, line: "curl *".into() }), ..inside() };
    let mut script = Script::new(Mode::FullAuto);
    script.send("go").tool("a").tool("b").tool("c");
    script.answer(&[ruled(Says::Deny), ruled(Says::Allow), ruled(Says::Ask)]);
    script.end_tools();
    assert_eq!(leaves(&script), [(false, Leave::Rule { line: "curl *".into() })]);
    script.settle(WaitReply::ApproveAlways).end_tools();
    assert_eq!(leaves(&script)[1..], [(false, Leave::Person)]);
    let prompt = script.prompt();
    let denied = "\nerror a: Not run: the rules of this server deny it: curl *\n";
    assert!(prompt.contains(denied), "{prompt}");
    script.tool("d").answer(&[ruled(Says::Ask)]);
    assert!(script.sim.state.turn().unwrap().waits.contains_key(&script.wait()), "asked each time");
}
