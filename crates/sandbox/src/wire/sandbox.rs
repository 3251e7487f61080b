//! The part of a job that describes its sandbox.

use std::time::Duration;

use super::{Fields, put_bytes, put_duration, put_number};
use crate::{IfMissing, Limits, Network, ReadOnly, Sandbox};

pub(super) fn put(out: &mut Vec<u8>, sandbox: &Sandbox) {
    let Sandbox { writable, read_only, hidden, network, limits } = sandbox;
    for paths in [writable, hidden] {
        put_number(out, paths.len() as u64);
        for path in paths {
            put_bytes(out, path.as_os_str());
        }
    }
    put_number(out, read_only.len() as u64);
    for ReadOnly { path, if_missing } in read_only {
        put_bytes(out, path.as_os_str());
        put_number(
            out,
            match if_missing {
                IfMissing::Ignore => 0,
                IfMissing::HoldFile => 1,
                IfMissing::HoldDirectory => 2,
            },
        );
    }
    put_number(
        out,
        match network {
            Network::Off => 0,
            Network::On => 1,
        },
    );
    let Limits { memory_bytes, processes, open_files, file_bytes, cpu_time, temporary_bytes } =
        limits;
    for number in [memory_bytes, processes, open_files, file_bytes, temporary_bytes] {
        put_number(out, *number);
    }
    put_duration(out, *cpu_time);
}

pub(super) fn get(fields: &mut Fields) -> Option<Sandbox> {
    Some(Sandbox {
        writable: fields.list(|fields| Some(fields.bytes()?.into()))?,
        hidden: fields.list(|fields| Some(fields.bytes()?.into()))?,
        read_only: fields.list(|fields| {
            Some(ReadOnly {
                path: fields.bytes()?.into(),
                if_missing: match fields.number()? {
                    0 => IfMissing::Ignore,
                    1 => IfMissing::HoldFile,
                    2 => IfMissing::HoldDirectory,
                    _ => return None,
                },
            })
        })?,
        network: match fields.number()? {
            0 => Network::Off,
            1 => Network::On,
            _ => return None,
        },
        limits: Limits {
            memory_bytes: fields.number()?,
            processes: fields.number()?,
            open_files: fields.number()?,
            file_bytes: fields.number()?,
            temporary_bytes: fields.number()?,
            cpu_time: Duration::from_millis(fields.number()?),
        },
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// With a different value in every field.
    pub(in crate::wire) fn sandbox() -> Sandbox {
        let hold = |path: &str, if_missing| ReadOnly { path: path.into(), if_missing };
        Sandbox {
            writable: vec!["/work".into(), "/other".into()],
            read_only: vec![
                hold("/work/.git", IfMissing::HoldDirectory),
                hold("/work/.env", IfMissing::HoldFile),
                hold("/work/x", IfMissing::Ignore),
            ],
            hidden: vec!["/secret".into()],
            network: Network::On,
            limits: Limits {
                memory_bytes: 1,
                processes: 2,
                open_files: 3,
                file_bytes: 4,
                cpu_time: Duration::from_secs(5),
                temporary_bytes: 6,
            },
        }
    }
}
