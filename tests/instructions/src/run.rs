//! Runs this program under callgrind, and reads what that counted.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::meter::MARK;

/// What was counted: a name, and instructions per round.
pub type Counts = Vec<(String, f64)>;

/// Runs this program with these words, which make it count.
pub fn counted(words: &[&str], work: &Path) -> Result<Counts, String> {
    let out = work.join("callgrind.out");
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet", "--combine-dumps=yes"]);
    valgrind.arg(format!("--dump-before={MARK}"));
    valgrind.arg(format!("--callgrind-out-file={}", out.display()));
    valgrind.arg(this).args(words).stdin(Stdio::null());
    let done = valgrind.output().map_err(|error| {
        format!("valgrind cannot be started ({error}); on Debian: apt-get install valgrind")
    })?;
    if !done.status.success() {
        // Else it only tells of system calls that it does not know, which fail as on an old kernel.
        return Err(format!("{}\n{}", String::from_utf8_lossy(&done.stderr), done.status));
    }
    let told = String::from_utf8_lossy(&done.stdout);
    let dumped = std::fs::read_to_string(&out).map_err(|error| error.to_string())?;
    paired(&told, &totals(&dumped)?)
}

/// Each part's instructions.
fn totals(dumped: &str) -> Result<Vec<u64>, String> {
    let totals = dumped.lines().filter_map(|line| line.strip_prefix("totals:"));
    let read = |total: &str| total.trim().parse().map_err(|_| format!("no count: {total:?}"));
    totals.map(read).collect()
}

/// What was counted lies between two marks; so there is a part before each, and one at the end.
fn paired(told: &str, totals: &[u64]) -> Result<Counts, String> {
    let told: Vec<&str> = told.lines().collect();
    if totals.len() != 2 * told.len() + 1 {
        let (parts, counts) = (totals.len(), told.len());
        return Err(format!("callgrind gave {parts} parts for {counts} counts"));
    }
    let measured = totals.iter().skip(1).step_by(2);
    told.into_iter().zip(measured).map(|(line, total)| per_round(line, *total)).collect()
}

fn per_round(line: &str, total: u64) -> Result<(String, f64), String> {
    let bad = || format!("{line:?} names no count");
    let (name, rounds) = line.split_once('\t').ok_or_else(bad)?;
    let rounds: u64 = rounds.parse().map_err(|_| bad())?;
    Ok((name.to_owned(), total as f64 / rounds as f64))
}
