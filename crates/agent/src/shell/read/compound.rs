//! Groups, conditions, loops and here-documents.

use super::super::grammar::{Body, List, Piece, Redirect, Word};
use super::{Doc, Reader, is_name};

impl Reader<'_> {
    /// A command that holds commands, if one begins here.
    pub(super) fn compound(&mut self) -> Result<Option<Body>, String> {
        if self.starts("((") {
            return Err("`((…))` calculates, and may change variables".to_owned());
        }
        if self.eat("(") {
            return self.closed_by_parenthesis().map(|list| Some(Body::Subshell(list)));
        }
        let Some(word) = self.bare() else { return Ok(None) };
        let body = match word {
            "{" => {
                self.at += 1;
                let list = self.list(&["}"])?;
                self.expect("}")?;
                Body::Group(list)
            }
            "if" => self.condition()?,
            "while" => {
                self.expect("while")?;
                let condition = self.list(&["do"])?;
                self.expect("do")?;
                Body::While { condition, body: self.body()? }
            }
            "for" => self.for_each()?,
            "[[" => {
                self.only_bash("[[")?;
                self.at += 2;
                self.conditional()?
            }
            "case" | "coproc" | "function" | "select" | "until" => {
                return Err(format!("`{word}` is not looked into"));
            }
            _ => return Ok(None),
        };
        Ok(Some(body))
    }

    /// The commands up to `)`, whose `(` has been read.
    pub(super) fn closed_by_parenthesis(&mut self) -> Result<List, String> {
        let outer = self.docs.len();
        let list = self.list(&[])?;
        if self.docs.len() != outer || !self.eat(")") {
            return Err(self.odd());
        }
        Ok(list)
    }

    fn body(&mut self) -> Result<List, String> {
        let list = self.list(&["done"])?;
        self.expect("done")?;
        Ok(list)
    }

    fn condition(&mut self) -> Result<Body, String> {
        let mut arms = Vec::new();
        self.expect("if")?;
        loop {
            let condition = self.list(&["then"])?;
            self.expect("then")?;
            arms.push((condition, self.list(&["elif", "else", "fi"])?));
            if !self.eat_word("elif") {
                break;
            }
        }
        let otherwise = match self.eat_word("else") {
            true => Some(self.list(&["fi"])?),
            false => None,
        };
        self.expect("fi")?;
        Ok(Body::If { arms, otherwise })
    }

    fn for_each(&mut self) -> Result<Body, String> {
        self.expect("for")?;
        self.blanks();
        let name = self.bare().filter(|name| is_name(name)).ok_or_else(|| self.odd())?.to_owned();
        self.at += name.len();
        self.lines()?;
        self.expect("in")?;
        let mut words = Vec::new();
        loop {
            self.blanks();
            if !self.at_word() {
                break;
            }
            words.push(self.word()?);
        }
        if !self.eat(";") && self.peek() != Some('\n') {
            return Err(self.odd());
        }
        self.lines()?;
        self.expect("do")?;
        Ok(Body::For { name, words, body: self.body()? })
    }

    /// The words up to `]]`.
    fn conditional(&mut self) -> Result<Body, String> {
        let mut words = Vec::new();
        let mut open = 0usize;
        loop {
            self.blanks();
            if self.eat("&&") || self.eat("||") {
                continue;
            }
            if self.eat("(") {
                open += 1;
                continue;
            }
            if self.eat(")") {
                open = open.checked_sub(1).ok_or_else(|| self.odd())?;
                continue;
            }
            if let Some(c @ ('<' | '>')) = self.peek().filter(|_| !self.starts("<(")) {
                self.at += 1;
                words.push(Word { pieces: vec![Piece::Bare(c.to_string())] });
                continue;
            }
            if !self.at_word() {
                return Err(self.odd());
            }
            if self.eat_word("]]") {
                return if open == 0 { Ok(Body::Conditional(words)) } else { Err(self.odd()) };
            }
            words.push(self.word()?);
        }
    }

    /// After `<<`: its text follows the end of the line.
    pub(super) fn here_document(&mut self) -> Result<Redirect, String> {
        if self.inside > 0 {
            return Err("a here-document inside of `$(…)`".to_owned());
        }
        let strip_tabs = self.eat("-");
        let mut doc = Doc { end: String::new(), strip_tabs, literal: false };
        for piece in self.target()?.pieces {
            match piece {
                Piece::Bare(text) => doc.end.push_str(&text),
                Piece::Quoted(text) => {
                    doc.literal = true;
                    doc.end.push_str(&text);
                }
                Piece::Variable { .. }
                | Piece::Output { .. }
                | Piece::Process(_)
                | Piece::Number => return Err(self.odd()),
            }
        }
        if doc.end.contains('\n') {
            return Err(self.odd());
        }
        self.docs.push(doc);
        Ok(Redirect::Text(None))
    }
}
