//! Who this server is to NATS: what stands before the `@` of a server's address.
//!
//! The client library connects to an address and reads no user from it, so it is told here. It is
//! told once for all servers, also for those that it hears of later.

use async_nats::ConnectOptions;
use percent_encoding::percent_decode_str;

use super::Place;

/// With the first user that the place names. A word without a password is a token.
pub(super) fn options(place: &Place) -> ConnectOptions {
    match place.servers.iter().find_map(|server| login(server)) {
        Some((user, Some(password))) => ConnectOptions::with_user_and_password(user, password),
        Some((token, None)) => ConnectOptions::with_token(token),
        None => ConnectOptions::new(),
    }
}

fn login(server: &str) -> Option<(String, Option<String>)> {
    let (_, rest) = server.split_once("://")?;
    let (login, _) = rest.rsplit_once('@')?;
    Some(match login.split_once(':') {
        Some((user, password)) => (plain(user), Some(plain(password))),
        None => (plain(login), None),
    })
}

/// What an address cannot hold stands there as `%` and two digits.
fn plain(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_a_host_is_read() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), Some(password.to_owned())));
        assert_eq!(login("nats://127.0.0.1:4222"), None);
        assert_eq!(login("nats://me:word@a.example:4222"), pair("me", "word"));
        assert_eq!(login("tls://me:a%40b%3ac%25@a.example"), pair("me", "a@b:c%"));
        assert_eq!(login("nats://me:100%@a.example"), pair("me", "100%"));
        assert_eq!(login("nats://me:1%+2@a.example"), pair("me", "1%+2"));
        assert_eq!(login("nats://me:a:b@a.example"), pair("me", "a:b"));
        assert_eq!(login("nats://word@a.example"), Some(("word".to_owned(), None)));
    }
}
