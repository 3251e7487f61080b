//! Skills of the working directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use polyloop_agent::place::Instructions;
use polyloop_agent::tool::TEXT_BYTES_MAX;
use polyloop_session::item::End;
use serde_json::json;

use super::paths::tool;
use crate::{Ground, Test};

pub const ALL: &[Test] = &[
    ("a_skill_is_found_in_all_its_forms", forms),
    ("the_first_directory_and_form_win", precedence),
    ("a_miss_lists_what_there_is", miss),
    ("no_name_leads_out_of_the_skills", confined),
    ("a_long_skill_is_cut_at_a_character_and_says_so", long),
    ("the_model_is_told_of_skills_within_bounds", told),
];

fn add(ground: &Ground, path: &str, text: &str) {
    let path = ground.cwd().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn load(ground: &Ground, name: &str) -> String {
    let ended = ground.finish(tool("skill"), json!({ "name": name }));
    assert_eq!(ended.end, End::Whole, "{name}: {}", ended.seen());
    assert!(ended.output.len() <= TEXT_BYTES_MAX);
    ended.output
}

fn misses(ground: &Ground, name: &str) -> String {
    let ended = ground.finish(tool("skill"), json!({ "name": name }));
    assert_eq!(ended.end, End::Failed, "{name}: {}", ended.seen());
    ended.seen().to_owned()
}

fn content(name: &str, text: &str) -> String {
    format!("<skill_content name=\"{name}\">\n{text}\n</skill_content>\n")
}

fn forms() {
    let ground = Ground::new();
    for directory in [".polyloop/skills", ".loom/skills"] {
        let at = |name: &str| format!("{directory}/{name}");
        let mark = directory.len();
        add(&ground, &at(&format!("a{mark}.md")), "markdown");
        add(&ground, &at(&format!("b{mark}.txt")), "text\n");
        add(&ground, &at(&format!("c{mark}.markdown")), "long ending");
        add(&ground, &at(&format!("d{mark}/SKILL.md")), "a directory");
        add(&ground, &at(&format!("e{mark}")), "no ending");
        for (letter, text) in
            [("a", "markdown"), ("b", "text"), ("c", "long ending"), ("e", "no ending")]
        {
            let name = format!("{letter}{mark}");
            assert_eq!(load(&ground, &name), content(&name, text));
        }
        let name = format!("d{mark}");
        let beside = format!("(files that it names are beside {directory}/{name}/SKILL.md)\n");
        assert_eq!(load(&ground, &name), content(&name, "a directory") + &beside);
    }
}

fn precedence() {
    let ground = Ground::new();
    add(&ground, ".loom/skills/x.md", "loom");
    assert_eq!(load(&ground, "x"), content("x", "loom"));
    add(&ground, ".polyloop/skills/x", "bare");
    assert_eq!(load(&ground, "x"), content("x", "bare"));
    add(&ground, ".polyloop/skills/x.txt", "text");
    assert_eq!(load(&ground, "x"), content("x", "text"));
    add(&ground, ".polyloop/skills/x.md", "markdown");
    assert_eq!(load(&ground, "x"), content("x", "markdown"));
    assert_eq!(misses(&ground, "y"), "skill: there is no skill \"y\"; there are:\n- x: markdown");
}

fn miss() {
    let ground = Ground::new();
    let none = "skill: there is no skill \"x\"; there are none in .polyloop/skills or .loom/skills";
    assert_eq!(misses(&ground, "x"), none);
    let front = "---\nname: ship\ndescription: Ships\u{202e} it.\n---\n# Ship\n";
    add(&ground, ".polyloop/skills/ship/SKILL.md", front);
    add(&ground, ".polyloop/skills/assets/logo.txt", "no skill");
    add(&ground, ".loom/skills/test.md", "# How to test\n");
    add(&ground, ".loom/skills/quiet.md", "");
    add(&ground, ".loom/skills/.hidden.md", "hidden");
    assert_eq!(
        misses(&ground, "x"),
        "skill: there is no skill \"x\"; there are:\n- quiet\n- ship: Ships\\u{202e} it.\n- test: \
         How to test"
    );
    assert!(load(&ground, "ship").contains(front), "the text is whole");
    for n in 0..150 {
        add(&ground, &format!(".loom/skills/s{n:03}.md"), "x");
    }
    let why = misses(&ground, "x");
    assert!(why.ends_with("\n(and 53 more)"), "{why}");
}

fn confined() {
    let ground = Ground::new();
    add(&ground, ".polyloop/skills/good.md", "good");
    add(&ground, "secret.md", "SECRET");
    add(&ground, "store/own.md", "SECRET");
    let outside = ground.out().join("outside.md");
    fs::write(&outside, "SECRET").unwrap();
    let skills = ground.cwd().join(".polyloop/skills");
    symlink(&outside, skills.join("link.md")).unwrap();
    symlink(ground.cwd().join("store/own.md"), skills.join("own.md")).unwrap();
    symlink(ground.out(), skills.join("dir")).unwrap();
    fs::write(ground.out().join("SKILL.md"), "SECRET").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, skills.join("pipe.md"), rustix::fs::Mode::RWXU).unwrap();
    fs::create_dir(skills.join("folder.md")).unwrap();
    let absolute = outside.display().to_string();
    let names = [
        "../../secret",
        "..",
        ".",
        "",
        "/etc/passwd",
        &absolute,
        "link",
        "own",
        "dir",
        "pipe",
        "folder",
        "good/../../../secret",
        "good\0",
        "a\nb",
        "good.md/",
        "\"><x",
        "dir/SKILL",
        "%2e%2e/secret",
        "~/x",
    ];
    for name in names {
        let why = misses(&ground, name);
        assert!(!why.contains("SECRET"), "{name}: {why}");
    }
    assert!(misses(&ground, "x").ends_with("there are:\n- good: good"), "{}", misses(&ground, "x"));
    // Links inside are as good as files.
    symlink("good.md", skills.join("same.md")).unwrap();
    assert_eq!(load(&ground, "same"), content("same", "good"));
    // The whole directory leads out.
    fs::remove_dir_all(ground.cwd().join(".polyloop")).unwrap();
    fs::create_dir_all(ground.out().join("skills")).unwrap();
    fs::write(ground.out().join("skills/good.md"), "SECRET").unwrap();
    symlink(ground.out(), ground.cwd().join(".polyloop")).unwrap();
    assert!(!misses(&ground, "good").contains("SECRET"));
}

fn long() {
    let ground = Ground::new();
    add(&ground, ".polyloop/skills/long.md", &("x".to_owned() + &"é".repeat(100_000)));
    let text = load(&ground, "long");
    assert!(!text.contains('\u{fffd}'));
    assert!(text.ends_with("bytes; the rest is in .polyloop/skills/long.md)\n"), "{text:?}");
    let huge = fs::File::create(ground.cwd().join(".polyloop/skills/huge.md")).unwrap();
    huge.set_len(1 << 40).unwrap();
    load(&ground, "huge");
    fs::write(ground.cwd().join(".polyloop/skills/bytes.md"), b"caf\xe9").unwrap();
    assert_eq!(load(&ground, "bytes"), content("bytes", "caf\u{fffd}"));
}

fn told() {
    let ground = Ground::new();
    let (role, rules, own, kept) = ("ROLE".into(), "RULES".into(), None, Arc::default());
    let instructions = Instructions { role, rules, own, kept };
    let without = instructions.for_turn(&ground.place).to_string();
    assert!(!without.contains("Skills"), "{without}");
    add(&ground, ".polyloop/skills/ship.md", "---\ndescription: Ships\u{200b} it\n---\n");
    add(&ground, ".loom/skills/test/SKILL.md", "# How to test\n");
    let with = instructions.for_turn(&ground.place);
    assert!(with.starts_with(without.trim_end()), "{with:?}");
    let lines = "when it fits the task:\n- ship: Ships\\u{200b} it\n- test: How to test\n";
    assert!(with.ends_with(lines), "{with:?}");
    assert_eq!(instructions.for_turn(&ground.place), with, "byte by byte the same");
    for n in 0..60 {
        add(&ground, &format!(".loom/skills/s{n:02}.md"), &"word ".repeat(100));
    }
    let with = instructions.for_turn(&ground.place);
    let part = with.strip_prefix(without.trim_end()).unwrap();
    assert!(part.len() < 2 * 1024 + 200, "{} bytes", part.len());
    let shown = part.lines().filter(|line| line.starts_with("- ")).count();
    assert!(shown < 20 && part.contains(&format!("(and {} more;", 62 - shown)), "{part}");
}
