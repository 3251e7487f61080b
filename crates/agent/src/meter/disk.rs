//! The disk itself, with a watch on its flushes.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::Meter;
use crate::log::files::disk::{Disk, RealDisk};

pub struct TimedDisk(pub Arc<Meter>);

impl Disk for TimedDisk {
    fn flush(&self, file: &File) -> io::Result<()> {
        let begun = Instant::now();
        let flushed = RealDisk.flush(file);
        self.0.flushed(begun.elapsed());
        flushed
    }
}
