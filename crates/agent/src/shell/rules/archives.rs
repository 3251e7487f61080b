//! Programs that look into archives and compressed files.
//!
//! Left out: whatever unpacks into files, or packs; other programs than the usual ones for that
//! (`tar -I`); archives on other machines (`tar -tf host:file`).

use super::super::expand::Arg;
use super::super::path::Want;
use super::super::walk::Stream;
use super::{Call, NOTHING, Operands, Rule};

pub(super) const RULES: &[Rule] = &[
    // They only print what is in compressed files.
    Rule { programs: "bzcat lzcat xzcat zcat zstdcat", operands: Operands::Paths, ..NOTHING },
    Rule { programs: "zipinfo", options: "-1hlmstvz", operands: Operands::Paths, ..NOTHING },
];

/// `tar -tf archive`, `tar tvzf archive`, and nothing else.
pub(super) fn tar(call: &Call<'_, '_>) -> Result<Stream, String> {
    let Some((first, mut rest)) = call.args.split_first() else {
        return Err("`tar` with nothing to do".to_owned());
    };
    let mut letters = first.exact().ok_or("`tar` with words that are not known yet")?;
    if letters == "--list" {
        letters = "-t";
    }
    let mut letters = letters.strip_prefix('-').unwrap_or(letters).to_owned();
    // `tar -t -v -f archive`
    while let Some((next, after)) = rest.split_first()
        && !letters.ends_with('f')
        && let Some(more) = next.exact().and_then(|text| text.strip_prefix('-'))
        && !more.starts_with('-')
    {
        letters.push_str(more);
        rest = after;
    }
    // The last three name what the archive is packed with; without them tar looks for itself.
    let listing = letters.contains('t')
        && letters.ends_with('f')
        && letters.chars().all(|letter| "tvfjJz".contains(letter));
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

/// Lists what is in an archive, or prints files in it.
pub(super) fn unzip(call: &Call<'_, '_>) -> Result<Stream, String> {
    match call.args.split_first() {
        Some((mode, [archive, members @ ..]))
            if matches!(mode.exact(), Some("-l" | "-v" | "-Z1" | "-lv" | "-p" | "-t" | "-tq"))
                && members
                    .iter()
                    .all(|arg| !arg.text.starts_with('-') && arg.exact().is_some()) =>
        {
            // It takes a pattern for all the archives that match.
            if archive.text.contains(['*', '?', '[']) {
                return Err(call.not_listed(archive));
            }
            call.path(archive, Want::Content).map(|()| Stream::Data)
        }
        _ => Err("`unzip` may write files".to_owned()),
    }
}

/// What goes to standard output, or is only looked at.
pub(super) fn gzip(call: &Call<'_, '_>) -> Result<Stream, String> {
    let unpacks = ["gunzip", "bunzip2", "unxz", "unzstd"].contains(&call.program);
    let modes: &[&str] = match unpacks {
        true => &["-c", "-t", "-l", "--stdout"],
        false => &["-t", "-l", "-dc", "-cd"],
    };
    match call.args.split_first() {
        Some((mode, files)) if mode.exact().is_some_and(|mode| modes.contains(&mode)) => {
            let dashed = files.iter().any(|arg| arg.text.starts_with('-'));
            match dashed {
                true => Err(format!("`{}` may write files", call.program)),
                false => call.check_paths(files, Want::Content).map(|()| Stream::Data),
            }
        }
        _ => Err(format!("`{}` may write files", call.program)),
    }
}
