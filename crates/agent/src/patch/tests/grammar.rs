//! C: the text of a patch.

use super::*;
use crate::patch::Operation;

const EXPRESS: &str = "import express from 'express';\nconst app = express();\n";
const EXPRESS_WITH_CORS: &str =
    "import express from 'express';\nimport cors from 'cors';\nconst app = express();\n";

cases! {
    c1_all_operations: ["u" => b"a\nb\n", "d" => b"gone\n", "m" => b"x\n"]
        "*** Add File: n/e/w\n+1\n+2\n*** Update File: u\n@@\n a\n-b\n+B\n*** Delete File: d\n\
         *** Update File: m\n*** Move to: n/m\n@@\n-x\n+y",
        Files(&[("n/e/w", b"1\n2\n"), ("u", b"a\nB\n"), ("n/m", b"y\n")]);
    c1_several_hunks: ["f" => b"1\n2\n3\n4\n5\n"]
        "*** Update File: f\n@@\n-2\n+two\n@@\n-4\n+four",
        Files(&[("f", b"1\ntwo\n3\nfour\n5\n")]);
    c1_move_alone: ["f" => b"1\n"] "*** Update File: f\n*** Move to: g", Files(&[("g", b"1\n")]);
    c1_blank_lines_between_sections: ["f" => b"1\n", "g" => b"1\n"]
        "\n*** Update File: f\n\n@@\n-1\n+2\n\n*** Update File: g\n@@\n-1\n+2\n\n\
         *** Add File: h\n+1\n\n*** Add File: i\n+1\n",
        Files(&[("f", b"2\n"), ("g", b"2\n"), ("h", b"1\n"), ("i", b"1\n")]);
    c2_empty: ["f" => b"1\n"] "", Refused("no files were modified");
    c2_no_effect: ["f" => b"1\n"] "*** Update File: f\n@@\n-1\n+1",
        Refused("no files were modified");
    c3_update_without_hunk: ["f" => b"1\n"] "*** Update File: f", Refused("patch line 2");
    c3_hunk_without_lines: ["f" => b"1\n"] "*** Update File: f\n@@", Refused("patch line 3");
    c4_unknown_header: ["f" => b"1\n"] "*** Add File: g\n+1\n*** Frobnicate File: x",
        Refused("patch line 4: `*** Frobnicate File: x` is no header");
    c8_bare_text: ["f" => b"1\n"] "*** Update File: f\n@@\n-1\nbare\n+2", Refused("patch line 5");
    c8_bare_unicode: ["f" => b"1\n"] "*** Update File: f\n@@\n-1\n…\n+2", Refused("patch line 5");
    c8_empty_line_is_context: ["f" => b"1\n\n2\n"] "*** Update File: f\n@@\n 1\n\n-2\n+3",
        Files(&[("f", b"1\n\n3\n")]);
    c8_empty_line_in_a_new_file: [] "*** Add File: f\n+1\n\n+2", Refused("begins with `+`");
    c8_no_newline_remark: ["f" => b"1"]
        "*** Update File: f\n@@ -1 +1 @@\n-1\n\\ No newline at end of file\n+2",
        Files(&[("f", b"2")]);
    c9_markers_as_content: ["f" => b"*** Add File: x\n*** End Patch\n@@\n"]
        "*** Update File: f\n@@\n *** Add File: x\n-*** End Patch\n+*** End of File\n @@\n+@@ y",
        Files(&[("f", b"*** Add File: x\n*** End of File\n@@\n@@ y\n")]);
    c10_nested: []
        "*** Add File: f\n+*** Begin Patch\n+*** Delete File: f\n+*** End Patch",
        Files(&[("f", b"*** Begin Patch\n*** Delete File: f\n*** End Patch\n")]);
    c11_add_without_lines: [] "*** Add File: f\n*** Add File: g\n+1",
        Files(&[("f", b""), ("g", b"1\n")]);
    c12_addition_alone_goes_to_the_end: ["f" => b"1\n2\n"] "*** Update File: f\n@@\n+3\n+4",
        Files(&[("f", b"1\n2\n3\n4\n")]);
    c12_addition_to_an_empty_file: ["f" => b""] "*** Update File: f\n@@\n+1",
        Files(&[("f", b"1\n")]);
    c12_addition_behind_its_anchor: ["f" => b"a {\n}\nb {\n}\n"]
        "*** Update File: f\n@@ b {\n+  new", Files(&[("f", b"a {\n}\nb {\n  new\n}\n")]);
    c12_addition_at_its_line_number: ["f" => b"1\n2\n3\n"]
        "*** Update File: f\n@@ -1,0 +2 @@\n+new", Files(&[("f", b"1\nnew\n2\n3\n")]);
    c12_addition_at_the_top: ["f" => b"1\n"] "*** Update File: f\n@@ -0,0 +1 @@\n+new",
        Files(&[("f", b"new\n1\n")]);
    c12_addition_beyond_the_end: ["f" => b"1\n"] "*** Update File: f\n@@ -90,0 +91 @@\n+new",
        Files(&[("f", b"1\nnew\n")]);
    c12_addition_to_the_end_leaves_the_rest: ["f" => b"1\n2\n"]
        "*** Update File: f\n@@\n+3\n@@\n-1\n+one\n@@\n+4",
        Files(&[("f", b"one\n2\n3\n4\n")]);
    c13_deletion_alone: ["f" => b"1\n2\n3\n"] "*** Update File: f\n@@\n 1\n-2\n 3",
        Files(&[("f", b"1\n3\n")]);
    c13_delete_every_line: ["f" => b"1\n2\n"] "*** Update File: f\n@@\n-1\n-2",
        Files(&[("f", b"")]);
    c14_the_end_wins: ["f" => b"a\nb\na\nb\n"]
        "*** Update File: f\n@@\n a\n-b\n+c\n*** End of File",
        Files(&[("f", b"a\nb\na\nc\n")]);
    c14_the_end_wins_over_a_better_likeness: ["f" => b"a\nb\na\nb  \n"]
        "*** Update File: f\n@@\n a\n-b\n+c\n*** End of File", Files(&[("f", b"a\nb\na\nc\n")]);
    c14_not_at_the_end_after_all: ["f" => b"a\nb\nc\n"]
        "*** Update File: f\n@@\n-b\n+B\n*** End of File", Files(&[("f", b"a\nB\nc\n")]);
    c15_two_ends_overlap: ["f" => b"a\nb\n"]
        "*** Update File: f\n@@\n a\n-b\n+c\n*** End of File\n@@\n-b\n+d\n*** End of File",
        Refused("hunk 2 (patch line 8)");
    c15_text_after_the_end: ["f" => b"a\nb\n"]
        "*** Update File: f\n@@\n-b\n+c\n*** End of File\n+d", Refused("patch line 7");
    c16_two_updates: ["f" => b"1\n2\n"]
        "*** Update File: f\n@@\n-2\n+two\n*** Update File: ./f\n@@\n-1\n+one\n two",
        Files(&[("f", b"one\ntwo\n")]);
    c17_delete_then_add: ["f" => b"old\n"] "*** Delete File: f\n*** Add File: f\n+new",
        Files(&[("f", b"new\n")]);
    c17_add_fails: ["f" => b"old\n"] "*** Delete File: f\n*** Add File: f/below\n+new",
        Refused("not a directory");
    c18_add_then_delete: ["f" => b"1\n"] "*** Add File: g\n+1\n*** Delete File: g",
        Refused("both makes and deletes");
    c18_add_then_move: ["f" => b"1\n"]
        "*** Add File: g\n+1\n*** Update File: g\n*** Move to: h", Refused("both makes and moves");
    c18_add_twice: [] "*** Add File: g\n+1\n*** Add File: g\n+2", Refused("makes it twice");
    c18_file_and_directory: [] "*** Add File: g/h\n+1\n*** Add File: g\n+2",
        Refused("a file and a directory");
    c18_delete_twice: ["f" => b"1\n"] "*** Delete File: f\n*** Delete File: f",
        Refused("removed it already");
    c19_move_onto_itself: ["f" => b"1\n"]
        "*** Update File: f\n*** Move to: d/../f\n@@\n-1\n+2", Files(&[("f", b"2\n")]);
    c19_move_onto_itself_unchanged: ["f" => b"1\n"] "*** Update File: f\n*** Move to: ./f",
        Refused("no files were modified");
    c20_swap: ["a" => b"A\n", "b" => b"B\n"]
        "*** Update File: a\n*** Move to: b\n*** Update File: b\n*** Move to: a",
        Refused("b: exists already");
    c20_replace_by_move: ["a" => b"A\n", "b" => b"B\n"]
        "*** Delete File: b\n*** Update File: a\n*** Move to: b", Files(&[("b", b"A\n")]);
    c20_move_away_and_add: ["a" => b"A\n"]
        "*** Update File: a\n*** Move to: a.d/a\n*** Add File: a\n+new",
        Files(&[("a", b"new\n"), ("a.d/a", b"A\n")]);
    the_protocols_own_example: ["src/app.ts" => EXPRESS.as_bytes()]
        "*** Update File: src/app.ts\n@@ -1,3 +1,4 @@\n import express from 'express';\n\
         +import cors from 'cors';\n const app = express();",
        Files(&[("src/app.ts", EXPRESS_WITH_CORS.as_bytes())]);
}

const BODY: &str = "*** Update File: f\n@@\n-1\n+2";

fn raw(text: &str) -> Result<String, String> {
    let ground = Ground::new(&[("f", b"1\n")]);
    let before = ground.snapshot();
    let outcome =
        parse(text).and_then(|patch| plan(&ground.root, &patch)).and_then(|plan| plan.apply(None));
    match outcome {
        Ok(_) => Ok(ground.read("f")),
        Err(error) => {
            assert_eq!(ground.snapshot(), before);
            Err(error.to_string())
        }
    }
}

#[test]
fn c5_a_prefix_of_a_patch_is_never_applied() {
    let whole = format!("{}\n", wrapped(&format!("{BODY}\n*** Add File: g\n+1")));
    let end = whole.trim_end().len();
    for cut in 0..end {
        let error = raw(&whole[..cut]).expect_err(&whole[..cut]);
        assert!(error.starts_with("patch line"), "{error}");
    }
    assert_eq!(raw(&whole[..end]).unwrap(), "2\n");
    assert!(raw("*** Begin Patch").unwrap_err().contains("cut off"));
    assert!(raw("").is_err());
}

#[test]
fn c6_what_may_stand_around_a_patch() {
    let patch = wrapped(BODY);
    for text in [
        format!("\n\n{patch}\n\n"),
        format!("<<'EOF'\n{patch}\nEOF"),
        format!("<<EOF\n{patch}\nEOF\n"),
        format!("<<\"EOF\"\n{patch}\nEOF\n"),
    ] {
        assert_eq!(raw(&text).as_deref(), Ok("2\n"), "{text}");
    }
    for text in [
        format!("Here is the patch:\n{patch}"),
        format!("{patch}\nDone."),
        format!("```\n{patch}\n```"),
        format!("```diff\n{patch}\n```"),
        format!("<<'EOF'\n{patch}"),
        format!("<<'END'\n{patch}\nEND"),
        format!("<<'EOF'\n```\n{patch}\n```\nEOF"),
        format!("{patch}\n{patch}"),
    ] {
        assert!(raw(&text).is_err(), "{text}");
    }
}

#[test]
fn c6_line_numbers_count_what_stands_before() {
    let error = raw(&format!("\n<<EOF\n\n{}\nEOF", wrapped("*** Nonsense"))).unwrap_err();
    assert!(error.starts_with("patch line 5"), "{error}");
}

#[test]
fn c7_markers_may_have_blanks_around_them() {
    for text in [
        format!(" *** Begin Patch\n{BODY}\n*** End Patch "),
        format!("*** Begin Patch \n{BODY}\n *** End Patch\n"),
        "*** Begin Patch\n  *** Update File:   f \t\n@@ \n-1\n+2\n*** End of File \n*** End Patch"
            .to_owned(),
    ] {
        assert_eq!(raw(&text).as_deref(), Ok("2\n"), "{text}");
    }
}

#[test]
fn changes_tell_what_undoing_needs() {
    let ground = Ground::new(&[("a", b"A\n"), ("b", b"B\n"), ("c", b"C\n"), ("d", b"D\n")]);
    let changes = ground
        .apply(
            "*** Update File: a\n@@\n-A\n+A2\n*** Update File: a\n@@\n-A2\n+A3\n\
             *** Delete File: b\n*** Update File: c\n*** Move to: b\n@@\n-C\n+C2\n\
             *** Add File: c\n+new\n*** Delete File: d\n*** Add File: d\n+D2",
        )
        .unwrap();
    type Told<'a> = (&'a str, Operation, Option<&'a [u8]>, Option<&'a [u8]>);
    let told: Vec<Told<'_>> = changes
        .iter()
        .map(|c| (c.path.as_str(), c.operation.clone(), c.before.as_deref(), c.after.as_deref()))
        .collect();
    let expected: [Told<'_>; 5] = [
        ("a", Operation::Update, Some(b"A\n"), Some(b"A3\n")),
        ("b", Operation::Delete, Some(b"B\n"), None),
        ("b", Operation::Move { from: "c".into() }, Some(b"C\n"), Some(b"C2\n")),
        ("c", Operation::Create, None, Some(b"new\n")),
        ("d", Operation::Update, Some(b"D\n"), Some(b"D2\n")),
    ];
    assert_eq!(told, expected);
    assert!(changes.iter().all(|c| c.before.is_some() == c.before_mode.is_some()));
}
