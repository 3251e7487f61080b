//! Proposes a plan. It does nothing itself: the plan waits in the session's log until somebody
//! agrees or sends it back. The plan is also kept as a file beside the session, for people.

use std::fs::DirBuilder;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ask_user::{asks, not_run};
use super::{Place, Progress, Run, Tool, ToolSpec};

/// The longest plan.
pub const PLAN_BYTES_MAX: usize = 256 * 1024;

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

const DESCRIPTION: &str = "Proposes a plan to the user and waits for consent. Use it when you have \
     looked around and know what to do, before anything is changed: say in Markdown what you will \
     do, in which order, which files it touches, and how you will check it. If the user sends it \
     back, revise it and propose it again.";

pub struct ExitPlanMode;

impl Tool for ExitPlanMode {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "plan": { "type": "string", "description": "The plan, as Markdown." },
            },
            "required": ["plan"],
        });
        ToolSpec {
            name: "exit_plan_mode",
            description: DESCRIPTION.into(),
            parameters: parameters.into(),
        }
    }

    fn judge<'a>(&'a self, args: &'a str, _: &'a Place) -> BoxFuture<'a, Result<Judgement, Text>> {
        let judged =
            plan(args).map(|_| asks(Effect::Plan, "exit_plan_mode", "proposes a plan to you"));
        std::future::ready(judged).boxed()
    }

    fn run(&self, _: Run) -> BoxStream<'static, Progress> {
        stream::once(std::future::ready(not_run("exit_plan_mode"))).boxed()
    }
}

fn plan(args: &str) -> Result<String, Text> {
    let fields: serde_json::Map<String, Value> = serde_json::from_str(args)
        .map_err(|error| format!("exit_plan_mode: the arguments are not a JSON object: {error}"))?;
    match fields.get("plan") {
        Some(Value::String(plan)) if plan.trim().is_empty() => {
            Err("exit_plan_mode: `plan` is empty".into())
        }
        Some(Value::String(plan)) if plan.len() > PLAN_BYTES_MAX => {
            let bytes = plan.len();
            let why =
                format!("exit_plan_mode: `plan` has {bytes} bytes, the limit is {PLAN_BYTES_MAX}");
            Err(why.into())
        }
        Some(Value::String(plan)) => Ok(plan.clone()),
        Some(_) => Err("exit_plan_mode: `plan` must be a string".into()),
        None => Err("exit_plan_mode: `plan` is missing; give the plan as Markdown".into()),
    }
}

/// Keeps the plan as a file and says where; `None` when nothing is kept or it cannot be.
pub async fn keep(args: &str, place: &Place) -> Option<Text> {
    let (plan, dir) = (plan(args).ok()?, place.plans.clone()?);
    let kept = tokio::task::spawn_blocking(move || write(&dir, &plan)).await;
    match kept {
        Ok(Ok(path)) => Some(path.into()),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the plan could not be kept as a file");
            None
        }
        Err(_) => None,
    }
}

/// Named by its content, so that the same plan is the same file.
fn write(dir: &Path, plan: &str) -> std::io::Result<String> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir)?;
    let digest = format!("{:x}", Sha256::digest(plan));
    let path = dir.join(format!("plan-{}.md", &digest[..12]));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE)
        .open(&path)?;
    file.write_all(plan.as_bytes())?;
    Ok(path.display().to_string())
}
