//! Counts the instructions of what happens often, and of a turn in sessions of short and long
//! pasts (tests/instructions).
//!
//! Unlike times, counts are the same on a busy machine, so they are held to what was kept.

use std::time::Duration;

use crate::place::{Place, show};

/// From nothing, on two slow cores.
const BUILD_TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// Callgrind is fifty times as slow as the machine.
const COUNT_TIME_MAX: Duration = Duration::from_secs(10 * 60);
const KEPT: &str = "tests/instructions/counts.txt";

/// What to do with the counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    Compare,
    /// Keep them, for the next time.
    Keep,
}

pub fn count(place: &Place, counts: Counts) -> Result<(), String> {
    // Other processors have other instructions.
    if std::env::consts::ARCH != "x86_64" {
        println!("the counts that were kept are of x86_64; nothing is compared here");
        return Ok(());
    }
    let words = ["build", "--release", "--package", "polyloop-instructions"];
    show(&mut place.cargo(&words), BUILD_TIME_MAX)?;
    let program = || place.program(place.target.join("release/instructions"));
    let mut compare = program();
    compare.args(["compare", "--kept"]).arg(place.root.join(KEPT));
    if counts == Counts::Keep {
        compare.arg("--update");
    }
    show(&mut compare, COUNT_TIME_MAX)?;
    show(program().arg("growth"), COUNT_TIME_MAX)
}
