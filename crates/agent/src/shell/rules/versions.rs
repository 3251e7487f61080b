//! Programs that are asked for their version, and for nothing else.
//!
//! Left out: those that look into the directory first and may run or fetch what they find there
//! (`yarn`, `pnpm`, `npm`, `python -m`), and those that leave something behind (`java`).

use super::Call;

/// Programs, and the words that ask for a version.
const VERSIONS: &[(&str, &str)] = &[
    ("make", "--version -v"),
    ("git", "version --version"),
    ("bash cmake ninja tar curl wget sqlite3 psql sh zsh less vim", "--version"),
    ("gcc g++ cc c++ clang clang++ ld", "--version -v"),
    ("python python3 python2", "--version -V -VV"),
    ("pip pip3 uv ruff", "--version"),
    ("node deno bun", "--version -v"),
    ("perl ruby php lua", "--version -v"),
    ("rustc cargo rustfmt", "--version -V -vV"),
    ("go", "version"),
    ("docker podman", "--version -v"),
    ("openssl", "version"),
    ("ssh", "-V"),
    ("rg jq fd tree find grep sed awk gawk bat batcat yq", "--version"),
];

/// Whether this command does nothing but print a version; an error if some other program than the
/// system's might answer.
pub(super) fn is_asked_for(call: &Call<'_, '_>) -> Result<bool, String> {
    let question = match call.args {
        [question] => question,
        [question, more]
            if ["cargo", "rustc"].contains(&call.program) && more.exact() == Some("--verbose") =>
        {
            question
        }
        _ => return Ok(false),
    };
    let asks = |(programs, questions): &&(&str, &str)| {
        programs.split(' ').any(|program| program == call.program)
            && questions.split(' ').any(|known| Some(known) == question.exact())
    };
    if VERSIONS.iter().find(asks).is_none() {
        return Ok(false);
    }
    call.walk.look.scope.check_own_program(call.program, &call.state.cwd)?;
    Ok(true)
}
