//! Whether the provider answers, and whether the port is free.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use polyloop_agent::model::remote::{self, Probe};

use super::report::Check;
use crate::config::{Model, Provider, settings};
use crate::models::Served;

/// For asking whoever has the port who he is.
const NEIGHBOUR_TIME_MAX: Duration = Duration::from_secs(1);
const NEIGHBOUR_BYTES_MAX: u64 = 4096;
/// How many names are told when the wanted one is not among them.
const NAMES_MAX: usize = 5;
const NAME_CHARS_MAX: usize = 80;

/// What became of asking a provider for its list of models.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reach {
    /// There is nobody to ask.
    NotNeeded,
    /// Without a key it makes no sense.
    NoKey,
    Answered {
        status: u16,
        models: Vec<String>,
    },
    Failed(String),
    /// It could not even be asked.
    NotReady(String),
}

pub(super) async fn endpoint(model: &Model) -> Vec<Check> {
    let reach = reach(model).await;
    told(model, reach)
}

/// Asks as the server would: by the same client, through the same proxy, with the same key.
async fn reach(model: &Model) -> Reach {
    if model.provider == Provider::Offline {
        return Reach::NotNeeded;
    }
    let served = match Served::open(model) {
        Ok(served) => served,
        Err(why) => return Reach::NotReady(why),
    };
    let Some(endpoint) = served.endpoint(model.provider) else { return Reach::NoKey };
    match remote::probe(endpoint).await {
        Ok(Probe { status, models }) => Reach::Answered { status, models },
        Err(failure) => Reach::Failed(failure.fault.message.to_string()),
    }
}

fn told(model: &Model, reach: Reach) -> Vec<Check> {
    let thing = "endpoint";
    let (status, models) = match reach {
        Reach::NotNeeded => {
            return vec![Check::ok(thing, "nothing to reach: the offline model is built in")];
        }
        Reach::NoKey => return vec![Check::warn(thing, "not asked, because there is no key")],
        Reach::Failed(why) => {
            let text = format!("{why}; check {}, the network and the proxy", url_variable(model));
            return vec![Check::fail(thing, text)];
        }
        Reach::NotReady(why) => return vec![Check::fail(thing, why)],
        Reach::Answered { status, models } => (status, models),
    };
    let mut checks = vec![answered(model, status)];
    if (200..300).contains(&status) {
        checks.push(listed(&model.name, models));
    }
    checks
}

fn url_variable(model: &Model) -> &'static str {
    match model.provider {
        Provider::OpenAi => settings::OPENAI_BASE_URL.name,
        Provider::Anthropic => settings::ANTHROPIC_BASE_URL.name,
        Provider::Google => settings::GOOGLE_BASE_URL.name,
        Provider::Offline => "",
    }
}

fn answered(model: &Model, status: u16) -> Check {
    let thing = "endpoint";
    let access = model.access(model.provider);
    let url = access.map_or("", |access| &access.base_url);
    let variable = url_variable(model);
    let key = access.and_then(|access| access.key.as_ref()).map(|key| key.variable);
    let wants_version = match model.provider {
        Provider::OpenAi => "with its version, such as …/v1",
        Provider::Anthropic | Provider::Google | Provider::Offline => "without its version",
    };
    match (status, key) {
        (200..=299, _) => Check::ok(thing, format!("{url} answers ({status})")),
        (401 | 403, None) => {
            let name = settings::OPENAI_API_KEY.name;
            Check::fail(thing, format!("{url} wants a key ({status}); set {name}"))
        }
        (401 | 403, Some(key)) => {
            Check::fail(thing, format!("{url} refuses {key} ({status}); set one that it accepts"))
        }
        // So Google says that it does not know a key.
        (400, Some(key)) if model.provider == Provider::Google => {
            Check::fail(thing, format!("{url} refuses {key} (400); set one that it accepts"))
        }
        (404, _) => Check::warn(
            thing,
            format!(
                "{url} answers, but has no list of models there (404); check that {variable} is \
                 {wants_version}"
            ),
        ),
        (407, _) => Check::fail(
            thing,
            "the proxy wants to know who asks (407); put user:password@ before its host".to_owned(),
        ),
        (300..=399, _) => Check::warn(
            thing,
            format!("{url} leads elsewhere ({status}), which is not followed; check {variable}"),
        ),
        (429, _) => Check::warn(thing, format!("{url} has had too many requests (429); wait")),
        (500..=599, _) => {
            Check::warn(thing, format!("{url} has trouble of its own ({status}); try again later"))
        }
        _ => Check::warn(thing, format!("{url} answers with {status}; check {variable}")),
    }
}

fn listed(model: &str, mut models: Vec<String>) -> Check {
    let thing = "model list";
    if models.is_empty() {
        let text = format!("what came is no list of models; whether there is {model} is not known");
        return Check::warn(thing, text);
    }
    if models.iter().any(|listed| is_same(listed, model)) {
        return Check::ok(thing, format!("{model} is one of {} models", models.len()));
    }
    let count = models.len();
    let alike = |name: &str| name.chars().zip(model.chars()).take_while(|(a, b)| a == b).count();
    models.sort_by(|a, b| alike(b).cmp(&alike(a)).then_with(|| a.cmp(b)));
    let names = models.iter().take(NAMES_MAX).map(|name| name.chars().take(NAME_CHARS_MAX));
    let names = names.map(String::from_iter).collect::<Vec<String>>().join(", ");
    let text = format!("{model} is not among the {count} models there; set MODEL, such as {names}");
    Check::warn(thing, text)
}

/// A list may have a model only with its date, or with a tag, and answer to the bare name.
fn is_same(listed: &str, model: &str) -> bool {
    let Some(rest) = listed.strip_prefix(model) else { return false };
    let is_date = |date: &str| date.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    rest.is_empty() || rest == ":latest" || rest.strip_prefix('-').is_some_and(is_date)
}

pub(super) fn port(addr: SocketAddr) -> Check {
    let thing = "port";
    match TcpListener::bind(addr) {
        Ok(_) if addr.port() == 0 => Check::ok(thing, format!("any free one of {}", addr.ip())),
        Ok(_) => Check::ok(thing, format!("{addr} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_one_of_us(addr) => Check::warn(
            thing,
            format!("a server like this one listens on {addr} already; another needs another port"),
        ),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Check::fail(
            thing,
            format!("another program listens on {addr}; choose another with --port"),
        ),
        Err(error) => Check::fail(thing, format!("cannot listen on {addr}: {error}")),
    }
}

/// Whether who listens there answers as we would.
fn is_one_of_us(addr: SocketAddr) -> bool {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let asked = || -> std::io::Result<String> {
        let addr = SocketAddr::new(ip, addr.port());
        let mut stream = TcpStream::connect_timeout(&addr, NEIGHBOUR_TIME_MAX)?;
        stream.set_read_timeout(Some(NEIGHBOUR_TIME_MAX))?;
        stream.set_write_timeout(Some(NEIGHBOUR_TIME_MAX))?;
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.take(NEIGHBOUR_BYTES_MAX).read_to_string(&mut answer)?;
        Ok(answer)
    };
    asked().is_ok_and(|answer| {
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with(r#"{"status":"ok"}"#)
    })
}

#[cfg(test)]
mod tests;
