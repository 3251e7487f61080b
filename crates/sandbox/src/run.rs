//! Runs one job from start to end in a blocking way.
//!
//! For command-line use and tests; also the reference for asynchronous callers.

use std::io::{self, Read as _, Write};
use std::process::Child;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::{Helper, Job, Outcome, REPORT_BYTES_MAX};

const READ_BYTES: usize = 64 * 1024;

/// Runs `job` and hands its output over as it comes.
///
/// An error means that the helper could not be started or `output` failed; in the latter case the
/// job is stopped. All that the job itself does wrong is in the [`Outcome`].
pub fn run(helper: &Helper, job: &Job, output: &mut dyn Write) -> io::Result<Outcome> {
    let mut child = helper.command_for(&job.confinement).spawn()?;
    let mut control = child.stdin.take();
    if let Some(control) = &mut control {
        // If the helper has gone or refuses the job, its report says more than this error.
        let _ = control.write_all(&job.encode());
    }
    let outcome = follow(&mut child, output);
    drop(control);
    child.wait()?;
    outcome
}

fn follow(child: &mut Child, output: &mut dyn Write) -> io::Result<Outcome> {
    let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(io::Error::other("the helper was started without pipes"));
    };
    let mut report = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut output_open = true;
    loop {
        let (output_ready, report_ready) = {
            let mut fds = [
                PollFd::new(&stderr, PollFlags::IN),
                PollFd::new(&stdout, PollFlags::IN), // Last, because it may be left out.
            ];
            let count = if output_open { 2 } else { 1 };
            rustix::io::retry_on_intr(|| poll(&mut fds[..count], None))?;
            (output_open && !fds[1].revents().is_empty(), !fds[0].revents().is_empty())
        };
        if output_ready {
            let read = stdout.read(&mut buffer)?;
            output.write_all(&buffer[..read])?;
            output_open = read > 0;
        } else if report_ready {
            let read = stderr.read(&mut buffer)?;
            report.extend_from_slice(&buffer[..read]);
            if read == 0 || Outcome::is_whole(&report) || report.len() > REPORT_BYTES_MAX {
                break;
            }
        }
    }
    // The job has ended. What it wrote is in the pipe, and the pipe ends there unless
    // somebody left behind still holds it; so take what is there and wait for nothing.
    while output_open {
        let mut fds = [PollFd::new(&stdout, PollFlags::IN)];
        if rustix::io::retry_on_intr(|| poll(&mut fds, Some(&Timespec::default())))? == 0 {
            break;
        }
        let read = stdout.read(&mut buffer)?;
        output.write_all(&buffer[..read])?;
        output_open = read > 0;
    }
    Ok(Outcome::decode(&report))
}
