//! Random cases, the same ones on every run unless told otherwise.

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};

const SEED: u64 = 7;

/// Tries a check on random cases; `cases` unless `POLYLOOP_CASES` says how many.
pub fn try_all<S: Strategy>(
    cases: u32,
    strategy: S,
    check: impl Fn(S::Value) -> Result<(), String>,
) {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let told = number("POLYLOOP_CASES").and_then(|cases| u32::try_from(cases).ok());
    let mut runner = TestRunner::new(ProptestConfig {
        cases: told.unwrap_or(cases),
        rng_seed: RngSeed::Fixed(number("POLYLOOP_SEED").unwrap_or(SEED)),
        failure_persistence: None,
        max_shrink_iters: 5_000,
        ..ProptestConfig::default()
    });
    let tried = runner.run(&strategy, |case| check(case).map_err(TestCaseError::fail));
    tried.unwrap_or_else(|error| panic!("{error}"));
}
