//! The environment of a command: what it needs of the server's own, and nothing else.
//!
//! An allow-list, because the server's environment holds keys under names that nobody foresaw.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Whose start-up files, programs and settings a command gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    User,
    /// For a command that was judged safe: it finds its programs here and nowhere else, and gets
    /// no settings but ours.
    Judged {
        path: OsString,
    },
}

const KEPT: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "USER",
];

/// Nobody looks at a terminal, or turns pages.
const SET: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// What keeps a command that was judged safe from doing more than it was judged by. Git would take
/// programs from the user's own configuration, watch files with one, run hooks, and fetch what is
/// missing; the judge knows what the repository's configuration says, but not these. `go` would
/// fetch another version of itself.
const JUDGED: &[(&str, &str)] = &[
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_CONFIG_COUNT", "5"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_KEY_2", "core.pager"),
    ("GIT_CONFIG_KEY_3", "protocol.allow"),
    // Or `git diff` writes to the index, whatever `GIT_OPTIONAL_LOCKS` says.
    ("GIT_CONFIG_KEY_4", "diff.autoRefreshIndex"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_VALUE_2", "cat"),
    ("GIT_CONFIG_VALUE_3", "never"),
    ("GIT_CONFIG_VALUE_4", "false"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GOTOOLCHAIN", "local"),
];

const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Where bytes mean what the judge took them for.
const SAFE_LOCALE: &str = "C.UTF-8";

/// What a command gets, given what the server has.
pub(super) fn environment(
    ours: impl Iterator<Item = (OsString, OsString)>,
    ground: Ground,
) -> Vec<(OsString, OsString)> {
    let kept = |name: &OsStr| name.to_str().is_some_and(|name| KEPT.contains(&name));
    let mut env: Vec<(OsString, OsString)> = ours.filter(|(name, _)| kept(name)).collect();
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| absolute(path));
    let path = path.filter(|path| !path.is_empty()).unwrap_or_else(|| PATH_DEFAULT.into());
    match ground {
        Ground::User => set(&mut env, "PATH", path),
        Ground::Judged { path } => {
            set(&mut env, "PATH", path);
            set(&mut env, "LC_ALL", SAFE_LOCALE.into());
            for (name, value) in JUDGED {
                set(&mut env, name, (*value).into());
            }
        }
    }
    for (name, value) in SET {
        set(&mut env, name, (*value).into());
    }
    env
}

/// Without the entries that mean whatever directory the command is in.
fn absolute(path: &OsStr) -> OsString {
    let entries = std::env::split_paths(path).filter(|entry| entry.is_absolute());
    // Only an entry with a colon in it cannot be joined, and splitting gives none.
    std::env::join_paths(entries).unwrap_or_default()
}

fn set(env: &mut Vec<(OsString, OsString)>, name: &str, value: OsString) {
    env.retain(|(old, _)| old != name);
    env.push((name.into(), value));
}

/// The system's bash; only where there is none, the one that `PATH` leads to.
pub(super) fn bash() -> OsString {
    let system = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|bash| Path::new(bash).is_file());
    system.unwrap_or("bash").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(ours: &[(&str, &str)], ground: Ground) -> Vec<(String, String)> {
        let ours = ours.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let text = |text: OsString| text.into_string().unwrap();
        let mut env: Vec<_> = environment(ours, ground)
            .into_iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        env.sort();
        env
    }

    #[test]
    fn only_what_is_listed_passes() {
        let ours = [
            ("HOME", "/h"),
            ("OPENAI_API_KEY", "secret"),
            ("LC_SECRET", "secret"),
            ("BASH_ENV", "/x"),
            ("BASH_FUNC_ls%%", "() { x; }"),
            ("LD_PRELOAD", "/x"),
            ("TERM", "xterm"),
            ("LC_TIME", "C"),
            ("PATH", ".:/a::b:/c:"),
        ];
        let env = get(&ours, Ground::User);
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        let want = [
            "GIT_OPTIONAL_LOCKS",
            "GIT_PAGER",
            "HOME",
            "LC_TIME",
            "NO_COLOR",
            "PAGER",
            "PATH",
            "TERM",
        ];
        assert_eq!(names, want);
        assert!(env.contains(&("PATH".to_owned(), "/a:/c".to_owned())));
        assert!(env.contains(&("TERM".to_owned(), "dumb".to_owned())));
    }

    #[test]
    fn a_safe_command_finds_the_programs_it_was_judged_by_only() {
        let ground = Ground::Judged { path: "/bin".into() };
        let env = get(&[("PATH", "/evil:/usr/bin"), ("LC_ALL", "ja_JP.SJIS")], ground);
        assert!(env.contains(&("PATH".to_owned(), "/bin".to_owned())));
        assert!(env.contains(&("LC_ALL".to_owned(), SAFE_LOCALE.to_owned())));
        assert!(env.contains(&("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned())));
        let count = env.iter().filter(|(name, _)| name.starts_with("GIT_CONFIG_KEY_")).count();
        assert!(env.contains(&("GIT_CONFIG_COUNT".to_owned(), count.to_string())));
        let none = get(&[("PATH", ".")], Ground::User);
        assert!(none.contains(&("PATH".to_owned(), PATH_DEFAULT.to_owned())));
    }
}
