//! An OAuth2 token endpoint for service accounts: looks at the form of the signed claims, and
//! believes them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::store::Store;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

pub fn answer(body: &[u8], store: &Store) -> Answer {
    let form = String::from_utf8_lossy(body);
    let field = |name: &str| {
        let mut pairs = form.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| decoded(value))
    };
    let grant = field("grant_type").unwrap_or_default();
    if grant != GRANT {
        let problem = format!("grant_type: {grant:?} is not {GRANT}");
        return refusal("unsupported_grant_type", &problem);
    }
    match check(&field("assertion").unwrap_or_default()) {
        Err(problem) => refusal("invalid_grant", &problem),
        Ok(()) => {
            let token = format!("fake-token-{}", store.next_token());
            let answer = json!({"access_token": token, "expires_in": store.token_secs,
                "token_type": "Bearer"});
            Answer::json(200, &answer)
        }
    }
}

fn refusal(error: &str, problem: &str) -> Answer {
    Answer::json(400, &json!({"error": error, "error_description": problem}))
}

fn check(assertion: &str) -> Result<(), String> {
    let parts: Vec<&str> = assertion.split('.').collect();
    let [header, claims, signature] = parts[..] else {
        return Err(format!("assertion: {} parts; a JWT has three", parts.len()));
    };
    let (header, claims) = (part("header", header)?, part("claims", claims)?);
    if header["alg"] != "RS256" {
        return Err(format!("assertion: alg is {}, not RS256", header["alg"]));
    }
    for name in ["iss", "scope", "aud"] {
        if claims[name].as_str().is_none_or(str::is_empty) {
            return Err(format!("assertion: the claim {name} is missing"));
        }
    }
    for name in ["iat", "exp"] {
        if !claims[name].is_number() {
            return Err(format!("assertion: the claim {name} is no number of seconds"));
        }
    }
    match URL_SAFE_NO_PAD.decode(signature) {
        Ok(bytes) if !bytes.is_empty() => Ok(()),
        _ => Err("assertion: the signature is no base64url".to_owned()),
    }
}

fn part(name: &str, text: &str) -> Result<Value, String> {
    let bytes = URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|error| format!("assertion: the {name} is no base64url: {error}"))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| format!("assertion: the {name} is no JSON: {error}"))
}

/// A value of a form: `+` is a space, `%XX` a byte.
fn decoded(value: &str) -> String {
    let value = value.replace('+', " ");
    let bytes = value.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let hex = value.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jwt(header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.{}", part(header), part(claims), URL_SAFE_NO_PAD.encode("signed"))
    }

    fn good() -> Value {
        json!({"iss": "i", "scope": "s", "aud": "a", "iat": 1, "exp": 2})
    }

    #[test]
    fn the_form_is_checked() {
        let rs256 = json!({"alg": "RS256", "typ": "JWT"});
        assert_eq!(check(&jwt(&rs256, &good())), Ok(()));
        for (assertion, word) in [
            (String::new(), "1 parts"),
            ("a.b".to_owned(), "2 parts"),
            ("?.b.c".to_owned(), "header"),
            (jwt(&json!({"alg": "HS256"}), &good()), "HS256"),
            (jwt(&rs256, &json!({"iss": "i"})), "scope"),
            (jwt(&rs256, &json!({"iss": "i", "scope": "s", "aud": "a", "iat": 1})), "exp"),
            (jwt(&rs256, &good()) + "?", "signature"),
        ] {
            let problem = check(&assertion).unwrap_err();
            assert!(problem.contains(word), "{assertion}: {problem}");
        }
    }

    #[test]
    fn forms_are_decoded() {
        assert_eq!(decoded("urn%3Aietf+x%2"), "urn:ietf x%2");
        assert_eq!(decoded("%C3%A4ä%"), "ää%");
    }

    #[test]
    fn tokens_are_counted() {
        let store = Store::new(7);
        let assertion = jwt(&json!({"alg": "RS256"}), &good());
        let form = format!("grant_type={}&assertion={assertion}", GRANT.replace(':', "%3A"));
        for n in 1..3 {
            let body: Value =
                serde_json::from_slice(&answer(form.as_bytes(), &store).body.first_bytes())
                    .unwrap();
            assert_eq!(body["access_token"], format!("fake-token-{n}"));
            assert_eq!(body["expires_in"], 7);
        }
        assert_eq!(answer(b"grant_type=password", &store).status, 400);
    }
}
