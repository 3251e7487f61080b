use super::*;

fn reach(private: PrivateAddresses, proxies: &Proxies) -> Reach {
    Reach::new(proxies, private, Limits::default()).unwrap()
}

fn url(url: &str) -> Url {
    Url::parse(url).unwrap()
}

fn through(proxy: &str) -> Proxies {
    Proxies { https: Some(proxy.to_owned()), http: Some(proxy.to_owned()), except: None }
}

#[test]
fn private_literals_are_refused_without_a_look_up() {
    let strict = reach(PrivateAddresses::Refused, &Proxies::default());
    let open = reach(PrivateAddresses::Allowed, &Proxies::default());
    for private in [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.0.0.1./",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1:8080/",
        "http://0/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "https://192.168.0.1/",
        "http://[fd00::1]/",
        "http://[64:ff9b::a00:1]/",
    ] {
        let why = strict.check_words(&url(private)).unwrap_err();
        assert!(why.contains("WEB_PRIVATE_ADDRESSES=true"), "{private}: {why}");
        assert_eq!(open.check_words(&url(private)), Ok(()), "{private}");
    }
    for public in ["http://example.org/", "https://8.8.8.8/", "https://localhost.example.org/"] {
        assert_eq!(strict.check_words(&url(public)), Ok(()), "{public}");
    }
    let why = strict.check_words(&url("http://0x7f000001/")).unwrap_err();
    assert!(why.starts_with("127.0.0.1 is a loopback address, and private"), "{why}");
}

#[test]
fn the_servers_own_port_is_out_of_reach() {
    let open = reach(PrivateAddresses::Allowed, &Proxies::default());
    let own = url("http://127.0.0.1:8080/sessions");
    assert_eq!(open.check_words(&own), Ok(()), "before it listens");
    open.keep_from(8080);
    for own in [
        "http://127.0.0.1:8080/",
        "http://127.3.2.1:8080/",
        "http://[::1]:8080/",
        "http://0.0.0.0:8080/",
        "http://[::ffff:127.0.0.1]:8080/",
    ] {
        let why = open.check_words(&url(own)).unwrap_err();
        assert!(why.contains("this server's own address"), "{own}: {why}");
    }
    for other in ["http://127.0.0.1:8081/", "http://192.0.2.1:8080/"] {
        assert_eq!(open.check_words(&url(other)), Ok(()), "{other}");
    }
    open.keep_from(80);
    assert!(open.check_words(&url("http://127.0.0.1/")).is_err(), "the usual port");
}

/// `localhost` is the one name that every machine knows.
#[tokio::test]
async fn where_a_name_leads_is_judged_where_it_is_used() {
    let guard = |private, here, proxies: &[&str]| {
        let proxies = proxies.iter().map(|name| (*name).to_owned()).collect();
        Guard { private, here, proxies }
    };
    let look = async |guard: Guard| {
        let found = guard.resolve("localhost".parse().unwrap()).await;
        found.map(|addresses| addresses.count()).map_err(|error| error.to_string())
    };
    use PrivateAddresses::{Allowed, Refused};
    let why = look(guard(Refused, Here::Allowed, &[])).await.unwrap_err();
    assert!(why.starts_with("localhost leads to ") && why.contains("loopback"), "{why}");
    let why = look(guard(Allowed, Here::Refused, &[])).await.unwrap_err();
    assert!(why.contains("this server's own address"), "{why}");
    assert!(look(guard(Allowed, Here::Allowed, &[])).await.unwrap() > 0);
    assert!(look(guard(Refused, Here::Refused, &["localhost"])).await.unwrap() > 0, "a proxy");
}

#[test]
fn one_private_address_among_several_is_enough() {
    let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
    let (public, private) = (at("8.8.8.8"), at("10.0.0.1"));
    let checked = |addresses: &[SocketAddr]| {
        check("a.org", addresses, PrivateAddresses::Refused, Here::Allowed).map_err(|e| e.address)
    };
    assert_eq!(checked(&[public]), Ok(()));
    assert_eq!(checked(&[public, private]), Err(private.ip()));
    assert_eq!(checked(&[private, public]), Err(private.ip()));
}

/// The proxy looks names up, so what they lead to is judged before it is asked.
#[tokio::test]
async fn through_a_proxy_names_are_judged_before() {
    let strict = reach(PrivateAddresses::Refused, &through("http://proxy.example:3128"));
    assert!(strict.client(&url("http://10.0.0.1/")).await.is_err());
    assert!(strict.client(&url("http://localhost/")).await.is_err());
    let why = strict.client(&url("http://PROXY.example:80/")).await.unwrap_err();
    assert!(why.contains("is the proxy"), "{why}");
    let open = reach(PrivateAddresses::Allowed, &through("http://proxy.example:3128"));
    open.keep_from(80);
    let why = open.client(&url("http://localhost/")).await.unwrap_err();
    assert!(why.contains("this server's own address"), "{why}");
}
