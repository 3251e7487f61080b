//! Runs steps one after the other, says how long each took, and sums up.
//!
//! A step that fails stops nothing but the steps that need it.

use std::time::{Duration, Instant};

pub struct Steps {
    began: Instant,
    done: Vec<Done>,
}

struct Done {
    name: &'static str,
    outcome: Outcome,
    time: Duration,
}

enum Outcome {
    Passed,
    Failed(String),
    /// What it needs has failed.
    NotRun,
}

/// Whether a step passed, for those that need it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    Yes,
    No,
}

impl Steps {
    pub fn new() -> Steps {
        Steps { began: Instant::now(), done: Vec::new() }
    }

    pub fn run(
        &mut self,
        name: &'static str,
        needs: &[Passed],
        step: impl FnOnce() -> Result<(), String>,
    ) -> Passed {
        println!("\n== {name}");
        let began = Instant::now();
        let outcome = if needs.contains(&Passed::No) {
            Outcome::NotRun
        } else {
            step().map_or_else(Outcome::Failed, |()| Outcome::Passed)
        };
        let time = began.elapsed();
        let passed = match &outcome {
            Outcome::Passed => {
                println!("-- {name}: ok in {:.1} s", time.as_secs_f64());
                Passed::Yes
            }
            Outcome::Failed(why) => {
                println!("-- {name}: FAILED in {:.1} s: {why}", time.as_secs_f64());
                Passed::No
            }
            Outcome::NotRun => {
                println!("-- {name}: not run, because a step it needs has failed");
                Passed::No
            }
        };
        self.done.push(Done { name, outcome, time });
        passed
    }

    /// Sums up; true when every step passed.
    pub fn end(self) -> bool {
        println!("\n== summary");
        let mut passed = 0;
        for Done { name, outcome, time } in &self.done {
            let time = time.as_secs_f64();
            match outcome {
                Outcome::Passed => {
                    passed += 1;
                    println!("ok      {time:7.1} s  {name}");
                }
                Outcome::Failed(why) => println!("FAILED  {time:7.1} s  {name}: {why}"),
                Outcome::NotRun => println!("not run             {name}"),
            }
        }
        let (all, time) = (self.done.len(), self.began.elapsed().as_secs_f64());
        println!("{passed} of {all} steps passed in {time:.0} s");
        passed == all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_stops_only_what_needs_it() {
        let mut steps = Steps::new();
        let build = steps.run("build", &[], || Err("broken".into()));
        let lint = steps.run("lint", &[], || Ok(()));
        let mut tried = false;
        let test = steps.run("test", &[lint, build], || {
            tried = true;
            Ok(())
        });
        assert!(!tried);
        assert!(lint == Passed::Yes && build == Passed::No && test == Passed::No);
        assert!(!steps.end());
    }

    #[test]
    fn all_passed_is_a_pass() {
        let mut steps = Steps::new();
        let build = steps.run("build", &[], || Ok(()));
        steps.run("test", &[build], || Ok(()));
        assert!(steps.end());
    }
}
