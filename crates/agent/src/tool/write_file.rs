//! Writes a whole file: a new one, or in place of what is there.
//!
//! By a temporary file and a renaming: a reader sees the old content or the new one. Keeps the
//! mode of a file that is there; never writes through a link.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement, Risk};

use super::files::{
    Args, Done, Edit, Links, Names, PATH_HELP, Target, diff, edit, file_change, judge_blocking,
    patch_of, touches_of,
};
use super::{Place, Progress, Run, Tool, ToolSpec};
use crate::patch::{FILE_BYTES_MAX, Operation, Plan, plan_content};

const DESCRIPTION: &str = "Writes a file: makes it, with the directories above it, or replaces its \
     whole content. With `append` the content goes behind what is there. To change a part of a \
     file use edit instead.";

pub struct WriteFile;

impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": PATH_HELP },
                "content": {
                    "type": "string",
                    "description": "Exactly what the file shall hold; end it with a newline.",
                },
                "append": {
                    "type": "boolean",
                    "description": "Adds to the end of the file instead; false by default.",
                },
            },
            "required": ["path", "content"],
        });
        ToolSpec {
            name: "write_file",
            description: DESCRIPTION.into(),
            parameters: parameters.into(),
        }
    }

    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        judge_blocking("write_file", Effect::Edit, Wanted::parse(args), place, |wanted, place| {
            let (target, plan) = wanted.plan(place)?;
            let path = target.shown();
            let change = plan.changes().first();
            let replaces = change.is_some_and(|change| change.operation == Operation::Update);
            let does = match (wanted.append, replaces) {
                (true, true) => format!("adds to the end of {path}"),
                (false, true) => format!("replaces the whole content of {path}"),
                (_, false) => format!("writes the new file {path}"),
            };
            let edit = Edit {
                name: "write_file",
                targets: &[&target],
                does,
                key: format!("edit:{}", target.path),
                covers: format!("edits of {path}"),
                risk: Risk::Medium,
                always_asks: false,
                patch: change.and_then(|change| patch_of(&target, change)),
                diff: change.map(|change| diff::of_shown(&target.path, change)),
            };
            Ok(edit.judgement())
        })
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        edit("write_file", run, Wanted::parse, |wanted, run, notes| {
            let (target, plan) = wanted.plan(&run.place)?;
            notes.record(touches_of(&plan, Some(&target)))?;
            let changes =
                plan.apply(run.place.journal.as_ref()).map_err(|error| target.explain(error))?;
            let bytes = changes.first().and_then(|change| change.after.as_ref());
            let bytes = bytes.map_or(0, bytes::Bytes::len);
            let files = changes.iter().map(|change| file_change(&target.path, change)).collect();
            Ok(Done {
                text: format!("Wrote {} ({bytes} bytes).\n", target.shown()),
                files,
                ..Done::default()
            })
        })
    }
}

struct Wanted {
    path: String,
    content: String,
    append: bool,
}

impl Wanted {
    fn parse(json: &str) -> Result<Wanted, Text> {
        let args = Args::parse("write_file", json)?;
        let (path, content) = (args.path()?, args.required(&["content"], "the whole content")?);
        if content.len() > FILE_BYTES_MAX {
            let bytes = content.len();
            let why = format!(
                "write_file: `content` has {bytes} bytes, the limit is {FILE_BYTES_MAX}; write it \
                 in parts, with `append`"
            );
            return Err(why.into());
        }
        Ok(Wanted { path, content, append: args.flag(&["append"], false)? })
    }

    fn plan(&self, place: &Place) -> Result<(Target, Plan), String> {
        let target = Target::find(&self.path, place, Names::File, Links::Refuse)?;
        let plan = plan_content(&target.root, &target.relative, |before| {
            let before = before.filter(|_| self.append).unwrap_or_default();
            let bytes = [before, self.content.as_bytes()].concat();
            match bytes.len() {
                ..=FILE_BYTES_MAX => Ok(bytes),
                len => Err(format!("would have {len} bytes, the limit is {FILE_BYTES_MAX}")),
            }
        });
        let plan = plan.map_err(|error| target.explain(error))?;
        Ok((target, plan))
    }
}
