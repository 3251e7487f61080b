//! The same again as an ordinary user, if these tests run as root: root is asked in other ways.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use crate::ground::{GROUND_VARIABLE, has_program};
use crate::{SERVER_VARIABLE, server_path};

const NOBODY: u32 = 65534;

/// The rooms of these tests that have to do with confinement.
const ROOMS: &[&str] =
    &["calls::", "closed::", "confined::", "escape::", "held::", "limits::", "network::", "stay::"];

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: this is an ordinary user already");
        return;
    }
    if !has_program("setpriv") {
        return;
    }
    // Visible in the sandbox, and where that user can come.
    let place = ["/srv", "/opt", "/home", "/usr/local"].into_iter().find(|p| Path::new(p).is_dir());
    let place = place.expect("a directory that everybody can enter");
    let dir = tempfile::Builder::new().prefix("user-").tempdir_in(place).unwrap();
    let copy = |from: &Path, name: &str| {
        let to = dir.path().join(name);
        fs::copy(from, &to).unwrap();
        to
    };
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let server = copy(&server_path(), "server");
    let tests = copy(&std::env::current_exe().unwrap(), "tests");
    let ground = dir.path().join("ground");
    fs::create_dir(&ground).unwrap();
    chown(&ground, Some(NOBODY), Some(NOBODY)).unwrap();

    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(tests)
        .args(ROOMS)
        .env(GROUND_VARIABLE, &ground)
        .env(SERVER_VARIABLE, server)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ran = said.lines().filter(|line| line.ends_with(" ... ok")).count();
    assert!(ran > 40, "only {ran} tests ran");
}
