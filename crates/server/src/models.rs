//! The models that sessions may have: which provider runs a name, and how it is reached.
//!
//! Nothing is asked of a provider here; a model that does not exist is found out when it is asked.

use std::iter;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use polyloop_agent::model::anthropic::Anthropic;
use polyloop_agent::model::api::Api;
use polyloop_agent::model::completions::Completions;
use polyloop_agent::model::gemini::Gemini;
use polyloop_agent::model::gemini::account::Account;
use polyloop_agent::model::http::{Proxies, Road};
use polyloop_agent::model::lane::Lanes;
use polyloop_agent::model::offline::{OFFLINE_NAME, Offline};
use polyloop_agent::model::remote::{Auth, Endpoint, Remote};
use polyloop_agent::model::responses::Responses;
use polyloop_agent::model::secret::Secret;
use polyloop_agent::model::table::{Family, Table};
use polyloop_agent::model::token::Tokens;
use polyloop_agent::model::{Model, Models};

use crate::config::{self, ModelAccess, Provider, WireApi, detect, is_own_server, settings};

/// How the names of OpenAI's own models begin.
const OPENAI_NAMES: [&str; 6] = ["gpt-", "o1", "o3", "o4", "codex", "chatgpt-"];
/// Of a model's name.
const NAME_CHARS_MAX: usize = 200;
/// Whose server it is cannot be known when it is not OpenAI's own.
const SOMEBODY: &str = "The model server";

pub struct Served {
    config: config::Model,
    table: Table,
    openai: Option<Arc<Endpoint>>,
    anthropic: Option<Arc<Endpoint>>,
    google: Option<Arc<Endpoint>>,
    lanes: Lanes,
}

/// One model that can be asked for.
pub struct Offer {
    pub name: String,
    pub provider: &'static str,
    /// The size of its window.
    pub tokens_max: u64,
}

/// The models that can be asked for, the preset one first.
pub struct Offers {
    /// Who runs the preset model.
    pub provider: &'static str,
    pub models: Vec<Offer>,
}

impl Served {
    /// Makes ready what the configuration has keys for.
    pub fn open(config: &config::Model) -> Result<Served, String> {
        let proxies = proxies(&config.proxy);
        let (road, lanes) = (Road::new(&proxies)?, Lanes::new(&proxies));
        let hidden: Vec<Secret> = [&proxies.https, &proxies.http]
            .into_iter()
            .flatten()
            .flat_map(|url| hidden(url))
            .collect();
        let endpoint = |provider| {
            let Some(access) = config.access(provider) else { return Ok(None) };
            let Some(auth) = auth(config, provider, access)? else { return Ok(None) };
            Ok::<_, String>(Some(Arc::new(Endpoint {
                api: api(config, provider, access),
                base_url: access.base_url.clone(),
                auth,
                key_from: access.key.as_ref().map_or_else(|| key_name(provider), |k| k.variable),
                hidden: hidden.clone(),
                road: road.clone(),
                lanes: lanes.clone(),
                idle_time_max: config.idle_timeout,
            })))
        };
        Ok(Served {
            openai: endpoint(Provider::OpenAi)?,
            anthropic: endpoint(Provider::Anthropic)?,
            google: endpoint(Provider::Google)?,
            table: config.table()?,
            config: config.clone(),
            lanes,
        })
    }

    /// How a provider is reached, if there is a key for it.
    pub fn endpoint(&self, provider: Provider) -> Option<&Arc<Endpoint>> {
        match provider {
            Provider::OpenAi => self.openai.as_ref(),
            Provider::Anthropic => self.anthropic.as_ref(),
            Provider::Google => self.google.as_ref(),
            Provider::Offline => None,
        }
    }

    /// What can be run now, as far as it is known by name.
    ///
    /// Nobody can know what a server at home runs, so of its models only those are named that the
    /// operator named.
    pub fn offers(&self) -> Offers {
        let (theirs, ours) = self.table.names();
        let at_home = is_own_server(&self.config.openai.base_url);
        let is_run = |name: &&str| {
            let provider = self.provider(name);
            detect(name) == provider && !(at_home && provider == Provider::OpenAi)
        };
        let preset = self.config.name.as_str();
        let names = iter::once(preset).chain(theirs).chain(ours.filter(is_run));
        let mut models: Vec<Offer> = Vec::new();
        for name in names {
            let Ok(model) = self.find(name) else { continue };
            if models.iter().all(|offer| offer.name != name) {
                let provider = self.provider(name).word();
                models.push(Offer {
                    name: name.to_owned(),
                    provider,
                    tokens_max: model.card().tokens_max,
                });
            }
        }
        Offers { provider: self.provider(preset).word(), models }
    }

    /// PROVIDER was set: it runs everything but what is plainly another's whose key is there.
    fn named(&self, name: &str) -> Provider {
        let named = self.config.provider;
        let other = detect(name);
        let at_home = named == Provider::OpenAi && is_own_server(&self.config.openai.base_url);
        let plainly = match other {
            Provider::OpenAi => OPENAI_NAMES.iter().any(|begin| name.starts_with(begin)),
            Provider::Anthropic => name.starts_with("claude-"),
            Provider::Google => name.starts_with("gemini-"),
            Provider::Offline => false,
        };
        let reached = self.endpoint(other).is_some() && named != Provider::Offline;
        if plainly && reached && !at_home { other } else { named }
    }

    fn provider(&self, name: &str) -> Provider {
        if self.config.named {
            return self.named(name);
        }
        match detect(name) {
            // Servers at home run everybody's models.
            other
                if self.endpoint(other).is_none()
                    && is_own_server(&self.config.openai.base_url) =>
            {
                match other {
                    Provider::Offline => Provider::Offline,
                    Provider::OpenAi | Provider::Anthropic | Provider::Google => Provider::OpenAi,
                }
            }
            detected => detected,
        }
    }
}

/// The proxies as clients take them.
pub fn proxies(config: &config::Proxy) -> Proxies {
    let secret = |secret: &config::Secret| secret.reveal().to_owned();
    Proxies {
        https: config.https.as_ref().map(secret),
        http: config.http.as_ref().map(secret),
        except: config.no_proxy.clone(),
    }
}

impl Models for Served {
    fn preset(&self) -> Arc<dyn Model> {
        self.find(&self.config.name).unwrap_or_else(|_| Arc::new(Offline::new()))
    }

    fn prepare(&self) {
        let all = [&self.openai, &self.anthropic, &self.google].into_iter().flatten();
        if all.into_iter().any(|endpoint| endpoint.base_url.starts_with("https:")) {
            self.lanes.prepare();
        }
    }

    fn find(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        let odd = |c: char| c.is_whitespace() || c.is_control();
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.contains(odd) {
            return Err("is no model's name".to_owned());
        }
        let provider = self.provider(name);
        if provider == Provider::Offline {
            return match (self.config.provider, name) {
                (Provider::Offline, OFFLINE_NAME) => Ok(Arc::new(Offline::new())),
                (Provider::Offline, _) => Err(format!("is not available; use {:?}", OFFLINE_NAME)),
                _ => Err("is there only with PROVIDER=offline".to_owned()),
            };
        }
        let Some(endpoint) = self.endpoint(provider) else {
            return Err(format!("is not available: {} is not set", key_name(provider)));
        };
        let card = self.table.card(name, family(&self.config, provider));
        Ok(Arc::new(Remote::new(name.to_owned(), card, endpoint.clone())))
    }

    fn provider(&self, name: &str) -> &'static str {
        Served::provider(self, name).word()
    }
}

/// Whose defaults a model has that no table knows.
pub fn family(config: &config::Model, provider: Provider) -> Family {
    match (provider, config.wire) {
        (Provider::OpenAi, WireApi::Responses) => Family::OpenAi,
        (Provider::OpenAi, WireApi::Chat) => Family::Chat,
        (Provider::Anthropic, _) => Family::Anthropic,
        (Provider::Google, _) => Family::Google,
        (Provider::Offline, _) => Family::Offline,
    }
}

fn api(config: &config::Model, provider: Provider, access: &ModelAccess) -> Box<dyn Api> {
    match (provider, config.wire) {
        (Provider::Anthropic, _) => Box::new(Anthropic),
        (Provider::Google, _) => Box::new(Gemini),
        (Provider::OpenAi | Provider::Offline, wire) => {
            let whose = if is_own_server(&access.base_url) { SOMEBODY } else { "OpenAI" };
            match wire {
                WireApi::Responses => Box::new(Responses::new(whose)),
                WireApi::Chat => Box::new(Completions::new(whose)),
            }
        }
    }
}

/// `None` where a key is wanted and there is none.
fn auth(
    config: &config::Model,
    provider: Provider,
    access: &ModelAccess,
) -> Result<Option<Auth>, String> {
    let Some(key) = &access.key else {
        let open = provider == Provider::OpenAi && is_own_server(&access.base_url);
        return Ok(open.then_some(Auth::Open));
    };
    let secret = Secret::new(key.value.reveal());
    if key.variable == settings::GOOGLE_APPLICATION_CREDENTIALS.name {
        return match Account::read(Path::new(key.value.reveal())) {
            Ok(account) => Ok(Some(Auth::Account(Box::new(Tokens::new(account))))),
            // Another provider's trouble must not stop this one.
            Err(_) if config.provider != Provider::Google => Ok(None),
            Err(why) => Err(format!("{}: {why}", key.variable)),
        };
    }
    Ok(Some(match provider {
        Provider::Anthropic => Auth::Header("x-api-key", secret),
        Provider::Google => Auth::Header("x-goog-api-key", secret),
        Provider::OpenAi | Provider::Offline => Auth::Bearer(secret),
    }))
}

/// What of a proxy's URL nobody may see, in every form in which it travels.
fn hidden(url: &str) -> Vec<Secret> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let Some((who, _)) = rest.rsplit_once('@') else { return Vec::new() };
    let plain = percent_decoded(who);
    let mut texts = vec![who.to_owned(), BASE64.encode(&plain), plain.clone()];
    for who in [who, &plain] {
        texts.extend(who.split_once(':').map(|(_, password)| password.to_owned()));
    }
    texts.iter().map(|text| Secret::new(text)).collect()
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let code = match rest {
            [b'%', a, b, ..] => std::str::from_utf8(&[*a, *b]).ok().and_then(hex),
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &rest[3..] } else { more };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digits: &str) -> Option<u8> {
    u8::from_str_radix(digits, 16).ok()
}

fn key_name(provider: Provider) -> &'static str {
    match provider {
        Provider::OpenAi | Provider::Offline => settings::OPENAI_API_KEY.name,
        Provider::Anthropic => settings::ANTHROPIC_API_KEY.name,
        Provider::Google => settings::GOOGLE_API_KEY.name,
    }
}
