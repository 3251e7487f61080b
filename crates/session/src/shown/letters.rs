//! Letters that look like those of ASCII.
//!
//! A table by eye: what common fonts draw so alike that a word of such letters reads as another.
//! It decides what is shown, never what runs.

use super::signs::is_sign;

/// What a character of a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ascii,
    /// Of ASCII: at home in every script.
    Digit,
    /// A Latin letter that nobody takes for another: ü, ß, ø.
    Latin,
    /// Looks like a letter or a digit of ASCII.
    Alike,
    /// A letter of another script that looks like itself.
    Other,
    /// Drawn on the letter before it.
    Mark,
}

pub(super) fn kind(c: char) -> Kind {
    match c {
        c if c.is_ascii_digit() => Kind::Digit,
        c if c.is_ascii() => Kind::Ascii,
        c if is_mark(c) => Kind::Mark,
        c if is_alike(c) || is_sign(c) => Kind::Alike,
        '\u{c0}'..='\u{2af}' | '\u{1e00}'..='\u{1eff}' | '\u{2c60}'..='\u{2c7f}' => Kind::Latin,
        _ => Kind::Other,
    }
}

/// Marks that go with the letters of any script.
pub(super) fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{a670}'..='\u{a672}'
        | '\u{fe20}'..='\u{fe2f}')
}

/// Drawn through or around the letter, which hides what it is.
pub(super) fn is_overlay(c: char) -> bool {
    matches!(c,
        '\u{334}'..='\u{338}' | '\u{360}'..='\u{362}' | '\u{488}' | '\u{489}' | '\u{1abe}'
        | '\u{20d2}' | '\u{20d3}' | '\u{20d8}'..='\u{20da}' | '\u{20dd}'..='\u{20e0}'
        | '\u{20e2}'..='\u{20e6}' | '\u{20ea}' | '\u{20eb}' | '\u{a670}'..='\u{a672}')
}

fn is_alike(c: char) -> bool {
    is_latin_alike(c) || is_european(c) || is_afar(c) || is_whole_script(c) || is_digit(c)
}

/// Latin letters without their dot, in small capitals, long, or of phonetic alphabets.
fn is_latin_alike(c: char) -> bool {
    matches!(c,
        'ª' | 'º' | 'ı' | 'ĳ' | 'Ĳ' | 'ŀ' | 'ŉ' | 'ſ' | 'ƅ' | 'Ɩ' | 'ƨ' | 'Ƨ' | 'Ʒ' | 'ƽ' | 'Ƽ'
        | '\u{1c4}'..='\u{1cc}' | '\u{1f1}'..='\u{1f3}' | 'Ȝ' | 'Ȣ' | 'ȣ' | 'ȷ' | 'ɑ' | 'ɡ' | 'ɢ'
        | 'ɩ' | 'ɪ' | 'ɯ' | 'ɴ' | 'ɾ' | 'ʀ' | 'ʋ' | 'ʏ' | 'ʙ' | 'ʜ' | 'ʟ' | 'ʒ' | 'ɛ' | 'Ɛ'
        | 'ɵ' | 'Ɵ' | 'ʔ' | 'Ɂ' | 'ʗ' | 'ʘ' | 'ẟ' | '\u{1efe}' | '\u{1eff}'
        | '\u{1d00}'..='\u{1dbf}' | '\u{2c7c}' | '\u{2c7d}' | '\u{a720}'..='\u{a7ff}'
        | '\u{ab30}'..='\u{ab6f}' | '\u{fb00}'..='\u{fb06}' | '\u{ff21}'..='\u{ff5a}'
        | '\u{10780}'..='\u{107bf}' | '\u{1df00}'..='\u{1dfff}')
}

/// Greek, Cyrillic, Armenian, Georgian, Cherokee.
fn is_european(c: char) -> bool {
    matches!(c,
        'Α' | 'Β' | 'Ε' | 'Ζ' | 'Η' | 'Ι' | 'Κ' | 'Μ' | 'Ν' | 'Ο' | 'Ρ' | 'Τ' | 'Υ' | 'Χ' | 'Ϲ'
        | 'Ϳ' | 'Ϝ' | 'Ϻ' | 'α' | 'γ' | 'η' | 'ι' | 'ν' | 'ο' | 'ρ' | 'σ' | 'υ' | 'χ' | 'ω' | 'ϲ'
        | 'ϳ' | 'ϱ' | 'ϒ' | 'ϝ' | 'ϻ' | 'ϸ' | 'Ϸ' | 'ͺ' | 'ϰ' | 'Ϩ' | 'ͷ' | 'Ͷ'
        | 'А' | 'В' | 'Г' | 'Е' | 'З' | 'І' | 'Ј' | 'К' | 'М' | 'Н' | 'О' | 'Р' | 'С' | 'Т' | 'У'
        | 'Х' | 'Ь' | 'Ѕ' | 'Ү' | 'Ӏ' | 'Ѵ' | 'Ғ' | 'Ԁ' | 'Ԍ' | 'Ԛ' | 'Ԝ' | 'Һ' | 'Ӡ' | 'Ҽ'
        | 'а' | 'б' | 'г' | 'е' | 'з' | 'і' | 'ј' | 'о' | 'р' | 'с' | 'у' | 'х' | 'ь' | 'ѕ' | 'ү'
        | 'ӏ' | 'ѵ' | 'ѡ' | 'ԁ' | 'ԍ' | 'ԛ' | 'ԝ' | 'һ' | 'ӡ' | 'ҽ' | 'ғ' | '\u{a644}'..='\u{a647}'
        | '\u{1c82}' | '\u{1c83}'
        | 'Լ' | 'Ո' | 'Ս' | 'Տ' | 'Ց' | 'Օ' | 'Ֆ' | 'ա' | 'գ' | 'զ' | 'հ' | 'յ' | 'ո' | 'ռ' | 'ս'
        | 'ց' | 'ւ' | 'ք' | 'օ' | 'ղ' | 'Ⴝ' | 'Ⴍ' | 'Ⴑ' | 'ჿ' | 'ი' | 'ო' | 'ძ' | 'ხ'
        | 'Ꭰ' | 'Ꭱ' | 'Ꭲ' | 'Ꭵ' | 'Ꭹ' | 'Ꭺ' | 'Ꭻ' | 'Ꭼ' | 'Ꭾ' | 'Ꮃ' | 'Ꮇ' | 'Ꮋ' | 'Ꮍ' | 'Ꮐ'
        | 'Ꮎ' | 'Ꮒ' | 'Ꮓ' | 'Ꮖ' | 'Ꮞ' | 'Ꮟ' | 'Ꮢ' | 'Ꮤ' | 'Ꮥ' | 'Ꮩ' | 'Ꮪ' | 'Ꮮ' | 'Ꮯ' | 'Ꮲ'
        | 'Ꮶ' | 'Ꮷ' | 'Ꮻ' | 'Ᏻ' | 'Ᏼ' | 'ᏻ' | 'ᏼ' | '\u{ab70}'..='\u{abbf}')
}

/// Single letters, drawn as a circle, a bar, a hook, of scripts further off.
fn is_afar(c: char) -> bool {
    matches!(c,
        // Hebrew, Arabic, N'Ko.
        'ו' | 'ט' | 'י' | 'ן' | 'ס' | 'ا' | 'ه' | 'ھ' | 'ہ' | 'ە' | 'ة' | '\u{fe8d}' | '\u{fe8e}'
        | '\u{fee9}'..='\u{feec}' | '\u{fba6}'..='\u{fbad}' | 'ߊ' | 'ߋ'
        // India and its neighbours.
        | '\u{b20}' | '\u{b66}' | '\u{d20}' | '\u{d1f}' | '\u{101d}' | '\u{1012}' | '\u{e50}'
        | '\u{e40}' | '\u{1040}' | '\u{17b8}'
        // Ethiopia, the syllabics of Canada, Tifinagh.
        | 'ዐ' | 'ሀ' | 'በ' | 'ፐ' | 'ᐁ' | 'ᐯ' | 'ᐱ' | 'ᐤ' | 'ᐟ' | 'ᐠ' | 'ᑌ' | 'ᑎ' | 'ᑕ' | 'ᑭ' | 'ᑯ'
        | 'ᑲ' | 'ᒍ' | 'ᒐ' | 'ᒪ' | 'ᒿ' | 'ᔕ' | 'ᔑ' | 'ᕁ' | 'ᕼ' | 'ᕽ' | 'ᖇ' | 'ᖯ' | 'ᗅ' | 'ᗞ' | 'ᗪ'
        | 'ᗰ' | 'ᗱ' | 'ᗷ' | 'ᗴ' | 'ᙆ' | 'ᙢ' | 'ᙓ' | '\u{1d05}' | 'ⴹ' | 'ⵊ' | 'ⵍ' | 'ⵏ' | 'ⵑ' | 'ⵔ'
        | 'ⵙ' | 'ⵝ' | 'ⵠ'
        // East Asia: a dash, a bar, a slash, a circle.
        | '一' | 'ー' | 'ㅡ' | 'ㅣ' | 'ᅳ' | 'ᅵ' | 'ノ' | '〇' | 'ㅇ' | 'ᄋ' | 'へ' | 'ヘ' | 'ニ'
        | '\u{ff70}' | '\u{ff89}' | '\u{ff8d}' | '\u{ff86}' | '\u{ffda}' | '\u{ffdc}')
}

/// Scripts made of Latin forms, and those that nobody writes commands in any more.
fn is_whole_script(c: char) -> bool {
    matches!(c,
        '\u{3e2}'..='\u{3ef}' | '\u{16a0}'..='\u{16ff}' | '\u{2c00}'..='\u{2c5f}'
        | '\u{2c80}'..='\u{2cff}' | '\u{a4d0}'..='\u{a4ff}' | '\u{10000}'..='\u{100ff}'
        | '\u{10280}'..='\u{10cff}' | '\u{11700}'..='\u{1174f}' | '\u{118a0}'..='\u{118ff}'
        | '\u{16a40}'..='\u{16aff}' | '\u{16e40}'..='\u{16e9f}' | '\u{16f00}'..='\u{16f9f}')
}

/// Digits of other scripts: each has some that look like ours with another value.
fn is_digit(c: char) -> bool {
    !c.is_ascii() && c.is_numeric() && !matches!(c, '\u{3000}'..='\u{9fff}')
}
