//! The tools that a model is told of, with what each interface makes of them: that is the same in
//! every request of every session, so it is written once.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Serialize;

use super::schema::Written;
use super::{Tool, ToolSpec, find};

/// Cheap to clone.
#[derive(Clone, Default)]
pub struct ToolList(Arc<List>);

#[derive(Default)]
struct List {
    specs: Vec<ToolSpec>,
    /// Those of use where nothing may be changed.
    reading: OnceLock<ToolList>,
    /// By the name of the form.
    written: Mutex<Vec<(&'static str, Written)>>,
}

impl ToolList {
    /// Those of use where nothing may be changed.
    pub fn reading(&self) -> ToolList {
        let reads = |spec: &&ToolSpec| find(spec.name).is_some_and(Tool::may_read);
        let reading = || self.iter().filter(reads).cloned().collect();
        self.0.reading.get_or_init(reading).clone()
    }

    /// As an interface writes them; nothing where there are none. What a form makes of a list must
    /// depend on nothing else.
    pub(crate) fn written<'a, T: Serialize>(
        &'a self,
        form: &'static str,
        tools: impl FnOnce(&'a [ToolSpec]) -> T,
    ) -> Option<Written> {
        if self.is_empty() {
            return None;
        }
        let mut known = self.0.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, written)) = known.iter().find(|(name, _)| *name == form) {
            return Some(written.clone());
        }
        let written = Written::of(&tools(self));
        known.push((form, written.clone()));
        Some(written)
    }

    /// In all the forms that were asked for.
    pub(crate) fn written_so_far(&self) -> Vec<Written> {
        let known = self.0.written.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().map(|(_, written)| written.clone()).collect()
    }
}

impl Deref for ToolList {
    type Target = [ToolSpec];

    fn deref(&self) -> &[ToolSpec] {
        &self.0.specs
    }
}

impl FromIterator<ToolSpec> for ToolList {
    fn from_iter<I: IntoIterator<Item = ToolSpec>>(specs: I) -> ToolList {
        let specs = specs.into_iter().collect();
        ToolList(Arc::new(List { specs, ..List::default() }))
    }
}

impl fmt::Debug for ToolList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
