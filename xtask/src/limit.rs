//! Runs a program for a limited time, so that one that hangs fails like any other.
//!
//! Ends only what it started: the program, and what descends from it, each by its id.

use std::collections::BTreeMap;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a program has to end in good order once it is told to.
const GRACE: Duration = Duration::from_secs(20);

/// `None` when the time was up and the program was ended.
pub fn run(command: &mut Command, time_max: Duration) -> io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    if let Some(status) = wait(&mut child, time_max)? {
        return Ok(Some(status));
    }
    let below = descendants(child.id(), &parents());
    signal("-TERM", &[child.id()]);
    if wait(&mut child, GRACE)?.is_none() {
        child.kill()?;
        child.wait()?;
    }
    // What it should have ended itself and did not.
    let parents = parents();
    let left: Vec<u32> = below.into_iter().filter(|id| parents.contains_key(id)).collect();
    signal("-KILL", &left);
    Ok(None)
}

fn wait(child: &mut Child, time_max: Duration) -> io::Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if began.elapsed() >= time_max => return Ok(None),
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// The standard library can only kill; there is a program for the rest.
fn signal(signal: &str, ids: &[u32]) {
    if ids.is_empty() {
        return;
    }
    let mut kill = Command::new("kill");
    kill.arg(signal).args(ids.iter().map(u32::to_string));
    // A process that has just ended is no fault.
    let _ = kill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Every process with its parent; none where there is no /proc.
fn parents() -> BTreeMap<u32, u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let parent = |id: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name in parentheses may hold anything, also ')'.
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_whitespace().nth(1)?.parse().ok()
    };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| Some((id, parent(id)?))).collect()
}

fn descendants(of: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, p)| **p == parent).map(|(id, _)| *id));
        next += 1;
    }
    found.remove(0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bash(script: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn a_program_that_ends_in_time_is_left_alone() {
        let status = run(&mut bash("exit 3"), Duration::from_secs(60)).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn one_that_hangs_is_ended_with_what_it_started() {
        // No other process has this number.
        let time = format!("1234.{}", std::process::id());
        let mut command = bash(&format!("sleep {time} & sleep {time}"));
        assert!(run(&mut command, Duration::from_millis(300)).unwrap().is_none());
        let deadline = Instant::now() + Duration::from_secs(30);
        let is_there = || {
            parents().keys().any(|id| {
                let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
                words == format!("sleep\0{time}\0").as_bytes()
            })
        };
        while is_there() {
            assert!(Instant::now() < deadline, "it is still there");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    #[test]
    fn descendants_are_found_over_generations() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (6, 5)]);
        assert_eq!(descendants(2, &parents), [3, 4]);
        assert_eq!(descendants(6, &parents), [0; 0]);
    }
}
