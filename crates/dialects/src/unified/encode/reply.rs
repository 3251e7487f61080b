//! What one connection alone is told. The stamp says the session where the connection is attached
//! to it; elsewhere the message says itself that it is about none.

use polyloop_session::context::{Fullness, Strategy};
use polyloop_session::{SessionId, Timestamp};

use crate::tools::unified_name;
use crate::unified::wire::{
    ContextReport, ErrorTold, Fraction, Head, Heartbeat, SessionInfo, SessionInit, Status,
    TodoTold, Tokens, Told,
};
use crate::{Frame, Reply, reply, to_json};

pub(in crate::unified) fn reply(session: Option<&SessionId>, number: u64, reply: &Reply) -> Frame {
    let id = format!("evt-r{number}");
    match reply {
        Reply::Complaint(told) => frame(
            session,
            &id,
            &ErrorTold {
                message: &told.error,
                is_fatal: false,
                code: &told.code,
                client_ref: told.about.as_deref(),
            },
        ),
        Reply::ContextInfo(info) => frame(
            session,
            &id,
            &ContextReport {
                token_count: info.tokens,
                max_tokens: info.tokens_max,
                usage_percent: Fraction { part: info.tokens, whole: info.tokens_max },
                transcript_length: info.pieces,
                strategy: strategy_name(info.strategy),
                warning_level: Fullness::of(info.tokens, info.tokens_max).name(),
                session_usage: Tokens::of(&info.spent),
            },
        ),
        Reply::SessionInit(init) => frame(session, &id, &session_init(init)),
        Reply::SessionActive => frame(session, &id, &SessionInfo::new(Status::Active)),
        // No message of this dialect asks for these.
        Reply::Tools { .. } | Reply::Tool { .. } | Reply::Messages { .. } | Reply::Pong { .. } => {
            frame(
                session,
                &id,
                &ErrorTold {
                    message: "Not available: not part of this dialect",
                    is_fatal: false,
                    code: "internal",
                    client_ref: None,
                },
            )
        }
    }
}

pub(in crate::unified) fn heartbeat(
    session: Option<&SessionId>,
    number: u64,
    at: Timestamp,
) -> Frame {
    let own = Heartbeat { timestamp: at.0.div_euclid(1000) };
    frame(session, &format!("evt-h{number}"), &own)
}

fn session_init(init: &reply::SessionInit) -> SessionInit<'_> {
    SessionInit {
        model: &init.model,
        success: init.error.is_none(),
        cwd: &init.cwd,
        tools: init.tools.iter().map(|tool| unified_name(&tool.name)).collect(),
        permission_mode: init.mode_word,
        agent: init.agent.name(),
        title: init.title.as_deref(),
        todos: TodoTold::all(&init.todos),
        error: init.error.as_ref().map(|told| told.error.as_str()),
    }
}

fn strategy_name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Threshold => "threshold",
        Strategy::Dummy => "dummy",
    }
}

fn frame<T: Told>(session: Option<&SessionId>, id: &str, own: &T) -> Frame {
    let session_id = session.is_none().then_some("");
    Frame::unstamped(to_json(&Head { kind: T::TYPE, id, session_id, own }))
}
