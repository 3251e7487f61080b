//! D: where a hunk belongs.

use proptest::prelude::*;

use super::*;
use crate::patch::edit::edit;
use crate::patch::matching::Budget;
use crate::patch::parse::Action;

const TWO: &[u8] = b"fn a() {\n    one();\n    two();\n}\nfn b() {\n    one();\n    two();\n}\n";

cases! {
    d1_not_there: ["f" => b"1\n2\n3\n"] "*** Update File: f\n@@\n 1\n-two\n+2",
        Refused("hunk 1 (patch line 3): not in the file:\n1\ntwo\nThe nearest place begins at \
                 line 1, but its line 2 is `2`, not `two`.");
    d2_two_places: ["f" => TWO] "*** Update File: f\n@@\n-    two();\n+    three();",
        Refused("hunk 1 (patch line 3) fits in several places (lines 3, 7…)");
    d2_many_places: ["f" => b"x\nx\nx\nx\nx\nx\nx\nx\n"] "*** Update File: f\n-x\n+y",
        Refused("(lines 1, 2, 3, 4, 5…)");
    d2_one_place_left_after_the_cursor: ["f" => b"x\ny\nx\n"]
        "*** Update File: f\n@@\n x\n-y\n+z\n@@\n-x\n+w", Files(&[("f", b"x\nz\nw\n")]);
    d2_line_number_chooses: ["f" => TWO]
        "*** Update File: f\n@@ -6,2 +6,2 @@\n one();\n-    two();\n+    three();",
        Files(&[("f",
            b"fn a() {\n    one();\n    two();\n}\nfn b() {\n    one();\n    three();\n}\n")]);
    d2_wrong_line_number_chooses_the_nearest: ["f" => TWO]
        "*** Update File: f\n@@ -900,2 +6,2 @@\n-    two();\n+    three();",
        Files(&[("f",
            b"fn a() {\n    one();\n    two();\n}\nfn b() {\n    one();\n    three();\n}\n")]);
    d2_line_number_between_two_places: ["f" => b"x\n1\nx\n"]
        "*** Update File: f\n@@ -2 +2 @@\n-x\n+y", Refused("several places");
    d2_heading_chooses_before_the_line_number: ["f" => TWO]
        "*** Update File: f\n@@ -1,2 +1,2 @@ fn b() {\n-    two();\n+    three();",
        Files(&[("f",
            b"fn a() {\n    one();\n    two();\n}\nfn b() {\n    one();\n    three();\n}\n")]);
    d2_wrong_heading_is_ignored: ["f" => b"a\nb\n"]
        "*** Update File: f\n@@ -1,2 +1,2 @@ fn nowhere()\n-a\n+A", Files(&[("f", b"A\nb\n")]);
    d2_misplaced_heading_is_ignored: ["f" => b"a\nb\n"]
        "*** Update File: f\n@@ -1,2 +1,2 @@ b\n-a\n+A", Files(&[("f", b"A\nb\n")]);
    d3_anchor_chooses: ["f" => TWO]
        "*** Update File: f\n@@ fn b()\n-    two();\n+    three();",
        Files(&[("f",
            b"fn a() {\n    one();\n    two();\n}\nfn b() {\n    one();\n    three();\n}\n")]);
    d3_the_first_after_the_anchor: ["f" => TWO]
        "*** Update File: f\n@@ fn a() {\n-    two();\n+    three();",
        Files(&[("f",
            b"fn a() {\n    one();\n    three();\n}\nfn b() {\n    one();\n    two();\n}\n")]);
    d3_anchor_repeated_as_context: ["f" => TWO]
        "*** Update File: f\n@@ fn b() {\n fn b() {\n-    one();",
        Files(&[("f", b"fn a() {\n    one();\n    two();\n}\nfn b() {\n    two();\n}\n")]);
    d3_missing_anchor: ["f" => TWO] "*** Update File: f\n@@ fn c() {\n-    two();",
        Refused("no line of the file is the anchor `fn c() {`");
    d3_context_before_its_anchor: ["f" => b"a\nb\nc\n"] "*** Update File: f\n@@ c\n-a\n+A",
        Refused("It is at line 1, but not behind its anchor.");
    d3_ambiguous_anchor: ["f" => b"A\n run\n  x\nB\n run\n  x\n"]
        "*** Update File: f\n@@ run\n-  x\n+  y", Refused("several places (lines 3, 6…)");
    d3_ambiguous_anchor_with_one_outcome: ["f" => b"A\n run\n  x\nB\n run\n  z\n"]
        "*** Update File: f\n@@ run\n-  z\n+  y",
        Files(&[("f", b"A\n run\n  x\nB\n run\n  y\n")]);
    d3_stacked_anchors: ["f" => b"A\n run\n  x\nB\n run\n  x\n"]
        "*** Update File: f\n@@ B\n@@ run\n-  x\n+  y",
        Files(&[("f", b"A\n run\n  x\nB\n run\n  y\n")]);
    d3_ambiguous_place_for_an_addition: ["f" => b"A\n run\nB\n run\n"]
        "*** Update File: f\n@@ run\n+  y", Refused("several places (lines 3, 5…)");
    d3_same_anchor_twice: ["f" => TWO]
        "*** Update File: f\n@@ fn b() {\n-    one();\n+    1();\n\
         @@ fn b() {\n-    two();\n+    2();",
        Files(&[("f",
            b"fn a() {\n    one();\n    two();\n}\nfn b() {\n    1();\n    2();\n}\n")]);
    d4_out_of_order: ["f" => b"1\n2\n3\n"] "*** Update File: f\n@@\n-3\n+c\n@@\n-1\n+a",
        Refused("It is at line 1: hunks must be in the order of the file.");
    d4_anchor_out_of_order: ["f" => b"1\n2\n3\n"] "*** Update File: f\n@@\n-3\n+c\n@@ 1\n+a",
        Refused("its anchor is before line 3");
    d4_overlapping: ["f" => b"1\n2\n3\n"] "*** Update File: f\n@@\n 1\n-2\n@@\n-2\n 3",
        Refused("hunk 2");
    d5_trailing_blanks: ["f" => b"keep \t\nold  \nend\n"]
        "*** Update File: f\n@@\n keep\n-old\n+new\n end", Files(&[("f", b"keep \t\nnew\nend\n")]);
    d5_outer_blanks: ["f" => b"\tkeep\n\told\n"] "*** Update File: f\n@@\n keep\n-old\n+\tnew",
        Files(&[("f", b"\tkeep\n\tnew\n")]);
    d5_look_alikes: ["f" => "a – b\u{a0}“c” ‘d’…\nold\n".as_bytes()]
        "*** Update File: f\n@@\n a - b \"c\" 'd'...\n-old\n+new",
        Files(&[("f", "a – b\u{a0}“c” ‘d’…\nnew\n".as_bytes())]);
    d6_exact_later_wins: ["f" => b"  x\ny\nx\ny\n"] "*** Update File: f\n@@\n x\n-y\n+z",
        Files(&[("f", b"  x\ny\nx\nz\n")]);
    d6_one_likeness_for_the_whole_hunk: ["f" => b"x \ny\nx\n y\n"]
        "*** Update File: f\n@@\n x\n-y\n+z", Files(&[("f", b"x \nz\nx\n y\n")]);
    d7_longer_than_the_file: ["f" => b"1\n"] "*** Update File: f\n@@\n 1\n 2\n-3",
        Refused("but the file ends there");
    d7_longer_at_the_end: ["f" => b"1\n"] "*** Update File: f\n@@\n 1\n 2\n-3\n*** End of File",
        Refused("hunk 1");
    d7_empty_file: ["f" => b""] "*** Update File: f\n@@\n-1\n+2", Refused("hunk 1");
    blank_line_at_the_end_may_be_a_separator: ["f" => b"1\n2\n"]
        "*** Update File: f\n@@\n-1\n+one\n\n@@\n-2\n+two\n \n",
        Files(&[("f", b"one\ntwo\n")]);
}

#[test]
fn d8_what_is_on_disk_now_counts() {
    let ground = Ground::new(&[("f", b"1\n2\n3\n")]);
    ground.write("f", b"0\n1\n2\n3\n4\n");
    let planned = ground.plan("*** Update File: f\n@@\n-2\n+two").unwrap();
    assert_eq!(planned.changes()[0].before.as_deref(), Some(&b"0\n1\n2\n3\n4\n"[..]));
    planned.apply(None).unwrap();
    assert_eq!(ground.read("f"), "0\n1\ntwo\n3\n4\n");
}

#[test]
fn d9_alike_lines_and_many_hunks_cost_little() {
    let file = "same\n".repeat(5_000);
    let ground = Ground::new(&[("f", file.as_bytes())]);
    let many = |header: &dyn Fn(usize) -> String| {
        let hunk = |n: usize| format!("{}\n same\n-same\n+other {n}\n", header(n));
        format!("*** Update File: f\n{}", (0..2_000).map(hunk).collect::<String>())
    };
    let error = ground.refused(&many(&|_| "@@".to_owned()));
    assert!(matches!(error, PatchError::Ambiguous { .. }), "{error}");
    ground.apply(&many(&|n| format!("@@ -{} +1 @@", n * 2 + 1))).unwrap();
    let lines: Vec<String> = ground.read("f").lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 5_000);
    assert_eq!(lines[3_999], "other 1999");
    assert_eq!(lines[3_998], "same");
}

#[test]
fn d9_the_search_has_an_end() {
    let file = "same\n".repeat(1_000);
    let hunks: String = (1..=100).map(|n| format!("@@ -{n} +1 @@\n-same\n+other\n")).collect();
    let mut enough = Budget::new(200_000);
    edited_within(file.as_bytes(), &hunks, &mut enough).unwrap();
    let mut too_little = Budget::new(50_000);
    let error = edited_within(file.as_bytes(), &hunks, &mut too_little).unwrap_err();
    assert!(matches!(error, PatchError::TooLarge { .. }), "{error}");
}

/// The outcome of hunks on a content.
fn edited(content: &[u8], hunks: &str) -> Result<Vec<u8>, PatchError> {
    edited_within(content, hunks, &mut Budget::new(1_000_000))
}

fn edited_within(content: &[u8], hunks: &str, budget: &mut Budget) -> Result<Vec<u8>, PatchError> {
    let patch = parse(&wrapped(&format!("*** Update File: f\n{hunks}"))).unwrap();
    let Action::Update { hunks, .. } = &patch.sections[0].action else { panic!("no update") };
    edit("f", content, hunks, budget)
}

/// Lines of which many are alike, and some only by blanks or look-alikes.
fn line() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "a ", " a", "b", "b\t", "“c”", "\"c\"", "- d", "– d", "", " "])
        .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// A hunk taken from the file is applied exactly where it was taken from, or it is ambiguous.
    #[test]
    fn d6_an_exact_hunk_lands_where_it_was_taken(
        lines in prop::collection::vec(line(), 1..14),
        from in any::<prop::sample::Index>(),
        length in 1_usize..5,
        deleted in any::<prop::sample::Index>(),
    ) {
        let from = from.index(lines.len());
        let block: Vec<String> = lines.iter().skip(from).take(length).cloned().collect();
        let deleted = deleted.index(block.len());
        let body: String = block.iter().enumerate().map(|(index, text)| {
            if index == deleted { format!("-{text}\n+changed\n") } else { format!(" {text}\n") }
        }).collect();
        let content: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let places = lines.windows(block.len()).filter(|window| *window == block).count();
        let outcome = edited(content.as_bytes(), &format!("@@\n{body}"));
        if places == 1 {
            let mut expected = lines.clone();
            expected[from + deleted] = "changed".to_owned();
            let expected: String = expected.iter().map(|line| format!("{line}\n")).collect();
            prop_assert_eq!(outcome.unwrap(), expected.into_bytes());
        } else {
            let is_ambiguous = matches!(outcome, Err(PatchError::Ambiguous { .. }));
            prop_assert!(is_ambiguous);
        }
    }

    /// Whatever a hunk says, only lines it deletes go, only lines it adds come, in one place.
    #[test]
    fn d6_nothing_outside_the_hunk_changes(
        lines in prop::collection::vec(line(), 0..14),
        endings in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 14),
        is_open in any::<bool>(),
        old in prop::collection::vec((line(), any::<bool>()), 1..4),
    ) {
        let mut bytes = Vec::new();
        for (index, (text, ending)) in lines.iter().zip(&endings).enumerate() {
            bytes.extend_from_slice(text.as_bytes());
            // Not UTF-8, so that nothing may pass through a decoder.
            bytes.push(0xe9);
            if !(is_open && index + 1 == lines.len()) {
                bytes.extend_from_slice(ending.as_bytes());
            }
        }
        bytes.extend_from_slice(if is_open { b"" } else { b"a\nb\na\nb\n" });
        let deletions = old.iter().filter(|(_, deleted)| *deleted).count();
        let body: String = old.iter().map(|(text, deleted)| {
            format!("{}{text}\n", if *deleted { '-' } else { ' ' })
        }).collect();
        if let Ok(outcome) = edited(&bytes, &format!("@@\n+NEW\n{body}")) {
            let before = crate::patch::text::lines(&bytes);
            let after = crate::patch::text::lines(&outcome);
            let new = after.iter().position(|line| line.text == b"NEW").unwrap();
            prop_assert_eq!(after.len(), before.len() + 1 - deletions);
            prop_assert_eq!(&after[..new], &before[..new]);
            let kept = after.len() - new - 1;
            // Behind the added line: what the hunk kept, then the rest of the file.
            let tail = kept.saturating_sub(old.len() - deletions);
            prop_assert_eq!(&after[after.len() - tail..], &before[before.len() - tail..]);
            let mut rest = before[new..].iter();
            prop_assert!(after[new + 1..].iter().all(|line| rest.any(|other| other == line)));
        }
    }

    /// No text makes the parser do anything but answer.
    #[test]
    fn parsing_is_total(pieces in prop::collection::vec(prop::sample::select(vec![
        "*** Begin Patch", "*** End Patch", "*** Add File: a", "*** Update File: a", "@@", "@@ x",
        "*** Delete File: a", "*** Move to: b", "*** End of File", "@@ -1,2 +3 @@ y", "+", "-x",
        " x", "", "é", "\r", "\\ No newline", "<<EOF", "EOF", "***", "\t",
    ]), 0..12), ending in prop::sample::select(vec!["\n", "\r\n"])) {
        let text = pieces.join(ending);
        if parse(&text).is_ok() {
            prop_assert!(text.contains("*** End Patch"));
        }
        let _ = parse(&wrapped(&text));
    }
}
