//! Explanations and summaries.

use polyloop_session::history::{EXPLAINED_PREFIX, SUMMARISE_TEXT, SUMMARY_PREFIX};
use polyloop_session::state::RESUME_TEXT;
use polyloop_session::{Seq, WaitId};

use super::*;

fn explain(command: &str) -> String {
    let asked = format!("Before I decide: explain what this would do.\n\n{command}");
    let messages = [user("run: something else"), user(&asked)];
    let answer = assembled(chunks(Purpose::Explain { wait: WaitId(Seq(1)) }, &messages));
    assert_eq!(answer.end, AnswerEnd::Done);
    assert!(answer.calls().is_empty());
    answer.said()
}

fn summarise(messages: &[Message]) -> String {
    let mut messages = messages.to_vec();
    messages.push(user(SUMMARISE_TEXT));
    let answer = assembled(chunks(Purpose::Summarise, &messages));
    assert_eq!((answer.end, answer.parts.len()), (AnswerEnd::Done, 1));
    let AssistantPart::Text { text, .. } = &answer.parts[0] else { panic!("no text") };
    text.to_string()
}

/// What the session makes of a compaction that keeps nothing else.
fn compacted(messages: &[Message]) -> Vec<Message> {
    vec![user(&format!("{SUMMARY_PREFIX}{}", summarise(messages)))]
}

#[test]
fn an_explanation_names_the_program_and_its_arguments() {
    let table = [
        ("git status", vec!["`git status`", "program `git`", "`status`"]),
        ("ls", vec!["`ls`", "without arguments"]),
        ("bash -lc cd a && rm -r b", vec!["`cd a && rm -r b`", "the shell", "`cd`"]),
        (
            "apply_patch *** Begin Patch\n*** Update File: a.txt\n\n*** Add File: b.txt\n",
            vec!["patch", "`a.txt`, `b.txt`"],
        ),
        ("exit_plan_mode", vec!["plan"]),
        ("echo `id`", vec!["`` echo `id` ``"]),
        ("", vec!["no command"]),
    ];
    for (command, words) in table {
        let said = explain(command);
        for word in words {
            assert!(said.contains(word), "{command}: {said} lacks {word}");
        }
    }
    let long = explain(&format!("echo {}", "é".repeat(10_000)));
    assert!(long.len() < 1_000);
}

#[test]
fn a_summary_tells_what_was_asked_and_done_and_is_short() {
    let mut messages = Vec::new();
    for script in ["run: ls -l\nrun: pwd", "Tell me a story", "say: x", "ask: Why? | a | b"] {
        messages.push(user(script));
        follow(&mut messages, "some output\nin lines", false);
    }
    messages.push(user(&format!("{EXPLAINED_PREFIX}it is harmless")));
    let said = summarise(&messages);
    let words = [
        "The user asked: run: ls -l…; Tell me a story; say: x (and 1 more).",
        "Tools used: ask_user ×1, bash ×2.",
        "Last result: some output….",
    ];
    for word in words {
        assert!(said.contains(word), "{said} lacks {word}");
    }
    assert!(!said.contains("harmless") && !said.contains(SUMMARISE_TEXT));
    assert!(said.len() <= 400);
    assert_eq!(said, summarise(&messages), "the same again");
}

#[test]
fn a_summary_has_at_most_a_third_of_the_conversation() {
    for rounds in 1..40 {
        let mut messages = Vec::new();
        for round in 0..rounds {
            messages.push(user(&format!("run: echo {round} {}", "é".repeat(round))));
            follow(&mut messages, "short", false);
        }
        let whole = super::super::summary::bytes(&messages);
        let said = summarise(&messages);
        assert!(said.len() <= (whole / 3).clamp(16, 400), "{} of {whole}: {said}", said.len());
        assert!(!said.is_empty());
    }
    let none = summarise(&[]);
    assert_eq!(none, "Little was said.");
}

#[test]
fn a_summary_of_a_summary_keeps_its_beginning() {
    let mut messages = vec![user("run: make the bread")];
    follow(&mut messages, &"flour ".repeat(100), false);
    let mut messages = compacted(&messages);
    messages.push(user("say: something new"));
    follow(&mut messages, "ok", false);
    messages.push(user("Tell me of it"));
    follow(&mut messages, "ok", false);
    let said = summarise(&messages);
    assert!(said.contains("something new; Tell me of it"), "{said}");
    assert!(said.contains("Before that: The user asked: run: make the bread"), "{said}");
}

#[test]
fn a_script_goes_on_from_the_summary_alone() {
    let script = "run: a\nand then\nrun: b\n&run: c\nsay: end";
    let mut messages = vec![user(script)];
    let first = answer(&messages);
    messages.push(Message::Assistant(first.parts.clone()));
    messages.push(result(&first.calls()[0].0, "bash", &"word ".repeat(200), false));
    let whole: Vec<String> =
        follow(&mut messages.clone(), "x", false).iter().map(Answer::shown).collect();
    assert_eq!(whole.len(), 2);

    let mut folded = compacted(&messages);
    let after = follow(&mut folded.clone(), "x", false);
    assert_eq!(after.iter().map(Answer::shown).collect::<Vec<_>>(), whole);
    folded.push(user(RESUME_TEXT));
    assert_eq!(answer(&folded).shown(), whole[0], "also when it was interrupted");

    // Folded once more in the middle, the rest of the rest is kept.
    let mut folded = compacted(&messages);
    let next = answer(&folded);
    folded.push(Message::Assistant(next.parts.clone()));
    for (call_ref, name, _) in next.calls() {
        folded.push(result(&call_ref, &name, &"word ".repeat(200), false));
    }
    assert_eq!(answer(&compacted(&folded)).shown(), "say end");
}

#[test]
fn a_script_that_is_finished_leaves_nothing_in_the_summary() {
    for script in ["run: a\nsay: b\nusage: 1 2", "run: a", "hello"] {
        let mut messages = vec![user(script)];
        follow(&mut messages, &"word ".repeat(200), false);
        assert!(!summarise(&messages).contains("Left of the script"), "{script}");
    }
}
