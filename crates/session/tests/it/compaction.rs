//! Where a compaction cuts: before a user's message, never between a call and its result, and so
//! that what stays fits in a quarter.

use polyloop_session::context::{compaction_cut, info, tokens_after};
use polyloop_session::event::{Adopted, Event};
use polyloop_session::policy::{Effect, Mode};
use polyloop_session::state::{Line, Piece};
use polyloop_session::{ItemId, Seq, State};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

use super::generate::runner;
use super::make::{LIMITS, created, entries, fold, judgement, parts, queued};
use super::script::Script;

/// Reads `u8 a2 cX1 rX3`: a user's message of 8 tokens, an agent's text of 2, call X of 1 token
/// and its result of 3.
fn line(told: &str) -> State {
    let pieces = told.split_whitespace().map(|word| {
        let digits = word.find(|c: char| c.is_ascii_digit()).unwrap();
        let tokens: usize = word[digits..].parse().unwrap();
        let (text, name) = ("x".repeat(4 * tokens), &word[1..digits]);
        match &word[..1] {
            "u" => Adopted::User { content: parts(&text) },
            "a" => Adopted::Agent { text: text.into() },
            "c" => Adopted::ToolCall { call_ref: name.into(), name: "".into(), args: text.into() },
            "r" => Adopted::ToolResult { call_ref: name.into(), output: text.into() },
            _ => panic!("{word} is no piece"),
        }
    });
    fold(&entries(pieces.map(|piece| Event::Adopted { piece: Some(piece) })))
}

#[test]
fn the_newest_exchanges_stay_while_they_fit_in_a_quarter() {
    let rows = [
        ("", None),
        ("u5", Some(1)),
        ("u5 a5", Some(2)),
        ("u5 a9 u1 a1", Some(2)),
        ("u5 a9 u1 a1 u1 a1", Some(2)),
        ("u5 a9 u4 a1 u1 a1", Some(4)),
        ("u5 a9 u4 a4", Some(4)),
        ("a9 u1", Some(1)),
        ("u9 cX9 rX9 u1 cY1 rY1 a1", Some(3)),
        ("u9 cX9 rX9 u1 cY1 rY9 a1", Some(7)),
        // Another program's file may have a message between a call and its result.
        ("u30 cX1 u1 rX1", Some(4)),
        ("u30 u1 cX1 u1 rX1", Some(1)),
        ("u30 cLost1 u1 a1", Some(2)),
    ];
    for (told, want) in rows {
        assert_eq!(compaction_cut(line(told).line()), want.map(Seq), "{told}");
    }
}

fn parted(line: &Line, upto: Seq) -> Option<ItemId> {
    let results = line.pieces().iter().filter_map(|piece| match piece.piece {
        Piece::ToolResult { item, .. } => Some((item, piece.seq)),
        _ => None,
    });
    let mut results = results.filter(|(item, seq)| (item.0 <= upto) != (*seq <= upto));
    results.next().map(|(item, _)| item)
}

#[test]
fn no_line_is_cut_between_a_call_and_its_result() {
    let kinds = select(vec!["u", "u", "a", "cX", "rX", "cY", "rY"]);
    let told = vec((kinds, 0..20_u8), 0..24).prop_map(|pieces| {
        let words: Vec<String> = pieces.iter().map(|(kind, n)| format!("{kind}{n}")).collect();
        words.join(" ")
    });
    let ran = runner().run(&told, |told| {
        let state = line(&told);
        let line = state.line();
        let Some(upto) = compaction_cut(line) else { return Ok(()) };
        let fail = |why: String| Err(TestCaseError::fail(format!("{why} in {told}")));
        if let Some(item) = parted(line, upto) {
            return fail(format!("call {item} is parted from its result"));
        }
        let kept: Vec<_> = line.pieces().iter().filter(|p| p.seq > upto).collect();
        let begins = kept.first().is_none_or(|p| matches!(p.piece, Piece::User { .. }));
        if !begins {
            return fail(format!("what stays begins with {:?}", kept.first()));
        }
        let tokens = tokens_after(line, upto, None, 0);
        if tokens > line.tokens() / 4 {
            return fail(format!("{tokens} of {} tokens stay", line.tokens()));
        }
        Ok(())
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}

#[test]
fn an_explanation_goes_where_its_result_goes() {
    let mut script = Script::new(Mode::Suggest);
    script.send("do").tool("a").answer(&[judgement(Effect::Execute)]);
    script.settle(polyloop_session::command::WaitReply::Explain).text("told").answer(&[]);
    script.settle(super::script::DENY).text("ok").answer(&[]);
    let line = script.sim.state.line();
    let told = |piece: &Piece| matches!(piece, Piece::Explanation { .. });
    let at = line.pieces().iter().position(|p| told(&p.piece)).unwrap();
    assert_eq!(line.pieces()[at].seq, line.pieces()[at - 1].seq);
    script.compact().text("s").answer(&[]);
    assert_eq!(script.sim.state.line().pieces().len(), 1);
}

#[test]
fn token_counts_that_overflow_are_a_full_window_and_no_crash() {
    let mut events = vec![created(Mode::Suggest, 0)];
    for _ in 0..3 {
        events.push(queued("huge", u64::MAX / 2 + 1));
    }
    let mut script = Script::after(events);
    assert!(script.sim.advance().is_ok());
    let state = &script.sim.state;
    assert_eq!(info(state, 10, LIMITS.strategy).tokens, u64::MAX);
    let upto = compaction_cut(state.line()).unwrap();
    assert_eq!(tokens_after(state.line(), Seq::NONE, None, 1), u64::MAX);
    assert_eq!(tokens_after(state.line(), upto, None, 1), 1);
    script.compact().text("short").answer(&[]);
    assert_eq!(script.sim.state.line().tokens(), 2);
}
