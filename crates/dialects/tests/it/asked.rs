//! What a frame asks for, in the words of the fixtures.

use std::sync::Arc;

use polyloop_dialects::{Ask, RunAsk, Start, ToolForm};
use polyloop_session::command::{Send, Target, WaitReply};
use polyloop_session::event::Event;
use polyloop_session::item::Part;
use polyloop_session::wait::{Answer, Who};
use polyloop_session::{Command, Delivery, LogEntry, WaitRef};
use serde_json::{Value, json};

pub fn told(ask: &Ask) -> Value {
    match ask {
        Ask::ContextInfo => json!("context_info"),
        Ask::SettleWithPatch { wait, patch, always, .. } => {
            let wait = place(*wait);
            json!({"settle_with_patch": {"wait": wait, "patch": patch, "always": always}})
        }
        Ask::Start(start) => json!({ "start": started(start) }),
        Ask::SetModel { model, .. } => json!({ "set_model": model }),
        Ask::Run(run) => {
            let RunAsk { send, folder } = &**run;
            let (mut told, run) = (sent(send), send.run.as_deref());
            told["run"] = serde_json::to_value(run).unwrap();
            told["folder"] = json!(folder);
            told["can_approve"] = json!(send.origin.can_approve);
            json!({ "run": told })
        }
        Ask::Tools { id, folder } => json!({"tools": {"id": id, "folder": folder}}),
        Ask::Tool { id, name, form, folder } => {
            let form = match form {
                ToolForm::Yaml => "yaml",
                ToolForm::Json => "json",
            };
            json!({"tool": {"id": id, "name": name, "form": form, "folder": folder}})
        }
        Ask::Messages { id, thread, before, limit } => {
            json!({"messages": {"id": id, "thread": thread, "before": before, "limit": limit}})
        }
        Ask::Ping { id } => json!({ "ping": id }),
        Ask::Command(command) => commanded(command),
    }
}

fn commanded(command: &Command) -> Value {
    match command {
        Command::Send(send) => json!({ "send": sent(send) }),
        Command::Cancel { target, .. } => json!({"cancel": match target {
            Target::Message(message) => json!({ "message": message }),
            Target::ClientRef(name) => json!({ "client_ref": name }),
            Target::Wait(wait) => json!({ "wait": wait }),
        }}),
        Command::Settle { wait, reply: answer, .. } => {
            json!({"settle": {"wait": place(*wait), "reply": reply(answer)}})
        }
        Command::Interrupt { turn: None, reason, .. } => json!({"interrupt": {"reason": reason}}),
        Command::Interrupt { turn: Some(turn), reason, .. } => {
            json!({"interrupt": {"turn": turn, "reason": reason}})
        }
        Command::Resume { .. } => json!("resume"),
        Command::Compact { .. } => json!("compact"),
        Command::SetMode { mode, .. } => json!({ "set_mode": mode }),
        Command::Set { setting, .. } => json!({ "set": setting }),
        Command::Close { .. } => json!("close"),
        Command::Reopen { .. } => json!("reopen"),
    }
}

/// `delivery` is left out where the message always queues; a text stands for its part.
fn sent(send: &Send) -> Value {
    let part = |part: &Part| match part {
        Part::Text { text } => json!(text),
        Part::Image { media_type, data } => json!({"image": media_type, "data": data}),
    };
    let parts: Vec<Value> = send.content.iter().map(part).collect();
    let mut told = json!({"content": parts, "client_ref": send.client_ref, "tokens": send.tokens});
    match send.delivery {
        Delivery::Queue => {}
        Delivery::AnswerQuestion => told["answers"] = json!("question"),
        Delivery::Answer { consents: false } => told["answers"] = json!("any"),
        Delivery::Answer { consents: true } => told["answers"] = json!("consents"),
    }
    told
}

fn started(start: &Start) -> Value {
    let Start { mode, calls_max, metadata, agent, model, cwd, title } = start;
    let metadata: Option<Value> =
        metadata.as_deref().map(|json| serde_json::from_str(json).unwrap());
    let mut told = json!({
        "mode": mode, "calls_max": calls_max, "metadata": metadata, "agent": agent,
        "model": model, "cwd": cwd, "title": title,
    });
    told.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    told
}

pub fn by(ask: &Ask) -> Option<&Who> {
    match ask {
        Ask::ContextInfo
        | Ask::Start(_)
        | Ask::Tools { .. }
        | Ask::Tool { .. }
        | Ask::Messages { .. }
        | Ask::Ping { .. } => None,
        Ask::SettleWithPatch { by, .. } | Ask::SetModel { by, .. } => Some(by),
        Ask::Run(run) => Some(&run.send.origin.who),
        Ask::Command(command) => Some(match command {
            Command::Send(send) => &send.origin.who,
            Command::Cancel { by, .. }
            | Command::Settle { by, .. }
            | Command::Interrupt { by, .. }
            | Command::Resume { by }
            | Command::Compact { by }
            | Command::SetMode { by, .. }
            | Command::Set { by, .. }
            | Command::Close { by }
            | Command::Reopen { by } => by,
        }),
    }
}

fn place(wait: WaitRef) -> Value {
    match wait {
        WaitRef::Presented => json!("presented"),
        WaitRef::Id(id) => json!(id),
        WaitRef::Item(item) => json!({ "item": item }),
    }
}

fn reply(reply: &WaitReply) -> Value {
    match reply {
        WaitReply::Approve { message: None } => json!("approve"),
        WaitReply::Approve { message } => json!({"approve": {"message": message}}),
        WaitReply::ApproveAlways => json!("always"),
        WaitReply::Explain => json!("explain"),
        WaitReply::Deny { message, then } => json!({"deny": {"message": message, "then": then}}),
        WaitReply::Answer { answers } => json!({ "answer": answers }),
        WaitReply::ApproveInstead { .. } => panic!("only the agent judges a patch"),
    }
}

/// The command that the agent makes of an ask; `log` holds its judgement of a client's patch.
pub fn command(ask: Ask, log: &[Arc<LogEntry>]) -> Option<Command> {
    match ask {
        Ask::Command(command) => Some(command),
        Ask::Run(run) => Some(Command::Send(Box::new(run.send))),
        Ask::ContextInfo
        | Ask::Start(_)
        | Ask::SetModel { .. }
        | Ask::Tools { .. }
        | Ask::Tool { .. }
        | Ask::Messages { .. }
        | Ask::Ping { .. } => None,
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
