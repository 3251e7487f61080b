//! B9, F8: others at work in the same place.

use std::os::unix::fs::symlink;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

/// Refusals are quick, so most attempts are refused; as many are made as it takes to have these.
const WRITTEN: usize = 100;
const ATTEMPTS_MAX: usize = 200_000;
const SWAPS_MIN: usize = 10_000;

#[test]
fn b9_no_patch_follows_a_directory_that_keeps_turning_into_a_link() {
    let ground = Ground::new(&[("d/f", b"0\n")]);
    symlink(ground.outside(""), ground.inside("l")).unwrap();
    fs::write(ground.outside("f"), "0\n").unwrap();
    let (swaps, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (mut attempts, mut written, mut updates) = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (ground.inside("d"), ground.inside("l"));
            while !is_over.load(Ordering::Relaxed) || swaps.load(Ordering::Relaxed) < SWAPS_MIN {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                // Pauses of many lengths, to hit every moment of a patch.
                for _ in 0..swaps.fetch_add(1, Ordering::Relaxed) % 200 * 50 {
                    std::hint::spin_loop();
                }
            }
        });
        while written < WRITTEN && attempts < ATTEMPTS_MAX {
            let body = match attempts % 3 {
                0 => format!("*** Add File: d/n{attempts}\n+x"),
                1 => format!("*** Add File: d/s{attempts}/x\n+x"),
                _ => format!("*** Update File: d/f\n@@\n-{updates}\n+{}", updates + 1),
            };
            if ground.apply(&body).is_ok() {
                written += 1;
                updates += usize::from(attempts % 3 == 2);
            }
            attempts += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let outside: Vec<_> = fs::read_dir(ground.outside("")).unwrap().collect();
    assert_eq!(outside.len(), 1, "{outside:?}");
    assert_eq!(fs::read(ground.outside("f")).unwrap(), b"0\n");
    let directory = if ground.inside("d").is_symlink() { "l" } else { "d" };
    assert_eq!(ground.read(&format!("{directory}/f")), format!("{updates}\n"));
    let files = ground.files();
    assert_eq!(files.len(), written - updates + 1, "no spare file is left");
    assert!(files.keys().all(|name| !name.contains(".tmp")));
}

#[test]
fn f8_of_two_patches_of_one_file_one_wins_and_one_is_told() {
    let ground = Ground::new(&[("f", b"0\nrest\n")]);
    for round in 0..200 {
        let start = Barrier::new(2);
        let patch = |who: &str| {
            start.wait();
            ground.apply(&format!("*** Update File: f\n@@\n-{round}\n+{}\n+{who}", round + 1))
        };
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| patch("other"));
            (patch("one"), other.join().unwrap())
        });
        let (winner, error) = match (one, other) {
            (Ok(_), Err(error)) => ("one", error),
            (Err(error), Ok(_)) => ("other", error),
            (one, other) => panic!("round {round}: {one:?} and {other:?}"),
        };
        let told = matches!(error, PatchError::NotFound { .. } | PatchError::Changed { .. });
        assert!(told, "{error}");
        assert_eq!(ground.read("f"), format!("{}\n{winner}\nrest\n", round + 1));
        ground.write("f", format!("{}\nrest\n", round + 1).as_bytes());
    }
    assert_eq!(ground.files().len(), 1);
}
