//! The cases of patches (`tests/patch_cases`), through the real tools: judged, then run.
//!
//! A case is data; what it means is said in the README beside them. All that is refused must leave
//! every byte, mode and name as it was, inside the root and beside it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt as _;
use polyloop_agent::patch::{Journal, Root};
use polyloop_agent::tool::apply_patch::ApplyPatch;
use polyloop_agent::tool::bash::Bash;
use polyloop_agent::tool::{Place, Progress, Run, Tool};
use polyloop_sandbox::{Helper, probe};
use polyloop_session::item::End;
use polyloop_session::policy::{Judgement, Mode, Verdict, verdict};
use rustix::fs::{CWD, FileType, Mode as Bits, mknodat};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use self::text::{Block, Case, cases, filled};
use crate::{Ended, Ground, Test, block_on};

mod special;
mod text;

pub use special::{ROLE, apply_in};

pub const ALL: &[Test] = &[("every_case_of_patches_holds", every_case)];

/// How many there are; none may get lost.
const CASES: usize = 78;
const GROUPS: [&str; 7] = ["A", "B", "C", "D", "E", "F", "P"];
/// The modes in which a person may be asked.
const ASKING: [Mode; 3] = [Mode::Suggest, Mode::AutoEdit, Mode::FullAuto];

fn every_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/patch_cases");
    let chosen = std::env::var("PATCH_CASE").ok();
    let (mut count, mut failed) = (0, Vec::new());
    for group in GROUPS {
        let text = fs::read_to_string(folder.join(format!("{group}.md"))).unwrap();
        for (index, case) in cases(&text).into_iter().enumerate() {
            assert_eq!(case.id, format!("{group}{}", index + 1), "cases are in order");
            if chosen.as_ref().is_some_and(|chosen| *chosen != case.id) {
                continue;
            }
            count += 1;
            let passed = catch_unwind(AssertUnwindSafe(|| run(&case))).is_ok();
            println!("  {:4} {:60} {}", case.id, case.title, if passed { "ok" } else { "FAILED" });
            if !passed {
                failed.push(case.id);
            }
        }
    }
    println!("  {} of {count} cases hold", count - failed.len());
    assert!(failed.is_empty(), "{failed:?}");
    assert!(count == CASES || chosen.is_some(), "{count} cases, not {CASES}");
}

fn run(case: &Case) {
    let mut home = Home::new();
    let mut asked: Option<Call> = None;
    let mut checks = 0;
    for block in &case.blocks {
        match block.kind.as_str() {
            "given" => {
                home = Home::new();
                home.set(block);
            }
            "patch" => {
                let patch = format!("*** Begin Patch\n{}*** End Patch\n", home.filled(&block.text));
                asked = Some(Call::judged(&home, &ApplyPatch, json!({ "patch": patch })));
            }
            "text" => {
                let patch = home.filled(&block.text);
                asked = Some(Call::judged(&home, &ApplyPatch, json!({ "patch": patch })));
            }
            "shell" => {
                let script = home.filled(&block.text);
                asked = Some(Call::judged(&home, &Bash, json!({ "command": script })));
            }
            "meanwhile" => {
                home.set(block);
                asked.as_mut().expect("what was judged").before = home.picture();
            }
            "then" => {
                asked.take().expect("what was judged").check(&home, block);
                checks += 1;
            }
            "run" => {
                special::run(block.text.trim());
                checks += 1;
            }
            "elsewhere" => {
                elsewhere(block);
                checks += 1;
            }
            other => panic!("{}: there are no {other:?} blocks", case.id),
        }
    }
    assert!(checks > 0 && asked.is_none(), "{}: it checks nothing", case.id);
}

/// A test that is named must be there.
fn elsewhere(block: &Block) {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (path, name) in block.lines() {
        let text = fs::read_to_string(top.join(path)).expect(path);
        let is_there = ["fn", "def"].iter().any(|word| text.contains(&format!("{word} {name}(")));
        assert!(is_there, "{path} has no {name}");
    }
}

/// The root `W`, and `OUT` beside it.
pub struct Home {
    dir: TempDir,
    pub place: Arc<Place>,
}

/// Everything below a directory: its mode, and its content or where it leads.
type Picture = BTreeMap<PathBuf, (u32, Vec<u8>)>;

impl Home {
    pub fn new() -> Home {
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let top = dir.path().canonicalize().unwrap();
        let inside = top.join("W");
        fs::create_dir(&inside).unwrap();
        fs::create_dir(top.join("OUT")).unwrap();
        let helper = Helper::this_program();
        let place = Place {
            root: Some(Root::open(&inside).unwrap()),
            outputs: None,
            todos: None,
            forbidden: [inside.join("store"), inside.join("token"), top.join("journal")].into(),
            journal: Some(Journal::open(&top.join("journal")).unwrap()),
            sandbox: probe(&helper).is_available(),
            cwd: inside,
            ..(*Ground::new().place).clone()
        };
        Home { dir, place: Arc::new(place) }
    }

    pub fn inside(&self) -> &Path {
        &self.place.cwd
    }

    pub fn outside(&self) -> PathBuf {
        self.inside().with_file_name("OUT")
    }

    fn filled(&self, text: &str) -> String {
        filled(text, self.inside(), &self.outside())
    }

    /// A path of a case: in the root, in `OUT`, or absolute.
    pub fn at(&self, path: &str) -> PathBuf {
        match path.strip_prefix("OUT/") {
            Some(below) => self.outside().join(below),
            None => self.inside().join(path),
        }
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Of both directories.
    pub fn picture(&self) -> Picture {
        let mut picture = Picture::new();
        for directory in [self.inside(), &self.outside()] {
            // The root may be gone.
            if directory.is_dir() {
                draw(directory, &mut picture);
            }
        }
        picture
    }

    fn set(&self, block: &Block) {
        for (word, rest) in block.lines() {
            let rest = self.filled(rest);
            let (path, more) = rest.split_once(' ').unwrap_or((&rest, ""));
            let at = self.at(path);
            match word {
                "file" => self.write(path, serde_json::from_str::<String>(more).unwrap()),
                "bytes" => self.write(path, bytes(more)),
                "dir" => fs::create_dir_all(at).unwrap(),
                "link" => symlink(more, at).unwrap(),
                "hard" => fs::hard_link(more, at).unwrap(),
                "mode" => fs::set_permissions(at, fs::Permissions::from_mode(octal(more))).unwrap(),
                "fifo" => {
                    mknodat(CWD, at, FileType::Fifo, Bits::from_raw_mode(0o644), 0).unwrap();
                }
                "socket" => drop(UnixListener::bind(at).unwrap()),
                "move" => fs::rename(at, self.at(more)).unwrap(),
                "remove" => fs::remove_file(at).unwrap(),
                other => panic!("nobody knows {other:?}"),
            }
        }
    }

    pub fn run(&self, tool: &dyn Tool, args: &Value, sandboxed: bool) -> Ended {
        let run = Run {
            args: args.to_string().into(),
            place: self.place.clone(),
            sandboxed,
            unasked: None,
            stop: CancellationToken::new(),
        };
        let progress: Vec<Progress> = block_on(tool.run(run).collect());
        let (mut output, mut ended) = (String::new(), None);
        for one in progress {
            match one {
                Progress::Output(text) => output.push_str(&text),
                Progress::Ended { end, result } => ended = Some((end, result)),
                Progress::Stopped { result, .. } => ended = Some((End::Failed, result)),
                Progress::Touches(_) => {}
            }
        }
        let (end, result) = ended.unwrap();
        Ended { output, end, result }
    }

    /// Applies the body of a patch.
    pub fn patch(&self, body: &str) -> Ended {
        let patch = format!("*** Begin Patch\n{body}\n*** End Patch\n");
        self.run(&ApplyPatch, &json!({ "patch": patch }), false)
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

fn draw(directory: &Path, picture: &mut Picture) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let facts = path.symlink_metadata().unwrap();
        let content = if facts.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else if facts.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        if facts.is_dir() {
            draw(&path, picture);
        }
        picture.insert(path, (facts.permissions().mode(), content));
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn octal(text: &str) -> u32 {
    u32::from_str_radix(text, 8).unwrap()
}

/// A call that was judged, and what was there then.
struct Call {
    tool: &'static dyn Tool,
    args: Value,
    judged: Result<Judgement, String>,
    before: Picture,
}

impl Call {
    fn judged(home: &Home, tool: &'static dyn Tool, args: Value) -> Call {
        let before = home.picture();
        let judged = block_on(tool.judge(&args.to_string(), &home.place));
        let judged = judged.map_err(|why| why.to_string());
        assert_eq!(home.picture(), before, "judging changed something");
        Call { tool, args, judged, before }
    }

    fn is_shell(&self) -> bool {
        self.args.get("command").is_some()
    }

    fn verdict(&self, mode: Mode) -> Verdict {
        verdict(self.judged.as_ref().unwrap(), mode, &[], true)
    }

    fn check(self, home: &Home, block: &Block) {
        let mut lines = block.lines().map(|(word, rest)| (word, home.filled(rest)));
        let (comes, part) = lines.next().expect("what comes of it");
        let ended = match comes {
            "refused" => self.refused(home, &part),
            "fails" => self.fails(home, &part),
            "asked" if self.is_shell() => self.shell(home),
            "asked" => self.asked(home, &part),
            "applied" => self.applied(home),
            "allowed" => Some(home.run(self.tool, &self.args, false)),
            other => panic!("nobody knows {other:?}"),
        };
        for (word, rest) in lines {
            self.fact(home, ended.as_ref(), word, &rest);
        }
    }

    fn refused(&self, home: &Home, part: &str) -> Option<Ended> {
        let why = match &self.judged {
            Ok(judged) => {
                for mode in ASKING.into_iter().chain([Mode::Bypass]) {
                    assert!(matches!(self.verdict(mode), Verdict::Deny(_)), "{mode:?} allows it");
                }
                judged.refusal.as_deref().unwrap().to_owned()
            }
            Err(why) => why.clone(),
        };
        assert!(why.contains(part), "{part:?} is not in {why:?}");
        let ended = home.run(self.tool, &self.args, false);
        assert_eq!((ended.end, ended.seen()), (End::Failed, why.as_str()));
        assert_eq!(home.picture(), self.before, "a refused patch left a trace");
        Some(ended)
    }

    fn fails(&self, home: &Home, part: &str) -> Option<Ended> {
        assert_eq!(self.verdict(Mode::AutoEdit), Verdict::Allow);
        let ended = home.run(self.tool, &self.args, false);
        assert_eq!(ended.end, End::Failed);
        assert!(ended.seen().contains(part), "{part:?} is not in {:?}", ended.seen());
        assert_eq!(home.picture(), self.before, "a refused patch left a trace");
        Some(ended)
    }

    fn asked(&self, home: &Home, part: &str) -> Option<Ended> {
        let judged = self.judged.as_ref().unwrap();
        for mode in ASKING {
            assert_eq!(self.verdict(mode), Verdict::Ask, "{mode:?}");
        }
        assert!(judged.reason.contains(part), "{part:?} is not in {:?}", judged.reason);
        assert_eq!(home.picture(), self.before);
        None
    }

    /// By the shell: asked about, and in the sandbox without effect.
    fn shell(&self, home: &Home) -> Option<Ended> {
        for mode in [Mode::Suggest, Mode::AutoEdit] {
            assert_eq!(self.verdict(mode), Verdict::Ask, "{mode:?}");
        }
        match self.verdict(Mode::FullAuto) {
            Verdict::Ask => None,
            Verdict::AllowSandboxed => {
                let ended = home.run(self.tool, &self.args, true);
                assert_eq!(home.picture(), self.before, "{}", ended.seen());
                assert_ne!(ended.result.exit_code, Some(0), "{}", ended.seen());
                Some(ended)
            }
            other => panic!("full-auto: {other:?}"),
        }
    }

    fn applied(&self, home: &Home) -> Option<Ended> {
        assert_eq!(self.verdict(Mode::Suggest), Verdict::Ask, "{:?}", self.judged);
        for mode in [Mode::AutoEdit, Mode::FullAuto] {
            assert_eq!(self.verdict(mode), Verdict::Allow, "{mode:?}");
        }
        let ended = home.run(self.tool, &self.args, false);
        assert_eq!(ended.end, End::Whole, "{}", ended.seen());
        let journals = fs::read_dir(home.place.journal.as_ref().unwrap().directory()).unwrap();
        assert_eq!(journals.count(), 0, "a journal is left");
        Some(ended)
    }

    fn fact(&self, home: &Home, ended: Option<&Ended>, word: &str, rest: &str) {
        let (path, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let at = home.at(path);
        match word {
            "holds" => {
                let want: String = serde_json::from_str(more).unwrap();
                let now = fs::read(&at).unwrap();
                assert_eq!(String::from_utf8_lossy(&now), want, "{path}");
            }
            "bytes" => assert_eq!(fs::read(&at).unwrap(), bytes(more), "{path}"),
            "gone" => assert!(at.symlink_metadata().is_err(), "{path}"),
            "link" => assert!(at.is_symlink(), "{path}"),
            "mode" => {
                let mode = fs::metadata(&at).unwrap().permissions().mode() & 0o7777;
                assert_eq!(mode, octal(more), "{path}");
            }
            "only" => {
                let all = home.picture().into_keys().filter(|path| path.is_file());
                let all: Vec<PathBuf> = all
                    .filter_map(|path| Some(path.strip_prefix(home.inside()).ok()?.into()))
                    .collect();
                assert_eq!(all, rest.split(' ').map(PathBuf::from).collect::<Vec<_>>());
            }
            "says" => {
                let said = ended.unwrap().seen();
                assert!(said.contains(rest), "{rest:?} is not in {said:?}");
            }
            "shows" => {
                let shown = &self.judged.as_ref().unwrap().reason;
                assert!(shown.contains(rest), "{rest:?} is not in {shown:?}");
            }
            "before" => {
                let want: String = serde_json::from_str(more).unwrap();
                let files = &ended.unwrap().result.files;
                let change = files.iter().find(|change| &*change.path == path).unwrap();
                assert_eq!(change.before.as_deref(), Some(want.as_str()), "{path}");
            }
            other => panic!("nobody knows {other:?}"),
        }
    }
}
