//! What is left of the list of todos that the model wrote last, for the summary that takes the
//! place of the call that wrote it.

use serde_json::Value;

/// The tool whose arguments are the list.
pub const TODOS_TOOL: &str = "todo_write";

/// Of the open todos that stand behind a summary.
pub const OPEN_TODOS_BYTES_MAX: usize = 4_000;

/// One line each; `None` when nothing is open or the arguments are no list.
pub fn open(args: &str) -> Option<String> {
    let args: Value = serde_json::from_str(args).ok()?;
    let todos = args.get("todos")?.as_array()?;
    let mut told = String::from("Open todos:\n");
    let mut any = false;
    for todo in todos {
        let word = |name| todo.get(name).and_then(Value::as_str);
        let Some(content) = word("content") else { continue };
        let mark = match word("status") {
            Some("completed" | "cancelled") => continue,
            Some("in_progress") => " (in progress)",
            _ => "",
        };
        let content = content.trim().replace('\n', " ");
        if told.len() + content.len() > OPEN_TODOS_BYTES_MAX {
            told.push_str("- and more; read the list of todos\n");
            break;
        }
        any = true;
        told.push_str(&format!("- {content}{mark}\n"));
    }
    any.then(|| told.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_told_and_what_is_over_is_not() {
        let args = r#"{"todos":[{"content":"a","status":"completed"},{"content":"b\nc",
            "status":"in_progress"},{"content":"d"},{"status":"pending"}]}"#;
        assert_eq!(open(args).as_deref(), Some("Open todos:\n- b c (in progress)\n- d"));
        for none in ["", "{}", r#"{"todos":7}"#, r#"{"todos":[]}"#] {
            assert_eq!(open(none), None);
        }
        let long =
            format!(r#"{{"todos":[{{"content":"a"}},{{"content":"{}"}}]}}"#, "x".repeat(5_000));
        let told = open(&long).unwrap_or_default();
        assert!(told.ends_with("and more; read the list of todos"), "{told}");
    }
}
