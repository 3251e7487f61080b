//! Client frames into asks. Total: whatever comes in, an ask or a complaint comes out.

use polyloop_session::command::{Send, WaitReply};
use polyloop_session::event::Origin;
use polyloop_session::item::Part;
use polyloop_session::wait::Then;
use polyloop_session::{Command, Delivery, WaitRef};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::wire::{
    ApprovalResponse, Content, Envelope, InputItem, InputPart, Interrupt, Role, UserInput,
};
use crate::ids::Ids;
use crate::image::{self, Image};
use crate::{Ask, Asked, Client, Complaint, Unread, bounded, from_json, shown};

/// Parts of one user message.
const INPUT_PARTS_MAX: usize = 256;
const BAD_FORMAT: &str = "Invalid message format";

pub(super) fn decode(frame: &str, client: &Client) -> Result<Asked, Complaint> {
    let envelope: Envelope<'_> = match serde_json::from_str(frame) {
        Ok(envelope) => envelope,
        Err(error) => {
            let told = bounded(error.to_string());
            return Err(Complaint::new(BAD_FORMAT, told, "bad_message"));
        }
    };
    let by = client.who.clone();
    match envelope.kind.as_str() {
        "user_input" => user_input(payload(envelope.payload)?, &envelope._id, client),
        "approval_response" => approval(payload(envelope.payload)?, client),
        "get_context_info" => Ok(Ask::ContextInfo.into()),
        "manual_compact" => Ok(Command::Compact { by }.into()),
        "interrupt" => {
            let asked: Option<Interrupt> = match envelope.payload {
                Some(raw) => payload(Some(raw))?,
                None => None,
            };
            let reason =
                asked.and_then(|i| i.reason).unwrap_or_else(|| "User requested stop".into());
            Ok(Command::Interrupt { turn: None, reason: reason.into(), by }.into())
        }
        other => {
            let known =
                "user_input, approval_response, get_context_info, manual_compact, interrupt";
            let message = format!("Unknown message type: {}", shown(other));
            let error = format!("{message}; this dialect has {known}");
            Err(Complaint::new(&message, error, "unknown_type"))
        }
    }
}

fn payload<T: DeserializeOwned>(raw: Option<&RawValue>) -> Result<T, Complaint> {
    from_json(raw.map_or("null", RawValue::get)).map_err(|Unread { at, why }| {
        let place = if at == "." { String::new() } else { format!(".{at}") };
        let told = bounded(format!("payload{place}: {why}"));
        Complaint::new(BAD_FORMAT, told, "bad_payload")
    })
}

fn user_input(payload: UserInput, id: &str, client: &Client) -> Result<Asked, Complaint> {
    let mut content = Vec::new();
    for item in payload.input {
        match item {
            InputItem::Message { role: Role::User, content: Content::Text(text) }
            | InputItem::InputText { text }
            | InputItem::OutputText { text } => content.push(text_part(text)),
            InputItem::InputImage { image_url, media_type, data } => {
                content.push(image_part(Image { image_url, media_type, data })?);
            }
            InputItem::Message { role: Role::User, content: Content::Parts(parts) } => {
                for part in parts {
                    content.push(match part {
                        InputPart::InputText { text } | InputPart::OutputText { text } => {
                            text_part(text)
                        }
                        InputPart::InputImage { image_url, media_type, data } => {
                            image_part(Image { image_url, media_type, data })?
                        }
                    });
                }
            }
        }
    }
    if content.len() > INPUT_PARTS_MAX {
        let told = format!("payload.input: {} parts, at most {INPUT_PARTS_MAX}", content.len());
        return Err(Complaint::new(BAD_FORMAT, told, "too_many_parts"));
    }
    let tokens = content.iter().map(Part::tokens).sum();
    let send = Send {
        content,
        origin: Origin { who: client.who.clone(), can_approve: true, can_answer: true },
        client_ref: Some(id.into()),
        delivery: Delivery::AnswerQuestion,
        tokens,
        run: None,
    };
    Ok(Command::Send(Box::new(send)).into())
}

fn text_part(text: String) -> Part {
    Part::Text { text: text.into() }
}

fn image_part(image: Image) -> Result<Part, Complaint> {
    image::part(image)
        .map_err(|why| Complaint::new(BAD_FORMAT, format!("payload.input: {why}"), "bad_image"))
}

fn approval(payload: ApprovalResponse, client: &Client) -> Result<Asked, Complaint> {
    let by = client.who.clone();
    let wait = match &payload.request_id {
        None => client.shown.map_or(WaitRef::Presented, WaitRef::Id),
        Some(id) => match Ids::new(client.session.as_ref()).wait(id) {
            Some(wait) => WaitRef::Id(wait),
            None => {
                let told =
                    format!("payload.requestId: {} is no request of this session", shown(id));
                return Err(Complaint::new("No pending approval request", told, "no_such_request"));
            }
        },
    };
    let message = payload.custom_deny_message.map(Into::into);
    let review = payload.review.to_ascii_lowercase().replace('_', "-");
    if let ("yes" | "always", Some(instead)) = (review.as_str(), &payload.apply_patch) {
        let (patch, always) = (instead.patch.as_str().into(), review == "always");
        return Ok(Ask::SettleWithPatch { wait, patch, always, by }.into());
    }
    let reply = match review.as_str() {
        "yes" => WaitReply::Approve { message: None },
        "always" => WaitReply::ApproveAlways,
        "no-exit" | "no" => WaitReply::Deny { message, then: Then::EndTurn },
        "no-continue" => WaitReply::Deny { message, then: Then::Continue },
        "explain" => WaitReply::Explain,
        other => {
            let told = format!(
                "payload.review: \"{}\" is not a decision; use yes, no-exit, no-continue, always \
                 or explain. The request is still pending",
                shown(other)
            );
            return Err(Complaint::new("Invalid review value", told, "bad_review"));
        }
    };
    Ok(Command::Settle { wait, reply, by }.into())
}
