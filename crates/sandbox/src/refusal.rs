//! Whether a command failed because of its sandbox.
//!
//! Pure, and a guess where the kernel gives only an error to the command, which may print it or
//! not. Errs on the side of saying so: then somebody is asked, and nothing runs by itself.

use crate::{Exit, Outcome, SANDBOX_FAILED};

/// How much of the output's end is looked at.
const LOOK_BYTES_MAX: usize = 16 * 1024;

/// Why the sandbox did not let a command do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It could not be set up, and the command was not run; the text says why, for people.
    NotSetUp(String),
    /// The command failed, and its output has the words of a forbidden write or read.
    Permission,
    /// The same for the network.
    Network,
    /// The same for a limit: memory, processes, files, time on the processor.
    Limit,
}

/// What is printed when the network is not there. Looked for first, since "not permitted" is often
/// said of it too.
const NETWORK: &[&str] = &[
    "network is unreachable",
    "network unreachable",
    "enetunreach",
    "could not resolve host",
    "couldn't resolve host",
    "could not resolve proxy",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "unable to resolve host address",
    "failed to lookup address information",
    "dns error",
    "getaddrinfo",
    "eai_again",
    "enotfound",
    "socket: operation not permitted",
    "socket: permission denied",
    "couldn't connect to server",
    "could not connect to server",
    "failed to connect to",
    "no route to host",
];

const PERMISSION: &[&str] = &[
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "eacces",
    "eperm",
    "erofs",
    "permissionerror",
    "access denied",
    "invalid cross-device link",
    "device or resource busy",
];

const LIMIT: &[&str] = &[
    "cannot allocate memory",
    "failed to allocate",
    "out of memory",
    "memoryerror",
    "enomem",
    "resource temporarily unavailable",
    "eagain",
    "file size limit exceeded",
    "file too large",
    "efbig",
    "no space left on device",
    "enospc",
    "too many open files",
    "emfile",
    "cpu time limit exceeded",
];

/// For a command that ran in a sandbox: how it ended, and the end of what it printed.
pub fn refusal(outcome: &Outcome, output: &str) -> Option<Refusal> {
    match &outcome.exit {
        Exit::NotStarted(why) => why
            .strip_prefix(SANDBOX_FAILED)
            .map(|why| Refusal::NotSetUp(why.to_owned()))
            .or_else(|| said(why)),
        Exit::Code(0) | Exit::TimedOut | Exit::Stopped | Exit::Lost(_) => None,
        Exit::Signal(libc::SIGXCPU | libc::SIGXFSZ) => Some(Refusal::Limit),
        // A program for another kind of machine, whose system calls are not looked at.
        Exit::Signal(libc::SIGSYS) => Some(Refusal::Permission),
        // As shells tell of them.
        Exit::Code(code) if matches!(code - 128, libc::SIGXCPU | libc::SIGXFSZ) => {
            Some(Refusal::Limit)
        }
        Exit::Code(code) if code - 128 == libc::SIGSYS => Some(Refusal::Permission),
        Exit::Code(_) | Exit::Signal(_) => said(output),
    }
}

/// What the words mean, if they mean anything here.
fn said(output: &str) -> Option<Refusal> {
    let start = output.len().saturating_sub(LOOK_BYTES_MAX);
    let start = (start..=output.len()).find(|at| output.is_char_boundary(*at))?;
    let end = output[start..].to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| end.contains(word));
    if has(NETWORK) {
        Some(Refusal::Network)
    } else if has(PERMISSION) {
        Some(Refusal::Permission)
    } else if has(LIMIT) {
        Some(Refusal::Limit)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(exit: Exit, output: &str) -> Option<Refusal> {
        refusal(&Outcome { exit, left_behind: 0 }, output)
    }

    #[test]
    fn a_sandbox_that_could_not_be_set_up_says_why() {
        let why = format!("{SANDBOX_FAILED}/proc: cannot be mounted");
        let expected = Refusal::NotSetUp("/proc: cannot be mounted".to_owned());
        assert_eq!(of(Exit::NotStarted(why), ""), Some(expected));
        let missing = "x: cannot be run: No such file or directory (os error 2)";
        assert_eq!(of(Exit::NotStarted(missing.to_owned()), ""), None);
        let unreadable = "x: cannot be run: Permission denied (os error 13)";
        assert_eq!(of(Exit::NotStarted(unreadable.to_owned()), ""), Some(Refusal::Permission));
    }

    #[test]
    fn real_messages_are_understood() {
        use Refusal::{Limit, Network, Permission};
        for (message, expected) in [
            ("touch: cannot touch '/etc/x': Read-only file system\n", Permission),
            ("bash: line 1: /home/u/x: Permission denied\n", Permission),
            ("fatal: Unable to create '/w/.git/index.lock': Read-only file system\n", Permission),
            ("Error: EROFS: read-only file system, open '/etc/x'\n", Permission),
            ("PermissionError: [Errno 1] Operation not permitted: '/x'\n", Permission),
            ("curl: (6) Could not resolve host: example.com\n", Network),
            ("wget: unable to resolve host address ‘example.com’\n", Network),
            ("ping: socket: Operation not permitted\n", Network),
            ("fatal: unable to access 'https://x/': Could not resolve host: x\n", Network),
            ("npm error code EAI_AGAIN\n", Network),
            ("socket.gaierror: [Errno -3] Temporary failure in name resolution\n", Network),
            ("bash: connect: Network is unreachable\n", Network),
            ("bash: fork: retry: Resource temporarily unavailable\n", Limit),
            ("python3: MemoryError\n", Limit),
            ("==2==ERROR: AddressSanitizer failed to allocate 0xdfff0001000 bytes\n", Limit),
            ("dd: error writing 'x': File too large\n", Limit),
        ] {
            assert_eq!(of(Exit::Code(1), message), Some(expected), "{message}");
        }
    }

    #[test]
    fn a_command_that_did_its_work_was_not_refused() {
        let denied = "find: ‘/root’: Permission denied\n";
        assert_eq!(of(Exit::Code(0), denied), None);
        for exit in [Exit::Stopped, Exit::TimedOut, Exit::Lost(String::new())] {
            assert_eq!(of(exit, denied), None);
        }
        assert_eq!(of(Exit::Code(1), "2 tests failed\n"), None);
        assert_eq!(of(Exit::Signal(11), ""), None);
    }

    #[test]
    fn signals_of_limits_are_known() {
        assert_eq!(of(Exit::Signal(libc::SIGXFSZ), ""), Some(Refusal::Limit));
        assert_eq!(of(Exit::Code(128 + libc::SIGXCPU), ""), Some(Refusal::Limit));
        assert_eq!(of(Exit::Signal(libc::SIGSYS), ""), Some(Refusal::Permission));
        assert_eq!(of(Exit::Code(128 + libc::SIGSYS), ""), Some(Refusal::Permission));
    }

    #[test]
    fn only_the_end_counts_and_no_letter_is_cut() {
        let long = format!("Permission denied\n{}", "ü".repeat(LOOK_BYTES_MAX));
        assert_eq!(of(Exit::Code(1), &long), None);
        let at_end = format!("{}x Permission denied\n", "ü".repeat(LOOK_BYTES_MAX));
        assert_eq!(of(Exit::Code(1), &at_end), Some(Refusal::Permission));
    }
}
