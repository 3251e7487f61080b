//! Finds files by their names.
//!
//! In the order of their paths. Leaves out what ignore files leave out, never follows a link, and
//! never enters Git's own directory.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use globset::{GlobBuilder, GlobMatcher};
use polyloop_session::Text;
use polyloop_session::policy::Judgement;

use super::files::{
    Args, Kind, Names, Order, PATH_HELP, Reading, TEXT_BYTES_MAX, Target, Tree, Watch,
    judge_reading, run_reading,
};
use super::{Place, Progress, Run, Tool, ToolSpec};

/// Paths of one answer, unless it asks for fewer or more.
const PATHS_PRESET: usize = 100;
const PATHS_MAX: usize = 1_000;
/// Of a glob.
const GLOB_BYTES_MAX: usize = 4_096;
/// Room for the notes at the end.
const NOTES_BYTES: usize = 1_024;

const DESCRIPTION: &str = "Finds files whose path matches a glob: `*` and `?` within a name, `**` \
     for any directories, `{a,b}` for alternatives, for example `src/**/*.{ts,tsx}`. Paths come \
     one a line, in order, relative to the working directory. Files that ignore files leave out \
     are not found.";

pub struct Glob;

impl Tool for Glob {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "pattern": {
                    "type": "string",
                    "description": "The glob, for paths relative to `path`.",
                },
                "path": {
                    "type": "string",
                    "description": format!(
                        "Where to look; the working directory by default. {PATH_HELP}"
                    ),
                },
                "include": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Globs of names; a file must match one of them too.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Paths at most; 100 by default.",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "How many paths to skip; 0 by default.",
                },
            },
            "required": ["pattern"],
        });
        ToolSpec { name: "glob", description: DESCRIPTION.into(), parameters: parameters.into() }
    }

    fn may_read(&self) -> bool {
        true
    }

    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        judge_reading::<Wanted>(args, place)
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        run_reading(run, find)
    }
}

struct Wanted {
    path: String,
    glob: GlobMatcher,
    include: Vec<GlobMatcher>,
    limit: usize,
    offset: usize,
}

impl Reading for Wanted {
    const NAME: &'static str = "glob";
    const DOES: &'static str = "finds files by name in";
    const NAMES: Names = Names::Any;

    fn parse(json: &str) -> Result<Wanted, Text> {
        let args = Args::parse(Self::NAME, json)?;
        let pattern = args.required(&["pattern"], "a glob such as **/*.rs")?;
        if pattern.starts_with('/') || pattern.split('/').any(|name| name == "..") {
            let why = "glob: `pattern` is relative and has no `..`; say in `path` where to look";
            return Err(why.into());
        }
        let glob = matcher("glob", "pattern", pattern.trim_start_matches("./"))?;
        let include = args.texts("include")?;
        let include: Result<Vec<GlobMatcher>, Text> =
            include.iter().map(|text| matcher("glob", "include", text)).collect();
        let limit = args.limit(PATHS_PRESET, PATHS_MAX)?;
        let (path, offset) = (args.directory()?, args.count("offset", 0)?);
        Ok(Wanted { path, glob, include: include?, limit, offset })
    }

    fn path(&self) -> &str {
        &self.path
    }
}

/// A glob in which `*` stays within a name.
pub(super) fn matcher(tool: &str, field: &str, glob: &str) -> Result<GlobMatcher, Text> {
    if glob.is_empty() || glob.len() > GLOB_BYTES_MAX {
        let why = format!("{tool}: `{field}` must have 1 to {GLOB_BYTES_MAX} bytes");
        return Err(why.into());
    }
    let built = GlobBuilder::new(glob).literal_separator(true).build();
    let built = built.map_err(|error| format!("{tool}: `{field}`: {error}"))?;
    Ok(built.compile_matcher())
}

fn find(wanted: &Wanted, target: &Target, place: &Place, watch: &Watch) -> Result<String, String> {
    let (mut text, mut found, mut shown, mut is_cut) = (String::new(), 0, 0, false);
    let over = Tree::new(target, place, watch).walk(&mut |entry| {
        if entry.ignored {
            return Order::Pass;
        }
        if !matches!(entry.kind, Kind::File | Kind::Link) {
            return Order::Enter;
        }
        let name = entry.path.file_name().unwrap_or_default();
        let included = wanted.include.is_empty()
            || wanted.include.iter().any(|glob| glob.is_match(name) || glob.is_match(entry.path));
        if !included || !wanted.glob.is_match(entry.path) {
            return Order::Enter;
        }
        found += 1;
        if found <= wanted.offset {
            return Order::Enter;
        }
        let row = format!("{}\n", target.below(entry.path));
        if shown >= wanted.limit || text.len() + row.len() > TEXT_BYTES_MAX - NOTES_BYTES {
            is_cut = true;
            return Order::End;
        }
        text.push_str(&row);
        shown += 1;
        Order::Enter
    })?;
    if is_cut {
        let next = wanted.offset + shown;
        text.push_str(&format!("(more files match; go on with offset {next})\n"));
    } else if shown == 0 && over.is_none() {
        text.push_str(match found {
            0 => "No files found.\n",
            _ => "(no more files)\n",
        });
    }
    if let Some(why) = over {
        text.push_str(&why);
        text.push('\n');
    }
    Ok(text)
}
