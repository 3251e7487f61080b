//! A key that must reach one provider and nobody else.

use std::fmt;
use std::sync::Arc;

/// Shorter ones are not looked for in texts: they would be found everywhere.
const MASKED_BYTES_MIN: usize = 4;
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

    /// The text without it: providers repeat keys in their errors.
    pub fn masked(&self, text: &str) -> Option<String> {
        let found = self.0.len() >= MASKED_BYTES_MIN && text.contains(&*self.0);
        found.then(|| text.replace(&*self.0, MASK))
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
        assert_eq!(Secret::new("a").masked("a banana"), None);
    }
}
