//! Client frames into asks. Total: whatever comes in, an ask or a complaint comes out.
//!
//! A complaint about a request that is answered under its own `id` names that id; a frame that
//! could not be read has none, and neither has a `run`: the `id` of an error beside a run is a
//! run's id, and a run that was refused never got one.

use std::num::NonZeroU32;

use polyloop_session::command::{Send, WaitReply};
use polyloop_session::event::{Agent, Origin, RunOptions};
use polyloop_session::id::BadSessionId;
use polyloop_session::item::Part;
use polyloop_session::state::estimate_tokens;
use polyloop_session::wait::Then;
use polyloop_session::{Command, Delivery, ItemId, Seq, SessionId, Text, TurnId, WaitRef};
use serde::de::DeserializeOwned;

use super::encode::REQUEST_ID_BYTES_MAX;
use super::wire::bounds;
use super::wire::client::{self, Kind};
use crate::ids::Ids;
use crate::reply::ToolForm;
use crate::{Ask, Asked, Client, Complaint, RunAsk, Unread, bounded, from_json, shown};

const CANCEL_REASON: &str = "Run cancelled";

pub(super) fn decode(frame: &str, client: &Client) -> Result<Asked, Complaint> {
    // A list of values in the right order would be read like an object.
    if !frame.trim_start().starts_with('{') {
        return Err(unread("a request is one JSON object".into()));
    }
    let Kind { kind } = read(frame)?;
    match kind.as_str() {
        "run" => run(read(frame)?, client),
        "tools_list" => tools_list(read(frame)?),
        "tool_show" => tool_show(read(frame)?),
        "user_messages" => user_messages(read(frame)?),
        "ping" => {
            let client::Ping { id } = read(frame)?;
            Ok(Ask::Ping { id: id.into() }.into())
        }
        "cancel_run" => cancel_run(read(frame)?, client),
        "tool_approval_response" => approval(read(frame)?, client),
        other => {
            let known = "run, tools_list, tool_show, user_messages, ping, cancel_run, \
                         tool_approval_response";
            Err(unread(format!("type: unknown \"{}\"; use one of {known}", shown(other))))
        }
    }
}

fn read<T: DeserializeOwned>(frame: &str) -> Result<T, Complaint> {
    from_json(frame).map_err(|Unread { at, why }| {
        let place = if at == "." || at == "?" { String::new() } else { format!("{at}: ") };
        unread(format!("{place}{why}"))
    })
}

fn unread(why: String) -> Complaint {
    Complaint::new("parse error", bounded(format!("parse error: {why}")), "parse_error")
}

fn refused(error: String, code: &str) -> Complaint {
    Complaint::new(&error, error.clone(), code)
}

fn run(asked: client::Run, client: &Client) -> Result<Asked, Complaint> {
    if let Some(id) = asked.id.as_ref().filter(|id| id.len() > REQUEST_ID_BYTES_MAX) {
        let told = format!("id: {} bytes, at most {REQUEST_ID_BYTES_MAX}", id.len());
        return Err(refused(told, "id_too_long"));
    }
    let thread = asked.thread_id.as_deref().map(thread).transpose()?;
    let answers = asked.approvals == Some(true);
    let adaptive = adaptive(asked.got_adaptive, asked.got.and_then(|got| got.adaptive))?;
    let options = RunOptions {
        agent: Some(agent(asked.agent)),
        adaptive: adaptive == Some(true),
        cwd: None, // The server looks at the folder first.
        calls_max: asked.max_turns.map(NonZeroU32::get),
        bounds: bounds::wanted(asked.tot, asked.got, adaptive),
        verbose: asked.verbose == Some(true),
        alone: thread.is_none(),
    };
    let send = Send {
        tokens: estimate_tokens(asked.message.len()),
        content: vec![Part::Text { text: asked.message.into() }],
        origin: Origin { who: client.who.clone(), can_approve: answers, can_answer: answers },
        client_ref: asked.id.map(Into::into),
        delivery: Delivery::Queue,
        run: Some(Box::new(options)),
    };
    let folder = asked.working_folder.map(Into::into);
    Ok(Asked::new(thread, Ask::Run(Box::new(RunAsk { send, folder }))))
}

/// It can be said in two places.
fn adaptive(seed: Option<bool>, own: Option<bool>) -> Result<Option<bool>, Complaint> {
    match (seed, own) {
        (Some(one), Some(other)) if one != other => {
            Err(unread(format!("got.adaptive: {other}, and got_adaptive is {one}; give one")))
        }
        _ => Ok(seed.or(own)),
    }
}

fn agent(agent: client::Agent) -> Agent {
    match agent {
        client::Agent::React => Agent::React,
        client::Agent::Dup => Agent::Dup,
        client::Agent::Tot => Agent::Tot,
        client::Agent::Got => Agent::Got,
    }
}

fn thread(id: &str) -> Result<SessionId, Complaint> {
    SessionId::parse(id).map_err(|BadSessionId| {
        let told = format!("thread_id: \"{}\" cannot be one. {BadSessionId}", shown(id));
        refused(told, "bad_thread_id")
    })
}

/// Tools are the same in every thread, so a thread is looked at and not used.
fn tools_list(asked: client::ToolsList) -> Result<Asked, Complaint> {
    let id: Text = asked.id.into();
    scope(asked.thread_id.as_deref(), &id)?;
    let ask = Ask::Tools { id: id.clone(), folder: asked.working_folder.map(Into::into) };
    Ok(Asked { about: Some(id), ..ask.into() })
}

fn tool_show(asked: client::ToolShow) -> Result<Asked, Complaint> {
    let id: Text = asked.id.into();
    scope(asked.thread_id.as_deref(), &id)?;
    let form = match asked.output {
        None | Some(client::Output::Yaml) => ToolForm::Yaml,
        Some(client::Output::Json) => ToolForm::Json,
    };
    let folder = asked.working_folder.map(Into::into);
    let ask = Ask::Tool { id: id.clone(), name: asked.name.into(), form, folder };
    Ok(Asked { about: Some(id), ..ask.into() })
}

fn scope(id: Option<&str>, about: &Text) -> Result<(), Complaint> {
    let checked = id.map(thread).transpose();
    checked.map(|_| ()).map_err(|told| told.about(Some(about.clone())))
}

fn user_messages(asked: client::UserMessages) -> Result<Asked, Complaint> {
    let id: Text = asked.id.into();
    let about = |told: Complaint| told.about(Some(id.clone()));
    if asked.thread_id.is_empty() {
        return Err(about(refused("thread_id is required".into(), "thread_id_required")));
    }
    let thread = thread(&asked.thread_id).map_err(about)?;
    let about = Some(id.clone());
    let ask = Ask::Messages { id, thread, before: asked.before, limit: asked.limit };
    Ok(Asked { about, ..ask.into() })
}

fn cancel_run(asked: client::CancelRun, client: &Client) -> Result<Asked, Complaint> {
    let id: Text = asked.id.into();
    let (session, turn) = named(&asked.run_id, &id, client)?;
    let (reason, by) = (CANCEL_REASON.into(), client.who.clone());
    let command = Command::Interrupt { turn: Some(turn), reason, by };
    Ok(Asked { about: Some(id), ..Asked::new(Some(session), Ask::Command(command)) })
}

fn approval(asked: client::ToolApprovalResponse, client: &Client) -> Result<Asked, Complaint> {
    let id: Text = asked.id.into();
    let (session, turn) = named(&asked.run_id, &id, client)?;
    let Some(item) = called(&asked.call_id).filter(|item| item.0 > turn.0) else {
        let told = format!("call_id: \"{}\" is no call of that run", shown(&asked.call_id));
        return Err(refused(told, "no_such_call").about(Some(id)));
    };
    let message = asked.message.map(Into::into);
    let reply = match asked.approved {
        true => WaitReply::Approve { message },
        false => WaitReply::Deny { message, then: Then::Continue },
    };
    let (wait, by) = (WaitRef::Item(item), client.who.clone());
    let ask = Ask::Command(Command::Settle { wait, reply, by });
    Ok(Asked { about: Some(id), ..Asked::new(Some(session), ask) })
}

/// The session and the turn that a run's id names, among those that the client has seen.
fn named(run: &str, about: &Text, client: &Client) -> Result<(SessionId, TurnId), Complaint> {
    let found = run.strip_prefix("run-").and_then(|id| {
        let of = |session: &SessionId| {
            Ids::new(Some(session)).turn(id).map(|turn| (session.clone(), turn))
        };
        client.attached.iter().find_map(of)
    });
    found.ok_or_else(|| {
        let told = format!("Run {} not found or already completed", shown(run));
        refused(told, "no_such_run").about(Some(about.clone()))
    })
}

fn called(call_id: &str) -> Option<ItemId> {
    let digits = call_id.strip_prefix("call_")?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    let seq = digits.parse().ok().filter(|_| all_digits)?;
    Some(ItemId(Seq(seq)))
}
