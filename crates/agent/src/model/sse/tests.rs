//! Streams as servers write them, whole and in pieces.

use proptest::prelude::*;

use super::*;

fn event(name: &str, data: &str) -> Event {
    Event { name: name.into(), data: data.into() }
}

fn read(bytes: &[u8]) -> Vec<Event> {
    Parser::new().push(bytes).unwrap()
}

/// The events, however the bytes are cut in two.
fn read_split(bytes: &[u8]) -> Vec<Event> {
    let whole = read(bytes);
    for at in 0..=bytes.len() {
        let mut parser = Parser::new();
        let mut events = parser.push(&bytes[..at]).unwrap();
        events.extend(parser.push(&bytes[at..]).unwrap());
        assert_eq!(events, whole, "cut at {at}");
    }
    let mut parser = Parser::new();
    let by_byte = bytes.iter().flat_map(|byte| parser.push(&[*byte]).unwrap());
    assert_eq!(by_byte.collect::<Vec<_>>(), whole, "byte by byte");
    whole
}

#[test]
fn every_way_to_write_an_event_is_read() {
    let one = [event("", "a")];
    let cases: [(&str, &[Event]); 22] = [
        ("data: a\n\n", &one),
        ("data:a\n\n", &one),
        ("data: a\r\n\r\n", &one),
        ("data: a\r\r", &one),
        ("data: a\n\r\n", &one),
        ("\u{feff}data: a\n\n", &one),
        ("\n\n\ndata: a\n\n\n\n", &one),
        (": a comment\ndata: a\n\n", &one),
        (":\ndata: a\n:\n\n", &one),
        ("id: 7\nretry: 9\ndata: a\nunknown: field\nno colon\n\n", &one),
        ("data:  a\n\n", &[event("", " a")]),
        ("data: a: b\n\n", &[event("", "a: b")]),
        ("data: a\ndata: b\n\n", &[event("", "a\nb")]),
        ("data\n\n", &[event("", "")]),
        ("data:\ndata:\n\n", &[event("", "\n")]),
        ("event: one\ndata: a\n\n", &[event("one", "a")]),
        ("event: one\nevent: two\ndata: a\n\n", &[event("two", "a")]),
        ("event: one\ndata: a\n\ndata: b\n\n", &[event("one", "a"), event("", "b")]),
        ("event: without data\n\n", &[]),
        ("data: never ended\n", &[]),
        ("data: never ended", &[]),
        ("data: é🙂\n\ndata: \u{feff}\n\n", &[event("", "é🙂"), event("", "\u{feff}")]),
    ];
    for (text, events) in cases {
        assert_eq!(read_split(text.as_bytes()), events, "{text:?}");
    }
}

#[test]
fn half_a_byte_order_mark_is_no_field() {
    assert_eq!(read_split(b"\xef\xbbdata: a\n\ndata: b\n\n"), [event("", "b")]);
    assert_eq!(read_split(b"\xef\xbb\xbfdata: a\n\n"), [event("", "a")]);
}

#[test]
fn bytes_that_are_no_text_are_data_all_the_same() {
    let events = read_split(b"event: \xff\ndata: \xc3(\n\n");
    assert_eq!(events, [Event { name: "\u{fffd}".into(), data: b"\xc3(".to_vec() }]);
}

#[test]
fn an_event_has_a_limit_and_a_comment_has_none() {
    let line = vec![b'x'; 1024 * 1024];
    let mut parser = Parser::new();
    parser.push(b": ").unwrap();
    for _ in 0..64 {
        assert_eq!(parser.push(&line), Ok(Vec::new()), "nothing of a comment is kept");
    }
    assert_eq!(parser.push(b"\ndata: a\n\n"), Ok(vec![event("", "a")]));

    parser.push(b"data: ").unwrap();
    for _ in 0..EVENT_BYTES_MAX / line.len() {
        assert_eq!(parser.push(&line), Ok(Vec::new()));
    }
    let mut full = Parser::new();
    full.push(b"data: ").unwrap();
    for _ in 0..10 {
        full.push(&line).unwrap();
    }
    let events = full.push(b"\n\n").unwrap();
    assert_eq!(events[0].data.len(), 10 * line.len(), "ten million bytes are one event");
    assert_eq!(parser.push(b"x"), Err(TooLong));
}

proptest! {
    /// What comes in pieces is what came whole; nothing breaks it.
    #[test]
    fn pieces_make_no_difference(
        bytes in proptest::collection::vec(
            prop_oneof![
                Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), Just(0xef_u8),
                Just(0xbb_u8), Just(0xbf_u8), any::<u8>(),
            ],
            0..120,
        ),
        words in proptest::collection::vec(
            proptest::sample::select(vec!["data", "event", "id", "data: a", "\n\n", "\r\n", ":"]),
            0..12,
        ),
        cuts in proptest::collection::vec(0..200_usize, 0..6),
    ) {
        let mut bytes = bytes;
        bytes.extend(words.concat().bytes());
        let whole = read(&bytes);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.push(bytes.len());
        cuts.sort_unstable();
        let (mut parser, mut from, mut events) = (Parser::new(), 0, Vec::new());
        for cut in cuts {
            events.extend(parser.push(&bytes[from..cut]).unwrap());
            from = cut;
        }
        prop_assert_eq!(events, whole);
    }
}
