//! Finds out, by trying, whether commands can be run in a sandbox here.
//!
//! Never answers from version numbers or from what is installed: it starts a real program in a real
//! sandbox, and that program tries to get out. Leaves nothing behind.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{CHECK_ARG, Confinement, Exit, Helper, Job, SANDBOX_FAILED, Sandbox, run};

const TIME_MAX: Duration = Duration::from_secs(20);
const STOP_GRACE: Duration = Duration::from_millis(200);
const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);

/// How the check ends if nothing is wrong.
const ALL_WELL: i32 = 0;
const NOT_WELL: i32 = 1;

/// Whether commands can be run in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// All layers work. The remarks, for people, say what is weaker here than elsewhere.
    Available { remarks: Vec<String> },
    /// Not at all; the text says what is missing, for people.
    NotAvailable(String),
}

impl Availability {
    pub fn is_available(&self) -> bool {
        match self {
            Availability::Available { .. } => true,
            Availability::NotAvailable(_) => false,
        }
    }
}

/// Runs the check in a sandbox. Blocks, for some ten milliseconds as a rule.
pub fn probe(helper: &Helper) -> Availability {
    let place = match Place::make() {
        Ok(place) => place,
        Err(error) => {
            return Availability::NotAvailable(format!("it could not be tried: {error}"));
        }
    };
    match tried(helper, &place) {
        Ok(()) => Availability::Available { remarks: remarks() },
        Err(why) => Availability::NotAvailable(why),
    }
}

/// A directory to try it in, removed in the end.
struct Place {
    directory: PathBuf,
    listener: TcpListener,
    address: SocketAddr,
}

impl Place {
    fn make() -> std::io::Result<Place> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("polyloop-probe-{}-{}", std::process::id(), since.as_nanos());
        let directory = std::env::temp_dir().canonicalize()?.join(name);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        // Fails if it is there already, so nobody else has made it.
        fs::create_dir(&directory)?;
        fs::create_dir(directory.join("work"))?;
        fs::write(directory.join("secret"), "secret")?;
        Ok(Place { directory, listener, address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The error says what is wrong, for people.
fn tried(helper: &Helper, place: &Place) -> Result<(), String> {
    let work = place.directory.join("work");
    let outside = place.directory.join("outside");
    let job = Job {
        // The program that becomes the helper, which is the one that is running.
        program: "/proc/self/exe".into(),
        args: vec![
            CHECK_ARG.into(),
            work.clone().into(),
            outside.clone().into(),
            place.directory.join("secret").into(),
            place.address.to_string().into(),
        ],
        cwd: work.clone(),
        env: Vec::new(),
        time_limit: TIME_MAX,
        stop_grace: STOP_GRACE,
        confinement: Confinement::Sandbox(Box::new(Sandbox::new(vec![work.clone()]))),
    };
    let mut output = Vec::new();
    let outcome = run(helper, &job, &mut output)
        .map_err(|error| format!("the helper process cannot be started: {error}"))?;
    let said = String::from_utf8_lossy(&output).trim_end().replace('\n', "; ");
    match outcome.exit {
        Exit::Code(ALL_WELL) => {}
        Exit::NotStarted(why) => {
            return Err(why.strip_prefix(SANDBOX_FAILED).unwrap_or(&why).to_owned());
        }
        Exit::Code(_) if !said.is_empty() => return Err(format!("it does not hold: {said}")),
        other => return Err(format!("the trial ended with {other:?} {said}")),
    }
    // What it says of itself, seen from outside.
    if outside.exists() {
        return Err("it does not hold: a file was made outside it".to_owned());
    }
    match place.listener.accept() {
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Ok(_) => return Err("it does not hold: it has a network".to_owned()),
        Err(error) => return Err(format!("the network could not be tried: {error}")),
    }
    if !work.join("inside").exists() {
        return Err("nothing can be written in it, not even where it may".to_owned());
    }
    if outcome.left_behind > 0 {
        return Err("its processes could not be ended".to_owned());
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn remarks() -> Vec<String> {
    let is_root = rustix::process::getuid().is_root();
    if is_root && !crate::confine::has_own_pid_max() {
        return vec![
            "the number of processes of a command is not limited: the server runs as root, and \
             that needs Linux 6.14"
                .to_owned(),
        ];
    }
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
fn remarks() -> Vec<String> {
    Vec::new()
}

/// The program that runs in the sandbox and tries to get out. Prints what it could do, one line
/// each, and ends.
pub(crate) fn check_from_inside() -> ! {
    let args: Vec<String> = std::env::args().skip(2).collect();
    let wrong = match args.as_slice() {
        [work, outside, secret, address] => {
            wrong(Path::new(work), Path::new(outside), Path::new(secret), address)
        }
        _ => vec!["the check was started with other arguments".to_owned()],
    };
    for line in &wrong {
        println!("{line}");
    }
    std::process::exit(if wrong.is_empty() { ALL_WELL } else { NOT_WELL });
}

fn wrong(work: &Path, outside: &Path, secret: &Path, address: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |holds: bool, otherwise: &str| {
        if !holds {
            wrong.push(otherwise.to_owned());
        }
    };
    check(fs::write(work.join("inside"), "inside").is_ok(), "it cannot write where it may");
    // It may think that it could, in its own temporary directory; whoever started it looks, too.
    let _ = fs::write(outside, "outside");
    check(fs::read(secret).is_err(), "it can read another program's temporary files");
    let at_top = Path::new("/polyloop-probe");
    let written = fs::write(at_top, "");
    check(written.is_err(), "it can write to /");
    if written.is_ok() {
        let _ = fs::remove_file(at_top);
    }
    let connected = address
        .parse()
        .map(|address| TcpStream::connect_timeout(&address, CONNECT_TIME_MAX).is_ok());
    check(connected == Ok(false), "it has a network");
    check(std::process::id() < 10, "it sees the processes of others");
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for (line, otherwise) in [
        ("CapEff:\t0000000000000000", "it has capabilities"),
        ("CapPrm:\t0000000000000000", "it may take capabilities"),
        ("CapBnd:\t0000000000000000", "it may be given capabilities"),
        ("NoNewPrivs:\t1", "it may gain rights"),
        ("Seccomp:\t2", "no system call is refused"),
    ] {
        check(status.lines().any(|other| other == line), otherwise);
    }
    wrong
}
