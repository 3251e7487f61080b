//! NATS servers of a scenario's own, and what they say of themselves.
//!
//! They run as docs/SCALE.md says they must: everything is flushed before it is acknowledged.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use futures_util::future::join_all;
use serde_json::Value;

use super::ground::get;
use crate::proc::{self, Cpu, Process};

/// The program, unless NATS_SERVER names another.
const PROGRAM: &str = "nats-server";

pub struct Nats {
    /// What is known of each by the address that tells of its health.
    servers: Vec<Process>,
    clients: Vec<SocketAddr>,
}

/// What the streams of a NATS server have taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// Ever, also those that were forgotten since.
    pub messages: f64,
    /// Of what is kept.
    pub bytes: f64,
}

struct Ports {
    clients: SocketAddr,
    servers: SocketAddr,
    health: SocketAddr,
}

/// The program, if there is one that starts.
pub fn program() -> Option<PathBuf> {
    let program = PathBuf::from(std::env::var_os("NATS_SERVER").unwrap_or(PROGRAM.into()));
    let mut version = Command::new(&program);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success()).then_some(program)
}

impl Nats {
    /// So many servers that know each other, with an empty store each.
    pub async fn start(program: &Path, folder: &Path, count: usize) -> io::Result<Nats> {
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let free = proc::free_address;
            all.push(Ports { clients: free()?, servers: free()?, health: free()? });
        }
        let mut commands = Vec::with_capacity(count);
        for at in 0..count {
            let own = folder.join(format!("nats-{at}"));
            std::fs::create_dir_all(&own)?;
            let config = own.join("nats.conf");
            std::fs::write(&config, configuration(&own, at, &all))?;
            let mut command = Command::new(program);
            command.arg("-c").arg(config);
            command.stderr(Stdio::from(std::fs::File::create(own.join("log"))?));
            commands.push((command, all[at].health));
        }
        // One is not well before it knows the others.
        let starting =
            commands.iter_mut().map(|(command, health)| Process::serve(command, *health));
        let servers = join_all(starting).await.into_iter().collect::<io::Result<Vec<_>>>()?;
        Ok(Nats { servers, clients: all.iter().map(|ports| ports.clients).collect() })
    }

    /// As `STORE` takes it.
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.clients.iter().map(ToString::to_string).collect();
        format!("nats://{}", hosts.join(","))
    }

    /// Where clients of the first one connect.
    pub fn first(&self) -> SocketAddr {
        self.clients[0]
    }

    /// Of each server.
    pub fn cpu(&self) -> io::Result<Vec<Cpu>> {
        self.servers.iter().map(Process::cpu).collect()
    }

    /// Of all servers together.
    pub fn memory(&self) -> io::Result<u64> {
        self.servers.iter().map(Process::memory).sum()
    }

    /// What the first one has, which is all there is if there are as many servers as replicas.
    pub async fn taken(&self) -> io::Result<Taken> {
        let body = get(self.servers[0].address, "/jsz?streams=true").await?;
        let told: Value = serde_json::from_slice(&body).map_err(io::Error::other)?;
        let mut taken = Taken::default();
        let accounts = told["account_details"].as_array().into_iter().flatten();
        for stream in accounts.flat_map(|one| one["stream_detail"].as_array().into_iter().flatten())
        {
            let number = |name: &str| {
                let missing = || io::Error::other(format!("NATS does not tell {name}: {stream}"));
                stream["state"][name].as_f64().ok_or_else(missing)
            };
            taken.messages += number("last_seq")?;
            taken.bytes += number("bytes")?;
        }
        Ok(taken)
    }
}

/// What all of them used since, in microseconds.
pub fn used_us(before: &[Cpu]) -> io::Result<f64> {
    before.iter().map(Cpu::since_us).sum()
}

fn configuration(folder: &Path, at: usize, all: &[Ports]) -> String {
    let (own, store) = (&all[at], folder.join("store"));
    let mut text = format!(
        "server_name: nats-{at}\nlisten: \"{}\"\nhttp: \"{}\"\n\
         jetstream {{ store_dir: \"{}\", sync_interval: always }}\n",
        own.clients,
        own.health,
        store.display()
    );
    if all.len() > 1 {
        let routes: Vec<String> =
            all.iter().map(|ports| format!("\"nats://{}\"", ports.servers)).collect();
        let (listen, routes) = (own.servers, routes.join(", "));
        text.push_str(&format!(
            "cluster {{ name: load, listen: \"{listen}\", routes: [{routes}] }}\n"
        ));
    }
    text
}
