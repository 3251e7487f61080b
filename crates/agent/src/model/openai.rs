//! What OpenAI's two interfaces share: how an event is read, what an error's body says, and what
//! people are told of it.
//!
//! Many servers speak them, and each a little differently: nothing here relies on more than it
//! needs.

use polyloop_session::Heal;
use polyloop_session::item::Part;

use super::Failure;
use super::api::{Refused, Said};
use super::fault::{self, Error};
use super::json::{self, Object};
use super::sse::Event;
use super::table::Card;

/// Of the words of a refusal.
const SHOWN_CHARS_MAX: usize = 200;
/// Stands where a model that takes no pictures would find one.
pub const NO_IMAGE_TEXT: &str = "[an image was attached, which this model does not take]";
/// Names a model that did not name itself.
const SOME_MODEL: &str = "the model";

/// A text that is there and says something.
pub fn word(object: &Object<'_>, name: &str) -> Option<String> {
    object.text(name).filter(|text| !text.is_empty())
}

/// An event, as far as both interfaces read it alike.
pub enum Read<'a> {
    /// A sign of life.
    Nothing,
    /// `[DONE]`: no more will come.
    Last,
    /// And its text.
    Object(Object<'a>, &'a str),
    /// JSON, but no object.
    Other(&'a str),
    NotJson,
}

pub fn read(event: &Event) -> Read<'_> {
    let Ok(data) = std::str::from_utf8(&event.data) else { return Read::NotJson };
    let data = data.trim_ascii();
    if data.is_empty() || matches!(&*event.name, "ping" | "keepalive") {
        return Read::Nothing;
    }
    if data == "[DONE]" {
        return Read::Last;
    }
    match Object::read(data) {
        Some(object) => Read::Object(object, data),
        None if serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok() => Read::Other(data),
        None => Read::NotJson,
    }
}

pub fn not_json(provider: &str) -> Failure {
    let message = format!("{provider} sent an event that is not JSON");
    Failure::new(Heal::Later { after_ms: None }, "bad_answer", message)
}

/// No answer, and none to be had by asking again.
pub fn refused(provider: &str, why: &str) -> Failure {
    let why = shown(why);
    let message = match &*why {
        "" => format!("{provider} refused to answer"),
        why => format!("{provider} refused to answer ({why})"),
    };
    Failure::new(Heal::Never, "refused", message)
}

/// An error inside a stream that had begun well. `model` may be empty.
pub fn broken(provider: &str, model: &str, told: Told) -> Failure {
    let Told { said, status } = told;
    let code = said.code.to_lowercase();
    if code.contains("policy") {
        return refused(provider, &words(&said));
    }
    if status.is_none() && code.contains("image") {
        let message = format!("{provider} did not accept the request ({})", shown(&words(&said)));
        return Failure::new(Heal::Never, "invalid_request", message);
    }
    let model = if model.is_empty() { SOME_MODEL } else { model };
    fault::failure(Error { provider, model, status, said, retry_after_ms: None })
}

fn words(said: &Said) -> String {
    match (&*said.code, &*said.message) {
        ("", message) => message.to_owned(),
        (code, "") => code.to_owned(),
        (code, message) => format!("{code}: {message}"),
    }
}

/// An answer other than 2xx.
pub fn refusal(provider: &str, answer: &Refused<'_>) -> Failure {
    let Refused { status, body, model, retry_after_ms } = *answer;
    let text = String::from_utf8_lossy(body);
    let told = Object::read(&text).or_else(|| first(&text)).and_then(|fields| told(&fields));
    let said = told.map_or_else(
        || Said { code: String::new(), message: json::told(body).into() },
        |told| told.said,
    );
    fault::failure(Error { provider, model, status: Some(status), said, retry_after_ms })
}

/// Some gateways wrap the error in a list.
fn first(text: &str) -> Option<Object<'_>> {
    let list: &serde_json::value::RawValue = serde_json::from_str(text).ok()?;
    Object::read(json::list(list).first()?.get())
}

/// What an error object says of itself.
pub struct Told {
    pub said: Said,
    /// The status it would have been, where the server says so inside a stream.
    pub status: Option<u16>,
}

impl Told {
    pub fn nothing() -> Told {
        bare("no reason was given".to_owned())
    }
}

/// The error in an object, if there is one: `{"error": {…}}`, `{"error": "…"}`, or fields of its
/// own (`message`, `detail`).
pub fn told(fields: &Object<'_>) -> Option<Told> {
    let Some(error) = fields.raw("error") else { return error_told(fields) };
    let as_it_is = || bare(json::text(error).unwrap_or_else(|| error.get().to_owned()));
    Some(fields.object("error").and_then(|error| error_told(&error)).unwrap_or_else(as_it_is))
}

/// What an error says whose fields these are.
fn error_told(error: &Object<'_>) -> Option<Told> {
    let detail = || error.raw("detail").map(|detail| detail.get().to_owned());
    let message = word(error, "message").or_else(|| word(error, "detail")).or_else(detail);
    // OpenRouter's own sentence says only that there was an error; the provider's stands beside.
    let beside = error.object("metadata").and_then(|metadata| word(&metadata, "raw"));
    let number = error.count("code").or_else(|| error.count("status"));
    let status = number.and_then(|number| u16::try_from(number).ok());
    let status = status.filter(|status| (400..600).contains(status));
    // A status is told as one.
    let number = number.filter(|_| status.is_none()).map(|number| number.to_string());
    let code = word(error, "code").filter(|code| code.parse::<u64>().is_err());
    let kind = || word(error, "type").filter(|kind| kind != "error");
    let code = code.or_else(kind).or(number);
    if message.is_none() && code.is_none() && status.is_none() {
        return None;
    }
    let message = match (message, beside) {
        (Some(message), Some(beside)) => format!("{message}: {beside}"),
        (message, beside) => message.or(beside).unwrap_or_default(),
    };
    Some(Told { said: Said { code: code.unwrap_or_default(), message: message.into() }, status })
}

fn bare(message: String) -> Told {
    Told { said: Said { code: String::new(), message: message.into() }, status: None }
}

/// One line of it, not too long.
fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}

/// What a model that refuses says, as much of it as is told.
#[derive(Default)]
pub struct Refusal(Option<String>);

impl Refusal {
    pub fn say(&mut self, text: &str) {
        let said = self.0.get_or_insert_default();
        // Four bytes hold any character.
        if said.len() < SHOWN_CHARS_MAX * 4 {
            said.push_str(text);
        }
    }

    pub fn said(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// A piece of what a user sent, as a model can take it; none when it is empty.
pub enum Sent<'a> {
    Text(&'a str),
    /// A data URL.
    Image(String),
}

pub fn sent<'a>(part: &'a Part, card: &Card) -> Option<Sent<'a>> {
    match part {
        Part::Text { text } if text.is_empty() => None,
        Part::Text { text } => Some(Sent::Text(text)),
        Part::Image { media_type, data } if card.images => {
            Some(Sent::Image(format!("data:{media_type};base64,{data}")))
        }
        Part::Image { .. } => Some(Sent::Text(NO_IMAGE_TEXT)),
    }
}

#[cfg(test)]
mod tests;
