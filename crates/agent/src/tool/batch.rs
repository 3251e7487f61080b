//! Runs several calls of other tools as one.
//!
//! A batch is what its parts are: it is judged by their judgements, and never more freely than its
//! strictest part. Unless a person said yes to it, each part is weighed again in the moment before
//! it runs. Parts that only read run side by side, all others one after the other.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement};
use serde_json::Value;

use super::files::Args;
use super::{Place, Progress, Run, Tool, ToolSpec};
use crate::perform;

mod join;
mod run;
mod told;

pub const NAME: &str = "batch";
pub const CALLS_MAX: usize = 25;

/// Tools that cannot be part of a batch: itself, and those that ask people.
const ALONE: [&str; 3] = [NAME, "ask_user", "exit_plan_mode"];

const DESCRIPTION: &str = "Runs 1 to 25 calls of other tools as one, with one approval if any of \
     them needs it. Calls that only read run at the same time; all others run one after the \
     other, in order. All are judged before the first one runs, so none may rely on what another \
     one changes. Each result comes as `[number] tool: text`, together up to 64 KiB; a call that \
     fails does not stop the others. `batch`, `ask_user` and `exit_plan_mode` cannot be part of \
     it.";

pub struct Batch;

impl Tool for Batch {
    fn spec(&self) -> ToolSpec {
        let call = serde_json::json!({
            "type": "object",
            "properties": {
                "tool": { "type": "string", "description": "The tool's name." },
                "parameters": { "type": "object", "description": "The tool's own arguments." },
            },
            "required": ["tool", "parameters"],
        });
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "calls": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": CALLS_MAX,
                    "items": call,
                    "description": "The calls, in the order they are to run.",
                },
            },
            "required": ["calls"],
        });
        ToolSpec { name: NAME, description: DESCRIPTION.into(), parameters: parameters.into() }
    }

    fn starts_processes(&self, args: &str) -> bool {
        // Its parts that start some run one after the other.
        let starts = |call: &Call| {
            super::find(call.tool).is_some_and(|tool| tool.starts_processes(&call.args))
        };
        parse(args).is_ok_and(|calls| calls.iter().any(starts))
    }

    fn may_read(&self) -> bool {
        true
    }

    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        async move {
            let calls = parse(args)?;
            let mut parts = Vec::with_capacity(calls.len());
            for call in &calls {
                parts.push(perform::judge(call.tool, &call.args, place).await);
            }
            Ok(join::join(&calls, &parts))
        }
        .boxed()
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        run::run(run)
    }
}

/// One call of a batch.
struct Call {
    tool: &'static str,
    args: Text,
}

/// The error is for the model, and depends on the arguments alone.
fn parse(json: &str) -> Result<Vec<Call>, Text> {
    let args = Args::parse(NAME, json)?;
    let calls = args.list("calls")?;
    if calls.is_empty() || calls.len() > CALLS_MAX {
        let count = calls.len();
        return Err(format!("{NAME}: `calls` are {count}; give 1 to {CALLS_MAX}").into());
    }
    calls.iter().enumerate().map(|(index, call)| parse_call(index + 1, call)).collect()
}

fn parse_call(number: usize, call: &Value) -> Result<Call, Text> {
    let here = format!("call [{number}]");
    let args = Args::inner(NAME, &here, call)?;
    let name = args.text(&["tool"])?.unwrap_or_default();
    let parts = || super::ALL.iter().map(|tool| tool.spec());
    let takes_part = |name: &str| !ALONE.contains(&name);
    let Some(spec) = parts().find(|spec| spec.name == name && takes_part(spec.name)) else {
        let known: Vec<&str> = parts().map(|spec| spec.name).filter(|n| takes_part(n)).collect();
        let (name, known) = (polyloop_session::shown::visible(&name), known.join(", "));
        return Err(match super::find(&name) {
            Some(_) => format!("{NAME}: {here}: {name} cannot be part of a batch; call it alone"),
            None => format!("{NAME}: {here}: there is no tool named {name:?}; use one of {known}"),
        }
        .into());
    };
    let parameters = match args.value("parameters") {
        None => "{}".to_owned(),
        Some(parameters @ Value::Object(_)) => parameters.to_string(),
        Some(other) => {
            let found = super::bash::kind(other);
            let why = format!("{NAME}: {here}: `parameters` must be an object, not {found}");
            return Err(why.into());
        }
    };
    Ok(Call { tool: spec.name, args: parameters.into() })
}

/// How far an effect reaches; a batch has the farthest.
fn reach(effect: Effect) -> u8 {
    match effect {
        Effect::Read => 0,
        Effect::Edit => 1,
        Effect::Execute => 2,
        Effect::Network => 3,
        Effect::Question | Effect::Plan => 4,
    }
}
