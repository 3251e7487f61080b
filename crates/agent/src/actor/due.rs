//! When a request that nobody answers runs out: once it is known how long that is, the machine's
//! clock may jump as it likes.

use std::time::Duration;

use polyloop_session::Timestamp;
use polyloop_session::decide::deadline;
use tokio::time::Instant;

use super::Actor;
use crate::clock;
use crate::subscriber::View;

/// What runs out next: as the log has it, and as the clock has it that does not jump.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Due {
    pub at: Timestamp,
    pub when: Instant,
}

impl<V: View> Actor<V> {
    /// The request that runs out next; the moment is found once.
    pub(super) fn due(&mut self) -> Option<Due> {
        let timeout = self.kit.approval_timeout?;
        let at = deadline(&self.state, Some(timeout.as_millis() as i64));
        let known = self.due.filter(|due| Some(due.at) == at);
        let found = at.map(|at| Due { at, when: Instant::now() + left(at, clock::now(), timeout) });
        self.due = known.or(found);
        self.due
    }
}

/// Comes when it has run out; at once, with nothing, where nothing does.
pub(super) async fn run_out(due: Option<Due>) -> Option<Due> {
    tokio::time::sleep_until(due?.when).await;
    due
}

/// Never more than the whole time, also where the clock went back since the request was made.
fn left(at: Timestamp, now: Timestamp, timeout: Duration) -> Duration {
    let left = u64::try_from(at.0.saturating_sub(now.0)).unwrap_or(0);
    Duration::from_millis(left).min(timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_neither_keeps_a_request_open_nor_goes_below_nothing() {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        let timeout = Duration::from_secs(60);
        let (asked, now) = (1_700_000_000_000, |ms| Timestamp(1_700_000_000_000 + ms));
        let at = Timestamp(asked + 60_000);
        assert_eq!(left(at, now(0), timeout), timeout);
        assert_eq!(left(at, now(45_000), timeout), Duration::from_secs(15));
        assert_eq!(left(at, now(60_001), timeout), Duration::ZERO);
        assert_eq!(left(at, now(-DAY_MS), timeout), timeout, "back by a day");
        assert_eq!(left(at, now(365 * DAY_MS), timeout), Duration::ZERO, "ahead by a year");
        assert_eq!(left(Timestamp(i64::MAX), Timestamp(i64::MIN), timeout), timeout);
    }
}
