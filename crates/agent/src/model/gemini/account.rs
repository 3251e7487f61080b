//! A service account: who asks, where there is no key.
//!
//! Reads the file and signs assertions; trading one for an access token is somebody else's. The
//! private key leaves this file only as signatures, and its text is in no error.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Serialize;
use serde_json::Value;

/// Of the file; the real ones have about 2,400.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// How long an assertion may be traded.
const GOOD_SECS: u64 = 3_600;
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform \
    https://www.googleapis.com/auth/generative-language";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

const KEY_BEGINS: &str = "-----BEGIN PRIVATE KEY-----";
const KEY_ENDS: &str = "-----END PRIVATE KEY-----";

pub struct Account {
    email: String,
    /// Who pays, where that is not whose account it is.
    quota_project: Option<String>,
    token_uri: String,
    key_id: Option<String>,
    key: RsaKeyPair,
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'a str,
    typ: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<&'a str>,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    scope: &'a str,
    aud: &'a str,
    iat: u64,
    exp: u64,
}

impl Account {
    /// Reads the file that `GOOGLE_APPLICATION_CREDENTIALS` names.
    pub fn read(path: &Path) -> Result<Account, String> {
        let named = |why: String| format!("{}: {why}", path.display());
        let mut file = Vec::new();
        let reading = File::open(path).map(|file| file.take(FILE_BYTES_MAX + 1));
        reading
            .and_then(|mut reader| reader.read_to_end(&mut file))
            .map_err(|error| named(format!("cannot be read ({error})")))?;
        if file.len() as u64 > FILE_BYTES_MAX {
            return Err(named(format!("is no account's key: larger than {FILE_BYTES_MAX} bytes")));
        }
        Account::parse(&file).map_err(named)
    }

    fn parse(file: &[u8]) -> Result<Account, String> {
        // Where the JSON breaks is told, not what stands there.
        let fields: Value = serde_json::from_slice(file)
            .map_err(|error| format!("is not JSON (line {})", error.line()))?;
        let field = |name: &str| fields[name].as_str().map(str::trim).filter(|it| !it.is_empty());
        let wanted = |name: &str| field(name).ok_or_else(|| format!("{name} is missing"));
        match wanted("type")? {
            "service_account" => {}
            other => {
                let other: String = other.chars().take(40).collect();
                return Err(format!(
                    "type: {other:?} is no kind of account that can be used; use the key file \
                     of a service account"
                ));
            }
        }
        let token_uri = field("token_uri").unwrap_or(TOKEN_URI);
        if !is_safe(token_uri) {
            return Err("token_uri does not begin with https://".to_owned());
        }
        Ok(Account {
            email: wanted("client_email")?.to_owned(),
            quota_project: field("quota_project_id").map(str::to_owned),
            token_uri: token_uri.to_owned(),
            key_id: field("private_key_id").map(str::to_owned),
            key: key(wanted("private_key")?)?,
        })
    }

    /// Where an assertion is traded for a token.
    pub fn token_uri(&self) -> &str {
        &self.token_uri
    }

    pub fn quota_project(&self) -> Option<&str> {
        self.quota_project.as_deref()
    }

    /// Says, signed, who asks for what: a JWT.
    pub fn assertion(&self, now_secs: u64) -> Result<String, String> {
        let header = Header { alg: "RS256", typ: "JWT", kid: self.key_id.as_deref() };
        let claims = Claims {
            iss: &self.email,
            scope: SCOPE,
            aud: &self.token_uri,
            iat: now_secs,
            exp: now_secs.saturating_add(GOOD_SECS),
        };
        let mut token = format!("{}.{}", encoded(&header)?, encoded(&claims)?);
        let mut signature = vec![0; self.key.public_modulus_len()];
        self.key
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), token.as_bytes(), &mut signature)
            .map_err(|_| "private_key: cannot sign".to_owned())?;
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        Ok(token)
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("email", &self.email)
            .field("quota_project", &self.quota_project)
            .field("token_uri", &self.token_uri)
            .finish_non_exhaustive()
    }
}

/// Nobody listens in on this machine.
fn is_safe(uri: &str) -> bool {
    let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let is_local = |host: &&str| {
        uri.strip_prefix(host).is_some_and(|rest| matches!(rest.bytes().next(), Some(b':' | b'/')))
    };
    uri.starts_with("https://") || local.iter().any(is_local)
}

/// A PEM file's PKCS#8 key.
fn key(pem: &str) -> Result<RsaKeyPair, String> {
    let unusable = |why: &str| format!("private_key {why}; download the account's key anew");
    let inner = pem.split_once(KEY_BEGINS).and_then(|(_, rest)| rest.split_once(KEY_ENDS));
    let Some((inner, _)) = inner else {
        return Err(unusable("is not a PEM block \"PRIVATE KEY\""));
    };
    let inner: String = inner.split_whitespace().collect();
    let der = STANDARD.decode(inner).map_err(|_| unusable("is not base64 inside its PEM block"))?;
    RsaKeyPair::from_pkcs8(&der).map_err(|why| unusable(&format!("is no RSA key ({why})")))
}

fn encoded(part: &impl Serialize) -> Result<String, String> {
    let json = serde_json::to_vec(part).map_err(|error| error.to_string())?;
    Ok(URL_SAFE_NO_PAD.encode(json))
}

#[cfg(test)]
mod tests;
