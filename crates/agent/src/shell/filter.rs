//! Which of the files below a directory a search may print, as far as their names and kinds say.
//!
//! Knows less than `find`: what it cannot tell may be true, and may be false.

use super::expand::matches;

/// What a directory says about one of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    File,
    Directory,
    Link,
    /// A socket, a pipe, a device.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// Nothing is known.
    Any,
    /// The name matches a pattern.
    Name(String),
    /// The same, whatever the case.
    AnyCaseName(String),
    Is(Entry),
    Not(Box<Filter>),
    All(Vec<Filter>),
    One(Vec<Filter>),
    /// Prints the name or hands it on, and goes on.
    Act,
}

impl Filter {
    /// Whether an entry may be printed, or handed on.
    pub(super) fn may_take(&self, name: &str, entry: Entry) -> bool {
        match self.acts() {
            true => self.may_act(name, entry),
            // Without an action of its own, `find` prints what the whole expression holds for.
            false => self.may_hold(name, entry),
        }
    }

    fn acts(&self) -> bool {
        match self {
            Filter::Act => true,
            Filter::Not(inner) => inner.acts(),
            Filter::All(parts) | Filter::One(parts) => parts.iter().any(Filter::acts),
            Filter::Any | Filter::Name(_) | Filter::AnyCaseName(_) | Filter::Is(_) => false,
        }
    }

    fn may_act(&self, name: &str, entry: Entry) -> bool {
        match self {
            Filter::Act => true,
            Filter::Not(inner) => inner.may_act(name, entry),
            Filter::One(parts) => parts.iter().any(|part| part.may_act(name, entry)),
            // What stands behind an action does not narrow what it acts on.
            Filter::All(parts) => {
                for part in parts {
                    if part.may_act(name, entry) {
                        return true;
                    }
                    if !part.may_hold(name, entry) {
                        return false;
                    }
                }
                false
            }
            Filter::Any | Filter::Name(_) | Filter::AnyCaseName(_) | Filter::Is(_) => false,
        }
    }

    fn may_hold(&self, name: &str, entry: Entry) -> bool {
        match self {
            Filter::Any | Filter::Act => true,
            Filter::Name(pattern) => matches(pattern, name),
            Filter::AnyCaseName(pattern) => matches(&pattern.to_lowercase(), &name.to_lowercase()),
            Filter::Is(kind) => *kind == entry,
            Filter::Not(inner) => inner.may_fail(entry),
            Filter::All(parts) => parts.iter().all(|part| part.may_hold(name, entry)),
            Filter::One(parts) => parts.iter().any(|part| part.may_hold(name, entry)),
        }
    }

    /// A pattern is only known to match at most certain names, so it may always fail.
    fn may_fail(&self, entry: Entry) -> bool {
        match self {
            Filter::Is(kind) => *kind != entry,
            Filter::Any
            | Filter::Act
            | Filter::Name(_)
            | Filter::AnyCaseName(_)
            | Filter::Not(_)
            | Filter::All(_)
            | Filter::One(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(pattern: &str) -> Filter {
        Filter::Name(pattern.to_owned())
    }

    #[test]
    fn what_may_be_printed() {
        let rust_file = Filter::All(vec![name("*.rs"), Filter::Is(Entry::File)]);
        let rows = [
            (Filter::Any, "x", Entry::Link, true),
            (rust_file.clone(), "a.rs", Entry::File, true),
            (rust_file.clone(), "a.rs", Entry::Link, false),
            (rust_file.clone(), "a.md", Entry::File, false),
            (Filter::One(vec![rust_file.clone(), name("*.md")]), "a.md", Entry::Link, true),
            (Filter::Not(Box::new(name("*.rs"))), "a.rs", Entry::File, true),
            (Filter::Not(Box::new(Filter::Is(Entry::File))), "a.rs", Entry::File, false),
            (Filter::AnyCaseName("*.RS".to_owned()), "A.rs", Entry::File, true),
            // `-print -name '*.rs'`, and `-name '*.rs' -print`.
            (Filter::All(vec![Filter::Act, name("*.rs")]), "x", Entry::File, true),
            (Filter::All(vec![name("*.rs"), Filter::Act]), "x", Entry::File, false),
            // `-name x -o -print`, and `-name x -prune -o -name '*.rs' -print`.
            (Filter::One(vec![name("x"), Filter::Act]), "x", Entry::File, true),
            (
                Filter::One(vec![
                    Filter::All(vec![name("x"), Filter::Any]),
                    Filter::All(vec![name("*.rs"), Filter::Act]),
                ]),
                "x",
                Entry::File,
                false,
            ),
            // `-name x ( -print )`
            (Filter::All(vec![name("x"), Filter::All(vec![Filter::Act])]), "y", Entry::File, false),
        ];
        for (filter, text, entry, want) in rows {
            assert_eq!(filter.may_take(text, entry), want, "{filter:?} {text} {entry:?}");
        }
    }
}
