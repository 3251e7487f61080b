//! The database: limits, damage, other people's files.

use super::*;

fn value(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

async fn hits(of: &UserMemories, query: &str) -> Vec<String> {
    let found = of.search(query, RESULTS_MAX).await.unwrap();
    found.hits.into_iter().map(|hit| hit.key).collect()
}

#[tokio::test]
async fn words_are_found_inside_others_in_any_case_and_language() {
    let ada = Memories::unkept().unwrap().of(Some("ada"));
    for (key, text) in [
        ("deploy", "run parseHTTPHeader before the release"),
        ("city", "彼は東京都に住んでいる"),
        ("food", "Grüße aus KÖLN: likes O'Brien \"potatoes\""),
        ("ci", "GitHub Actions, see .github/workflows"),
    ] {
        ada.remember(key, &value(text)).await.unwrap();
    }
    ada.remember("numbers", r#"{"z":[1.50,"\u6771\u4eac"],"a":null}"#).await.unwrap();
    for (query, want) in [
        ("httphead", &["deploy"][..]),
        ("HEADER", &["deploy"]),
        ("köln", &["food"]),
        ("o'brien", &["food"]),
        ("\"potatoes\"", &["food"]),
        ("東京都", &["city"]),
        ("1.5", &["numbers"]),
        ("ci", &["ci", "city"]),
        ("workflows deploy", &["deploy", "ci"]),
        ("nothing-such", &[]),
        ("NOT *", &[]),
    ] {
        assert_eq!(hits(&ada, query).await, want, "{query}");
    }
    let mut both = hits(&ada, "東京").await;
    both.sort();
    assert_eq!(both, ["city", "numbers"]);
    assert_eq!(hits(&ada, "").await, ["numbers", "ci", "food", "city", "deploy"], "newest first");
}

/// Whatever another user keeps, one's own search says the same to the last digit.
#[tokio::test]
async fn scores_tell_nothing_of_other_users() {
    let all = Memories::unkept().unwrap();
    let (ada, bob) = (all.of(Some("ada")), all.of(Some("bob")));
    for n in 0..5 {
        ada.remember(&format!("k{n}"), &value(&format!("alpha {}", "beta ".repeat(n))))
            .await
            .unwrap();
    }
    let before = ada.search("alpha beta ha", 10).await.unwrap();
    for n in 0..50 {
        bob.remember(&format!("k{n}"), &value("beta alpha alphabet")).await.unwrap();
    }
    assert_eq!(ada.search("alpha beta ha", 10).await.unwrap(), before);
    assert_eq!(ada.keys().await.unwrap().len(), 5);
    assert_eq!(ada.recall("k9").await.unwrap(), None);
}

#[tokio::test]
async fn a_user_can_be_full_and_has_room_again_when_something_is_forgotten() {
    let all = Memories::unkept().unwrap();
    let ada = all.of(None);
    for n in 0..MEMORIES_PER_USER_MAX {
        ada.remember(&n.to_string(), "1").await.unwrap();
    }
    assert!(matches!(ada.remember("more", "1").await, Err(MemoriesError::Full)));
    ada.remember("7", "2").await.unwrap();
    all.of(Some("bob")).remember("more", "1").await.unwrap();
    assert!(ada.forget("8").await.unwrap() && !ada.forget("8").await.unwrap());
    ada.remember("more", "1").await.unwrap();
    assert_eq!(ada.keys().await.unwrap().len(), MEMORIES_PER_USER_MAX);
    assert!(hits(&ada, "more").await == ["more"]);
}

/// Of a user whose memories are all forgotten nothing is left, not even the name.
#[tokio::test]
async fn forgetting_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.db");
    let all = Memories::open(&path).unwrap();
    let ada = all.of(Some("ada"));
    ada.remember("a", &value("alpha")).await.unwrap();
    assert!(ada.forget("a").await.unwrap());
    all.close().await;
    let connection = Connection::open(&path).unwrap();
    for table in ["users", "memories", "words"] {
        let sql = format!("SELECT count(*) FROM {table}");
        let left: i64 = connection.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_what_was_kept_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.db");
    let connection = database::open(&path, 400 * 1024).unwrap();
    let all = Memories::on(connection, "test".into()).unwrap();
    let ada = all.of(None);
    let long = value(&"long text ".repeat(700));
    let mut kept = 0;
    let why = loop {
        match ada.remember(&format!("k{kept}"), &long).await {
            Ok(()) => kept += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(kept > 3 && why.contains("full"), "{kept}: {why}");
    assert_eq!(ada.keys().await.unwrap().len(), kept);
    assert_eq!(ada.recall("k0").await.unwrap(), Some(long));
    for n in 0..kept / 2 {
        assert!(ada.forget(&format!("k{n}")).await.unwrap());
    }
    ada.remember("small", "1").await.unwrap();
}

#[tokio::test]
async fn what_is_not_ours_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.db");
    std::fs::write(&path, "dear diary, nothing happened today, as ever").unwrap();
    assert!(matches!(Memories::open(&path), Err(MemoriesError::Foreign { .. })));
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("dear diary"));
    let other = dir.path().join("other.db");
    let connection = Connection::open(&other).unwrap();
    connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(connection);
    let before = std::fs::read(&other).unwrap();
    assert!(matches!(Memories::open(&other), Err(MemoriesError::Foreign { .. })));
    assert_eq!(std::fs::read(&other).unwrap(), before);
    let newer = dir.path().join("newer.db");
    Memories::open(&newer).unwrap().close().await;
    let connection = Connection::open(&newer).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    assert!(matches!(Memories::open(&newer), Err(MemoriesError::Newer { found: 99, .. })));
    let error = Memories::open(dir.path()).unwrap_err();
    let unusable = Memories::unusable(&error).of(None);
    let why = unusable.keys().await.unwrap_err().to_string();
    assert!(why.starts_with("the memories cannot be reached: "), "{why}");
    assert!(!why.contains(dir.path().to_str().unwrap()), "{why}");
}

#[tokio::test]
async fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("below").join("m.db");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let all = Memories::open(&path).unwrap();
    all.of(None).remember("a", "1").await.unwrap();
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    all.close().await;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    Memories::open(&path).unwrap().close().await;
    assert_eq!(mode(&path), 0o600);
}

/// A name costs a client nothing, so users are bounded; the limit is not reached by tests, but a
/// database with many users still opens.
#[tokio::test]
async fn many_users_share_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.db");
    let all = Memories::open(&path).unwrap();
    for n in 0..200 {
        all.of(Some(&format!("user{n}"))).remember("me", &n.to_string()).await.unwrap();
    }
    all.close().await;
    let all = Memories::open(&path).unwrap();
    assert_eq!(all.of(Some("user150")).recall("me").await.unwrap().as_deref(), Some("150"));
    assert_eq!(hits(&all.of(Some("user150")), "150").await, ["me"]);
}
