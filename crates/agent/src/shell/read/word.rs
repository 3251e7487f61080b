//! One word: quotation marks, and what stands for something else.

use super::super::grammar::{List, Piece, Word};
use super::{Dialect, Reader, is_meta, is_name};

impl Reader<'_> {
    pub(super) fn word(&mut self) -> Result<Word, String> {
        let mut word = Word::default();
        if self.starts("<(") {
            self.only_bash("<(…)")?;
            self.at += 2;
            let script = self.nested(Self::closed_by_parenthesis)?;
            word.pieces.push(Piece::Process(script));
            if self.peek().is_some_and(|c| !is_meta(c)) {
                return Err(self.odd());
            }
        }
        if self.starts("#") {
            return Err("a comment inside of `$(…)`".to_owned());
        }
        while let Some(c) = self.peek().filter(|c| !is_meta(*c)) {
            match c {
                '\'' => {
                    self.at += 1;
                    let text = self.until('\'')?;
                    word.pieces.push(Piece::Quoted(text));
                }
                '"' => {
                    self.at += 1;
                    self.double_quoted(&mut word)?;
                }
                '\\' => {
                    self.at += 1;
                    match self.bump() {
                        None => return Err("it ends with a backslash".to_owned()),
                        Some('\n') => return Err("a word goes on in the next line".to_owned()),
                        Some(c) => word.pieces.push(Piece::Quoted(c.to_string())),
                    }
                }
                '$' => self.dollar(&mut word, false)?,
                '`' => self.backquoted(&mut word, false)?,
                _ => {
                    self.at += c.len_utf8();
                    match word.pieces.last_mut() {
                        Some(Piece::Bare(text)) => text.push(c),
                        _ => word.pieces.push(Piece::Bare(c.to_string())),
                    }
                }
            }
        }
        // A function or a pattern; a descriptor in a variable; two words that are one.
        let descriptor = word.bare().is_some_and(|text| text.starts_with('{'))
            && self.peek().is_some_and(|c| matches!(c, '<' | '>'));
        if self.starts("(") || self.starts("<(") || descriptor {
            return Err(self.odd());
        }
        Ok(word)
    }

    /// The text up to a quotation mark, which is read too.
    fn until(&mut self, mark: char) -> Result<String, String> {
        let rest = self.rest();
        let Some((text, _)) = rest.split_once(mark) else {
            return Err(format!("a {mark} is not closed"));
        };
        self.same_line(text)?;
        self.at += text.len() + mark.len_utf8();
        Ok(text.to_owned())
    }

    /// Where the text of a here-document begins must be certain.
    fn same_line(&self, text: &str) -> Result<(), String> {
        match self.docs.is_empty() || !text.contains('\n') {
            true => Ok(()),
            false => Err("a quoted line end before a here-document".to_owned()),
        }
    }

    fn double_quoted(&mut self, word: &mut Word) -> Result<(), String> {
        let mut text = String::new();
        // Also for `""`, which is an empty word and not none.
        word.pieces.push(Piece::Quoted(String::new()));
        loop {
            match self.peek() {
                None => return Err("a \" is not closed".to_owned()),
                Some('"') => break,
                Some('\\') => {
                    self.at += 1;
                    match self.bump() {
                        Some('\n') => return Err("a word goes on in the next line".to_owned()),
                        Some(c @ ('$' | '`' | '"' | '\\')) => text.push(c),
                        Some(c) => text.extend(['\\', c]),
                        None => {}
                    }
                }
                Some(c @ ('$' | '`')) => {
                    word.pieces.push(Piece::Quoted(std::mem::take(&mut text)));
                    match c {
                        '$' => self.dollar(word, true)?,
                        _ => self.backquoted(word, true)?,
                    }
                }
                Some(c) => {
                    self.at += c.len_utf8();
                    text.push(c);
                }
            }
        }
        self.same_line(&text)?;
        word.pieces.push(Piece::Quoted(text));
        self.at += 1;
        Ok(())
    }

    /// What a `$` stands for, if for anything.
    fn dollar(&mut self, word: &mut Word, quoted: bool) -> Result<(), String> {
        self.at += 1;
        let piece = match self.peek() {
            Some('(') if self.starts("((") => self.calculation()?,
            Some('(') => {
                self.at += 1;
                let script = self.nested(Self::closed_by_parenthesis)?;
                Piece::Output { script, quoted }
            }
            Some('{') => self.parameter(quoted)?,
            Some('\'') if !quoted => {
                self.only_bash("$'…'")?;
                self.at += 1;
                Piece::Quoted(self.escaped()?)
            }
            Some('[') => return Err("`$[…]` calculates".to_owned()),
            Some('"') if !quoted => return Err("`$\"…\"` is translated".to_owned()),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.rest();
                let other = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
                let (name, _) = rest.split_at(rest.find(other).unwrap_or(rest.len()));
                self.at += name.len();
                Piece::Variable { name: name.to_owned(), changed: false, quoted }
            }
            Some(c) if c.is_ascii_digit() || "?#$!@*-".contains(c) => {
                self.at += 1;
                Piece::Variable { name: c.to_string(), changed: false, quoted }
            }
            _ => Piece::Quoted("$".to_owned()),
        };
        word.pieces.push(piece);
        Ok(())
    }

    fn nested(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<List, String>,
    ) -> Result<List, String> {
        if !self.docs.is_empty() {
            return Err("`$(…)` before the text of a here-document".to_owned());
        }
        self.deeper(|reader| {
            reader.inside += 1;
            let list = inner(reader);
            reader.inside -= 1;
            list
        })
    }

    /// `$((…))` of numbers: a name in it might be calculated again, and run something.
    fn calculation(&mut self) -> Result<Piece, String> {
        self.at += 2;
        let mut open = 0usize;
        while let Some(c) = self.bump() {
            match c {
                '(' => open += 1,
                ')' if open > 0 => open -= 1,
                ')' if self.eat(")") => return Ok(Piece::Number),
                _ if c.is_ascii_digit() || " +-*/%<>=!&|^~?:,".contains(c) => {}
                _ => break,
            }
        }
        Err("`$((…))` with something else than numbers".to_owned())
    }

    /// `${…}` with a name and at most one change of its value.
    fn parameter(&mut self, quoted: bool) -> Result<Piece, String> {
        let odd = self.odd();
        self.at += 1;
        let Some((inner, _)) = self.rest().split_once('}') else { return Err(odd) };
        let plain = |c: char| c.is_alphanumeric() || "_./*?:#%,^ +-".contains(c);
        if !inner.chars().all(plain) {
            return Err(odd);
        }
        self.at += inner.len() + 1;
        if let Some(name) = inner.strip_prefix('#') {
            return if is_name(name) { Ok(Piece::Number) } else { Err(odd) };
        }
        let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let (name, change) = inner.split_at(end.unwrap_or(inner.len()));
        let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == ':');
        let known = match change.strip_prefix(':') {
            Some(rest) if rest.starts_with(['-', '+']) => true,
            Some(rest) => self.dialect == Dialect::Bash && !rest.is_empty() && digits(rest),
            None => change.is_empty() || change.starts_with(['%', '#', '-', '+', '/', '^', ',']),
        };
        if !is_name(name) || !known {
            return Err(odd);
        }
        Ok(Piece::Variable { name: name.to_owned(), changed: !change.is_empty(), quoted })
    }

    fn backquoted(&mut self, word: &mut Word, quoted: bool) -> Result<(), String> {
        self.at += 1;
        let script = self.until('`')?;
        if script.contains('\\') || (quoted && script.contains('"')) {
            return Err("quotation marks inside of `…`".to_owned());
        }
        let (dialect, depth) = (self.dialect, self.depth);
        let list = self.nested(|_| {
            let docs = Vec::new();
            let mut inner = Reader { text: &script, at: 0, dialect, depth, inside: 1, docs };
            let list = inner.deeper(|inner| inner.list(&[]))?;
            if inner.peek().is_none() { Ok(list) } else { Err(inner.odd()) }
        })?;
        word.pieces.push(Piece::Output { script: list, quoted });
        Ok(())
    }

    /// The rest of `$'…'`, as far as it means one character each time.
    fn escaped(&mut self) -> Result<String, String> {
        let mut text = String::new();
        loop {
            match self.bump() {
                None => return Err("a ' is not closed".to_owned()),
                Some('\'') => break,
                Some('\\') => text.push(self.escape()?),
                Some(c) => text.push(c),
            }
        }
        self.same_line(&text)?;
        Ok(text)
    }

    fn escape(&mut self) -> Result<char, String> {
        let unclear = || "an escape in `$'…'` that is not looked into".to_owned();
        let number = |digits: &str, radix| {
            let code = u8::from_str_radix(digits, radix).ok().filter(|c| (0x20..0x7f).contains(c));
            code.map(char::from).ok_or_else(unclear)
        };
        match self.bump() {
            Some('n') => Ok('\n'),
            Some('t') => Ok('\t'),
            Some(c @ ('\\' | '\'' | '"' | '?')) => Ok(c),
            Some('x') => {
                let digits = self.rest().get(..2).ok_or_else(unclear)?;
                self.at += 2;
                number(digits, 16)
            }
            Some(c @ '0'..='7') => {
                let more = self.rest().get(..2).ok_or_else(unclear)?;
                self.at += 2;
                number(&format!("{c}{more}"), 8)
            }
            _ => Err(unclear()),
        }
    }
}
