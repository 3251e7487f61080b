//! The subcommands of git that only read, in a repository that names no programs.
//!
//! Left out everywhere: `-c`, `--git-dir`, `--exec-path` and `-p` before the subcommand; what
//! writes (`--output`), runs (`--ext-diff`, `--textconv`, `-O`), checks signatures, reads outside
//! (`--no-index`) or looks into other repositories (`--submodule`).

use std::collections::HashMap;
use std::sync::LazyLock;

use super::super::expand::{Arg, Kind};
use super::super::path::Want;
use super::super::walk::{State, Stream};
use super::Call;
use super::options::{Parsed, Spec};

mod table;

use table::{SUBCOMMANDS, Subcommand, Takes};

/// Never among the words, wherever they stand and whatever they might be the value of.
const NEVER: &[&str] = &[
    "--exec",
    "--ext-diff",
    "--no-index",
    "--open-files-in-pager",
    "--output",
    "--paginate",
    "--receive-pack",
    "--recurse-submodules",
    "--show-signature",
    "--submodule",
    "--textconv",
    "--filters",
    "--upload-pack",
];

static KNOWN: LazyLock<HashMap<&'static str, (&'static Subcommand, Spec)>> = LazyLock::new(|| {
    let mut known = HashMap::new();
    for subcommand in SUBCOMMANDS {
        for name in subcommand.names {
            known.insert(*name, (subcommand, Spec::of_all(subcommand.options)));
        }
    }
    known
});

pub(super) fn check(call: &Call<'_, '_>) -> Result<Stream, String> {
    let (state, rest) = before_subcommand(call)?;
    let Some((name, mut args)) = rest.split_first() else {
        return Err("`git` without a subcommand".to_owned());
    };
    let mut name = name.exact().ok_or("`git` with a subcommand that is not known yet")?.to_owned();
    // `git stash list` and the like are one name.
    if let Some((second, after)) = args.split_first() {
        let both = format!("{name} {}", second.exact().unwrap_or_default());
        if KNOWN.contains_key(both.as_str()) {
            name = both;
            args = after;
        }
    }
    let Some((subcommand, spec)) = KNOWN.get(name.as_str()) else {
        let shown = super::super::show::brief(&name);
        return Err(format!("`git {shown}` is not on the list of commands known to be harmless"));
    };
    let never = |arg: &&Arg| {
        let text = arg.text.as_str();
        NEVER.iter().any(|never| text.starts_with(never)) || text.starts_with("-O")
    };
    if let Some(arg) = args.iter().find(never) {
        return Err(call.not_listed(arg));
    }
    let inner = Call { state: &state, args, ..*call };
    let parsed = spec.parse(&inner, args)?;
    check_formats(&inner, &parsed)?;
    check_operands(&inner, subcommand, &parsed)?;
    if call.walk.look.scope.closed.is_some() && may_show_content(&name, &parsed) {
        return Err("rules close paths, and git may show what was in them".to_owned());
    }
    call.walk.reads();
    call.walk.look.repository(&state.cwd, subcommand.looks)?;
    // Names of files are what the index says, and that need not be what is there.
    Ok(Stream::Data)
}

/// Past `--no-pager` and `-C directory`: where git is, and what it is to do.
fn before_subcommand<'c>(call: &Call<'c, '_>) -> Result<(State, &'c [Arg]), String> {
    let mut state = call.state.clone();
    let mut rest = call.args;
    loop {
        rest = match rest {
            [option, rest @ ..]
                if matches!(
                    option.exact(),
                    Some("--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs")
                ) =>
            {
                rest
            }
            [option, directory, rest @ ..] if option.exact() == Some("-C") => {
                let directory = directory.exact().ok_or("`git -C` somewhere unknown")?;
                state.cwd = call.walk.look.directory(&state.cwd, directory)?;
                rest
            }
            [option, ..] if option.text.starts_with('-') => return Err(call.not_listed(option)),
            rest => return Ok((state, rest)),
        };
    }
}

/// Some formats check signatures, which runs another program.
fn check_formats(call: &Call<'_, '_>, parsed: &Parsed) -> Result<(), String> {
    // Between the two characters of `%G` a sign may stand, for the line before it.
    let signed = |text: &str| {
        let rests = text.split('%').skip(1);
        rests.map(|rest| rest.trim_start_matches(['+', '-', ' '])).any(|r| r.starts_with('G'))
    };
    let checks =
        |arg: &&Arg| arg.exact().is_none_or(|text| signed(text) || text.contains("signature"));
    match parsed.values("--format --pretty --sort").find(checks) {
        Some(arg) => Err(call.not_listed(arg)),
        None => Ok(()),
    }
}

fn check_operands(
    call: &Call<'_, '_>,
    subcommand: &Subcommand,
    parsed: &Parsed,
) -> Result<(), String> {
    let mut operands = parsed.operands.as_slice();
    match subcommand.takes {
        Takes::Anything => {}
        Takes::Nothing | Takes::OnlyWith(_) if operands.is_empty() => {}
        Takes::OnlyWith(options) if parsed.has_any(options) => {}
        Takes::One if operands.len() <= 1 => {}
        Takes::PatternThenAnything => {
            if !parsed.has_any("-e -f") {
                operands = operands.get(1..).unwrap_or_default();
            }
        }
        Takes::Key => {
            return match operands {
                [key] if key.exact().is_some_and(is_of_repository) => Ok(()),
                _ => Err("git would write with these words, or shows settings".to_owned()),
            };
        }
        Takes::Nothing | Takes::OnlyWith(_) | Takes::One => {
            return Err("git would write with these words".to_owned());
        }
    }
    operands.iter().try_for_each(|arg| check_operand(call, arg))
}

/// Whether more than names, sizes and messages is shown.
fn may_show_content(name: &str, parsed: &Parsed) -> bool {
    const PATCHES: &str = "-a -B -c -G -L -m -p -R -S -t -u -U -W --binary --cc --check \
        --color-words --full-diff --function-context --inter-hunk-context --patch \
        --patch-with-stat --pickaxe-all --raw --unified --word-diff --word-diff-regex";
    match name {
        "branch" | "check-attr" | "check-ignore" | "cherry" | "config" | "config get"
        | "count-objects" | "describe" | "for-each-ref" | "ls-files" | "ls-tree" | "merge-base"
        | "name-rev" | "remote" | "remote get-url" | "rev-parse" | "shortlog" | "show-ref"
        | "symbolic-ref" | "tag" | "worktree list" => false,
        "status" => parsed.has_any("-v --verbose"),
        "log" | "reflog" | "reflog show" | "rev-list" | "stash list" => parsed.has_any(PATCHES),
        _ => true,
    }
}

fn is_of_repository(key: &str) -> bool {
    let section = key.split_once('.').map(|(section, _)| section);
    section.is_some_and(|section| ["branch", "remote", "submodule"].contains(&section))
}

/// A commit, a file, a range, a file in a commit: nothing that leads out, and no secrets.
fn check_operand(call: &Call<'_, '_>, arg: &Arg) -> Result<(), String> {
    if !matches!(arg.kind, Kind::Literal | Kind::Matched) || arg.text == "-" {
        return Err(call.not_listed(arg));
    }
    let path = match arg.text.split_once(':') {
        Some(("", magic)) if magic.starts_with(['/', '(', '!', '^']) => return Ok(()),
        Some((_, "")) => return Ok(()),
        Some((_, path)) => path,
        None => arg.text.as_str(),
    };
    call.walk.look.path(&call.state.cwd, path, Want::Content)
}
