//! The README's table of settings, made from the table in code.

use super::settings::{self, Kind, Preset, Setting};

const TABLE_BEGIN: &str = "<!-- settings: begin -->";
const TABLE_END: &str = "<!-- settings: end -->";

/// Every setting as one row of a Markdown table.
pub(crate) fn markdown_table() -> String {
    let rows = settings::ALL.iter().map(|setting| row(setting));
    let head = "| Setting | Value | Default | What it does |\n|---|---|---|---|\n".to_owned();
    head + &rows.collect::<String>()
}

fn row(setting: &Setting) -> String {
    let value = match setting.kind {
        Kind::Word { words, .. } => code_list(words),
        Kind::Switch => code_list(&["true", "false"]),
        Kind::Fraction => "above 0, up to 1".to_owned(),
        Kind::Part => "0 to 1".to_owned(),
        Kind::Dollars => "dollars, above 0".to_owned(),
        Kind::Number { unit: "", min, max, .. } => format!("{min}–{max}"),
        Kind::Number { unit, min, max, .. } => format!("{min}–{max} {unit}"),
        Kind::Host => "IP address or `localhost`".to_owned(),
        Kind::HostAndPort => "`HOST:PORT`; only a flag".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Secret | Kind::Token => "secret".to_owned(),
        Kind::BaseUrl => "URL".to_owned(),
        Kind::ProxyUrl | Kind::StoreUrl => "URL; secret".to_owned(),
        Kind::File => "file".to_owned(),
        Kind::Directory => "directory".to_owned(),
        Kind::Origins => "`scheme://host[:port]`, comma-separated".to_owned(),
        Kind::HostNames => "names or addresses, comma-separated".to_owned(),
        Kind::Directories => "directories, comma-separated".to_owned(),
    };
    let default = match setting.preset {
        Preset::Is(value) => format!("`{value}`"),
        Preset::Unset("") => "none".to_owned(),
        Preset::Unset(otherwise) => otherwise.to_owned(),
    };
    format!("| `{}` | {value} | {default} | {} |\n", setting.label(), setting.help)
}

fn code_list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// What to change in a README so that its table, which stands between two comments, is true.
pub(crate) fn readme_problem(readme: &str) -> Option<String> {
    let found = readme
        .split_once(TABLE_BEGIN)
        .and_then(|(_, rest)| rest.split_once(TABLE_END))
        .map(|(table, _)| table.trim());
    let expected = markdown_table();
    (found != Some(expected.trim())).then(|| {
        format!("the README must have this table:\n\n{TABLE_BEGIN}\n\n{expected}\n{TABLE_END}\n")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_all_about_a_setting() {
        let table = markdown_table();
        let has = |row: &str| assert!(table.contains(&format!("\n{row}\n")), "{row}\n{table}");
        has("| `PORT` | 0–65535 | `8080` | Port to listen on; 0 takes any free one |");
        has("| `--addr` | `HOST:PORT`; only a flag | `HOST` and `PORT` | Both in one; wins over \
             HOST and PORT |");
        has("| `LOG_FORMAT` | `human`, `json` | `human` | How it is logged |");
        has("| `ANTHROPIC_API_KEY` | secret | none | Key for PROVIDER=anthropic |");
        has(
            "| `HTTP_PROXY` | URL; secret | none | Proxy for http URLs of models and web pages; http_proxy \
             counts too |",
        );
        assert_eq!(table.lines().count(), settings::ALL.len() + 2);
    }

    #[test]
    fn every_row_has_four_cells() {
        for row in markdown_table().lines() {
            assert_eq!(row.matches('|').count(), 5, "{row}");
        }
    }

    #[test]
    fn the_readme_is_true() {
        let readme = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"));
        assert_eq!(readme_problem(readme), None);
    }

    #[test]
    fn a_readme_is_true_or_told_how_to_be() {
        let table = markdown_table();
        let readme = |table: &str| format!("# A\n{TABLE_BEGIN}\n\n{table}\n{TABLE_END}\nend\n");
        assert_eq!(readme_problem(&readme(&table)), None);

        let old = table.replace("8080", "9090");
        for wrong in [readme(&old), readme(""), table.clone(), String::new()] {
            let problem = readme_problem(&wrong).unwrap();
            assert_eq!(readme_problem(&problem), None, "the advice is a README that is right");
        }
    }
}
