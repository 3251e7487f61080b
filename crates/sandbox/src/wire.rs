//! The two messages between server and helper: a job one way, an outcome the other.
//!
//! Never trusts what it reads: decoding is total, and every length is checked. Both sides are the
//! same program, so there is no version.
//!
//! A job is binary, because arguments may hold any byte: its length, then its fields; each list
//! starts with its count, each text with its length, all numbers are 8 bytes, little-endian.
//! An outcome is one line of text, `<left behind> <how> <detail>`, such as `0 code 3`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::{Confinement, Exit, JOB_BYTES_MAX, Job, Outcome};

mod hand;
mod sandbox;

impl Job {
    /// The bytes to write to the helper's stdin.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        put_bytes(&mut fields, &self.program);
        put_number(&mut fields, self.args.len() as u64);
        for arg in &self.args {
            put_bytes(&mut fields, arg);
        }
        put_bytes(&mut fields, self.cwd.as_os_str());
        put_number(&mut fields, self.env.len() as u64);
        for (name, value) in &self.env {
            put_bytes(&mut fields, name);
            put_bytes(&mut fields, value);
        }
        put_duration(&mut fields, self.time_limit);
        put_duration(&mut fields, self.stop_grace);
        match &self.confinement {
            Confinement::None => put_number(&mut fields, 0),
            Confinement::Sandbox(sandbox) => {
                put_number(&mut fields, 1);
                sandbox::put(&mut fields, sandbox);
            }
        }

        let mut job = Vec::with_capacity(fields.len() + 8);
        put_number(&mut job, fields.len() as u64);
        job.append(&mut fields);
        job
    }

    /// Reads one job and not a byte more, since the next byte is a stop request.
    pub(crate) fn receive(control: &mut impl Read) -> Result<Job, String> {
        let early = |error: io::Error| format!("the job ended early: {error}");
        let mut len = [0; 8];
        control.read_exact(&mut len).map_err(early)?;
        let len = u64::from_le_bytes(len);
        if len > JOB_BYTES_MAX as u64 {
            return Err(format!("the job is {len} bytes long; use at most {JOB_BYTES_MAX}"));
        }
        let mut fields = vec![0; len as usize];
        control.read_exact(&mut fields).map_err(early)?;
        Job::decode(&fields).ok_or_else(|| "the job cannot be decoded".to_owned())
    }

    fn decode(bytes: &[u8]) -> Option<Job> {
        let mut fields = Fields(bytes);
        let job = Job {
            program: fields.bytes()?,
            args: fields.list(Fields::bytes)?,
            cwd: fields.bytes()?.into(),
            env: fields.list(|fields| Some((fields.bytes()?, fields.bytes()?)))?,
            time_limit: Duration::from_millis(fields.number()?),
            stop_grace: Duration::from_millis(fields.number()?),
            confinement: match fields.number()? {
                0 => Confinement::None,
                1 => Confinement::Sandbox(Box::new(sandbox::get(&mut fields)?)),
                _ => return None,
            },
        };
        fields.0.is_empty().then_some(job)
    }
}

/// What the first process of a sandbox is told of the outside once it has its job: the sockets that
/// there are. The stand-ins are made then, too.
pub(crate) struct Outside(pub(crate) Vec<PathBuf>);

impl Outside {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        put_number(&mut fields, self.0.len() as u64);
        for path in &self.0 {
            put_bytes(&mut fields, path.as_os_str());
        }
        let mut message = Vec::with_capacity(fields.len() + 8);
        put_number(&mut message, fields.len() as u64);
        message.append(&mut fields);
        message
    }

    /// None if it is not whole: then nothing may run.
    pub(crate) fn receive(from: &mut impl Read) -> Option<Outside> {
        let mut len = [0; 8];
        from.read_exact(&mut len).ok()?;
        let mut message = Vec::new();
        from.take(u64::from_le_bytes(len)).read_to_end(&mut message).ok()?;
        let mut fields = Fields(&message);
        let paths = fields.list(|fields| Some(fields.bytes()?.into()))?;
        fields.0.is_empty().then_some(Outside(paths))
    }
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_duration(out: &mut Vec<u8>, duration: Duration) {
    put_number(out, u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
}

fn put_bytes(out: &mut Vec<u8>, text: &OsStr) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// What is left to decode.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Option<OsString> {
        let len = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(OsString::from_vec(bytes.to_vec()))
    }

    /// A false count cannot make this allocate: it fails when the bytes run out.
    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        (0..count).map(|_| one(self)).collect()
    }
}

impl Outcome {
    pub(crate) fn not_started(reason: String) -> Outcome {
        Outcome { exit: Exit::NotStarted(reason), left_behind: 0 }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let left_behind = self.left_behind;
        match &self.exit {
            Exit::Code(code) => format!("{left_behind} code {code}\n"),
            Exit::Signal(signal) => format!("{left_behind} signal {signal}\n"),
            Exit::TimedOut => format!("{left_behind} timed-out \n"),
            Exit::Stopped => format!("{left_behind} stopped \n"),
            Exit::NotStarted(reason) => format!("{left_behind} not-started {reason}\n"),
            // The caller's own finding, never a helper's; encoded so that this is total.
            Exit::Lost(text) => format!("{left_behind} lost {text}\n"),
        }
        .into_bytes()
    }

    /// What the helper's stderr says, read to its end. Anything that is no whole report, such as
    /// nothing at all from a helper that was killed, is [`Exit::Lost`].
    pub fn decode(report: &[u8]) -> Outcome {
        let report = String::from_utf8_lossy(report);
        Outcome::parse(&report).unwrap_or_else(|| Outcome {
            exit: Exit::Lost(report.trim_end().to_owned()),
            left_behind: 0,
        })
    }

    /// Whether this is all that the helper will say, before its pipe has ended: the job ran and is
    /// over. A report with a reason may go on, since that may be of several lines.
    pub fn is_whole(report: &[u8]) -> bool {
        match Outcome::decode(report).exit {
            Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::Stopped => true,
            Exit::NotStarted(_) | Exit::Lost(_) => false,
        }
    }

    /// Whether the command ended by itself and nothing of it is left. A helper of
    /// [`Helper::start`](crate::Helper::start) then takes another job, and ends otherwise.
    pub fn takes_another(&self) -> bool {
        match self.exit {
            Exit::Code(_) | Exit::Signal(_) => self.left_behind == 0,
            Exit::TimedOut | Exit::Stopped | Exit::NotStarted(_) | Exit::Lost(_) => false,
        }
    }

    fn parse(report: &str) -> Option<Outcome> {
        let mut words = report.strip_suffix('\n')?.splitn(3, ' ');
        let left_behind = words.next()?.parse().ok()?;
        let (how, detail) = (words.next()?, words.next()?);
        let exit = match how {
            "code" => Exit::Code(detail.parse().ok()?),
            "signal" => Exit::Signal(detail.parse().ok()?),
            "timed-out" => Exit::TimedOut,
            "stopped" => Exit::Stopped,
            "not-started" => Exit::NotStarted(detail.to_owned()),
            "lost" => Exit::Lost(detail.to_owned()),
            _ => return None,
        };
        Some(Outcome { exit, left_behind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confined() -> Job {
        let sandbox = sandbox::tests::sandbox();
        Job { confinement: Confinement::Sandbox(Box::new(sandbox)), ..job() }
    }

    fn job() -> Job {
        Job {
            program: "bash".into(),
            args: vec!["-c".into(), OsString::from_vec(vec![0xff, b' ', 0xfe]), "".into()],
            cwd: "/tmp".into(),
            env: vec![("NAME".into(), "value=1".into())],
            time_limit: Duration::MAX,
            stop_grace: Duration::from_millis(500),
            confinement: Confinement::None,
        }
    }

    #[test]
    fn a_job_reads_back_and_leaves_the_next_byte() {
        for job in [job(), confined()] {
            let mut bytes = job.encode();
            bytes.push(b'!');
            let mut control = bytes.as_slice();
            let read = Job::receive(&mut control).unwrap();
            let longest = Duration::from_millis(u64::MAX);
            assert_eq!(read, Job { time_limit: longest, ..job });
            assert_eq!(control, b"!");
        }
    }

    #[test]
    fn a_damaged_job_is_refused_and_never_a_panic() {
        let whole = confined().encode();
        for cut in 0..whole.len() {
            assert!(Job::receive(&mut &whole[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] = 0xff;
            // Most damage is refused; damage inside a text is just another text.
            let _ = Job::receive(&mut damaged.as_slice());
        }
        let mut longer = whole.clone();
        longer[0] += 1;
        longer.push(0);
        assert!(Job::receive(&mut longer.as_slice()).is_err());
        let huge = (JOB_BYTES_MAX as u64 + 1).to_le_bytes();
        assert!(Job::receive(&mut huge.as_slice()).unwrap_err().contains("use at most"));
    }

    #[test]
    fn an_outcome_reads_back() {
        for exit in [
            Exit::Code(0),
            Exit::Code(255),
            Exit::Signal(9),
            Exit::TimedOut,
            Exit::Stopped,
            Exit::NotStarted("no such\nprogram ".to_owned()),
            Exit::Lost("all".to_owned()),
        ] {
            let outcome = Outcome { exit, left_behind: 7 };
            assert_eq!(Outcome::decode(&outcome.encode()), outcome);
        }
    }

    #[test]
    fn a_report_is_whole_when_nothing_can_follow() {
        for exit in [Exit::Code(3), Exit::Signal(9), Exit::TimedOut, Exit::Stopped] {
            let report = Outcome { exit, left_behind: 12 }.encode();
            assert!(Outcome::is_whole(&report), "{report:?}");
            for cut in 0..report.len() {
                assert!(!Outcome::is_whole(&report[..cut]), "{report:?} cut at {cut}");
            }
        }
        let reason = Outcome::not_started("no such\n".to_owned()).encode();
        assert!(!Outcome::is_whole(&reason), "another line may follow");
    }

    #[test]
    fn what_is_outside_reads_back_whole_or_not_at_all() {
        for paths in [vec![], vec!["/run/a b".into(), OsString::from_vec(vec![0xff]).into()]] {
            let whole = Outside(paths.clone()).encode();
            let mut bytes = [whole.as_slice(), b"!"].concat();
            let mut from = bytes.as_slice();
            assert_eq!(Outside::receive(&mut from).unwrap().0, paths);
            assert_eq!(from, b"!");
            bytes.truncate(whole.len());
            for cut in 0..whole.len() {
                assert!(Outside::receive(&mut &bytes[..cut]).is_none(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn what_is_no_report_is_lost() {
        for text in ["", "0", "0 code", "0 code 3", "0 code x\n", "x code 3\n", "panicked at …\n"]
        {
            let lost = Exit::Lost(text.trim_end().to_owned());
            assert_eq!(Outcome::decode(text.as_bytes()).exit, lost, "{text:?}");
        }
    }
}
