//! How a reply is streamed: pieces, failures, what is reported of it.

use std::time::Duration;

use futures_util::FutureExt;
use proptest::prelude::*;

use super::super::beats::{Asked, Beat, beats};
use super::super::script::Numbers;
use super::*;

fn texts(chunks: &[Chunk]) -> Vec<&str> {
    let texts = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Text { text, .. } | Chunk::Args { text, .. } => Some(&**text),
        _ => None,
    });
    texts.collect()
}

fn beats_of(steps: Vec<Step>) -> impl Iterator<Item = Beat> {
    beats(steps, Asked { input_tokens: 7, ref_prefix: "ref".to_owned() })
}

#[test]
fn a_text_comes_in_small_pieces_cut_behind_words() {
    let chunks = chunks(Purpose::Think, &[user("say: The quick brown fox jumps over the dog.")]);
    let pieces = ["The quick ", "brown fox ", "jumps over the dog."];
    assert_eq!(texts(&chunks), pieces);
}

#[test]
fn a_call_comes_with_its_arguments_in_a_few_pieces() {
    let chunks = chunks(Purpose::Think, &[user("run: echo one two three four")]);
    assert!(
        matches!(&chunks[0], Chunk::Started { block: 0, kind: ItemKind::ToolCall { name, .. } }
        if &**name == "bash")
    );
    let pieces = texts(&chunks);
    assert!(pieces.len() > 1 && pieces.len() <= 5, "{pieces:?}");
    assert_eq!(pieces.concat(), r#"{"command":"echo one two three four"}"#);
}

#[test]
fn a_stream_is_numbered_in_chunks_of_exactly_the_size_asked_for() {
    let chunks = chunks(Purpose::Think, &[user("stream: 7 5 1")]);
    let pieces = texts(&chunks);
    assert_eq!(pieces.len(), 7);
    assert!(pieces.iter().all(|piece| piece.len() == 5));
    assert_eq!(pieces.concat(), "0000000 0000001 0000002 0000003 000");
    assert_eq!(assembled(chunks).usage.unwrap().output_tokens, 9);
}

#[test]
fn the_delay_is_between_chunks_and_nowhere_else() {
    let delay = Duration::from_secs(60);
    let numbers = Numbers { chunks: 3, chunk_bytes: 8, delay };
    let kinds: Vec<char> = beats_of(vec![Step::Say("a".into()), Step::Stream(numbers)])
        .map(|beat| match beat {
            Beat::Send(Chunk::Text { .. }) => 't',
            Beat::Send(_) => '.',
            Beat::Pause(pause) => {
                assert_eq!(pause, delay);
                'p'
            }
            Beat::Hang => 'h',
        })
        .collect();
    assert_eq!(kinds.iter().collect::<String>(), ".t..tptpt...");
}

#[test]
fn usage_is_estimated_unless_it_is_told() {
    let mut asked = request(Purpose::Think, &[user("say: 12345678")]);
    asked.instructions = "x".repeat(39).into();
    let chunks: Vec<Chunk> = Offline::new().ask(asked).collect().now_or_never().unwrap();
    let usage = assembled(chunks).usage.unwrap();
    assert_eq!(usage, Usage { input_tokens: 13, output_tokens: 2, ..Usage::default() });

    let told = answer(&[user("say: x\nusage: 70000 5\nusage: 90000 7")]);
    let expected = Usage { input_tokens: 90_000, output_tokens: 7, ..Usage::default() };
    assert_eq!(told.usage, Some(expected));
    assert_eq!(told.shown(), "say x");
}

#[test]
fn a_failure_comes_after_what_was_said_before_it() {
    let table = [
        ("fail: 429", Some(("429", "429 Too Many Requests"))),
        ("fail: 500", Some(("500", "500 Internal Server Error"))),
        ("fail: garbage", Some(("bad_answer", "something that is not an answer"))),
        ("fail: disconnect", None),
    ];
    for (line, fault) in table {
        let script = format!("think: a\nsay: b\n{line}\nsay: never");
        let failed = answer(&[user(&script)]);
        assert_eq!((&*failed.shown(), &failed.usage), ("think a, say b", &None), "{line}");
        match (failed.end, fault) {
            (AnswerEnd::Failed(fault), Some((code, words))) => {
                assert_eq!(&*fault.code, code);
                assert!(fault.message.contains(words), "{}", fault.message);
            }
            (AnswerEnd::Cut, None) => {}
            (end, _) => panic!("{line}: {end:?}"),
        }
    }
}

#[test]
fn a_hanging_reply_says_what_it_can_and_never_ends() {
    let mut stream = Offline::new().ask(request(Purpose::Think, &[user("say: a\nfail: hang")]));
    let mut seen = Vec::new();
    while let Some(chunk) = stream.next().now_or_never() {
        seen.push(chunk.unwrap());
    }
    assert_eq!(seen.len(), 3, "started, text, ended: {seen:?}");
    assert!(stream.next().now_or_never().is_none());
}

#[test]
fn a_cut_ends_inside_the_arguments_of_the_next_call() {
    let table = [
        ("cut:\nrun: echo hello", "", r#"{"command":""#),
        ("say: a\ncut:\nsay: b\nrun: echo hello\nsay: never", "say a, say b", r#"{"command":""#),
        ("run: a\n&cut:\n&run: echo hello", r#"bash {"command":"a"}"#, r#"{"command":""#),
        // Without a call to cut it makes one up.
        ("say: a\ncut:", "say a", r#"{"command":"echo This "#),
    ];
    for (script, whole, torn) in table {
        let cut = answer(&[user(script)]);
        assert_eq!(cut.shown(), whole, "{script}");
        assert_eq!(cut.torn_args.as_deref(), Some(torn), "{script}");
        assert_eq!((cut.end, cut.usage), (AnswerEnd::Cut, None), "{script}");
    }
    let short = answer(&[user("cut:\ntool: x 1")]);
    assert_eq!(short.torn_args.as_deref(), Some(""), "even one byte is not whole");
    let failed = answer(&[user("cut:\nfail: 500")]);
    assert!(matches!(failed.end, AnswerEnd::Failed(_)), "a failure comes first if it is first");
}

#[test]
fn a_long_answer_lets_others_run() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut stream =
            Offline::new().ask(request(Purpose::Think, &[user("stream: 1000000 1 0")]));
        let long = tokio::spawn(async move {
            let mut receiver = receiver;
            while let Some(chunk) = stream.next().await {
                assert_ne!(chunk, Chunk::Done(Stop::End), "the other task never ran");
                if receiver.try_recv().is_ok() {
                    return;
                }
            }
        });
        let other = tokio::spawn(async move { sender.send(()) });
        long.await.unwrap();
        other.await.unwrap().unwrap();
    });
}

proptest! {
    #[test]
    fn what_is_streamed_is_the_whole_text(text in "[a-z é☃字\n\u{301}]{0,200}") {
        let steps = vec![
            Step::Say(text.as_str().into()),
            Step::Think(text.as_str().into()),
            Step::Call { name: "x".into(), args: text.as_str().into() },
        ];
        let sent = beats_of(steps).map(|beat| match beat {
            Beat::Send(chunk) => chunk,
            Beat::Pause(_) | Beat::Hang => panic!("{beat:?}"),
        });
        let sent: Vec<Chunk> = sent.collect();
        for chunk in &sent {
            if let Chunk::Text { text, .. } = chunk {
                prop_assert!(!text.is_empty() && text.len() <= 24);
            }
        }
        let answer = assembled(sent);
        let (say, think) = (text_part(&text), text.as_str().into());
        let think = AssistantPart::Reasoning { text: think, opaque: None };
        prop_assert_eq!(&answer.parts[..2], &[say, think]);
        prop_assert_eq!(&*answer.calls()[0].2, text.as_str());
    }

    #[test]
    fn every_number_stands_at_eight_times_itself(chunks in 1..300u64, chunk_bytes in 1..70u64) {
        let numbers = Numbers { chunks, chunk_bytes, delay: Duration::ZERO };
        let mut whole = String::new();
        for beat in beats_of(vec![Step::Stream(numbers)]) {
            if let Beat::Send(Chunk::Text { text, .. }) = beat {
                prop_assert_eq!(text.len() as u64, chunk_bytes);
                whole.push_str(&text);
            }
        }
        prop_assert_eq!(whole.len() as u64, chunks * chunk_bytes);
        for (number, word) in whole.as_bytes().chunks_exact(8).enumerate() {
            prop_assert_eq!(word, &format!("{number:07} ").into_bytes());
        }
    }
}
