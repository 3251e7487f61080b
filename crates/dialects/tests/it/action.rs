//! What may happen to a random session, as plain data that a failing case can be shrunk to.
//!
//! A pick chooses among what is there when the action is played, so every list can be played.

use polyloop_session::Heal;
use polyloop_session::event::Adopted;
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Mode};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use super::make::parts;

pub type Pick = u8;

#[derive(Clone, Debug)]
pub struct Start {
    pub adopted: Vec<Option<Adopted>>,
    pub mode: Mode,
}

#[derive(Clone, Debug)]
pub enum Action {
    /// It may answer what is open.
    Send {
        text: String,
        answers: bool,
        consents: bool,
        /// As a run of its own kind.
        run: bool,
    },
    Begin {
        call: Pick,
        kind: Kind,
    },
    Grow {
        item: Pick,
        text: String,
    },
    EndBlock(Pick),
    Answer {
        call: Pick,
        judged: Vec<Effect>,
    },
    /// A whole reply: each block begins and grows, then the call ends.
    Say {
        call: Pick,
        blocks: Vec<(Kind, String)>,
        judged: Vec<Effect>,
    },
    /// All that is open goes on for some rounds, as a model would have it.
    Work {
        seed: Pick,
        rounds: u8,
    },
    /// It begins to say something, and fails.
    Fail {
        call: Pick,
        blocks: Vec<(Kind, String)>,
        heal: Heal,
    },
    Stopped(Pick),
    EndTool {
        item: Pick,
        end: End,
        seen: bool,
    },
    /// The sandbox stops it, if it runs in one.
    StopTool {
        item: Pick,
        seen: bool,
        answerable: bool,
    },
    /// A command begins to print in the sandbox, which stops it; somebody may answer at once.
    Escape {
        text: String,
        seen: bool,
        answerable: bool,
        reply: Option<Reply>,
    },
    Settle(Reply),
    Interrupt,
    Resume,
    /// It is stopped, and taken up at once.
    Again,
    Compact,
    Notice(String),
    Crash,
    /// A queued message, or the turn, or what is asked.
    Cancel(Cancel),
    Mode(Mode),
    Title(String),
    Close,
    Reopen,
}

#[derive(Clone, Copy, Debug)]
pub enum Cancel {
    Message(Pick),
    Wait,
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    Reasoning,
    Tool,
    Question,
    Plan,
}

#[derive(Clone, Debug)]
pub enum Reply {
    Approve,
    Always,
    Instead(String),
    Deny {
        message: Option<String>,
        ends: bool,
    },
    Explain,
    /// To a question, from a form.
    Choose(String),
}

const ACTIONS_MAX: usize = 40;

pub fn sessions() -> impl Strategy<Value = (Start, Vec<Action>)> {
    (start(), vec(action(), 1..ACTIONS_MAX))
}

fn start() -> impl Strategy<Value = Start> {
    let adopted = prop_oneof![3 => Just(Vec::new()), 1 => vec(adopted(), 1..5)];
    let mode = prop_oneof![
        6 => Just(Mode::Suggest),
        1 => Just(Mode::AutoEdit),
        1 => Just(Mode::FullAuto),
        1 => Just(Mode::Plan),
        1 => Just(Mode::Bypass),
    ];
    (adopted, mode).prop_map(|(adopted, mode)| Start { adopted, mode })
}

fn adopted() -> impl Strategy<Value = Option<Adopted>> {
    let call = |call_ref: &'static str| Adopted::ToolCall {
        call_ref: call_ref.into(),
        name: "shell".into(),
        args: "{}".into(),
    };
    let result = |call_ref: &'static str| Adopted::ToolResult {
        call_ref: call_ref.into(),
        output: "done".into(),
    };
    prop_oneof![
        1 => Just(None),
        1 => said().prop_map(|text| Some(Adopted::User { content: parts(&text) })),
        2 => "[a-zé]{1,5}".prop_map(|text| Some(Adopted::Agent { text: text.into() })),
        1 => select(vec!["a1", "a2"]).prop_map(move |call_ref| Some(call(call_ref))),
        1 => select(vec!["a1", "a2"]).prop_map(move |call_ref| Some(result(call_ref))),
    ]
}

/// Weighed so that turns get somewhere.
fn action() -> impl Strategy<Value = Action> {
    let (pick, judged) = (any::<Pick>, || vec(effect(), 0..4));
    prop_oneof![
        5 => (said(), weighted(0.5, any::<bool>()), any::<bool>()).prop_map(
            |(text, answer, run)| Action::Send {
                text,
                answers: answer.is_some(),
                consents: answer.unwrap_or(false),
                run,
            }
        ),
        4 => (pick(), kind()).prop_map(|(call, kind)| Action::Begin { call, kind }),
        9 => (pick(), said()).prop_map(|(item, text)| Action::Grow { item, text }),
        2 => pick().prop_map(Action::EndBlock),
        2 => (pick(), judged()).prop_map(|(call, judged)| Action::Answer { call, judged }),
        9 => (pick(), vec((kind(), said()), 1..4), judged())
            .prop_map(|(call, blocks, judged)| Action::Say { call, blocks, judged }),
        7 => (pick(), 1..12_u8).prop_map(|(seed, rounds)| Action::Work { seed, rounds }),
        6 => (pick(), vec((kind(), said()), 0..3), heal())
            .prop_map(|(call, blocks, heal)| Action::Fail { call, blocks, heal }),
        2 => pick().prop_map(Action::Stopped),
        5 => (pick(), end(), any::<bool>())
            .prop_map(|(item, end, seen)| Action::EndTool { item, end, seen }),
        1 => (pick(), any::<bool>(), any::<bool>())
            .prop_map(|(item, seen, answerable)| Action::StopTool { item, seen, answerable }),
        6 => (said(), any::<bool>(), weighted(0.8, Just(())), weighted(0.5, reply())).prop_map(
            |(text, seen, there, reply)| {
                Action::Escape { text, seen, answerable: there.is_some(), reply }
            }
        ),
        8 => reply().prop_map(Action::Settle),
        1 => Just(Action::Interrupt),
        1 => Just(Action::Resume),
        3 => Just(Action::Again),
        3 => Just(Action::Compact),
        2 => said().prop_map(Action::Notice),
        1 => Just(Action::Crash),
        1 => prop_oneof![
            2 => pick().prop_map(Cancel::Message),
            1 => Just(Cancel::Wait),
        ].prop_map(Action::Cancel),
        1 => select(vec![Mode::Suggest, Mode::Plan, Mode::FullAuto]).prop_map(Action::Mode),
        1 => said().prop_map(Action::Title),
        1 => select(vec![Action::Close, Action::Reopen]),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        8 => Just(Kind::Text),
        2 => Just(Kind::Reasoning),
        6 => Just(Kind::Tool),
        2 => Just(Kind::Question),
        1 => Just(Kind::Plan),
    ]
}

fn effect() -> impl Strategy<Value = Effect> {
    prop_oneof![1 => Just(Effect::Read), 1 => Just(Effect::Edit), 3 => Just(Effect::Execute)]
}

fn end() -> impl Strategy<Value = End> {
    select(vec![End::Whole, End::Whole, End::Failed, End::Interrupted])
}

fn heal() -> impl Strategy<Value = Heal> {
    let later = |after_ms| Heal::Later { after_ms };
    prop_oneof![
        1 => Just(Heal::Never),
        1 => Just(later(None)),
        1 => Just(later(Some(3_000))),
        1 => Just(Heal::Once),
        3 => Just(Heal::Shorter),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let denied = (weighted(0.5, said()), any::<bool>());
    prop_oneof![
        5 => Just(Reply::Approve),
        1 => Just(Reply::Always),
        1 => said().prop_map(Reply::Instead),
        3 => denied.prop_map(|(message, ends)| Reply::Deny { message, ends }),
        3 => Just(Reply::Explain),
        2 => said().prop_map(Reply::Choose),
    ]
}

/// Short, and often not ASCII, so that cursors point everywhere.
fn said() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-cé🦀\n\"]{1,8}", 1 => Just(String::new()), 1 => ".{1,12}"]
}
