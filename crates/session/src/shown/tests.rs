#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

#[test]
fn what_a_screen_would_not_show_is_written_as_its_code() {
    let shown = visible("a\u{202e}b\u{200b}\u{1b}[2J\u{a0}\r\u{e0041}\u{e000}\n\té⚡");
    assert_eq!(shown, "a\\u{202e}b\\u{200b}\\u{1b}[2J\\u{a0}\\u{d}\\u{e0041}\\u{e000}\n\té⚡");
    assert_eq!(visible("plain 'text' ü \\u{41}"), "plain 'text' ü \\u{41}");
}

#[test]
fn honest_words_of_any_script_stay_as_they_are() {
    let rows = [
        "ls -la 'a b' | grep -c x && echo \"$HOME\" > out.txt\n\tdone",
        "cat отчёт.txt",
        "cat отчёт_2024-final.txt",
        "echo 日本語 中文 한국어 カタカナー",
        "touch Müller naïve façade Ærøskøbing Łódź",
        "touch Mu\u{308}ller nai\u{308}ve",
        "echo Ελλάδα",
        "echo हिन्दी ไทย ქართული հայերեն",
        "echo שלום",
        "echo ⚡ → ✓ 🎉 € £ § ° ©",
        "printf 'a\\nb' C:\\users \\\\u",
    ];
    for text in rows {
        assert_eq!(command(text), text);
        assert_eq!(sentence(text), text);
        assert_eq!(content(text), text);
        assert_eq!(prose(text), text);
    }
}

#[test]
fn look_alikes_are_written_as_their_codes() {
    let rows = [
        // Among Latin letters.
        ("\u{440}ip install", "\\u{440}ip install"),
        ("s\u{443}stemctl", "s\\u{443}stemctl"),
        ("cat пaроль", "cat \\u{43f}a\\u{440}\\u{43e}\\u{43b}\\u{44c}"),
        ("g\u{131}t", "g\\u{131}t"),
        ("\u{261}it", "\\u{261}it"),
        ("lү", "l\\u{4af}"),
        ("a日b", "a\\u{65e5}b"),
        ("mü\u{43b}", "mü\\u{43b}"),
        // Only such letters.
        ("\u{440}\u{440}", "\\u{440}\\u{440}"),
        ("\u{455}\u{443}\u{455}/x", "\\u{455}\\u{443}\\u{455}/x"),
        ("\u{3bf}\u{3bd}", "\\u{3bf}\\u{3bd}"),
        ("\u{585}\u{578}", "\\u{585}\\u{578}"),
        ("\u{13a0}\u{13a1}", "\\u{13a0}\\u{13a1}"),
        ("\u{2c9f}", "\\u{2c9f}"),
        ("\u{a4d0}\u{a4d1}", "\\u{a4d0}\\u{a4d1}"),
        ("\u{ff4c}\u{ff53}", "\\u{ff4c}\\u{ff53}"),
        ("\u{1d42b}\u{1d426} x", "\\u{1d42b}\\u{1d426} x"),
        ("\u{1d00}\u{1d04}", "\\u{1d00}\\u{1d04}"),
        ("7\u{43e}", "7\\u{43e}"),
        ("\u{661}\u{662}", "\\u{661}\\u{662}"),
        ("rm \u{4e00}rf", "rm \\u{4e00}rf"),
        ("ls \u{4e00}", "ls \\u{4e00}"),
        // In an honest word, letters in another dress.
        ("отчёт\u{ff41}", "отчёт\\u{ff41}"),
        ("\u{430}\u{1d400}0", "\\u{430}\\u{1d400}0"),
        // Marks that hide, and marks on nothing.
        ("a\u{338}b", "a\\u{338}b"),
        ("/\u{301}x", "/\\u{301}x"),
        ("a\u{301}\u{302}\u{303}", "a\u{301}\u{302}\\u{303}"),
    ];
    for (text, want) in rows {
        assert_eq!(command(text), want, "{text:?}");
        assert_eq!(sentence(text), want, "{text:?}");
        assert_eq!(content(text), text);
    }
}

#[test]
fn signs_like_those_of_the_shell_are_written_as_their_codes() {
    let signs = "‐‑‒–—―−﹣－‘’‚‛“”„‟′″«»‹›´ʼˈ＇＂｀ˋ∕⁄⧸／╱＼∖⧵;；؛|∣｜│ǀ❘＄﹩․‥。．…：∶ː׃！ǃ？＆﹠＊∗٭\
                 ＃％＠～∼˜＾ˆ＿＝＋（）［］｛｝＜＞〈〉⟨⟩，‚、·•×";
    // What people write in Japanese, and looks like nothing else.
    let honest = ['。', '、', ';', '|'];
    for sign in signs.chars().filter(|c| !c.is_whitespace() && !honest.contains(c)) {
        let (text, code) = (format!("a {sign} b{sign}c"), sign.escape_unicode());
        assert_eq!(command(&text), format!("a {code} b{code}c"), "{sign}");
        assert_eq!(content(&text), text);
        assert_eq!(prose(&text), text);
    }
    assert_eq!(command("a\u{37e} b"), "a\\u{37e} b");
    assert_eq!(sentence("deletes `a…`"), "deletes `a…`");
}

#[test]
fn a_code_in_the_text_itself_is_told_from_ours() {
    assert_eq!(command("\u{202e}"), "\\u{202e}");
    assert_eq!(command("\\u{202e}"), "\\u{5c}u{202e}");
    assert_eq!(command("\\u{5c}u{202e}"), "\\u{5c}u{5c}u{202e}");
    assert_eq!(content("\\\\u{1b}"), "\\\\u{5c}u{1b}");
    assert_eq!(sentence("\\u{202e}"), "\\u{202e}");
}

#[test]
fn contents_keep_their_lines_and_a_patch_names_its_files_as_paths() {
    assert_eq!(content("a\r\nb\tc\rd\n"), "a\r\nb\tc\\u{d}d\n");
    let text =
        "*** Begin Patch\r\n*** Update File: \u{440}ath\r\n@@\n-р\u{440}ath\n+p\u{202e}x \\u{41}\n";
    let want = "*** Begin Patch\r\n*** Update File: \\u{440}ath\r\n@@\n-р\u{440}ath\n\
                +p\\u{202e}x \\u{5c}u{41}\n";
    assert_eq!(patch(text), want);
    assert_eq!(read_back(want), text);
}

#[test]
fn codes_that_were_not_ours_are_not_read_back() {
    for text in
        ["\\u{41}", "\\u{E9}", "\\u{202E}", "\\u{0202e}", "\\u{}", "\\u{d800}", "\\u{5c}", "\\u{"]
    {
        assert_eq!(read_back(text), text);
    }
    assert_eq!(read_back("+\\u{e9}"), "+\\u{e9}");
}

#[test]
fn prose_keeps_what_joins_letters_and_pictures() {
    let rows = [
        "⚠️ careful",
        "👩\u{200d}💻 ❤️\u{200d}🔥",
        "1\u{fe0f}\u{20e3}",
        "می\u{200c}خواهم",
        "a\u{a0}!",
    ];
    for text in rows {
        assert_eq!(prose(text), text);
    }
    assert_eq!(prose("a\u{200d}b\u{fe0f}c\u{200f}"), "a\\u{200d}b\\u{fe0f}c\\u{200f}");
    assert_eq!(command("⚠️"), "⚠\\u{fe0f}");
}

/// Characters of every kind that there is a rule for, and what codes are made of.
fn nasty() -> impl Strategy<Value = String> {
    let some = "aelpru05c2b{}\\ \n\t\r/*-+'@.\u{1b}\u{7f}\u{85}\u{a0}\u{ad}\u{200b}\u{200d}\u{202e}\
                \u{2066}\u{2028}\u{feff}\u{fe0f}\u{e0041}\u{e000}\u{10ffff}\u{3164}\u{301}\u{338}\
                аеорсуxпёλονü\u{131}ß日一ー\u{ff41}\u{1d400}\u{661}шלא‐“∕；𝟎⚡🎉";
    let some: Vec<char> = some.chars().collect();
    let one = prop_oneof![8 => prop::sample::select(some), 1 => any::<char>()];
    let piece = prop_oneof![
        8 => one.prop_map(|c| c.to_string()),
        1 => Just("\\u{".to_string()),
        1 => Just("\\u{5c}".to_string()),
        1 => Just("\\u{202e}".to_string()),
        1 => Just("\n*** Add File: ".to_string()),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn any_code(shown: &str) -> String {
    uncoded(shown, |c| !c.is_ascii() || is_deceptive(c))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// What is shown says exactly what runs, so different commands never look the same.
    #[test]
    fn what_is_shown_can_be_read_back(text in nasty()) {
        prop_assert_eq!(any_code(&command(&text)), text.as_str());
        prop_assert_eq!(any_code(&content(&text)), text.as_str());
        prop_assert_eq!(read_back(&patch(&text)), text.as_str());
    }

    #[test]
    fn nothing_deceptive_is_shown(text in nasty()) {
        let safe = |shown: &str| !shown.chars().any(is_deceptive);
        prop_assert!(safe(&command(&text)));
        prop_assert!(safe(&sentence(&text)));
        prop_assert!(safe(&visible(&text)));
        prop_assert!(safe(&content(&text).replace("\r\n", "")));
        prop_assert!(safe(&patch(&text).replace("\r\n", "")));
        prop_assert!(!command(&text).chars().any(is_sign));
        for word in command(&text).split(|c| !in_word(c)) {
            let kinds: Vec<Kind> = word.chars().map(kind).collect();
            let mixed = kinds.contains(&Kind::Ascii)
                && (kinds.contains(&Kind::Alike) || kinds.contains(&Kind::Other));
            prop_assert!(!mixed, "{word:?}");
        }
    }

    /// A piece of a sentence may go through several hands.
    #[test]
    fn what_is_visible_stays_so(text in nasty()) {
        prop_assert_eq!(visible(&visible(&text)), visible(&text));
    }
}
