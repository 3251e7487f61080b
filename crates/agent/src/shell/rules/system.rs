//! Programs that say what machine this is and what runs on it, and what the shell itself shows.
//!
//! Left out: what sets something, what looks up names on the network (`hostname -f`), and what
//! shows the environment of other programs (`ps e`).

use super::super::expand::Arg;
use super::super::walk::Stream;
use super::{Call, NOTHING, Operands, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule { programs: "true false", operands: Operands::Anything, ..NOTHING },
    Rule { programs: "echo", operands: Operands::Anything, ..NOTHING },
    Rule { programs: "pwd", options: "-LP --logical --physical", ..NOTHING },
    Rule { programs: "whoami logname arch users", ..NOTHING },
    Rule { programs: "groups", operands: Operands::Words, ..NOTHING },
    Rule { programs: "nproc", options: "--all --ignore=number", ..NOTHING },
    Rule {
        programs: "id",
        options: "-agGnruzZ --group --groups --name --real --user --zero",
        operands: Operands::Words,
        ..NOTHING
    },
    Rule {
        programs: "uname",
        options: "-asnrvmpio --all --kernel-name --kernel-release --kernel-version --machine \
            --nodename --operating-system --processor",
        ..NOTHING
    },
    Rule { programs: "hostname", options: "-s --short", ..NOTHING },
    Rule { programs: "uptime", options: "-ps --pretty --since", ..NOTHING },
    Rule { programs: "who", options: "-abdHlmpqrstTuw", ..NOTHING },
    Rule { programs: "w", options: "-fhis", ..NOTHING },
    Rule { programs: "tty", options: "-s --quiet --silent", ..NOTHING },
    Rule {
        programs: "free",
        options: "-bghklmtvw --bytes --giga --gibi --human --kibi --kilo --lohi --mebi --mega \
            --si --total --wide",
        ..NOTHING
    },
    Rule { programs: "vmstat", options: "-adnsw", operands: Operands::None, ..NOTHING },
    Rule { programs: "lscpu", options: "-abBceJpxy --all --json --extended --parse", ..NOTHING },
    Rule {
        programs: "lsblk",
        options: "-abdfilJmnpt -o=word --all --bytes --fs --json --list --output=word --paths",
        ..NOTHING
    },
    Rule { programs: "lsmod", ..NOTHING },
    Rule { programs: "getconf", options: "-a", operands: Operands::Words, ..NOTHING },
    Rule { programs: "locale", options: "-ackm", operands: Operands::Words, ..NOTHING },
    Rule {
        programs: "pgrep",
        options: "-acfilnovx -d=word -g=word -G=word -P=word -s=word -t=word -u=word -U=word \
            --count --delimiter=word --exact --full --list-full --list-name --newest --oldest \
            --parent=word --uid=word",
        operands: Operands::Words,
        ..NOTHING
    },
    Rule { programs: "pidof", options: "-sx", operands: Operands::Words, ..NOTHING },
    Rule {
        programs: "ss",
        options: "-46aeHilmnOopstuwx --all --listening --numeric --processes --summary --tcp --udp \
            --unix",
        ..NOTHING
    },
    Rule {
        programs: "dpkg",
        options: "-lLsS --list --listfiles --search --status",
        operands: Operands::Words,
        ..NOTHING
    },
    Rule {
        programs: "dpkg-query",
        options: "-lLsSW -f=word --list --listfiles --search --show --showformat=word --status",
        operands: Operands::Words,
        ..NOTHING
    },
    Rule { programs: "lsb_release", options: "-acdirs", ..NOTHING },
    Rule { programs: "ulimit", options: "-abcdefHiklmnpPqrRsStTuvx", ..NOTHING },
    Rule { programs: "umask", options: "-pS", ..NOTHING },
    Rule { programs: "help", options: "-dms", operands: Operands::Words, ..NOTHING },
];

/// Fields that show what runs, not what it was given in its environment.
const FIELDS: &str = "args cmd comm command cpu egroup etime etimes euser fname group lstart ni \
    nlwp pcpu pgid pgrp pid pmem ppid pri psr rss rssize ruser sess sid size start state stat \
    stime sz time tid tname tt tty ucmd uid uname user vsize vsz wchan %cpu %mem";

/// `ps` takes letters with a dash and without one, and they mean different things.
pub(super) fn ps(call: &Call<'_, '_>) -> Result<Stream, String> {
    let mut args = call.args.iter();
    while let Some(arg) = args.next() {
        let text = arg.exact().ok_or_else(|| call.not_listed(arg))?;
        let fields = |list: Option<&str>| {
            list.is_some_and(|list| {
                list.split(',').all(|field| {
                    super::super::programs::listed(FIELDS, field.trim_end_matches('='))
                })
            })
        };
        let plain = |letters: &str, known: &str| {
            !letters.is_empty() && letters.chars().all(|letter| known.contains(letter))
        };
        let fits = match text.strip_prefix('-') {
            Some("o" | "-format") => fields(args.next().and_then(Arg::exact)),
            Some("eo" | "Ao") => fields(args.next().and_then(Arg::exact)),
            Some("p" | "u" | "C" | "-pid" | "-user" | "-ppid") => {
                args.next().is_some_and(Arg::is_single)
            }
            Some("-no-headers" | "-forest" | "aux") => true,
            Some(letters) => match letters.strip_prefix("-sort=") {
                Some(key) => fields(Some(key.trim_start_matches(['-', '+']))),
                None => plain(letters, "AaedfFjlLNTwyH"),
            },
            None if matches!(text, "axo" | "xo" | "o") => fields(args.next().and_then(Arg::exact)),
            None => plain(text, "auxfwjlv") || text.bytes().all(|b| b.is_ascii_digit()),
        };
        if !fits {
            return Err(call.not_listed(arg));
        }
    }
    Ok(Stream::Data)
}

/// `netstat -tln`: without `-n` it asks other machines for names.
pub(super) fn netstat(call: &Call<'_, '_>) -> Result<Stream, String> {
    let letters =
        |arg: &Arg| arg.exact().and_then(|text| text.strip_prefix('-')).map(str::to_owned);
    let letters: Option<String> = call.args.iter().map(letters).collect();
    match letters {
        Some(letters)
            if letters.contains('n') && letters.chars().all(|c| "46aeilnprstuwx".contains(c)) =>
        {
            Ok(Stream::Data)
        }
        _ => Err("`netstat` may look up names".to_owned()),
    }
}

/// `ip addr`, `ip -br link show`: what is there, and never a change.
pub(super) fn ip(call: &Call<'_, '_>) -> Result<Stream, String> {
    const OPTIONS: &[&str] = &["-4", "-6", "-br", "-brief", "-c", "-color", "-j", "-o", "-s"];
    let texts: Option<Vec<&str>> = call.args.iter().map(Arg::exact).collect();
    let words = texts.unwrap_or_default();
    let options = words.iter().take_while(|word| OPTIONS.contains(*word)).count();
    match words.get(options..).unwrap_or_default() {
        [object] | [object, "show" | "list" | "ls"]
            if ["a", "addr", "address", "l", "link", "n", "neigh", "r", "route", "ru", "rule"]
                .contains(object) =>
        {
            Ok(Stream::Data)
        }
        _ => Err("`ip` may change the network".to_owned()),
    }
}

/// Named variables that are no secret; all of them at once are asked about.
pub(super) fn printenv(call: &Call<'_, '_>) -> Result<Stream, String> {
    const SHOWN: &[&str] =
        &["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "TZ", "USER"];
    let shown = |arg: &Arg| arg.exact().is_some_and(|name| SHOWN.contains(&name));
    match !call.args.is_empty() && call.args.iter().all(shown) {
        true => Ok(Stream::Data),
        false => Err("shows variables of the environment".to_owned()),
    }
}
