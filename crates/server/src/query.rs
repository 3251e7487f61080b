//! The query of a URL: names and values, percent-decoded. The first of a name counts.

use axum::http::Uri;
use percent_encoding::percent_decode_str;

pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub fn of(uri: &Uri) -> Query {
        let pairs = uri.query().unwrap_or("").split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Query { pairs: pairs.collect() }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A value as it stands in a query, so that `Query` reads it again.
pub fn encode(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match plain(byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}

/// What is no valid escape or no UTF-8 stays visible.
fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values() {
        let uri: Uri =
            "/ws?since=14%2B1~12t57&name=J%C3%BCrgen&x&since=2&bad=%zz%4".parse().unwrap();
        let query = Query::of(&uri);
        assert_eq!(query.get("since"), Some("14+1~12t57"));
        assert_eq!(query.get("name"), Some("Jürgen"));
        assert_eq!(query.get("x"), Some(""));
        assert_eq!(query.get("bad"), Some("%zz%4"));
        assert_eq!(query.get("none"), None);
    }

    #[test]
    fn what_is_written_into_a_query_is_read_from_it() {
        for text in ["", "a b&c=d", "100%+é\n#?/", "\u{1F600}"] {
            let uri: Uri = format!("/x?text={}", encode(text)).parse().unwrap();
            assert_eq!(Query::of(&uri).get("text"), Some(text));
        }
    }
}
