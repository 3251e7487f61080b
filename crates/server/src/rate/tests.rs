use super::*;

const MS_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1_000 * MS_NS;

fn bucket(count: u64) -> Bucket {
    Bucket::new(&settings::RATE_MESSAGES_PER_SEC, count, SECOND, BURST)
}

fn taken(bucket: &Bucket, tries: u64, now_ns: u64) -> u64 {
    (0..tries).filter(|_| bucket.take(now_ns).is_ok()).count() as u64
}

#[test]
fn so_many_at_once_and_then_so_many_a_second() {
    let bucket = bucket(5);
    assert_eq!(taken(&bucket, 1_000, 0), 50, "ten seconds' worth");
    let late = bucket.take(0).unwrap_err();
    assert_eq!((late.setting, late.count), ("RATE_MESSAGES_PER_SEC", 5));
    assert_eq!(late.again_in, Duration::from_millis(200));
    assert!(bucket.take(199 * MS_NS).is_err(), "a moment too soon");
    assert!(bucket.take(200 * MS_NS).is_ok(), "as it was told");
    assert_eq!(taken(&bucket, 1_000, 10 * SECOND_NS), 49, "what came meanwhile counts");
    assert_eq!(taken(&bucket, 1_000, 1_000 * SECOND_NS), 50, "never more than at the start");
}

#[test]
fn the_slowest_pace_lets_one_in() {
    let bucket = Bucket::new(&settings::RATE_TURNS_PER_MIN, 1, MINUTE, SECOND);
    assert!(bucket.take(0).is_ok());
    assert_eq!(bucket.take(0).unwrap_err().again_in, MINUTE);
    assert!(bucket.take(60 * SECOND_NS).is_ok());
}

#[test]
fn nothing_is_no_limit() {
    let bucket = bucket(0);
    assert_eq!(taken(&bucket, 1_000_000, 0), 1_000_000);
    assert_eq!(bucket.spend(u64::MAX, 0), Duration::ZERO);
}

#[test]
fn a_debt_is_waited_for_however_large() {
    let bytes = Bucket::new(&settings::RATE_BYTES_PER_SEC, 1_000, SECOND, BYTES_BURST);
    assert_eq!(bytes.spend(4_000, 0), Duration::ZERO, "at once");
    assert_eq!(bytes.spend(1, 0), Duration::from_millis(1));
    assert_eq!(bytes.spend(1_999, 0), Duration::from_secs(2));
    assert_eq!(bytes.spend(0, SECOND_NS), Duration::from_secs(1), "half of it is over");
    assert_eq!(bytes.spend(0, 2 * SECOND_NS), Duration::ZERO);
    assert!(bytes.spend(u64::MAX, 0) > Duration::from_secs(1_000_000), "and no overflow");
}

#[test]
fn who_comes_again_as_told_is_let_in() {
    let bytes = Bucket::new(&settings::RATE_CLIENT_BYTES_PER_SEC, 1_000, SECOND, BYTES_BURST);
    let wait_max = Duration::from_secs(10);
    assert_eq!(bytes.admit(4_000, 0, wait_max), Ok(Duration::ZERO), "at once");
    assert_eq!(bytes.admit(8_000, 0, wait_max), Ok(Duration::from_secs(8)));
    for now in [0, 0, SECOND_NS] {
        let refused = bytes.admit(4_000, now, wait_max).unwrap_err();
        assert_eq!(refused.again_in, Duration::from_nanos(2 * SECOND_NS - now), "it owes nothing");
    }
    assert_eq!(bytes.admit(4_000, 2 * SECOND_NS, wait_max), Ok(wait_max), "as it was told");

    let refused = bytes.admit(1_000_000, 2 * SECOND_NS, wait_max).unwrap_err();
    assert_eq!(refused.again_in, Duration::from_secs(14), "when all else is due");
    let now = 16 * SECOND_NS;
    assert_eq!(bytes.admit(1_000_000, now, wait_max), Ok(wait_max), "larger than all that fits");
    assert!(bytes.admit(1, now, wait_max).is_err(), "and the next one waits for it");
    assert_eq!(bytes.admit(u64::MAX, u64::MAX - 1, wait_max), Ok(wait_max), "no overflow");
}

#[test]
fn a_client_is_its_token_or_its_network() {
    let at = |text: &str| Sender::at(text.parse().unwrap());
    assert_eq!(at("10.0.0.1"), at("::ffff:10.0.0.1"), "one address, written in two ways");
    assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
    assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:0:0:2"), "one network");
    assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
    assert_ne!(at("10.0.0.1"), Sender::Token);
}

fn rates(requests_per_sec: u64) -> Rates {
    let pace = Pace { messages_per_sec: 1, turns_per_min: 1, bytes_per_sec: 1 };
    Rates { connection: pace, client: pace, requests_per_sec }
}

#[test]
fn clients_are_counted_apart_and_quiet_ones_forgotten() {
    let clients = Clients::new(rates(1));
    let address = |n: u32| Sender::at(IpAddr::V4(n.into()));
    let loud = clients.client(address(0));
    while loud.request().is_ok() {}
    drop(loud);
    assert!(clients.client(address(1)).request().is_ok(), "another is not held up");
    let held = clients.client(address(2));
    (3..5_000).for_each(|n| drop(clients.client(address(n))));
    let known = clients.known.lock().unwrap().senders.len();
    assert!(known <= CLIENTS_SWEPT_AT, "{known} are remembered");
    assert!(clients.client(address(0)).request().is_err(), "who was loud is remembered");
    assert!(Arc::ptr_eq(&held, &clients.client(address(2))), "who is connected, too");
}
