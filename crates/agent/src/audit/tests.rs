use std::sync::mpsc::channel;

use super::*;

fn notes(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_hostile_text_stays_inside_its_line_and_short() {
    let odd = "a\"}\n{\"what\":\"decided\"}\u{1b}[2J\u{2028}".to_owned() + &"x".repeat(10_000);
    let text = line("test", [("name", odd.into()), ("nothing", Value::Null)]);
    assert!(!text.contains('\n') && !text.contains('\u{1b}'), "{text}");
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["what"], "test");
    assert_eq!(read["name"].as_str().unwrap().chars().count(), TEXT_CHARS_MAX + 1);
    assert!(read.get("nothing").is_none());
}

#[test]
fn a_file_that_was_moved_away_is_followed_by_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("audit.log"), dir.path().join("audit.log.1"));
    let audit = Audit::open(&path).unwrap();
    audit.note("one", []);
    audit.close();
    std::fs::rename(&path, &old).unwrap();
    audit.note("two", []);
    audit.close();
    assert_eq!(notes(&old).len(), 1);
    assert_eq!(notes(&path)[0]["what"], "two");
}

#[test]
fn what_finds_no_room_is_lost_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let (queue, waiting) = sync_channel(2);
    let audit = Audit { queue: Some(queue), counts: Arc::default() };
    for _ in 0..7 {
        audit.note("many", []);
    }
    assert_eq!(audit.counts.lost.get(), 5);
    let (counts, file) = (audit.counts.clone(), AuditFile::open(&path).unwrap());
    drop(audit);
    write(&waiting, file, &counts);
    let told = notes(&path);
    assert_eq!(told.len(), 3);
    assert_eq!((&told[0]["what"], &told[0]["lines"]), (&"notes_lost".into(), &5.into()));
    assert_eq!(counts.written.get(), 2);
}

#[test]
fn a_full_disk_loses_notes_and_stops_nobody() {
    let (queue, waiting) = sync_channel(8);
    let audit = Audit { queue: Some(queue), counts: Arc::default() };
    audit.note("one", []);
    let (done, ended) = channel();
    let counts = audit.counts.clone();
    std::thread::spawn(move || {
        let file = AuditFile::open(Path::new("/dev/full")).unwrap();
        write(&waiting, file, &counts);
        let _ = done.send(());
    });
    audit.close();
    assert_eq!((audit.counts.lost.get(), audit.counts.written.get()), (1, 0));
    drop(audit);
    assert!(ended.recv_timeout(Duration::from_secs(30)).is_ok());
}
