//! Which provider runs which model, and how each provider is reached.
//!
//! All of them are read, not only the chosen one: a session may choose another model. Never
//! speaks to a provider.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use polyloop_agent::model::table::Table;

use super::read::{lower, required_number};
use super::settings::{self, OFFLINE_MODEL, Setting};
use super::source::Reader;
use super::url::{self, base_url, is_loopback, proxy_url};
use super::value::{self, Provider, Secret, WireApi};
use super::{Model, ModelAccess, ModelKey, Proxy};

const OPENAI_MODEL: &str = "codex-mini-latest";
const ANTHROPIC_MODEL: &str = "claude-sonnet-5-5";
const GOOGLE_MODEL: &str = "gemini-3.8-flash";
/// Whoever has another address runs the server himself, and may want no key.
const OPENAI_HOST: &str = "api.openai.com";
const MODELS_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Settles provider, model and access; gives nothing only if one of them cannot be had at all. A
/// key that is missing is a problem, but all the rest is known.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<Model> {
    let name = reader.optional(&settings::MODEL, |text| Some(text.to_owned()));
    let problems_before = reader.problems.len();
    let named = reader.optional(&settings::PROVIDER, |text| Provider::parse(&lower(text)));
    let settled = reader.problems.len() == problems_before;
    let provider = named.unwrap_or_else(|| detect(name.as_deref().unwrap_or(OPENAI_MODEL)));
    let chosen = settled.then_some(provider);

    let openai = Reached::read(reader, &settings::OPENAI_BASE_URL, &settings::OPENAI_API_KEY);
    let anthropic =
        Reached::read(reader, &settings::ANTHROPIC_BASE_URL, &settings::ANTHROPIC_API_KEY);
    let mut google = Reached::read(reader, &settings::GOOGLE_BASE_URL, &settings::GOOGLE_API_KEY);
    if matches!(google.key, Key::Unset) {
        google.key = account(reader, chosen == Some(Provider::Google));
    }
    if let Some(chosen) = chosen {
        require_key(reader, chosen, [&openai, &anthropic, &google]);
    }
    for reached in [&openai, &anthropic, &google] {
        warn_of_clear_text(reader, reached);
    }
    let wire = reader.required(&settings::OPENAI_WIRE_API, |text| WireApi::parse(&lower(text)));
    let idle_secs = required_number(reader, &settings::MODEL_IDLE_TIMEOUT_SECS);
    let retries_max = required_number(reader, &settings::MODEL_RETRIES);
    let (https, http) = (&settings::HTTPS_PROXY, &settings::HTTP_PROXY);
    let proxy = Proxy {
        https: reader.optional(https, proxy_url),
        http: reader.optional(http, proxy_url),
        no_proxy: reader.optional(&settings::NO_PROXY, |text| Some(text.to_owned())),
    };
    Some(Model {
        provider: chosen?,
        named: named.is_some(),
        name: model_name(reader, provider, name),
        wire: wire?,
        openai: openai.access()?,
        anthropic: anthropic.access()?,
        google: google.access()?,
        models_file: models_file(reader),
        proxy,
        idle_timeout: Duration::from_secs(idle_secs?),
        retries_max: retries_max?,
    })
}

/// Tells the provider from a model's name.
pub fn detect(model: &str) -> Provider {
    if model == OFFLINE_MODEL {
        Provider::Offline
    } else if model.starts_with("claude-") || model.contains("anthropic") {
        Provider::Anthropic
    } else if model.starts_with("gemini-") || model.contains("google") {
        Provider::Google
    } else {
        Provider::OpenAi
    }
}

/// The model of a provider when none is named.
fn default_model(provider: Provider) -> &'static str {
    match provider {
        Provider::OpenAi => OPENAI_MODEL,
        Provider::Anthropic => ANTHROPIC_MODEL,
        Provider::Google => GOOGLE_MODEL,
        Provider::Offline => OFFLINE_MODEL,
    }
}

/// Whether OpenAI's interface is somebody else's there.
pub fn is_own_server(openai_base_url: &str) -> bool {
    url::host(openai_base_url) != OPENAI_HOST
}

/// What is said of how a provider is reached.
struct Reached {
    url_setting: &'static Setting,
    /// None if a problem was noted.
    base_url: Option<String>,
    key: Key,
}

enum Key {
    Unset,
    /// A problem was noted.
    Bad,
    Set(ModelKey),
}

impl Reached {
    fn read(
        reader: &mut Reader<'_>,
        url_setting: &'static Setting,
        key_setting: &'static Setting,
    ) -> Self {
        let base_url = reader.required(url_setting, base_url);
        let key = match reader.is_set(key_setting) {
            false => Key::Unset,
            true => match reader.optional(key_setting, value::key) {
                Some(value) => Key::Set(ModelKey { variable: key_setting.name, value }),
                None => Key::Bad,
            },
        };
        Self { url_setting, base_url, key }
    }

    fn access(self) -> Option<ModelAccess> {
        let key = match self.key {
            Key::Set(key) => Some(key),
            Key::Unset | Key::Bad => None,
        };
        Some(ModelAccess { key, base_url: self.base_url? })
    }
}

/// The file of a service account, which must be readable. Many machines name one for other
/// programs: only who chose Google is stopped by a bad one.
fn account(reader: &mut Reader<'_>, is_needed: bool) -> Key {
    let setting = &settings::GOOGLE_APPLICATION_CREDENTIALS;
    let Some(path) = reader.path(setting) else { return Key::Unset };
    let name = setting.name;
    let problem = if reader.looks_like_json(setting) {
        // What was put there is the secret itself.
        format!("{name}: the value is the content of a file; use the file's path")
    } else {
        match std::fs::File::open(&path).and_then(|mut file| file.read(&mut [0])) {
            Ok(_) => {
                let value = Secret::new(path.to_string_lossy());
                return Key::Set(ModelKey { variable: name, value });
            }
            Err(error) => format!("{name}: {} cannot be read: {error}", path.display()),
        }
    };
    if is_needed {
        reader.problems.push(problem);
        return Key::Bad;
    }
    reader.warnings.push(format!("{problem}; Google's models cannot be used"));
    Key::Unset
}

/// The chosen provider's key must be there; which variables it may stand in is said.
fn require_key(reader: &mut Reader<'_>, provider: Provider, all: [&Reached; 3]) {
    let [openai, anthropic, google] = all;
    let (reached, names): (_, &[&str]) = match provider {
        Provider::OpenAi => (openai, &[settings::OPENAI_API_KEY.name]),
        Provider::Anthropic => (anthropic, &[settings::ANTHROPIC_API_KEY.name]),
        Provider::Google => (
            google,
            &[settings::GOOGLE_API_KEY.name, settings::GOOGLE_APPLICATION_CREDENTIALS.name],
        ),
        Provider::Offline => return,
    };
    let is_own = |url: &String| provider == Provider::OpenAi && is_own_server(url);
    match &reached.key {
        Key::Set(_) | Key::Bad => {}
        Key::Unset if reached.base_url.as_ref().is_some_and(is_own) => {}
        Key::Unset => reader.problems.push(format!(
            "{} is not set, and PROVIDER={} needs it; run `export {}=…` or put that line into \
             .env, or try `polyloop demo`, which needs no key",
            names.join(" or "),
            provider.word(),
            names.first().copied().unwrap_or_default(),
        )),
    }
}

fn warn_of_clear_text(reader: &mut Reader<'_>, reached: &Reached) {
    let (Key::Set(key), Some(base_url)) = (&reached.key, &reached.base_url) else { return };
    let host = url::host(base_url);
    if base_url.starts_with("http://") && !is_loopback(host) {
        reader.warnings.push(format!(
            "{}: {host} is reached by plain http, and everybody on the way can read what {} \
             gives; use https",
            reached.url_setting.name, key.variable
        ));
    }
}

/// The model's name; each provider has one that goes without saying.
fn model_name(reader: &mut Reader<'_>, provider: Provider, name: Option<String>) -> String {
    match (provider, name) {
        (Provider::Offline, Some(name)) if name != OFFLINE_MODEL => {
            reader.warnings.push("MODEL has no effect with PROVIDER=offline".to_owned());
            OFFLINE_MODEL.to_owned()
        }
        (_, Some(name)) => name,
        (provider, None) => default_model(provider).to_owned(),
    }
}

/// Reads the file to know that it can be read; whoever needs it reads it again.
fn models_file(reader: &mut Reader<'_>) -> Option<std::path::PathBuf> {
    let path = reader.path(&settings::MODELS_FILE)?;
    if let Err(problem) = table(&path) {
        reader.problems.push(problem);
    }
    Some(path)
}

/// The table of models with the lines of a file; the error names file, line and field.
pub(super) fn table(path: &Path) -> Result<Table, String> {
    let cannot = |why: String| format!("{}: {}: {why}", settings::MODELS_FILE.name, path.display());
    let mut text = String::new();
    let file =
        std::fs::File::open(path).map_err(|error| cannot(format!("cannot be read: {error}")))?;
    file.take(MODELS_FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| cannot(format!("cannot be read: {error}")))?;
    if text.len() as u64 > MODELS_FILE_BYTES_MAX {
        return Err(cannot(format!("is larger than {MODELS_FILE_BYTES_MAX} bytes")));
    }
    Table::with_file(&text).map_err(cannot)
}
