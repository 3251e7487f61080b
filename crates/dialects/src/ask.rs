//! What clients want, once a dialect has read it.

use polyloop_session::command::Send;
use polyloop_session::event::Agent;
use polyloop_session::policy::Mode;
use polyloop_session::wait::Who;
use polyloop_session::{Command, Refusal, SessionId, Text, WaitId, WaitRef};

use crate::reply::ToolForm;

/// Who speaks on a connection.
#[derive(Clone, Debug)]
pub struct Client {
    pub who: Who,
    /// The session it named when it came, or the first it spoke in.
    pub session: Option<SessionId>,
    /// All sessions it is attached to.
    pub attached: Vec<SessionId>,
    /// The wait it was last shown: what an answer that names none is an answer to.
    pub shown: Option<WaitId>,
}

/// One client message, read.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The session that the message names.
    pub session: Option<SessionId>,
    pub ask: Ask,
    /// The client's own id of the request, where an error about it says so.
    pub about: Option<Text>,
    /// What the client calls itself or a mode, from now on.
    pub names: Vec<Name>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    Client(Text),
    Mode(Mode, &'static str),
}

impl Asked {
    pub fn new(session: Option<SessionId>, ask: Ask) -> Asked {
        Asked { session, ask, about: None, names: Vec::new() }
    }
}

impl From<Ask> for Asked {
    fn from(ask: Ask) -> Asked {
        Asked::new(None, ask)
    }
}

impl From<Command> for Asked {
    fn from(command: Command) -> Asked {
        Asked::new(None, Ask::Command(command))
    }
}

/// What a client wants, of its session or of the server.
#[derive(Clone, Debug)]
pub enum Ask {
    Command(Command),
    /// Approve with another patch, which the agent judges first.
    SettleWithPatch {
        wait: WaitRef,
        patch: Text,
        always: bool,
        by: Who,
    },
    ContextInfo,
    /// Begin the session, or open it again.
    Start(Start),
    /// Another model, if the server has it.
    SetModel {
        model: Text,
        by: Who,
    },
    /// One run: a message with options of its own.
    Run(Box<RunAsk>),
    Tools {
        id: Text,
        folder: Option<Text>,
    },
    Tool {
        id: Text,
        name: Text,
        form: ToolForm,
        folder: Option<Text>,
    },
    Messages {
        id: Text,
        thread: SessionId,
        before: Option<u64>,
        limit: Option<u32>,
    },
    Ping {
        id: Text,
    },
}

/// What a session is to be like; nothing leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    pub mode: Option<Mode>,
    pub calls_max: Option<u32>,
    /// JSON text.
    pub metadata: Option<Text>,
    pub agent: Option<Agent>,
    pub model: Option<Text>,
    pub cwd: Option<Text>,
    pub title: Option<Text>,
}

#[derive(Clone, Debug)]
pub struct RunAsk {
    /// The run's options but for its folder, which must be looked at first.
    pub send: Send,
    pub folder: Option<Text>,
}

/// What is wrong with a frame, a request, or the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    pub message: String,
    /// What exactly, for people.
    pub error: String,
    /// A short word for programs.
    pub code: String,
    /// The client's own id of what is complained of, where the dialect says it.
    pub about: Option<Text>,
    /// Its own id of a run that was refused, which has no id of ours.
    pub request: Option<Text>,
}

impl Complaint {
    pub fn new(message: &str, error: impl Into<String>, code: &str) -> Complaint {
        let (message, error, code) = (message.into(), error.into(), code.into());
        Complaint { message, error, code, about: None, request: None }
    }

    pub fn about(self, id: Option<Text>) -> Complaint {
        Complaint { about: id, ..self }
    }
}

impl From<&Refusal> for Complaint {
    fn from(refusal: &Refusal) -> Complaint {
        let told = refusal.to_string();
        let message = match refusal {
            // Whoever names no request answers nothing that is pending; the rest is detail.
            Refusal::AlreadySettled { .. } | Refusal::Withdrawn => {
                Refusal::NoPendingApproval.to_string()
            }
            _ => told.clone(),
        };
        Complaint::new(&message, told, refusal.code())
    }
}
