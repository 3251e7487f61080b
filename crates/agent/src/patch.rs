//! Edits files by a `*** Begin Patch` text: all the files it names, or none.
//!
//! Three steps: [`parse`] reads the text and touches nothing, [`plan`] reads the files and computes
//! the outcome, [`Plan::apply`] writes it. Between the last two a person may be asked; what was
//! asked about is what is written, or [`PatchError::Changed`] is the answer. All three block.
//!
//! Never: follows a symbolic link, leaves the [`Root`], overwrites a file by adding or moving one,
//! applies a part of a patch, changes a byte of a line that the patch does not change.
//!
//! ```text
//! patch  = "*** Begin Patch" { add | delete | update } "*** End Patch"
//! add    = "*** Add File: " path { "+" text }
//! delete = "*** Delete File: " path
//! update = "*** Update File: " path [ "*** Move to: " path ] { hunk }
//! hunk   = { "@@" [ " " anchor ] | "@@ -1,3 +1,4 @@" [ " " heading ] }
//!          { ( " " | "-" | "+" ) text } [ "*** End of File" ]
//! ```
//!
//! What the grammar leaves open is decided here, once:
//!
//! - *Envelope.* Blank lines around it and blanks around its two markers and a section's header are
//!   accepted, so is a `<<'EOF'` … `EOF` wrapper. Nothing else is: no fences, no other text. Inside
//!   a hunk only a line that begins with `***` or `@@` in its first column is a marker.
//! - *Lines.* In a hunk an empty line is an empty line of context; at the hunk's end it may also be
//!   a mere separator. Any other line without ` `, `-` or `+` is an error. `Add File` without lines
//!   makes an empty file; the last line of a new file always ends with a newline.
//! - *Place.* Context is searched behind the hunk before it: exactly, then without trailing blanks,
//!   then without outer blanks, then with look-alike characters folded. Only one place may fit. If
//!   more do, the one after the anchor or nearest to the line number is taken; without either the
//!   patch is refused. Anchors must exist; line numbers and their headings are only hints.
//! - *Additions without context* go behind the anchor, else to the line number, else to the end.
//! - *`*** End of File`* prefers the place at the end over any other.
//! - *Bytes.* An added line takes the line ending of the line it replaces, else of its neighbour. A
//!   file without a final newline stays without. A byte order mark, the mode and bytes that are not
//!   UTF-8 are kept. A file with NUL bytes is not edited, only deleted or moved.
//! - *Sections* are done in order, each on the outcome of those before it: a file may be updated
//!   twice, or deleted and added again. What a patch added it cannot delete or move.
//! - *Links.* A path that leads through a symbolic link is refused, also when it ends inside.
//! - *Read-only files* are refused for every operation: no mode is changed behind anyone's back.

mod apply;
mod edit;
mod error;
mod halt;
mod journal;
mod matching;
mod parse;
pub(crate) mod path;
mod place;
mod plan;
mod protected;
mod report;
pub(crate) mod root;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use apply::{
    is_unsupported, make_directory, missing_directories, put_where_nothing_is, remove_directory,
    spare_name, unmake_directories,
};
pub use error::PatchError;
pub use journal::{CallOf, Journal, Replayed, Said};
pub(crate) use journal::{Does, Fact, Facts, Flush, Named, Open};
pub use parse::{Patch, parse};
pub use path::shown;
pub use plan::{Plan, plan};
pub(crate) use plan::{Revert, Reverted, Was, plan_content, plan_reverts};
pub(crate) use protected::is_git_directory;
pub use protected::is_protected;
pub(crate) use report::touched_at;
pub use report::{Change, Operation, Touched, touched};
pub use root::Root;

/// The longest patch text.
pub const PATCH_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Lines in all hunks of a patch together; the lines of new files do not count.
pub const PATCH_LINES_MAX: usize = 200_000;
/// Sections of one patch.
pub const SECTIONS_MAX: usize = 256;
/// Files that are changed at once: by a patch, or by taking back what deleted a whole tree.
pub const STEPS_MAX: usize = 6_000;
/// Hunks in all sections of one patch together.
pub const HUNKS_MAX: usize = 5_000;
/// A file that is read, because it is updated, moved or deleted.
pub const FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Lines of a file that is updated.
pub const FILE_LINES_MAX: usize = 1_000_000;
/// Everything a plan holds: old and new contents together.
pub const PLAN_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Lines that the search for all hunks of a patch may compare.
pub const MATCH_STEPS_MAX: usize = 50_000_000;
/// A path, relative to the root.
pub const PATH_BYTES_MAX: usize = 4_000;
/// One name in a path.
pub const NAME_BYTES_MAX: usize = 255;
/// Names in a path.
pub const PATH_DEPTH_MAX: usize = 128;
