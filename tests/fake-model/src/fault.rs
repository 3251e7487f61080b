//! Errors as each provider says them: as an HTTP answer, and in the middle of a stream.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::api::{Api, Job};
use crate::ask::{Ask, Delivery};
use crate::events::Events;
use crate::made;
use crate::reply::{ErrorForm, Http, MidError, Reply, Stop};

const WORDS: &str =
    "429, 500, 529, 401, 400, context, quota, overloaded, refusal, hang, disconnect or garbage";

/// An error with all that any of the APIs says about one.
#[derive(Clone, Debug)]
pub struct Fault {
    pub status: u16,
    pub kind: String,
    pub code: Value,
    pub message: String,
    /// Waiting for a moment does not help.
    pub is_quota: bool,
}

impl Fault {
    fn new(status: u16, kind: &str, code: &str, message: &str) -> Fault {
        let code = if code.is_empty() { Value::Null } else { Value::from(code) };
        Fault { status, kind: kind.to_owned(), code, message: message.to_owned(), is_quota: false }
    }

    /// What an API says with a status.
    pub fn of_status(api: Api, status: u16) -> Fault {
        let message = match status {
            400 => "The request is not valid.",
            401 => "The API key is missing or wrong.",
            403 => "This key may not do that.",
            404 => "There is no such model.",
            413 => "The request is too large.",
            429 => "Rate limit reached. Please try again in 1s.",
            503 | 529 => "The model is overloaded. Please try again later.",
            _ => "Something went wrong on our side.",
        };
        let (kind, code) = match api {
            Api::Responses | Api::Chat => openai_words(status),
            Api::Anthropic => (anthropic_word(status), ""),
            Api::Gemini => (google_word(status), ""),
        };
        Fault::new(status, kind, code, message)
    }

    /// One of the words that `fail:` knows and that is an HTTP error.
    fn of_word(api: Api, word: &str) -> Option<Fault> {
        let fault = match (word, api) {
            ("400" | "401" | "429" | "500" | "529", _) => Fault::of_status(api, word.parse().ok()?),
            ("overloaded", Api::Anthropic) => Fault::of_status(api, 529),
            ("overloaded", _) => Fault::of_status(api, 503),
            ("context", api) => Fault::context(api),
            ("quota", api) => Fault::quota(api),
            _ => return None,
        };
        Some(fault)
    }

    /// The prompt is too long for the model.
    fn context(api: Api) -> Fault {
        let (kind, code, message) = match api {
            Api::Responses | Api::Chat => {
                let message = "Your input exceeds the context window of this model.";
                ("invalid_request_error", "context_length_exceeded", message)
            }
            Api::Anthropic => {
                let message = "prompt is too long: 250000 tokens > 200000 maximum";
                ("invalid_request_error", "", message)
            }
            Api::Gemini => {
                let message = "The input token count (1200000) exceeds the maximum number of \
                               tokens allowed (1048576).";
                ("INVALID_ARGUMENT", "", message)
            }
        };
        Fault::new(400, kind, code, message)
    }

    /// There is no money left.
    fn quota(api: Api) -> Fault {
        let message = "You exceeded your current quota, please check your billing details.";
        let fault = match api {
            Api::Responses | Api::Chat => {
                Fault::new(429, "insufficient_quota", "insufficient_quota", message)
            }
            Api::Anthropic => {
                Fault::new(402, "billing_error", "", "Your credit balance is too low.")
            }
            Api::Gemini => Fault::new(429, "RESOURCE_EXHAUSTED", "", message),
        };
        Fault { is_quota: true, ..fault }
    }

    /// What a script says about an error; the API's own words for the rest.
    fn of_script(api: Api, error: &MidError) -> Fault {
        let word = error.kind.as_deref().unwrap_or("overloaded");
        let mut fault = Fault::of_word(api, word).unwrap_or_else(|| {
            let status = status_of(word);
            Fault { kind: word.to_owned(), code: Value::Null, ..Fault::of_status(api, status) }
        });
        if let Some(code) = &error.code {
            fault.code = code.clone();
            let number = code.as_u64().and_then(|code| u16::try_from(code).ok());
            fault.status = number.filter(|code| (400..600).contains(code)).unwrap_or(fault.status);
        }
        if let Some(message) = &error.message {
            fault.message.clone_from(message);
        }
        fault
    }

    /// The body of an HTTP answer, and the form of an error in a stream where that is the same.
    fn body(&self, api: Api, n: u64) -> Value {
        let Fault { status, kind, code, message, is_quota } = self;
        match api {
            Api::Responses | Api::Chat => {
                json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
            }
            Api::Anthropic => {
                let request = made::id("req_", n, 0);
                let error = json!({"type": kind, "message": message});
                json!({"type": "error", "error": error, "request_id": request})
            }
            Api::Gemini => {
                let mut error = json!({"code": status, "message": message, "status": kind});
                if *status == 429 {
                    error["details"] = google_details(*is_quota);
                }
                json!({ "error": error })
            }
        }
    }

    pub fn answer(&self, api: Api, n: u64) -> Answer {
        let answer = Answer::json(self.status, &self.body(api, n));
        // Google says in the body when to come back.
        let says_when = self.status == 429 && !self.is_quota && api != Api::Gemini;
        if says_when { answer.with("retry-after", "1") } else { answer }
    }
}

/// What a limit of Google's says about itself: one a minute passes soon, one a day does not.
fn google_details(is_quota: bool) -> Value {
    let period = if is_quota { "Day" } else { "Minute" };
    let quota = format!("GenerateRequestsPer{period}PerProjectPerModel");
    let mut details = vec![json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": quota}]})];
    if !is_quota {
        let kind = "type.googleapis.com/google.rpc.RetryInfo";
        details.push(json!({"@type": kind, "retryDelay": "1s"}));
    }
    Value::from(details)
}

/// An error instead of a whole answer; none where the answer itself says that it failed.
pub fn whole(api: Api, error: &MidError, n: u64) -> Option<Answer> {
    let said_inside = api == Api::Responses && error.form == ErrorForm::Failed;
    (!said_inside).then(|| Fault::of_script(api, error).answer(api, n))
}

/// The error object of a failed response.
pub fn response_error(error: &MidError) -> Value {
    let Fault { kind, code, message, .. } = Fault::of_script(Api::Responses, error);
    json!({"code": if code.is_null() { Value::from(kind) } else { code }, "message": message})
}

/// Says an error in the middle of a stream.
pub fn event(job: &Job<'_>, error: &MidError, events: &mut Events) {
    let api = job.ask.api;
    let fault = Fault::of_script(api, error);
    match (api, error.form) {
        (Api::Responses, ErrorForm::Flat) => {
            let Fault { code, message, .. } = fault;
            events.last("error", json!({"code": code, "message": message, "param": null}));
        }
        (Api::Responses, _) => events.last("error", fault.body(api, job.n)),
        (Api::Anthropic, _) => events.last("error", fault.body(api, job.n)),
        (Api::Chat | Api::Gemini, _) => events.last("", fault.body(api, job.n)),
    }
}

/// Makes a reply fail as a word of the script language says.
pub fn set_by_word(reply: &mut Reply, word: &str, ask: &Ask) -> Result<(), String> {
    match word {
        "refusal" => reply.stop = Stop::Refusal,
        "hang" => reply.hang = true,
        "disconnect" => reply.disconnect = true,
        "garbage" => match ask.delivery {
            Delivery::Events => reply.raw = Some("data: {this is no JSON\n\n".to_owned()),
            Delivery::Whole | Delivery::Array => {
                reply.raw = Some("<html><body>Bad gateway</body></html>".to_owned());
                reply.content_type = Some("text/html".to_owned());
            }
        },
        word => {
            let fault = Fault::of_word(ask.api, word)
                .ok_or_else(|| format!("{word:?} is no way to fail; use {WORDS}"))?;
            reply.http = Some(Http { status: Some(fault.status), ..Http::default() });
            reply.error = Some(MidError { kind: Some(word.to_owned()), ..MidError::default() });
        }
    }
    Ok(())
}

/// The answer of a reply whose HTTP status is an error.
pub fn http(api: Api, status: u16, reply: &Reply, n: u64) -> Answer {
    let fault = match &reply.error {
        Some(error) => Fault { status, ..Fault::of_script(api, error) },
        None => Fault::of_status(api, status),
    };
    fault.answer(api, n)
}

fn openai_words(status: u16) -> (&'static str, &'static str) {
    match status {
        401 => ("invalid_request_error", "invalid_api_key"),
        404 => ("invalid_request_error", "model_not_found"),
        429 => ("requests", "rate_limit_exceeded"),
        503 | 529 => ("service_unavailable_error", "server_is_overloaded"),
        400..=499 => ("invalid_request_error", ""),
        _ => ("server_error", "server_error"),
    }
}

fn anthropic_word(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        503 | 529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

fn google_word(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}

/// The status that belongs to a provider's word, for requests that want a whole answer.
fn status_of(kind: &str) -> u16 {
    match kind {
        "invalid_request_error" | "INVALID_ARGUMENT" | "FAILED_PRECONDITION" => 400,
        "authentication_error" | "UNAUTHENTICATED" => 401,
        "billing_error" => 402,
        "permission_error" | "PERMISSION_DENIED" => 403,
        "not_found_error" | "NOT_FOUND" => 404,
        "request_too_large" => 413,
        "rate_limit_error"
        | "rate_limit_exceeded"
        | "requests"
        | "tokens"
        | "too_many_requests"
        | "insufficient_quota"
        | "RESOURCE_EXHAUSTED" => 429,
        "service_unavailable_error" | "server_is_overloaded" | "UNAVAILABLE" => 503,
        "timeout_error" | "DEADLINE_EXCEEDED" => 504,
        "overloaded_error" => 529,
        _ => 500,
    }
}
