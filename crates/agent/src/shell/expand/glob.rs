//! The names that a pattern matches.
//!
//! Finds at least what bash finds: a bracket is taken for any text. What is found too much is
//! judged too, so it can only make a command less safe.

use std::path::Path;

use super::super::look::Look;
use super::super::show::brief;
use super::super::walk::State;
use super::Sign;

/// More names than this are not looked up one by one.
const NAMES_MAX: usize = 1000;

/// One part of a pattern for a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Is(char),
    One,
    Any,
}

/// The names in the directories of the pattern; none if nothing matches.
pub(super) fn expand(
    signs: &[Sign],
    state: &State,
    look: &Look<'_>,
) -> Result<Vec<String>, String> {
    let whole: String = signs.iter().map(|sign| sign.c).collect();
    let mut found = vec![String::new()];
    for component in signs.split_inclusive(|sign| sign.c == '/') {
        let (component, slash) = match component.split_last() {
            Some((last, before)) if last.c == '/' => (before, "/"),
            _ => (component, ""),
        };
        let parts = parts(component);
        let Some(parts) = parts else {
            let name: String = component.iter().map(|sign| sign.c).collect();
            found.iter_mut().for_each(|path| path.extend([name.as_str(), slash]));
            continue;
        };
        if parts.first() == Some(&Part::Is('.')) {
            return Err(format!("`{}` matches hidden files", brief(&whole)));
        }
        let mut deeper = Vec::new();
        for directory in found {
            let names = look.names(&state.cwd, &directory)?;
            let fits = |name: &&String| !name.starts_with('.') && fits(&parts, name);
            let paths = names.iter().filter(fits).map(|name| format!("{directory}{name}{slash}"));
            deeper.extend(paths);
            if deeper.len() > NAMES_MAX {
                return Err(format!("`{}` matches too many names", brief(&whole)));
            }
        }
        found = deeper;
    }
    look.count_names(found.len())?;
    found.retain(|path| state.cwd.join(path).symlink_metadata().is_ok());
    match found.iter().find(|path| path.starts_with('-')) {
        Some(path) => Err(format!("`{}` also matches `{}`", brief(&whole), brief(path))),
        None => Ok(found),
    }
}

/// The parts of a pattern, or none if it is a plain name.
fn parts(component: &[Sign]) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut at = 0;
    let mut plain = true;
    let last_close = component.iter().rposition(|sign| sign.c == ']');
    while let Some(sign) = component.get(at) {
        at += 1;
        parts.push(match sign {
            Sign { c: '*', bare: true } => Part::Any,
            Sign { c: '?', bare: true } => Part::One,
            Sign { c: '[', bare: true } => match last_close {
                // Where a bracket really ends depends on what is in it, so all up to the last end
                // is taken for any text.
                Some(close) if close >= at => {
                    at = close + 1;
                    Part::Any
                }
                _ => Part::Is('['),
            },
            Sign { c, .. } => Part::Is(*c),
        });
        plain &= matches!(parts.last(), Some(Part::Is(_)));
    }
    (!plain).then_some(parts)
}

fn fits(parts: &[Part], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut part, mut at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    loop {
        match (parts.get(part), name.get(at)) {
            (None, None) => return true,
            (Some(Part::Any), _) => {
                retry = Some((part, at));
                part += 1;
                continue;
            }
            (Some(Part::One), Some(_)) => {
                part += 1;
                at += 1;
                continue;
            }
            (Some(Part::Is(c)), Some(found)) if c == found => {
                part += 1;
                at += 1;
                continue;
            }
            _ => {}
        }
        match &mut retry {
            Some((any, from)) if *from < name.len() => {
                *from += 1;
                (part, at) = (*any + 1, *from);
            }
            _ => return false,
        }
    }
}

/// Whether a name may match a pattern in which everything is bare, as `find -name` takes it.
pub(in super::super) fn matches(pattern: &str, name: &str) -> bool {
    let signs: Vec<Sign> = pattern.chars().map(|c| Sign { c, bare: true }).collect();
    if pattern.contains('\\') {
        return true;
    }
    match parts(&signs) {
        Some(parts) => fits(&parts, name),
        None => Path::new(pattern) == Path::new(name),
    }
}
