//! The skills of a working directory: texts that say how something is done here.
//!
//! A skill `N` is a file `N.md`, `N.txt`, `N.markdown`, `N/SKILL.md` or `N` in one of
//! [`DIRECTORIES`]; the first one counts. A link is followed inside the working directory only, and
//! what is no regular file is no skill. Never reads more of a file than is told of it.

use std::fs::File;
use std::io::Read as _;

use polyloop_session::shown::visible;

use super::files::{Links, Names, Target};
use super::{Place, TEXT_BYTES_MAX};

pub(crate) const DIRECTORIES: [&str; 2] = [".polyloop/skills", ".loom/skills"];
/// What may follow a skill's name in the path of its file.
const ENDINGS: [&str; 5] = [".md", ".txt", ".markdown", "/SKILL.md", ""];

const NAME_CHARS_MAX: usize = 64;
/// Of a description.
const DESCRIPTION_CHARS_MAX: usize = 200;
/// Of a skill's text.
pub(super) const SKILL_BYTES_MAX: usize = TEXT_BYTES_MAX - 1_024;
/// At the beginning of a file, for its description.
const HEAD_BYTES: u64 = 4 * 1024;
/// Of a directory; further ones are not looked at.
const ENTRIES_MAX: usize = 1_000;
/// Skills that the model is told of before it asks.
const TOLD_MAX: usize = 20;
const TOLD_BYTES_MAX: usize = 2 * 1024;
/// Skills that are listed in place of one that is not there.
const LISTED_MAX: usize = 100;

pub(super) struct Skill {
    /// As people see it.
    pub path: String,
    file: File,
    bytes: u64,
    /// The file is one of several in a directory of the skill's own.
    pub has_directory: bool,
}

/// Names are parts of file names and stand in markup, so they are plain.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "-_.+ ".contains(c);
    name.chars().all(plain)
        && (1..=NAME_CHARS_MAX).contains(&name.chars().count())
        && !name.starts_with(['.', ' '])
        && !name.ends_with([' ', '.'])
}

/// The error is for the model.
pub(super) fn find(name: &str, place: &Place) -> Result<Skill, String> {
    if is_name(name) {
        for directory in DIRECTORIES {
            for ending in ENDINGS {
                if let Some(skill) = open(place, &format!("{directory}/{name}"), ending)? {
                    return Ok(skill);
                }
            }
        }
    }
    let name = visible(&format!("{name:?}"));
    let name: String = name.chars().take(DESCRIPTION_CHARS_MAX).collect();
    let (skills, more) = list(place, LISTED_MAX);
    if skills.is_empty() {
        let directories = DIRECTORIES.join(" or ");
        return Err(format!("there is no skill {name}; there are none in {directories}"));
    }
    let mut told = format!("there is no skill {name}; there are:");
    skills.iter().for_each(|line| told.push_str(&format!("\n{line}")));
    if more > 0 {
        told.push_str(&format!("\n(and {more} more)"));
    }
    Err(told)
}

/// Nothing where nothing is; an error where a link leads astray, or to what is no file.
fn open(place: &Place, path: &str, ending: &str) -> Result<Option<Skill>, String> {
    let is_directory = place.cwd.join(path).is_dir();
    match ending {
        "" if is_directory => return Ok(None),
        "/SKILL.md" if !is_directory => return Ok(None),
        _ => {}
    }
    let target = Target::find(&format!("{path}{ending}"), place, Names::File, Links::FollowInside)?;
    if place.rules.closes(&target.real, &place.cwd) {
        return Ok(None);
    }
    let opened = target.root.open_file(&target.relative).map_err(|error| target.explain(error));
    let Some((file, stat)) = opened? else { return Ok(None) };
    let bytes = u64::try_from(stat.st_size).unwrap_or_default();
    let has_directory = ending.starts_with('/');
    Ok(Some(Skill { path: target.shown(), file, bytes, has_directory }))
}

impl Skill {
    /// The text, and whether something was cut from its end.
    pub(super) fn text(self) -> Result<(String, bool), String> {
        let failed = |error| format!("{}: cannot read it: {error}", self.path);
        let mut bytes = Vec::new();
        self.file.take(SKILL_BYTES_MAX as u64).read_to_end(&mut bytes).map_err(failed)?;
        let is_cut = self.bytes > SKILL_BYTES_MAX as u64;
        if is_cut
            && let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            // Our own cut went through a character.
            bytes.truncate(error.valid_up_to());
        }
        Ok((String::from_utf8_lossy(&bytes).into_owned(), is_cut))
    }

    fn description(self) -> String {
        let mut head = Vec::new();
        let _ = self.file.take(HEAD_BYTES).read_to_end(&mut head);
        let text = description(&String::from_utf8_lossy(&head));
        let mut shown: String = visible(&text).chars().take(DESCRIPTION_CHARS_MAX).collect();
        if shown.len() < visible(&text).len() {
            shown.push('…');
        }
        shown
    }
}

/// What the front matter calls the description, else the first line that says something. One line.
fn description(text: &str) -> String {
    let mut lines = text.trim_start_matches('\u{feff}').lines().peekable();
    if lines.next_if(|line| line.trim_end() == "---").is_some() {
        let matter = lines.by_ref().take_while(|line| line.trim_end() != "---");
        if let Some(found) = field(&matter.collect::<Vec<_>>(), "description:") {
            return found;
        }
    }
    let mut says = lines.map(|line| line.trim_start_matches('#').trim());
    one_line(says.find(|line| !line.is_empty()).unwrap_or_default())
}

/// The value of a field of the front matter, which may go on in indented lines.
fn field(matter: &[&str], name: &str) -> Option<String> {
    let at = matter.iter().position(|line| line.starts_with(name))?;
    let (first, rest) = matter.get(at..)?.split_first()?;
    let first = first.get(name.len()..)?.trim();
    let first = if ["|", ">", "|-", ">-"].contains(&first) { "" } else { first };
    let more = rest.iter().take_while(|line| line.starts_with([' ', '\t']));
    let whole = std::iter::once(first).chain(more.copied()).collect::<Vec<_>>().join(" ");
    let whole = one_line(&whole);
    let quoted = ['"', '\'']
        .into_iter()
        .find_map(|quote| whole.strip_prefix(quote).and_then(|whole| whole.strip_suffix(quote)));
    let whole = quoted.unwrap_or(&whole).to_owned();
    (!whole.is_empty()).then_some(whole)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line for each skill, up to `max`, in the order of their names; and how many more there are.
fn list(place: &Place, max: usize) -> (Vec<String>, usize) {
    let mut found: Vec<(String, String, &str)> = Vec::new();
    for directory in DIRECTORIES {
        if !place.cwd.join(directory).is_dir() {
            continue;
        }
        let Ok(target) = Target::find(directory, place, Names::Any, Links::FollowInside) else {
            continue;
        };
        let entries = std::fs::read_dir(&target.real).into_iter().flatten().flatten();
        for entry in entries.take(ENTRIES_MAX) {
            let Ok(file) = entry.file_name().into_string() else { continue };
            let ending = match entry.path().is_dir() {
                true => "/SKILL.md",
                false => ENDINGS.into_iter().find(|ending| file.ends_with(ending)).unwrap_or(""),
            };
            let name = file.strip_suffix(ending).unwrap_or(&file).to_owned();
            if is_name(&name) {
                let rank = |ending: &str| ENDINGS.iter().position(|one| *one == ending);
                let path = format!("{directory}/{name}");
                match found.iter_mut().find(|(known, ..)| *known == name) {
                    // The first directory and the first ending win, as they do in `find`.
                    Some((_, known, at)) if *known == path && rank(ending) < rank(at) => {
                        *at = ending
                    }
                    Some(_) => {}
                    None => found.push((name, path, ending)),
                }
            }
        }
    }
    found.sort();
    let mut lines = Vec::new();
    let mut rest = found.iter();
    for (name, path, ending) in rest.by_ref() {
        // One that cannot be opened is none.
        let Ok(Some(skill)) = open(place, path, ending) else { continue };
        let description = skill.description();
        let separator = if description.is_empty() { "" } else { ": " };
        lines.push(format!("- {name}{separator}{description}"));
        if lines.len() == max {
            break;
        }
    }
    (lines, rest.len())
}

/// What the model is told of the skills, if there are any. Says the same while they are the same.
pub(crate) fn told(place: &Place) -> Option<String> {
    let (lines, mut more) = list(place, TOLD_MAX);
    let mut text = "Skills, which say how something is done here; load one with the tool `skill` \
                    when it fits the task:"
        .to_owned();
    for (index, line) in lines.iter().enumerate() {
        if text.len() + line.len() + 1 > TOLD_BYTES_MAX {
            more += lines.len() - index;
            break;
        }
        text.push('\n');
        text.push_str(line);
    }
    if more > 0 {
        text.push_str(&format!(
            "\n(and {more} more; `skill` lists them when it is given no name of one)"
        ));
    }
    (!lines.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_one_line_wherever_it_stands() {
        for (text, want) in [
            ("---\nname: x\ndescription: Ships it.\n---\n# Title\n", "Ships it."),
            ("---\ndescription: \"Ships: it\"\r\n---\r\n", "Ships: it"),
            ("---\ndescription: >-\n  Ships\n  it.\nname: x\n---\n", "Ships it."),
            ("---\nname: x\n---\n\n# How to ship\nmore", "How to ship"),
            ("---\nname: x\n", ""),
            ("\u{feff}\n\n## How to  ship ##\n", "How to ship ##"),
            ("plain text\nmore", "plain text"),
            ("", ""),
        ] {
            assert_eq!(description(text), want, "{text:?}");
        }
    }

    #[test]
    fn names_are_plain() {
        for name in ["ship", "ship-it", "C++ style", "测试", "v1.2"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "..", "../x", "a/b", ".x", "a\0", "x\"y", "<x>", " x", "x.", "a\u{202e}"] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
