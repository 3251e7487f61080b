//! Edits files by a patch: all that it names, or none.
//!
//! The engine is in `patch`; here is what a patch would do, in words that policy and people
//! understand. Never writes outside the working directory, nor to the server's own files.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement, Key, Risk, Says};
use serde_json::Value;

use super::bash::{is_forbidden, refused};
use super::files::{Done, diff, file_change, noted, touches_of};
use super::touches::Notes;
use super::{Place, Progress, Run, Tool, ToolSpec};
use crate::patch::{self, Change, Operation, Plan, Touched, path, shown};
use crate::rules;

const DESCRIPTION: &str = "Edits files by a patch: all the files it names, or none. The patch \
     begins with `*** Begin Patch` and ends with `*** End Patch`. In between come sections: `*** \
     Add File: <path>` and lines that begin with `+`; `*** Delete File: <path>`; `*** Update File: \
     <path>`, perhaps `*** Move to: <path>`, and hunks. A hunk begins with `@@`, or `@@ <a line \
     before it>` to say where, and has lines that begin with a blank (unchanged), `-` (removed) or \
     `+` (added); give about three unchanged lines around a change, exactly as they are in the \
     file. Paths are relative to the working directory. Adding or moving onto an existing file is \
     an error.";

pub struct ApplyPatch;

impl Tool for ApplyPatch {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "patch": {
                    "type": "string",
                    "description": "The patch, from `*** Begin Patch` to `*** End Patch`.",
                },
            },
            "required": ["patch"],
        });
        ToolSpec {
            name: "apply_patch",
            description: DESCRIPTION.into(),
            parameters: parameters.into(),
        }
    }

    /// An error depends on the patch alone, so that `run` gives the same one. What depends on the
    /// files is a refusal: they may change before the call runs.
    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        async move {
            let patch = parse_args(args)?;
            let place = place.clone();
            let judged = tokio::task::spawn_blocking(move || judgement(&patch, &place)).await;
            judged.unwrap_or_else(|_| {
                Ok(not_applied("could not be judged; this is a fault of the server"))
            })
        }
        .boxed()
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        noted("apply_patch", run, apply)
    }
}

/// The patch; the error is for the model.
fn parse_args(json: &str) -> Result<Text, Text> {
    let fields: serde_json::Map<String, Value> = serde_json::from_str(json)
        .map_err(|error| format!("apply_patch: the arguments are not a JSON object: {error}"))?;
    match fields.get("patch") {
        Some(Value::String(patch)) => Ok(patch.as_str().into()),
        Some(_) => Err("apply_patch: `patch` must be a string".into()),
        None => Err("apply_patch: `patch` is missing; give the text of the patch".into()),
    }
}

/// What stands in the way of a patch.
enum Obstacle {
    /// The text itself: no change of the files will help.
    Text(String),
    /// The files as they are, or where they are.
    Files(String),
}

impl Obstacle {
    fn message(&self) -> String {
        let (Obstacle::Text(message) | Obstacle::Files(message)) = self;
        format!("apply_patch: {message}")
    }
}

/// Reads the files and computes the outcome. Blocks.
fn plan(text: &str, place: &Place) -> Result<Plan, Obstacle> {
    let parsed = patch::parse(text).map_err(|error| Obstacle::Text(error.to_string()))?;
    let files = |error: patch::PatchError| Obstacle::Files(error.to_string());
    let root = place.root().map_err(files)?;
    for touched in patch::touched(&root, &parsed) {
        let (path, real) = (shown(&touched.path), shown(&touched.real.to_string_lossy()));
        if is_forbidden(&touched.real, place) {
            let why = format!("{path}: one of the server's own files (really {real})");
            return Err(Obstacle::Files(why));
        }
        if !touched.inside {
            let why = format!("{path}: outside the working directory (really {real})");
            return Err(Obstacle::Files(why));
        }
    }
    patch::plan(&root, &parsed).map_err(files)
}

/// Blocks.
fn judgement(text: &Text, place: &Place) -> Result<Judgement, Text> {
    let plan = match plan(text, place) {
        Ok(plan) => plan,
        Err(obstacle @ Obstacle::Text(_)) => return Err(obstacle.message().into()),
        Err(Obstacle::Files(message)) => return Ok(not_applied(&message)),
    };
    let touched = plan.touched();
    let protected: Vec<&Touched> = touched.iter().filter(|touched| touched.protected).collect();
    let risk = |protected| if protected { Risk::High } else { Risk::Medium };
    let reason = match protected.as_slice() {
        [] => format!("edits {}", named(touched)),
        paths => format!("edits protected files: {}", named(paths.iter().copied())),
    };
    let key = |touched: &Touched| Key {
        what: format!("edit:{}", touched.path).into(),
        risk: risk(touched.protected),
    };
    let rules = touched.iter().map(|touched| place.rules.of_path(&touched.real, &place.cwd));
    let rule = rules::of_all(rules);
    Ok(Judgement {
        effect: Effect::Edit,
        safe: false,
        confined: protected.is_empty(),
        sandbox: false,
        refusal: None,
        risk: risk(!protected.is_empty()),
        reason: reason.into(),
        command: vec!["apply_patch".into(), text.clone()],
        patch: Some(text.clone()),
        diff: Some(diff::of_changes(plan.changes()).into()),
        plan_file: None,
        covers: format!("edits of {}, for this session", named(touched)).into(),
        keys: touched.iter().map(key).collect(),
        rule: rule.filter(|rule| protected.is_empty() || rule.says != Says::Allow),
    })
}

/// Without its patch, because there is nothing that leave could be given for.
fn not_applied(message: &str) -> Judgement {
    let message = Obstacle::Files(message.to_owned()).message();
    refused(Effect::Edit, "apply_patch", &message)
}

fn named<'a>(touched: impl IntoIterator<Item = &'a Touched>) -> String {
    let paths: Vec<&str> = touched.into_iter().map(|touched| touched.path.as_str()).collect();
    path::list(&paths)
}

fn apply(run: &Run, notes: &Notes) -> Result<Done, String> {
    let text = parse_args(&run.args).map_err(|why| why.to_string())?;
    let plan = plan(&text, &run.place).map_err(|obstacle| obstacle.message())?;
    let named = |why: String| format!("apply_patch: {why}");
    notes.record(touches_of(&plan, None)).map_err(named)?;
    let applied = plan.apply(run.place.journal.as_ref());
    let changes = applied.map_err(|error| named(error.to_string()))?;
    let files = changes.iter().map(|change| file_change(&change.path, change)).collect();
    Ok(Done { text: listed(&changes), files, ..Done::default() })
}

fn listed(changes: &[Change]) -> String {
    let mut text = "Done!\n".to_owned();
    for change in changes {
        let path = shown(&change.path);
        let line = match &change.operation {
            Operation::Create => format!("A {path}\n"),
            Operation::Update => format!("M {path}\n"),
            Operation::Delete => format!("D {path}\n"),
            Operation::Move { from } => format!("R {} -> {path}\n", shown(from)),
        };
        text.push_str(&line);
    }
    text
}
