//! Names that people give to files with secrets. They are asked about, also inside the working
//! directory, when a command names them.
//!
//! A guess, and a comfort: a command that searches a whole directory reads them, too.

use std::path::{Component, Path};

use super::programs::listed;

/// How names begin.
const STARTS: &[&str] =
    &["_netrc", "credential", "id_dsa", "id_ec", "id_ed", "id_rsa", "passw", "secret", "shadow"];

/// How names end.
const ENDS: &[&str] = &[
    ".asc",
    ".gpg",
    ".jks",
    ".kdbx",
    ".key",
    ".keystore",
    ".ovpn",
    ".p12",
    ".pem",
    ".pfx",
    ".ppk",
    ".tfvars",
    "history",
    "shadow",
    "tfstate",
    "token",
    "token.json",
    "token.txt",
];

/// How hidden names begin, without their dot.
const HIDDEN_STARTS: &[&str] = &[
    "aws",
    "azure",
    "boto",
    "cert",
    "config",
    "credential",
    "docker",
    "env",
    "gcloud",
    "git-cred",
    "gnupg",
    "htpasswd",
    "key",
    "kube",
    "local",
    "mozilla",
    "my.cnf",
    "netrc",
    "npmrc",
    "passw",
    "password-store",
    "pgpass",
    "pki",
    "pypirc",
    "s3cfg",
    "secret",
    "ssh",
    "subversion",
    "terraform.d",
    "terraformrc",
    "thunderbird",
    "token",
    "vault",
    "wget-hsts",
    "yarnrc",
];

/// Hidden names that only begin like these.
const HARMLESS: &str = "certs.md dockerignore env.dist env.example env.sample env.template \
    keep localized";

/// How the names of source files end: `secrets.rs` is about secrets and holds none.
const SOURCE_ENDS: &[&str] = &[
    ".c", ".cc", ".cpp", ".cs", ".css", ".ex", ".go", ".h", ".hpp", ".html", ".java", ".js",
    ".jsx", ".kt", ".lua", ".md", ".mjs", ".php", ".pl", ".proto", ".py", ".rb", ".rs", ".scala",
    ".sh", ".swift", ".ts", ".tsx", ".vue", ".zig",
];

/// What git keeps beside the history, and people put passwords into.
const GIT_SECRETS: &[&str] = &[".git/config", ".git/config.worktree", ".git/credentials"];

/// The first name in a path that is one of these.
pub(super) fn secret_name(path: &Path) -> Option<String> {
    if let Some(secret) = GIT_SECRETS.iter().find(|secret| path.ends_with(secret)) {
        return Some((*secret).to_owned());
    }
    path.components().find_map(|component| {
        let Component::Normal(name) = component else { return None };
        let name = name.to_string_lossy();
        is_secret(&name).then(|| name.into_owned())
    })
}

pub(super) fn is_secret(name: &str) -> bool {
    let folded = name.to_lowercase();
    let starts = |list: &[&str], name: &str| list.iter().any(|start| name.starts_with(start));
    let begins = match folded.strip_prefix('.') {
        Some(hidden) => starts(HIDDEN_STARTS, hidden) && !listed(HARMLESS, hidden),
        None => starts(STARTS, &folded) && !SOURCE_ENDS.iter().any(|end| folded.ends_with(end)),
    };
    begins || ENDS.iter().any(|end| folded.ends_with(end))
}
