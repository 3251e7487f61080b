//! Golden prompts: what the model is sent, for each way a conversation can go.

use polyloop_session::command::WaitReply;
use polyloop_session::event::{Adopted, Event};
use polyloop_session::history::{Message, SUMMARISE_TEXT, prompt};
use polyloop_session::item::{End, ItemKind, Opaque};
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::{Answerable, Command, Proposal, Report};

use super::make::{LIMITS, approve, call, created, image, judgement, parts, send, tool};
use super::script::{DENY, Script};

fn read() -> polyloop_session::policy::Judgement {
    judgement(Effect::Read)
}

fn command() -> polyloop_session::policy::Judgement {
    judgement(Effect::Execute)
}

fn shows(script: &Script, want: &[&str]) {
    assert_eq!(script.prompt(), want.join("\n"));
}

#[test]
fn two_turns_are_four_messages() {
    let mut script = Script::new(Mode::Suggest);
    script.send("hi").text("hello").answer(&[]).send("and?");
    shows(&script, &["user: hi", "assistant: hello", "user: and?"]);
}

#[test]
fn results_follow_their_message_in_the_order_of_the_calls() {
    let mut script = Script::new(Mode::Suggest);
    script.send("look").text("I look").tool("a").tool("b").answer(&[read(), read()]);
    let [a, b] = script.tools()[..] else { panic!("both read, both run") };
    script.output(b, "second").end_tool(b, End::Whole, None);
    script.output(a, "first").end_tool(a, End::Failed, None);
    let want = ["user: look", "assistant: I look + call a{a} + call b{b}"];
    shows(&script, &[want[0], want[1], "error a: first", "result b: second"]);
}

#[test]
fn what_a_reply_said_between_its_calls_stays_between_them() {
    let mut script = Script::new(Mode::Suggest);
    script.send("look").text("first").tool("a").text("then").tool("b");
    script.answer(&[read(), read()]).end_tools();
    let want = "assistant: first + call a{a} + then + call b{b}";
    shows(&script, &["user: look", want, "result a: a done", "result b: b done"]);
}

#[test]
fn the_model_sees_what_the_tool_says_it_sees() {
    let mut script = Script::new(Mode::Suggest);
    script.send("look").tool("a").answer(&[read()]);
    let a = script.tools()[0];
    script.output(a, "all of it").end_tool(a, End::Whole, Some("the gist"));
    shows(&script, &["user: look", "assistant: call a{a}", "result a: the gist"]);
}

#[test]
fn an_explanation_stands_after_the_results_never_between() {
    let mut script = Script::new(Mode::Suggest);
    script.send("do").tool("a").tool("b").answer(&[command(), read()]);
    script.settle(WaitReply::Explain).text("it touches a").answer(&[]);
    script.settle(DENY).end_tools();
    shows(
        &script,
        &[
            "user: do",
            "assistant: call a{a} + call b{b}",
            "error a: The user did not allow this. Do not run it; go on with the rest another way.",
            "result b: b done",
            "user: Before deciding on that call I was told: it touches a",
        ],
    );
}

#[test]
fn an_explanation_that_outlives_its_call_still_enters() {
    let mut script = Script::new(Mode::Suggest);
    script.send("do").tool("a").answer(&[command()]);
    script.settle(WaitReply::Explain).text("it touches a");
    script.settle(approve()).end_tools();
    assert_eq!(script.tools(), [], "the tool is done, the explanation is not");
    script.answer(&[]);
    shows(
        &script,
        &[
            "user: do",
            "assistant: call a{a}",
            "result a: a done",
            "user: Before deciding on that call I was told: it touches a",
        ],
    );
}

#[test]
fn a_call_is_explained_with_what_would_run() {
    let mut script = Script::new(Mode::Suggest);
    script.send("do").reason("hm").text("I do").tool("a").answer(&[command()]);
    script.settle(WaitReply::Explain);
    let asked = "user: Before I decide: explain in a few sentences what this would do, what it \
        affects, what could go wrong, and why you want it. Do not run anything.\n\ntouch a";
    let want = ["user: do", "assistant: (hm) + I do", asked];
    shows(&script, &want);
    script.settle(approve());
    shows(&script, &want);
}

#[test]
fn a_failed_call_is_forgotten_with_all_it_said() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").reason("hm").end_block(None).text("whole").end_block(None);
    script.text("half").fail().send("two");
    shows(&script, &["user: one", "user: two"]);
}

#[test]
fn what_was_shown_before_an_interrupt_stays_and_half_arguments_do_not() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").text("half of").reason("hm").tool("a").interrupt().stopped().resume();
    shows(
        &script,
        &["user: one", "assistant: half of", "user: Go on with the work that was interrupted."],
    );
}

#[test]
fn a_stopped_tool_keeps_what_it_said() {
    let mut script = Script::new(Mode::Bypass);
    script.send("one").tool("a").tool("b").answer(&[command(), command()]);
    let a = script.tools()[0];
    script.output(a, "so far").interrupt().end_tool(a, End::Interrupted, None).send("two");
    shows(
        &script,
        &[
            "user: one",
            "assistant: call a{a} + call b{b}",
            "error a: so far",
            "error b: Not run: the turn was stopped before it started.",
            "user: two",
        ],
    );
}

#[test]
fn signed_reasoning_goes_back_byte_for_byte_where_something_follows_it() {
    let seal = || seal(r#"{ "s" : "é\u00e9" }"#);
    let mut script = Script::new(Mode::Suggest);
    script.send("one").reason("first").end_block(seal()).tool("a").answer(&[read()]).end_tools();
    script.reason("second").end_block(seal()).text("done").answer(&[]).send("two");
    script.reason("alone").end_block(seal()).answer(&[]).send("three");
    shows(
        &script,
        &[
            "user: one",
            r#"assistant: (first p:{ "s" : "é\u00e9" }) + call a{a}"#,
            "result a: a done",
            r#"assistant: (second p:{ "s" : "é\u00e9" }) + done"#,
            "user: two",
            "user: three",
        ],
    );
}

fn seal(json: &str) -> Option<Opaque> {
    Some(Opaque { provider: "p".into(), json: json.into() })
}

#[test]
fn what_came_with_a_text_or_a_call_goes_back_with_it_byte_for_byte() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").text("said").end_block(seal(r#"{ "t" : 1.50 }"#)).text("plain");
    script.block(tool("a", "a"), "{a}");
    script.block(tool("b", "b"), "{b}");
    let sealed = |block, name: &str, json: Option<&str>| Proposal {
        block,
        args: format!("{{{name}}}").into(),
        judgement: Box::new(read()),
        opaque: json.and_then(seal),
    };
    let turn = script.sim.state.turn().unwrap();
    let open = turn.items.values().filter(|i| matches!(i.kind, ItemKind::ToolCall { .. }));
    let blocks: Vec<u32> = open.map(|item| item.block).collect();
    let first = sealed(blocks[0], "a", Some(r#"{"c":"é\u00e9"}"#));
    let proposals = vec![first, sealed(blocks[1], "b", None)];
    let (call, answerable) = (script.call(), Answerable::default());
    script.report(Report::Answered { call, usage: None, proposals, answerable }).end_tools();
    let said =
        r#"assistant: said p:{ "t" : 1.50 } + plain + call a{a} p:{"c":"é\u00e9"} + call b{b}"#;
    shows(&script, &["user: one", said, "result a: a done", "result b: b done"]);
    // It outlives a crash, since it stands in the log.
    script.text("half").crash().resume();
    assert!(script.prompt().contains(said), "{}", script.prompt());
}

/// Some providers send reasoning that only they can read.
#[test]
fn reasoning_without_a_text_goes_back_too() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").reason("").end_block(seal("{\"e\":1}")).tool("a").answer(&[read()]);
    script.end_tools();
    let kept = script.sim.log.iter().filter_map(|entry| match &entry.event {
        Event::ItemCompleted { text, opaque, .. } if text.is_empty() => opaque.clone(),
        _ => None,
    });
    assert_eq!(kept.collect::<Vec<_>>(), [seal("{\"e\":1}").unwrap()]);
    let want = "assistant: ( p:{\"e\":1}) + call a{a}";
    shows(&script, &["user: one", want, "result a: a done"]);
}

#[test]
fn a_picture_stands_where_the_user_put_it() {
    let mut script = Script::new(Mode::Suggest);
    let Command::Send(mut seen) = send("look") else { panic!("a message") };
    seen.content.insert(0, image("aGk="));
    let content = seen.content.clone();
    script.command(Command::Send(seen));
    let prompt = prompt(&script.sim.state, script.call(), &LIMITS).unwrap();
    assert_eq!(prompt.messages, [Message::User(content)]);
    // Alone it is a message too.
    let mut script = Script::new(Mode::Suggest);
    let Command::Send(mut alone) = send("") else { panic!("a message") };
    alone.content = vec![image("aGk=")];
    script.command(Command::Send(alone));
    shows(&script, &["user: [image: image/png]"]);
}

#[test]
fn a_tool_that_an_explanation_calls_is_neither_run_nor_told() {
    let mut script = Script::new(Mode::Suggest);
    script.send("do").tool("a").answer(&[command()]).settle(WaitReply::Explain);
    script.text("it touches").tool("x").answer(&[read()]);
    assert_eq!(script.tools(), []);
    script.settle(DENY);
    let prompt = script.prompt();
    assert!(!prompt.contains("call x"), "{prompt}");
    assert!(prompt.ends_with("user: Before deciding on that call I was told: it touches"));
}

#[test]
fn a_foreign_file_is_taken_up_without_its_loose_ends() {
    let adopted = |piece| Event::Adopted { piece: Some(piece) };
    let call = |name: &str| Adopted::ToolCall {
        call_ref: name.into(),
        name: name.into(),
        args: "{}".into(),
    };
    let result = |name: &str, output: &str| Adopted::ToolResult {
        call_ref: name.into(),
        output: output.into(),
    };
    let mut events: Vec<Event> = [
        Adopted::User { content: parts("old") },
        Adopted::Agent { text: "I look".into() },
        call("a"),
        call("b"),
        result("b", "B"),
        result("a", "A"),
        result("nobody", "?"),
        result("a", "again"),
        Adopted::Agent { text: "seen".into() },
        call("lost"),
        Adopted::User { content: parts("newer") },
        call("a"),
        result("a", "A2"),
    ]
    .map(adopted)
    .into();
    events.insert(0, Event::Adopted { piece: None });
    events.push(created(Mode::Suggest, 5));
    let mut script = Script::after(events);
    script.send("go on");
    shows(
        &script,
        &[
            "user: old",
            "assistant: I look + call a{} + call b{}",
            "result a: A",
            "result b: B",
            "assistant: seen",
            "user: newer",
            "assistant: call a{}",
            "result a: A2",
            "user: go on",
        ],
    );
}

#[test]
fn a_summary_stands_for_what_it_replaced() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").text(&"long ".repeat(100)).answer(&[]).send("two").text("ok").answer(&[]);
    script.compact();
    let asked = script.prompt();
    assert!(asked.ends_with(&format!("assistant: ok\nuser: {SUMMARISE_TEXT}")), "{asked}");
    script.text("short").answer(&[]).send("three");
    shows(
        &script,
        &[
            "user: Summary of the conversation so far, written by the assistant and not by the user:\n\nshort",
            "user: two",
            "assistant: ok",
            "user: three",
        ],
    );
}

#[test]
fn what_came_after_a_call_began_is_not_in_its_prompt() {
    let mut script = Script::new(Mode::Suggest);
    script.send("one").send("queued").text("shown").end_block(None);
    shows(&script, &["user: one"]);
    script.block(ItemKind::Text, "more");
    shows(&script, &["user: one"]);
}

#[test]
fn a_call_that_is_not_open_has_no_prompt() {
    let mut script = Script::new(Mode::Suggest);
    assert_eq!(prompt(&script.sim.state, call(1), &LIMITS), None);
    script.send("one");
    let open = script.call();
    assert_eq!(prompt(&script.sim.state, call(1), &LIMITS), None);
    script.report(Report::CallStopped { call: open });
    assert_eq!(prompt(&script.sim.state, open, &LIMITS), None);
}
