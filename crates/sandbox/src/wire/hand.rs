//! A job that goes through a socket, with the descriptor of where its output goes.
//!
//! The descriptor comes with the first byte, so nobody has a job without it.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::Job;

impl Job {
    /// Hands the job to a helper of [`Helper::start`](crate::Helper::start). `meanwhile` is done when
    /// the first part of it is there, and with most jobs that is all of it; what does not fit is
    /// written after that, and may wait for the helper as long as `control` lets it.
    pub fn send(
        &self,
        control: &UnixStream,
        output: impl AsFd,
        meanwhile: impl FnOnce(),
    ) -> io::Result<()> {
        let job = self.encode();
        let descriptors = [output.as_fd()];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(io::Error::other("there is no room for a descriptor"));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = sendmsg(control, &[IoSlice::new(&job)], &mut ancillary, flags)?;
        meanwhile();
        (&*control).write_all(job.get(sent..).unwrap_or_default())
    }

    /// Reads one job and not a byte more.
    pub(crate) fn receive_with_output(control: &UnixStream) -> Result<(Job, OwnedFd), String> {
        let early = |error: io::Error| format!("the job ended early: {error}");
        let mut len = [0; 8];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut len)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let read = rustix::io::retry_on_intr(|| {
            recvmsg(control, &mut parts, &mut ancillary, flags).map(|received| received.bytes)
        });
        let read = read.map_err(|error| early(error.into()))?;
        if read == 0 {
            return Err(early(io::ErrorKind::UnexpectedEof.into()));
        }
        let output = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        let output = output.ok_or("the job came without its output")?;
        (&*control).read_exact(len.get_mut(read..).unwrap_or_default()).map_err(early)?;
        let job = Job::receive(&mut len.as_slice().chain(control))?;
        Ok((job, output))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;
    use crate::Confinement;

    fn job(argument: usize) -> Job {
        Job {
            program: "cat".into(),
            args: vec!["x".repeat(argument).into()],
            cwd: "/".into(),
            env: Vec::new(),
            time_limit: Duration::from_secs(1),
            stop_grace: Duration::from_secs(1),
            confinement: Confinement::None,
        }
    }

    /// Longer than any socket's buffer, too.
    #[test]
    fn jobs_read_back_one_after_the_other_with_their_outputs() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let sent = [job(1), job(2 * 1024 * 1024), job(0)];
        let reader = std::thread::spawn(move || {
            [(); 3].map(|()| Job::receive_with_output(&theirs).unwrap())
        });
        for (at, job) in sent.iter().enumerate() {
            let output = tempfile::tempfile().unwrap();
            output.set_len(at as u64).unwrap();
            job.send(&ours, &output, || ()).unwrap();
        }
        for (at, (job, output)) in reader.join().unwrap().into_iter().enumerate() {
            assert_eq!(Some(&job), sent.get(at));
            assert_eq!(File::from(output).metadata().unwrap().len(), at as u64);
        }
    }

    #[test]
    fn a_job_that_is_not_whole_or_has_no_output_is_refused() {
        let whole = job(9).encode();
        for cut in [0, 1, 7, 8, 9, whole.len() - 1] {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            ours.write_all(&whole[..cut]).unwrap();
            drop(ours);
            assert!(Job::receive_with_output(&theirs).is_err(), "cut at {cut}");
        }
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(&whole).unwrap();
        let why = Job::receive_with_output(&theirs).unwrap_err();
        assert!(why.contains("without its output"), "{why}");
    }
}
