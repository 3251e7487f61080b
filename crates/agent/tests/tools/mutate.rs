//! Mutated commands: what is judged safe must change nothing, show nothing from outside, and run no
//! program but those it names.
//!
//! `POLYLOOP_COMMANDS` says how many are judged (the long run takes 100,000), `POLYLOOP_RUNS` how
//! many of those judged safe are run (10,000), `POLYLOOP_SEED` where the random choices begin.

use std::collections::BTreeSet;

use super::jail::Jail;
use super::labels;
use crate::Test;

pub const ALL: &[Test] = &[
    ("mutated_commands_that_are_safe_change_nothing", mutated),
    ("what_is_not_safe_is_seen_and_does_not_run_unasked", faults),
];

const COMMANDS: usize = 2_000;
const RUNS: usize = 200;

/// Scripts that are run one after the other before their traces are looked at.
const BATCH: usize = 50;

/// With so many there is enough to look into.
const PROBLEMS_MAX: usize = 5;

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
    "../outside/secret.txt",
    "/etc/passwd",
    "link-secret",
    "link-out/secret.txt",
    "~",
    "~/secret.txt",
    "$HOME/secret.txt",
    ".env",
    "payload.sh",
    "./payload.sh",
    "*",
    "src/*",
    "../outside/*",
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
    "<../outside/secret.txt",
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
    "cd link-out",
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

/// The scripts of both corpora, and whether each is harmless.
fn corpus() -> Vec<(String, bool)> {
    let more = MORE.iter().map(|script| ((*script).to_owned(), true));
    let cases = [labels::PUBLIC, labels::OWN].into_iter().flat_map(labels::cases);
    cases.map(|case| (case.script, case.harmless)).chain(more).collect()
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

fn mutated() {
    let commands = number("POLYLOOP_COMMANDS", COMMANDS);
    let runs_max = number("POLYLOOP_RUNS", RUNS);
    let seed = u64::try_from(number("POLYLOOP_SEED", 1)).unwrap();
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let corpus = corpus();
    let mut jail = Jail::new();
    let scope = jail.scope();
    let (mut of_safe, mut still_safe) = (0usize, 0usize);
    let mut safe = BTreeSet::new();
    for _ in 0..commands {
        let (script, harmless) = &corpus[dice.roll(corpus.len())];
        let mutated = mutate(script, &corpus, &mut dice);
        let allowed = scope.judge(&mutated).safe;
        of_safe += usize::from(*harmless);
        still_safe += usize::from(*harmless && allowed);
        if allowed && mutated != *script {
            safe.insert(mutated);
        }
    }
    let mut safe: Vec<String> = safe.into_iter().collect();
    let kinds = safe.len();
    let mut chosen = Vec::new();
    while chosen.len() < runs_max && !safe.is_empty() {
        chosen.push(safe.swap_remove(dice.roll(safe.len())));
    }
    let mut problems = Vec::new();
    for batch in chosen.chunks(BATCH) {
        if let Err(problem) = jail.run(batch) {
            problems.push(problem);
            jail = Jail::new();
        }
        if problems.len() >= PROBLEMS_MAX {
            break;
        }
    }
    assert!(problems.is_empty(), "seed {seed}: {problems:#?}");
    let watched = if jail.is_watched() { "watched by strace" } else { "without strace" };
    println!(
        "{commands} mutated, {still_safe} of {of_safe} from harmless ones safe, {} of {kinds} safe \
         ones run, {watched}: nothing written, nothing shown, no other program",
        chosen.len(),
    );
    assert!(still_safe * 10 > of_safe, "hardly any are safe, so hardly anything is tested");
}

/// Whoever looks for faults must see one: what is not safe does not run unasked, and once approved
/// it is seen for what it does.
fn faults() {
    let mut scripts = vec!["sort -o a.txt a.txt", "touch -d @1 a.txt", "cat ../outside/secret.txt"];
    if Jail::new().is_watched() {
        scripts.extend(["./prog", "sort -o x a.txt; rm x", "cat </dev/tcp/127.0.0.1/9"]);
    }
    for script in scripts {
        let jail = Jail::new();
        assert!(!jail.scope().judge(script).safe, "{script}");
        assert_eq!(jail.run(&[script.to_owned()]), Ok(()), "{script}");
        assert!(jail.run_approved(script).is_err(), "{script} is not seen");
    }
    assert_eq!(Jail::new().run_approved("ls -la; cat a.txt | sort"), Ok(()));
}
