use super::*;
use proptest::prelude::*;

fn typed(editor: &mut Editor, text: &str) {
    let history = History::default();
    for c in text.chars() {
        editor.key(Key::Char(c), &history);
    }
}

fn press(editor: &mut Editor, keys: &[Key]) {
    let history = History::default();
    for key in keys {
        editor.key(key.clone(), &history);
    }
}

fn with(text: &str) -> Editor {
    let mut editor = Editor::default();
    typed(&mut editor, text);
    editor
}

fn lines(words: &[&str]) -> History {
    let mut history = History::default();
    words.iter().for_each(|line| history.add(line));
    history
}

#[test]
fn the_line_is_edited() {
    let mut editor = with("hello world");
    press(&mut editor, &[Key::WordLeft, Key::Backspace, Key::Char(','), Key::Ctrl('e')]);
    assert_eq!(editor.text(), "hello,world");
    press(&mut editor, &[Key::Ctrl('w'), Key::Ctrl('a'), Key::Ctrl('y')]);
    assert_eq!(editor.text(), "worldhello,");
    press(&mut editor, &[Key::Ctrl('k')]);
    assert_eq!(editor.text(), "world");
    press(&mut editor, &[Key::Ctrl('u')]);
    assert_eq!(editor.text(), "");
}

#[test]
fn graphemes_are_one_key() {
    let mut editor = with("a👩‍👩‍👧e\u{301}");
    press(&mut editor, &[Key::Backspace]);
    assert_eq!(editor.text(), "a👩‍👩‍👧");
    press(&mut editor, &[Key::Left, Key::Delete]);
    assert_eq!(editor.text(), "a");
}

#[test]
fn lines_are_broken_three_ways() {
    let mut editor = with("one\\");
    press(&mut editor, &[Key::Enter]);
    typed(&mut editor, "two");
    press(&mut editor, &[Key::AltEnter, Key::Paste("three\nfour".into())]);
    assert_eq!(editor.text(), "one\ntwo\nthree\nfour");
    let history = History::default();
    let want = Outcome::Submit("one\ntwo\nthree\nfour".to_owned());
    assert_eq!(editor.key(Key::Enter, &history), want);
    assert!(editor.is_empty());
}

#[test]
fn blanks_alone_are_not_sent() {
    let mut editor = with("   ");
    assert_eq!(editor.key(Key::Enter, &History::default()), Outcome::Done);
    assert!(editor.is_empty());
}

#[test]
fn the_history_is_walked_and_the_line_kept() {
    let history = lines(&["one", "two"]);
    let mut editor = with("written");
    let mut go = |key| {
        editor.key(key, &history);
        editor.text().to_owned()
    };
    assert_eq!(go(Key::Up), "two");
    assert_eq!(go(Key::Up), "one");
    assert_eq!(go(Key::Up), "one");
    assert_eq!(go(Key::Down), "two");
    assert_eq!(go(Key::Down), "written");
    assert_eq!(go(Key::Down), "written");
}

#[test]
fn up_and_down_move_inside_a_text_first() {
    let history = lines(&["earlier"]);
    let mut editor = with("ab");
    press(&mut editor, &[Key::AltEnter, Key::Char('c')]);
    editor.key(Key::Up, &history);
    typed(&mut editor, "X");
    assert_eq!(editor.text(), "aXb\nc");
    editor.key(Key::Up, &history);
    assert_eq!(editor.text(), "earlier");
}

#[test]
fn the_history_is_searched() {
    let history = lines(&["cargo test", "git log", "cargo fmt"]);
    let mut editor = with("mine");
    let mut go = |keys: &[Key]| {
        keys.iter().for_each(|key| drop(editor.key(key.clone(), &history)));
        editor.text().to_owned()
    };
    assert_eq!(go(&[Key::Ctrl('r'), Key::Char('c'), Key::Char('a')]), "cargo fmt");
    assert_eq!(go(&[Key::Ctrl('r')]), "cargo test");
    assert_eq!(go(&[Key::Esc]), "mine");
    assert_eq!(go(&[Key::Ctrl('r'), Key::Char('g'), Key::Char('i'), Key::Enter]), "git log");
    assert_eq!(go(&[Key::Char('!')]), "git log!");
}

#[test]
fn rows_and_cursor_fit() {
    let layout = Layout::of("abcdef", 6, "> ", 6);
    assert_eq!(layout.rows, ["> abc", "  def"]);
    assert_eq!(layout.cursor, (1, 5));
    let layout = Layout::of("語語語", 3, "> ", 8);
    assert_eq!(layout.rows, ["> 語語", "  語"]);
    assert_eq!(layout.cursor, (0, 4));
    let layout = Layout::of("a\n", 2, "> ", 20);
    assert_eq!(layout.rows, ["> a", "  "]);
    assert_eq!(layout.cursor, (1, 2));
}

#[test]
fn a_long_text_is_shown_around_the_cursor() {
    let text = "1\n2\n3\n4\n5\n6";
    let layout = Layout::of(text, text.len(), "", 20).bounded(3);
    assert_eq!(layout.rows, ["4", "5", "6"]);
    assert_eq!(layout.cursor, (2, 1));
    let layout = Layout::of(text, 0, "", 20).bounded(3);
    assert_eq!(layout.rows, ["1", "2", "3"]);
}

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![
        any::<char>().prop_filter("no control", |c| !c.is_control()).prop_map(Key::Char),
        Just(Key::Char('\u{301}')),
        Just(Key::Char('\u{200d}')),
        Just(Key::Char('👩')),
        prop::sample::select(vec![
            Key::AltEnter,
            Key::Backspace,
            Key::Delete,
            Key::Left,
            Key::Right,
            Key::Up,
            Key::Down,
            Key::Home,
            Key::End,
            Key::WordLeft,
            Key::WordRight,
            Key::DeleteWord,
            Key::Ctrl('k'),
            Key::Ctrl('u'),
            Key::Ctrl('w'),
            Key::Ctrl('y'),
            Key::Ctrl('r'),
            Key::Esc,
            Key::Enter,
            Key::Tab,
            Key::Alt('d'),
            Key::Paste("x\ny".into()),
        ]),
    ]
}

proptest! {
    /// Whatever is typed, the cursor stands between graphemes and the rows fit.
    #[test]
    fn any_keys_leave_it_whole(
        keys in prop::collection::vec(any_key(), 0..60),
        columns in 12usize..40,
    ) {
        let history = lines(&["one", "two\nthree", "👩‍👩‍👧"]);
        let mut editor = Editor::default();
        for key in keys {
            editor.key(key, &history);
            prop_assert!(editor.text.is_char_boundary(editor.cursor));
            let layout = editor.layout("> ", columns);
            if !editor.is_searching() {
                for row in &layout.rows {
                    prop_assert!(crate::text::width(row) <= columns, "{row:?}");
                }
            }
            prop_assert!(layout.cursor.0 < layout.rows.len());
        }
    }
}
