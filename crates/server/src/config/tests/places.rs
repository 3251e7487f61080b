//! Files and directories: what must exist, where paths begin, and which `.env` counts.

use super::*;

#[test]
fn a_missing_instructions_file_is_reported() {
    let start = Start::offline().env("INSTRUCTIONS_FILE_PATH", "./rules.md");
    let path = start.path("rules.md");
    let config = start.config();
    assert_eq!(config.instructions_file.as_deref(), Some(path.as_path()));
    assert_eq!(config.warnings, [format!("Instructions file not found: {}", path.display())]);

    let there = start.file("rules.md", "Be kind.").config();
    assert_eq!(there.instructions_file, Some(path));
    assert!(there.warnings.is_empty(), "{:?}", there.warnings);

    let start = Start::offline().folder("rules").env("INSTRUCTIONS_FILE_PATH", "rules");
    let expected = format!("Instructions file is a directory: {}", start.path("rules").display());
    assert_eq!(start.config().warnings, [expected]);

    let start = Start::offline().file("a", "").env("INSTRUCTIONS_FILE_PATH", "a/b");
    let expected = format!("Error reading instructions file: {}: ", start.path("a/b").display());
    let warnings = start.config().warnings;
    assert!(warnings.len() == 1 && warnings[0].starts_with(&expected), "{warnings:?}");
}

#[test]
fn the_working_directory_must_exist() {
    let start = Start::offline().env("WORKING_DIRECTORY", "nowhere/at/all");
    let path = start.path("nowhere/at/all");
    assert_eq!(start.problems(), [format!("Working directory does not exist: {}", path.display())]);
    let start = Start::offline().file("file", "").env("WORKING_DIRECTORY", "file");
    let path = start.path("file");
    assert_eq!(
        start.problems(),
        [format!("Working directory is not a directory: {}", path.display())]
    );
    let start = Start::offline().file("file", "").env("WORKING_DIRECTORY", "file/x");
    let expected =
        format!("Working directory cannot be used: {}: ", start.path("file/x").display());
    assert!(start.problems()[0].starts_with(&expected), "{:?}", start.problems());
}

#[test]
fn the_working_directory_is_the_real_one() {
    let start = Start::offline().folder("real").env("WORKING_DIRECTORY", "./link");
    std::os::unix::fs::symlink(start.path("real"), start.path("link")).unwrap();
    assert_eq!(start.config().working_directory, start.path("real"));
}

#[test]
fn the_working_directory_has_no_say() {
    let start = Start::offline().folder("work").env("WORKING_DIRECTORY", "work");
    let start = start.file("work/.env", "PORT=6666\nHOST=0.0.0.0\nPOLYLOOP_X=1\nbroken line\n");
    let config = start.config();
    assert_eq!(config.addr().to_string(), "127.0.0.1:8080");
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}

#[test]
fn stores_begin_where_the_server_is_started() {
    let start = Start::offline()
        .folder("work")
        .env("WORKING_DIRECTORY", "work")
        .env("SESSION_STORE_PATH", "./sessions")
        .env("TODOS_STORE_PATH", "/var/some where/todos ");
    let config = start.config();
    assert_eq!(config.session_store, Some(start.path("sessions")));
    assert_eq!(config.todos_store, Some(PathBuf::from("/var/some where/todos ")));
    assert!(!start.path("sessions").exists(), "reading makes nothing");

    let start = start.file("sessions", "");
    let expected = format!(
        "SESSION_STORE_PATH: {:?} is not a directory; use the path of a directory",
        start.path("sessions")
    );
    assert_eq!(start.problems(), [expected]);
}

/// A path need not be text.
#[test]
fn any_file_name_is_a_path() {
    let name = OsString::from_vec(b"st\xffre".to_vec());
    let start = Start::offline().env("SESSION_STORE_PATH", name.clone());
    assert_eq!(start.config().session_store, Some(start.path("").join(name)));
}

#[test]
fn a_broken_file_stops_the_server() {
    let start = Start::offline().file(".env", "PORT=1\n\nOPENAI_API_KEY=hunter2 hunter2\n");
    let expected = format!(
        "{} line 3: is not NAME=value; put quotes around a value with spaces, and close every \
         quote",
        start.path(".env").display()
    );
    assert_eq!(start.problems(), [expected]);
}

#[test]
fn the_file_stays_out_of_the_process_environment() {
    let name = "CONTEXT_COMPACTION_THRESHOLD";
    assert!(std::env::var_os(name).is_none(), "the test needs a variable that is not set");
    let start = Start::offline().file(".env", &format!("{name}=0.25\nPOLYLOOP_LEAK=1\n"));
    assert_eq!(start.says(name), "0.25");
    assert!(std::env::var_os(name).is_none());
    assert!(std::env::var_os("POLYLOOP_LEAK").is_none());
}
