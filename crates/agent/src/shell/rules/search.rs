//! Programs that search in files and for files. `find` has a file of its own.
//!
//! Left out: `rg --pre`, `--hostname-bin` and `-z` (run programs), `fd -x`, `-X` and `-l`.

use super::{Lines, NOTHING, Operands, Rule};

const GREP: Rule = Rule {
    programs: "grep egrep fgrep",
    options: "-abcEFGhHiIlLnoPqrRsTUvwxyzZ -A=number -B=number -C=number -# -d=read|recurse|skip \
        -e=word -f=path -m=number --after-context=number --basic-regexp --before-context=number \
        --binary --binary-files=binary|text|without-match --byte-offset \
        --color?always|auto|never --colour?always|auto|never --context=number --count \
        --dereference-recursive --directories=read|recurse|skip --exclude=word \
        --exclude-dir=word --exclude-from=path --extended-regexp --file=path \
        --files-with-matches --files-without-match --fixed-strings --ignore-case --include=word \
        --initial-tab --invert-match --label=word --line-buffered --line-number --line-regexp \
        --max-count=number --no-filename --no-ignore-case --no-messages --null --null-data \
        --only-matching --perl-regexp --quiet --recursive --regexp=word --silent --text \
        --with-filename --word-regexp",
    operands: Operands::TextThenPaths,
    recursive: "-r -R -d --recursive --dereference-recursive --directories",
    follows: "-R --dereference-recursive",
    instead: "-e -f --regexp --file",
    names: "-l -L --files-with-matches --files-without-match",
    echoes: "",
    beside: "-E -F -G -I -P -R -e -i -r -s -v -w -x -Z --exclude --exclude-dir --include \
        --ignore-case --null --recursive --dereference-recursive --word-regexp",
    lines: Lines::Passes(
        "-o --only-matching -n --line-number -c --count -b --byte-offset -H --with-filename \
            --label -A -B -C -# --after-context --before-context --context -T --initial-tab \
            --color --colour",
    ),
};

const RG: Rule = Rule {
    programs: "rg",
    options: "-0.abcFhHiIlLnNopPqsSuUvVwx -A=number -B=number -C=number -d=number -e=word \
        -E=word -f=path -g=word -j=number -m=number -M=number -r=word -t=word -T=word \
        --after-context=number --auto-hybrid-regex --before-context=number --binary \
        --block-buffered --byte-offset --case-sensitive --color=always|ansi|auto|never \
        --colors=word --column --context=number --context-separator=word --count \
        --count-matches --crlf --debug --encoding=word --engine=auto|default|pcre2 \
        --field-context-separator=word --field-match-separator=word --file=path --files \
        --files-with-matches --files-without-match --fixed-strings --follow --glob=word \
        --glob-case-insensitive --heading --hidden --iglob=word --ignore-case --ignore-file=path \
        --include-zero --invert-match --json --line-buffered --line-number --line-regexp \
        --max-columns=number --max-columns-preview --max-count=number --max-depth=number \
        --max-filesize=number --multiline --multiline-dotall --no-config --no-filename \
        --no-follow --no-heading --no-hidden --no-ignore --no-ignore-dot --no-ignore-exclude \
        --no-ignore-files --no-ignore-global --no-ignore-messages --no-ignore-parent \
        --no-ignore-vcs --no-json --no-line-number --no-messages --no-mmap \
        --no-require-git --no-text --no-unicode --null --null-data --one-file-system \
        --only-matching --passthru --path-separator=word --pcre2 --pretty --quiet --regexp=word \
        --replace=word --smart-case --sort=accessed|created|modified|none|path \
        --sortr=accessed|created|modified|none|path --stats --stop-on-nonmatch --text \
        --threads=number --trim --type=word --type-add=word --type-clear=word --type-list \
        --type-not=word --unrestricted --vimgrep --with-filename --word-regexp",
    operands: Operands::TextThenPaths,
    recursive: "always",
    follows: "-L --follow",
    instead: "-e -f --regexp --file --files --type-list",
    names: "-l --files --files-with-matches --files-without-match",
    echoes: "",
    beside: "-. -0 -F -L -P -S -T -U -d -e -g -i -s -t -u -v -w -x --follow --glob --hidden --iglob \
        --max-depth --no-ignore --no-messages --null --sort --sortr --type --type-not \
        --unrestricted",
    lines: Lines::Changes,
};

const FD: Rule = Rule {
    programs: "fd fdfind",
    options: "-0aFgHiIpqsu1 -c=auto|always|never -d=number -e=word -E=word -j=number -S=word \
        -t=word --absolute-path --case-sensitive --changed-before=word --changed-within=word \
        --color=auto|always|never --exact-depth=number --exclude=word --extension=word \
        --fixed-strings --full-path --glob --hidden --ignore-case --max-depth=number \
        --max-results=number --min-depth=number --no-ignore --no-ignore-vcs --print0 --prune \
        --quiet --size=word --threads=number --type=word --unrestricted",
    operands: Operands::TextThenPaths,
    ..NOTHING
};

pub(super) const RULES: &[Rule] = &[
    GREP,
    RG,
    FD,
    Rule { programs: "which", options: "-as --all", operands: Operands::Words, ..NOTHING },
    Rule { programs: "whereis", options: "-bmsu", operands: Operands::Words, ..NOTHING },
    Rule { programs: "type", options: "-apPt", operands: Operands::Words, ..NOTHING },
];
