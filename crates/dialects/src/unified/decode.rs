//! Client frames into asks. Total: whatever comes in, an ask or a complaint comes out.

use polyloop_session::command::{Send, WaitReply};
use polyloop_session::event::{Agent, Origin, Setting};
use polyloop_session::item::Part;
use polyloop_session::policy::Mode;
use polyloop_session::wait::{Then, Who};
use polyloop_session::{
    Command, Delivery, ItemId, MessageId, Refusal, Seq, SessionId, Target, Text, WaitId, WaitRef,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::wire::{
    Cancel, Envelope, Interrupt, PermissionResponse, PlanApprovalResponse, SessionStart, SetAgent,
    SetModel, SetPermissionMode, UserMessage, UserQuestionResponse, is_shallow,
};
use crate::image;
use crate::{Ask, Asked, Client, Complaint, Name, Start, Unread, bounded, from_json, shown};

/// The types of the protocol's documents.
pub(super) const DOCUMENTED: [&str; 10] = [
    "session_start",
    "session_end",
    "set_permission_mode",
    "user_message",
    "permission_response",
    "user_question_response",
    "plan_approval_response",
    "interrupt",
    "resume",
    "cancel",
];
const ADDED: [&str; 4] = ["compact", "get_context", "set_model", "set_agent"];
const BAD_FORMAT: &str = "Invalid message format";
const DEFAULT_REASON: &str = "User requested stop";
const NAME_CHARS_MAX: usize = 64;
/// Of one message.
const IMAGES_MAX: usize = 32;

pub(super) fn decode(frame: &str, client: &Client) -> Result<Asked, Complaint> {
    let Envelope { kind, id, session_id } = read(frame, "bad_message")?;
    let id: Option<Text> = id.map(Into::into);
    let asked = || {
        if !DOCUMENTED.contains(&kind.as_str()) && !ADDED.contains(&kind.as_str()) {
            return Err(unknown_type(&kind));
        }
        let session = session(session_id.as_deref(), client)?;
        let mut names = Vec::new();
        let ask = ask(&kind, frame, id.clone(), client.who.clone(), &mut names)?;
        Ok(Asked { session: Some(session), ask, about: id.clone(), names })
    };
    asked().map_err(|complaint: Complaint| complaint.about(id.clone()))
}

fn ask(
    kind: &str,
    frame: &str,
    id: Option<Text>,
    by: Who,
    names: &mut Vec<Name>,
) -> Result<Ask, Complaint> {
    let command = match kind {
        "session_start" => return session_start(own(frame)?, names).map(Ask::Start),
        "session_end" => Command::Close { by },
        "set_permission_mode" => {
            let SetPermissionMode { mode } = own(frame)?;
            let (mode, word) = permission_mode("mode", &mode)?;
            names.push(Name::Mode(mode, word));
            Command::SetMode { mode, by }
        }
        "user_message" => user_message(own(frame)?, id, by)?,
        "permission_response" => permission(own(frame)?, by)?,
        "user_question_response" => question_answer(own(frame)?, by)?,
        "plan_approval_response" => plan_answer(own(frame)?, by)?,
        "interrupt" => {
            let Interrupt { reason } = own(frame)?;
            let reason = reason.filter(|reason| !reason.trim().is_empty());
            let reason = reason.as_deref().unwrap_or(DEFAULT_REASON).into();
            Command::Interrupt { turn: None, reason, by }
        }
        "resume" => Command::Resume { by },
        "cancel" => {
            let Cancel { target_id } = own(frame)?;
            let (wait, message) = (place(&target_id, "req-"), place(&target_id, "queued-"));
            let target = match (wait, message) {
                (Some(wait), _) => Target::Wait(WaitId(wait)),
                (None, Some(message)) => Target::Message(MessageId(message)),
                (None, None) => Target::ClientRef(target_id.into()),
            };
            Command::Cancel { target, by }
        }
        "compact" => Command::Compact { by },
        "get_context" => return Ok(Ask::ContextInfo),
        "set_model" => {
            let SetModel { model } = own(frame)?;
            return Ok(Ask::SetModel { model: model.into(), by });
        }
        "set_agent" => {
            let SetAgent { agent } = own(frame)?;
            Command::Set { setting: Setting::Agent { agent: agent_kind(&agent)? }, by }
        }
        other => return Err(unknown_type(other)),
    };
    Ok(Ask::Command(command))
}

fn unknown_type(kind: &str) -> Complaint {
    let message = format!("Unknown message type: {}", shown(kind));
    let known = [&DOCUMENTED[..], &ADDED[..]].concat().join(", ");
    let error = format!("{message}; this dialect has {known}");
    Complaint::new(&message, error, "unknown_type")
}

/// The fields that are a message's own.
fn own<T: DeserializeOwned>(frame: &str) -> Result<T, Complaint> {
    read(frame, "bad_payload")
}

fn read<T: DeserializeOwned>(frame: &str, code: &str) -> Result<T, Complaint> {
    // A list would be taken for the fields in their order.
    if !frame.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(frame).is_ok() {
        return Err(Complaint::new(BAD_FORMAT, "A message is a JSON object", code));
    }
    from_json(frame).map_err(|Unread { at, why }| {
        let place = if at == "." { String::new() } else { format!("{at}: ") };
        Complaint::new(BAD_FORMAT, bounded(format!("{place}{why}")), code)
    })
}

fn session(named: Option<&str>, client: &Client) -> Result<SessionId, Complaint> {
    match (named, &client.session) {
        (Some(named), _) => SessionId::parse(named).map_err(|error| {
            let message = error.to_string();
            let told = format!("session_id: {message}; got \"{}\"", shown(named));
            Complaint::new(&message, told, "bad_session_id")
        }),
        (None, Some(own)) => Ok(own.clone()),
        (None, None) => {
            let told = "session_id: missing; name the session that the message is for";
            Err(Complaint::new(BAD_FORMAT, told, "no_session"))
        }
    }
}

fn session_start(start: SessionStart, names: &mut Vec<Name>) -> Result<Start, Complaint> {
    let SessionStart { permission_mode: word, max_turns, metadata } = start;
    let mut mode = None;
    if let Some(word) = &word {
        let (meant, word) = permission_mode("permission_mode", word)?;
        names.push(Name::Mode(meant, word));
        mode = Some(meant);
    }
    let mut json = None;
    if let Some(raw) = metadata {
        let fields = metadata_fields(&raw)?;
        names.extend(user_name(&fields).map(Name::Client));
        json = Some(raw.get().into());
    }
    let calls_max = max_turns.map(std::num::NonZeroU32::get);
    Ok(Start { mode, calls_max, metadata: json, ..Start::default() })
}

fn metadata_fields(raw: &RawValue) -> Result<Map<String, Value>, Complaint> {
    let bad = |told: &str| {
        Complaint::new(BAD_FORMAT, bounded(format!("metadata: {told}")), "bad_metadata")
    };
    if !is_shallow(raw.get()) {
        return Err(bad("it is nested too deep"));
    }
    serde_json::from_str(raw.get()).map_err(|error| bad(&error.to_string()))
}

/// What the client calls itself, short enough to be shown.
fn user_name(metadata: &Map<String, Value>) -> Option<Text> {
    let name = metadata.get("user_id")?.as_str()?;
    let name: String =
        name.trim().chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
    let name = name.trim();
    (!name.is_empty()).then(|| name.into())
}

const MODES: [(&str, Mode); 8] = [
    ("manual", Mode::Suggest),
    ("auto", Mode::FullAuto),
    ("bypass", Mode::Bypass),
    ("plan", Mode::Plan),
    ("default", Mode::Suggest),
    ("acceptEdits", Mode::AutoEdit),
    ("bypassPermissions", Mode::Bypass),
    ("dontAsk", Mode::DontAsk),
];

fn permission_mode(field: &str, word: &str) -> Result<(Mode, &'static str), Complaint> {
    let found = MODES.iter().find(|(known, _)| *known == word);
    found.map(|(word, mode)| (*mode, *word)).ok_or_else(|| {
        let words = MODES.map(|(word, _)| word).join(", ");
        let told = format!("{field}: \"{}\" is not a mode; use one of {words}", shown(word));
        Complaint::new("Invalid permission mode", told, "bad_mode")
    })
}

const AGENTS: [Agent; 4] = [Agent::React, Agent::Dup, Agent::Tot, Agent::Got];

fn agent_kind(name: &str) -> Result<Agent, Complaint> {
    AGENTS.into_iter().find(|agent| agent.name() == name).ok_or_else(|| {
        let names = AGENTS.map(Agent::name).join(", ");
        let told = format!("agent: \"{}\" is not an agent; use one of {names}", shown(name));
        Complaint::new("Invalid agent", told, "bad_agent")
    })
}

fn user_message(message: UserMessage, id: Option<Text>, by: Who) -> Result<Command, Complaint> {
    let UserMessage { content, images, parent_tool_use_id } = message;
    if let Some(parent) = parent_tool_use_id {
        if content.trim().is_empty() {
            return Err(Complaint::from(&Refusal::EmptyMessage));
        }
        // As the answer of a form: a question takes it, while an approval or a plan, which a
        // message must never give by the way, refuses it.
        let answers = vec![(0, vec![content.into()])];
        let wait = request("parent_tool_use_id", &parent)?;
        return Ok(Command::Settle { wait, reply: WaitReply::Answer { answers }, by });
    }
    if images.len() > IMAGES_MAX {
        let told = format!("images: {}, at most {IMAGES_MAX}", images.len());
        return Err(Complaint::new(BAD_FORMAT, told, "too_many_images"));
    }
    let mut parts = Vec::with_capacity(images.len() + 1);
    if !content.is_empty() || images.is_empty() {
        parts.push(Part::Text { text: content.into() });
    }
    for image in images {
        let part = image::part(image)
            .map_err(|why| Complaint::new(BAD_FORMAT, format!("images: {why}"), "bad_image"))?;
        parts.push(part);
    }
    Ok(Command::Send(Box::new(Send {
        tokens: parts.iter().map(Part::tokens).sum(),
        content: parts,
        origin: Origin { who: by, can_approve: true, can_answer: true },
        client_ref: id,
        delivery: Delivery::Queue,
        run: None,
    })))
}

fn permission(response: PermissionResponse, by: Who) -> Result<Command, Complaint> {
    let wait = request("request_id", &response.request_id)?;
    let message = response.explanation.map(Into::into);
    let reply = match response.decision.as_str() {
        "allow" => WaitReply::Approve { message },
        "allow_always" => WaitReply::ApproveAlways,
        "deny" => WaitReply::Deny { message, then: Then::Continue },
        "deny_stop" => WaitReply::Deny { message, then: Then::EndTurn },
        "explain" => WaitReply::Explain,
        other => {
            let told = format!(
                "decision: \"{}\" is not a decision; use allow, allow_always, deny, deny_stop or \
                 explain. The request is still pending",
                shown(other)
            );
            return Err(Complaint::new("Invalid decision", told, "bad_decision"));
        }
    };
    Ok(Command::Settle { wait, reply, by })
}

fn question_answer(response: UserQuestionResponse, by: Who) -> Result<Command, Complaint> {
    let wait = either(response.request_id.as_deref(), response.tool_id.as_deref())?;
    let words = |selected: Vec<String>| selected.into_iter().map(Into::into).collect();
    let answers = response.answers.into_iter().map(|a| (a.question_index, words(a.selected)));
    Ok(Command::Settle { wait, reply: WaitReply::Answer { answers: answers.collect() }, by })
}

fn plan_answer(response: PlanApprovalResponse, by: Who) -> Result<Command, Complaint> {
    let wait = either(response.request_id.as_deref(), response.tool_id.as_deref())?;
    let message = response.feedback.map(Into::into);
    let reply = match response.approved {
        true => WaitReply::Approve { message },
        false => WaitReply::Deny { message, then: Then::Continue },
    };
    Ok(Command::Settle { wait, reply, by })
}

/// Questions and plans are named by either key, which hold the same.
fn either(request_id: Option<&str>, tool_id: Option<&str>) -> Result<WaitRef, Complaint> {
    match (request_id, tool_id) {
        (Some(id), _) => request("request_id", id),
        (None, Some(id)) => request("tool_id", id),
        (None, None) => {
            let told = "request_id: missing; say what you answer, by request_id or tool_id";
            Err(Complaint::new(BAD_FORMAT, told, "bad_payload"))
        }
    }
}

fn request(field: &str, id: &str) -> Result<WaitRef, Complaint> {
    let wait = place(id, "req-").map(|place| WaitRef::Id(WaitId(place)));
    let item = || place(id, "tool-").map(|place| WaitRef::Item(ItemId(place)));
    wait.or_else(item).ok_or_else(|| {
        let told = format!("{field}: \"{}\" is no request of this session", shown(id));
        Complaint::new("No such request", told, "no_such_request")
    })
}

/// The place in the log that an id of ours names.
fn place(id: &str, prefix: &str) -> Option<Seq> {
    let digits = id.strip_prefix(prefix)?;
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if all { digits.parse().ok().map(Seq) } else { None }
}
