//! How a script reaches bash, however long it is.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Linux refuses a single argument of 128 KiB or more (32 pages of 4 KiB, with its end mark).
const ARG_BYTES_MAX: usize = 128 * 1024 - 1;

/// Puts a script together from the arguments, forgets them, and runs it in the same shell.
const JOIN_AND_RUN: &str = r#"eval "set --; $(printf %s "$@")""#;

/// The arguments with which `bash` runs `script` as a login shell does.
///
/// A script that is too long for one argument is handed over in parts. The system's limit on all
/// arguments together remains, a quarter of the stack's limit, and that is usually 2 MiB.
pub fn bash_args(script: &OsStr) -> Vec<OsString> {
    if script.len() <= ARG_BYTES_MAX {
        return vec!["-lc".into(), script.into()];
    }
    let parts = script.as_bytes().chunks(ARG_BYTES_MAX);
    ["-lc", JOIN_AND_RUN, "bash"]
        .into_iter()
        .map(OsString::from)
        .chain(parts.map(|part| OsString::from_vec(part.to_vec())))
        .collect()
}
