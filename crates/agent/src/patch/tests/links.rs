//! B: symbolic links, hard links, and what is not a file at all.

use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::patch::touched;

/// A root with `link.txt` and `linked`, links to a file and a directory outside.
fn linked() -> Ground {
    let ground = Ground::new(&[("a", b"old\n")]);
    fs::write(ground.outside("victim"), "old\n").unwrap();
    symlink(ground.outside("victim"), ground.inside("link.txt")).unwrap();
    symlink(ground.outside(""), ground.inside("linked")).unwrap();
    ground
}

#[test]
fn b1_b2_b3_b4_no_body_goes_through_a_link() {
    let leaf = [
        "*** Add File: link.txt\n+new",
        "*** Update File: link.txt\n@@\n-old\n+new",
        "*** Delete File: link.txt",
        "*** Update File: link.txt\n*** Move to: moved\n@@\n-old\n+new",
        "*** Update File: link.txt\n*** Move to: moved",
        "*** Update File: a\n*** Move to: link.txt\n@@\n-old\n+new",
        "*** Add File: link.txt/sub/new\n+new",
    ];
    let above = [
        "*** Add File: linked/new\n+new",
        "*** Update File: linked/victim\n@@\n-old\n+new",
        "*** Delete File: linked/victim",
        "*** Update File: linked/victim\n*** Move to: moved\n@@\n-old\n+new",
        "*** Update File: linked/victim\n*** Move to: moved",
        "*** Update File: a\n*** Move to: linked/moved\n@@\n-old\n+new",
        "*** Add File: linked/sub/new\n+new",
    ];
    let ground = linked();
    for body in leaf.iter().chain(&above) {
        let error = ground.refused(body);
        let PatchError::Outside { real, .. } = &error else {
            panic!("{body}: {error}");
        };
        assert!(real.starts_with(ground.home.path().canonicalize().unwrap().join("OUT")));
    }
}

#[test]
fn b5_a_dangling_link_creates_nothing() {
    let ground = Ground::new(&[]);
    symlink(ground.outside("not-there"), ground.inside("l")).unwrap();
    let error = ground.refused("*** Add File: l\n+x");
    assert!(matches!(error, PatchError::Outside { real, .. } if real.ends_with("OUT/not-there")));
}

#[test]
fn b6_a_link_that_stays_inside_is_refused_with_the_real_path() {
    let ground = Ground::new(&[("AGENTS.md", b"old\n"), ("d/f", b"old\n")]);
    symlink("AGENTS.md", ground.inside("notes.md")).unwrap();
    symlink("d", ground.inside("e")).unwrap();
    for (body, real) in [
        ("*** Update File: notes.md\n@@\n-old\n+new", "AGENTS.md"),
        ("*** Delete File: notes.md", "AGENTS.md"),
        ("*** Update File: e/f\n@@\n-old\n+new", "d/f"),
    ] {
        let error = ground.refused(body);
        assert!(matches!(&error, PatchError::Link { .. }), "{error}");
        assert!(error.to_string().contains(real), "{error}");
    }
    let patch = parse(&wrapped("*** Delete File: notes.md")).unwrap();
    assert!(touched(&ground.root, &patch)[0].protected, "judged by where the link leads");
}

#[test]
fn b7_a_link_made_between_two_patches_is_not_followed() {
    let ground = Ground::new(&[]);
    ground.apply("*** Add File: d/one\n+1").unwrap();
    fs::remove_dir_all(ground.inside("d")).unwrap();
    symlink(ground.outside(""), ground.inside("d")).unwrap();
    ground.refused("*** Add File: d/two\n+2");
}

#[test]
fn b8_a_directory_swapped_for_a_link_after_planning_is_noticed() {
    for body in [
        "*** Update File: dir/f\n@@\n-old\n+new",
        "*** Delete File: dir/f",
        "*** Add File: dir/new\n+new",
        "*** Add File: dir/new/deep/er\n+new",
        "*** Update File: a\n*** Move to: dir/a",
    ] {
        let ground = Ground::new(&[("dir/f", b"old\n"), ("a", b"old\n")]);
        fs::write(ground.outside("f"), "old\n").unwrap();
        let plan = ground.plan(body).unwrap();
        fs::rename(ground.inside("dir"), ground.inside("old")).unwrap();
        symlink(ground.outside(""), ground.inside("dir")).unwrap();
        let before = ground.snapshot();
        let error = plan.apply(None).unwrap_err();
        assert!(matches!(error, PatchError::Outside { .. }), "{body}: {error}");
        assert_eq!(ground.snapshot(), before);
    }
}

#[test]
fn b8_a_file_changed_after_planning_is_not_overwritten() {
    let ground = Ground::new(&[("a", b"old\n"), ("b", b"old\n")]);
    for body in ["*** Update File: a\n@@\n-old\n+new", "*** Delete File: a"] {
        let plan = ground.plan(&format!("{body}\n*** Update File: b\n@@\n-old\n+new")).unwrap();
        // The same size, and perhaps the same time.
        ground.write("a", b"odd\n");
        let before = ground.snapshot();
        let error = plan.apply(None).unwrap_err();
        assert!(matches!(&error, PatchError::Changed { path } if path == "a"), "{error}");
        assert_eq!(ground.snapshot(), before);
        ground.write("a", b"old\n");
    }
}

#[test]
fn b10_a_root_reached_by_a_link_works_under_both_names() {
    let ground = Ground::new(&[("a", b"1\n")]);
    let link = ground.home.path().join("link-to-w");
    symlink(ground.inside(""), &link).unwrap();
    let root = Root::open(&link).unwrap();
    let named = [link.join("a"), ground.inside("a"), PathBuf::from("a")];
    for (old, path) in named.iter().enumerate().map(|(index, path)| (index + 1, path)) {
        let body = format!("*** Update File: {}\n@@\n-{old}\n+{}", path.display(), old + 1);
        let changes = plan(&root, &parse(&wrapped(&body)).unwrap()).unwrap().apply(None).unwrap();
        assert_eq!(changes[0].path, "a");
    }
    assert_eq!(ground.read("a"), "4\n");
}

#[test]
fn b11_a_root_that_was_removed_or_replaced_is_refused() {
    let ground = Ground::new(&[("a", b"old\n")]);
    let planned = ground.plan("*** Add File: x\n+x").unwrap();
    fs::rename(ground.inside(""), ground.home.path().join("elsewhere")).unwrap();
    let error = ground.refused("*** Add File: x\n+x");
    assert!(matches!(error, PatchError::RootChanged { .. }), "{error}");
    ground.write("a", b"old\n");
    let before = ground.snapshot();
    let error = planned.apply(None).unwrap_err();
    assert!(matches!(error, PatchError::RootChanged { .. }), "{error}");
    ground.refused("*** Update File: a\n@@\n-old\n+new");
    assert_eq!(ground.snapshot(), before);
}

#[test]
fn b12_the_other_end_of_a_hard_link_keeps_its_content() {
    let ground = Ground::new(&[("h", b"old\n")]);
    fs::hard_link(ground.inside("h"), ground.outside("victim")).unwrap();
    ground.apply("*** Update File: h\n@@\n-old\n+new").unwrap();
    assert_eq!(ground.read("h"), "new\n");
    assert_eq!(fs::read(ground.outside("victim")).unwrap(), b"old\n");
}

#[test]
fn b13_what_is_not_a_file_is_refused_at_once() {
    let ground = Ground::new(&[("dir/inner", b"x\n"), ("a", b"x\n")]);
    mknodat(CWD, ground.inside("fifo"), FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
    let _socket = UnixListener::bind(ground.inside("socket")).unwrap();
    symlink("/dev/null", ground.inside("device")).unwrap();
    for (name, says) in [
        ("dir", "a directory, not a regular file"),
        ("fifo", "a named pipe"),
        ("socket", "a socket"),
        ("device", "really /dev/null"),
        ("a/below", "not a directory"),
    ] {
        for body in [
            format!("*** Update File: {name}\n@@\n-x\n+y"),
            format!("*** Delete File: {name}"),
            format!("*** Add File: {name}\n+y"),
            format!("*** Update File: a\n*** Move to: {name}"),
        ] {
            let error = ground.refused(&body).to_string();
            assert!(error.contains(says), "{body}: {error}");
        }
    }
}

#[test]
fn b14_the_mode_is_kept_and_read_only_is_respected() {
    for mode in [0o644, 0o755, 0o600, 0o640] {
        let ground = Ground::new(&[("f", b"old\n")]);
        let set = fs::Permissions::from_mode(mode);
        fs::set_permissions(ground.inside("f"), set).unwrap();
        let owner = fs::metadata(ground.inside("f")).unwrap().uid();
        ground.apply("*** Update File: f\n@@\n-old\n+new").unwrap();
        ground.apply("*** Update File: f\n*** Move to: g\n@@\n-new\n+newer").unwrap();
        ground.apply("*** Delete File: g\n*** Add File: g\n+newest").unwrap();
        let metadata = fs::metadata(ground.inside("g")).unwrap();
        assert_eq!(metadata.mode() & 0o7777, mode);
        assert_eq!(metadata.uid(), owner);
    }
    let ground = Ground::new(&[("f", b"old\n")]);
    fs::set_permissions(ground.inside("f"), fs::Permissions::from_mode(0o444)).unwrap();
    for body in [
        "*** Update File: f\n@@\n-old\n+new",
        "*** Delete File: f",
        "*** Update File: f\n*** Move to: g",
    ] {
        let error = ground.refused(body).to_string();
        assert!(error.contains("read-only (mode 0444)"), "{error}");
    }
}

#[test]
fn walking_opens_the_same_directories_as_the_kernel_does() {
    let ground = linked();
    fs::create_dir_all(ground.inside("x/y")).unwrap();
    for path in ["x", "x/y", "", "linked", "link.txt", "a", "x/missing", "linked/sub"] {
        let id = |handle: Result<std::os::fd::OwnedFd, _>| {
            handle.map(|handle| rustix::fs::fstat(handle).unwrap().st_ino).ok()
        };
        let walked = if path.is_empty() {
            ground.root.directory("")
        } else {
            ground.root.directory_by_walking(path)
        };
        assert_eq!(id(walked), id(ground.root.directory(path)), "{path}");
    }
    assert!(ground.root.directory_by_walking("linked").is_err());
    assert!(ground.root.directory_by_walking("x/y").is_ok());
}
