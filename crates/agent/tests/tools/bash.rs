//! What the bash tool says of a call, and what comes of one.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt as _;
use polyloop_agent::tool::bash::{
    Bash, COMMAND_BYTES_MAX, OUTPUT_BYTES_MAX, OUTPUT_FILE_BYTES_MAX, OUTPUTS_BYTES_MAX,
    SEEN_BYTES_MAX,
};
use polyloop_agent::tool::read::Read;
use polyloop_agent::tool::write_file::WriteFile;
use polyloop_agent::tool::{Place, Progress, Run, Tool as _};
use polyloop_sandbox::Helper;
use polyloop_session::item::End;
use polyloop_session::policy::{Effect, Risk};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::tools::server;
use crate::{Ground, Test, block_on};

pub const ALL: &[Test] = &[
    ("output_comes_as_it_is_written", streams),
    ("exit_codes_and_signals_are_told", exits),
    ("characters_survive_the_cuts_between_reads", characters),
    ("output_is_bounded_and_the_rest_is_counted", bounded),
    ("nothing_can_be_read_from_standard_input", stdin),
    ("the_directory_is_the_one_that_was_asked_for", workdir),
    ("a_directory_is_part_of_the_judgement", judged_workdir),
    ("arguments_that_do_not_fit_are_named", arguments),
    ("a_call_that_cannot_start_says_why", not_started),
    ("long_output_can_be_read_where_it_is_kept", kept),
    ("the_oldest_of_a_sessions_long_outputs_give_way", kept_bounded),
    ("without_a_sandbox_nothing_runs_in_one", no_sandbox),
    ("what_the_sandbox_stopped_is_told", stopped),
    ("long_scripts_run", long_script),
    ("the_servers_secrets_are_not_in_the_environment", secrets),
    ("a_safe_command_is_the_systems_own", hijack),
    ("judgements_name_what_would_run", judged),
];

fn streams() {
    let ground = Ground::new();
    let fifo = ground.cwd().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let ended = block_on(async {
        let script = "echo one; read -r x <fifo; echo $x >&2; echo three";
        let mut call = ground.start(&Bash, json!({ "command": script }));
        call.until("one\n").await;
        // The command waits, so nothing else can have come.
        tokio::task::spawn_blocking(move || fs::write(fifo, "two\n")).await.unwrap().unwrap();
        call.end().await
    });
    assert_eq!(ended.output, "one\ntwo\nthree\n");
    assert_eq!((ended.end, ended.result.exit_code), (End::Whole, Some(0)));
    assert_eq!(ended.result.seen, None);
}

fn exits() {
    let ground = Ground::new();
    let rows = [
        ("true", Some(0), ""),
        ("echo a; exit 3", Some(3), "a\nExit code 3."),
        ("printf a; false", Some(1), "a\nExit code 1."),
        ("kill -9 $$", Some(137), "Ended by signal 9."),
        ("no-such-program", Some(127), "Exit code 127."),
        ("if", Some(2), "Exit code 2."),
    ];
    for (script, code, seen) in rows {
        let ended = ground.finish(&Bash, json!({ "command": script }));
        assert_eq!((ended.end, ended.result.exit_code), (End::Whole, code), "{script:?}");
        assert!(ended.seen().ends_with(seen), "{script:?}: {:?}", ended.seen());
    }
}

fn characters() {
    let ground = Ground::new();
    let fifo = ground.cwd().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let ended = block_on(async {
        let script = r"printf 'a\xe2\x82'; read -r x <fifo; printf '\xac\xff\xf0\x9f'";
        let mut call = ground.start(&Bash, json!({ "command": script }));
        call.until("a").await;
        tokio::task::spawn_blocking(move || fs::write(fifo, "\n")).await.unwrap().unwrap();
        call.end().await
    });
    assert_eq!(ended.output, "a€\u{fffd}\u{fffd}");
}

fn bounded() {
    let ground = Ground::new();
    let script = "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last; exit 1";
    let (chunks, result) = block_on(async {
        let mut call = ground.start(&Bash, json!({ "command": script }));
        let mut chunks = Vec::new();
        loop {
            match call.stream.next().await.unwrap() {
                Progress::Output(text) => chunks.push(text),
                Progress::Ended { end: End::Whole, result } => break (chunks, result),
                other => panic!("{other:?}"),
            }
        }
    });
    assert!(chunks.iter().all(|chunk| chunk.len() <= 16 * 1024));
    let output = chunks.concat();
    let (shown, note) = output.rsplit_once("\n[").unwrap();
    assert_eq!(shown.len(), OUTPUT_BYTES_MAX);
    let total = "first\n".len() + 5_000_000 + "\nlast\n".len();
    assert_eq!(note, format!("{} more bytes of output are not shown]\n", total - shown.len()));
    let seen = result.seen.unwrap();
    assert!(seen.len() <= SEEN_BYTES_MAX && seen.len() > SEEN_BYTES_MAX - 2048);
    assert!(seen.starts_with("first\nxxx") && seen.ends_with("xxx\nlast\nExit code 1."));
    assert_eq!(result.exit_code, Some(1));
}

fn stdin() {
    let ended = Ground::new().finish(&Bash, json!({ "command": "cat; read x || echo end" }));
    assert_eq!(ended.output, "end\n");
}

fn workdir() {
    let ground = Ground::new();
    let rows = [(json!(null), ""), (json!("sub"), "/sub"), (json!("./sub/.."), "")];
    for (workdir, want) in rows {
        // Behind a pipe, so that the shell's own idea of the directory is told.
        let args = json!({ "command": "pwd -P | cat", "workdir": workdir });
        let want = format!("{}{want}\n", ground.cwd().display());
        assert_eq!(ground.finish(&Bash, args).output, want, "{workdir}");
    }
    for workdir in ["nosuch", "file", "store"] {
        ground.write("file", "");
        let args = json!({ "command": "touch started", "workdir": workdir });
        let judgement = ground.judge(&Bash, args.clone()).unwrap();
        assert!(judgement.refusal.unwrap().contains(workdir));
        let ended = ground.finish(&Bash, args);
        assert_eq!(ended.end, End::Failed);
        assert!(ended.seen().contains(workdir), "{}", ended.seen());
    }
    assert!(!ground.cwd().join("store/started").exists());
}

fn judged_workdir() {
    let ground = Ground::new();
    let out = ground.cwd().with_file_name("out");
    symlink(&out, ground.cwd().join("link")).unwrap();
    let judge = |script: &str, workdir: &str| {
        ground.judge(&Bash, json!({ "command": script, "workdir": workdir })).unwrap()
    };
    for workdir in ["link", "../out", out.to_str().unwrap(), "/"] {
        let judged = judge("ls", workdir);
        assert!(!judged.safe && judged.refusal.is_none(), "{workdir}");
        assert_eq!(judged.risk, Risk::High);
        let real = ground.cwd().join(workdir).canonicalize().unwrap();
        assert!(judged.reason.contains(real.to_str().unwrap()), "{}", judged.reason);
        assert!(judged.keys.iter().all(|key| key.risk == Risk::High));
    }
    assert!(judge("ls", "sub").safe);
    let here = judge("rm -rf build", ".");
    let there = judge("rm -rf build", "sub");
    assert_ne!(here.keys, there.keys);
    assert!(there.covers.ends_with(", in sub") && there.reason.ends_with("; runs in sub"));
    assert_eq!(here.keys, ground.judge(&Bash, json!({ "command": "rm -rf build" })).unwrap().keys);
}

fn arguments() {
    let ground = Ground::new();
    let long = "x".repeat(COMMAND_BYTES_MAX + 1);
    let rows = [
        (json!([]), "not a JSON object"),
        (json!({}), "`command` is missing"),
        (json!({ "command": null }), "`command` is missing"),
        (json!({ "command": " \n" }), "`command` is missing or empty"),
        (json!({ "command": ["ls"] }), "`command` must be a string, not a list"),
        (json!({ "command": "a\u{0}b" }), "`command` holds a NUL"),
        (json!({ "command": long }), "`command` has 1048577 bytes"),
        (json!({ "command": "ls", "workdir": 1 }), "`workdir` must be a string, not 1"),
        (json!({ "command": "ls", "workdir": "\u{0}" }), "`workdir` holds a NUL"),
        (json!({ "command": "ls", "timeout_ms": "1" }), "`timeout_ms` must be a whole number"),
        (json!({ "command": "ls", "timeout_ms": 0 }), "`timeout_ms` must be a whole number"),
        (json!({ "command": "ls", "timeout_ms": -5 }), "`timeout_ms` must be"),
        (json!({ "command": "ls", "timeout_ms": 1.5 }), "`timeout_ms` must be"),
        (json!({ "command": "ls", "description": {} }), "`description` must be a string"),
    ];
    for (args, part) in rows {
        let why = ground.judge(&Bash, args.clone()).unwrap_err();
        assert!(why.contains(part), "{why}");
        let ended = ground.finish(&Bash, args);
        assert_eq!((ended.end, ended.seen()), (End::Failed, why.as_str()));
    }
    let odd = json!({ "command": "echo x", "workdir": null, "timeout_ms": null, "other": [1] });
    assert!(ground.judge(&Bash, odd.clone()).is_ok());
    assert_eq!(ground.finish(&Bash, odd).output, "x\n");
}

fn not_started() {
    let ground = Ground::new();
    for helper in ["/nosuch/helper", "/bin/false"] {
        let place = Place { helper: Helper::at(helper).into(), ..(*ground.place).clone() };
        let run = Run {
            unasked: None,
            args: json!({ "command": "touch started" }).to_string().into(),
            place: Arc::new(place),
            sandboxed: false,
            stop: CancellationToken::new(),
        };
        let progress = block_on(async { Bash.run(run).collect::<Vec<_>>().await });
        let [Progress::Ended { end: End::Failed, result }] = progress.as_slice() else {
            panic!("{progress:?}");
        };
        assert!(!result.seen.as_ref().unwrap().is_empty());
    }
    assert!(!ground.cwd().join("started").exists());
}

/// The file is the session's to read, and nobody's to change.
fn kept() {
    let ground = Ground::new();
    let ended = ground.finish(&Bash, json!({ "command": "seq 1 20000; false" }));
    let seen = ended.seen();
    let path = kept_at(seen);
    let whole: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(fs::read_to_string(path).unwrap(), whole);
    let args = json!({ "path": path, "offset": 19_998 });
    assert_eq!(ground.judge(&Read, args.clone()).unwrap().effect, Effect::Read);
    assert!(ground.finish(&Read, args).output.contains("19999"));
    let edit = json!({ "path": path, "content": "x" });
    let refused = ground.judge(&WriteFile, edit).unwrap().refusal.unwrap();
    assert!(refused.contains("server's own files"), "{refused}");
    let store = ground.cwd().join("store/other");
    assert!(ground.judge(&Read, json!({ "path": store })).unwrap().refusal.is_some());
    let short = ground.finish(&Bash, json!({ "command": "seq 1 2000; false" }));
    assert!(!short.seen().contains("left out"));
}

/// Where a long output is, as the model is told.
fn kept_at(seen: &str) -> &Path {
    let told = "left out here; the whole output is kept until newer ones need the room: ";
    let (_, rest) = seen.split_once(told).unwrap_or_else(|| panic!("{seen}"));
    Path::new(rest.split_once("]\n").unwrap().0)
}

/// What was printed last is kept, and all together stays within its bound.
fn kept_bounded() {
    let ground = Ground::new();
    let outputs = ground.place.outputs.clone().unwrap();
    fs::create_dir_all(&outputs).unwrap();
    let file = |number: u64| outputs.join(format!("{number}.txt"));
    let count = OUTPUTS_BYTES_MAX / OUTPUT_FILE_BYTES_MAX + 2;
    for number in 0..count {
        let made = fs::File::create(file(number)).unwrap();
        made.set_len(OUTPUT_FILE_BYTES_MAX).unwrap();
        // Names say nothing of the age.
        let age = Duration::from_secs(60 * (1 + number));
        made.set_modified(SystemTime::now() - age).unwrap();
    }
    let mut newer = Vec::new();
    for _ in 0..3 {
        let ended = ground.finish(&Bash, json!({ "command": "seq 1 20000; false" }));
        newer.push(kept_at(ended.seen()).to_owned());
        let facts = fs::read_dir(&outputs).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
        let bytes: u64 = facts.map(|facts| facts.len()).sum();
        assert!(bytes <= OUTPUTS_BYTES_MAX, "{bytes}");
    }
    assert!(newer.iter().all(|path| path.exists()), "the newest stay");
    assert!(file(0).exists() && file(1).exists() && !file(count - 1).exists(), "the oldest go");
    let gone = ground.finish(&Read, json!({ "path": file(count - 1) }));
    assert!(gone.seen().contains("no such file"), "{}", gone.seen());
}

fn run_sandboxed(place: Place, script: &str) -> Vec<Progress> {
    let run = Run {
        unasked: None,
        args: json!({ "command": script }).to_string().into(),
        place: Arc::new(place),
        sandboxed: true,
        stop: CancellationToken::new(),
    };
    block_on(Bash.run(run).collect::<Vec<_>>())
}

fn stopped() {
    let ground = Ground::new();
    let place = || Place { sandbox: true, ..(*ground.place).clone() };
    let judged = block_on(Bash.judge(r#"{"command":"touch x"}"#, &place())).unwrap();
    assert!(judged.sandbox);
    let progress = run_sandboxed(place(), "echo made > made; echo out");
    let Some(Progress::Ended { end: End::Whole, result }) = progress.last() else {
        panic!("{progress:?}");
    };
    assert_eq!((result.exit_code, ground.read("made")), (Some(0), "made\n".to_owned()));
    for (script, why) in [
        ("echo first; touch /usr/polyloop-x", "closed to it"),
        ("touch .git/x", "closed to it"),
        ("cat store/secret", "closed to it"),
        ("exec 3<>/dev/tcp/127.0.0.1/9", "network"),
    ] {
        let progress = run_sandboxed(place(), script);
        let Some(Progress::Stopped { reason, result }) = progress.last() else {
            panic!("{script}: {progress:?}");
        };
        assert!(reason.contains(why), "{script}: {reason}");
        assert!(result.seen.as_ref().unwrap().contains(&**reason), "{script}: {result:?}");
    }
    assert!(!Path::new("/usr/polyloop-x").exists());
    assert!(!ground.cwd().join(".git").exists());
}

fn no_sandbox() {
    let ground = Ground::new();
    let progress = run_sandboxed((*ground.place).clone(), "touch started");
    let [Progress::Ended { end: End::Failed, result }] = progress.as_slice() else {
        panic!("{progress:?}");
    };
    assert!(result.seen.as_ref().unwrap().contains("sandbox"));
    assert!(!ground.cwd().join("started").exists());
    let judged = ground.judge(&Bash, json!({ "command": "touch started" })).unwrap();
    assert!(!judged.sandbox);
}

fn long_script() {
    let script = format!("# {}\necho end", "x".repeat(500_000));
    assert_eq!(Ground::new().finish(&Bash, json!({ "command": script })).output, "end\n");
}

fn secrets() {
    let path = Path::new("/usr/bin:/bin");
    let home = Path::new("/nosuch");
    let env = [
        ("PATH", path),
        ("HOME", home),
        ("OPENAI_API_KEY", Path::new("sk-secret")),
        ("POLYLOOP_TOKEN", Path::new("sk-secret")),
        ("LC_TOKEN", Path::new("sk-secret")),
        ("BASH_ENV", Path::new("/nosuch/sk-secret")),
    ];
    let output = server::output(&env, "env; cat /proc/$PPID/environ; echo end");
    assert!(output.contains("HOME=/nosuch\n") && output.contains("\nPAGER=cat\n"), "{output}");
    assert!(output.contains("\nend\n") && output.ends_with("\nWhole\n"), "{output}");
    assert!(!output.contains("sk-secret"), "{output}");
    let safe = server::output(&env, "echo hello");
    assert_eq!(safe, "hello\n\nWhole\n");
}

/// A program and a function of a safe command's name must not be what runs.
fn hijack() {
    let ground = Ground::new();
    let program = ground.cwd().join("whoami");
    ground.write("whoami", "#!/bin/sh\necho hijacked\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    ground.write(".bash_profile", "PATH=$HOME:$PATH\npwd() { echo hijacked; }\n");
    let path = format!("{}:/usr/bin:/bin", ground.cwd().display());
    let env = [("PATH", Path::new(&path)), ("HOME", ground.cwd())];
    for name in ["whoami", "pwd"] {
        let output = server::output(&env, name);
        assert!(!output.contains("hijacked"), "{output}");
        // The trap works: a command that was asked about runs as the user's own shell runs it.
        let output = server::output(&env, &format!("{name}; unset none"));
        assert!(output.contains("hijacked"), "{output}");
    }
}

fn judged() {
    let ground = Ground::new();
    let judge = |script: &str| ground.judge(&Bash, json!({ "command": script })).unwrap();
    let safe = judge("ls -la");
    assert!(safe.safe && !safe.confined && !safe.sandbox && safe.refusal.is_none());
    assert_eq!((safe.effect, safe.risk), (Effect::Execute, Risk::Low));
    let push = judge("git push origin main");
    assert!(!push.safe);
    assert_eq!(
        push.command.iter().map(|word| &**word).collect::<Vec<_>>(),
        ["git", "push", "origin", "main"]
    );
    assert_eq!(&*push.keys[0].what, "bash:prefix:git push");
    let script = judge("ls | wc -l");
    assert_eq!(
        script.command.iter().map(|word| &**word).collect::<Vec<_>>(),
        ["bash", "-lc", "ls | wc -l"]
    );
    ground.write("store/log", "x");
    assert!(!judge("cat store/log").safe);
    assert!(judge("cat sub/log").safe);
}
