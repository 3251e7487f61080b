//! One script over several calls: the place in it comes from the prompt alone.

use polyloop_session::history::{EXPLAINED_PREFIX, SUMMARY_PREFIX};
use polyloop_session::state::RESUME_TEXT;
use proptest::prelude::*;

use super::*;

fn assistant(text: &str) -> Message {
    Message::Assistant(vec![text_part(text)])
}

fn shown(answers: &[Answer]) -> Vec<String> {
    answers.iter().map(Answer::shown).collect()
}

#[test]
fn a_script_goes_on_behind_each_call() {
    let script = "think: look\nsay: I look.\nrun: ls\nrun: cat a\n&run: cat b\nsay: All seen.";
    let answers = follow(&mut vec![user(script)], "ok", false);
    let expected = [
        r#"think look, say I look., bash {"command":"ls"}"#,
        r#"bash {"command":"cat a"}, bash {"command":"cat b"}"#,
        "say All seen.",
    ];
    assert_eq!(shown(&answers), expected);
}

#[test]
fn a_denied_or_failed_call_counts_like_any_other() {
    let script = "run: rm x\nrun: ls\nsay: Done with it.";
    let answers = follow(&mut vec![user(script)], "Denied by the user.", true);
    let expected = [r#"bash {"command":"rm x"}"#, r#"bash {"command":"ls"}"#, "say Done with it."];
    assert_eq!(shown(&answers), expected);
}

#[test]
fn a_script_that_ends_with_a_call_gets_a_report() {
    let table = [
        ("hello\nworld\n[exit code 0]", false, "Done: exit code 0. I got: hello"),
        ("Exit code: 2\nOutput:\nno such file", true, "exit code 2. I got: Output:"),
        ("exit code 0", false, "Done: exit code 0. There was no output."),
        ("\n  \n", false, "Done. There was no output."),
        ("blue", false, "Done. I got: blue"),
        ("The user said no.", true, "That did not work. I got: The user said no."),
        ("killed, exit code -9", true, "That did not work: exit code -9."),
        ("exit code of nothing", false, "Done. I got: exit code of nothing"),
    ];
    for (output, is_error, expected) in table {
        let answers = follow(&mut vec![user("run: x")], output, is_error);
        assert_eq!(answers.len(), 2, "{output:?}");
        let said = answers[1].said();
        assert!(said.contains(expected), "{output:?}: {said}");
        assert!(!said.contains('\n'));
    }
    let long = follow(&mut vec![user("run: x")], &"é".repeat(500), false)[1].said();
    assert!(long.len() < 160 && long.ends_with('…'), "{long}");
}

#[test]
fn a_new_message_is_a_new_script() {
    let mut messages = vec![user("run: a\nrun: b\nsay: c")];
    follow(&mut messages, "ok", false);
    messages.push(user("say: new"));
    assert_eq!(shown(&follow(&mut messages, "ok", false)), ["say new"]);
    messages.push(user("run: a"));
    assert_eq!(follow(&mut messages, "ok", false).len(), 2);
}

#[test]
fn a_failure_fires_again_for_the_same_prompt_only() {
    let mut messages = vec![user("run: a\nfail: 500")];
    let answers = follow(&mut messages, "ok", false);
    assert_eq!(answers.len(), 2);
    assert!(matches!(answers[1].end, AnswerEnd::Failed(_)));
    assert_eq!(answer(&messages), answers[1], "asked again, it fails again");
    messages.push(user("say: better"));
    assert_eq!(answer(&messages).shown(), "say better");
}

#[test]
fn plain_talk_is_greeted_and_shown_what_to_try() {
    let chunks = chunks(Purpose::Think, &[user("Hi, what can you do?")]);
    assert!(chunks.len() > 10, "it comes in several chunks");
    let said = assembled(chunks).said();
    assert!(said.starts_with("Hello!"));
    for line in SCRIPT_HELP.lines() {
        assert!(said.contains(line), "{line}");
    }
}

#[test]
fn what_the_session_says_for_the_user_is_no_script() {
    let summary = user(&format!("{SUMMARY_PREFIX}run: rm -r /"));
    let explained = user(&format!("{EXPLAINED_PREFIX}run: rm -r /"));
    let mut messages = vec![summary.clone(), user("run: a\nsay: b")];
    let first = answer(&messages);
    let call_ref = first.calls()[0].0.clone();
    messages.push(Message::Assistant(first.parts));
    messages.push(result(&call_ref, "bash", "ok", false));
    messages.push(explained.clone());
    assert_eq!(answer(&messages).shown(), "say b");
    for alone in [vec![], vec![summary], vec![explained], vec![user(RESUME_TEXT)]] {
        assert!(answer(&alone).said().starts_with("I have no script"));
    }
}

#[test]
fn a_message_in_several_parts_is_one_script() {
    let part = |text: &str| Part::Text { text: text.into() };
    let messages = vec![Message::User(vec![part("say: a"), part("say: b")])];
    assert_eq!(answer(&messages).shown(), "say a, say b");
}

#[test]
fn resuming_goes_on_where_the_script_was() {
    let script = user("run: a\nsay: b\nstream: 4 8 0\nrun: c\nsay: d");
    let mut messages = vec![script.clone(), user(RESUME_TEXT)];
    assert_eq!(answer(&messages).shown(), r#"bash {"command":"a"}"#, "nothing was done yet");

    let first = answer(std::slice::from_ref(&script));
    let interrupted = result(&first.calls()[0].0, "bash", "Interrupted", true);
    messages = vec![script, Message::Assistant(first.parts), interrupted, user(RESUME_TEXT)];
    let stream = "0000000 0000001 0000002 0000003 ";
    let second = format!(r#"say b, say {stream}, bash {{"command":"c"}}"#);
    assert_eq!(answer(&messages).shown(), second, "a call that was stopped is not made again");

    // Stopped inside the stream, twice: what was said whole is not said again.
    let parts = vec![text_part("b"), text_part("0000")];
    messages.push(Message::Assistant(parts));
    messages.push(user(RESUME_TEXT));
    let rest = format!(r#"say {stream}, bash {{"command":"c"}}"#);
    assert_eq!(answer(&messages).shown(), rest);
    messages.push(assistant("0000000 000"));
    messages.push(user(RESUME_TEXT));
    assert_eq!(answer(&messages).shown(), rest);

    let answers = follow(&mut messages, "ok", false);
    assert_eq!(shown(&answers), [rest.as_str(), "say d"]);
    messages.push(user(RESUME_TEXT));
    assert!(answer(&messages).said().contains("nothing of the script is left"));
}

#[test]
fn resuming_a_finished_talk_or_report_says_so() {
    for script in ["hello", "run: x", "say: a\nusage: 1 2"] {
        let mut messages = vec![user(script)];
        follow(&mut messages, "ok", false);
        messages.push(user(RESUME_TEXT));
        assert!(answer(&messages).said().contains("nothing of the script is left"), "{script}");
    }
    let unanswered = answer(&[user("hello"), user(RESUME_TEXT)]);
    assert!(unanswered.said().starts_with("Hello!"), "a crash came before the answer");
}

#[test]
fn call_refs_do_not_come_again_after_a_compaction() {
    let long = answer(&[user("run: a"), assistant("x"), user("run: a")]);
    let after = answer(&[user(&format!("{SUMMARY_PREFIX}x")), assistant("x"), user("run: a")]);
    assert_ne!(long.calls()[0].0, after.calls()[0].0);
    assert!(long.calls()[0].0.starts_with("offline_3_"));
    let again = answer(&[user("run: a"), assistant("x"), user("run: a")]);
    assert_eq!(long, again, "the same prompt gets the same answer");
}

proptest! {
    /// Any script ends, says each of its texts once and in order, and names each call once.
    #[test]
    fn every_script_runs_to_its_end(
        lines in prop::collection::vec("&?(say|run|think|tool): [a-z]{1,5}", 1..10),
        is_error in any::<bool>(),
    ) {
        let mut messages = vec![user(&lines.join("\n"))];
        let answers = follow(&mut messages, "ok", is_error);
        prop_assert!(answers.len() <= lines.len() + 1);
        prop_assert!(answers.last().unwrap().calls().is_empty());
        let calls: Vec<_> = answers.iter().flat_map(Answer::calls).collect();
        let is_call = |line: &&String| line.contains("run:") || line.contains("tool:");
        prop_assert_eq!(calls.len(), lines.iter().filter(is_call).count());
        let mut refs: Vec<_> = calls.iter().map(|(call_ref, ..)| call_ref).collect();
        refs.sort();
        refs.dedup();
        prop_assert_eq!(refs.len(), calls.len());

        let parts = answers.iter().flat_map(|answer| &answer.parts);
        let sent: Vec<String> = parts
            .map(|part| match part {
                AssistantPart::Text { text, .. } => format!("say: {text}"),
                AssistantPart::Reasoning { text, .. } => format!("think: {text}"),
                AssistantPart::ToolCall { name, args, .. } if &**name == "bash" => {
                    let args: serde_json::Value = serde_json::from_str(args).unwrap();
                    format!("run: {}", args["command"].as_str().unwrap())
                }
                AssistantPart::ToolCall { name, .. } => format!("tool: {name}"),
            })
            .collect();
        let wanted: Vec<&str> = lines.iter().map(|line| line.trim_start_matches('&')).collect();
        prop_assert_eq!(&sent[..wanted.len()], &wanted[..]);
        prop_assert!(sent.len() <= wanted.len() + 1);
    }
}
