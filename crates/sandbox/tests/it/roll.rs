//! A roll-call: tells whether any process of a job is still alive.
//!
//! The roll is a FIFO. Every process of the job holds it open for writing, as descriptor 9 that its
//! children inherit, and says `ready` once. When the last one has gone, the FIFO is at its end.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use polyloop_sandbox::Job;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

const PATIENCE: Duration = Duration::from_secs(60);

pub struct Roll {
    file: File,
    path: PathBuf,
    /// Removed in the end, if it is its own.
    _dir: Option<tempfile::TempDir>,
}

impl Roll {
    pub fn new() -> Roll {
        let dir = tempfile::tempdir().unwrap();
        let path = super::make_fifo(&dir);
        Roll { _dir: Some(dir), ..Roll::at(path) }
    }

    /// With a FIFO that is there.
    pub fn at(path: PathBuf) -> Roll {
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(&path).unwrap();
        Roll { file, path, _dir: None }
    }

    /// A script whose processes are on this roll.
    pub fn script(&self, script: &str) -> Job {
        super::script(&self.signed(script))
    }

    pub fn signed(&self, script: &str) -> String {
        format!("exec 9>'{}'\n{script}", self.path.display())
    }

    /// Waits until `count` lines have been written, and returns them.
    pub fn lines(&mut self, count: usize) -> Vec<String> {
        let mut text = String::new();
        while text.lines().count() < count || !text.ends_with('\n') {
            match self.read() {
                Some(more) if more.is_empty() => panic!("all have gone; they said {text:?}"),
                Some(more) => text.push_str(&more),
                None => panic!("{count} lines expected; they said {text:?}"),
            }
        }
        text.lines().map(str::to_owned).collect()
    }

    /// Whether nobody is left, at this moment.
    pub fn is_empty(&mut self) -> bool {
        let mut rest = [0; 4096];
        loop {
            match self.file.read(&mut rest) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Waits until nobody is left.
    pub fn await_empty(&mut self) {
        while !self.read().expect("somebody should have gone by now").is_empty() {}
    }

    /// More text, or none at the end; `None` when patience is at its end.
    fn read(&mut self) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.checked_duration_since(Instant::now())?;
            let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec::try_from(left).unwrap())).unwrap();
            let mut buffer = [0; 4096];
            match self.file.read(&mut buffer) {
                Ok(read) => return Some(String::from_utf8(buffer[..read].to_vec()).unwrap()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}
