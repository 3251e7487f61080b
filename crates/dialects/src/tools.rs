//! Tools have one canonical name; some dialects' clients know them by another.

/// The names of the unified dialect; others keep the canonical one.
pub(crate) fn unified_name(canonical: &str) -> &str {
    match canonical {
        "bash" => "Bash",
        "read" => "Read",
        "write_file" => "Write",
        "edit" => "Edit",
        "multiedit" => "MultiEdit",
        "ls" => "LS",
        "glob" => "Glob",
        "grep" => "Grep",
        "web_fetcher" => "WebFetch",
        "todo_read" => "TodoRead",
        "todo_write" => "TodoWrite",
        "ask_user" => "AskUserQuestion",
        "exit_plan_mode" => "ExitPlanMode",
        other => other,
    }
}
