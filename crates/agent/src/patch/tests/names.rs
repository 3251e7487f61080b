//! A: names that lead, or try to lead, out of the root.

use super::*;
use crate::patch::{is_protected, shown, touched};

cases! {
    a1_parent: [] "*** Add File: ../OUT/x\n+x", Refused("outside the working directory");
    a2_absolute_outside: [] "*** Add File: /etc/cron.d/x\n+x", Refused("/etc/cron.d/x");
    a4_inner_parent: [] "*** Add File: sub/../../OUT/x\n+x", Refused("outside");
    a4_inner_parent_inside: [] "*** Add File: sub/../b.txt\n+x", Files(&[("b.txt", b"x\n")]);
    a6_empty: [] "*** Add File: \n+x", Refused("it is empty");
    a6_dot: [] "*** Add File: .\n+x", Refused("names a directory");
    a6_parent: [] "*** Add File: ..\n+x", Refused("names a directory");
    a6_slash: [] "*** Add File: /\n+x", Refused("names a directory");
    a6_trailing_slash: [] "*** Add File: sub/\n+x", Refused("names a directory");
    a6_root_by_detour: [] "*** Add File: ../W\n+x", Refused("the working directory itself");
    a7_nul: [] "*** Add File: a\0b\n+x", Refused("NUL");
    a7_newline: [] "*** Add File: a\nb\n+x", Refused("patch line 3");
    a7_newline_delete: ["a" => b"x\n"] "*** Delete File: a\nb", Refused("patch line 3");
    a7_carriage_return: [] "*** Add File: a\rb\n+x", Refused("\\r");
    a7_carriage_return_at_end: [] "*** Add File: a\r\n+x", Refused("\\r");
    a7_escape: [] "*** Add File: a\u{1b}[2Jb\n+x", Refused("a\\u{1b}[2Jb");
    a8_turned: [] "*** Add File: a\u{202e}txt.exe\n+x",
        Files(&[("a\u{202e}txt.exe", b"x\n")]);
    a8_look_alike_slash: [] "*** Add File: ..\u{2215}OUT\u{2215}x\n+x",
        Files(&[("..\u{2215}OUT\u{2215}x", b"x\n")]);
    a9_nothing_is_expanded: []
        "*** Add File: ~/x\n+1\n*** Add File: $HOME/x\n+2\n*** Add File: %2e%2e/x\n+3\n\
         *** Add File: file:///etc/x\n+4\n*** Add File: C:\\x\n+5",
        Files(&[("~/x", b"1\n"), ("$HOME/x", b"2\n"), ("%2e%2e/x", b"3\n"),
            ("file:/etc/x", b"4\n"), ("C:\\x", b"5\n")]);
    a10_long_name: [] &format!("*** Add File: {}\n+x", "n".repeat(256)), Refused("256 bytes");
    a10_longest_name: [] &format!("*** Add File: {}\n+x", "n".repeat(255)),
        Files(&[(&"n".repeat(255), b"x\n")]);
    a10_long_path: [] &format!("*** Add File: {}x\n+x", "a234/".repeat(1000)),
        Refused("5001 bytes");
    a10_deep_path: [] &format!("*** Add File: {}x\n+x", "d/".repeat(300)),
        Refused("301 names deep");
    a11_move_out: ["a" => b"x\n"] "*** Update File: a\n*** Move to: ../OUT/moved\n@@\n-x\n+y",
        Refused("outside");
    a12_working_directory: [] "*** Add File: /proc/self/cwd/../x\n+x", Refused("outside");
    a12_process_root: [] "*** Add File: /proc/self/root/etc/x\n+x", Refused("really /etc/x");
    a12_descriptor: [] "*** Update File: /dev/fd/3\n@@\n-x\n+x", Refused("/dev/fd/3: ");
    a12_null: [] "*** Add File: /dev/null\n+x", Refused("outside");
}

#[test]
fn a3_absolute_inside_is_reported_relative() {
    let ground = Ground::new(&[("a.txt", b"old\n")]);
    let path = ground.inside("a.txt");
    let changes =
        ground.apply(&format!("*** Update File: {}\n@@\n-old\n+new", path.display())).unwrap();
    assert_eq!(changes[0].path, "a.txt");
    assert_eq!(ground.read("a.txt"), "new\n");
}

#[test]
fn a5_a_common_prefix_is_not_inside() {
    let ground = Ground::new(&[]);
    let evil = ground.home.path().join("W-evil");
    fs::create_dir(&evil).unwrap();
    let error = ground.refused(&format!("*** Add File: {}/x\n+x", evil.display()));
    assert!(matches!(error, PatchError::Outside { real, .. } if real.ends_with("W-evil/x")));
}

#[test]
fn a8_what_is_invisible_is_shown_escaped() {
    assert_eq!(shown("a\u{202e}b\u{200b}c\u{1b}"), "a\\u{202e}b\\u{200b}c\\u{1b}");
    assert_eq!(shown("ordinary/näme 2.txt"), "ordinary/näme 2.txt");
}

#[test]
fn a9_a_literal_home_is_still_a_start_up_file() {
    assert!(is_protected("~/.bashrc"));
}

#[test]
fn every_named_path_is_reported_even_if_the_patch_cannot_be_applied() {
    let ground = Ground::new(&[("a", b"x\n")]);
    let patch = wrapped(
        "*** Update File: a\n*** Move to: ../OUT/b\n@@\n-x\n+y\n*** Delete File: ./.git/config",
    );
    let touched = touched(&ground.root, &parse(&patch).unwrap());
    let facts: Vec<(&str, bool, bool)> =
        touched.iter().map(|t| (t.path.as_str(), t.inside, t.protected)).collect();
    let expected = [("a", true, false), ("../OUT/b", false, false), (".git/config", true, true)];
    assert_eq!(facts, expected);
    assert_eq!(touched[1].real, ground.root.path().parent().unwrap().join("OUT/b"));
}
