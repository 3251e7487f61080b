//! What a script's lines mean, as a table: a script beside its replies.

use proptest::prelude::*;

use super::super::script::*;

/// One line a reply, its steps joined by ` + `.
fn shown(script: &str) -> String {
    let Some(lines) = parse(script) else { return "talk".to_owned() };
    let replies = replies(lines);
    let shown = replies
        .iter()
        .map(|reply| reply.iter().map(|line| step(&line.step)).collect::<Vec<_>>().join(" + "));
    shown.collect::<Vec<_>>().join("\n")
}

fn step(step: &Step) -> String {
    match step {
        Step::Think(text) => format!("think {text:?}"),
        Step::Say(text) => format!("say {text:?}"),
        Step::Stream(Numbers { chunks, chunk_bytes, delay }) => {
            format!("stream {chunks}x{chunk_bytes}@{}", delay.as_millis())
        }
        Step::Call { name, args } => format!("{name}{args}"),
        Step::Usage { input_tokens, output_tokens } => {
            format!("usage {input_tokens} {output_tokens}")
        }
        Step::Fail(failure) => format!("fail {failure:?}"),
        Step::Cut => "cut".to_owned(),
    }
}

#[test]
fn steps_mean_what_the_table_says() {
    let table = [
        // Plain talk.
        ("", "talk"),
        ("  \n\t\n", "talk"),
        ("hello", "talk"),
        ("Can you run: ls", "talk"),
        ("https://example.org says: no", "talk"),
        ("runs: ls", "talk"),
        ("run ls", "talk"),
        // Each word.
        ("think: why", r#"think "why""#),
        ("say: hi: there", r#"say "hi: there""#),
        ("say:", r#"say """#),
        ("run: ls -l", r#"bash{"command":"ls -l"}"#),
        (r#"run: echo "a b""#, r#"bash{"command":"echo \"a b\""}"#),
        ("run:", r#"bash{"command":""}"#),
        (r#"tool: ls {"path": "."}"#, r#"ls{"path": "."}"#),
        ("tool: todo_read", "todo_read{}"),
        ("tool: ls not json", "lsnot json"),
        (
            "ask: Which? | red | blue",
            concat!(
                r#"ask_user{"questions":[{"header":"Question","question":"Which?","options":["#,
                r#"{"label":"red","description":""},{"label":"blue","description":""}],"#,
                r#""multiSelect":false}]}"#
            ),
        ),
        (
            "ask: Why?",
            concat!(
                r#"ask_user{"questions":[{"header":"Question","question":"Why?","options":[],"#,
                r#""multiSelect":false}]}"#
            ),
        ),
        (r"plan: # A\n- b", r##"exit_plan_mode{"plan":"# A\n- b"}"##),
        ("stream: 3 10 5", "stream 3x10@5"),
        ("stream: 3 10", "stream 3x10@0"),
        ("usage: 12 34", "usage 12 34"),
        ("fail: 429", "fail TooManyRequests"),
        ("fail: 500", "fail ServerError"),
        ("fail: disconnect", "fail Disconnect"),
        ("fail: hang", "fail Hang"),
        ("fail: garbage", "fail Garbage"),
        ("cut:", "cut"),
        // Spelling.
        ("  Run:ls  ", r#"bash{"command":"ls"}"#),
        ("say: a\r\nsay: b\r\n", "say \"a\" + say \"b\""),
        (r"say: a\nb\\n\c\", "say \"a\\nb\\\\n\\\\c\\\\\""),
        // Other lines of a script are said.
        ("hello\nrun: ls", "say \"hello\" + bash{\"command\":\"ls\"}"),
        ("run: ls\n& bye", "bash{\"command\":\"ls\"} + say \"bye\""),
        // Which lines make a reply.
        ("think: a\nsay: b", "think \"a\" + say \"b\""),
        (
            "say: a\nrun: b\nrun: c\nsay: d",
            "say \"a\" + bash{\"command\":\"b\"}\nbash{\"command\":\"c\"}\nsay \"d\"",
        ),
        ("run: a\n&run: b", "bash{\"command\":\"a\"} + bash{\"command\":\"b\"}"),
        ("&run: a\nrun: b", "bash{\"command\":\"a\"}\nbash{\"command\":\"b\"}"),
        (
            "say: x\n& run: a\n&say: y\n&run: b\nsay: z",
            "say \"x\" + bash{\"command\":\"a\"} + say \"y\" + bash{\"command\":\"b\"}\nsay \"z\"",
        ),
        ("run: a\n&usage: 1 2\nusage: 3 4", "bash{\"command\":\"a\"} + usage 1 2\nusage 3 4"),
        ("say: a\nfail: 500\nsay: b", "say \"a\" + fail ServerError\nsay \"b\""),
        ("run: a\nfail: 500", "bash{\"command\":\"a\"}\nfail ServerError"),
        ("run: a\n&fail: 500", "bash{\"command\":\"a\"} + fail ServerError"),
        ("cut:\nrun: a\nrun: b", "cut + bash{\"command\":\"a\"}\nbash{\"command\":\"b\"}"),
        (
            "run: a\n&cut:\nsay: x\nrun: b",
            "bash{\"command\":\"a\"} + cut + say \"x\" + bash{\"command\":\"b\"}",
        ),
    ];
    for (script, expected) in table {
        assert_eq!(shown(script), expected, "{script:?}");
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let long = "x".repeat(100);
    let table = [
        ("fail: 418".to_owned(), vec!["fail:", "\"418\"", "429, 500, disconnect, hang, garbage"]),
        (format!("fail: {long}"), vec!["fail:", "xxx…\""]),
        ("usage: many few".to_owned(), vec!["usage:", "\"many few\"", "usage: <in> <out>"]),
        ("usage: 1".to_owned(), vec!["usage:", "\"1\""]),
        ("stream: 5".to_owned(), vec!["stream:", "\"5\"", "<chunks> <bytes> <delay ms>"]),
        ("stream: 1 2 3 4".to_owned(), vec!["stream:", "\"1 2 3 4\""]),
        ("stream: -1 2 3".to_owned(), vec!["stream:", "\"-1 2 3\""]),
        ("stream: 0 2 3".to_owned(), vec!["chunks is 0; use 1 to 1000000"]),
        ("stream: 2 0 3".to_owned(), vec!["bytes of a chunk is 0; use 1 to 1048576"]),
        ("stream: 2 2 60001".to_owned(), vec!["delay in ms is 60001; use 0 to 60000"]),
        ("stream: 65 1048576 0".to_owned(), vec!["68157440 bytes", "67108864"]),
        ("tool:".to_owned(), vec!["tool:", "name is missing"]),
        ("ask: |".to_owned(), vec!["ask:", "question is missing"]),
    ];
    for (script, words) in table {
        let lines = parse(&script).unwrap();
        assert_eq!(lines.len(), 1);
        let Step::Say(text) = &lines[0].step else { panic!("{script}: {:?}", lines[0]) };
        for word in words {
            assert!(text.contains(word), "{script}: {text} lacks {word}");
        }
    }
}

#[test]
fn streams_of_one_script_share_their_limit() {
    let script = "stream: 40 1048576 0\nstream: 40 1048576 0\nstream: 24 1048576 0";
    let steps: Vec<String> = parse(script).unwrap().iter().map(|line| step(&line.step)).collect();
    assert_eq!(steps[0], "stream 40x1048576@0");
    assert!(steps[1].contains("25165824 are left of the 67108864"), "{}", steps[1]);
    assert_eq!(steps[2], "stream 24x1048576@0");
}

#[test]
fn a_script_over_its_limits_is_not_followed_and_says_so() {
    let many = "run: ls\n".repeat(SCRIPT_LINES_MAX);
    assert_eq!(parse(&many).unwrap().len(), SCRIPT_LINES_MAX);
    let too_many = format!("{many}\nsay: one more");
    let too_large = format!("say: {}", "x".repeat(SCRIPT_BYTES_MAX));
    for script in [too_many, too_large] {
        let shown = shown(&script);
        assert!(shown.starts_with("say \"This script has "), "{}", &shown[..60]);
        assert!(shown.contains("at most 1000 lines and 4194304 bytes"));
    }
    assert!(parse(&"no step\n".repeat(SCRIPT_LINES_MAX + 1)).is_none(), "talk has no limit");
}

#[test]
fn the_help_is_a_script_of_steps_that_work() {
    let help = super::super::SCRIPT_HELP;
    let lines = parse(help).unwrap();
    assert_eq!(lines.len(), help.lines().count());
    for (line, source) in lines.iter().zip(help.lines()) {
        assert_eq!(line.source, source, "each line has a word of its own");
        if let Step::Say(text) = &line.step {
            assert_eq!(&**text, "Hello there!", "no line is wrong");
        }
    }
}

proptest! {
    #[test]
    fn any_text_can_be_read(text in any::<String>()) {
        if let Some(lines) = parse(&text) {
            prop_assert!(!lines.is_empty());
            let count = lines.len();
            let replies = replies(lines);
            prop_assert_eq!(replies.iter().map(Vec::len).sum::<usize>(), count);
        }
    }

    /// Lines that look like steps, and the sources they are given for a summary: read again, they
    /// are the same script.
    #[test]
    fn any_script_can_be_read_and_read_again(
        lines in prop::collection::vec(
            "&{0,2} ?(think|say|run|tool|ask|plan|stream|usage|fail|cut|other)?:?[ -~é☃]{0,30}",
            0..12,
        )
    ) {
        let script = lines.join("\n");
        if let Some(lines) = parse(&script) {
            let sources: Vec<&str> = lines.iter().map(|line| line.source.as_str()).collect();
            let again = parse(&sources.join("\n")).unwrap();
            let steps = |lines: &[Line]| -> Vec<_> {
                lines.iter().map(|line| (line.joined, line.step.clone())).collect()
            };
            prop_assert_eq!(steps(&again), steps(&lines));
        }
    }
}
