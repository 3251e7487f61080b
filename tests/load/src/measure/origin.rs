//! Where figures come from: the programs and the processor. Figures of different ones do not stand
//! in one table. Names no path: a table says what was measured, not where it lay.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::fs;
use std::hash::Hasher;
use std::io;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

const CPUINFO: &str = "/proc/cpuinfo";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Of the machine.
    pub cores: usize,
    pub processor: String,
    /// What the server says of itself: a name and a version.
    pub server: String,
    /// Of the server's program: a version may have many builds.
    pub server_hash: String,
    /// Of this program, which has the floor, the clients, and how all is measured.
    pub load_hash: String,
}

impl Origin {
    pub fn of(server: &Path) -> io::Result<Origin> {
        let told = Command::new(server).arg("--version").output()?;
        Ok(Origin {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: processor(&fs::read_to_string(CPUINFO).unwrap_or_default()),
            server: String::from_utf8_lossy(&told.stdout).trim().to_owned(),
            server_hash: hash(&fs::read(server)?),
            load_hash: hash(&fs::read(std::env::current_exe()?)?),
        })
    }
}

/// As it stands above a table.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Origin { cores, processor, server, server_hash, load_hash } = self;
        write!(
            f,
            "{server} (hash {server_hash}, load {load_hash}) on a machine with {cores} cores \
             ({processor})"
        )
    }
}

/// Two programs of the same hash are the same one: nobody means to deceive here.
fn hash(program: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(program);
    format!("{:016x}", hasher.finish())
}

/// Its name as the kernel tells it; not every kind of processor has one there.
fn processor(cpuinfo: &str) -> String {
    let name = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    let name = name.and_then(|rest| Some(rest.split_once(':')?.1.trim()));
    name.unwrap_or("a processor without a name").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_has_a_name_or_none() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC: 2\nmodel name\t: other\n";
        assert_eq!(processor(text), "AMD EPYC: 2");
        assert_eq!(processor("processor\t: 0\n"), "a processor without a name");
    }

    #[test]
    fn another_build_has_another_hash() {
        assert_eq!(hash(b"one"), hash(b"one"));
        assert_ne!(hash(b"one"), hash(b"two"));
    }
}
