//! Lists what is in a directory, as a tree of as many levels as fit.
//!
//! Shows everything that is in the directory itself; below, what ignore files leave out is named
//! but not entered. Never follows a link.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use globset::{GlobSet, GlobSetBuilder};
use polyloop_session::Text;
use polyloop_session::policy::Judgement;

use super::files::{
    Args, Entry, Kind, Names, Order, PATH_HELP, Reading, TEXT_BYTES_MAX, Target, Tree, Watch,
    judge_reading, name_of, run_reading,
};
use super::{Place, Progress, Run, Tool, ToolSpec};

/// Entries of one listing, unless it asks for fewer or more.
const ENTRIES_PRESET: usize = 200;
const ENTRIES_MAX: usize = 1_000;
const DEPTH_PRESET: usize = 3;
const DEPTH_MAX: usize = 16;
/// Room for the notes at the end.
const NOTES_BYTES: usize = 1_024;

const DESCRIPTION: &str = "Lists a directory as a tree: directories end with a slash, links say \
     where they lead. Deeper levels are shown as long as all of a level fits; what ignore files \
     leave out is named, but not entered.";

pub struct Ls;

impl Tool for Ls {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": format!("The working directory by default. {PATH_HELP}"),
                },
                "ignore": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Globs of names that are left out.",
                },
                "depth": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Levels at most; 3 by default.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Entries at most; 200 by default.",
                },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "How many entries to skip; then one level is shown.",
                },
            },
        });
        ToolSpec { name: "ls", description: DESCRIPTION.into(), parameters: parameters.into() }
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
        run_reading(run, list)
    }
}

struct Wanted {
    path: String,
    ignore: GlobSet,
    depth: usize,
    limit: usize,
    offset: usize,
}

impl Reading for Wanted {
    const NAME: &'static str = "ls";
    const DOES: &'static str = "lists";
    const NAMES: Names = Names::Any;

    fn parse(json: &str) -> Result<Wanted, Text> {
        let args = Args::parse(Self::NAME, json)?;
        let mut ignore = GlobSetBuilder::new();
        for glob in args.texts("ignore")? {
            let made = globset::Glob::new(glob.trim_end_matches('/'));
            ignore.add(made.map_err(|error| format!("ls: `ignore`: {error}"))?);
        }
        let ignore = ignore.build().map_err(|error| format!("ls: `ignore`: {error}"))?;
        let depth = args.count("depth", DEPTH_PRESET)?.clamp(1, DEPTH_MAX);
        let limit = args.limit(ENTRIES_PRESET, ENTRIES_MAX)?;
        let (path, offset) = (args.directory()?, args.count("offset", 0)?);
        Ok(Wanted { path, ignore, depth, limit, offset })
    }

    fn path(&self) -> &str {
        &self.path
    }
}

/// The entries of some levels.
struct Level {
    rows: Vec<String>,
    /// Something in it was not shown, because it does not fit.
    is_cut: bool,
    /// Why the walk ended early.
    over: Option<String>,
}

fn list(wanted: &Wanted, target: &Target, place: &Place, watch: &Watch) -> Result<String, String> {
    let depth = if wanted.offset > 0 { 1 } else { wanted.depth };
    let mut best = level(wanted, target, place, watch, 1)?;
    let mut shown = 1;
    while shown < depth && !best.is_cut && best.over.is_none() {
        let deeper = level(wanted, target, place, watch, shown + 1)?;
        if deeper.is_cut || deeper.rows.len() == best.rows.len() {
            break;
        }
        (best, shown) = (deeper, shown + 1);
    }
    let mut text = match target.path.as_str() {
        "/" => "/\n".to_owned(),
        _ => format!("{}/\n", target.shown()),
    };
    if best.rows.is_empty() && best.over.is_none() {
        text.push_str(match wanted.offset {
            0 => "(the directory is empty)\n",
            _ => "(no more entries)\n",
        });
    }
    best.rows.iter().for_each(|row| text.push_str(row));
    if best.is_cut {
        let next = wanted.offset + best.rows.len();
        text.push_str(&format!("(more entries follow; list on with offset {next})\n"));
    }
    if let Some(why) = best.over {
        text.push_str(&why);
        text.push('\n');
    }
    Ok(text)
}

fn level(
    wanted: &Wanted,
    target: &Target,
    place: &Place,
    watch: &Watch,
    depth: usize,
) -> Result<Level, String> {
    let (mut rows, mut bytes, mut skipped) = (Vec::new(), 0, 0);
    let mut is_cut = false;
    let over = Tree::new(target, place, watch).walk(&mut |entry| {
        let name = entry.path.file_name().unwrap_or_default();
        if wanted.ignore.is_match(name) || wanted.ignore.is_match(entry.path) {
            return Order::Pass;
        }
        if skipped < wanted.offset {
            skipped += 1;
            return Order::Pass;
        }
        let row = row(entry);
        if rows.len() >= wanted.limit || bytes + row.len() > TEXT_BYTES_MAX - NOTES_BYTES {
            is_cut = true;
            return Order::End;
        }
        bytes += row.len();
        rows.push(row);
        if entry.depth < depth && !entry.ignored { Order::Enter } else { Order::Pass }
    })?;
    Ok(Level { rows, is_cut, over })
}

fn row(entry: &Entry<'_>) -> String {
    let name = name_of(entry.path.file_name().unwrap_or_default());
    let indent = "  ".repeat(entry.depth);
    match entry.kind {
        Kind::File => format!("{indent}{name}\n"),
        Kind::Directory => format!("{indent}{name}/\n"),
        Kind::Link => {
            let leads = entry.link_text().unwrap_or_else(|| "?".to_owned());
            format!("{indent}{name} -> {leads}\n")
        }
        Kind::Other => format!("{indent}{name} (not a file)\n"),
    }
}
