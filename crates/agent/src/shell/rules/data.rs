//! Programs that calculate, format, and look into documents.
//!
//! Left out: `printf -v` and `%n` (set a variable), `date -s` (sets the clock), `jq` with modules,
//! `yq` with functions, `iconv -o`, `openssl` with keys, with a server, or with a file to write.

use std::sync::LazyLock;

use super::super::expand::Arg;
use super::super::path::Want;
use super::super::programs::listed;
use super::super::walk::Stream;
use super::options::{Spec, is_number};
use super::{Call, NOTHING, Operands, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule { programs: "expr", operands: Operands::Anything, ..NOTHING },
    Rule { programs: "factor", operands: Operands::Words, ..NOTHING },
    Rule {
        programs: "seq",
        options: "-w -f=word -s=word -# --equal-width --format=word --separator=word",
        operands: Operands::Words,
        ..NOTHING
    },
    Rule {
        programs: "numfmt",
        options: "-z -d=word --delimiter=word --field=word --format=word --from=word \
            --from-unit=word --grouping --header?number --invalid=word --padding=number \
            --round=word --suffix=word --to=word --to-unit=word",
        operands: Operands::Words,
        ..NOTHING
    },
    Rule { programs: "cal ncal", options: "-13jy", operands: Operands::Words, ..NOTHING },
    Rule {
        programs: "bc",
        options: "-lqs --mathlib --quiet --standard",
        operands: Operands::Paths,
        ..NOTHING
    },
];

const DATE: &str = "-uR -I?date|hours|minutes|seconds|ns -d=word -r=path --date=word --debug \
    --iso-8601?date|hours|minutes|seconds|ns --reference=path --rfc-3339=date|seconds|ns \
    --rfc-email --universal --utc";

/// How to write a date, never what to set it to.
pub(super) fn date(call: &Call<'_, '_>) -> Result<Stream, String> {
    static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec::of(DATE));
    let parsed = SPEC.parse(call, call.args)?;
    match parsed.operands.iter().find(|arg| !arg.text.starts_with('+')) {
        Some(arg) => Err(call.not_listed(arg)),
        None => Ok(Stream::Data),
    }
}

/// Seconds that may be slept away unasked, all the numbers together.
const SLEEP_SECONDS_MAX: f64 = 10.0;

pub(super) fn sleep(call: &Call<'_, '_>) -> Result<Stream, String> {
    let seconds = |arg: &Arg| arg.exact().and_then(|text| text.trim_end_matches('s').parse().ok());
    let seconds: Option<Vec<f64>> = call.args.iter().map(seconds).collect();
    match seconds.map(|seconds| seconds.iter().sum::<f64>()) {
        Some(sum) if (0.0..=SLEEP_SECONDS_MAX).contains(&sum) => Ok(Stream::Data),
        _ => Err(format!("`sleep` for more than {SLEEP_SECONDS_MAX} seconds")),
    }
}

/// Bash's own: without options, whose first would be the name of a variable.
pub(super) fn printf(call: &Call<'_, '_>) -> Result<Stream, String> {
    let rest = match call.args {
        [end, rest @ ..] if end.exact() == Some("--") => rest,
        args => args,
    };
    let Some((format, values)) = rest.split_first() else { return Ok(Stream::Data) };
    if !format.is_single() || format.text.starts_with('-') {
        return Err(call.not_listed(format));
    }
    // What the rest of it asks for has no value to work on.
    let open = format.exact().is_none() && (format.text.is_empty() || !values.is_empty());
    match open {
        true => Err("`printf` with a format that is not known yet".to_owned()),
        false if sets_variable(&format.text) => Err("`printf %n` sets a variable".to_owned()),
        false => Ok(Stream::Data),
    }
}

/// Whether `%n` is in a format, with whatever may stand between its two characters.
fn sets_variable(format: &str) -> bool {
    let between = |c: char| c.is_ascii_digit() || "-+ #'.*hlLjtz".contains(c);
    format.split('%').skip(1).any(|rest| rest.trim_start_matches(between).starts_with('n'))
}

/// `jq` can neither write nor run anything; it can read modules and the environment.
pub(super) fn jq(call: &Call<'_, '_>) -> Result<Stream, String> {
    const FLAGS: &[&str] = &[
        "--ascii-output",
        "--color-output",
        "--compact-output",
        "--exit-status",
        "--join-output",
        "--monochrome-output",
        "--null-input",
        "--raw-input",
        "--raw-output",
        "--raw-output0",
        "--seq",
        "--slurp",
        "--sort-keys",
        "--stream",
        "--tab",
        "--unbuffered",
    ];
    let mut args = call.args.iter();
    let mut filter = None;
    let mut positional = false;
    while let Some(arg) = args.next() {
        let text = arg.exact();
        match text {
            Some("--arg" | "--argjson") => {
                let fits = args.next().is_some_and(|name| name.exact().is_some())
                    && args.next().is_some_and(Arg::is_single);
                if !fits {
                    return Err(call.not_listed(arg));
                }
            }
            Some("--slurpfile" | "--rawfile") => {
                args.next().and_then(Arg::exact).ok_or_else(|| call.not_listed(arg))?;
                let file = args.next().ok_or_else(|| call.not_listed(arg))?;
                call.path(file, Want::Content)?;
            }
            Some("--indent") => {
                args.next().and_then(Arg::exact).ok_or_else(|| call.not_listed(arg))?;
            }
            Some("--args" | "--jsonargs") => positional = true,
            Some(long) if long.starts_with("--") => {
                if !FLAGS.contains(&long) {
                    return Err(call.not_listed(arg));
                }
            }
            Some(short) if short.starts_with('-') && short.len() > 1 => {
                if !short.chars().skip(1).all(|letter| "acCejMnrRsS".contains(letter)) {
                    return Err(call.not_listed(arg));
                }
            }
            _ if filter.is_none() => filter = Some(arg),
            _ if positional && text.is_some() => {}
            _ => call.path(arg, Want::Content)?,
        }
    }
    let filter = filter.and_then(Arg::exact).ok_or("`jq` with a filter that is not known yet")?;
    let loads = ["import", "include", "modulemeta", "env", "ENV", "input_filename", "$__prog"];
    match loads.iter().any(|word| filter.contains(word)) {
        true => Err("`jq` with a filter that reads more than its input".to_owned()),
        false => Ok(Stream::Data),
    }
}

/// `yq .name file`: there are two programs of this name, so only a path through a document.
pub(super) fn yq(call: &Call<'_, '_>) -> Result<Stream, String> {
    const OPTIONS: &str = "-rPMC -o=json|yaml|y|j --raw-output --prettyPrint --no-colors \
        --output-format=json|yaml";
    static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec::of(OPTIONS));
    let parsed = SPEC.parse(call, call.args)?;
    let operands = match parsed.operands.as_slice() {
        [verb, rest @ ..] if matches!(verb.exact(), Some("e" | "eval")) => rest,
        all => all,
    };
    let Some((filter, files)) = operands.split_first() else { return Ok(Stream::Data) };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-[]\" |".contains(c);
    let is_path = |text: &str| {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let mut calls = words.filter(|word| word.starts_with("env") || word.starts_with("input"));
        text.starts_with('.') && text.chars().all(plain) && calls.next().is_none()
    };
    match filter.exact().is_some_and(is_path) {
        true => call.check_paths(files, Want::Content).map(|()| Stream::Data),
        false => Err("`yq` with more than a path through a document".to_owned()),
    }
}

const ICONV: &str = "-cls -f=word -t=word --from-code=word --list --silent --to-code=word";

/// What is no name of an encoding may be the name of a file.
pub(super) fn iconv(call: &Call<'_, '_>) -> Result<Stream, String> {
    static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec::of(ICONV));
    let parsed = SPEC.parse(call, call.args)?;
    let encoding = |text: &str| {
        let name = ["//TRANSLIT", "//IGNORE"].iter().find_map(|end| text.strip_suffix(end));
        name.unwrap_or(text).bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
    };
    let odd = |value: &&Arg| !value.exact().is_some_and(encoding);
    match parsed.values("-f -t --from-code --to-code").find(odd) {
        Some(value) => Err(call.not_listed(value)),
        None => call.check_paths(&parsed.operands, Want::Content).map(|()| Stream::Data),
    }
}

/// `openssl x509 -in file -noout -text`, `openssl dgst -sha256 file`, `openssl rand -hex 8`.
pub(super) fn openssl(call: &Call<'_, '_>) -> Result<Stream, String> {
    const SHOWS: &str = "-dates -email -enddate -fingerprint -issuer -modulus -noout -pubkey \
        -purpose -serial -sha1 -sha256 -startdate -subject -text";
    const DIGESTS: &str = "-md5 -sha1 -sha224 -sha256 -sha384 -sha512 -r -hex";
    // Anything with a colon may be the address of a key elsewhere.
    let file = |arg: &Arg| match arg.exact() {
        Some(text) if !text.contains(':') => call.path(arg, Want::Content),
        _ => Err(call.not_listed(arg)),
    };
    let Some((verb, mut args)) = call.args.split_first() else {
        return Err("`openssl` with nothing to do".to_owned());
    };
    let verb = verb.exact().unwrap_or_default();
    while let Some((arg, rest)) = args.split_first() {
        let text = arg.exact().unwrap_or_default();
        args = match (verb, rest) {
            ("x509", [value, rest @ ..]) if text == "-in" => file(value).map(|()| rest)?,
            ("x509", [value, rest @ ..])
                if text == "-inform" && matches!(value.exact(), Some("PEM" | "DER")) =>
            {
                rest
            }
            ("x509", rest) if listed(SHOWS, text) => rest,
            ("dgst", rest) if listed(DIGESTS, text) => rest,
            ("dgst" | "md5" | "sha1" | "sha256" | "sha512", rest) if !text.starts_with('-') => {
                file(arg).map(|()| rest)?
            }
            ("rand", rest) if listed("-hex -base64", text) || is_number(text) => rest,
            ("version", rest) if text == "-a" => rest,
            _ => return Err(call.not_listed(arg)),
        };
    }
    match verb {
        "x509" | "dgst" | "md5" | "sha1" | "sha256" | "sha512" | "rand" | "version" => {
            Ok(Stream::Data)
        }
        _ => Err("`openssl` may write, or reach other machines".to_owned()),
    }
}
