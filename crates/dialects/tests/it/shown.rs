//! Nobody is asked about a call in characters that hide, or look like others.

use polyloop_dialects::Dialect;
use polyloop_session::Event;
use polyloop_session::policy::{Effect, Judgement};
use polyloop_session::shown::{is_deceptive, is_hidden, visible};
use polyloop_session::wait::{Answer, Ask, Choice, Question};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::make::{answered, begun, judgement, proposed, started, tool, updates, wait, who};
use super::speaks;
use super::world::{Moment, sent};

/// Texts that try to deceive.
fn nasty() -> impl Strategy<Value = String> {
    let some = "ab u{}5c\\/.;*'\"\n\t\r\u{1b}\u{7f}\u{a0}\u{ad}\u{200b}\u{202e}\u{2066}\u{2028}\
                \u{feff}\u{fe0f}\u{e0041}\u{e000}\u{3164}\u{301}\u{338}аорпё\u{131}ü日一‐“∕；\u{ff41}";
    let some: Vec<char> = some.chars().collect();
    let one = prop_oneof![6 => prop::sample::select(some), 1 => any::<char>()];
    prop::collection::vec(one, 0..30).prop_map(|all| all.into_iter().collect())
}

/// All that is sent when somebody is asked, at once and to who attaches later; and, where nobody
/// is, what says how it was decided.
fn requests(dialect: &dyn Dialect, events: Vec<Event>, answer: Answer) -> Vec<Value> {
    let at = events.len() as u64;
    let settled = Event::WaitSettled { wait: wait(at), answer, by: who() };
    let asked = updates(events.clone());
    let decided = updates(events.into_iter().chain([settled]));
    let before = Moment::after(&asked).attach(dialect, None);
    let all = sent(dialect, &decided);
    let last = all.last().cloned().unwrap_or_default();
    let says = |frame: &Value| frame["type"] == "agent_thinking";
    let later = before.into_iter().filter(|frame| frame.presents.is_some());
    let asking = all[asked.len() - 1].clone().into_iter().chain(later);
    asking.chain(last.into_iter().filter(|frame| says(frame))).map(|frame| frame.json).collect()
}

fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => {
            for (name, field) in fields {
                found.push(name);
                texts(field, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The first text of a frame that holds what it must not.
fn bad(frame: &Value, is_bad: fn(char) -> bool) -> Option<&str> {
    let mut found = Vec::new();
    texts(frame, &mut found);
    // A line's end is one, also in a file that is written with two characters.
    found.into_iter().find(|text| text.replace("\r\n", "\n").chars().any(is_bad))
}

fn asks(name: &str, args: &str, judgement: Judgement, ask: Ask) -> Vec<Event> {
    let mut events = begun();
    let item = events.len() as u64 + 1;
    let opened = Event::WaitOpened { item: super::make::item(item), ask };
    events.extend([started(3, tool(name)), proposed(item, args, judgement), answered(3), opened]);
    events
}

fn approved() -> Answer {
    Answer::Approved { grants: Vec::new(), instead: None, message: None, always: false }
}

proptest! {
    #[test]
    fn a_request_for_approval_holds_nothing_deceptive(
        texts in prop::collection::vec(nasty(), 8),
        stopped in any::<bool>(),
        whole in any::<bool>(),
    ) {
        let [a, b, c, d, e, f, g, h] = <[String; 8]>::try_from(texts).unwrap();
        let patch = format!("*** Begin Patch\n*** Add File: {a}\n+{b}\n*** End Patch");
        let args = json!({"command": c, "patch": patch, d.clone(): [{"content": e}, f.clone()]});
        let args = if whole { args.to_string() } else { format!("{args}{e}") };
        // The judge makes its sentences of visible pieces.
        let judged = Judgement {
            reason: visible(&g).into(),
            covers: visible(&h).into(),
            ..judgement(Effect::Edit, &[&c, &f, &patch], Some(&patch))
        };
        let ask = if stopped { Ask::Outside { reason: g.into() } } else { Ask::Approval };
        for dialect in speaks::all() {
            let frames = requests(*dialect, asks("bash", &args, judged.clone(), ask.clone()), approved());
            prop_assert!(!frames.is_empty(), "{} asks nobody, and tells nothing", dialect.name());
            for frame in &frames {
                prop_assert_eq!(bad(frame, is_deceptive), None, "{}", frame);
            }
        }
    }

    #[test]
    fn a_question_and_a_plan_hold_nothing_hidden(texts in prop::collection::vec(nasty(), 4)) {
        // What joins pictures is honest there.
        let texts: Vec<String> = texts.iter().map(|text| text.replace('\u{fe0f}', "")).collect();
        let [a, b, c, d] = <[String; 4]>::try_from(texts).unwrap();
        let options = vec![Choice { label: a.as_str().into(), description: Some(b.as_str().into()) }];
        let (header, question) = (Some(c.as_str().into()), d.as_str().into());
        let questions = vec![Question { header, question, options, multi: false }];
        let args = json!({ "questions": questions }).to_string();
        let judged = judgement(Effect::Question, &["ask_user"], None);
        let asked = asks("ask_user", &args, judged, Ask::Question { questions });
        let args = json!({ "plan": a }).to_string();
        let plan = Ask::Plan { plan: a.as_str().into(), path: Some(b.as_str().into()) };
        let judged = judgement(Effect::Plan, &["exit_plan_mode"], None);
        let planned = asks("exit_plan_mode", &args, judged, plan);
        for dialect in speaks::all() {
            for events in [asked.clone(), planned.clone()] {
                let frames = requests(*dialect, events, approved());
                prop_assert!(!frames.is_empty(), "{} asks nobody", dialect.name());
                for frame in &frames {
                    prop_assert_eq!(bad(frame, is_hidden), None, "{}", frame);
                }
            }
        }
    }
}
