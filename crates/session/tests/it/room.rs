//! A window that is filling: what is in use, how room is made, and when it is not.

use polyloop_session::budget::{BUDGET_CODE, Budget};
use polyloop_session::context::{Fullness, Overhead, info};
use polyloop_session::event::{Event, Outcome, Purpose};
use polyloop_session::history::prompt;
use polyloop_session::item::{End, Usage};
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::room::{FLOOR_CODE, RESULTS_KEPT, TOO_LARGE_TEXT, TRIMMED_TEXT};
use polyloop_session::summary::SUMMARISED_BYTES_MIN;
use polyloop_session::{Answerable, Command, Report, Seq};

use super::make::{LIMITS, judgement, send};
use super::retries::fault;
use super::script::Script;

const SUMMARY: &str =
    "user: Summary of the conversation so far, written by the assistant and not by the user:\n\n";

/// A text of so many tokens, as the pure crate estimates them.
fn words(tokens: usize) -> String {
    "abc ".repeat(tokens)
}

/// The open call ends well, and its provider says what it took.
fn measured(script: &mut Script, input_tokens: u64, output_tokens: u64) {
    let usage = Some(Usage { input_tokens, output_tokens, ..Usage::default() });
    let (call, answerable) = (script.call(), Answerable::default());
    script.report(Report::Answered { call, usage, proposals: Vec::new(), answerable });
}

fn used(script: &Script) -> u64 {
    info(&script.sim.state, LIMITS.tokens_max, LIMITS.strategy).tokens
}

fn last(script: &Script) -> Event {
    script.since(Seq::NONE).pop().unwrap()
}

/// A tool call whose result has so many tokens.
fn step(script: &mut Script, name: &str, tokens: usize) {
    script.tool(name).answer(&[judgement(Effect::Read)]);
    let item = script.tools()[0];
    script.output(item, &words(tokens)).end_tool(item, End::Whole, None);
}

#[test]
fn the_providers_count_is_the_truth_and_what_came_after_it_is_added() {
    let mut script = Script::new(Mode::Bypass);
    script.sim.limits.overhead = Overhead { instructions: 30, tools: 20 };
    script.send("one").text(&words(10));
    assert_eq!(used(&script), 2 + 50, "nothing was measured: counts, and what all prompts have");
    measured(&mut script, 400, 100);
    assert_eq!(used(&script), 500);
    script.send("two");
    assert_eq!(used(&script), 502);
    step(&mut script, "a", 100);
    assert!((600..610).contains(&used(&script)), "{}", used(&script));
    let spent = script.sim.state.spent();
    assert_eq!((spent.input_tokens, spent.output_tokens), (400, 100));
}

#[test]
fn old_outputs_give_way_to_a_stub_first() {
    let mut script = Script::new(Mode::Bypass);
    script.send("one");
    for name in ["a", "b", "c"] {
        step(&mut script, name, 200);
    }
    for name in ["d", "e", "f"] {
        step(&mut script, name, 70);
    }
    // Six results, of which the newest stay.
    let told = script.prompt();
    let stubs = told.matches(TRIMMED_TEXT).count();
    assert_eq!((stubs, told.matches("result").count()), (6 - RESULTS_KEPT, 6), "{told}");
    assert!(told.contains(&format!("result a: {TRIMMED_TEXT}")), "{told}");
    let Some((before, after)) = script.since(Seq::NONE).iter().find_map(|event| match event {
        Event::Trimmed { tokens_before, tokens_after, .. } => Some((*tokens_before, *tokens_after)),
        _ => None,
    }) else {
        panic!("trimmed")
    };
    assert!(after < before && before > 800, "{after} of {before}");
    assert_eq!(script.sim.tally.get("made room early"), None, "no summary is asked for");
}

#[test]
fn the_newest_steps_stay_where_a_turn_is_summarised() {
    let mut script = Script::new(Mode::Bypass);
    script.send("one");
    for name in ["a", "b", "c", "d", "e"] {
        script.text(&words(150));
        step(&mut script, name, 20);
    }
    let told = script.prompt();
    assert!(told.starts_with("user: one\nassistant: abc"), "a summary is asked for: {told}");
    assert!(!told.contains("call e"), "what stays is not told");
    script.text("they looked").answer(&[]);
    let told = script.prompt();
    let want = format!("{SUMMARY}they looked\nuser: one\nassistant: abc ");
    assert!(told.starts_with(&want), "{told}");
    assert!(told.contains("call e{e}\nresult e: abc"), "{told}");
    assert!(!told.contains("call a"), "{told}");
}

#[test]
fn the_newest_exchanges_stay_before_a_turn() {
    let mut script = Script::new(Mode::Bypass);
    for number in 0..8 {
        script.send(&format!("say {number}")).text(&words(100)).answer(&[]);
    }
    script.send("now");
    let told = script.prompt();
    assert!(told.starts_with("user: say 0") && !told.contains("say 7"), "{told}");
    script.text("much was said").answer(&[]);
    let told = script.prompt();
    assert!(told.starts_with(&format!("{SUMMARY}much was said\nuser: say 7\n")), "{told}");
    assert!(told.ends_with("user: now"), "{told}");
}

/// A window over its limit, with a summary asked for.
fn filling() -> Script {
    let mut script = Script::new(Mode::Bypass);
    script.send("one").text(&words(300)).answer(&[]).send("two").text(&words(300));
    measured(&mut script, 850, 10);
    script.send("three");
    script
}

#[test]
fn a_summary_that_fails_stops_nothing_and_is_not_tried_again_at_once() {
    let mut script = filling();
    script.fail();
    assert!(script.prompt().ends_with("user: three"), "the call is made: {}", script.prompt());
    measured(&mut script, 870, 5);
    script.send("four");
    assert!(script.prompt().ends_with("user: four"), "{}", script.prompt());
    measured(&mut script, 980, 10);
    script.send("five");
    // A tenth of the window came on top.
    script.text("so far").answer(&[]);
    assert!(script.prompt().starts_with(&format!("{SUMMARY}so far")), "{}", script.prompt());
}

#[test]
fn a_summary_without_gain_is_told_and_the_work_goes_on() {
    let mut script = filling();
    script.text(&words(900)).answer(&[]);
    assert!(script.prompt().ends_with("user: three"));
    let told = script.since(Seq::NONE).into_iter().rev().find_map(|event| match event {
        Event::Noticed { text, code, .. } => Some((text, code)),
        _ => None,
    });
    let (text, code) = told.unwrap();
    assert_eq!(&*code, FLOOR_CODE);
    assert!(text.contains("no gain") && text.contains("the earlier conversation 6"), "{text}");
}

#[test]
fn a_floor_that_does_not_fit_names_what_fills_the_window() {
    let mut script = Script::new(Mode::Bypass);
    script.sim.limits.overhead = Overhead { instructions: 700, tools: 290 };
    let Command::Send(mut long) = send("a question") else { panic!("a message") };
    long.tokens = 40;
    script.command(Command::Send(long));
    let told = fault(&script);
    assert_eq!(&*told.code, FLOOR_CODE);
    for part in ["1030 of the 1000", "instructions 700", "tools 290", "newest message 40"] {
        assert!(told.message.contains(part), "{part}: {told:?}");
    }
    assert_eq!(script.sim.tally.get("call_started"), None, "no model is asked");
    script.sim.limits.overhead = Overhead::default();
    script.send("again");
    assert!(!script.prompt().contains("a question"), "it was left out: {}", script.prompt());
}

#[test]
fn an_output_that_no_window_holds_gives_way() {
    let mut script = Script::new(Mode::Bypass);
    script.send("one");
    step(&mut script, "a", 1_200);
    assert!(script.prompt().ends_with(&format!("result a: {TOO_LARGE_TEXT}")));
}

#[test]
fn open_todos_stand_behind_the_summary() {
    let mut script = Script::new(Mode::Bypass);
    let args = r#"{"todos":[{"content":"paint"},{"content":"buy","status":"completed"}]}"#;
    script.send("one").asks("todo_write", args).answer(&[judgement(Effect::Read)]).end_tools();
    script.text(&words(300)).answer(&[]).send("two").text(&words(600)).answer(&[]).send("three");
    script.text("they planned").answer(&[]);
    let want = format!("{SUMMARY}they planned\n\nOpen todos:\n- paint\n");
    assert!(script.prompt().starts_with(&want), "{}", script.prompt());
}

#[test]
fn a_budget_is_checked_before_each_call() {
    let mut script = Script::new(Mode::Bypass);
    script.sim.limits.budget = Budget { tokens_max: Some(100), ..Budget::default() };
    script.send("one").text("fine");
    measured(&mut script, 99, 1);
    script.send("two");
    assert_eq!(&*fault(&script).code, BUDGET_CODE);
    script.compact();
    assert_eq!(&*fault(&script).code, BUDGET_CODE);
    script.sim.limits.budget = Budget::default();
    script.send("three").text("on").answer(&[]);
    assert!(matches!(last(&script), Event::TurnEnded { outcome: Outcome::Completed, .. }));
}

/// A manual compaction of a conversation that is larger than the window: its prompt is not.
#[test]
fn the_prompt_for_a_summary_fits_the_window_itself() {
    let mut script = Script::new(Mode::Bypass);
    script.sim.limits.strategy = polyloop_session::context::Strategy::Dummy;
    for number in 0..60 {
        script.send(&format!("say {number}")).text(&words(500)).answer(&[]);
    }
    let before = script.sim.state.clone();
    let mut state = before.clone();
    let events =
        polyloop_session::decide(&before, Command::Compact { by: super::make::who() }, &LIMITS);
    for event in events.unwrap().into_iter().chain([Event::CallStarted {
        purpose: Purpose::Summarise,
        model: "m".into(),
        tokens_max: LIMITS.tokens_max,
        overhead_tokens: None,
        line: None,
    }]) {
        let (seq, at) = (state.last_seq().next(), Default::default());
        state.apply(&polyloop_session::LogEntry { seq, at, event });
    }
    let call = *state.turn().unwrap().calls.keys().next().unwrap();
    let told = prompt(&state, call, &LIMITS).unwrap();
    let bytes = format!("{:?}", told.messages).len();
    assert!(bytes < 2 * SUMMARISED_BYTES_MIN, "{bytes} bytes");
    super::story::provider_accepts(&told.messages[..told.messages.len() - 1]).unwrap();
    let told = format!("{:?}", told.messages);
    assert!(told.contains("say 0") && told.contains("say 59") && told.contains("left out"));
}

#[test]
fn the_levels_are_those_of_the_documents() {
    use Fullness::{Critical, High, Medium, Normal};
    let rows = [(0, Normal), (799, Normal), (800, Medium), (899, Medium), (900, High)];
    for (tokens, want) in rows.into_iter().chain([(949, High), (950, Critical), (2_000, Critical)])
    {
        assert_eq!(Fullness::of(tokens, 1_000), want, "{tokens}");
    }
    assert_eq!(Fullness::of(7, 0), Normal);
    assert_eq!(Fullness::of(u64::MAX, u64::MAX), Critical);
}
