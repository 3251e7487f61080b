//! What a command in the sandbox must not read although its user may: keys and passwords that
//! people keep in well-known places.
//!
//! A list, so never complete; what is not on it can be read. Without a network it cannot be sent
//! away, but what is printed goes to the model.

use std::path::{Path, PathBuf};

/// Below the home directory.
const AT_HOME: &[&str] = &[
    ".aws",
    ".azure",
    ".bash_history",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/google-chrome",
    ".config/chromium",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".docker/config.json",
    ".gem/credentials",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".mysql_history",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".psql_history",
    ".pypirc",
    ".python_history",
    ".ssh",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".zsh_history",
];

/// Which only root can read; but then, so can what it runs.
const OF_THE_SYSTEM: &[&str] = &[
    "/etc/gshadow",
    "/etc/shadow",
    "/etc/ssh",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
];

/// Those that are there, links followed. One that holds the working directory is left out: the
/// command has its work in it.
pub(super) fn secrets(home: Option<&Path>, cwd: &Path) -> Vec<PathBuf> {
    let home = home.filter(|home| home.is_absolute());
    let at_home = home.into_iter().flat_map(|home| AT_HOME.iter().map(|name| home.join(name)));
    let all = at_home.chain(OF_THE_SYSTEM.iter().map(PathBuf::from));
    let there = all.filter_map(|path| path.canonicalize().ok());
    there.filter(|path| !cwd.starts_with(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_and_does_not_hold_the_work() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join(".ssh")).unwrap();
        std::fs::create_dir_all(home.join(".aws/work")).unwrap();
        let below_home = |cwd: &Path| -> Vec<PathBuf> {
            let all = secrets(Some(&home), cwd);
            all.into_iter().filter(|path| path.starts_with(&home)).collect()
        };
        assert_eq!(below_home(&home.join("w")), [home.join(".aws"), home.join(".ssh")]);
        assert_eq!(below_home(&home.join(".aws/work")), [home.join(".ssh")]);
        assert!(secrets(Some(Path::new("relative")), &home).iter().all(|p| p.starts_with("/etc")));
    }
}
