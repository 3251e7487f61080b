//! No network: listeners outside count who comes, and nobody may; with the network on, they do.

use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};

use polyloop_sandbox::{Exit, Network};

use crate::ground::{Ground, has_program};

/// Ways to send something to port `$P` of this machine, with the program that they need. The
/// listeners count what arrives.
const METHODS: &[(&str, &str)] = &[
    ("bash", "exec 3<>/dev/tcp/127.0.0.1/$P && echo x >&3"),
    ("bash", "echo x > /dev/udp/127.0.0.1/$P"),
    ("curl", "curl -sS -m 3 http://127.0.0.1:$P/"),
    ("curl", "curl -sS -m 3 -g http://[::1]:$P/"),
    ("wget", "wget -q -T 3 -t 1 -O- http://localhost:$P/"),
    ("nc", "echo x | nc -w 3 127.0.0.1 $P"),
    ("ping", "ping -c 1 -W 2 127.0.0.1"),
    ("ssh", "ssh -o BatchMode=yes -o ConnectTimeout=3 -p $P 127.0.0.1 true"),
    ("getent", "getent ahosts example.com"),
    ("git", "git ls-remote http://127.0.0.1:$P/x"),
    ("python3", "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", $P), 3)'"),
    ("python3", "python3 -c 'import socket; socket.create_connection((\"::1\", $P), 3)'"),
    (
        "python3",
        "python3 -c 'import socket as s; u = s.socket(s.AF_INET, s.SOCK_DGRAM); \
                 u.sendto(b\"x\", (\"127.0.0.1\", $P))'",
    ),
    (
        "python3",
        "python3 -c 'import socket as s; u = s.socket(s.AF_INET6, s.SOCK_DGRAM); \
                 u.sendto(b\"x\", (\"::1\", $P))'",
    ),
    (
        "python3",
        "python3 -c 'import socket as s; \
                 s.socket(s.AF_INET, s.SOCK_RAW, 1).sendto(b\"x\", (\"127.0.0.1\", 0))'",
    ),
    (
        "python3",
        "python3 -c 'import socket as s; \
                 s.socket(s.AF_INET, s.SOCK_DGRAM, 1).sendto(b\"x\", (\"127.0.0.1\", 0))'",
    ),
    ("python3", "python3 -c 'import socket as s; s.socket(s.AF_PACKET, s.SOCK_RAW)'"),
    ("python3", "python3 -c 'import socket as s; s.socket(s.AF_NETLINK, s.SOCK_RAW, 0)'"),
    ("python3", "python3 -c 'import socket as s; s.socket(40, s.SOCK_STREAM)'"),
    ("perl", "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"127.0.0.1:$ENV{P}\") or exit 1'"),
    ("perl", "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) or exit 1'"),
];

/// On one port, over everything.
struct Listeners {
    tcp: Vec<TcpListener>,
    udp: Vec<UdpSocket>,
    port: u16,
}

impl Listeners {
    fn new() -> Listeners {
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = first.local_addr().unwrap().port();
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        // There may be no IPv6 here; then nobody can come that way either.
        let tcp = [first].into_iter().chain(TcpListener::bind((Ipv6Addr::LOCALHOST, port)));
        let udp = [udp].into_iter().chain(UdpSocket::bind((Ipv6Addr::LOCALHOST, port)));
        let listeners = Listeners { tcp: tcp.collect(), udp: udp.collect(), port };
        listeners.tcp.iter().for_each(|tcp| tcp.set_nonblocking(true).unwrap());
        listeners.udp.iter().for_each(|udp| udp.set_nonblocking(true).unwrap());
        listeners
    }

    /// How many came since the last time.
    fn hits(&self) -> usize {
        let tcp = self.tcp.iter().map(|tcp| std::iter::from_fn(|| tcp.accept().ok()).count());
        let udp = self.udp.iter().map(|udp| {
            let mut packet = [0; 64];
            std::iter::from_fn(|| udp.recv_from(&mut packet).ok()).count()
        });
        tcp.chain(udp).sum()
    }
}

#[test]
fn s10_no_method_reaches_anybody() {
    let ground = Ground::new();
    let listeners = Listeners::new();
    let mut tried = 0;
    for (program, method) in METHODS.iter().filter(|(program, _)| has_program(program)) {
        let output = ground.refuses(&format!("export P={}; {method}", listeners.port));
        assert_eq!(listeners.hits(), 0, "{program}: {method}: {output}");
        tried += 1;
    }
    println!("{tried} of {} methods were tried", METHODS.len());
    assert!(tried >= 12, "only {tried} methods could be tried");
}

#[test]
fn the_listeners_would_notice() {
    let ground = Ground::new();
    let listeners = Listeners::new();
    for (program, method, hits) in [
        ("bash", "exec 3<>/dev/tcp/127.0.0.1/$P && echo x >&3", 1),
        ("bash", "echo x > /dev/udp/127.0.0.1/$P", 1),
        ("perl", "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"127.0.0.1:$ENV{P}\")'", 1),
    ] {
        let mut sandbox = ground.sandbox();
        sandbox.network = Network::On;
        let script = format!("export P={}; {method}", listeners.port);
        let (output, exit) = ground.run_in(sandbox, &script);
        assert_eq!((listeners.hits(), exit), (hits, Exit::Code(0)), "{program}: {output}");
    }
}

#[test]
fn with_the_network_on_the_rest_still_holds() {
    let ground = Ground::new();
    let mut sandbox = ground.sandbox();
    sandbox.network = Network::On;
    for script in [
        "echo x > \"$OUT/canary\"",
        "unshare -r true",
        "mount -t tmpfs none /mnt",
        "perl -e 'exit(syscall(425, 1, 0) == -1 ? 1 : 0)'",
        "perl -MSocket -e 'socket(S, 17, SOCK_RAW, 0) or exit 1'",
        "perl -MSocket -e 'socket(S, 40, SOCK_STREAM, 0) or exit 1'",
    ] {
        ground.refuses_in(sandbox.clone(), script);
    }
}
