use super::*;
use crate::style::Style;
use proptest::prelude::*;

fn row(text: &str) -> Line {
    Line::of(text, Style::PLAIN)
}

fn screen() -> Screen<Vec<u8>> {
    Screen::new(Vec::new(), Colours::Off, Size { columns: 20, rows: 10 })
}

fn written(screen: &mut Screen<Vec<u8>>) -> String {
    String::from_utf8(std::mem::take(&mut screen.out)).unwrap()
}

#[test]
fn the_panel_is_drawn_in_its_place() {
    let mut screen = screen();
    let panel = |text: &str| Panel { rows: vec![row("status"), row(text)], cursor: (1, 3) };
    screen.draw(&[], panel("> a")).unwrap();
    assert_eq!(written(&mut screen), "\x1b[?25l\r\x1b[Jstatus\r\n> a\r\x1b[3C\x1b[?25h");
    screen.draw(&[row("done")], panel("> b")).unwrap();
    let want = "\x1b[?25l\x1b[1A\r\x1b[Jdone\r\nstatus\r\n> b\r\x1b[3C\x1b[?25h";
    assert_eq!(written(&mut screen), want);
    screen.draw(&[], panel("> b")).unwrap();
    assert_eq!(written(&mut screen), "", "nothing has changed");
}

#[test]
fn a_narrower_terminal_has_wrapped_the_panel() {
    let mut screen = screen();
    let rows = vec![row("0123456789abcdef"), row("> x")];
    screen.draw(&[], Panel { rows, cursor: (1, 3) }).unwrap();
    written(&mut screen);
    screen.resize(Size { columns: 8, rows: 10 });
    screen.leave().unwrap();
    assert_eq!(written(&mut screen), "\x1b[?25l\x1b[2A\r\x1b[J\x1b[?25h");
}

/// As much of a terminal as the screen makes use of.
struct Emulator {
    size: Size,
    /// What has left the screen at its top, and then the screen.
    rows: Vec<String>,
    top: usize,
    cursor: (usize, usize),
}

impl Emulator {
    fn new(size: Size) -> Emulator {
        Emulator { size, rows: vec![String::new()], top: 0, cursor: (0, 0) }
    }

    fn take(&mut self, text: &str) {
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => self.cursor.1 = 0,
                '\n' => self.down(),
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['));
                    let numbers: String = rest.clone().take_while(|c| !c.is_alphabetic()).collect();
                    rest = rest.as_str()[numbers.len()..].chars();
                    self.obey(&numbers, rest.next().unwrap());
                }
                c => self.put(c),
            }
        }
    }

    fn obey(&mut self, numbers: &str, end: char) {
        let count = numbers.parse().unwrap_or(1);
        match end {
            'A' => self.cursor.0 = self.cursor.0.saturating_sub(count).max(self.top),
            'C' => self.cursor.1 = (self.cursor.1 + count).min(self.size.columns - 1),
            'J' => {
                self.rows.truncate(self.cursor.0 + 1);
                self.rows[self.cursor.0].truncate(self.cursor.1);
            }
            'l' | 'h' => assert_eq!(numbers, "?25"),
            end => panic!("{numbers}{end}"),
        }
    }

    fn put(&mut self, c: char) {
        assert!(self.cursor.1 < self.size.columns, "a row is wider than the screen");
        let row = &mut self.rows[self.cursor.0];
        assert_eq!(row.len(), self.cursor.1, "something is written over");
        row.push(c);
        self.cursor.1 += 1;
    }

    fn down(&mut self) {
        self.cursor.0 += 1;
        if self.cursor.0 == self.rows.len() {
            self.rows.push(String::new());
        }
        self.top = self.top.max((self.cursor.0 + 1).saturating_sub(self.size.rows));
    }
}

fn words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-z]{0,18}", 0..5)
}

proptest! {
    /// Whatever was drawn before: what is done stands there once and in order, and the panel
    /// below it.
    #[test]
    fn the_history_is_whole(draws in prop::collection::vec((words(), words(), 0usize..5), 1..12)) {
        let size = Size { columns: 20, rows: 6 };
        let mut screen = Screen::new(Vec::new(), Colours::On, size);
        let mut emulator = Emulator::new(size);
        let mut history: Vec<String> = Vec::new();
        for (done, mut panel, at) in draws {
            panel.insert(0, "> ".to_owned());
            let at = at.min(panel.len() - 1);
            let cursor = (at, panel[at].len());
            let lines = |texts: &[String]| texts.iter().map(|text| row(text)).collect::<Vec<_>>();
            screen.draw(&lines(&done), Panel { rows: lines(&panel), cursor }).unwrap();
            emulator.take(&written(&mut screen));
            history.extend(done);
            let want: Vec<String> = history.iter().chain(&panel).cloned().collect();
            prop_assert_eq!(&emulator.rows, &want);
            prop_assert_eq!(emulator.cursor, (history.len() + cursor.0, cursor.1));
        }
    }
}
