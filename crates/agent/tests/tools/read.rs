//! What the reading tool shows of a file.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};

use polyloop_agent::tool::TEXT_BYTES_MAX;
use polyloop_session::item::End;
use serde_json::{Value, json};

use super::paths::tool;
use crate::{Ground, Test};

pub const ALL: &[Test] = &[
    ("lines_come_with_their_numbers", numbered),
    ("a_part_says_how_to_read_on", paged),
    ("long_lines_are_cut_and_say_so", long_lines),
    ("of_a_huge_file_only_what_is_shown_is_read", huge),
    ("what_is_no_text_is_named", no_text),
    ("line_endings_and_encodings_are_told", told),
    ("what_cannot_be_read_says_why", failures),
];

fn read(ground: &Ground, args: Value) -> String {
    let ended = ground.finish(tool("read"), args.clone());
    assert_eq!(ended.end, End::Whole, "{args}: {}", ended.seen());
    assert!(ended.output.len() <= TEXT_BYTES_MAX, "{}", ended.output.len());
    ended.output
}

fn numbered() {
    let ground = Ground::new();
    ground.write("f", "one\n\n\tthree\nlast");
    assert_eq!(
        read(&ground, json!({ "path": "f" })),
        "     1\tone\n     2\t\n     3\t\tthree\n     4\tlast\n"
    );
    let part = json!({ "path": "f", "offset": 2, "limit": 9 });
    assert_eq!(read(&ground, part), "     3\t\tthree\n     4\tlast\n");
    let exact = json!({ "path": "f", "offset": 3, "limit": 1 });
    assert_eq!(read(&ground, exact), "     4\tlast\n");
    ground.write("empty", "");
    assert_eq!(read(&ground, json!({ "path": "empty" })), "(the file is empty)\n");
}

fn paged() {
    let ground = Ground::new();
    let text: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
    ground.write("f", &text);
    let first = read(&ground, json!({ "path": "f" }));
    assert!(first.ends_with("  2000\tline 2000\n(more lines follow; read on with offset 2000)\n"));
    let last = read(&ground, json!({ "path": "f", "offset": 4_000 }));
    assert!(last.ends_with("  5000\tline 5000\n"), "{last}");
    let some = read(&ground, json!({ "path": "f", "offset": 10, "limit": 2 }));
    assert_eq!(
        some,
        "    11\tline 11\n    12\tline 12\n(more lines follow; read on with offset 12)\n"
    );
}

fn long_lines() {
    let ground = Ground::new();
    ground.write("f", &format!("{}\nshort\n{}", "x".repeat(9_999), "é".repeat(1_500)));
    let shown = read(&ground, json!({ "path": "f" }));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[0].len() - lines[0].find('…').unwrap(),
        "… (cut; the line has 10000 bytes)".len()
    );
    assert!(lines[0].contains(&"x".repeat(2_000)) && !lines[0].contains(&"x".repeat(2_001)));
    assert_eq!(lines[1], "     2\tshort");
    assert!(lines[2].contains("the line has 3000 bytes") && !lines[2].contains('\u{fffd}'));
    assert_eq!(lines.len(), 3, "no word of another encoding: {shown}");
}

/// 40 GiB, of which the disk has a page or two.
fn huge() {
    let ground = Ground::new();
    let mut file = File::create(ground.cwd().join("f")).unwrap();
    file.write_all("first line\n".repeat(50_000).as_bytes()).unwrap();
    file.seek(SeekFrom::Start(40 * 1024 * 1024 * 1024)).unwrap();
    file.write_all(b"\nend\n").unwrap();
    let shown = read(&ground, json!({ "path": "f", "offset": 40_000, "limit": 3 }));
    assert!(shown.starts_with(" 40001\tfirst line\n") && shown.contains("offset 40003"), "{shown}");
}

fn no_text() {
    let ground = Ground::new();
    fs::write(ground.cwd().join("p.png"), b"\x89PNG\r\n\x1a\n\0\0").unwrap();
    let shown = read(&ground, json!({ "path": "p.png" }));
    assert_eq!(shown, "(p.png is a PNG image of 10 bytes; it cannot be shown)\n");
    fs::write(ground.cwd().join("b"), b"\x7fELF\0\0").unwrap();
    let ended = ground.finish(tool("read"), json!({ "path": "b" }));
    assert_eq!(ended.end, End::Failed);
    assert!(ended.seen().contains("a binary file of 6 bytes"), "{}", ended.seen());
}

fn told() {
    let ground = Ground::new();
    ground.write("crlf", "a\r\nb\r\n");
    let shown = read(&ground, json!({ "path": "crlf" }));
    assert!(shown.starts_with("     1\ta\n     2\tb\n(lines end with CRLF"), "{shown:?}");
    fs::write(ground.cwd().join("latin"), b"caf\xe9\n").unwrap();
    let shown = read(&ground, json!({ "path": "latin" }));
    assert!(shown.starts_with("     1\tcaf\u{fffd}\n(not all of it is UTF-8"), "{shown}");
    ground.write("own", "\u{fffd}\n");
    assert_eq!(read(&ground, json!({ "path": "own" })), "     1\t\u{fffd}\n");
}

fn failures() {
    let ground = Ground::new();
    ground.write("f", "one\ntwo\n");
    for (args, part) in [
        (json!({ "path": "nosuch" }), "nosuch: there is no such file"),
        (json!({ "path": "f/x" }), "not a directory"),
        (json!({ "path": "f", "offset": 2 }), "has only 2 lines; `offset` is 2"),
        (json!({ "path": "f", "offset": 9 }), "has only 2 lines; `offset` is 9"),
    ] {
        let ended = ground.finish(tool("read"), args.clone());
        assert_eq!(ended.end, End::Failed, "{args}");
        assert!(ended.seen().contains(part), "{args}: {}", ended.seen());
    }
}
