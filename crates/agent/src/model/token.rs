//! Access tokens of a service account: made when needed, kept while they are good.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use polyloop_session::Heal;
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;

use super::gemini::account::Account;
use super::secret::Secret;
use super::{Failure, http};

/// A token is made anew this long before it ends.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);
/// When the provider does not say how long it is good.
const KEPT_BY_DEFAULT: Duration = Duration::from_secs(300);
/// Secrets that are looked for in what the provider says.
const HIDDEN_MAX: usize = 16;
/// However long the provider says.
const KEPT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
const TOKEN_TIME_MAX: Duration = Duration::from_secs(30);
const GRANT: &str = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";

pub struct Tokens {
    account: Account,
    kept: Mutex<Option<Kept>>,
    /// What was used lately, good or not: it must not be seen either.
    used: Mutex<VecDeque<Secret>>,
    /// One request makes it, the others wait for that.
    making: tokio::sync::Mutex<()>,
}

struct Kept {
    token: Secret,
    good_until: Instant,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    /// A number, by the book; some send it as text, or with a point.
    #[serde(default)]
    expires_in: serde_json::Value,
}

impl Granted {
    fn good_for(&self) -> Option<Duration> {
        let seconds = match &self.expires_in {
            serde_json::Value::Number(number) => number.as_f64()?,
            serde_json::Value::String(text) => text.trim().parse::<f64>().ok()?,
            _ => return None,
        };
        let seconds = seconds.clamp(0.0, KEPT_MAX.as_secs_f64());
        (!seconds.is_nan()).then(|| Duration::from_secs_f64(seconds))
    }
}

impl Tokens {
    pub fn new(account: Account) -> Tokens {
        Tokens {
            account,
            kept: Mutex::new(None),
            used: Mutex::new(VecDeque::new()),
            making: tokio::sync::Mutex::new(()),
        }
    }

    pub fn quota_project(&self) -> Option<&str> {
        self.account.quota_project()
    }

    pub async fn get(&self, client: &Client) -> Result<Secret, Failure> {
        if let Some(token) = self.good() {
            return Ok(token);
        }
        let _only_one = self.making.lock().await;
        if let Some(token) = self.good() {
            return Ok(token);
        }
        let made = tokio::time::timeout(TOKEN_TIME_MAX, self.make(client)).await;
        let granted = made.unwrap_or_else(|_| {
            let message = format!("No token from {} in time", self.account.token_uri());
            Err(Failure::new(Heal::Later { after_ms: None }, "timeout", message))
        })?;
        let token = Secret::new(&granted.access_token);
        self.hide(token.clone());
        let good_for = granted.good_for().unwrap_or(KEPT_BY_DEFAULT);
        let good_until = Instant::now() + good_for.saturating_sub(RENEWED_BEFORE);
        *self.lock() = Some(Kept { token: token.clone(), good_until });
        Ok(token)
    }

    /// The next request makes a new one.
    pub fn forget(&self) {
        *self.lock() = None;
    }

    pub fn masked(&self, text: &str) -> Option<String> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().fold(None, |masked: Option<String>, secret| {
            let again = secret.masked(masked.as_deref().unwrap_or(text));
            again.or(masked)
        })
    }

    fn hide(&self, secret: Secret) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() == HIDDEN_MAX {
            used.pop_front();
        }
        used.push_back(secret);
    }

    fn good(&self) -> Option<Secret> {
        let kept = self.lock();
        kept.as_ref().filter(|kept| kept.good_until > Instant::now()).map(|kept| kept.token.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn make(&self, client: &Client) -> Result<Granted, Failure> {
        let uri = self.account.token_uri();
        let refuse = |heal, why: String| {
            let message =
                format!("{uri} gave no token for the account of GOOGLE_APPLICATION_CREDENTIALS");
            Err(Failure::new(heal, "unauthorized", format!("{message} ({why})")))
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let assertion = match self.account.assertion(now) {
            Ok(assertion) => assertion,
            Err(why) => return refuse(Heal::Never, why),
        };
        self.hide(Secret::new(&assertion));
        if let Some((_, signature)) = assertion.rsplit_once('.') {
            self.hide(Secret::new(signature));
        }
        let form = "application/x-www-form-urlencoded";
        let request = client.post(uri).header(CONTENT_TYPE, form);
        let sent = request.body(format!("{GRANT}{assertion}")).send().await;
        let response = sent.map_err(|error| http::unreachable(&error, uri))?;
        let status = response.status();
        let body = http::short_body(response).await;
        if !status.is_success() {
            let heal = match status.as_u16() {
                429 | 500..=599 => Heal::Later { after_ms: None },
                _ => Heal::Never,
            };
            let said = String::from_utf8_lossy(&body).into_owned();
            let said: String = self.masked(&said).unwrap_or(said).chars().take(200).collect();
            return refuse(heal, format!("{}: {}", status.as_u16(), said.trim()));
        }
        match serde_json::from_slice(&body) {
            Ok(granted) => Ok(granted),
            Err(_) => refuse(Heal::Never, "what it sent is no token".to_owned()),
        }
    }
}
