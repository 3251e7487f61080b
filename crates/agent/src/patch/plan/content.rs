//! Plans the change of one file by a function of its content, for tools that know no hunks.
//!
//! The same picture, limits and steps as a patch: nothing is written here either.

use bytes::Bytes;

use super::super::error::PatchError;
use super::super::report::{Operation, touched_at};
use super::super::root::Root;
use super::{Content, Picture, Plan};

/// `change` is given the content, or nothing where there is no file, and gives the new one or says
/// why it cannot.
pub(crate) fn plan_content(
    root: &Root,
    relative: &str,
    change: impl FnOnce(Option<&[u8]>) -> Result<Vec<u8>, String>,
) -> Result<Plan, PatchError> {
    root.check()?;
    let path = root.relative(relative)?;
    let unfit = |reason| PatchError::unfit(&path, reason);
    let mut picture = Picture::new(root);
    match picture.look(&path)?.now.clone() {
        None => {
            let bytes = change(None).map_err(unfit)?;
            picture.add(path.clone(), Bytes::from(bytes))?;
        }
        Some(before) => {
            // Read-only is said before anything about the content.
            picture.occupied(&path)?;
            let bytes = Bytes::from(change(Some(&before.bytes)).map_err(unfit)?);
            picture.hold(bytes.len())?;
            let after = Content { bytes: bytes.clone(), like: before.like.clone(), mode: None };
            picture.occupied(&path)?.now = Some(after);
            picture.record(path.clone(), Operation::Update, Some(before), Some(bytes));
        }
    }
    let touched = vec![touched_at(root, &path)];
    picture.into_plan(touched)
}
