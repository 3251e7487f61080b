//! What may happen to a session, as plain data that a failing case can be shrunk to.
//!
//! A pick chooses among what is there when the action is played, so every list of actions can be
//! played, and shrinking one action never spoils the rest.

use polyloop_session::Delivery;
use polyloop_session::event::{Adopted, RunOptions, Setting};
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Mode, Says};

use super::flaw::Flaw;

pub type Pick = u8;

#[derive(Clone, Debug)]
pub struct Start {
    /// Pieces of another program's file; without them the session is one of our own.
    pub adopted: Vec<Adopted>,
    /// Whether settings are written, as for every session of our own.
    pub created: bool,
    pub mode: Mode,
    pub calls_max: u32,
    pub bypass_allowed: bool,
    pub retries_max: u32,
    /// The window of the model that nobody chose.
    pub tokens_max: u64,
    /// Tokens that the session may use.
    pub budget: Option<u64>,
}

#[derive(Clone, Debug)]
pub enum Action {
    Send(Said),
    Cancel(Aim),
    Settle {
        wait: Wanted,
        reply: Reply,
    },
    /// With a pick: a turn by its id, mostly the one that runs.
    Interrupt(Option<Pick>),
    Resume,
    Compact,
    SetMode(Mode),
    Set(Setting),
    Close,
    Reopen,
    /// Whatever brings the session on: speak, answer, reply, or end a tool.
    Go(Box<Go>),
    /// A block begins; with a number it may be one that is open already.
    Begin {
        call: Pick,
        kind: Kind,
        block: Option<u8>,
    },
    Grow {
        item: Pick,
        text: &'static str,
        again: u8,
    },
    EndBlock {
        item: Pick,
        signed: bool,
    },
    /// The call ends well; calls beyond the judged ones were left incomplete.
    Answer {
        call: Pick,
        judged: Vec<Judged>,
        there: There,
    },
    /// A whole reply at once: blocks, their text, and the end of the call.
    Say {
        call: Pick,
        blocks: Vec<(Kind, &'static str)>,
        judged: Vec<Judged>,
        there: There,
    },
    /// The call fails, and what is made in its place, each after it began to say something.
    Fail {
        call: Pick,
        blocks: Vec<(Kind, &'static str)>,
        failures: Vec<Failure>,
    },
    /// The conversation does not fit, is summarised so, and perhaps does not fit even then.
    Overflow {
        summary: &'static str,
        again: bool,
    },
    Stopped(Pick),
    EndTool {
        item: Pick,
        end: End,
        seen: bool,
    },
    /// The sandbox stops a tool that runs; nothing comes of it for one that is not in the sandbox.
    StopTool {
        item: Pick,
        halt: Halted,
    },
    /// The model proposes a command that runs in the sandbox, which stops it.
    Escape(Halted),
    /// A report about any number, mostly of nothing that is open.
    Stray {
        about: u16,
        report: Stray,
    },
    Notice,
    Expire {
        after_ms: i64,
    },
    /// The process dies after so many more entries.
    Fuse(u8),
    /// `lost`: the journal is gone too.
    Crash {
        again: Option<u8>,
        lost: bool,
    },
    /// A tool that runs says which files it is about to change.
    Touch(Pick),
    /// Edits are taken back.
    Undo {
        kind: u8,
        about: u16,
    },
    /// All comes to rest, and an edit is taken back, and that again. With a number the process dies
    /// after so many entries of it.
    Redo(Option<u8>),
    Fork,
    /// All comes to rest, and something begins that is rarely met by chance.
    Scene(Scene),
    /// An interrupt, after which every performer reports as it likes.
    Drain(Vec<Last>),
}

#[derive(Clone, Copy, Debug)]
pub enum Scene {
    /// A person is asked, and this is what comes of it.
    Asked {
        by: Asker,
        there: There,
        then: Fate,
    },
    /// The sandbox stops a run in the moment in which the turn is stopped.
    StoppedLate,
    /// The sandbox stops a run, and the mode lets it run outside by then.
    BypassedLate,
    /// A rule asks where nobody else would.
    RuleInBypass,
    /// A tool prints much.
    LongOutput,
    ClosedTwice,
}

/// Why a person is asked.
#[derive(Clone, Copy, Debug)]
pub enum Asker {
    Question,
    Plan,
    Edit,
    Sandbox,
}

/// What becomes of a wait.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    Cancelled,
    Expired,
    Crashed,
    Denied,
    Approved,
    /// With other arguments, which are never allowed.
    Replaced,
    /// It stays, and the mode is set.
    ModeSet(Mode),
}

#[derive(Clone, Debug)]
pub struct Said {
    pub text: &'static str,
    /// A picture's data.
    pub image: Option<&'static str>,
    pub can_approve: bool,
    pub client_ref: Option<&'static str>,
    pub delivery: Delivery,
    pub run: Option<RunOptions>,
}

/// How the sandbox stops a run.
#[derive(Clone, Copy, Debug)]
pub struct Halted {
    /// What was printed before.
    pub printed: &'static str,
    /// The mode was changed while it ran.
    pub mode: Option<Mode>,
    pub seen: bool,
    pub exit_code: Option<i32>,
    pub there: There,
    /// The process dies after so many more entries.
    pub fuse: Option<u8>,
}

/// What is to be cancelled.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    Queued(Pick),
    /// The message of the running turn, by its id.
    Running,
    Named(&'static str),
    Wait(Wanted),
}

/// Who is there when a reply proposes something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum There {
    All,
    Answerer,
    Nobody,
}

#[derive(Clone, Debug)]
pub struct Go {
    pub pick: Pick,
    pub said: Said,
    pub reply: Reply,
    pub blocks: Vec<(Kind, &'static str)>,
    pub judged: Vec<Judged>,
    pub end: End,
    /// The sandbox stops what it can stop.
    pub stopped: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    Presented,
    Open(Pick),
    /// By the item that it is about.
    About(Pick),
    /// One of the last that were opened: mostly settled or withdrawn by now.
    Recent(u8),
}

#[derive(Clone, Debug)]
pub enum Reply {
    Approve(Option<&'static str>),
    Always,
    Instead(Judged),
    Deny {
        message: Option<&'static str>,
        ends: bool,
    },
    Explain,
    /// Places of questions, and words.
    Form(Vec<(u64, Vec<&'static str>)>),
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Text,
    Reasoning,
    Tool,
}

#[derive(Clone, Debug)]
pub struct Judged {
    pub effect: Effect,
    pub safe: bool,
    pub confined: bool,
    pub sandbox: bool,
    pub refused: bool,
    pub risky: bool,
    pub keys: Vec<&'static str>,
    /// What a line of the rules file says of it.
    pub rule: Option<Says>,
}

#[derive(Clone, Copy, Debug)]
pub enum Stray {
    BlockStarted,
    BlockEnded,
    Answered,
    Failed(Failure),
    Stopped,
    ToolEnded,
    ToolStopped,
    ToolTouches,
}

#[derive(Clone, Copy, Debug)]
pub struct Failure {
    pub flaw: Flaw,
    pub chance: u16,
}

/// The last word of a performer that was told to stop.
#[derive(Clone, Copy, Debug)]
pub enum Last {
    Stopped,
    /// It had finished before it heard.
    Finished,
    /// The sandbox stopped it before it heard, if it ran in one.
    Refused,
    Failed(Failure),
}
