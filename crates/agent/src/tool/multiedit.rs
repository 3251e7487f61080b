//! Several replacements in one file: all of them, one after the other, or none.
//!
//! What one replacement is, and what it never does, is in `edit`.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::Judgement;

use super::edit::{Replacement, Wanted, judge, schema, start};
use super::files::{Args, PATH_HELP};
use super::{Place, Progress, Run, Tool, ToolSpec};

/// Replacements of one call.
pub const EDITS_MAX: usize = 256;

const DESCRIPTION: &str = "Makes several replacements in one text file: all of them, in the order \
     given, each on what the ones before it left, or none. Each is as in edit.";

pub struct MultiEdit;

impl Tool for MultiEdit {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": PATH_HELP },
                "edits": {
                    "type": "array",
                    "items": schema(),
                    "minItems": 1,
                    "maxItems": EDITS_MAX,
                },
            },
            "required": ["path", "edits"],
        });
        ToolSpec {
            name: "multiedit",
            description: DESCRIPTION.into(),
            parameters: parameters.into(),
        }
    }

    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        judge("multiedit", parse(args), place)
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        start("multiedit", run, parse)
    }
}

fn parse(json: &str) -> Result<Wanted, Text> {
    let args = Args::parse("multiedit", json)?;
    let path = args.path()?;
    let edits = args.list("edits")?;
    if edits.is_empty() {
        return Err("multiedit: `edits` is missing or empty; give the replacements".into());
    }
    if edits.len() > EDITS_MAX {
        let count = edits.len();
        return Err(format!("multiedit: {count} edits, the limit is {EDITS_MAX}").into());
    }
    let replacement = |(index, value)| {
        let number = index + 1;
        let inner = Args::inner("multiedit", &format!("edit {number}"), value)?;
        Replacement::parse(&inner)
            .map_err(|why| Text::from(format!("multiedit: edit {number}: {why}")))
    };
    let replacements: Result<Vec<_>, Text> = edits.iter().enumerate().map(replacement).collect();
    Ok(Wanted { path, replacements: replacements? })
}
