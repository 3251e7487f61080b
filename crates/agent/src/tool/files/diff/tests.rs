//! A diff makes the new content of the old one, and shows nothing that it should not.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn changed(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Change {
    let operation = match (before, after) {
        (None, _) => Operation::Create,
        (Some(_), None) => Operation::Delete,
        (Some(_), Some(_)) => Operation::Update,
    };
    let bytes = |content: Option<&[u8]>| content.map(Bytes::copy_from_slice);
    Change {
        path: path.to_owned(),
        operation,
        before: bytes(before),
        before_mode: before.map(|_| 0o644),
        after: bytes(after),
    }
}

fn text(before: &str, after: &str) -> String {
    of_shown("f", &changed("f", Some(before.as_bytes()), Some(after.as_bytes())))
}

#[test]
fn a_diff_in_gits_form() {
    let want = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n";
    assert_eq!(text("a\nb\nc\n", "a\nB\nc\n"), want);
    let want = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of \
                file\n+a\n";
    assert_eq!(text("a", "a\n"), want);
    let made = of_shown("d/n w", &changed("d/n w", None, Some(b"1\n")));
    let want = "diff --git a/d/n w b/d/n w\nnew file mode 100644\n--- /dev/null\n+++ b/d/n \
                w\t\n@@ -0,0 +1 @@\n+1\n";
    assert_eq!(made, want);
    let gone = of_deletion("g", 0o100755, Some(&Bytes::from_static(b"1\n2\n")));
    let want = "diff --git a/g b/g\ndeleted file mode 100755\n--- a/g\n+++ /dev/null\n@@ -1,2 \
                +0,0 @@\n-1\n-2\n";
    assert_eq!(gone, want);
    let moved = "diff --git a/a b/b/c\nrename from a\nrename to b/c\n";
    assert_eq!(of_move("a", "b/c"), moved);
}

#[test]
fn what_is_no_text_or_too_long_is_said_and_not_shown() {
    for content in [&b"a\0b\n"[..], b"caf\xe9\n"] {
        let diff = of_shown("f", &changed("f", Some(b"a\n"), Some(content)));
        assert!(diff.ends_with("is not shown]\n"), "{diff}");
    }
    assert!(of_deletion("f", 0o644, None).ends_with("is not shown]\n"));
    let lines = |word: &str| (0..20_000).map(|n| format!("{n} {word}\n")).collect::<String>();
    let long = text(&lines("old"), &lines("new"));
    assert!(long.len() < 300 && long.ends_with("[1 more hunk of this file not shown]\n"), "{long}");
    let sparse =
        |word: &str| (0..900).map(|n| format!("{n} {word}{}", "\n".repeat(9))).collect::<String>();
    let (old, new) = (sparse("old"), sparse("new"));
    let cut = of_change("f", &changed("f", Some(old.as_bytes()), Some(new.as_bytes())), 10_000);
    assert!(cut.len() < 10_100 && cut.contains(" more hunks of this file not shown]"), "{cut}");
    let many: Vec<Change> = (0..20)
        .map(|n| changed(&format!("f{n}"), None, Some("x".repeat(60_000).as_bytes())))
        .collect();
    let all = of_changes(&many);
    assert!(all.len() <= DIFFS_BYTES_MAX + 100 && all.contains("more hunk of this file not shown"));
    assert_eq!(all.matches("diff --git ").count(), many.len(), "every file is named");
}

/// Applies a diff as Git does: hunk by hunk, by line numbers alone.
fn applied(before: &str, diff: &str) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let (mut out, mut next) = (String::new(), 0);
    let mut lines =
        diff.split_inclusive('\n').skip_while(|line| !line.starts_with("@@")).peekable();
    while let Some(line) = lines.next() {
        if let Some(range) = line.strip_prefix("@@ -") {
            let range = range.split(' ').next().unwrap();
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            let start: usize = start.parse().unwrap();
            let first = if count == "0" { start } else { start - 1 };
            out.extend(old[next..first].iter().copied());
            next = first;
            continue;
        }
        let is_open = lines.peek().is_some_and(|line| line.starts_with('\\'));
        let (sign, rest) = line.split_at(1);
        let rest = if is_open { rest.strip_suffix('\n').unwrap() } else { rest };
        match sign {
            " " | "-" => {
                assert_eq!(old[next], rest, "{diff}");
                next += 1;
            }
            _ => {}
        }
        if matches!(sign, " " | "+") {
            out.push_str(rest);
        }
    }
    out.extend(old[next..].iter().copied());
    out
}

fn content() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["a\n", "b\n", "c\r\n", "d\re\n", "\n", " \n", "- x\n"]);
    let last = prop::sample::select(vec!["", "open", "\r"]);
    (prop::collection::vec(line, 0..20), last).prop_map(|(lines, last)| lines.concat() + last)
}

proptest! {
    #[test]
    fn a_diff_makes_the_new_content_of_the_old_one(before in content(), after in content()) {
        let diff = text(&before, &after);
        let outcome = if before == after { before.clone() } else { applied(&before, &diff) };
        prop_assert_eq!(outcome, after);
    }
}

#[test]
fn nothing_of_a_path_reaches_a_terminal() {
    let path = "a\u{202e}b\u{1b}[2J";
    let diff = of_shown(path, &changed(path, None, Some(b"x\n")));
    assert!(!diff.contains('\u{1b}') && !diff.contains('\u{202e}'), "{diff}");
}
