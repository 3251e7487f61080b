//! How a command starts: exactly as its job says, and with nothing else.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::symlink;

use polyloop_sandbox::{Exit, bash_args, run};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::{finish, helper, job, make_fifo, script, server, server_path};

#[test]
fn output_and_exit_code() {
    assert_eq!(finish(&script("echo out; exit 3")), ("out\n".to_owned(), Exit::Code(3)));
    assert_eq!(finish(&script("exit 255")), (String::new(), Exit::Code(255)));
}

#[test]
fn stderr_comes_in_order() {
    let (output, exit) = finish(&script("for i in 1 2 3; do echo o$i; echo e$i >&2; done"));
    assert_eq!((output.as_str(), exit), ("o1\ne1\no2\ne2\no3\ne3\n", Exit::Code(0)));
}

#[test]
fn output_that_looks_like_a_report_is_output() {
    let (output, exit) = finish(&script("echo 0 code 0; echo 0 code 0 >&2; exit 7"));
    assert_eq!((output.as_str(), exit), ("0 code 0\n0 code 0\n", Exit::Code(7)));
}

#[test]
fn the_environment_is_exactly_what_was_given() {
    let mut bare = job("/usr/bin/env", &[]);
    bare.env.clear();
    assert_eq!(finish(&bare), (String::new(), Exit::Code(0)));

    bare.env = vec![("ONE".into(), "1".into()), ("SPACE".into(), "a b=c\nd".into())];
    assert_eq!(finish(&bare), ("ONE=1\nSPACE=a b=c\nd\n".to_owned(), Exit::Code(0)));
}

#[test]
fn the_servers_environment_is_in_neither_the_command_nor_the_helper() {
    // An ordinary user may not even look at the helper's, so that part may be empty.
    let look = "env; cat /proc/$PPID/environ 2>/dev/null; echo looked";
    let output =
        server(&["bash", "-c", look]).env("API_KEY", "very-secret").output().unwrap().stdout;
    let output = String::from_utf8(output).unwrap();
    assert!(output.ends_with("looked\n"), "{output}");
    assert!(!output.contains("very-secret"), "{output}");
}

#[test]
fn only_the_standard_streams_are_open() {
    let leak = File::open("/etc/passwd").unwrap();
    fcntl_setfd(&leak, FdFlags::empty()).unwrap();
    let (output, _) = finish(&script("ls /proc/$$/fd; readlink /proc/$$/fd/0; true"));
    assert_eq!(output, "0\n1\n2\n/dev/null\n");
}

#[test]
fn signals_are_as_after_a_login() {
    let status = format!(
        "trap '' HUP USR1 PIPE; exec {} 90000 grep Sig /proc/self/status",
        server_path().display()
    );
    let output = std::process::Command::new("bash").args(["-c", &status]).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    for mask in ["SigBlk:\t", "SigIgn:\t"] {
        let line = output.lines().find_map(|line| line.strip_prefix(mask)).expect(&output);
        // Signals 32 and 33 are the C library's own business.
        assert_eq!(u64::from_str_radix(line, 16).unwrap() & !(0b11 << 31), 0, "{output}");
    }
}

#[test]
fn the_command_leads_a_session_of_its_own() {
    let (output, _) = finish(&job("cut", &["-d ", "-f1,5,6", "/proc/self/stat"]));
    let ids: Vec<&str> = output.split_whitespace().collect();
    assert!(ids.len() == 3 && ids.iter().all(|id| *id == ids[0]), "{output}");
}

#[test]
fn the_directory_is_the_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let mut job = job("./own-bash", &["-c", "pwd"]);
    job.cwd = dir.path().canonicalize().unwrap();
    symlink("/bin/bash", job.cwd.join("own-bash")).unwrap();
    assert_eq!(finish(&job), (format!("{}\n", job.cwd.display()), Exit::Code(0)));
}

#[test]
fn a_program_is_looked_up_in_the_path_of_the_job() {
    let dir = tempfile::tempdir().unwrap();
    symlink("/bin/bash", dir.path().join("own-bash")).unwrap();
    let mut job = job("own-bash", &["-c", "echo found"]);
    assert!(matches!(finish(&job).1, Exit::NotStarted(_)));
    job.env = vec![("PATH".into(), dir.path().into())];
    assert_eq!(finish(&job), ("found\n".to_owned(), Exit::Code(0)));
}

#[test]
fn what_cannot_start_says_why() {
    let not_started = |job| match finish(&job) {
        (output, Exit::NotStarted(reason)) if output.is_empty() => reason,
        other => panic!("{other:?}"),
    };
    let mut missing = job("no-such-program", &[]);
    // Without directories that the user of this test may not enter, which is another reason.
    missing.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let reason = not_started(missing);
    assert_eq!(reason, "no-such-program: cannot be run: No such file or directory (os error 2)");
    let reason = not_started(job("/etc/passwd", &[]));
    assert_eq!(reason, "/etc/passwd: cannot be run: Permission denied (os error 13)");
    let reason = not_started(job("/bin/echo", &["a\0b"]));
    assert!(reason.starts_with("/bin/echo: cannot be run: "), "{reason}");
    let mut nowhere = job("/bin/echo", &[]);
    nowhere.cwd = "/no/such/directory".into();
    let reason = not_started(nowhere);
    assert!(reason.starts_with("/no/such/directory: cannot be entered: "), "{reason}");
}

#[test]
fn a_script_of_a_megabyte_runs() {
    let mut long = "echo \"arguments: $#\"; first=ü".to_owned();
    while long.len() < 1024 * 1024 {
        long.push_str("\n: äöü 'it''s' \"$first\" # in €uros");
    }
    long.push_str("\necho \"$first\" last; exit 5\n");
    let mut job = job("bash", &[]);
    // A login shell runs what it finds at home; this one finds nothing.
    job.env.push(("HOME".into(), "/nowhere".into()));
    job.args = bash_args(OsStr::new(&long));
    assert_eq!(finish(&job), ("arguments: 0\nü last\n".to_owned(), Exit::Code(5)));
    job.args = bash_args(OsStr::new("echo short; exit 6"));
    assert_eq!(finish(&job), ("short\n".to_owned(), Exit::Code(6)));
}

#[test]
fn much_output_passes_through() {
    struct Count(usize);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    let outcome = run(&helper(), &script("head -c 10000000 /dev/zero"), &mut count).unwrap();
    assert_eq!((outcome.exit, count.0), (Exit::Code(0), 10_000_000));
}

#[test]
fn output_comes_while_the_command_runs() {
    /// Lets the command go on only when its first line has arrived.
    struct Answer(Vec<u8>, std::path::PathBuf);
    impl Write for Answer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0.is_empty() {
                std::fs::write(&self.1, "go on\n")?;
            }
            self.0.write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let fifo = make_fifo(&dir);
    let ask = format!("echo first; cat '{}'", fifo.display());
    let mut answer = Answer(Vec::new(), fifo);
    let outcome = run(&helper(), &script(&ask), &mut answer).unwrap();
    assert_eq!((outcome.exit, answer.0), (Exit::Code(0), b"first\ngo on\n".to_vec()));
}

#[test]
fn a_server_whose_file_has_gone_still_runs_commands() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("server");
    let run_deleted =
        r#"cp "$0" "$1"; exec 3<"$1"; rm "$1"; exec /proc/self/fd/3 90000 echo works"#;
    let output = std::process::Command::new("bash")
        .args(["-c", run_deleted])
        .args([server_path(), copy.clone()])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "works\n");
    assert!(!copy.exists());
}
