//! Which addresses are on the public internet, and which lead to this machine or its network.
//!
//! Knows nothing of names: an address is judged as it will be connected to. What is not plainly
//! public is private.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// What kind of address it is; `None` for one on the public internet.
pub(super) fn private(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => private_v4(address),
        IpAddr::V6(address) => private_v6(address),
    }
}

fn private_v4(address: Ipv4Addr) -> Option<&'static str> {
    let kind = match address.octets() {
        [0, ..] => "an unspecified address",
        [127, ..] => "a loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private address",
        [100, 64..=127, ..] => "a carrier's private address",
        [169, 254, ..] => "a link-local address",
        [192, 0, 0, _] => "an address of the protocol itself",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "a documentation address",
        [192, 88, 99, _] => "a relay address",
        [198, 18..=19, ..] => "a benchmarking address",
        [224..=239, ..] => "a multicast address",
        [255, 255, 255, 255] => "the broadcast address",
        [240..=255, ..] => "a reserved address",
        _ => return None,
    };
    Some(kind)
}

/// Only global unicast is public, and an IPv4 address inside is judged as such.
fn private_v6(address: Ipv6Addr) -> Option<&'static str> {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    let kind = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => "an unspecified address",
        [0, 0, 0, 0, 0, 0, 0, 1] => "a loopback address",
        [0, 0, 0, 0, 0, 0xffff, high, low] => return private_v4(embedded(high, low)),
        // What a network without IPv4 calls a public IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => return private_v4(embedded(high, low)),
        [0xfc00..=0xfdff, ..] => "a unique local address",
        [0xfe80..=0xfebf, ..] => "a link-local address",
        [0xff00..=0xffff, ..] => "a multicast address",
        [0x2001, 0, ..] => "a Teredo address",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "a documentation address",
        [0x2001, 0..=0x1ff, ..] => "an address of the protocol itself",
        [0x2002, ..] => "a 6to4 address",
        [0x2000..=0x3fff, ..] => return None,
        _ => "a reserved address",
    };
    Some(kind)
}

/// Whether it is an address of this machine.
pub(super) fn is_here(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let here = address.is_loopback() || address.is_unspecified();
    // The kernel gives a socket no address of another machine.
    here || UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_addresses() {
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "203.0.114.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00::1",
            "2001:200::1",
            "2001:4860::8888",
            "2003::1",
            "3ffe::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ];
        for address in public {
            assert_eq!(private(address.parse().unwrap()), None, "{address}");
        }
        let private = [
            ("unspecified", "0.0.0.0 0.1.2.3 0.255.255.255 :: ::ffff:0.0.0.0"),
            ("loopback", "127.0.0.1 127.1.2.3 127.255.255.255 ::1 ::ffff:127.0.0.1"),
            ("loopback", "64:ff9b::127.0.0.1"),
            ("a private", "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0"),
            ("a private", "192.168.255.255 ::ffff:10.1.2.3 64:ff9b::192.168.0.1"),
            ("carrier", "100.64.0.0 100.127.255.255"),
            ("link-local", "169.254.0.0 169.254.169.254 ::ffff:169.254.169.254"),
            ("link-local", "64:ff9b::a9fe:a9fe fe80::1 febf::1"),
            ("protocol", "192.0.0.0 192.0.0.170 192.0.0.255 2001:1::1 2001:1ff::1 2001:20::1"),
            ("documentation", "192.0.2.1 198.51.100.1 203.0.113.255 2001:db8::1 3fff:fff::1"),
            ("relay", "192.88.99.1"),
            ("benchmarking", "198.18.0.0 198.19.255.255"),
            ("multicast", "224.0.0.1 239.255.255.255 ff02::1 ffff::1 ::ffff:224.0.0.1"),
            ("broadcast", "255.255.255.255"),
            ("reserved", "240.0.0.0 255.255.255.254 ::127.0.0.1 ::8.8.8.8 ::2 100::1 4000::1"),
            ("reserved", "64:ff9b:1::8.8.8.8 64:ff9b:0:0:1::1 fec0::1 5f00::1 1fff::1 ::fffe:0:0"),
            ("unique local", "fc00::1 fd12:3456::1 fdff::1"),
            ("Teredo", "2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2"),
            ("6to4", "2002:7f00:1::1 2002:808:808::1"),
        ];
        for (kind, addresses) in private {
            for address in addresses.split(' ') {
                let found = super::private(address.parse().unwrap());
                assert!(found.is_some_and(|found| found.contains(kind)), "{address}: {found:?}");
            }
        }
    }

    #[test]
    fn this_machine_knows_its_addresses() {
        for here in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"] {
            assert!(is_here(here.parse().unwrap()), "{here}");
        }
        for elsewhere in ["192.0.2.1", "203.0.113.77", "8.8.8.8", "2001:db8::1"] {
            assert!(!is_here(elsewhere.parse().unwrap()), "{elsewhere}");
        }
    }
}
