//! Asks the user something. It does nothing itself: the question waits in the session's log until
//! somebody answers, and the answer is the call's result.

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use polyloop_session::Text;
use polyloop_session::item::{End, ToolResult};
use polyloop_session::policy::{Effect, Judgement, Risk};
use polyloop_session::wait::Ask;

use super::{Place, Progress, Run, Tool, ToolSpec};

/// Questions one call may ask.
pub const QUESTIONS_MAX: usize = 8;
/// Options one question may offer.
pub const OPTIONS_MAX: usize = 16;
/// Of any text in a question.
const QUESTION_BYTES_MAX: usize = 16 * 1024;

const DESCRIPTION: &str = "Asks the user one or more questions and waits for the answers. Use it \
     when the work cannot go on well without a decision that only the user can make. Offer two to \
     four options where you can, each with a short label and what it means; the user may also \
     answer in their own words.";

pub struct AskUser;

impl Tool for AskUser {
    fn spec(&self) -> ToolSpec {
        let option = serde_json::json!({
            "type": "object",
            "properties": {
                "label": { "type": "string", "description": "What the user chooses, in a few words." },
                "description": { "type": "string", "description": "What choosing it means." },
            },
            "required": ["label"],
        });
        let question = serde_json::json!({
            "type": "object",
            "properties": {
                "header": { "type": "string", "description": "A word or two, as a heading." },
                "question": { "type": "string", "description": "The question itself." },
                "options": { "type": "array", "items": option, "maxItems": OPTIONS_MAX },
                "multiSelect": {
                    "type": "boolean",
                    "description": "Whether several options may be chosen.",
                },
            },
            "required": ["question"],
        });
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "items": question,
                    "minItems": 1,
                    "maxItems": QUESTIONS_MAX,
                },
            },
            "required": ["questions"],
        });
        ToolSpec {
            name: "ask_user",
            description: DESCRIPTION.into(),
            parameters: parameters.into(),
        }
    }

    fn judge<'a>(&'a self, args: &'a str, _: &'a Place) -> BoxFuture<'a, Result<Judgement, Text>> {
        std::future::ready(judgement(args)).boxed()
    }

    fn run(&self, _: Run) -> BoxStream<'static, Progress> {
        stream::once(std::future::ready(not_run("ask_user"))).boxed()
    }
}

fn judgement(args: &str) -> Result<Judgement, Text> {
    let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(args)
        .map_err(|error| format!("ask_user: the arguments are not a JSON object: {error}"))?;
    if !fields.contains_key("questions") {
        return Err("ask_user: `questions` is missing; give a list of questions".into());
    }
    let asked = asks(Effect::Question, "ask_user", "asks you a question");
    let Some(Ask::Question { questions }) = Ask::of(&asked, args) else {
        let why = "ask_user: `questions` must be a list of {question, options: [{label, \
                   description}], multiSelect}, with at least one";
        return Err(why.into());
    };
    if questions.len() > QUESTIONS_MAX {
        return Err(format!("ask_user: at most {QUESTIONS_MAX} questions at once").into());
    }
    for question in &questions {
        if question.question.trim().is_empty() {
            return Err("ask_user: a question is empty".into());
        }
        if question.options.len() > OPTIONS_MAX {
            return Err(format!("ask_user: at most {OPTIONS_MAX} options a question").into());
        }
        let labels = || question.options.iter().map(|option| option.label.trim());
        if labels().any(str::is_empty) {
            return Err("ask_user: an option has an empty label".into());
        }
        let mut seen = std::collections::BTreeSet::new();
        if !labels().all(|label| seen.insert(label.to_lowercase())) {
            return Err("ask_user: two options have the same label".into());
        }
    }
    if args.len() > QUESTION_BYTES_MAX {
        let why = format!("ask_user: the arguments have more than {QUESTION_BYTES_MAX} bytes");
        return Err(why.into());
    }
    Ok(asked)
}

/// The judgement of a call that only asks.
pub(super) fn asks(effect: Effect, name: &str, reason: &str) -> Judgement {
    Judgement {
        effect,
        safe: false,
        confined: false,
        sandbox: false,
        refusal: None,
        risk: Risk::Low,
        reason: reason.into(),
        command: vec![name.into()],
        patch: None,
        diff: None,
        plan_file: None,
        covers: "".into(),
        keys: Vec::new(),
        rule: None,
    }
}

/// A call that only asks never runs.
pub(super) fn not_run(name: &str) -> Progress {
    let seen = Some(format!("{name}: only asks and never runs").into());
    Progress::Ended { end: End::Failed, result: ToolResult { seen, ..ToolResult::default() } }
}
