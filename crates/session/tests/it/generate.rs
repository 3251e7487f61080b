//! Random sessions, the same ones on every run unless told otherwise.

use polyloop_session::event::Adopted;
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Mode};
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngSeed, TestRunner};

use super::action::{Action, Go, Judged, Kind, Last, Pick, Reply, Start, Stray, Wanted};
use super::make::parts;

pub const CASES: u32 = 256;
const SEED: u64 = 7;
const ACTIONS_MAX: usize = 200;

/// A runner that plays the same cases on every run.
pub fn runner() -> TestRunner {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let cases = number("POLYLOOP_CASES").and_then(|cases| u32::try_from(cases).ok());
    TestRunner::new(ProptestConfig {
        cases: cases.unwrap_or(CASES),
        rng_seed: RngSeed::Fixed(number("POLYLOOP_SEED").unwrap_or(SEED)),
        failure_persistence: None,
        max_shrink_iters: 10_000,
        ..ProptestConfig::default()
    })
}

pub fn sessions() -> impl Strategy<Value = (Start, Vec<Action>)> {
    (start(), vec(action(), 1..ACTIONS_MAX))
}

fn start() -> impl Strategy<Value = Start> {
    let calls_max = prop_oneof![1 => Just(0), 2 => Just(1), 6 => 2..6_u32, 6 => Just(50)];
    let adopted = prop_oneof![3 => Just(Vec::new()), 1 => vec(adopted(), 1..6)];
    (adopted, weighted(0.9, Just(())), mode(), calls_max, any::<bool>()).prop_map(
        |(adopted, created, mode, calls_max, bypass_allowed)| {
            let created = created.is_some() || adopted.is_empty();
            Start { adopted, created, mode, calls_max, bypass_allowed }
        },
    )
}

fn adopted() -> impl Strategy<Value = Adopted> {
    let called = |call_ref: &'static str| Adopted::ToolCall {
        call_ref: call_ref.into(),
        name: "shell".into(),
        args: "{}".into(),
    };
    let result = |call_ref: &'static str| Adopted::ToolResult {
        call_ref: call_ref.into(),
        output: "done".into(),
    };
    prop_oneof![
        text().prop_map(|text| Adopted::User { content: parts(text) }),
        select(vec!["sure", "ok"]).prop_map(|text| Adopted::Agent { text: text.into() }),
        select(vec!["a1", "a2"]).prop_map(called),
        select(vec!["a1", "a2"]).prop_map(result),
    ]
}

/// Weighed so that turns get somewhere: asking modes, whole replies and approvals are common.
fn action() -> impl Strategy<Value = Action> {
    let pick = any::<Pick>;
    let said = || vec((kind(), text()), 0..5);
    let go = (pick(), text(), reply(), said(), vec(judged(), 0..4), end()).prop_map(
        |(pick, text, reply, blocks, judged, end)| {
            Action::Go(Box::new(Go { pick, text, reply, blocks, judged, end }))
        },
    );
    let command = prop_oneof![
        6 => (text(), any::<bool>())
            .prop_map(|(text, can_approve)| Action::Send { text, can_approve }),
        1 => pick().prop_map(Action::Drop),
        4 => (wanted(), reply()).prop_map(|(wait, reply)| Action::Settle { wait, reply }),
        1 => Just(Action::Interrupt),
        2 => Just(Action::Resume),
        2 => Just(Action::Compact),
        1 => mode().prop_map(Action::SetMode),
    ];
    let call = prop_oneof![
        3 => (pick(), kind(), of(0..4_u8))
            .prop_map(|(call, kind, block)| Action::Begin { call, kind, block }),
        4 => (pick(), text(), 0..9_u8)
            .prop_map(|(item, text, again)| Action::Grow { item, text, again }),
        1 => (pick(), any::<bool>()).prop_map(|(item, signed)| Action::EndBlock { item, signed }),
        2 => (pick(), vec(judged(), 0..4), weighted(0.9, Just(()))).prop_map(
            |(call, judged, yes)| Action::Answer { call, judged, answerable: yes.is_some() }
        ),
        2 => (pick(), said(), vec(judged(), 0..4), weighted(0.9, Just(()))).prop_map(
            |(call, blocks, judged, yes)| {
                Action::Say { call, blocks, judged, answerable: yes.is_some() }
            }
        ),
        1 => pick().prop_map(Action::Fail),
        1 => pick().prop_map(Action::Stopped),
        3 => (pick(), end(), any::<bool>())
            .prop_map(|(item, end, seen)| Action::EndTool { item, end, seen }),
    ];
    let world = prop_oneof![
        3 => (any::<u16>(), stray()).prop_map(|(about, report)| Action::Stray { about, report }),
        1 => Just(Action::Notice),
        1 => (0..40_i64).prop_map(|after_ms| Action::Expire { after_ms }),
        3 => (0..6_u8).prop_map(Action::Fuse),
        1 => of(0..5_u8).prop_map(|again| Action::Crash { again }),
        1 => vec(last(), 0..4).prop_map(Action::Drain),
    ];
    prop_oneof![
        6 => go.boxed(),
        3 => command.boxed(),
        4 => call.boxed(),
        1 => world.boxed(),
    ]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        6 => Just(Mode::Suggest),
        2 => Just(Mode::AutoEdit),
        2 => Just(Mode::FullAuto),
        1 => Just(Mode::Bypass),
        1 => Just(Mode::Plan),
        1 => Just(Mode::DontAsk),
    ]
}

fn text() -> impl Strategy<Value = &'static str> {
    select(vec!["hello", "é", "🦀 crab", "{\"a\":1}", "two\nlines", "", "  "])
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![3 => Just(Kind::Text), 2 => Just(Kind::Reasoning), 5 => Just(Kind::Tool)]
}

fn judged() -> impl Strategy<Value = Judged> {
    let effect =
        prop_oneof![2 => Just(Effect::Read), 2 => Just(Effect::Edit), 3 => Just(Effect::Execute)];
    let keys = vec(select(vec!["touch", "git push", "cargo"]), 0..3);
    let rare = || weighted(0.1, Just(()));
    (effect, rare(), any::<bool>(), any::<bool>(), rare(), any::<bool>(), keys).prop_map(
        |(effect, safe, confined, sandbox, refused, risky, keys)| {
            let (safe, refused) = (safe.is_some(), refused.is_some());
            Judged { effect, safe, confined, sandbox, refused, risky, keys }
        },
    )
}

fn wanted() -> impl Strategy<Value = Wanted> {
    prop_oneof![
        4 => Just(Wanted::Presented),
        4 => any::<Pick>().prop_map(Wanted::Open),
        2 => (0..12_u8).prop_map(Wanted::Recent),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let message = select(vec![None, Some(" not that "), Some("  ")]);
    let ends = weighted(0.3, Just(()));
    prop_oneof![
        3 => Just(Reply::Approve),
        1 => Just(Reply::Always),
        1 => judged().prop_map(Reply::Instead),
        2 => (message, ends)
            .prop_map(|(message, ends)| Reply::Deny { message, ends: ends.is_some() }),
        3 => Just(Reply::Explain),
    ]
}

fn end() -> impl Strategy<Value = End> {
    select(vec![End::Whole, End::Whole, End::Failed, End::Interrupted])
}

fn stray() -> impl Strategy<Value = Stray> {
    select(vec![
        Stray::BlockStarted,
        Stray::BlockEnded,
        Stray::Answered,
        Stray::Failed,
        Stray::Stopped,
        Stray::ToolEnded,
    ])
}

fn last() -> impl Strategy<Value = Last> {
    select(vec![Last::Stopped, Last::Finished, Last::Failed])
}
