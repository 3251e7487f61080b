//! Replaces a piece of a file by another, exactly.
//!
//! Never guesses: a piece that is not there, or is there more than once, is an error that says
//! so. Keeps every byte that is not replaced, line endings, the mode, and bytes that are no text.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement, Risk};
use serde_json::Value;

use super::files::{
    Args, Done, Edit as Shown, Links, Names, PATH_HELP, Target, diff, edit, file_change,
    judge_blocking, patch_of, touches_of,
};
use super::{Place, Progress, Run, Tool, ToolSpec};
use crate::patch::{FILE_BYTES_MAX, Plan, plan_content};

mod replace;

pub(super) use replace::Replacement;

/// Bytes that all replacements of one call may go through, together.
const WORK_BYTES_MAX: usize = 512 * 1024 * 1024;

const DESCRIPTION: &str = "Replaces a piece of a text file by another. `oldString` must be in the \
     file exactly as given, with all its blanks, and only once, unless `replaceAll` is true: give \
     enough of the lines around it. Line numbers that read shows are not part of the file. Line \
     endings are kept. With an empty `oldString` a new file is made.";

pub struct Edit;

impl Tool for Edit {
    fn spec(&self) -> ToolSpec {
        let mut parameters = schema();
        if let Some(Value::Object(properties)) = parameters.get_mut("properties") {
            let path = serde_json::json!({ "type": "string", "description": PATH_HELP });
            properties.insert("path".to_owned(), path);
        }
        if let Some(Value::Array(required)) = parameters.get_mut("required") {
            required.insert(0, "path".into());
        }
        ToolSpec { name: "edit", description: DESCRIPTION.into(), parameters: parameters.into() }
    }

    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        judge("edit", parse(args), place)
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        start("edit", run, parse)
    }
}

fn parse(json: &str) -> Result<Wanted, Text> {
    let args = Args::parse("edit", json)?;
    let path = args.path()?;
    let replacement = Replacement::parse(&args).map_err(|why| format!("edit: {why}"))?;
    Ok(Wanted { path, replacements: vec![replacement] })
}

/// Of one replacement.
pub(super) fn schema() -> Value {
    serde_json::json!({
        "type": "object",
        "properties": {
            "oldString": {
                "type": "string",
                "description": "What is replaced, exactly as it is in the file.",
            },
            "newString": { "type": "string", "description": "What takes its place." },
            "replaceAll": {
                "type": "boolean",
                "description": "Replaces it wherever it is; false by default.",
            },
        },
        "required": ["oldString", "newString"],
    })
}

/// Replacements in one file: all of them, one after the other, or none.
pub(super) struct Wanted {
    pub path: String,
    pub replacements: Vec<Replacement>,
}

impl Wanted {
    fn plan(&self, place: &Place) -> Result<(Target, Plan, usize), String> {
        let target = Target::find(&self.path, place, Names::File, Links::Refuse)?;
        let mut places = 0;
        let plan = plan_content(&target.root, &target.relative, |before| {
            let work = before.map_or(0, <[u8]>::len).saturating_mul(self.replacements.len());
            if work > WORK_BYTES_MAX {
                return Err("too large for so many edits; make fewer at a time".to_owned());
            }
            let mut content = before.map(<[u8]>::to_vec);
            for (index, replacement) in self.replacements.iter().enumerate() {
                let (after, count) =
                    replacement.apply(content.as_deref()).map_err(|why| {
                        match self.replacements.len() {
                            1 => why,
                            _ => format!("edit {}: {why}; nothing was changed", index + 1),
                        }
                    })?;
                if after.len() > FILE_BYTES_MAX {
                    let bytes = after.len();
                    return Err(format!("would have {bytes} bytes, over {FILE_BYTES_MAX}"));
                }
                places += count;
                content = Some(after);
            }
            Ok(content.unwrap_or_default())
        });
        let plan = plan.map_err(|error| target.explain(error))?;
        Ok((target, plan, places))
    }
}

pub(super) fn judge<'a>(
    name: &'static str,
    wanted: Result<Wanted, Text>,
    place: &'a Place,
) -> BoxFuture<'a, Result<Judgement, Text>> {
    judge_blocking(name, Effect::Edit, wanted, place, move |wanted, place| {
        let (target, plan, places) = wanted.plan(place)?;
        let path = target.shown();
        let edit = Shown {
            name,
            targets: &[&target],
            does: match places {
                0 | 1 => format!("edits {path}"),
                places => format!("edits {path} in {places} places"),
            },
            key: format!("edit:{}", target.path),
            covers: format!("edits of {path}"),
            risk: Risk::Medium,
            always_asks: false,
            patch: plan.changes().first().and_then(|change| patch_of(&target, change)),
            diff: plan.changes().first().map(|change| diff::of_shown(&target.path, change)),
        };
        Ok(edit.judgement())
    })
}

pub(super) fn start(
    name: &'static str,
    run: Run,
    parse: impl FnOnce(&str) -> Result<Wanted, Text> + Send + 'static,
) -> BoxStream<'static, Progress> {
    edit(name, run, parse, |wanted, run, notes| {
        let (target, plan, places) = wanted.plan(&run.place)?;
        notes.record(touches_of(&plan, Some(&target)))?;
        let changes =
            plan.apply(run.place.journal.as_ref()).map_err(|error| target.explain(error))?;
        let files = changes.iter().map(|change| file_change(&target.path, change)).collect();
        let s = if places == 1 { "" } else { "s" };
        let text = format!("Edited {} in {places} place{s}.\n", target.shown());
        Ok(Done { text, files, ..Done::default() })
    })
}
