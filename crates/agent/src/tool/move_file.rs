//! Moves or renames a file.
//!
//! In one step, by renaming: never onto something that is there, never through a link, and never
//! another file than the one that was looked at.

use std::os::fd::OwnedFd;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::item::{FileChange, Operation};
use polyloop_session::policy::{Effect, Judgement, Risk};
use rustix::fs::{Access, AtFlags, RenameFlags, Stat, accessat, linkat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::files::{
    Args, Done, Edit, Links, Names, PATH_HELP, Target, diff, edit, judge_blocking, kept,
};
use super::touches::Notes;
use super::{Place, Progress, Run, Tool, ToolSpec, Touches};
use crate::patch::root::{FileId, look};
use crate::patch::{is_unsupported, make_directory, path, unmake_directories};

const DESCRIPTION: &str = "Moves or renames one file; directories above the target are made. It \
     never replaces anything: a target that exists is an error.";

pub struct MoveFile;

impl Tool for MoveFile {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "source": { "type": "string", "description": PATH_HELP },
                "target": {
                    "type": "string",
                    "description": "The new path of the file, with its name.",
                },
            },
            "required": ["source", "target"],
        });
        ToolSpec {
            name: "move_file",
            description: DESCRIPTION.into(),
            parameters: parameters.into(),
        }
    }

    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        judge_blocking("move_file", Effect::Edit, Wanted::parse(args), place, |wanted, place| {
            let Ends { from, to } = wanted.ends(place)?;
            check(&from, &to)?;
            let (source, target) = (from.shown(), to.shown());
            let (one, other) = (&from.path, &to.path);
            let edit = Edit {
                name: "move_file",
                targets: &[&from, &to],
                does: format!("moves {source} to {target}"),
                key: format!("move:{}", serde_json::json!([one, other])),
                covers: format!("moving {source} to {target}"),
                risk: Risk::Medium,
                always_asks: false,
                diff: Some(diff::of_move(one, other)),
                patch: Some(format!(
                    "*** Begin Patch\n*** Update File: {one}\n*** Move to: {other}\n*** End Patch\n"
                )),
            };
            Ok(edit.judgement())
        })
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        edit("move_file", run, Wanted::parse, |wanted, run, notes| {
            let Ends { from, to } = wanted.ends(&run.place)?;
            let file = rename(&from, &to, notes)?;
            let text = format!("Moved {} to {}.\n", from.shown(), to.shown());
            Ok(Done { text, files: vec![file], ..Done::default() })
        })
    }
}

struct Wanted {
    source: String,
    target: String,
}

struct Ends {
    from: Target,
    to: Target,
}

impl Wanted {
    fn parse(json: &str) -> Result<Wanted, Text> {
        let args = Args::parse("move_file", json)?;
        let source = args.required(&["source"], "the file's path")?;
        Ok(Wanted { source, target: args.required(&["target"], "the file's new path")? })
    }

    fn ends(&self, place: &Place) -> Result<Ends, String> {
        let find = |named| Target::find(named, place, Names::File, Links::Refuse);
        let (from, to) = (find(&self.source)?, find(&self.target)?);
        if from.real == to.real {
            return Err(format!("{}: is the source and the target", from.shown()));
        }
        Ok(Ends { from, to })
    }
}

/// The source, if it can be moved; the target must be free.
fn check(from: &Target, to: &Target) -> Result<Stat, String> {
    let opened = from.root.directory(path::split(&from.relative).0);
    let directory = match opened {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Err(from.missing()),
        Err(errno) => return Err(from.explain(from.root.no_directory(&from.relative, errno))),
    };
    let name = path::split(&from.relative).1;
    let stat = match look(&directory, name) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Err(from.missing()),
        Err(errno) => return Err(format!("{}: cannot look at it: {errno}", from.shown())),
    };
    from.root.check_regular(&from.relative, &stat).map_err(|error| from.explain(error))?;
    let access = accessat(&directory, name, Access::WRITE_OK, AtFlags::EACCESS);
    if stat.st_mode & 0o222 == 0 || access.is_err() {
        let mode = stat.st_mode & 0o7777;
        let path = from.shown();
        return Err(format!("{path}: read-only (mode {mode:04o}); make it writable to move it"));
    }
    let (above, name) = path::split(&to.relative);
    match to.root.directory(above).and_then(|directory| look(directory, name)) {
        Ok(_) => Err(format!("{}: exists already; choose another target", to.shown())),
        Err(Errno::NOENT) => Ok(stat),
        Err(errno) => Err(to.explain(to.root.no_directory(&to.relative, errno))),
    }
}

fn rename(from: &Target, to: &Target, notes: &Notes) -> Result<FileChange, String> {
    let planned = check(from, to)?;
    // Before it moves, under the name at which it was looked at.
    let opened = from.root.open_file(&from.relative).map_err(|error| from.explain(error))?;
    let (file, stat) = opened.ok_or_else(|| from.missing())?;
    if FileId::of(&stat) != FileId::of(&planned) {
        return Err(changed(from));
    }
    let (before, after) = kept(file);
    let above = path::split(&to.relative).0;
    let change = FileChange {
        diff: Some(diff::of_move(&from.path, &to.path).into()),
        path: to.path.as_str().into(),
        operation: Operation::Move { from: from.path.as_str().into() },
        before,
        after,
        ..FileChange::default()
    };
    // It is moved as it is, so its content need not be kept.
    let files = vec![FileChange { diff: None, before: None, ..change.clone() }];
    let made = match above {
        "" => Vec::new(),
        above => to.missing_above(above),
    };
    notes.record(Touches { files, made, ..Touches::default() })?;
    let made = match above {
        "" => Vec::new(),
        above => make_directory(&to.root, above).map_err(|error| to.explain(error))?,
    };
    let moved = put(from, to, &planned);
    if moved.is_err() {
        unmake_directories(&to.root, &made);
    }
    moved.map(|()| change)
}

fn put(from: &Target, to: &Target, planned: &Stat) -> Result<(), String> {
    let ((source, name), (above, new)) = (path::split(&from.relative), path::split(&to.relative));
    let open = |target: &Target, parent| {
        let opened = target.root.directory(parent);
        opened.map_err(|errno| target.explain(target.root.no_directory(&target.relative, errno)))
    };
    let (source, above) = (open(from, source)?, open(to, above)?);
    match rename_where_nothing_is((&source, name), (&above, new)) {
        Ok(()) => {}
        Err(Errno::EXIST) => {
            return Err(format!("{}: exists already; choose another target", to.shown()));
        }
        Err(Errno::NOENT) => return Err(from.missing()),
        Err(Errno::XDEV) => {
            return Err(format!("{}: on another file system; use bash", to.shown()));
        }
        Err(errno) => return Err(format!("{}: cannot move it: {errno}", from.shown())),
    }
    if look(&above, new).is_ok_and(|stat| FileId::of(&stat) == FileId::of(planned)) {
        return Ok(());
    }
    Err(match rename_where_nothing_is((&above, new), (&source, name)) {
        Ok(()) => changed(from),
        Err(errno) => format!("{}; and could not be put back: {errno}", changed(from)),
    })
}

/// A link replaces nothing either, where a file system lacks that kind of renaming.
fn rename_where_nothing_is(from: (&OwnedFd, &str), to: (&OwnedFd, &str)) -> Result<(), Errno> {
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        Err(errno) if is_unsupported(errno) => {
            linkat(from.0, from.1, to.0, to.1, AtFlags::empty())?;
            unlinkat(from.0, from.1, AtFlags::empty())
        }
        other => other,
    }
}

fn changed(target: &Target) -> String {
    format!("{}: was changed by another program meanwhile", target.shown())
}
