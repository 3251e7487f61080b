//! One clock for all processes of a run: nanoseconds since the machine started.

use rustix::time::{ClockId, clock_gettime};

pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
