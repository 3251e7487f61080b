//! What is read-only or hidden, whether it is there or not.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use polyloop_sandbox::{Exit, IfMissing, ReadOnly, Sandbox};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::ground::{Ground, fingerprint};
use crate::{Running, make_fifo_in, read_to_end};

fn held(ground: &Ground, paths: &[(&str, IfMissing)]) -> Sandbox {
    let mut sandbox = ground.sandbox();
    for (path, if_missing) in paths {
        let path = ground.work.join(path);
        sandbox.read_only.push(ReadOnly { path, if_missing: *if_missing });
    }
    sandbox
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Everything one can do to a path `$P`, as separate attempts. None may work.
const ATTACKS: &[&str] = &[
    "echo x > $P",
    "echo x >> $P",
    "echo x > $P/hook",
    "mkdir -p $P/hooks",
    "rm -rf $P; [ ! -e $P ] || [ -z \"$(ls -A $P)\" ] && ! ls -d $P",
    "mv $P moved",
    "mv -T fresh $P",
    "ln -sfT fresh $P",
    "ln -f file $P",
    "chmod 777 $P",
    "touch -d 2001-01-01 $P",
    "truncate -s 1 $P",
    "rmdir $P",
    "perl -e 'rename(\"fresh\", $ENV{P}) or exit 1'",
    "perl -e 'rename($ENV{P}, \"moved\") or exit 1'",
    "cp -rT fresh $P",
    "python3 -c 'import os; os.rename(\"fresh\", os.environ[\"P\"])'",
    "perl -e 'my $f = \"fresh\"; exit(syscall(RENAMEAT2, -100, $ENV{P}, -100, $f, 2) == 0 ? 0 : 1)'",
];

/// The number of the call that exchanges two names.
fn numbered(script: &str) -> String {
    script.replace("RENAMEAT2", &libc::SYS_renameat2.to_string())
}

#[test]
fn s4_what_is_read_only_cannot_be_changed_or_replaced() {
    let ground = Ground::new();
    fs::create_dir_all(ground.work.join(".git/hooks")).unwrap();
    fs::write(ground.work.join(".git/config"), "[core]").unwrap();
    fs::write(ground.work.join(".env"), "KEY=1").unwrap();
    symlink("elsewhere", ground.work.join(".envrc")).unwrap();
    fs::create_dir(ground.work.join("fresh")).unwrap();
    fs::write(ground.work.join("file"), "file").unwrap();
    let names = [".git", ".git/config", ".git/hooks", ".env", ".envrc"];
    let sandbox = held(&ground, &[".git", ".env", ".envrc"].map(|n| (n, IfMissing::Ignore)));
    let before = fingerprint(&ground.work.join(".git"));
    for name in names {
        for attack in ATTACKS {
            let attack = numbered(attack);
            ground.run_in(sandbox.clone(), &format!("export P={name}; {attack}"));
            assert_eq!(fingerprint(&ground.work.join(".git")), before, "{name}: {attack}");
            assert_eq!(fs::read(ground.work.join(".env")).unwrap(), b"KEY=1", "{name}: {attack}");
            let link = fs::read_link(ground.work.join(".envrc")).unwrap();
            assert_eq!(link, Path::new("elsewhere"), "{name}: {attack}");
            let _ = fs::create_dir(ground.work.join("fresh"));
            fs::write(ground.work.join("file"), "file").unwrap();
        }
    }
    let (output, _) = ground.run_in(sandbox.clone(), "cat .git/config .env");
    assert_eq!(output, "[core]KEY=1");
    // Named twice, it is held all the same.
    let mut twice =
        held(&ground, &[(".git", IfMissing::HoldDirectory), (".env", IfMissing::HoldFile)]);
    twice.read_only.extend(sandbox.read_only);
    let (output, exit) = ground.run_in(twice, "cat .git/config .env; echo x > .env");
    assert!(output.starts_with("[core]KEY=1") && exit == Exit::Code(1), "{exit:?} {output}");
    assert_eq!(fs::read(ground.work.join(".env")).unwrap(), b"KEY=1");
}

#[test]
fn s4_what_is_missing_cannot_be_made() {
    let ground = Ground::new();
    let sandbox = held(
        &ground,
        &[
            (".git", IfMissing::HoldDirectory),
            (".env", IfMissing::HoldFile),
            (".polyloop/config/file", IfMissing::HoldFile),
        ],
    );
    for name in [".git", ".env", ".polyloop", ".polyloop/config"] {
        for attack in ATTACKS {
            let prepare = "rm -rf fresh; mkdir fresh; echo file > file";
            let attack = numbered(attack);
            ground.run_in(sandbox.clone(), &format!("{prepare}; export P={name}; {attack}"));
            let left = names(&ground.work);
            let left: Vec<&str> = left.iter().map(String::as_str).collect();
            assert!(!left.iter().any(|name| name.starts_with('.')), "{name}: {attack}: {left:?}");
        }
    }
    let (output, exit) = ground.run_in(sandbox.clone(), "git init . 2>&1");
    assert!(matches!(exit, Exit::Code(1..)), "{exit:?} {output}");
    assert!(!ground.work.join(".git").exists());
    // Where it is not held, it can be made.
    assert_eq!(ground.run("mkdir .git").1, Exit::Code(0));
}

#[test]
fn a_stand_in_that_somebody_uses_stays() {
    let ground = Ground::new();
    let gate = make_fifo_in(&ground.work);
    let sandbox =
        held(&ground, &[(".git", IfMissing::HoldDirectory), (".env", IfMissing::HoldFile)]);
    let running = Running::start(&ground.job_in(sandbox.clone(), "cat fifo; cat .env; ls .git"));
    // Opened by the command, so the stand-ins are there.
    let mut open = fs::OpenOptions::new().write(true).open(&gate).unwrap();
    assert_eq!(names(&ground.work), [".env", ".git", "fifo"]);
    fs::write(ground.work.join(".env"), "KEY=1").unwrap();
    fs::write(ground.work.join(".git/HEAD"), "ref").unwrap();
    std::io::Write::write_all(&mut open, b"go\n").unwrap();
    drop(open);
    let Running { helper, control } = running;
    let (output, outcome) = read_to_end(helper);
    drop(control);
    assert_eq!((output.as_str(), outcome.exit), ("go\nKEY=1HEAD\n", Exit::Code(0)));
    assert_eq!(fs::read_to_string(ground.work.join(".env")).unwrap(), "KEY=1");
    assert_eq!(names(&ground.work.join(".git")), ["HEAD"]);
    assert_eq!(fs::metadata(ground.work.join(".env")).unwrap().mode() & 0o7777, 0o644);
    assert_eq!(fs::metadata(ground.work.join(".git")).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn an_empty_file_of_the_users_stays() {
    let ground = Ground::new();
    fs::write(ground.work.join(".env"), "").unwrap();
    fs::create_dir(ground.work.join(".git")).unwrap();
    let sandbox =
        held(&ground, &[(".git", IfMissing::HoldDirectory), (".env", IfMissing::HoldFile)]);
    assert_eq!(ground.run_in(sandbox, "true").1, Exit::Code(0));
    assert_eq!(names(&ground.work), [".env", ".git"]);
}

#[test]
fn jobs_at_the_same_time_share_a_stand_in() {
    let ground = Ground::new();
    let gate = make_fifo_in(&ground.work);
    let sandbox = held(&ground, &[(".git", IfMissing::HoldDirectory)]);
    // The first one waits at the gate while others come and go, and is still held afterwards.
    let first = Running::start(&ground.job_in(sandbox.clone(), "cat fifo; mkdir .git/hooks"));
    let open = fs::OpenOptions::new().write(true).open(&gate).unwrap();
    for _ in 0..10 {
        assert_eq!(ground.run_in(sandbox.clone(), "true").1, Exit::Code(0));
        assert!(ground.work.join(".git").is_dir());
    }
    drop(open);
    let Running { helper, control } = first;
    let (output, outcome) = read_to_end(helper);
    drop(control);
    assert_eq!(outcome.exit, Exit::Code(1), "{output}");
    assert_eq!(names(&ground.work), ["fifo"]);
}

#[test]
fn a_stand_in_that_was_left_behind_goes_with_the_next_job() {
    let ground = Ground::new();
    let gate = make_fifo_in(&ground.work);
    let sandbox = held(&ground, &[(".git", IfMissing::HoldDirectory)]);
    let running = Running::start(&ground.job_in(sandbox.clone(), "cat fifo"));
    let open = fs::OpenOptions::new().write(true).open(&gate).unwrap();
    let Running { mut helper, control } = running;
    // With its keeper, so that nobody is told to tidy up.
    let group = Pid::from_raw(i32::try_from(helper.id()).unwrap()).unwrap();
    kill_process_group(group, Signal::KILL).unwrap();
    helper.wait().unwrap();
    drop((open, control));
    assert_eq!(names(&ground.work), [".git", "fifo"]);
    assert_eq!(ground.run_in(sandbox, "true").1, Exit::Code(0));
    assert_eq!(names(&ground.work), ["fifo"]);
}

#[test]
fn s5_a_directory_above_cannot_be_moved_away() {
    let ground = Ground::new();
    fs::create_dir_all(ground.work.join("a/b")).unwrap();
    fs::write(ground.work.join("a/b/.env"), "KEY=1").unwrap();
    fs::create_dir_all(ground.work.join("other")).unwrap();
    let sandbox =
        held(&ground, &[("a/b/.env", IfMissing::Ignore), ("c/.env", IfMissing::HoldFile)]);
    for script in [
        "mv a away && mkdir -p a/b && echo x > a/b/.env",
        "mv a/b away && mkdir a/b && echo x > a/b/.env",
        "mv a away; mv away a; echo x > a/b/.env",
        "perl -e 'my ($a, $o) = (\"a\", \"other\"); \
         exit(syscall(RENAMEAT2, -100, $a, -100, $o, 2) == 0 ? 0 : 1)'",
        "rm -rf a && mkdir -p a/b && echo x > a/b/.env",
        "mkdir c && echo x > c/.env",
        "ln -s /tmp c && echo x > c/.env",
    ] {
        let (output, exit) = ground.run_in(sandbox.clone(), &numbered(script));
        assert!(matches!(exit, Exit::Code(1..)), "{script}: {exit:?} {output}");
        assert_eq!(fs::read(ground.work.join("a/b/.env")).unwrap(), b"KEY=1", "{script}");
        // A copy may have been made; that is no harm.
        let _ = fs::remove_dir_all(ground.work.join("away"));
        assert_eq!(names(&ground.work), ["a", "other"], "{script}");
    }
    let work = "echo x > a/new && echo y > a/b/new && mkdir a/b/c && mv a/new other/";
    assert_eq!(ground.run_in(sandbox, work).1, Exit::Code(0));
}

#[test]
fn s9_what_is_hidden_cannot_be_seen() {
    let mut ground = Ground::new();
    fs::create_dir(ground.outside.join("store")).unwrap();
    fs::write(ground.outside.join("store/session"), "top secret").unwrap();
    fs::write(ground.outside.join("token"), "top secret").unwrap();
    fs::create_dir_all(ground.work.join(".polyloop/store")).unwrap();
    fs::write(ground.work.join(".polyloop/store/session"), "top secret").unwrap();
    fs::write(ground.work.join("service.json"), "top secret").unwrap();
    symlink(ground.outside.join("token"), ground.work.join("link")).unwrap();
    ground.accept();
    let mut sandbox = ground.sandbox();
    sandbox.hidden = vec![
        ground.outside.join("store"),
        ground.outside.join("token"),
        ground.work.join(".polyloop/store"),
        ground.work.join("service.json"),
        ground.work.join("link"),
        ground.work.join("later"),
        ground.outside.join("never"),
    ];
    let script = r#"
        for p in "$OUT/store" "$OUT/token" .polyloop/store service.json link; do
            cat $p; ls -A $p; cat $p/*; cat $p/session; cp -r $p copy; ln $p hard; mv $p moved
            chmod -R 777 $p; cat $p $p/session; tar c $p; dd if=$p; rm -rf $p
            cat /proc/self/root/$p; mv .polyloop away; cat away/store/session; echo x > $p; echo x > $p/session
        done 2>&1
        grep -r 'top secret' . "$OUT" 2>&1
        exit 1"#;
    let output = ground.refuses_in(sandbox.clone(), script);
    assert!(!output.contains("top secret") && output.contains("Permission denied"), "{output}");
    for path in [".polyloop/store/session", "service.json"] {
        assert_eq!(fs::read(ground.work.join(path)).unwrap(), b"top secret");
    }
    let mode = fs::metadata(ground.work.join("service.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777 & !0o600, mode & 0o777 & 0o044, "{mode:o}");
    // The rest can be read.
    let (output, exit) = ground.run_in(sandbox, "cat \"$OUT/canary\" \"$OUT/directory/canary\"");
    assert_eq!((output.as_str(), exit), ("alivealive", Exit::Code(0)));
}

/// A store in the working directory, and a database in the store.
#[test]
fn s9_what_is_hidden_twice_is_hidden() {
    let ground = Ground::new();
    let store = ground.work.join("a/store");
    fs::create_dir_all(store.join("deep")).unwrap();
    fs::write(store.join("memories"), "top secret").unwrap();
    let mut sandbox = ground.sandbox();
    sandbox.hidden = vec![
        store.join("memories"),
        store.join("memories-journal"),
        store.join("deep/missing"),
        store.clone(),
        store.join("deep"),
        ground.work.join("a/storeroom"),
    ];
    let script = "cat a/store/memories a/store/*; ls a/store a/store/deep; mv a away; \
                  mv a/store away; echo x > a/store/memories; echo fine > a/other && cat a/other";
    let (output, exit) = ground.run_in(sandbox, script);
    assert_eq!(exit, Exit::Code(0), "{output}");
    assert!(output.ends_with("fine\n") && !output.contains("top secret"), "{output}");
    assert_eq!(names(&store), ["deep", "memories"], "{output}");
    assert_eq!(fs::read(store.join("memories")).unwrap(), b"top secret");
}

#[test]
fn s9_a_secret_that_appears_later_cannot_be_read() {
    let mut ground = Ground::new();
    let gate = make_fifo_in(&ground.work);
    let mut sandbox = ground.sandbox();
    let secrets = [ground.outside.join("wal"), ground.work.join("wal")];
    sandbox.hidden = secrets.to_vec();
    let script = "read -r go < fifo; cat \"$OUT/wal\" wal; cat \"$OUT/canary\"";
    let running = Running::start(&ground.job_in(sandbox, script));
    let mut open = fs::OpenOptions::new().write(true).open(&gate).unwrap();
    for secret in &secrets {
        fs::write(secret, "top secret").unwrap();
    }
    std::io::Write::write_all(&mut open, b"go\n").unwrap();
    let Running { helper, control } = running;
    let (output, outcome) = read_to_end(helper);
    drop(control);
    assert!(!output.contains("top secret"), "{output}");
    assert_eq!(output.matches("Permission denied").count(), 2, "{output}");
    assert!(output.ends_with("alive"), "{output}");
    assert_eq!(outcome.exit, Exit::Code(0));
    assert_eq!(fs::read(&secrets[1]).unwrap(), b"top secret");
    ground.accept();
}
