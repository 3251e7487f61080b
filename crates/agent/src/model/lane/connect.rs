//! Makes connections: straight, through a proxy, or through a tunnel that a proxy makes.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::uri::Scheme;
use http::{HeaderValue, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use super::{Io, Trouble};
use crate::model::http::Proxies;

/// For everything until a request can be sent.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a peer may be silent before it is asked whether it is there.
const PROBE_AFTER: Duration = Duration::from_secs(15);

pub(super) struct Connector {
    plain: HttpConnector,
    proxies: Matcher,
    /// Made when it is first needed: that reads the certificates of the machine.
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
}

/// What stands between us and a server.
pub(super) enum Through {
    Nothing,
    /// It is sent the request.
    Proxy {
        uri: Uri,
        auth: Option<HeaderValue>,
    },
    /// It makes a connection and does not see what goes through it.
    Tunnel {
        uri: Uri,
        auth: Option<HeaderValue>,
    },
}

impl Through {
    pub(super) fn needs_tls(&self, uri: &Uri) -> bool {
        match self {
            Through::Nothing => is_https(uri),
            Through::Proxy { uri: proxy, .. } => is_https(proxy),
            Through::Tunnel { .. } => true,
        }
    }
}

pub(super) enum Made {
    Plain(TcpStream),
    Other(Pin<Box<dyn Io>>),
}

impl Connector {
    pub(super) fn new(proxies: &Proxies) -> Connector {
        let mut plain = HttpConnector::new();
        plain.enforce_http(false);
        plain.set_nodelay(true);
        plain.set_connect_timeout(Some(CONNECT_TIME_MAX));
        plain.set_keepalive(Some(PROBE_AFTER));
        plain.set_keepalive_interval(Some(PROBE_AFTER));
        let mut matcher = Matcher::builder();
        if let Some(url) = &proxies.https {
            matcher = matcher.https(url.clone());
        }
        if let Some(url) = &proxies.http {
            matcher = matcher.http(url.clone());
        }
        if let Some(except) = &proxies.except {
            matcher = matcher.no(except.clone());
        }
        Connector { plain, proxies: matcher.build(), tls: OnceLock::new() }
    }

    pub(super) fn through(&self, uri: &Uri) -> Through {
        let Some(proxy) = self.proxies.intercept(uri) else { return Through::Nothing };
        let (auth, proxy) = (proxy.basic_auth().cloned(), proxy.uri().clone());
        match is_https(uri) {
            true => Through::Tunnel { uri: proxy, auth },
            false => Through::Proxy { uri: proxy, auth },
        }
    }

    pub(super) fn has_tls(&self) -> bool {
        self.tls.get().is_some()
    }

    /// Reads certificates the first time, which takes a while.
    pub(super) fn tls(&self) -> Result<Arc<ClientConfig>, Trouble> {
        let made = self.tls.get_or_init(|| {
            let made = config().map(Arc::new);
            made.map_err(|error| format!("TLS cannot be used: {error}"))
        });
        made.clone().map_err(Trouble::Unmade)
    }

    pub(super) async fn connect(&self, uri: &Uri, through: &Through) -> Result<Made, Trouble> {
        let connecting = self.connected(uri, through);
        match tokio::time::timeout(CONNECT_TIME_MAX, connecting).await {
            Ok(made) => made,
            Err(_) => {
                let seconds = CONNECT_TIME_MAX.as_secs();
                Err(Trouble::Time(format!("no connection in {seconds} s")))
            }
        }
    }

    async fn connected(&self, uri: &Uri, through: &Through) -> Result<Made, Trouble> {
        let needs_tls = through.needs_tls(uri);
        let to = match through {
            Through::Nothing => uri.clone(),
            Through::Proxy { uri, .. } => uri.clone(),
            Through::Tunnel { uri: proxy, auth } => {
                let outside = HttpsConnector::from((self.plain.clone(), self.tls()?));
                let tunnel = Tunnel::new(proxy.clone(), outside);
                let tunnel = match auth {
                    Some(auth) => tunnel.with_auth(auth.clone()),
                    None => tunnel,
                };
                let mut inside = HttpsConnector::from((tunnel, self.tls()?));
                let stream = called(&mut inside, uri.clone()).await?;
                return Ok(Made::Other(Box::pin(TokioIo::new(stream))));
            }
        };
        if !needs_tls {
            let stream = called(&mut self.plain.clone(), to).await?;
            return Ok(Made::Plain(stream.into_inner()));
        }
        let mut tls = HttpsConnector::from((self.plain.clone(), self.tls()?));
        Ok(Made::Other(Box::pin(TokioIo::new(called(&mut tls, to).await?))))
    }
}

async fn called<C: Service<Uri>>(connector: &mut C, to: Uri) -> Result<C::Response, Trouble>
where
    C::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let lost = |error: C::Error| Trouble::Unreachable(chain(&*error.into()));
    std::future::poll_fn(|cx| connector.poll_ready(cx)).await.map_err(lost)?;
    connector.call(to).await.map_err(lost)
}

/// Trusts whom the machine trusts.
fn config() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = rustls_platform_verifier::Verifier::new(provider.clone())?;
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions()?;
    let trusting = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(trusting.with_no_client_auth())
}

fn is_https(uri: &Uri) -> bool {
    uri.scheme() == Some(&Scheme::HTTPS)
}

/// The causes, innermost last.
fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    let mut told: Vec<String> = causes.map(ToString::to_string).collect();
    told.dedup();
    told.join(": ")
}
