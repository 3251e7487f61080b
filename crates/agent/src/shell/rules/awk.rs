//! `awk`: programs that cannot but print.
//!
//! No grammar is needed for that. A program runs or writes something only by `system`, `getline`,
//! a `|` or `>` somewhere behind `print`, an extension or an indirect call; it reads other files
//! only by `getline` or by changing its arguments. A program without these words and signs, in
//! strings or not, does none of it.

use std::sync::LazyLock;

use super::super::path::Want;
use super::super::walk::Stream;
use super::Call;
use super::options::Spec;

const OPTIONS: &str = "-F=word -v=word --field-separator=word --assign=word";

const WORDS: &[&str] = &[
    "@",
    "ARGC",
    "ARGIND",
    "ARGV",
    "ENVIRON",
    "FUNCTAB",
    "PROCINFO",
    "SYMTAB",
    "extension",
    "getline",
    "system",
    "\\\n",
];

pub(super) fn check(call: &Call<'_, '_>) -> Result<Stream, String> {
    static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec::of(OPTIONS));
    let parsed = SPEC.parse(call, call.args)?;
    for value in parsed.values("-v --assign") {
        let name = value.text.split_once('=').map(|(name, _)| name).unwrap_or_default();
        if !super::super::read::is_name(name) || WORDS.contains(&name) {
            return Err(call.not_listed(value));
        }
    }
    let Some((program, files)) = parsed.operands.split_first() else {
        return Ok(Stream::Data); // `--help`, or an error.
    };
    let text = program.exact().ok_or("`awk` with a program that is not known yet")?;
    if !only_prints(text) {
        return Err("`awk` with a program that may write, or run something".to_owned());
    }
    // `name=value` among the files sets a variable.
    let sets = |name: &str| WORDS.iter().any(|word| name.starts_with(word));
    if let Some(arg) = files.iter().find(|arg| arg.text.contains('=') && sets(&arg.text)) {
        return Err(call.not_listed(arg));
    }
    call.check_paths(files, Want::Content).map(|()| Stream::Data)
}

fn only_prints(program: &str) -> bool {
    if WORDS.iter().any(|word| program.contains(word)) {
        return false;
    }
    let program = without_strings(program).unwrap_or_else(|| program.to_owned());
    // Before the first `print` these only compare, or choose in a pattern.
    match program.rfind(['|', '>']) {
        Some(last) => !program.get(..last).unwrap_or_default().contains("print"),
        None => true,
    }
}

/// The program without its strings, if it is certain where they are: no regular expression, no
/// comment and no division is in it, and no quotation mark stands for itself.
fn without_strings(program: &str) -> Option<String> {
    if program.contains(['/', '#', '\\']) || !program.matches('"').count().is_multiple_of(2) {
        return None;
    }
    // Text behind a first quotation mark, and behind every second one after it, is in a string.
    let parts = program.split('"').enumerate();
    if parts.clone().any(|(at, part)| at % 2 == 1 && part.contains('\n')) {
        return None;
    }
    Some(parts.filter(|(at, _)| at % 2 == 0).map(|(_, part)| part).collect())
}
