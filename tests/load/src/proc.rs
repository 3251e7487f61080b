//! Processes that are measured: started, looked at through `/proc`, ended by their ids.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const READY_TIME_MAX: Duration = Duration::from_secs(20);
/// What the kernel counts processor time in, for programs.
const TICKS_PER_SECOND: u64 = 100;
/// How far two readings in ticks may be from the truth.
const TICKS_UNSURE: u64 = 2;

pub struct Process {
    child: Child,
    pub address: SocketAddr,
    /// From its start until it answered.
    pub ready_after: Duration,
}

impl Process {
    /// Starts a program that prints where it listens as its first line, as an address at its end.
    pub fn start(command: &mut Command) -> io::Result<Process> {
        let began = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let word = line.split_whitespace().last().unwrap_or_default();
        let address = word.parse().map_err(|_| io::Error::other(format!("it printed {line:?}")))?;
        Ok(Process { child, address, ready_after: began.elapsed() })
    }

    /// Starts a server on a port of its own and waits until it answers.
    pub async fn serve(command: &mut Command, address: SocketAddr) -> io::Result<Process> {
        let began = Instant::now();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let mut process = Process { child, address, ready_after: Duration::ZERO };
        while !answers(address).await {
            if began.elapsed() > READY_TIME_MAX || process.child.try_wait()?.is_some() {
                return Err(io::Error::other("the server does not answer"));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        process.ready_after = began.elapsed();
        Ok(process)
    }

    pub fn cpu(&self) -> io::Result<Cpu> {
        Cpu::of(self.child.id())
    }

    /// Memory that is in use now.
    pub fn memory(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        Ok(kilobytes.unwrap_or(0) * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time that a process has used.
pub struct Cpu {
    process: u32,
    /// Of each thread, exactly.
    threads: HashMap<String, u64>,
    /// Of all threads, also of those that ended, in ticks.
    ticks: u64,
}

impl Cpu {
    pub fn of(process: u32) -> io::Result<Cpu> {
        let mut threads = HashMap::new();
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            let thread = thread?;
            // It may have ended since.
            let Ok(used) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
            let ns = used.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
            threads.insert(thread.file_name().to_string_lossy().into_owned(), ns);
        }
        let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The name, in brackets, may hold anything.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let field = |at: usize| fields.get(at).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        Ok(Cpu { process, threads, ticks: field(11) + field(12) })
    }

    /// What it has used since, in microseconds.
    pub fn since_us(&self) -> io::Result<f64> {
        let now = Cpu::of(self.process)?;
        let before = |thread: &String| self.threads.get(thread).copied().unwrap_or(0);
        let exact = now.threads.iter().map(|(thread, ns)| ns.saturating_sub(before(thread)));
        let exact = exact.sum::<u64>() as f64 / 1e3;
        // What threads used that have ended is in the ticks alone.
        let ticks = (now.ticks - self.ticks).saturating_sub(TICKS_UNSURE);
        Ok(exact.max(ticks as f64 * 1e6 / TICKS_PER_SECOND as f64))
    }
}

/// What the whole machine has done so far, and what of it was this program and all it started.
pub struct Machine {
    at: Instant,
    busy_ticks: u64,
    own_ticks: u64,
}

impl Machine {
    /// `running` are processes of ours that have not ended.
    pub fn now(running: &Process) -> io::Result<Machine> {
        let fields = |text: &str, from: usize, to: usize| -> u64 {
            let numbers = text.split_whitespace().enumerate();
            let wanted = numbers.filter(|(at, _)| (from..to).contains(at));
            wanted.filter_map(|(_, number)| number.parse::<u64>().ok()).sum()
        };
        let all = fs::read_to_string("/proc/stat")?;
        let all = all.lines().next().unwrap_or("");
        // After its name: user, nice, system, then two kinds of idling, then interrupts and what
        // other machines took.
        let busy_ticks = fields(all, 1, 4) + fields(all, 6, 9);
        let own = fs::read_to_string("/proc/self/stat")?;
        // Its own, and those of children that have ended.
        let own_ticks = fields(own.rsplit(')').next().unwrap_or(""), 11, 15);
        Ok(Machine { at: Instant::now(), busy_ticks, own_ticks: own_ticks + running.cpu()?.ticks })
    }

    /// The part of the machine that others took since, in percent.
    pub fn others_percent(&self, running: &Process) -> io::Result<f64> {
        let now = Machine::now(running)?;
        let busy = now.busy_ticks.saturating_sub(self.busy_ticks);
        let others = busy.saturating_sub(now.own_ticks.saturating_sub(self.own_ticks)) as f64;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let all = self.at.elapsed().as_secs_f64() * (cores as u64 * TICKS_PER_SECOND) as f64;
        Ok(100.0 * others / all.max(1.0))
    }
}

async fn answers(address: SocketAddr) -> bool {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        let head = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        io::Result::Ok(answer.ends_with(b"200"))
    };
    asked.await.unwrap_or(false)
}

/// A port that is free now.
pub fn free_address() -> io::Result<SocketAddr> {
    std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()
}
