//! What clients send, as it stands in a session's file.

use std::borrow::Cow;

use polyloop_session::item::Part;
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Incoming<'e> {
    Mark {
        event: &'static str,
    },
    Message {
        id: Cow<'e, str>,
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<Payload<'e>>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Payload<'e> {
    Input(Said<'e>),
    Value(Value),
}

#[derive(Serialize)]
pub(super) struct Said<'e> {
    pub input: [By<'e>; 1],
}

#[derive(Serialize)]
pub(super) struct By<'e> {
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    content: Vec<SaidPart<'e>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum SaidPart<'e> {
    InputText { text: &'e str },
    InputImage { media_type: &'e str, data: &'e str },
}

impl By<'_> {
    pub(super) fn user(content: &[Part]) -> By<'_> {
        By { kind: "message", role: "user", content: content.iter().map(SaidPart::of).collect() }
    }
}

impl SaidPart<'_> {
    fn of(part: &Part) -> SaidPart<'_> {
        match part {
            Part::Text { text } => SaidPart::InputText { text },
            Part::Image { media_type, data } => SaidPart::InputImage { media_type, data },
        }
    }
}
