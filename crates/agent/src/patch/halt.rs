//! Where a test can end the work in the middle, as a kill would; nothing in the program itself.
//!
//! Whoever changes something on disk calls [`point`] before and after.

#[cfg(not(test))]
pub(super) fn point() {}

/// Whether the file system is to be taken for one that knows only the oldest kind of renaming.
#[cfg(not(test))]
pub(super) fn is_plain() -> bool {
    false
}

#[cfg(test)]
pub(super) use in_tests::{Halted, is_plain, on_a_plain_file_system, point, run};

#[cfg(test)]
mod in_tests {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    thread_local! {
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
        static PLAIN: Cell<bool> = const { Cell::new(false) };
    }

    pub(in crate::patch) fn is_plain() -> bool {
        PLAIN.with(Cell::get)
    }

    pub(in crate::patch) fn on_a_plain_file_system<T>(work: impl FnOnce() -> T) -> T {
        let before = PLAIN.with(|plain| plain.replace(true));
        let done = work();
        PLAIN.with(|plain| plain.set(before));
        done
    }

    /// What the work ends with when it is ended. Nothing is put in order while it unwinds: no
    /// `Drop` here touches a file.
    #[derive(Debug)]
    pub(in crate::patch) struct Halted;

    pub(in crate::patch) fn point() {
        LEFT.with(|left| match left.get() {
            None => {}
            Some(0) => {
                left.set(None);
                resume_unwind(Box::new(Halted));
            }
            Some(more) => left.set(Some(more - 1)),
        });
    }

    /// Lets `work` pass `points` points and ends it at the next one.
    pub(in crate::patch) fn run<T>(points: usize, work: impl FnOnce() -> T) -> Result<T, Halted> {
        LEFT.with(|left| left.set(Some(points)));
        let ended = catch_unwind(AssertUnwindSafe(work));
        LEFT.with(|left| left.set(None));
        ended.map_err(|cause| match cause.downcast::<Halted>() {
            Ok(halted) => *halted,
            Err(other) => resume_unwind(other),
        })
    }
}
