//! The process as the system sees it, under the names that all programs have for it. What the
//! system does not tell stays at the last value.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rustix::time::{ClockId, clock_gettime};

pub(super) struct Process {
    registry: Registry,
    resident_bytes: Gauge,
    cpu_seconds: Counter<f64, AtomicU64>,
    open_files: Gauge,
}

impl Process {
    pub fn new() -> Process {
        let mut registry = Registry::with_prefix("process");
        let (resident_bytes, open_files) = (Gauge::default(), Gauge::default());
        let cpu_seconds = Counter::<f64, AtomicU64>::default();
        let begun = Gauge::<f64, AtomicU64>::default();
        begun.set(super::now_secs());
        let r = &mut registry;
        r.register("resident_memory_bytes", "Memory that is in use", resident_bytes.clone());
        r.register("cpu_seconds", "Time that processors spent on it", cpu_seconds.clone());
        r.register("start_time_seconds", "When it began, since 1970", begun);
        r.register("open_fds", "Files and sockets that are open", open_files.clone());
        Process { registry, resident_bytes, cpu_seconds, open_files }
    }

    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Looks how things are now.
    pub fn look(&self) {
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9;
        self.cpu_seconds.inner().store(seconds.to_bits(), Ordering::Relaxed);
        if let Some(bytes) = resident_bytes() {
            self.resident_bytes.set(bytes);
        }
        if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
            self.open_files.set(i64::try_from(files.count()).unwrap_or(i64::MAX));
        }
    }
}

fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}
