use super::*;

fn id(name: &str) -> SessionId {
    SessionId::parse(name).unwrap()
}

fn server(name: &str) -> ServerId {
    ServerId(name.into())
}

/// A view of the server `here`, with the number of the next change.
struct Bucket {
    view: View,
    revision: u64,
}

impl Bucket {
    fn new() -> Bucket {
        Bucket { view: View::new(server("here")), revision: 0 }
    }

    fn take(&mut self, key: &str, value: Option<&str>) -> Vec<News> {
        self.revision += 1;
        self.again(key, value, self.revision)
    }

    fn again(&mut self, key: &str, value: Option<&str>, revision: u64) -> Vec<News> {
        let mut news = Vec::new();
        let change = change(key, value.map(str::as_bytes)).unwrap();
        self.view.take(change, revision, &mut news);
        news
    }

    fn renew(&mut self, name: &str) -> Vec<News> {
        self.take(&format!("server.{name}"), Some("{}"))
    }

    fn own(&mut self, session: &str, name: &str) -> Vec<News> {
        self.take(&format!("session.{session}"), Some(&format!("{{\"server\":\"{name}\"}}")))
    }

    /// How often this server is renewed until there are news, and which.
    fn until_news(&mut self) -> (u64, Vec<News>) {
        for count in 1..=100 {
            let news = self.renew("here");
            if !news.is_empty() {
                return (count, news);
            }
        }
        (100, Vec::new())
    }
}

fn fallen(session: &str, was: &str) -> News {
    News::Fallen { id: id(session), was: server(was) }
}

#[test]
fn a_server_falls_after_so_many_renewals_of_this_one() {
    let mut bucket = Bucket::new();
    bucket.renew("there");
    bucket.own("a.b", "there");
    for _ in 0..3 {
        for _ in 1..RENEWALS_UNTIL_FALLEN {
            assert_eq!(bucket.renew("here"), []);
        }
        bucket.renew("there");
    }
    assert_eq!(bucket.view.owner(&id("a.b")), Some(&server("there")));
    assert_eq!(bucket.until_news(), (RENEWALS_UNTIL_FALLEN, vec![fallen("a.b", "there")]));
    assert_eq!(bucket.view.owner(&id("a.b")), None);
    assert_eq!(bucket.view.to_clear().len(), 1);
    // Told once; and one that is renewed lives again.
    assert_eq!(bucket.until_news().1, []);
    bucket.renew("there");
    assert_eq!(bucket.view.owner(&id("a.b")), Some(&server("there")));
    assert_eq!(bucket.until_news(), (RENEWALS_UNTIL_FALLEN, vec![fallen("a.b", "there")]));
}

#[test]
fn nobody_falls_by_what_others_do() {
    let mut bucket = Bucket::new();
    bucket.own("s", "there");
    for _ in 0..100 {
        assert_eq!(bucket.renew("third"), []);
    }
    assert_eq!(bucket.until_news().1, [fallen("s", "there")]);
}

#[test]
fn one_that_left_has_fallen_at_once() {
    let mut bucket = Bucket::new();
    bucket.renew("there");
    bucket.own("s", "there");
    assert_eq!(bucket.take("server.there", None), [fallen("s", "there")]);
    assert!(bucket.view.to_clear().is_empty());
    // What it still had on its way is found out like anybody's.
    assert_eq!(bucket.own("t", "there").len(), 1);
    let (count, news) = bucket.until_news();
    assert_eq!((count, news.len()), (RENEWALS_UNTIL_FALLEN, 2));
    // It is known as long as a session names it.
    bucket.take("session.s", None);
    bucket.own("t", "here");
    bucket.renew("here");
    assert!(bucket.view.servers.is_empty());
}

/// The bucket keeps the newest value of a key, so what came between may never be heard.
#[test]
fn what_is_taken_from_one_that_lives_was_let_go() {
    let mut bucket = Bucket::new();
    let free = || News::Free { id: id("s") };
    let taken = |by| News::Taken { id: id("s"), by: server(by) };
    assert_eq!(bucket.own("s", "one"), [taken("one")]);
    assert_eq!(bucket.own("s", "one"), [free(), taken("one")]);
    assert_eq!(bucket.own("s", "two"), [free(), taken("two")]);
    // One that has fallen lets nothing go.
    bucket.renew("two");
    assert_eq!(bucket.take("server.two", None), [fallen("s", "two")]);
    assert_eq!(bucket.own("s", "one"), [taken("one")]);
    // And what is heard twice was taken once.
    let one = r#"{"server":"one"}"#;
    assert_eq!(bucket.again("session.s", Some(one), bucket.revision), []);
}

#[test]
fn when_a_watch_begins_again_all_have_their_time_and_what_is_gone_is_free() {
    let mut bucket = Bucket::new();
    for name in ["one", "two", "three"] {
        bucket.renew(name);
    }
    for (session, name) in [("a", "one"), ("b", "two"), ("c", "three"), ("d", "one")] {
        bucket.own(session, name);
    }
    for _ in 1..RENEWALS_UNTIL_FALLEN {
        assert_eq!(bucket.renew("here"), []);
    }
    // `two` left and `d` was let go, and nobody remembers; the others are as they were.
    bucket.view.begin();
    let mut found = Found::default();
    let claimed = bucket.revision + 10;
    bucket.view.claimed(&id("e"), claimed);
    for (key, value, revision) in [
        ("server.one", "{}", 1),
        ("server.three", "{}", 3),
        ("session.a", r#"{"server":"one"}"#, 4),
        ("session.b", r#"{"server":"two"}"#, 5),
        ("session.c", r#"{"server":"three"}"#, 6),
        ("server.here", "{}", bucket.revision),
    ] {
        found.note(&change(key, Some(value.as_bytes())).unwrap());
        assert_eq!(bucket.again(key, Some(value), revision), [], "{key}");
    }
    let mut news = Vec::new();
    bucket.view.settle(&found, &mut news);
    assert_eq!(news, [News::Free { id: id("d") }, fallen("b", "two")]);
    assert_eq!(bucket.view.owner(&id("e")), Some(&server("here")));
    bucket.renew("three");
    let (count, news) = bucket.until_news();
    assert_eq!((count, news), (RENEWALS_UNTIL_FALLEN - 1, vec![fallen("a", "one")]));
}
