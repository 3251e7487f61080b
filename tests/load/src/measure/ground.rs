//! Starts what a scenario needs: the model once, a side for each scenario, with an empty store or
//! with one that was made before.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::figures::Side;
use crate::bare::Plan;
use crate::http::{self, Reader};
use crate::proc::{self, Cpu, Process};

pub struct Ground {
    polyloop: PathBuf,
    maker: PathBuf,
    work: PathBuf,
    pub model: Process,
    /// Scripts that are streamed once have numbers.
    numbers: Cell<u64>,
}

/// Files that are never on a disk.
const MEMORY: &str = "/dev/shm";

pub struct InMemory {
    pub process: Process,
    _folder: Removed,
}

struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The name of the session in stores that are made.
pub const MADE: &str = "made";

impl Ground {
    pub fn new(polyloop: PathBuf, maker: PathBuf, work: PathBuf) -> io::Result<Ground> {
        std::fs::create_dir_all(&work)?;
        let mut model = Command::new(std::env::current_exe()?);
        let model = Process::start(model.arg("model"))?;
        let (polyloop, work) = (polyloop.canonicalize()?, work.canonicalize()?);
        let maker = maker.canonicalize().unwrap_or(maker);
        let ground = Ground { polyloop, maker, work, model, numbers: Cell::new(0) };
        ground.empty("made")?;
        Ok(ground)
    }

    pub async fn start(&self, side: Side) -> io::Result<Process> {
        self.start_with(side, &[]).await
    }

    /// With its log where no disk is waited for; `None` on machines without such a place.
    pub async fn start_in_memory(&self, side: Side) -> io::Result<Option<InMemory>> {
        let folder = format!("polyloop-load-{}-{}", std::process::id(), side.name());
        let folder = Path::new(MEMORY).join(folder);
        if !Path::new(MEMORY).is_dir() {
            return Ok(None);
        }
        std::fs::create_dir(&folder)?;
        let folder = Removed(folder);
        let process = self.start_in(side, &folder.0, &[]).await?;
        Ok(Some(InMemory { process, _folder: folder }))
    }

    /// With further settings, for the server alone.
    pub async fn start_with(&self, side: Side, more: &[(&str, &str)]) -> io::Result<Process> {
        let folder = self.empty(side.name())?;
        self.start_in(side, &folder, more).await
    }

    /// The server with a copy of a store.
    pub async fn start_from(&self, store: &Path) -> io::Result<Process> {
        let folder = self.empty(Side::Polyloop.name())?;
        copy(store, &folder.join("store"))?;
        self.start_in(Side::Polyloop, &folder, &[]).await
    }

    /// The floor with a session that has so many lines.
    pub async fn start_floor_from(&self, log: &Path) -> io::Result<Process> {
        let folder = self.empty(Side::Floor.name())?;
        std::fs::copy(log, folder.join(format!("{MADE}.jsonl")))?;
        self.start_in(Side::Floor, &folder, &[]).await
    }

    async fn start_in(
        &self,
        side: Side,
        folder: &Path,
        more: &[(&str, &str)],
    ) -> io::Result<Process> {
        let address = proc::free_address()?;
        let mut command = match side {
            Side::Floor => self.floor(folder, address)?,
            Side::Polyloop => self.polyloop(folder, address),
        };
        if side == Side::Polyloop {
            command.envs(more.iter().copied());
        }
        let errors = std::fs::File::create(folder.join("errors"))?;
        Process::serve(command.stderr(Stdio::from(errors)), address).await
    }

    /// What the last one of a side that was started complained of.
    pub fn errors(&self, side: Side) -> String {
        let path = self.work.join(side.name()).join("errors");
        std::fs::read_to_string(path).unwrap_or_default()
    }

    pub fn start_bare(&self, plan: &Plan) -> io::Result<Process> {
        let path = self.empty("bare")?.join("plan.json");
        std::fs::write(&path, serde_json::to_vec(plan).map_err(io::Error::other)?)?;
        let mut command = Command::new(std::env::current_exe()?);
        Process::start(command.arg("bare").arg("--plan").arg(path))
    }

    /// A store with one session of so many events, made once.
    pub fn made(&self, events: u64, bytes: u64) -> io::Result<PathBuf> {
        let folder = self.work.join("made").join(events.to_string());
        if !folder.exists() {
            println!("-- making a session of {events} events");
            let mut command = Command::new(&self.maker);
            command.arg(&folder).arg(MADE).arg(events.to_string()).arg(bytes.to_string());
            let done = command.stdout(Stdio::null()).status().map_err(|error| {
                let maker = self.maker.display();
                io::Error::other(format!("{maker}: {error}; build the server's examples"))
            })?;
            if !done.success() {
                return Err(io::Error::other(format!("the session's maker failed: {done}")));
            }
        }
        Ok(folder)
    }

    /// A file of this ground's own.
    pub fn file(&self, name: &str) -> PathBuf {
        self.work.join("made").join(name)
    }

    pub fn next_number(&self) -> u64 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }

    /// Of those who load: the clients, and the model.
    pub fn own_cpu(&self) -> io::Result<[Cpu; 2]> {
        Ok([Cpu::of(std::process::id())?, self.model.cpu()?])
    }

    /// A folder with nothing in it.
    pub fn empty(&self, name: &str) -> io::Result<PathBuf> {
        let folder = self.work.join(name);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    fn floor(&self, folder: &Path, address: SocketAddr) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("floor").arg("--model").arg(self.model.address.to_string());
        command.arg("--logs").arg(folder).arg("--listen").arg(address.to_string());
        Ok(command)
    }

    /// As people run it: with a store, and the agent working in a folder of its own.
    fn polyloop(&self, folder: &Path, address: SocketAddr) -> Command {
        let mut command = Command::new(&self.polyloop);
        command.arg("serve").arg("--addr").arg(address.to_string()).current_dir(folder);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("PROVIDER", "openai").env("OPENAI_WIRE_API", "chat").env("MODEL", "load");
        command.env("OPENAI_BASE_URL", format!("http://{}/v1", self.model.address));
        command.env("SESSION_STORE_PATH", folder.join("store")).env("LOG_LEVEL", "error");
        command.env("MAX_CONNECTIONS", "50000").env("MAX_TURNS", "100000");
        // Login shells read what is at home, which is somebody's own.
        command.env("HOME", folder);
        command
    }

    /// What the model measured between tool calls and the next requests, in nanoseconds, since it
    /// was last asked.
    pub async fn gaps(&self) -> io::Result<Vec<u64>> {
        let body = get(self.model.address, "/gaps").await?;
        serde_json::from_slice(&body).map_err(io::Error::other)
    }
}

/// The body of an answer.
pub async fn get(address: SocketAddr, path: &str) -> io::Result<Vec<u8>> {
    let mut reader = Reader::new(TcpStream::connect(address).await?);
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    reader.stream_mut().write_all(head.as_bytes()).await?;
    let head = reader.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if !http::is_chunked(&head) {
        return reader.body(http::content_length(&head)).await;
    }
    let mut body = Vec::new();
    loop {
        match reader.chunk().await? {
            chunk if chunk.is_empty() => return Ok(body),
            chunk => body.extend(chunk),
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => {
                std::fs::copy(entry.path(), &target)?;
                // A session's index is taken for that of another file if the time differs.
                let made = entry.metadata()?.modified()?;
                std::fs::File::options().write(true).open(target)?.set_modified(made)?;
            }
        }
    }
    Ok(())
}
