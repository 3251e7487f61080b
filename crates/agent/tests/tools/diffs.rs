//! The diff that a person is shown is what is done, as Git understands it; and what is kept.

use std::fs;
use std::path::Path;

use polyloop_agent::tool::find;
use polyloop_sandbox::{Confinement, Exit, Helper, Job};
use polyloop_session::item::End;
use serde_json::{Value, json};

use super::paths::snapshot;
use crate::{Ground, PATIENCE, Test};

pub const ALL: &[Test] =
    &[("the_diff_that_is_shown_is_what_git_makes_of_the_files", shown_is_done)];

fn lay(top: &Path) {
    fs::create_dir_all(top.join("sub")).unwrap();
    let long: String = (0..60).map(|n| format!("line {n}\n")).collect();
    for (path, content) in [
        ("f", "one\ntwo\nthree\n"),
        ("open", "no newline"),
        ("crlf", "a\r\nb\r\n"),
        ("long", &long),
        ("sub/with blank", "x\n"),
    ] {
        fs::write(top.join(path), content).unwrap();
    }
}

fn rows() -> Vec<(&'static str, Value)> {
    let patch = "*** Begin Patch\n*** Update File: long\n@@\n-line 3\n+LINE 3\n@@\n-line 40\n\
                 +LINE 40\n+more\n*** Add File: deep/er/new\n+1\n*** Delete File: f\n\
                 *** Update File: open\n*** Move to: sub/opened\n@@\n-no newline\n+changed\n\
                 *** Update File: crlf\n@@\n-b\n+B\n*** End Patch";
    vec![
        ("write_file", json!({ "path": "a/new", "content": "1\n2" })),
        ("write_file", json!({ "path": "f", "content": "quite other\n" })),
        ("write_file", json!({ "path": "open", "content": ", and more\n", "append": true })),
        ("write_file", json!({ "path": "sub/with blank", "content": "y\n" })),
        ("edit", json!({ "path": "long", "oldString": "line 30\n", "newString": "LINE\n30\n" })),
        ("edit", json!({ "path": "crlf", "oldString": "b", "newString": "c" })),
        (
            "multiedit",
            json!({ "path": "long", "edits": [
                { "oldString": "line 1\n", "newString": "" },
                { "oldString": "line 50\n", "newString": "fifty\n" },
            ] }),
        ),
        ("move_file", json!({ "source": "f", "target": "moved/f" })),
        ("delete_file", json!({ "path": "open" })),
        ("apply_patch", json!({ "patch": patch })),
    ]
}

fn shown_is_done() {
    for (name, args) in rows() {
        let ground = Ground::new();
        fs::remove_dir_all(ground.cwd().join("store")).unwrap();
        fs::create_dir_all(ground.cwd().join("store/patches")).unwrap();
        lay(ground.cwd());
        let copy = ground.out().join("copy");
        fs::create_dir(&copy).unwrap();
        lay(&copy);
        fs::create_dir_all(copy.join("store/patches")).unwrap();

        let tool = find(name).unwrap();
        let judged = ground.judge(tool, args.clone()).unwrap();
        let diff = judged.diff.as_deref().unwrap_or_else(|| panic!("{name} {args} has no diff"));
        git_apply(&copy, diff);
        let ended = ground.finish(tool, args.clone());
        assert_eq!(ended.end, End::Whole, "{name}: {}", ended.seen());
        let kept: String = ended.result.files.iter().map(|f| f.diff.as_deref().unwrap()).collect();
        assert_eq!(kept, diff, "{name} {args}");
        assert_eq!(files(&copy), files(ground.cwd()), "{name} {args}\n{diff}");
    }
}

/// Without directories: Git removes the empty ones, we do not.
fn files(top: &Path) -> Vec<String> {
    let all = snapshot(top).into_iter().filter(|entry| !entry.ends_with("None"));
    all.map(|entry| entry.replace(top.to_str().unwrap(), "")).collect()
}

fn git_apply(directory: &Path, diff: &str) {
    let file = directory.with_file_name("shown.diff");
    fs::write(&file, diff).unwrap();
    let above = directory.parent().unwrap();
    let job = Job {
        program: "git".into(),
        args: vec!["apply".into(), "--whitespace=nowarn".into(), file.into()],
        cwd: directory.to_owned(),
        env: vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("GIT_CEILING_DIRECTORIES".into(), above.into()),
        ],
        time_limit: PATIENCE,
        stop_grace: PATIENCE,
        confinement: Confinement::None,
    };
    let mut output = Vec::new();
    let outcome = polyloop_sandbox::run(&Helper::this_program(), &job, &mut output).unwrap();
    assert_eq!(outcome.exit, Exit::Code(0), "{}\n{diff}", String::from_utf8_lossy(&output));
}
