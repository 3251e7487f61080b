//! F: all files or none, whatever goes wrong.

use std::process::Command;

use super::*;

cases! {
    f1_third_file_does_not_match: ["a" => b"1\n", "b" => b"1\n", "c" => b"1\n"]
        "*** Update File: a\n@@\n-1\n+2\n*** Add File: new/x\n+1\n*** Delete File: b\n\
         *** Update File: c\n@@\n-other\n+2", Refused("c: hunk 1");
    f2_add_over_a_file: ["a" => b"1\n"] "*** Add File: a\n+2", Refused("a: exists already");
    f3_move_onto_a_file: ["a" => b"1\n", "b" => b"2\n"] "*** Update File: a\n*** Move to: b",
        Refused("b: exists already");
    f4_delete_nothing: ["a" => b"1\n"] "*** Delete File: b", Refused("b: there is no such file");
    f4_update_nothing: ["a" => b"1\n"] "*** Update File: b/c\n@@\n-1\n+2",
        Refused("b/c: there is no such file");
}

#[test]
fn f1_what_was_done_is_undone_when_a_later_file_cannot_be_put_in_place() {
    let ground = Ground::new(&[("a", b"1\n"), ("b", b"1\n"), ("m", b"1\n")]);
    let planned = ground
        .plan(
            "*** Update File: a\n@@\n-1\n+2\n*** Delete File: b\n*** Add File: c/d/e\n+1\n\
             *** Update File: m\n*** Move to: n/m\n*** Add File: z\n+1",
        )
        .unwrap();
    ground.write("z", b"somebody else's\n");
    let before = ground.snapshot();
    let error = planned.apply(None).unwrap_err();
    assert!(matches!(&error, PatchError::Exists { path } if path == "z"), "{error}");
    assert_eq!(ground.snapshot(), before);
}

#[test]
fn f1_directories_are_not_left_behind() {
    let ground = Ground::new(&[("a", b"1\n")]);
    let planned = ground.plan("*** Add File: x/y/z\n+1\n*** Update File: a\n@@\n-1\n+2").unwrap();
    ground.write("a", b"other\n");
    let before = ground.snapshot();
    assert!(matches!(planned.apply(None), Err(PatchError::Changed { .. })));
    assert_eq!(ground.snapshot(), before);
}

/// The process that the next test starts: it may write 64 KiB to a file and no more.
const CHILD: &str = "PATCH_TEST_FULL_DISK_HOME";

#[test]
fn f5_a_write_that_fails_midway_leaves_the_old_files() {
    if let Some(home) = std::env::var_os(CHILD) {
        return in_a_full_file_system(Path::new(&home));
    }
    let ground = Ground::new(&[("a", b"1\n"), ("b", b"1\n")]);
    let before = ground.snapshot();
    let name = module_path!().split_once("::").unwrap().1;
    #[expect(clippy::disallowed_methods, reason = "only a process of its own can have the limit")]
    let output = Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "bash"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg(format!("{name}::f5_a_write_that_fails_midway_leaves_the_old_files"))
        .env(CHILD, ground.inside(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    assert!(said.contains("File too large"), "{said}");
    assert_eq!(ground.snapshot(), before);
}

fn in_a_full_file_system(home: &Path) {
    let root = Root::open(home).unwrap();
    let body = format!(
        "*** Update File: a\n@@\n-1\n+2\n*** Update File: b\n@@\n-1\n{}*** Add File: c/d\n+1",
        format!("+{}\n", "x".repeat(1023)).repeat(100)
    );
    let error = plan(&root, &parse(&wrapped(&body)).unwrap()).unwrap().apply(None).unwrap_err();
    assert!(matches!(&error, PatchError::Io { path, .. } if path == "b"), "{error}");
    println!("{error}");
}

#[test]
fn f7_a_directory_that_takes_no_files_is_named() {
    // No one, not even the superuser, can make a file there.
    let root = Root::open(Path::new("/sys")).unwrap();
    for body in ["*** Add File: kernel/polyloop\n+x", "*** Add File: polyloop/new\n+x"] {
        let error = plan(&root, &parse(&wrapped(body)).unwrap()).unwrap().apply(None).unwrap_err();
        assert!(matches!(&error, PatchError::Io { .. }), "{error}");
        assert!(error.to_string().contains("polyloop: cannot "), "{error}");
    }
}

#[test]
fn f7_a_directory_without_write_permission_is_named() {
    let ground = Ground::new(&[("d/a", b"1\n")]);
    fs::set_permissions(ground.inside("d"), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(ground.inside("d/probe"), "").is_ok() {
        // The superuser is not bound by permissions; the case above holds for it too.
        return;
    }
    for body in [
        "*** Update File: d/a\n@@\n-1\n+2",
        "*** Add File: d/b\n+1",
        "*** Add File: d/e/f\n+1",
        "*** Delete File: d/a",
    ] {
        let error = ground.refused(body).to_string();
        assert!(error.contains("d/") && error.contains("ermission denied"), "{error}");
    }
    fs::set_permissions(ground.inside("d"), fs::Permissions::from_mode(0o755)).unwrap();
}
