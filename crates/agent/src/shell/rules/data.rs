//! Programs that calculate, format, and look into archives and documents.
//!
//! Left out: `printf -v` (sets a variable), `date -s` (sets the clock), `jq` with modules, `tar`
//! with anything but a list, `gzip` that writes files.

use std::sync::LazyLock;

use super::super::expand::{Arg, Kind};
use super::super::path::Want;
use super::super::walk::Stream;
use super::options::Spec;
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
    // Only prints what is in compressed files.
    Rule { programs: "zcat", operands: Operands::Paths, ..NOTHING },
    Rule { programs: "zipinfo", options: "-1hlmstvz", operands: Operands::Paths, ..NOTHING },
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
    match rest.first() {
        Some(format) if format.is_single() && !format.text.starts_with('-') => {
            match format.kind == Kind::Unknown && format.text.is_empty() {
                true => Err("`printf` with a format that is not known yet".to_owned()),
                false => Ok(Stream::Data),
            }
        }
        Some(format) => Err(call.not_listed(format)),
        None => Ok(Stream::Data),
    }
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

/// `tar -tf archive`, `tar tvf archive`, and nothing else.
pub(super) fn tar(call: &Call<'_, '_>) -> Result<Stream, String> {
    let (letters, rest) = match call.args.split_first() {
        Some((first, rest)) => (first.exact().unwrap_or_default(), rest),
        None => return Err("`tar` with nothing to do".to_owned()),
    };
    let letters = letters.strip_prefix('-').unwrap_or(letters);
    let listing = letters.contains('t')
        && letters.ends_with('f')
        && letters.chars().all(|letter| "tvf".contains(letter));
    let (Some(archive), true) = (rest.first(), listing) else {
        return Err("`tar` may write files".to_owned());
    };
    let named = archive.exact().is_some_and(|name| !name.contains(':') && name != "-");
    let plain = |arg: &Arg| arg.exact().is_some_and(|name| !name.starts_with('-'));
    if !named || !rest.iter().skip(1).all(plain) {
        return Err("`tar` with more than an archive to list".to_owned());
    }
    call.path(archive, Want::Content).map(|()| Stream::Data)
}

pub(super) fn unzip(call: &Call<'_, '_>) -> Result<Stream, String> {
    match call.args {
        [list, archive] if matches!(list.exact(), Some("-l" | "-v" | "-Z1" | "-lv")) => {
            call.path(archive, Want::Content).map(|()| Stream::Data)
        }
        _ => Err("`unzip` may write files".to_owned()),
    }
}

/// What goes to standard output, or is only looked at.
pub(super) fn gzip(call: &Call<'_, '_>) -> Result<Stream, String> {
    match call.args.split_first() {
        Some((mode, files)) if matches!(mode.exact(), Some("-l" | "-t" | "-dc" | "-cd")) => {
            let dashed = files.iter().any(|arg| arg.text.starts_with('-'));
            match dashed {
                true => Err("`gzip` may write files".to_owned()),
                false => call.check_paths(files, Want::Content).map(|()| Stream::Data),
            }
        }
        _ => Err("`gzip` may write files".to_owned()),
    }
}
