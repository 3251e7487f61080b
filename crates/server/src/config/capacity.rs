//! How much runs at once and how fast clients may send: read from the settings, and told again.

use polyloop_agent::gate::Capacity;

use super::Limits;
use super::read::required_number;
use super::settings::{self, Setting};
use super::source::Reader;
use crate::rate::{Pace, Rates};

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Capacity> {
    let calls_max = required_number(reader, &settings::MAX_MODEL_CALLS);
    let processes_max = required_number(reader, &settings::MAX_PROCESSES);
    let waiting_max = required_number(reader, &settings::MAX_WAITING);
    Some(Capacity {
        calls_max: calls_max?,
        processes_max: processes_max?,
        waiting_max: waiting_max?,
    })
}

pub(super) fn read_rates(reader: &mut Reader<'_>) -> Option<Rates> {
    let [connection, client] = ROWS.map(|rows| {
        let [messages_per_sec, turns_per_min, bytes_per_sec] =
            rows.map(|setting| required_number(reader, setting));
        Some(Pace {
            messages_per_sec: messages_per_sec?,
            turns_per_min: turns_per_min?,
            bytes_per_sec: bytes_per_sec?,
        })
    });
    let requests_per_sec = required_number(reader, &settings::RATE_CLIENT_REQUESTS_PER_SEC);
    Some(Rates { connection: connection?, client: client?, requests_per_sec: requests_per_sec? })
}

/// The rows of a connection, then those of a client.
const ROWS: [[&Setting; 3]; 2] = [
    [
        &settings::RATE_MESSAGES_PER_SEC,
        &settings::RATE_TURNS_PER_MIN,
        &settings::RATE_BYTES_PER_SEC,
    ],
    [
        &settings::RATE_CLIENT_MESSAGES_PER_SEC,
        &settings::RATE_CLIENT_TURNS_PER_MIN,
        &settings::RATE_CLIENT_BYTES_PER_SEC,
    ],
];

pub(super) fn describe(limits: &Limits) -> Vec<(&'static str, String)> {
    let Rates { connection, client, requests_per_sec } = limits.rates;
    let paces = ROWS.into_iter().flatten().zip(
        [connection, client]
            .into_iter()
            .flat_map(|pace| [pace.messages_per_sec, pace.turns_per_min, pace.bytes_per_sec]),
    );
    let most = [
        (&settings::MAX_MODEL_CALLS, limits.capacity.calls_max),
        (&settings::MAX_PROCESSES, limits.capacity.processes_max),
        (&settings::MAX_WAITING, limits.capacity.waiting_max),
        (&settings::MAX_AWAKE_SESSIONS, limits.awake_sessions_max),
    ];
    let mut rows: Vec<(&'static str, String)> =
        most.iter().map(|(setting, most)| (setting.name, most.to_string())).collect();
    rows.extend(paces.map(|(setting, count)| (setting.name, count.to_string())));
    rows.push((settings::RATE_CLIENT_REQUESTS_PER_SEC.name, requests_per_sec.to_string()));
    rows
}
