//! A conversation that does not fit the model's window: a summary makes room, once in a turn.

use polyloop_session::context::Strategy;
use polyloop_session::event::{Event, Outcome, Purpose, RunOptions};
use polyloop_session::history::{SUMMARISE_TEXT, prompt};
use polyloop_session::item::{End, Fault};
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::retry::TOO_LONG_CODE;
use polyloop_session::state::LEFT_OUT_TEXT;
use polyloop_session::summary::SUMMARISED_OUTPUT_BYTES_MAX;
use polyloop_session::{Command, Heal, Seq};

use super::make::{LIMITS, created, judgement, send};
use super::retries::fault;
use super::script::Script;

const FAULT: &str = "The conversation is too long for m (400).";
const ADVICE: &str = "The conversation is too long for m (400). This message was left out of the \
    conversation: send a shorter one, or choose a model with a larger window";
const SUMMARY: &str =
    "user: Summary of the conversation so far, written by the assistant and not by the user:\n\n";

fn long() -> String {
    "long ".repeat(80)
}

/// A turn whose call does not fit after a long conversation.
fn full() -> Script {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").text(&long()).answer(&[]).send("two");
    too_long(&mut script);
    script
}

fn too_long(script: &mut Script) {
    script.fails(Heal::Shorter, TOO_LONG_CODE, FAULT);
}

fn purposes(script: &Script) -> Vec<Purpose> {
    let calls = script.since(Seq::NONE).into_iter().filter_map(|event| match event {
        Event::CallStarted { purpose, .. } => Some(purpose),
        _ => None,
    });
    calls.collect()
}

fn compacted(script: &Script) -> Vec<(Seq, u64, u64)> {
    let found = script.since(Seq::NONE).into_iter().filter_map(|event| match event {
        Event::Compacted { upto, tokens_before, tokens_after, .. } => {
            Some((upto, tokens_before, tokens_after))
        }
        _ => None,
    });
    found.collect()
}

#[test]
fn what_came_before_is_summarised_and_the_call_made_again() {
    let mut script = full();
    let notice = script.since(Seq::NONE).into_iter().find_map(|event| match event {
        Event::Noticed { text, code, .. } => Some(format!("{code}: {text}")),
        _ => None,
    });
    let want = "compacting: The conversation is too long for m (400); summarising it to make room";
    assert_eq!(notice.unwrap(), want);
    let asked = format!("user: one\nassistant: {}\nuser: {SUMMARISE_TEXT}", long());
    assert_eq!(script.prompt(), asked, "what stays is not told");
    script.text("a talk").answer(&[]);
    assert_eq!(script.prompt(), format!("{SUMMARY}a talk\nuser: two"));
    script.text("an answer").answer(&[]);
    use Purpose::{Summarise, Think};
    assert_eq!(purposes(&script), [Think, Think, Summarise, Think]);
    let [(_, before, after)] = compacted(&script)[..] else { panic!("compacted once") };
    assert!(after < before, "{after} of {before}");
    let last = script.since(Seq::NONE).pop();
    assert!(matches!(last, Some(Event::TurnEnded { outcome: Outcome::Completed, .. })));
    script.send("three");
    let want = format!("{SUMMARY}a talk\nuser: two\nassistant: an answer\nuser: three");
    assert_eq!(script.prompt(), want);
}

/// What came between the two would be told by nobody.
#[test]
fn an_earlier_summary_never_stands_for_a_later_one_that_says_nothing() {
    let mut script = full();
    script.text("a talk").answer(&[]);
    script.text(&long()).tool("a").answer(&[judgement(Effect::Read)]);
    let tool = script.tools()[0];
    script.end_tool(tool, End::Whole, Some("a fact"));
    too_long(&mut script);
    assert_eq!(purposes(&script).last(), Some(&Purpose::Summarise));
    script.answer(&[]);
    assert_eq!(compacted(&script).len(), 1);
    let told = script
        .since(Seq::NONE)
        .into_iter()
        .any(|event| matches!(event, Event::TurnEnded { outcome: Outcome::Failed { .. }, .. }));
    assert!(told, "the turn fails");
}

#[test]
fn what_does_not_fit_even_then_fails_with_advice() {
    let mut script = full();
    script.text("a talk").answer(&[]);
    too_long(&mut script);
    assert_eq!(fault(&script), Fault::new(TOO_LONG_CODE, ADVICE));
    assert_eq!(compacted(&script).len(), 1);
    // A later turn may try again.
    script.send("three");
    too_long(&mut script);
    assert_eq!(purposes(&script).last(), Some(&Purpose::Summarise));
}

#[test]
fn a_summary_that_gains_nothing_fails_the_turn_with_advice() {
    let ends: [fn(&mut Script); 3] = [
        |script| {
            script.answer(&[]);
        },
        |script| {
            script.text(&"longer ".repeat(200)).answer(&[]);
        },
        |script| {
            script.tool("a").answer(&[judgement(Effect::Read)]);
        },
    ];
    for (at, end) in ends.into_iter().enumerate() {
        let mut script = full();
        end(&mut script);
        assert_eq!(fault(&script), Fault::new(TOO_LONG_CODE, ADVICE), "case {at}");
        assert_eq!(compacted(&script), [], "case {at}");
        script.send("three");
        let told = script.prompt();
        assert!(told.ends_with(&format!("user: {LEFT_OUT_TEXT}\nuser: three")), "{told}");
        assert!(told.starts_with("user: one\nassistant: long"), "{told}");
    }
}

#[test]
fn a_summary_that_fails_for_another_reason_leaves_the_conversation_as_it_was() {
    let mut script = full();
    let before = script.sim.state.line().clone();
    script.fail();
    let told = fault(&script);
    assert!(told.message.contains("and no summary could be had"), "{told:?}");
    assert_ne!(&*told.code, TOO_LONG_CODE);
    assert_eq!(*script.sim.state.line(), before);
    assert_eq!(compacted(&script), []);
}

/// Otherwise the session could never be used again.
#[test]
fn a_conversation_too_long_for_a_summary_goes_without_one() {
    let mut script = full();
    script.fails(Heal::Shorter, TOO_LONG_CODE, "Also too long.");
    let notice = script.since(Seq::NONE).into_iter().rev().find_map(|event| match event {
        Event::Noticed { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(&*notice.unwrap(), "Also too long; the earlier conversation is left out");
    assert_eq!(script.prompt(), format!("{SUMMARY}{LEFT_OUT_TEXT}\nuser: two"));
    script.text("an answer").answer(&[]);
    let last = script.since(Seq::NONE).pop();
    assert!(matches!(last, Some(Event::TurnEnded { outcome: Outcome::Completed, .. })), "{last:?}");
}

/// A message that no window holds takes nothing with it: what was said before it stays.
#[test]
fn a_message_too_long_for_a_summary_is_left_out_alone() {
    let mut script = Script::new(Mode::Suggest);
    script.sim.limits.strategy = Strategy::Dummy;
    script.send("one").text("short").answer(&[]);
    let Command::Send(mut huge) = send(&long()) else { panic!("a message") };
    huge.tokens = 1_000;
    script.command(Command::Send(huge));
    too_long(&mut script);
    assert!(script.prompt().contains("long long"), "only a summary of it could make room");
    too_long(&mut script);
    assert_eq!(fault(&script), Fault::new(TOO_LONG_CODE, ADVICE));
    assert_eq!(compacted(&script), []);
    script.send("two");
    let want = format!("user: one\nassistant: short\nuser: {LEFT_OUT_TEXT}\nuser: two");
    assert_eq!(script.prompt(), want);
}

/// A first message that no window holds must not stay in the way of the next.
#[test]
fn a_message_that_does_not_fit_is_left_out() {
    let mut script = Script::new(Mode::Suggest);
    script.send(&long());
    too_long(&mut script);
    assert_eq!(&*fault(&script).code, TOO_LONG_CODE);
    script.send("short");
    assert!(!script.prompt().contains("long long"), "{}", script.prompt());
}

#[test]
fn a_summary_is_retried_like_any_call_and_with_its_own_count() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").text(&long()).answer(&[]).send("two");
    let later = Heal::Later { after_ms: None };
    script.fails(later, "overloaded", "Busy").fails(later, "overloaded", "Busy");
    too_long(&mut script);
    script.fails(later, "overloaded", "Busy");
    let notice = script.since(Seq::NONE).into_iter().rev().find_map(|event| match event {
        Event::Noticed { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(&*notice.unwrap(), "Busy; retrying in 1.2 s (1/4)");
    script.text("a talk").answer(&[]);
    assert_eq!(script.prompt(), format!("{SUMMARY}a talk\nuser: two"));
}

#[test]
fn the_summary_is_no_call_of_the_turns_own() {
    let mut script = Script::after(vec![created(Mode::Suggest, 1)]);
    script.send("one").text(&long()).answer(&[]).send("two");
    too_long(&mut script);
    script.text("a talk").answer(&[]).text("an answer").answer(&[]);
    let last = script.since(Seq::NONE).pop();
    assert!(matches!(last, Some(Event::TurnEnded { outcome: Outcome::Completed, .. })), "{last:?}");
}

/// A turn that is itself most of the conversation is folded with what came before it.
#[test]
fn a_turn_that_fills_the_window_itself_is_folded_whole() {
    let mut script = Script::new(Mode::Bypass);
    script.send("one").text("short").answer(&[]).send("two").tool("a");
    script.answer(&[judgement(Effect::Read)]);
    let a = script.tools()[0];
    script.output(a, &long()).end_tool(a, End::Whole, None);
    too_long(&mut script);
    let asked = script.prompt();
    assert!(asked.contains("user: two\nassistant: call a{a}\nresult a: long"), "{asked}");
    script.text("all so far").answer(&[]);
    // What was asked for stays as it was said.
    assert_eq!(script.prompt(), format!("{SUMMARY}all so far\nuser: two"));
    script.text("done").answer(&[]).send("three");
    let want = format!("{SUMMARY}all so far\nuser: two\nassistant: done\nuser: three");
    assert_eq!(script.prompt(), want);
}

#[test]
fn what_the_turn_did_stays_with_its_message_where_it_fits() {
    let mut script = Script::new(Mode::Bypass);
    script.send("one").text(&long()).answer(&[]).send("two").text("I look").tool("a");
    script.answer(&[judgement(Effect::Read)]).end_tools();
    too_long(&mut script);
    script.text("a talk").answer(&[]);
    let want = "user: two\nassistant: I look + call a{a}\nresult a: a done";
    assert_eq!(script.prompt(), format!("{SUMMARY}a talk\n{want}"));
}

#[test]
fn a_long_output_is_told_to_the_summary_by_its_ends() {
    let mut script = Script::new(Mode::Bypass);
    script.sim.limits.strategy = Strategy::Dummy;
    script.send("one").tool("a").tool("b");
    script.answer(&[judgement(Effect::Read), judgement(Effect::Read)]);
    let [a, b] = script.tools()[..] else { panic!("both run") };
    let whole = format!("begin{}end", "é".repeat(SUMMARISED_OUTPUT_BYTES_MAX));
    script.output(a, &whole).end_tool(a, End::Whole, None);
    let fits = "x".repeat(SUMMARISED_OUTPUT_BYTES_MAX);
    script.output(b, &fits).end_tool(b, End::Whole, None);
    too_long(&mut script);
    let asked = script.prompt();
    let result = asked.split("result a: ").nth(1).unwrap().split("\nresult b: ").next().unwrap();
    assert!(result.starts_with("beginé") && result.ends_with("éend"), "{result}");
    let left_out = whole.len() - result.matches('é').count() * 2 - "beginend".len();
    assert!(result.contains(&format!("\n[… {left_out} bytes left out …]\n")), "{result}");
    assert!(result.len() < SUMMARISED_OUTPUT_BYTES_MAX + 100);
    assert!(asked.contains(&format!("result b: {fits}\n")), "what fits is told whole");
}

#[test]
fn an_interrupt_during_the_summary_leaves_the_conversation_as_it_was() {
    let mut script = full();
    let before = script.sim.state.line().clone();
    script.text("a ta").interrupt().stopped();
    assert!(script.sim.state.turn().is_none());
    assert_eq!(*script.sim.state.line(), before);
    // The summary may be done when the interrupt comes.
    let mut script = full();
    script.text("a talk").interrupt().answer(&[]);
    assert_eq!(compacted(&script), []);
    assert!(matches!(
        script.since(Seq::NONE).pop(),
        Some(Event::TurnEnded { outcome: Outcome::Interrupted { .. }, .. })
    ));
}

#[test]
fn a_crash_at_any_entry_of_it_leaves_work_to_resume() {
    let mut entries = 0;
    loop {
        let mut script = Script::new(Mode::Suggest);
        script.send("one").text(&long()).answer(&[]).send("two");
        script.sim.fuse = Some(entries);
        let played = overflow(&mut script);
        script.sim.fuse = None;
        if played.is_ok() {
            assert!(entries > 10, "only {entries} entries were tried");
            return;
        }
        script.crash().resume();
        let open = script.call();
        let told = prompt(&script.sim.state, open, &LIMITS).expect("it goes on");
        assert_eq!(told.purpose, Purpose::Think);
        too_long(&mut script);
        script.text("a talk").answer(&[]);
        assert!(script.prompt().starts_with(SUMMARY));
        entries += 1;
    }
}

/// As `full` and on, but a crash may end it.
fn overflow(script: &mut Script) -> Result<(), ()> {
    use polyloop_session::item::ItemKind;
    use polyloop_session::{Answerable, Chance, Report, Step, Stream};
    fn open(script: &Script) -> Option<polyloop_session::CallId> {
        script.sim.running.iter().rev().find_map(|step| match step {
            Step::Ask(call) => Some(*call),
            _ => None,
        })
    }
    let (heal, chance, fault) = (Heal::Shorter, Chance(0), Fault::new(TOO_LONG_CODE, FAULT));
    let call = open(script).ok_or(())?;
    let report = Report::CallFailed { call, fault, heal, chance, usage: None };
    script.sim.report(report).map_err(|_| ())?;
    for text in ["a talk", "an answer"] {
        let call = open(script).ok_or(())?;
        let (block, kind) = (0, ItemKind::Text);
        script.sim.report(Report::BlockStarted { call, block, kind }).map_err(|_| ())?;
        let item = polyloop_session::ItemId(script.last_seq());
        script.sim.grow(item, Stream::Text, text, 0);
        let (usage, proposals, answerable) = (None, Vec::new(), Answerable::default());
        let report = Report::Answered { call, usage, proposals, answerable };
        script.sim.report(report).map_err(|_| ())?;
    }
    Ok(())
}

/// Also where a run brought its own limit.
#[test]
fn a_run_of_one_call_may_be_summarised() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").text(&long()).answer(&[]);
    let Command::Send(mut two) = send("two") else { panic!("a message") };
    two.run = Some(Box::new(RunOptions { calls_max: Some(1), ..RunOptions::default() }));
    script.command(Command::Send(two));
    too_long(&mut script);
    script.text("a talk").answer(&[]).tool("a").answer(&[judgement(Effect::Read)]).end_tools();
    assert_eq!(&*fault(&script).code, "max_turns");
    assert_eq!(LIMITS.retries_max, 4, "the texts above say so");
}

/// What stands for a turn that did not fit comes after the summary that was made in it.
#[test]
fn what_is_left_out_can_be_summarised_in_its_order() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one");
    too_long(&mut script);
    // There is nothing that a summary could tell of.
    assert_eq!(purposes(&script), [Purpose::Think]);
    assert_eq!(&*fault(&script).code, TOO_LONG_CODE);
    script.send("two");
    too_long(&mut script);
    let want = format!("user: {LEFT_OUT_TEXT}\nuser: {SUMMARISE_TEXT}");
    assert_eq!(script.prompt(), want);
    script.text("t").answer(&[]);
    assert_eq!(script.prompt(), format!("{SUMMARY}t\nuser: two"));
}

/// A long turn may fill the window more than once; each time it goes on with what it is about.
#[test]
fn room_is_made_again_once_the_model_has_answered() {
    let mut script = Script::new(Mode::Bypass);
    script.send("one").text(&long()).answer(&[]).send("two");
    for round in 0..3 {
        too_long(&mut script);
        assert_eq!(purposes(&script).last(), Some(&Purpose::Summarise), "round {round}");
        script.text("so far").answer(&[]);
        assert_eq!(script.prompt(), format!("{SUMMARY}so far\nuser: two"), "round {round}");
        script.tool("a").answer(&[judgement(Effect::Read)]);
        let a = script.tools()[0];
        script.output(a, &long()).end_tool(a, End::Whole, None);
    }
    // Twice in a row gains nothing; what was done stays in the conversation.
    too_long(&mut script);
    script.text("so far").answer(&[]);
    too_long(&mut script);
    let told = fault(&script);
    assert!(told.message.contains("what was done stands"), "{told:?}");
    script.send("three");
    assert_eq!(script.prompt(), format!("{SUMMARY}so far\nuser: two\nuser: three"));
}

/// A message that the provider refuses would be refused with every later call.
#[test]
fn a_message_that_is_refused_is_left_out_unless_something_came_of_it() {
    for code in ["invalid_request", "refused"] {
        let mut script = Script::new(Mode::Bypass);
        script.send("one").fails(Heal::Never, code, "Not this.");
        let want = "Not this. This message was left out of the conversation: send another";
        assert_eq!(fault(&script), Fault::new(code, want));
        script.send("two");
        assert_eq!(script.prompt(), format!("user: {LEFT_OUT_TEXT}\nuser: two"));
        script.tool("a").answer(&[judgement(Effect::Read)]).end_tools();
        script.fails(Heal::Never, code, "Not this.");
        assert_eq!(fault(&script), Fault::new(code, "Not this."));
        script.send("three");
        assert!(script.prompt().contains("result a: a done\nuser: three"), "{}", script.prompt());
    }
}
