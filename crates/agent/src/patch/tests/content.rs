//! E: bytes, line by line.

use super::*;

cases! {
    e1_crlf_is_kept: ["f" => b"a\r\nb\r\nc\r\n"] "*** Update File: f\n@@\n a\n-b\n+B\n+B2\n c\n+d",
        Files(&[("f", b"a\r\nB\r\nB2\r\nc\r\nd\r\n")]);
    e1_carriage_returns_in_an_lf_patch: ["f" => b"a\r\nb\r\n"]
        "*** Update File: f\n@@\n a\r\n-b\r\n+B\r\n+C", Files(&[("f", b"a\r\nB\r\nC\r\n")]);
    e1_crlf_can_be_asked_for: ["f" => b"a\nb\n"] "*** Update File: f\n@@\n a\n-b\n+b\r",
        Files(&[("f", b"a\nb\r\n")]);
    e2_mixed_endings_are_kept: ["f" => b"a\nb\r\nc\rd\ne"]
        "*** Update File: f\n@@\n a\n-b\n+B\n c\n d\n+n",
        Files(&[("f", b"a\nB\r\nc\rd\nn\ne")]);
    e2_old_mac: ["f" => b"a\rb\rc\r"] "*** Update File: f\n@@\n a\n-b\n+B\n+B2",
        Files(&[("f", b"a\rB\rB2\rc\r")]);
    e2_carriage_return_inside_a_patch_line: ["f" => b"a\rb\rc\n"]
        "*** Update File: f\n@@\n-a\rb\n+x\ry\n c", Files(&[("f", b"x\ry\rc\n")]);
    e3_no_final_newline_elsewhere: ["f" => b"a\nb\nc"] "*** Update File: f\n@@\n-a\n+A",
        Files(&[("f", b"A\nb\nc")]);
    e3_no_final_newline_replaced: ["f" => b"a\r\nb"] "*** Update File: f\n@@\n-b\n+B\n+C",
        Files(&[("f", b"a\r\nB\r\nC")]);
    e3_no_final_newline_appended: ["f" => b"a\nb"] "*** Update File: f\n@@\n b\n+c",
        Files(&[("f", b"a\nb\nc")]);
    e3_no_final_newline_appended_without_context: ["f" => b"a"] "*** Update File: f\n@@\n+b",
        Files(&[("f", b"a\nb")]);
    e3_no_final_newline_deleted: ["f" => b"a\nb"] "*** Update File: f\n@@\n a\n-b",
        Files(&[("f", b"a\n")]);
    e3_final_newline_stays: ["f" => b"a\nb\n"] "*** Update File: f\n@@\n-b\n+c",
        Files(&[("f", b"a\nc\n")]);
    e4_byte_order_mark: ["f" => b"\xef\xbb\xbfa\nb\n"] "*** Update File: f\n@@\n-a\n+A\n b",
        Files(&[("f", b"\xef\xbb\xbfA\nb\n")]);
    e4_byte_order_mark_of_an_emptied_file: ["f" => b"\xef\xbb\xbfa\n"]
        "*** Update File: f\n@@\n-a", Files(&[("f", b"\xef\xbb\xbf")]);
    e5_not_utf_8: ["f" => b"caf\xe9\nold\n\xff\xfe\n"] "*** Update File: f\n@@\n-old\n+néw",
        Files(&[("f", b"caf\xe9\nn\xc3\xa9w\n\xff\xfe\n")]);
    e6_binary: ["f" => b"a\n\0\n"] "*** Update File: f\n@@\n-a\n+b", Refused("a binary file");
    e6_binary_may_be_deleted: ["f" => b"a\n\0\n", "g" => b""] "*** Delete File: f",
        Files(&[("g", b"")]);
    e6_binary_may_be_moved: ["f" => b"a\n\0\n"] "*** Update File: f\n*** Move to: g",
        Files(&[("g", b"a\n\0\n")]);
    e8_nul_in_content: ["f" => b"a\n"] "*** Add File: g\n+a\0b", Refused("patch line 3");
    e8_nul_in_a_hunk: ["f" => b"a\n"] "*** Update File: f\n@@\n-a\n+a\0b", Refused("patch line 5");
}

#[test]
fn e1_a_crlf_patch_says_nothing_about_the_files() {
    let body = "*** Update File: lf\n@@\n-a\n+A\n*** Update File: crlf\n@@\n-a\n+A\n\
                *** Add File: new\n+a\n*** Update File: b\n*** Move to: c";
    let patch = wrapped(body).replace('\n', "\r\n");
    let ground = Ground::new(&[("lf", b"a\n"), ("crlf", b"a\r\n"), ("b", b"")]);
    plan(&ground.root, &parse(&patch).unwrap()).unwrap().apply(None).unwrap();
    let expected: [(&str, &[u8]); 4] =
        [("c", b""), ("crlf", b"A\r\n"), ("lf", b"A\n"), ("new", b"a\n")];
    let expected = expected.map(|(path, content)| (path.to_owned(), content.to_vec()));
    assert_eq!(ground.files(), BTreeMap::from(expected));
}

#[test]
fn e7_twenty_megabytes_are_written_and_a_hundred_refused() {
    let line = format!("+{}\n", "x".repeat(99));
    let ground = Ground::new(&[]);
    ground.apply(&format!("*** Add File: big\n{}", line.repeat(200_000))).unwrap();
    assert_eq!(fs::metadata(ground.inside("big")).unwrap().len(), 20_000_000);
    let error = ground.refused(&format!("*** Add File: huge\n{}", line.repeat(1_000_000)));
    assert!(matches!(error, PatchError::TooLarge { .. }), "{error}");
}

#[test]
fn limits_are_answers() {
    use crate::patch::{FILE_BYTES_MAX, FILE_LINES_MAX, HUNKS_MAX, PATCH_LINES_MAX, SECTIONS_MAX};
    let big = vec![b'x'; FILE_BYTES_MAX + 1];
    let long = b"\n".repeat(FILE_LINES_MAX + 1);
    let ground = Ground::new(&[("f", b"1\n"), ("big", &big), ("long", &long)]);
    for body in [
        "*** Delete File: big".to_owned(),
        "*** Update File: long\n@@\n-1\n+2".to_owned(),
        (0..=SECTIONS_MAX).map(|n| format!("*** Add File: {n}\n")).collect(),
        format!("*** Update File: f\n{}", "@@\n+1\n".repeat(HUNKS_MAX + 1)),
        format!("*** Update File: f\n@@\n{}", "+1\n".repeat(PATCH_LINES_MAX + 1)),
    ] {
        let error = ground.refused(&body);
        assert!(matches!(error, PatchError::TooLarge { .. }), "{error}");
    }
}
