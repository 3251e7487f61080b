//! Mutated commands: what is judged safe must change nothing, show nothing from outside, and run no
//! program but those it names.
//!
//! `POLYLOOP_COMMANDS` says how many are judged (the long run takes 100,000), `POLYLOOP_SEED` where
//! the random choices begin. Of those judged safe some are run, with programs of their own: the
//! real ones that may run, and traps by the names of others.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use polyloop_agent::shell::{SAFE_PATH, Scope, quote};
use polyloop_sandbox::{Confinement, Helper, Job};
use serde_json::Value;

use crate::{Ground, Test};

pub const ALL: &[Test] = &[("mutated_commands_that_are_safe_change_nothing", mutated)];

const COMMANDS: usize = 3_000;
const RUNS_MAX: usize = 3_000;

/// What stands in the file outside that no output may show.
const MARK: &str = "outside-7f3a";

/// Programs that safe commands may name. All others are traps.
const REAL: &str = "[ arch awk b2sum base32 base64 basename bash bc cat cksum cmp column comm cut \
    date df diff dir dirname du egrep env expand expr factor fgrep file find fmt fold free getconf \
    git grep groups gzip head hexdump hostname id join jq locale logname ls lscpu mawk md5sum nice \
    nl nm nproc numfmt objdump od paste pgrep pidof pr printenv printf ps pwd readelf readlink \
    realpath rev rg sed seq sh sha1sum sha256sum shuf size sleep sort ss stat strings sum tac tail \
    tar test timeout tr tree true tsort tty uname unexpand uniq unzip uptime users vmstat w wc \
    whereis which who whoami xargs xxd zcat";

const TRAPS: &str = "chmod cp curl dd dig ed fd install less ln make man mkdir mktemp more mv nc \
    node perl ping python3 rm rmdir ruby split ssh su sudo tee touch truncate vim wget zip";

/// Words and signs that change what a command does.
const PIECES: &[&str] = &[
    "-delete",
    "-exec",
    "touch x",
    "{}",
    "\\;",
    "+",
    "-i",
    "-o",
    "x",
    "-ox",
    "--output=x",
    "-w",
    "-fprint",
    "-f",
    "-R",
    "-L",
    "-e",
    "-n",
    "-c",
    "-print0",
    "-0",
    "-I{}",
    "--",
    "-",
    "../out/victim",
    "/etc/passwd",
    "leaf",
    "linked/victim",
    "~",
    "~/victim",
    "$HOME/victim",
    ".env",
    "payload.sh",
    "./payload.sh",
    "*",
    "src/*",
    "../out/*",
    "l*",
    "{a.txt,-delete}",
    "{1..3}",
    "$x",
    "$PWD",
    "\"$PWD\"",
    "$(touch x)",
    "$(echo a.txt)",
    "\"$(pwd)\"",
    "`touch x`",
    "`pwd`",
    "<(ls)",
    "<(touch x)",
    "$IFS",
    "${x:-y}",
    "${x:=y}",
    "$((1+1))",
    "$((x))",
    ">x",
    ">>x",
    "2>x",
    "&>x",
    ">/dev/null",
    "2>&1",
    "<a.txt",
    "<../out/victim",
    "<<E\nx\nE\n",
    "<<<x",
    ";",
    "&&",
    "||",
    "|",
    "&",
    "|&",
    "\n",
    "#",
    "!",
    "(",
    ")",
    "{ ",
    "; }",
    "'",
    "\"",
    "\\",
    "x=1",
    "PATH=.",
    "LC_ALL=C",
    "cd src",
    "cd ..",
    "cd linked",
    "ls",
    "cat",
    "touch x",
    "sh payload.sh",
    "xargs",
    "xargs cat",
    "xargs touch",
    "tee x",
    "sort",
    "sed -n 1p",
    "sed 'w x'",
    "awk '{print > \"x\"}'",
    "awk '{print}'",
    "find . -name a.txt",
    "timeout 5",
    "env",
    "command",
    "bash -c",
    "'ls -la'",
    "if ls; then",
    "fi",
    "for f in *; do",
    "done",
    "while read -r l; do",
    "\"$f\"",
    "$f",
    "[ -f a.txt ]",
    "test -v",
    "read x",
    "exec",
    "eval",
    "export",
    "$'-delete'",
    "$'\\x2d'",
    "git",
    "-C",
    "--no-index",
    "w x",
    "e ls",
];

/// Harmless scripts of kinds that the corpus has few of.
const MORE: &[&str] = &[
    "find src -name '*.rs' | xargs grep -n fn",
    "find src -type f -print0 | xargs -0 -n1 wc -l",
    "find src -name '*.rs' -exec head -1 {} +",
    "find src -name '*.rs' | while read -r f; do echo \"$f\"; head -1 \"$f\"; done",
    "for f in $(find src -name '*.rs'); do wc -l $f; done",
    "for f in src/*.rs; do echo \"== $f\"; sed -n '1,3p' \"$f\"; done",
    "wc -l $(grep -rl fn src)",
    "x=src; cd $x && ls; cat main.rs | head -2",
    "cd src; ls; cd ..; cat a.txt",
    "if [ -f a.txt ]; then cat a.txt; else echo none; fi",
    "[[ -d src && ! -f x ]] && ls src",
    "while IFS= read -r line; do echo \"$line\"; done < a.txt",
    "sed -e 's/fn/FN/g' -e '/TODO/d' a.txt | sort -u",
    "sed -n '/main/,$p' src/main.rs; sed 's|a|b|;2q' a.txt",
    "awk 'NR>1 {print $1}' a.txt; awk -F= '{print $2 \"|\" $1}' a.txt",
    "awk '/use|fn/ {n++} END {print n}' a.txt",
    "diff <(sort a.txt) <(sort b.txt); comm -12 a.txt b.txt",
    "echo \"$(wc -l < a.txt) lines in $(pwd)\" $((2 * 3))",
    "cat <<'E' | grep x\n$(touch x)\nE\nls",
    "bash -c 'cd src && ls | wc -l'; sh -c 'cat a.txt'",
    "timeout 5 grep -rn fn src | head -3; env LC_ALL=C sort a.txt",
    "cat {a,b}.txt src/{main,lib}.rs; ls *.txt | wc -l",
    "(cd src && cat main.rs) && { pwd; ls; } | tail -1",
    "tar -tf a.tar; file -b a.tar; xxd a.tar | head -1; jq . Cargo.toml",
];

/// Numbers that look random and begin with a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides.max(1)).unwrap()).unwrap()
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.roll(from.len())]
    }
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The scripts of the corpus, and whether each is harmless.
fn corpus() -> Vec<(String, bool)> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/commands_public.jsonl");
    let case = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        let script = match &case["cmd"] {
            Value::String(script) => script.clone(),
            words => quote(&serde_json::from_value::<Vec<String>>(words.clone()).unwrap()),
        };
        (script, case["safe"] == true)
    };
    let more = MORE.iter().map(|script| ((*script).to_owned(), true));
    fs::read_to_string(file).unwrap().lines().map(case).chain(more).collect()
}

fn mutate(script: &str, others: &[(String, bool)], dice: &mut Dice) -> String {
    let mut script = script.to_owned();
    for _ in 0..=dice.roll(3) {
        let ends: Vec<usize> =
            script.char_indices().map(|(at, _)| at).chain([script.len()]).collect();
        let at = ends[dice.roll(ends.len())];
        let mut words: Vec<&str> = script.split(' ').collect();
        let word = dice.roll(words.len());
        match dice.roll(8) {
            0 => {
                words.insert(word, dice.pick(PIECES));
                script = words.join(" ");
            }
            1 => {
                words[word] = dice.pick(PIECES);
                script = words.join(" ");
            }
            2 => script.insert_str(at, dice.pick(PIECES)),
            3 => {
                words.remove(word);
                script = words.join(" ");
            }
            4 if at < script.len() => {
                script.remove(at);
            }
            5 => {
                let other = &others[dice.roll(others.len())].0;
                let joint = dice.pick(&["; ", " && ", " || ", " | ", "\n", " "]);
                script = format!("{script}{joint}{other}");
            }
            6 => {
                let quoted = match dice.roll(4) {
                    0 => format!("'{}'", words[word]),
                    1 => format!("\"{}\"", words[word]),
                    2 => words[word].chars().map(|c| format!("\\{c}")).collect(),
                    _ => format!("\"$(echo {})\"", words[word]),
                };
                words[word] = &quoted;
                script = words.join(" ");
            }
            _ => {
                words.push(dice.pick(PIECES));
                script = words.join(" ");
            }
        }
    }
    script
}

/// A working directory with traps in it, and programs to run there.
struct Jail {
    ground: Ground,
    cwd: PathBuf,
    out: PathBuf,
    programs: PathBuf,
    before: Vec<Seen>,
}

type Seen = (PathBuf, u32, u64, (i64, i64), Vec<u8>);

impl Jail {
    fn new() -> Jail {
        let ground = Ground::new();
        let cwd = ground.cwd().to_owned();
        let out = cwd.with_file_name("out");
        for dir in ["src", "tests", "bin", "evil.git"] {
            fs::create_dir_all(cwd.join(dir)).unwrap();
        }
        for file in [
            "a.txt",
            "b.txt",
            "README.md",
            "Cargo.toml",
            "src/main.rs",
            "src/lib.rs",
            "big.txt",
            "a.tar",
            "c d.md",
        ] {
            ground.write(file, "fn main TODO\nuse x = 1\n");
        }
        let trap = format!("#!/bin/sh\necho \"$0\" >>'{}'\n", out.join("trapped").display());
        let executable = |path: PathBuf| {
            fs::write(&path, &trap).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        for file in ["payload.sh", "ls", "git", "rg", "bin/cat"] {
            executable(cwd.join(file));
        }
        for file in ["victim", "id_rsa", ".netrc"] {
            fs::write(out.join(file), MARK).unwrap();
        }
        symlink(out.join("victim"), cwd.join("leaf")).unwrap();
        symlink(&out, cwd.join("linked")).unwrap();
        let programs = ground.dir.path().join("programs");
        fs::create_dir(&programs).unwrap();
        for name in REAL.split_whitespace() {
            let real = SAFE_PATH.split(':').map(|dir| Path::new(dir).join(name));
            if let Some(real) = real.into_iter().find(|path| path.is_file()) {
                symlink(real, programs.join(name)).unwrap();
            }
        }
        TRAPS.split_whitespace().for_each(|name| executable(programs.join(name)));
        let mut jail = Jail { ground, cwd, out, programs, before: Vec::new() };
        jail.before = jail.look();
        jail
    }

    fn look(&self) -> Vec<Seen> {
        let mut seen = Vec::new();
        look(self.ground.dir.path(), &mut seen);
        seen.sort();
        seen
    }

    /// What the script printed; an error if it did more.
    fn run(&self, script: &str) -> Result<(), String> {
        let env = [
            ("PATH", self.programs.clone()),
            ("HOME", self.out.clone()),
            ("LC_ALL", "C.UTF-8".into()),
            ("GIT_OPTIONAL_LOCKS", "0".into()),
        ];
        let job = Job {
            program: "/bin/bash".into(),
            args: ["--noprofile", "--norc", "-c", script].map(Into::into).to_vec(),
            cwd: self.cwd.clone(),
            env: env.map(|(name, value)| (name.into(), value.into_os_string())).to_vec(),
            time_limit: Duration::from_secs(10),
            stop_grace: Duration::from_secs(1),
            confinement: Confinement::None,
        };
        let mut output = Vec::new();
        polyloop_sandbox::run(&Helper::this_program(), &job, &mut output).unwrap();
        if String::from_utf8_lossy(&output).contains(MARK) {
            return Err("showed what is outside".to_owned());
        }
        if let Ok(trapped) = fs::read_to_string(self.out.join("trapped")) {
            return Err(format!("ran {trapped}"));
        }
        let after = self.look();
        let changed: Vec<_> = after.iter().filter(|file| !self.before.contains(file)).collect();
        match changed.is_empty() && after.len() == self.before.len() {
            true => Ok(()),
            false => Err(format!("changed {changed:?}")),
        }
    }
}

fn look(dir: &Path, seen: &mut Vec<Seen>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let meta = path.symlink_metadata().unwrap();
        let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if meta.is_dir() {
            look(&path, seen);
        }
        seen.push((path, meta.mode(), meta.len(), (meta.mtime(), meta.mtime_nsec()), content));
    }
}

fn mutated() {
    let commands = number("POLYLOOP_COMMANDS", COMMANDS);
    let seed = u64::try_from(number("POLYLOOP_SEED", 1)).unwrap();
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let corpus = corpus();
    let jail = Jail::new();
    let scope = Scope::new(&jail.cwd, &[]);
    let (mut of_safe, mut still_safe) = (0usize, 0usize);
    let mut safe = Vec::new();
    for _ in 0..commands {
        let (script, harmless) = &corpus[dice.roll(corpus.len())];
        let mutated = mutate(script, &corpus, &mut dice);
        let allowed = scope.judge(&mutated).safe;
        of_safe += usize::from(*harmless);
        still_safe += usize::from(*harmless && allowed);
        if allowed && mutated != *script {
            safe.push(mutated);
        }
    }
    safe.sort();
    safe.dedup();
    let runs = (commands / 30).min(RUNS_MAX).min(safe.len());
    for _ in 0..runs {
        let script = safe.swap_remove(dice.roll(safe.len()));
        if let Err(problem) = jail.run(&script) {
            panic!("seed {seed}: {script:?} {problem}");
        }
    }
    println!(
        "{commands} mutated, {still_safe} of {of_safe} from harmless ones safe, {runs} run: \
         nothing changed, nothing shown, no other program"
    );
    assert!(still_safe * 10 > of_safe, "hardly any are safe, so hardly anything is tested");
}
