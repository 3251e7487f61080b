//! A key that must reach one provider and nobody else.

use std::fmt;
use std::sync::Arc;

/// Shorter ones are not looked for in texts: they would be found everywhere.
const MASKED_BYTES_MIN: usize = 4;
/// Of a key that was cut, so much is enough to know it by; and little enough to be of no use.
const BEGINNING_BYTES: usize = 10;
const MASK: &str = "***";

#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn new(text: &str) -> Secret {
        Secret(text.into())
    }

    /// For the header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text without it: providers repeat keys in their errors, and errors are cut short.
    /// `None` when there is nothing of it in the text.
    pub fn masked(&self, text: &str) -> Option<String> {
        let key = &*self.0;
        let begin = &key[..key.floor_char_boundary(BEGINNING_BYTES)];
        if key.len() < MASKED_BYTES_MIN || !text.contains(begin) {
            return None;
        }
        let mut masked = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(begin) {
            masked.push_str(&rest[..at]);
            masked.push_str(MASK);
            let found = &rest[at..];
            let same = found.bytes().zip(key.bytes()).take_while(|(a, b)| a == b).count();
            rest = &found[found.floor_char_boundary(same)..];
        }
        masked.push_str(rest);
        Some(masked)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_shown() {
        let key = Secret::new("sk-very-secret");
        assert_eq!(format!("{key:?}"), "***");
        let told = key.masked("Incorrect key sk-very-secret; sk-very-secret is unknown");
        assert_eq!(told.as_deref(), Some("Incorrect key ***; *** is unknown"));
        assert_eq!(key.masked("nothing of it"), None);
        assert_eq!(key.masked("cut (sk-very-secr)").as_deref(), Some("cut (***)"));
        assert_eq!(key.masked("sk-very-SECRET"), None, "too little of it to tell");
        assert_eq!(Secret::new("test").masked("a test of tests").as_deref(), Some("a *** of ***s"));
        let odd = Secret::new("geheimé-schlüssel");
        assert_eq!(odd.masked("x geheimé-schlüss y").as_deref(), Some("x *** y"));
        assert_eq!(Secret::new("a").masked("a banana"), None);
    }
}
