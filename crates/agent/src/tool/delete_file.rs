//! Deletes a file or an empty directory; a directory with all that is in it only if told to.
//!
//! What is deleted is first renamed and looked at again, so that it is what was meant; a directory
//! is judged by each path in it. Never follows a link: below a directory, links are deleted and
//! not what they lead to.

use std::os::fd::OwnedFd;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use polyloop_session::Text;
use polyloop_session::item::{FileChange, Operation};
use polyloop_session::policy::{Effect, Judgement, Risk, Says};
use rustix::fs::{Access, AtFlags, FileType, Stat, accessat, unlinkat};
use rustix::io::Errno;

use super::files::{
    Args, Done, Edit, Held, Links, Names, PATH_HELP, Target, diff, edit, judge_blocking, keep,
    kept_bytes, open_directory, read_content,
};
use super::touches::Notes;
use super::{Place, Progress, Run, Tool, ToolSpec, Touches};
use crate::patch::root::{FileId, look};
use crate::patch::{
    Does, Fact, Facts, Flush, Journal, Named, Open, path, put_where_nothing_is, spare_name,
};
use crate::perform;

mod tree;

const DESCRIPTION: &str = "Deletes a file, or a directory that is empty. A directory with all that \
     is in it is deleted only if `recursive` is true; then the user is asked.";

pub struct DeleteFile;

impl Tool for DeleteFile {
    fn spec(&self) -> ToolSpec {
        let parameters = serde_json::json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": PATH_HELP },
                "recursive": {
                    "type": "boolean",
                    "description": "Deletes a directory with all that is in it; false by default.",
                },
            },
            "required": ["path"],
        });
        ToolSpec {
            name: "delete_file",
            description: DESCRIPTION.into(),
            parameters: parameters.into(),
        }
    }

    fn judge<'a>(
        &'a self,
        args: &'a str,
        place: &'a Place,
    ) -> BoxFuture<'a, Result<Judgement, Text>> {
        judge_blocking("delete_file", Effect::Edit, Wanted::parse(args), place, |wanted, place| {
            let (target, found) = wanted.find(place)?;
            match found.kind {
                Kind::File => found.judge_file(&target),
                Kind::Directory => wanted.judge_directory(&target, &found.open(&target)?, place),
            }
        })
    }

    fn run(&self, run: Run) -> BoxStream<'static, Progress> {
        edit("delete_file", run, Wanted::parse, |wanted, run, notes| {
            let (target, found) = wanted.find(&run.place)?;
            match found.kind {
                Kind::File => found.delete_file(&target, run.place.journal.as_ref(), notes),
                Kind::Directory if wanted.recursive => {
                    found.delete_tree(&target, wanted, run, notes)
                }
                Kind::Directory => {
                    let removed = vec![target.path.as_str().into()];
                    notes.record(Touches { removed, ..Touches::default() })?;
                    found.delete_directory(&target)
                }
            }
        })
    }
}

struct Wanted {
    path: String,
    recursive: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
}

/// What is to be deleted, as it was found.
struct Found {
    kind: Kind,
    stat: Stat,
    /// The directory it is in.
    above: OwnedFd,
    name: String,
}

impl Wanted {
    fn parse(json: &str) -> Result<Wanted, Text> {
        let args = Args::parse("delete_file", json)?;
        Ok(Wanted { path: args.path()?, recursive: args.flag(&["recursive"], false)? })
    }

    fn find(&self, place: &Place) -> Result<(Target, Found), String> {
        if self.path.is_empty() {
            return Err("`path` is empty".to_owned());
        }
        let target = Target::find(&self.path, place, Names::Any, Links::Refuse)?;
        let path = target.shown();
        if place.cwd.starts_with(&target.real) {
            return Err(format!("{path}: is the working directory or holds it"));
        }
        let holds = |own: &std::path::PathBuf| {
            own.starts_with(&target.real)
                || own.canonicalize().is_ok_and(|own| own.starts_with(&target.real))
        };
        if place.forbidden.iter().any(holds) {
            return Err(format!("{path}: holds the server's own files"));
        }
        let (above, name) = path::split(&target.relative);
        let above = match target.root.directory(above) {
            Ok(above) => above,
            Err(Errno::NOENT) => return Err(target.missing()),
            Err(errno) => {
                let error = target.root.no_directory(&target.relative, errno);
                return Err(target.explain(error));
            }
        };
        let stat = match look(&above, name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Err(target.missing()),
            Err(errno) => return Err(format!("{path}: cannot look at it: {errno}")),
        };
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Kind::Directory,
            _ => {
                let regular = target.root.check_regular(&target.relative, &stat);
                regular.map_err(|error| target.explain(error))?;
                Kind::File
            }
        };
        let found = Found { kind, stat, name: name.to_owned(), above };
        found.check_writable(&target)?;
        Ok((target, found))
    }

    /// `directory` is what is, or was, at the target's path.
    fn judge_directory(
        &self,
        target: &Target,
        directory: &OwnedFd,
        place: &Place,
    ) -> Result<Judgement, String> {
        let path = target.shown();
        let held = Held::look(directory, target, place).map_err(|why| format!("{path}: {why}"))?;
        let protected = held.protected_in_words();
        let does = match held.count {
            0 => format!("deletes the empty directory {path}"),
            count if self.recursive => {
                format!("deletes the directory {path} and all {count} things in it{protected}")
            }
            _ => return Err(not_empty(target)),
        };
        let (verb, covers, risk) = match self.recursive {
            true => ("delete_all", " and all that is in it", Risk::High),
            false => ("delete", "", Risk::Medium),
        };
        let edit = Edit {
            name: "delete_file",
            targets: &[&held.with(target)],
            covers: format!("deleting {path}{covers}{protected}"),
            does,
            key: format!("{verb}:{}{}", target.path, held.protected_as_key()),
            risk,
            always_asks: self.recursive,
            diff: None,
            patch: None,
        };
        Ok(edit.judgement())
    }

    /// An error unless it may be deleted with what is in it by now, by what the call runs by.
    fn check(&self, target: &Target, directory: &OwnedFd, run: &Run) -> Result<(), String> {
        let judged = self.judge_directory(target, directory, &run.place)?;
        let judged = perform::ruled("delete_file", judged, &run.place);
        let path = target.shown();
        if let Some(rule) = judged.rule.as_ref().filter(|rule| rule.says == Says::Deny) {
            return Err(format!("{path}: the rules of this server deny it: {}", rule.line));
        }
        match &run.unasked {
            Some(unasked) if unasked.lets(&judged).is_none() => {
                Err(format!("{path}: by now it holds what must be asked about; propose it again"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Found {
    /// Someone took the right to write away on purpose.
    fn check_writable(&self, target: &Target) -> Result<(), String> {
        let name = self.name.as_str();
        let access = accessat(&self.above, name, Access::WRITE_OK, AtFlags::EACCESS);
        if self.kind == Kind::File && (self.stat.st_mode & 0o222 == 0 || access.is_err()) {
            let (path, mode) = (target.shown(), self.stat.st_mode & 0o7777);
            let why = format!("{path}: read-only (mode {mode:04o}); make it writable to delete it");
            return Err(why);
        }
        Ok(())
    }

    fn judge_file(&self, target: &Target) -> Result<Judgement, String> {
        let path = target.shown();
        let edit = Edit {
            name: "delete_file",
            targets: &[target],
            covers: format!("deleting {path}"),
            does: format!("deletes {path}"),
            key: format!("delete:{}", target.path),
            risk: Risk::Medium,
            always_asks: false,
            diff: Some(self.diff(target, self.content(target)?.as_ref())),
            patch: Some(format!(
                "*** Begin Patch\n*** Delete File: {}\n*** End Patch\n",
                target.path
            )),
        };
        Ok(edit.judgement())
    }

    fn open(&self, target: &Target) -> Result<OwnedFd, String> {
        open_directory(&self.above, &self.name)
            .map_err(|errno| format!("{}: cannot open it: {errno}", target.shown()))
    }

    /// What is in it; nothing where that is too large to be read.
    fn content(&self, target: &Target) -> Result<Option<Bytes>, String> {
        let opened = target.root.open_file(&target.relative);
        let opened = opened.map_err(|error| target.explain(error))?;
        Ok(read_content(opened.ok_or_else(|| target.missing())?.0))
    }

    fn diff(&self, target: &Target, content: Option<&Bytes>) -> String {
        diff::of_deletion(&target.path, self.stat.st_mode, content)
    }

    fn delete_file(
        &self,
        target: &Target,
        journal: Option<&Journal>,
        notes: &Notes,
    ) -> Result<Done, String> {
        let content = self.content(target)?;
        let (before, hash) = kept_bytes(content.as_ref());
        let change = FileChange {
            diff: Some(self.diff(target, content.as_ref()).into()),
            path: target.path.as_str().into(),
            operation: Operation::Delete,
            before,
            ..FileChange::default()
        };
        let mode = Some(self.stat.st_mode & 0o7777);
        let mut touches = Touches::default();
        let mut file = FileChange { diff: None, mode, ..change.clone() };
        if let Some(content) = &content {
            keep(&mut file, &mut touches.contents, content);
        }
        touches.files.push(file);
        notes.record(touches)?;
        let hash = hash.as_deref().unwrap_or_default();
        self.journaled(target, journal, (Does::Remove, hash), |spare| {
            self.set_aside(target, spare)?;
            unlinkat(&self.above, spare, AtFlags::empty()).map_err(|errno| {
                self.put_back(spare, format!("{}: cannot delete it: {errno}", target.shown()))
            })
        })?;
        Ok(Done { text: deleted(target), files: vec![change], ..Done::default() })
    }

    fn delete_directory(&self, target: &Target) -> Result<Done, String> {
        match unlinkat(&self.above, self.name.as_str(), AtFlags::REMOVEDIR) {
            Ok(()) => Ok(Done::text(deleted(target))),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(not_empty(target)),
            Err(errno) => Err(format!("{}: cannot delete it: {errno}", target.shown())),
        }
    }

    /// Looks into it before it is put aside, so that what may not be deleted stays where it is, and
    /// after, because only then nobody puts anything else into it by its name.
    fn delete_tree(
        &self,
        target: &Target,
        wanted: &Wanted,
        run: &Run,
        notes: &Notes,
    ) -> Result<Done, String> {
        wanted.check(target, &self.open(target)?, run)?;
        let touches = tree::touches(&self.open(target)?, &target.path)?;
        let not_kept = tree::not_kept(&touches);
        notes.record(touches)?;
        let journal = run.place.journal.as_ref();
        self.journaled(target, journal, (Does::RemoveTree, ""), |spare| {
            self.set_aside(target, spare)?;
            let opened = open_directory(&self.above, spare);
            let opened = opened.map_err(|errno| format!("{}: {errno}", target.shown()));
            let checked =
                opened.and_then(|inside| wanted.check(target, &inside, run).map(|()| inside));
            match checked {
                Ok(inside) => self.delete_aside(target, spare, &inside),
                Err(why) => Err(self.put_back(spare, why)),
            }
        })
        .map(|done| match not_kept {
            0 => done,
            lost => Done { text: format!("{}{}", done.text, cannot_be_undone(lost)), ..done },
        })
    }

    fn delete_aside(&self, target: &Target, spare: &str, inside: &OwnedFd) -> Result<Done, String> {
        let mut files = Vec::new();
        let emptied = tree::delete(inside, &target.path, &mut files).and_then(|()| {
            unlinkat(&self.above, spare, AtFlags::REMOVEDIR).map_err(|errno| errno.to_string())
        });
        let text = format!("Deleted {} and all that was in it.\n", target.shown());
        let failure = emptied.err().map(|why| {
            let why = format!("{}: cannot delete all of it: {why}", target.shown());
            let why = self.put_back(spare, why);
            format!("{why}; {} files were deleted", files.len())
        });
        Ok(Done { text, files, failure, ..Done::default() })
    }

    /// Does what deletes it by way of a spare name, so that a server that starts after a kill can
    /// finish it.
    fn journaled<T>(
        &self,
        target: &Target,
        journal: Option<&Journal>,
        (does, hash): (Does, &str),
        work: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, String> {
        let spare = spare_name();
        let named = Named { does, path: target.relative.clone(), spare: spare.clone(), copy: None };
        let inode = FileId::of(&self.stat).inode;
        let bytes = u64::try_from(self.stat.st_size).unwrap_or_default();
        let old = Some(Fact { inode, bytes, hash: hash.to_owned() });
        let begin = |journal: &Journal| {
            let mut open = journal.begin(&target.root, vec![named], Vec::new())?;
            open.ready(vec![Facts { old, new: None }], Flush::No)?;
            Ok(open)
        };
        let open = journal.map(begin).transpose().map_err(|error| target.explain(error))?;
        let worked = work(&spare);
        open.into_iter().for_each(Open::remove);
        worked
    }

    /// Gives it a name that nobody uses, if it still is what was found.
    fn set_aside(&self, target: &Target, spare: &str) -> Result<(), String> {
        let path = target.shown();
        let (above, name) = (&self.above, self.name.as_str());
        put_where_nothing_is(above, name, spare)
            .map_err(|errno| format!("{path}: cannot delete it: {errno}"))?;
        match look(above, spare) {
            Ok(stat) if FileId::of(&stat) == FileId::of(&self.stat) => Ok(()),
            Ok(_) | Err(_) => {
                let why = format!("{path}: was changed by another program meanwhile");
                Err(self.put_back(spare, why))
            }
        }
    }

    /// The error, after putting it back.
    fn put_back(&self, spare: &str, why: String) -> String {
        match put_where_nothing_is(&self.above, spare, self.name.as_str()) {
            Ok(()) => why,
            Err(errno) => format!("{why}; what is left is kept beside it as {spare}: {errno}"),
        }
    }
}

fn cannot_be_undone(lost: usize) -> String {
    let files = if lost == 1 { "file was" } else { "files were" };
    format!("The content of {lost} {files} not kept: this cannot be undone.\n")
}

fn deleted(target: &Target) -> String {
    format!("Deleted {}.\n", target.shown())
}

fn not_empty(target: &Target) -> String {
    let path = target.shown();
    format!("{path}: a directory that is not empty; set `recursive` to delete all that is in it")
}
