//! `{a,b}` and `{1..3}`: text that stands for several words.

use super::super::grammar::{Piece, Word};

/// More words than this are not made of one.
const WORDS_MAX: usize = 256;

/// The words that one word stands for; an error where that is not certain.
pub(super) fn expand(word: &Word) -> Result<Vec<Word>, String> {
    let braced = |piece: &Piece| matches!(piece, Piece::Bare(text) if text.contains(['{', '}']));
    if !word.pieces.iter().any(braced) {
        return Ok(vec![word.clone()]);
    }
    let Some(text) = word.bare() else {
        return Err("braces beside quotation marks or something unknown".to_owned());
    };
    let words = alternatives(text)?;
    Ok(words.into_iter().map(|text| Word { pieces: vec![Piece::Bare(text)] }).collect())
}

fn alternatives(text: &str) -> Result<Vec<String>, String> {
    let unclear = || "braces that are not looked into".to_owned();
    let mut done = vec![String::new()];
    let mut rest = text;
    while let Some((before, braced)) = rest.split_once('{') {
        if before.contains('}') {
            return Err(unclear());
        }
        let (inner, after) = braced.split_once('}').ok_or_else(unclear)?;
        if inner.contains('{') {
            return Err(unclear());
        }
        let choices = choices(inner)?;
        if done.len() * choices.len() > WORDS_MAX {
            return Err("braces that stand for too many words".to_owned());
        }
        let with = |start: &String| {
            let start = format!("{start}{before}");
            choices.iter().map(move |choice| format!("{start}{choice}")).collect::<Vec<_>>()
        };
        done = done.iter().flat_map(with).collect();
        rest = after;
    }
    if rest.contains('}') {
        return Err(unclear());
    }
    Ok(done.into_iter().map(|start| start + rest).filter(|word| !word.is_empty()).collect())
}

fn choices(inner: &str) -> Result<Vec<String>, String> {
    if inner.contains(',') {
        return Ok(inner.split(',').map(str::to_owned).collect());
    }
    let Some((first, last)) = inner.split_once("..") else {
        return Ok(vec![format!("{{{inner}}}")]);
    };
    let number = |text: &str| {
        let plain = text.len() <= 4 && (text == "0" || !text.starts_with('0'));
        text.parse::<u16>().ok().filter(|_| plain && text.bytes().all(|b| b.is_ascii_digit()))
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last && usize::from(last - first) < WORDS_MAX => {
            Ok((first..=last).map(|number| number.to_string()).collect())
        }
        _ => Err("a range in braces that is not looked into".to_owned()),
    }
}
