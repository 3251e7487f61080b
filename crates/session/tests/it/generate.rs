//! Random sessions, the same ones on every run unless told otherwise.

use polyloop_session::Delivery;
use polyloop_session::decide::TITLE_CHARS_MAX;
use polyloop_session::event::{Adopted, Agent, RunOptions, Setting};
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Mode, Says};
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngSeed, TestRunner};

use super::action::{
    Action, Aim, Asker, Failure, Fate, Go, Halted, Judged, Kind, Last, Pick, Reply, Said, Scene,
    Start, Stray, There, Wanted,
};
use super::flaw::{FLAWS, Flaw};
use super::make::{ASKS_ONE, ASKS_TWO, parts};

pub const CASES: u32 = 320;
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
    let retries_max = prop_oneof![1 => Just(0), 1 => Just(1), 3 => Just(4)];
    let tokens_max = prop_oneof![4 => Just(1_000), 1 => Just(120), 1 => Just(300), 1 => Just(600)];
    let budget = weighted(0.1, 300..3_000_u64);
    let room = (tokens_max, budget);
    (adopted, weighted(0.9, Just(())), mode(), calls_max, any::<bool>(), retries_max, room)
        .prop_map(|(adopted, created, mode, calls_max, bypass_allowed, retries_max, room)| {
            let created = created.is_some() || adopted.is_empty();
            let (tokens_max, budget) = room;
            Start {
                adopted,
                created,
                mode,
                calls_max,
                bypass_allowed,
                retries_max,
                tokens_max,
                budget,
            }
        })
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
    let blocks = || vec(block(), 0..5);
    let stops = any::<bool>();
    let go = (pick(), said(), reply(), blocks(), vec(judged(), 0..4), end(), stops).prop_map(
        |(pick, said, reply, blocks, judged, end, stopped)| {
            Action::Go(Box::new(Go { pick, said, reply, blocks, judged, end, stopped }))
        },
    );
    let command = prop_oneof![
        12 => said().prop_map(Action::Send),
        3 => aim().prop_map(Action::Cancel),
        8 => (wanted(), reply()).prop_map(|(wait, reply)| Action::Settle { wait, reply }),
        2 => of(pick()).prop_map(Action::Interrupt),
        4 => Just(Action::Resume),
        4 => Just(Action::Compact),
        2 => mode().prop_map(Action::SetMode),
        2 => setting().prop_map(Action::Set),
        2 => Just(Action::Close),
        1 => Just(Action::Reopen),
    ];
    let call = prop_oneof![
        3 => (pick(), kind(), of(0..4_u8))
            .prop_map(|(call, kind, block)| Action::Begin { call, kind, block }),
        4 => (pick(), text(), 0..9_u8)
            .prop_map(|(item, text, again)| Action::Grow { item, text, again }),
        1 => (pick(), any::<bool>()).prop_map(|(item, signed)| Action::EndBlock { item, signed }),
        2 => (pick(), vec(judged(), 0..4), there())
            .prop_map(|(call, judged, there)| Action::Answer { call, judged, there }),
        2 => (pick(), blocks(), vec(judged(), 0..4), there()).prop_map(
            |(call, blocks, judged, there)| Action::Say { call, blocks, judged, there }
        ),
        2 => (pick(), vec(block(), 0..3), vec(failure(), 1..6)).prop_map(
            |(call, blocks, failures)| Action::Fail { call, blocks, failures }
        ),
        1 => (text(), any::<bool>())
            .prop_map(|(summary, again)| Action::Overflow { summary, again }),
        1 => pick().prop_map(Action::Stopped),
        3 => (pick(), end(), any::<bool>())
            .prop_map(|(item, end, seen)| Action::EndTool { item, end, seen }),
        2 => (pick(), halted()).prop_map(|(item, halt)| Action::StopTool { item, halt }),
        2 => halted().prop_map(Action::Escape),
        2 => pick().prop_map(Action::Touch),
    ];
    let world = prop_oneof![
        3 => (any::<u16>(), stray()).prop_map(|(about, report)| Action::Stray { about, report }),
        1 => Just(Action::Notice),
        3 => (0..40_i64).prop_map(|after_ms| Action::Expire { after_ms }),
        3 => (0..6_u8).prop_map(Action::Fuse),
        1 => (of(0..5_u8), any::<bool>())
            .prop_map(|(again, lost)| Action::Crash { again, lost }),
        1 => vec(last(), 0..4).prop_map(Action::Drain),
        1 => Just(Action::Fork),
        2 => (any::<u8>(), any::<u16>()).prop_map(|(kind, about)| Action::Undo { kind, about }),
        2 => of(0..6_u8).prop_map(Action::Redo),
        9 => scene().prop_map(Action::Scene),
    ];
    prop_oneof![
        6 => go.boxed(),
        3 => command.boxed(),
        4 => call.boxed(),
        1 => world.boxed(),
    ]
}

fn halted() -> impl Strategy<Value = Halted> {
    let exit_code = select(vec![Some(1), Some(137), None]);
    let (mode, fuse) = (weighted(0.3, mode()), weighted(0.2, 0..6_u8));
    (text(), mode, any::<bool>(), exit_code, there(), fuse).prop_map(
        |(printed, mode, seen, exit_code, there, fuse)| Halted {
            printed,
            mode,
            seen,
            exit_code,
            there,
            fuse,
        },
    )
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![
        6 => Just(Mode::Suggest),
        2 => Just(Mode::AutoEdit),
        5 => Just(Mode::FullAuto),
        2 => Just(Mode::Bypass),
        3 => Just(Mode::Plan),
        1 => Just(Mode::DontAsk),
    ]
}

/// Enough for an output that is worth to be left out.
pub const LONG: &str = "a line of an output, then one more, and they do not end for a long while; \
    there is no telling what they say, so that it is a pity to lose them, and yet they must go \
    where the window is small and a summary dear";

fn text() -> impl Strategy<Value = &'static str> {
    select(vec!["hello", "é", "🦀 crab", "{\"a\":1}", "two\nlines", "", "  ", LONG])
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![3 => Just(Kind::Text), 2 => Just(Kind::Reasoning), 5 => Just(Kind::Tool)]
}

/// What a tool call says must be readable for it to ask anything.
fn block() -> impl Strategy<Value = (Kind, &'static str)> {
    let asks = select(vec![ASKS_ONE, ASKS_ONE, ASKS_TWO]);
    let args = prop_oneof![3 => asks.boxed(), 1 => text().boxed()];
    (kind(), text(), args).prop_map(|(kind, text, args)| match kind {
        Kind::Text | Kind::Reasoning => (kind, text),
        Kind::Tool => (kind, args),
    })
}

fn said() -> impl Strategy<Value = Said> {
    let typed = select(vec!["red", "2\nblue, 1", "neither", "one\ntwo\nthree"]);
    let text = prop_oneof![3 => text().boxed(), 2 => typed.boxed()];
    let delivery = prop_oneof![
        3 => Just(Delivery::Queue),
        1 => Just(Delivery::AnswerQuestion),
        2 => any::<bool>().prop_map(|consents| Delivery::Answer { consents }),
    ];
    let client_ref = select(vec![None, Some("a"), Some("b"), Some("c")]);
    let run = weighted(0.2, run());
    let image = weighted(0.1, select(vec!["aGk=", "AAAA"]));
    (text, image, any::<bool>(), client_ref, delivery, run).prop_map(
        |(text, image, can_approve, client_ref, delivery, run)| Said {
            text,
            image,
            can_approve,
            client_ref,
            delivery,
            run,
        },
    )
}

fn run() -> impl Strategy<Value = RunOptions> {
    // Other agents have random sessions and an auditor of their own.
    let agent = select(vec![None, Some(Agent::React)]);
    (agent, any::<bool>(), of(1..4_u32)).prop_map(|(agent, elsewhere, calls_max)| {
        let cwd = elsewhere.then(|| "/elsewhere".into());
        RunOptions { agent, cwd, calls_max, ..RunOptions::default() }
    })
}

fn setting() -> impl Strategy<Value = Setting> {
    let model = Setting::Model { model: "other".into(), tokens_max: 77 };
    select(vec![
        model,
        Setting::Agent { agent: Agent::React },
        Setting::Title { title: "A title".into() },
        Setting::Title { title: "é".repeat(TITLE_CHARS_MAX + 1).into() },
        Setting::CallsMax { calls_max: 0 },
        Setting::CallsMax { calls_max: 7 },
        Setting::Metadata { json: "{\"a\":1.50}".into() },
    ])
}

fn aim() -> impl Strategy<Value = Aim> {
    prop_oneof![
        1 => any::<Pick>().prop_map(Aim::Queued),
        1 => Just(Aim::Running),
        2 => select(vec!["a", "b", "c"]).prop_map(Aim::Named),
        2 => wanted().prop_map(Aim::Wait),
    ]
}

fn there() -> impl Strategy<Value = There> {
    prop_oneof![6 => Just(There::All), 1 => Just(There::Answerer), 1 => Just(There::Nobody)]
}

fn judged() -> impl Strategy<Value = Judged> {
    let effect = prop_oneof![
        2 => Just(Effect::Read),
        2 => Just(Effect::Edit),
        3 => Just(Effect::Execute),
        1 => Just(Effect::Network),
        2 => Just(Effect::Question),
        2 => Just(Effect::Plan),
    ];
    let keys = vec(select(vec!["touch", "git push", "cargo"]), 0..3);
    let rare = || weighted(0.1, Just(()));
    let rule = weighted(0.2, select(vec![Says::Allow, Says::Ask, Says::Deny]));
    let facts = (rare(), any::<bool>(), any::<bool>(), rare(), any::<bool>());
    (effect, facts, keys, rule).prop_map(
        |(effect, (safe, confined, sandbox, refused, risky), keys, rule)| {
            let (safe, refused) = (safe.is_some(), refused.is_some());
            Judged { effect, safe, confined, sandbox, refused, risky, keys, rule }
        },
    )
}

fn wanted() -> impl Strategy<Value = Wanted> {
    prop_oneof![
        4 => Just(Wanted::Presented),
        3 => any::<Pick>().prop_map(Wanted::Open),
        1 => any::<Pick>().prop_map(Wanted::About),
        2 => (0..6_u8).prop_map(Wanted::Recent),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let message = || select(vec![None, Some(" not that "), Some("  ")]);
    let ends = weighted(0.3, Just(()));
    prop_oneof![
        3 => message().prop_map(Reply::Approve),
        3 => form().prop_map(Reply::Form),
        1 => Just(Reply::Always),
        1 => judged().prop_map(Reply::Instead),
        2 => (message(), ends)
            .prop_map(|(message, ends)| Reply::Deny { message, ends: ends.is_some() }),
        3 => Just(Reply::Explain),
    ]
}

fn form() -> impl Strategy<Value = Vec<(u64, Vec<&'static str>)>> {
    select(vec![
        vec![(0, vec!["Red"])],
        vec![(0, vec!["my own"])],
        vec![(0, vec!["blue"]), (1, vec!["Red", "Green", "and mauve"])],
        vec![(1, vec!["  "])],
        vec![(0, vec!["Red", "Blue"])],
        vec![(0, vec!["Red"]), (0, vec!["Blue"])],
        vec![(2, vec!["Red"])],
        Vec::new(),
    ])
}

fn end() -> impl Strategy<Value = End> {
    select(vec![End::Whole, End::Whole, End::Failed, End::Interrupted])
}

fn stray() -> impl Strategy<Value = Stray> {
    prop_oneof![
        4 => select(vec![
            Stray::BlockStarted,
            Stray::BlockEnded,
            Stray::Answered,
            Stray::Stopped,
            Stray::ToolEnded,
            Stray::ToolStopped,
            Stray::ToolTouches,
        ]),
        1 => failure().prop_map(Stray::Failed),
    ]
}

/// One that heals with time is common, so that retries run out.
fn failure() -> impl Strategy<Value = Failure> {
    let flaw = prop_oneof![4 => Just(Flaw::Overloaded), 4 => select(FLAWS.to_vec())];
    let chance = prop_oneof![1 => Just(0), 1 => Just(u16::MAX), 4 => 0..1_000_u16];
    (flaw, chance).prop_map(|(flaw, chance)| Failure { flaw, chance })
}

fn scene() -> impl Strategy<Value = Scene> {
    let by = select(vec![Asker::Question, Asker::Plan, Asker::Edit, Asker::Sandbox]);
    let then = prop_oneof![
        6 => select(vec![
            Fate::Cancelled,
            Fate::Expired,
            Fate::Crashed,
            Fate::Denied,
            Fate::Approved,
            Fate::Replaced,
        ]),
        1 => mode().prop_map(Fate::ModeSet),
    ];
    let asked = (by, there(), then).prop_map(|(by, there, then)| Scene::Asked { by, there, then });
    let other = select(vec![
        Scene::StoppedLate,
        Scene::BypassedLate,
        Scene::RuleInBypass,
        Scene::LongOutput,
        Scene::ClosedTwice,
    ]);
    prop_oneof![2 => asked.boxed(), 1 => other.boxed()]
}

fn last() -> impl Strategy<Value = Last> {
    prop_oneof![
        1 => Just(Last::Stopped),
        1 => Just(Last::Finished),
        1 => Just(Last::Refused),
        1 => failure().prop_map(Last::Failed),
    ]
}
