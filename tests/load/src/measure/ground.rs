//! Starts what a scenario needs: the model once, a side for each scenario, with an empty store.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::figures::Side;
use crate::http::{self, Reader};
use crate::proc::{self, Process};

pub struct Ground {
    polyloop: PathBuf,
    work: PathBuf,
    model: Process,
}

impl Ground {
    pub fn new(polyloop: PathBuf, work: PathBuf) -> io::Result<Ground> {
        std::fs::create_dir_all(&work)?;
        let mut model = Command::new(std::env::current_exe()?);
        let model = Process::start(model.arg("model"))?;
        Ok(Ground { polyloop: polyloop.canonicalize()?, work: work.canonicalize()?, model })
    }

    pub async fn start(&self, side: Side) -> io::Result<Process> {
        self.start_with(side, &[]).await
    }

    /// With further settings, for the server alone.
    pub async fn start_with(&self, side: Side, more: &[(&str, &str)]) -> io::Result<Process> {
        let folder = self.folder(side)?;
        let address = proc::free_address()?;
        let mut command = match side {
            Side::Floor => self.floor(&folder, address)?,
            Side::Polyloop => self.polyloop(&folder, address),
        };
        if side == Side::Polyloop {
            command.envs(more.iter().copied());
        }
        let errors = std::fs::File::create(folder.join("errors"))?;
        Process::serve(command.stderr(Stdio::from(errors)), address).await
    }

    /// Empty.
    fn folder(&self, side: Side) -> io::Result<PathBuf> {
        let folder = self.work.join(side.name());
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
        command
    }

    /// What the model measured between tool calls and the next requests, in nanoseconds, since it
    /// was last asked.
    pub async fn gaps(&self) -> io::Result<Vec<u64>> {
        let stream = TcpStream::connect(self.model.address).await?;
        let mut reader = Reader::new(stream);
        reader.stream_mut().write_all(b"GET /gaps HTTP/1.1\r\n\r\n").await?;
        let head = reader.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let body = reader.body(http::content_length(&head)).await?;
        serde_json::from_slice(&body).map_err(io::Error::other)
    }
}
