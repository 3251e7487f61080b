//! Whether the NATS servers that sessions are to stand on are there and fit.
//!
//! Makes no stream there and changes none.

use super::report::Check;
use crate::config::SharedStore;

const THING: &str = "session store";

#[cfg(not(feature = "nats"))]
pub(super) async fn store(_: &SharedStore, _: Option<usize>) -> Vec<Check> {
    vec![Check::fail(THING, crate::serve::WITHOUT_NATS)]
}

#[cfg(feature = "nats")]
pub(super) async fn store(shared: &SharedStore, replicas: Option<usize>) -> Vec<Check> {
    use polyloop_agent::log::nats;
    let servers = shared.servers.iter().map(|server| server.reveal().to_owned()).collect();
    let place = nats::Place { servers, name: shared.name.clone(), replicas };
    seen::told(&place, &nats::look(&place).await)
}

#[cfg(feature = "nats")]
mod seen {
    use polyloop_agent::log::nats::{Look, Looked, Place};

    use super::super::report::Check;
    use super::THING;
    use crate::config::settings;

    pub(super) fn told(place: &Place, looked: &Looked) -> Vec<Check> {
        let is_any_fit =
            looked.servers.iter().any(|look| matches!(look, Look::Answers { unfit: None, .. }));
        // One that does not answer stops nobody while another does.
        let problem = if is_any_fit { Check::warn } else { Check::fail };
        let servers = place.servers.iter().zip(&looked.servers);
        let mut checks: Vec<Check> = servers
            .map(|(url, look)| {
                let host = without_user(url);
                match look {
                    Look::Answers { version, unfit: None } => {
                        Check::ok(THING, format!("NATS {version} answers at {host}"))
                    }
                    Look::Answers { version, unfit: Some(why) } => {
                        problem(THING, format!("NATS {version} answers at {host}, but {why}"))
                    }
                    Look::Silent { why } => {
                        let name = settings::STORE.name;
                        let text = format!("NATS cannot be reached at {host}: {why}; start it");
                        problem(THING, format!("{text}, or change {name}"))
                    }
                }
            })
            .collect();
        if is_any_fit {
            checks.push(streams(looked));
            checks.push(flushing());
        }
        checks
    }

    fn streams(looked: &Looked) -> Check {
        let wanted = looked.replicas_wanted;
        let found = match &looked.streams {
            Ok(found) => found,
            Err(why) => return Check::fail(THING, format!("its streams cannot be seen: {why}")),
        };
        let kept = found.iter().filter_map(|(name, replicas)| Some((name, (*replicas)?)));
        let there: Vec<String> = kept.map(|(name, count)| format!("{name} {count}")).collect();
        let missing = found.len() - there.len();
        let mut told = Vec::new();
        if !there.is_empty() {
            told.push(format!("replicas of its streams: {}", there.join(", ")));
        }
        if missing > 0 {
            told.push(format!(
                "{missing} of its {} streams are not there yet; a start makes them with {wanted} \
                 replicas",
                found.len()
            ));
        }
        let text = told.join("; ");
        match found.iter().filter_map(|(_, replicas)| *replicas).any(|count| count < wanted) {
            true => {
                let name = settings::STORE_REPLICAS.name;
                let text = format!("{text}; {wanted} are wanted; {name}={wanted} makes it so");
                Check::warn(THING, text)
            }
            false => Check::ok(THING, text),
        }
    }

    /// No client can see it, so nobody is told that it is well.
    fn flushing() -> Check {
        let text = "whether NATS flushes what it acknowledges cannot be seen from here: make sure \
                    that its configuration says `sync_interval: always`, or a power failure loses \
                    what clients were shown";
        Check::warn(THING, text)
    }

    fn without_user(url: &str) -> &str {
        let host = url.split_once("://").map_or(url, |(_, host)| host);
        host.rsplit_once('@').map_or(host, |(_, host)| host)
    }
}
