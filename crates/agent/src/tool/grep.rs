//! Finds lines by a regular expression, in this process.
//!
//! In the order of paths and lines, bounded in time, matches and bytes. Leaves out what ignore
//! files leave out and what is binary; never follows a link, and never waits for a pipe.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use globset::GlobMatcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use polyloop_session::Text;
use polyloop_session::policy::Judgement;

use super::files::{
    Args, Kind, Names, Order, PATH_HELP, Reading, Target, Tree, Watch, judge_reading, run_reading,
};
use super::{Place, Progress, Run, Tool, ToolSpec};

mod search;

use search::Search;

/// Matching lines of one answer, unless it asks for fewer or more.
const MATCHES_PRESET: usize = 100;
const MATCHES_MAX: usize = 1_000;
const CONTEXT_LINES_MAX: usize = 20;
const PATTERN_BYTES_MAX: usize = 8 * 1024;
/// Of a compiled pattern.
const REGEX_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Of the states a search remembers.
const CACHE_BYTES_MAX: usize = 32 * 1024 * 1024;

const DESCRIPTION: &str = "Finds lines that match a regular expression (Rust syntax, like \
     ripgrep's) in the files below a directory, or in one file. A match is within one line. Files \
     that ignore files leave out and binary files are not searched. The end says whether there is \
     more.";

pub struct Grep;

impl Tool for Grep {
    fn spec(&self) -> ToolSpec {
        let number = |description: &str| serde_json::json!({ "type": "integer", "minimum": 0, "description": description });
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "pattern": { "type": "string", "description": "The regular expression." },
                "path": {
                    "type": "string",
                    "description": format!(
                        "The directory or file to search; the working directory by default. \
                         {PATH_HELP}"
                    ),
                },
                "include": {
                    "type": "string",
                    "description": "A glob of file names to search, such as *.{ts,tsx}.",
                },
                "ignore_case": {
                    "type": "boolean",
                    "description": "Whether upper and lower case are the same; false by default.",
                },
                "context": number("Lines to show before and after each match; 0 by default."),
                "limit": number("Matching lines at most; 100 by default."),
                "offset": number("How many matching lines to skip; 0 by default."),
            },
            "required": ["pattern"],
        });
        ToolSpec { name: "grep", description: DESCRIPTION.into(), parameters: parameters.into() }
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
        run_reading(run, search)
    }
}

struct Wanted {
    path: String,
    regex: RegexMatcher,
    include: Option<GlobMatcher>,
    context: usize,
    limit: usize,
    offset: usize,
}

impl Reading for Wanted {
    const NAME: &'static str = "grep";
    const DOES: &'static str = "searches";
    const NAMES: Names = Names::Any;

    fn parse(json: &str) -> Result<Wanted, Text> {
        let args = Args::parse(Self::NAME, json)?;
        let pattern = args.required(&["pattern"], "a regular expression")?;
        if pattern.is_empty() || pattern.len() > PATTERN_BYTES_MAX {
            let why = format!("grep: `pattern` must have 1 to {PATTERN_BYTES_MAX} bytes");
            return Err(why.into());
        }
        let ignore_case = args.flag(&["ignore_case", "-i"], false)?;
        let regex = RegexMatcherBuilder::new()
            .case_insensitive(ignore_case)
            // `^` and `$` are about lines.
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .crlf(true)
            .size_limit(REGEX_BYTES_MAX)
            .dfa_size_limit(CACHE_BYTES_MAX)
            .build(&pattern)
            .map_err(|error| format!("grep: `pattern`: {error}"))?;
        let include = args.text(&["include", "glob"])?;
        let include = include.filter(|glob| !glob.is_empty());
        let include = include.map(|glob| super::glob::matcher("grep", "include", &glob));
        let context = args.count("context", 0)?.min(CONTEXT_LINES_MAX);
        let limit = args.limit(MATCHES_PRESET, MATCHES_MAX)?;
        let (path, offset) = (args.directory()?, args.count("offset", 0)?);
        Ok(Wanted { path, regex, include: include.transpose()?, context, limit, offset })
    }

    fn path(&self) -> &str {
        &self.path
    }
}

fn search(
    wanted: &Wanted,
    target: &Target,
    place: &Place,
    watch: &Watch,
) -> Result<String, String> {
    let mut search = Search::new(wanted, watch);
    if target.root.directory(&target.relative).is_err()
        && let Some((file, _)) =
            target.root.open_file(&target.relative).map_err(|error| target.explain(error))?
    {
        search.file(&target.shown(), file);
        return Ok(search.finish(watch.why_over()));
    }
    let over = Tree::new(target, place, watch).walk(&mut |entry| {
        if entry.ignored {
            return Order::Pass;
        }
        if entry.kind != Kind::File {
            return Order::Enter;
        }
        let name = entry.path.file_name().unwrap_or_default();
        let included = |glob: &GlobMatcher| glob.is_match(name) || glob.is_match(entry.path);
        if !wanted.include.as_ref().is_none_or(included) {
            return Order::Pass;
        }
        if let Some(file) = entry.open() {
            search.file(&target.below(entry.path), file);
        }
        if search.is_over() { Order::End } else { Order::Enter }
    })?;
    Ok(search.finish(over))
}
