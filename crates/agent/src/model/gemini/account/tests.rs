#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;
use std::process::Command;

use aws_lc_rs::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::json;

use super::*;

/// Made for these tests, and known to everybody.
const TEST_ONLY_ACCOUNT: &str = "golden/models/gemini/test-only-service-account.json";

fn test_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(TEST_ONLY_ACCOUNT)
}

fn fields() -> Value {
    serde_json::from_slice(&std::fs::read(test_file()).unwrap()).unwrap()
}

fn with(name: &str, value: Value) -> Result<Account, String> {
    let mut fields = fields();
    fields[name] = value;
    Account::parse(fields.to_string().as_bytes())
}

fn decoded(part: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(part).unwrap()
}

#[test]
fn an_assertion_says_who_asks_for_what() {
    let account = Account::read(&test_file()).unwrap();
    let token = account.assertion(1_700_000_000).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("{token}") };
    let header: Value = serde_json::from_slice(&decoded(header)).unwrap();
    assert_eq!(header, json!({"alg": "RS256", "typ": "JWT", "kid": "test-only-key"}));
    let claims: Value = serde_json::from_slice(&decoded(claims)).unwrap();
    let wanted = json!({
        "iss": "test-only@example.iam.gserviceaccount.com",
        "scope": "https://www.googleapis.com/auth/cloud-platform \
            https://www.googleapis.com/auth/generative-language",
        "aud": "https://oauth2.googleapis.com/token",
        "iat": 1_700_000_000,
        "exp": 1_700_003_600,
    });
    assert_eq!(claims, wanted);
    assert_eq!(decoded(signature).len(), 256);
    assert_eq!(account.token_uri(), "https://oauth2.googleapis.com/token");
    assert_eq!(account.quota_project(), None);
}

#[test]
fn an_assertion_is_signed_with_the_key() {
    let account = Account::read(&test_file()).unwrap();
    let token = account.assertion(1).unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let public = account.key.public_key().as_ref();
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public);
    key.verify(signed.as_bytes(), &decoded(signature)).unwrap();
    assert!(key.verify(b"something else", &decoded(signature)).is_err());
}

/// By somebody else's code, where it is there.
#[test]
#[allow(clippy::disallowed_methods)]
fn others_accept_the_signature() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let token = Account::read(&test_file()).unwrap().assertion(1).unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    std::fs::write(file("signed"), signed).unwrap();
    std::fs::write(file("signature"), decoded(signature)).unwrap();
    std::fs::write(file("key"), fields()["private_key"].as_str().unwrap()).unwrap();
    let mut openssl = Command::new("openssl");
    let openssl = openssl.args(["dgst", "-sha256", "-prverify"]).arg(file("key"));
    match openssl.arg("-signature").arg(file("signature")).arg(file("signed")).output() {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}"),
    }
}

#[test]
fn what_is_wrong_is_named_and_the_key_is_not() {
    let key = fields()["private_key"].as_str().unwrap().to_owned();
    let inner: String = key.lines().nth(3).unwrap().to_owned();
    let half = format!("{}\n{KEY_ENDS}", &key[..900]);
    let cases = [
        ("type", json!("authorized_user"), "type: \"authorized_user\" is no kind of account"),
        ("type", json!(null), "type is missing"),
        ("client_email", json!(" "), "client_email is missing"),
        ("client_email", json!(3), "client_email is missing"),
        ("private_key", json!(null), "private_key is missing"),
        ("private_key", json!(key.replace("PRIVATE", "PUBLIC")), "private_key is not a PEM block"),
        ("private_key", json!(key.replace("MII", "*II")), "private_key is not base64"),
        ("private_key", json!(half), "private_key is"),
        ("token_uri", json!("http://example.org/token"), "token_uri does not begin with https://"),
        ("token_uri", json!("http://127.0.0.1.example.org/"), "token_uri does not begin with"),
    ];
    for (name, value, wanted) in cases {
        let why = with(name, value).unwrap_err();
        assert!(why.starts_with(wanted), "{why}");
        assert!(!why.contains(&inner), "{why}");
    }
    assert_eq!(
        with("token_uri", json!("http://127.0.0.1:8/t")).unwrap().token_uri(),
        "http://127.0.0.1:8/t"
    );
    assert_eq!(with("token_uri", json!(null)).unwrap().token_uri(), TOKEN_URI);
    let paid = with("quota_project_id", json!("payer")).unwrap();
    assert_eq!(paid.quota_project(), Some("payer"));
}

#[test]
fn a_file_is_named_in_its_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("account.json");
    let named =
        |why: String| why.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned();
    assert!(named(Account::read(&path).unwrap_err()).starts_with("cannot be read (No such file"));
    std::fs::write(&path, "{\n\"private_key\": \"-----BEGIN SECRET").unwrap();
    assert_eq!(named(Account::read(&path).unwrap_err()), "is not JSON (line 2)");
    std::fs::write(&path, "[]").unwrap();
    assert_eq!(named(Account::read(&path).unwrap_err()), "type is missing");
    std::fs::write(&path, vec![b' '; 70_000]).unwrap();
    assert!(named(Account::read(&path).unwrap_err()).ends_with("larger than 65536 bytes"));
    let why = Account::read(folder.path()).unwrap_err();
    assert!(why.contains("cannot be read"), "{why}");
}

#[test]
fn it_is_shown_without_its_key() {
    let shown = format!("{:?}", Account::read(&test_file()).unwrap());
    assert_eq!(
        shown,
        "Account { email: \"test-only@example.iam.gserviceaccount.com\", quota_project: \
         None, token_uri: \"https://oauth2.googleapis.com/token\", .. }"
    );
}
