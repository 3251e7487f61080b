//! What a fetch may connect to, and the clients that connect.
//!
//! The addresses that a name leads to are judged where they are used: the client connects to no
//! other ones, so that a name cannot lead elsewhere once it was judged. Through a proxy the proxy
//! looks the name up; then what it leads to here is judged before, as far as it is known here.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, Url, redirect};

use super::address::{is_here, private};
use crate::model::http::{Proxies, Road, made, proxied};

const USER_AGENT: &str = concat!("Polyloop/", env!("CARGO_PKG_VERSION"));

/// How much one fetch may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the first connection to the last byte.
    pub time_max: Duration,
    pub connect_time_max: Duration,
    /// Of an answer; the rest is not read.
    pub body_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time_max: Duration::from_secs(30),
            connect_time_max: Duration::from_secs(10),
            body_bytes_max: 2 * 1024 * 1024,
        }
    }
}

/// Whether addresses that are not on the public internet may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateAddresses {
    Refused,
    Allowed,
}

/// The way to the web that all sessions share.
#[derive(Clone)]
pub struct Reach(Arc<Inner>);

struct Inner {
    private: PrivateAddresses,
    limits: Limits,
    proxies: Hosts,
    road: Road,
    /// Never connects to this machine.
    road_away: Road,
    /// The port that the server itself listens on; 0 until it does.
    own_port: AtomicU16,
}

/// Names of hosts that only the proxies have, and what they are used for.
#[derive(Clone, Default)]
struct Hosts {
    names: Vec<String>,
    https: bool,
    http: bool,
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { private, limits, .. } = &*self.0;
        f.debug_struct("Reach").field("private", private).field("limits", limits).finish()
    }
}

impl Reach {
    pub fn new(
        proxies: &Proxies,
        private: PrivateAddresses,
        limits: Limits,
    ) -> Result<Reach, String> {
        proxied(Client::builder(), proxies).map(drop)?;
        let hosts = Hosts::of(proxies);
        let road = |here: Here| {
            let (proxies, names) = (proxies.clone(), hosts.names.clone());
            Road::by(move || {
                let guard = Guard { private, here, proxies: names.clone() };
                made(proxied(builder(limits, guard), &proxies)?)
            })
        };
        let (road, road_away) = (road(Here::Allowed), road(Here::Refused));
        let own_port = AtomicU16::new(0);
        let inner = Inner { private, limits, proxies: hosts, road, road_away, own_port };
        Ok(Reach(Arc::new(inner)))
    }

    /// From now on this port of this machine is out of reach: the server listens there.
    pub fn keep_from(&self, port: u16) {
        self.0.own_port.store(port, Ordering::Relaxed);
    }

    pub(super) fn limits(&self) -> Limits {
        self.0.limits
    }

    /// Refuses what no name needs to be looked up for.
    pub(super) fn check_words(&self, url: &Url) -> Result<(), String> {
        let host = url.host_str().unwrap_or_default();
        let here = self.here(url);
        if let Some(address) = literal(url) {
            return allowed(address, self.0.private, here)
                .map_err(|why| Refused { host: host.to_owned(), address, why }.to_string());
        }
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        let is_local = name == "localhost" || name.ends_with(".localhost");
        if is_local && self.0.private == PrivateAddresses::Refused {
            return Err(format!("{host} is this machine, {NOT_REACHED}"));
        }
        if self.0.proxies.names.contains(&name) {
            return Err(format!("{host} is the proxy, which is not fetched from"));
        }
        Ok(())
    }

    /// The client to fetch it with, unless it is refused.
    pub(super) async fn client(&self, url: &Url) -> Result<Client, String> {
        self.check_words(url)?;
        let here = self.here(url);
        if self.0.proxies.serve(url)
            && literal(url).is_none()
            && let Some(host) = url.host_str()
            && let Ok(addresses) = look_up(host).await
        {
            check(host, &addresses, self.0.private, here).map_err(|refused| refused.to_string())?;
        }
        let road = match here {
            Here::Allowed => &self.0.road,
            Here::Refused => &self.0.road_away,
        };
        road.client().await
    }

    fn here(&self, url: &Url) -> Here {
        let own = self.0.own_port.load(Ordering::Relaxed);
        match url.port_or_known_default() {
            Some(port) if port == own => Here::Refused,
            Some(_) | None => Here::Allowed,
        }
    }
}

fn builder(limits: Limits, guard: Guard) -> ClientBuilder {
    Client::builder()
        .user_agent(USER_AGENT)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(limits.connect_time_max)
        // No connection outlives its call.
        .pool_max_idle_per_host(0)
        .dns_resolver(guard)
}

impl Hosts {
    fn of(proxies: &Proxies) -> Hosts {
        let urls = proxies.https.iter().chain(&proxies.http);
        let names = urls.filter_map(|url| Url::parse(url).ok()).filter_map(|url| {
            let name = url.domain()?.trim_end_matches('.').to_ascii_lowercase();
            Some(name)
        });
        Hosts {
            names: names.collect(),
            https: proxies.https.is_some(),
            http: proxies.http.is_some(),
        }
    }

    /// Whether a proxy may be used for it.
    fn serve(&self, url: &Url) -> bool {
        match url.scheme() {
            "https" => self.https,
            _ => self.http,
        }
    }
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        url::Host::Ipv4(address) => Some(address.into()),
        url::Host::Ipv6(address) => Some(address.into()),
        url::Host::Domain(_) => None,
    }
}

/// Whether this machine may be reached, where private addresses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    Allowed,
    Refused,
}

const NOT_REACHED: &str = "and private addresses are not fetched from unless the server runs with \
                           WEB_PRIVATE_ADDRESSES=true";

/// Looks names up for a client, and judges where they lead.
struct Guard {
    private: PrivateAddresses,
    here: Here,
    /// These are the operator's choice.
    proxies: Vec<String>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().trim_end_matches('.').to_ascii_lowercase();
        let (private, here) = match self.proxies.contains(&host) {
            true => (PrivateAddresses::Allowed, Here::Allowed),
            false => (self.private, self.here),
        };
        async move {
            let addresses = look_up(name.as_str()).await?;
            check(name.as_str(), &addresses, private, here)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        }
        .boxed()
    }
}

async fn look_up(host: &str) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, 0)).await?.collect())
}

/// Every address must be allowed: which of them is taken is chance.
fn check(
    host: &str,
    addresses: &[SocketAddr],
    private: PrivateAddresses,
    here: Here,
) -> Result<(), Refused> {
    for address in addresses.iter().map(SocketAddr::ip) {
        let refused = |why| Refused { host: host.to_owned(), address, why };
        allowed(address, private, here).map_err(refused)?;
    }
    Ok(())
}

fn allowed(address: IpAddr, allow: PrivateAddresses, here: Here) -> Result<(), Why> {
    match (private(address), allow) {
        (Some(kind), PrivateAddresses::Refused) => return Err(Why::Private(kind)),
        (Some(_), PrivateAddresses::Allowed) | (None, _) => {}
    }
    match here {
        Here::Refused if is_here(address) => Err(Why::Own),
        Here::Refused | Here::Allowed => Ok(()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Private(&'static str),
    Own,
}

/// Where a name leads is out of reach.
#[derive(Debug)]
struct Refused {
    host: String,
    address: IpAddr,
    why: Why,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { host, address, why } = self;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare == address.to_string() {
            true => write!(f, "{address} is ")?,
            false => write!(f, "{host} leads to {address}, ")?,
        }
        match why {
            Why::Private(kind) => write!(f, "{kind}, {NOT_REACHED}"),
            Why::Own => f.write_str("this server's own address, which is never fetched from"),
        }
    }
}

impl Error for Refused {}

/// Why a fetch failed, in words: the refusal if there was one, else the causes, innermost last.
pub(super) fn explained(error: &reqwest::Error) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return refused.to_string();
        }
        let text = error.to_string();
        if told.last() != Some(&text) {
            told.push(text);
        }
        cause = error.source();
    }
    match told.is_empty() {
        true => "unknown cause".to_owned(),
        false => told.join(": "),
    }
}

#[cfg(test)]
mod tests;
