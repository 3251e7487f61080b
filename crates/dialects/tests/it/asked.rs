//! What a frame asks for, in the words of the fixtures.

use std::sync::Arc;

use polyloop_dialects::Ask;
use polyloop_session::command::WaitReply;
use polyloop_session::event::Event;
use polyloop_session::item::Part;
use polyloop_session::wait::{Answer, Who};
use polyloop_session::{Command, LogEntry, WaitRef};
use serde_json::{Value, json};

pub fn told(ask: &Ask) -> Value {
    match ask {
        Ask::ContextInfo => json!("context_info"),
        Ask::SettleWithPatch { wait, patch, always, .. } => {
            let wait = place(*wait);
            json!({"settle_with_patch": {"wait": wait, "patch": patch, "always": always}})
        }
        Ask::Command(command) => match command {
            Command::Send(send) => {
                let texts = send.content.iter().map(|Part::Text { text }| text.to_string());
                let texts: Vec<String> = texts.collect();
                let (client_ref, tokens) = (&send.client_ref, send.tokens);
                json!({"send": {"content": texts, "client_ref": client_ref, "tokens": tokens}})
            }
            Command::Settle { wait, reply: answer, .. } => {
                json!({"settle": {"wait": place(*wait), "reply": reply(answer)}})
            }
            Command::Interrupt { reason, .. } => json!({"interrupt": {"reason": reason}}),
            Command::Compact { .. } => json!("compact"),
            other => panic!("no client of this dialect can ask for {other:?}"),
        },
    }
}

pub fn by(ask: &Ask) -> Option<&Who> {
    match ask {
        Ask::ContextInfo => None,
        Ask::SettleWithPatch { by, .. } => Some(by),
        Ask::Command(command) => Some(match command {
            Command::Send(send) => &send.origin.who,
            Command::Drop { by, .. }
            | Command::Settle { by, .. }
            | Command::Interrupt { by, .. }
            | Command::Resume { by }
            | Command::Compact { by }
            | Command::SetMode { by, .. } => by,
        }),
    }
}

fn place(wait: WaitRef) -> Value {
    match wait {
        WaitRef::Presented => json!("presented"),
        WaitRef::Id(id) => json!(id),
    }
}

fn reply(reply: &WaitReply) -> Value {
    match reply {
        WaitReply::Approve => json!("approve"),
        WaitReply::ApproveAlways => json!("always"),
        WaitReply::Explain => json!("explain"),
        WaitReply::Deny { message, then } => json!({"deny": {"message": message, "then": then}}),
        WaitReply::ApproveInstead { .. } => panic!("only the agent judges a patch"),
    }
}

/// The command that the agent makes of an ask; `log` holds its judgement of a client's patch.
pub fn command(ask: Ask, log: &[Arc<LogEntry>]) -> Option<Command> {
    match ask {
        Ask::Command(command) => Some(command),
        Ask::ContextInfo => None,
        Ask::SettleWithPatch { wait, patch, always, by } => {
            let judged = log.iter().find_map(|entry| match &entry.event {
                Event::WaitSettled { answer: Answer::Approved { instead, .. }, .. } => {
                    instead.as_deref()
                }
                _ => None,
            })?;
            let args = json!({ "patch": patch }).to_string().into();
            let judgement = Box::new(judged.judgement.clone());
            let reply = WaitReply::ApproveInstead { args, judgement, always };
            Some(Command::Settle { wait, reply, by })
        }
    }
}
