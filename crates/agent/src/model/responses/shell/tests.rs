//! Scripts that do what the words would.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::shell::literal_argv;

fn args_of(action: Value) -> Value {
    let text = action.to_string();
    serde_json::from_str(&args(Object::read(&text).as_ref())).unwrap()
}

fn script_of(words: &[&str]) -> String {
    let args = args_of(json!({ "type": "exec", "command": words, "env": {} }));
    args["command"].as_str().unwrap().to_owned()
}

#[test]
fn a_shells_script_is_the_script() {
    assert_eq!(script_of(&["bash", "-lc", "ls | wc -l"]), "ls | wc -l");
    assert_eq!(script_of(&["bash", "-c", "x"]), "x");
    assert_eq!(script_of(&["sh", "-c", "x"]), "x");
    assert_eq!(script_of(&["/bin/bash", "-lc", "x"]), "x");
    // Another program of that name, another option, more words: other commands.
    assert_eq!(script_of(&["/tmp/bash", "-lc", "x y"]), "/tmp/bash -lc 'x y'");
    assert_eq!(script_of(&["bash", "-x", "a b"]), "bash -x 'a b'");
    assert_eq!(script_of(&["bash", "-lc", "echo $0", "me"]), "bash -lc 'echo $0' me");
}

#[test]
fn words_stay_what_they_are() {
    assert_eq!(script_of(&["ls", "-la", "a b"]), "ls -la 'a b'");
    assert_eq!(script_of(&["echo", ""]), "echo ''");
    assert_eq!(script_of(&["echo", "it's"]), r#"echo 'it'"'"'s'"#);
    assert_eq!(
        script_of(&["echo", "$HOME", "`id`", "a\nb", "*", "~", "#", "é"]),
        "echo '$HOME' '`id`' 'a\nb' '*' '~' '#' 'é'"
    );
    assert_eq!(script_of(&["env", "A=b", "if"]), "env A=b if");
    // At the front these would be read, not run.
    assert_eq!(script_of(&["A=b", "x y"]), "'A=b' 'x y'");
    assert_eq!(script_of(&["if", "true"]), "'if' true");
    assert_eq!(script_of(&["!", "true"]), "'!' true");
    assert_eq!(script_of(&["[[", "x"]), "'[[' x");
}

#[test]
fn a_variable_stands_before_its_command() {
    let action = json!({
        "type": "exec",
        "command": ["make", "all"],
        "env": { "A_1": "it's", "_B": "" },
        "working_directory": "sub dir",
        "timeout_ms": 5000,
        "user": "root",
    });
    let expected = json!({
        "command": r#"A_1='it'"'"'s' _B='' make all"#,
        "workdir": "sub dir",
        "timeout_ms": 5000,
    });
    assert_eq!(args_of(action), expected);

    // For all of a script, not only for its first command.
    let env = json!({ "A": "1" });
    let action = json!({ "type": "exec", "command": ["bash", "-lc", "x; y"], "env": env });
    assert_eq!(args_of(action), json!({ "command": "A='1' bash -lc 'x; y'" }));
    let action = json!({ "command": "x; y", "env": env });
    assert_eq!(args_of(action), json!({ "command": "A='1' bash -c 'x; y'" }));
    assert_eq!(args_of(json!({ "command": "x; y" })), json!({ "command": "x; y" }));
}

#[test]
fn what_no_script_stands_for_is_refused() {
    let ls = json!(["ls"]);
    let cases = [
        json!({ "command": ls, "env": { "a b": "c" } }),
        json!({ "command": ls, "env": { "A;id": "c" } }),
        json!({ "command": ls, "env": { "1A": "c" } }),
        json!({ "command": ls, "env": { "": "c" } }),
        json!({ "command": ls, "env": { "É": "c" } }),
        json!({ "command": ls, "env": { "A": 1 } }),
        json!({ "command": ls, "env": ["A"] }),
        json!({ "command": ls, "type": "paste" }),
        json!({ "command": [], "type": "exec" }),
        json!({ "command": ["ls", 1], "type": "exec" }),
        json!({ "command": null }),
        json!({}),
    ];
    for case in cases {
        let args = args_of(case.clone());
        assert!(args.get("command").is_none() && args["unsupported"].is_string(), "{case}: {args}");
    }
    assert!(args(None).starts_with(r#"{"unsupported":"#));
    // What is only odd is left out.
    let odd = json!({ "command": ls, "env": null, "timeout_ms": -1, "working_directory": 5 });
    assert_eq!(args_of(odd), json!({ "command": "ls" }));
}

proptest! {
    /// Our own reader of scripts, which takes less than bash, gets the same words back.
    #[test]
    fn words_come_back(
        first in "[a-z/]{1,8}",
        rest in proptest::collection::vec("[ -~äß✂]{0,12}", 0..5),
    ) {
        prop_assume!(!RESERVED.contains(&&*first));
        let mut words = vec![first];
        words.extend(rest);
        prop_assert_eq!(literal_argv(&quoted(&words)), Some(words));
    }
}
