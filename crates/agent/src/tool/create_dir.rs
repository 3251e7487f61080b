//! Makes a directory, and the ones above it that are missing.
//!
//! Never through a link. If it cannot be made, what was made above it is removed again.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::policy::{Effect, Judgement, Risk};
use rustix::io::Errno;

use super::files::{Args, Done, Edit, Links, Names, PATH_HELP, Target, edit, judge_blocking};
use super::{Place, Progress, Run, Tool, ToolSpec, Touches};
use crate::patch::{make_directory, path};

const DESCRIPTION: &str = "Makes a directory, and the directories above it that are missing. One \
     that is there already is no error, unless `exist_ok` is false.";

pub struct CreateDir;

impl Tool for CreateDir {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": PATH_HELP },
                "exist_ok": {
                    "type": "boolean",
                    "description": "Whether it may be there already; true by default.",
                },
            },
            "required": ["path"],
        });
        ToolSpec {
            name: "create_dir",
            description: DESCRIPTION.into(),
            parameters: parameters.into(),
        }
    }

    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        judge_blocking("create_dir", Effect::Edit, Wanted::parse(args), place, |wanted, place| {
            let target = wanted.target(place)?;
            wanted.is_there(&target)?;
            let path = target.shown();
            let edit = Edit {
                name: "create_dir",
                targets: &[&target],
                does: format!("makes the directory {path}"),
                key: format!("create_dir:{}", target.path),
                covers: format!("making the directory {path}"),
                risk: Risk::Medium,
                always_asks: false,
                patch: None,
                diff: None,
            };
            Ok(edit.judgement())
        })
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        edit("create_dir", run, Wanted::parse, |wanted, run, notes| {
            let target = wanted.target(&run.place)?;
            let path = target.shown();
            if wanted.is_there(&target)? {
                return Ok(Done::text(format!("{path} is there already.\n")));
            }
            notes.record(Touches {
                made: target.missing_above(&target.relative),
                ..Touches::default()
            })?;
            let made = make_directory(&target.root, &target.relative)
                .map_err(|error| target.explain(error))?;
            // Another program may have been quicker.
            if made.is_empty() && !wanted.exist_ok {
                return Err(format!("{path}: exists already"));
            }
            Ok(Done::text(format!("Made {path}.\n")))
        })
    }
}

struct Wanted {
    path: String,
    exist_ok: bool,
}

impl Wanted {
    fn parse(json: &str) -> Result<Wanted, Text> {
        let args = Args::parse("create_dir", json)?;
        Ok(Wanted { path: args.path()?, exist_ok: args.flag(&["exist_ok"], true)? })
    }

    fn target(&self, place: &Place) -> Result<Target, String> {
        if self.path.is_empty() {
            return Err("`path` is empty".to_owned());
        }
        Target::find(&self.path, place, Names::Any, Links::Refuse)
    }

    /// An error if that, or what is there, is in the way.
    fn is_there(&self, target: &Target) -> Result<bool, String> {
        let path = target.shown();
        match target.root.directory(&target.relative) {
            Ok(_) if self.exist_ok => Ok(true),
            Ok(_) => Err(format!("{path}: exists already")),
            Err(Errno::NOENT) => Ok(false),
            Err(Errno::NOTDIR) => {
                let (above, name) = path::split(&target.relative);
                let is_there = target
                    .root
                    .directory(above)
                    .is_ok_and(|above| crate::patch::root::look(above, name).is_ok());
                Err(match is_there {
                    true => format!("{path}: is there already, and not a directory"),
                    false => format!("{path}: a part of this path is not a directory"),
                })
            }
            Err(errno) => Err(target.explain(target.root.no_directory(&target.relative, errno))),
        }
    }
}
