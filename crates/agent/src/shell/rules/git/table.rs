//! The table of git's subcommands.

use super::super::super::repository::Looks;

pub(super) struct Subcommand {
    /// Each with a second word, where one says what is done.
    pub(super) names: &'static [&'static str],
    /// Parts that are read one after the other.
    pub(super) options: &'static [&'static str],
    pub(super) takes: Takes,
    pub(super) looks: Looks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    One,
    /// Commits, files.
    Anything,
    /// Without one of these options operands make something.
    OnlyWith(&'static str),
    PatternThenAnything,
    /// The name of a setting that repositories have: a value behind it would be written, and of
    /// the user's own settings a command that was judged safe sees none.
    Key,
}

const DIFF: &str = "-abpRruwz -U?number -M?number -C?number -B?word -S=word -G=word -l=number -# \
    --abbrev?number --binary --break-rewrites?word --cached --cc --check --color?word \
    --color-moved?word --color-words?word --compact-summary --cumulative --diff-algorithm=word \
    --diff-filter=word --dirstat?word --exit-code --find-copies?number --find-copies-harder \
    --find-renames?number --full-index --function-context -W --histogram --ignore-all-space \
    --ignore-blank-lines --ignore-cr-at-eol --ignore-space-at-eol --ignore-space-change \
    --ignore-submodules?all --indent-heuristic --inter-hunk-context=number --merge-base --minimal \
    --name-only --name-status --no-color --no-color-moved --no-ext-diff --no-patch --no-prefix \
    --no-renames --no-textconv --numstat --patch --patch-with-stat --patience --pickaxe-all \
    --pickaxe-regex --quiet --raw --relative?word --shortstat --staged --stat?word --summary \
    --text --unified?number --word-diff?word --word-diff-regex=word";

const LOG: &str = "-Eci -m -s -g -t -F -P -n=number -L=word --abbrev-commit --after=word --all \
    --all-match --ancestry-path --author=word --author-date-order --basic-regexp --before=word \
    --bisect --boundary --branches?word --cherry --cherry-mark --cherry-pick --children \
    --clear-decorations --committer=word --count --date=word --date-order --decorate?word \
    --decorate-refs=word --dense --exclude=word --extended-regexp --first-parent --fixed-strings \
    --follow --format=word --full-diff --full-history --glob=word --graph --grep=word \
    --invert-grep --left-only --left-right --log-size --max-count=number --max-parents=number \
    --merge --merges --min-parents=number --no-abbrev-commit --no-decorate --no-graph \
    --no-max-parents --no-merges --no-min-parents --no-notes --no-walk?word --not --objects \
    --oneline --parents --perl-regexp --pretty?word --reflog --regexp-ignore-case --relative-date \
    --remotes?word --remove-empty --reverse --show-pulls --show-notes?word --notes?word \
    --simplify-by-decoration --simplify-merges --since=word --since-as-filter=word --skip=number \
    --source --sparse --tags?word --topo-order --until=word --walk-reflogs --no-commit-id --root";

const LIST: &str = "-i --color?word --column?word --contains?word --format=word --ignore-case \
    --list --merged?word --no-color --no-column --no-contains?word --no-merged?word \
    --points-at=word --sort=word";

/// With one of these, names of branches and tags are looked for; without, they are made.
const LISTS: &str = "--contains --list --merged --no-contains --no-merged --points-at";

const NONE: Subcommand =
    Subcommand { names: &[], options: &[], takes: Takes::Nothing, looks: Looks::History };

pub(super) const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        names: &["status"],
        options: &[
            "-sbvz -u?all|no|normal --short --branch --long --verbose --porcelain?v1|v2|1|2 \
                --untracked-files?all|no|normal --ignored?traditional|no|matching --show-stash \
                --ahead-behind --no-ahead-behind --renames --no-renames --find-renames?number \
                --column?word --no-column --ignore-submodules?all",
        ],
        takes: Takes::Anything,
        looks: Looks::Files,
    },
    Subcommand {
        names: &["diff", "diff-files", "diff-index"],
        options: &[DIFF, "-t -0123 --base --ours --theirs --root -m"],
        takes: Takes::Anything,
        looks: Looks::Files,
    },
    Subcommand {
        names: &[
            "log",
            "show",
            "whatchanged",
            "rev-list",
            "diff-tree",
            "stash list",
            "reflog show",
        ],
        options: &[DIFF, LOG],
        takes: Takes::Anything,
        ..NONE
    },
    Subcommand {
        names: &["shortlog"],
        options: &[
            "-cens --after=word --all --author=word --before=word --branches?word --committer \
                --email --first-parent --group=word --max-count=number --merges --no-merges \
                --numbered --since=word --summary --tags?word --until=word",
        ],
        takes: Takes::Anything,
        ..NONE
    },
    Subcommand { names: &["reflog"], options: &[DIFF, LOG], ..NONE },
    Subcommand {
        names: &["stash show"],
        options: &[DIFF, "--include-untracked --only-untracked"],
        takes: Takes::Anything,
        ..NONE
    },
    Subcommand {
        names: &["branch"],
        options: &[
            LIST,
            "-arv --abbrev?number --all --no-abbrev --remotes --show-current --verbose",
        ],
        takes: Takes::OnlyWith(LISTS),
        ..NONE
    },
    Subcommand {
        names: &["tag"],
        options: &[LIST, "-l -n?number"],
        takes: Takes::OnlyWith(
            "-l --contains --list --merged --no-contains --no-merged --points-at",
        ),
        ..NONE
    },
    Subcommand { names: &["remote"], options: &["-v --verbose"], ..NONE },
    Subcommand {
        names: &["remote get-url"],
        options: &["--all --push"],
        takes: Takes::One,
        ..NONE
    },
    Subcommand {
        names: &["config", "config get"],
        options: &["-z --bool --get --get-all --int --local --null --show-origin --show-scope"],
        takes: Takes::Key,
        ..NONE
    },
    Subcommand { names: &["worktree list"], options: &["-vz --porcelain --verbose"], ..NONE },
    Subcommand {
        names: &["rev-parse"],
        options: &["-q --abbrev-ref?word --absolute-git-dir --all --branches --git-common-dir \
            --git-dir --is-bare-repository --is-inside-git-dir --is-inside-work-tree \
            --is-shallow-repository --quiet --remotes --short?number --show-cdup \
            --show-object-format?word --show-prefix --show-toplevel --symbolic \
            --symbolic-full-name --tags --verify"],
        takes: Takes::Anything,
        ..NONE
    },
    Subcommand {
        names: &["ls-files"],
        options: &[
            "-cdfikmostuvz -x=word --abbrev?number --cached --debug --deduplicate --deleted \
                --directory --eol --error-unmatch --exclude=word --exclude-standard --full-name \
                --ignored --killed --modified --no-empty-directory --others --stage --unmerged",
        ],
        takes: Takes::Anything,
        looks: Looks::Files,
    },
    Subcommand {
        names: &["ls-tree"],
        options: &["-dlrtz --abbrev?number --format=word --full-name --full-tree --long \
            --name-only --name-status --object-only"],
        takes: Takes::Anything,
        ..NONE
    },
    Subcommand {
        names: &["cat-file"],
        options: &["-epst --batch-all-objects --batch-check?word"],
        takes: Takes::Anything,
        ..NONE
    },
    Subcommand {
        names: &["blame", "annotate"],
        options: &["-bcefhklnpstw -L=word -M?number -C?number --abbrev=number --color-by-age \
            --color-lines --date=word --first-parent --ignore-rev=word --incremental \
            --line-porcelain --minimal --porcelain --root --score-debug --show-email --show-name \
            --show-number --show-stats --since=word"],
        takes: Takes::Anything,
        looks: Looks::Files,
    },
    Subcommand {
        names: &["grep"],
        options: &["-acEFGhHiIlLnopPqrvwWz -A=number -B=number -C=number -# -e=word -f=path \
            -m=number --after-context=number --all-match --and --before-context=number --break \
            --cached --color?word --column --context=number --count --exclude-standard \
            --extended-regexp --files-with-matches --files-without-match --fixed-strings \
            --full-name --function-context --heading --ignore-case --invert-match --line-number \
            --max-count=number --max-depth=number --name-only --no-color --no-exclude-standard \
            --not --null --only-matching --or --perl-regexp --quiet --recursive --show-function \
            --text --threads=number --untracked --word-regexp"],
        takes: Takes::PatternThenAnything,
        looks: Looks::Files,
    },
    Subcommand {
        names: &["describe"],
        options: &["--abbrev=number --all --always --candidates=number --contains --exact-match \
            --exclude=word --first-parent --long --match=word --tags"],
        takes: Takes::Anything,
        looks: Looks::Files,
    },
    Subcommand {
        names: &["merge-base"],
        options: &["-a --all --fork-point --independent --is-ancestor --octopus"],
        takes: Takes::Anything,
        ..NONE
    },
    Subcommand {
        names: &["name-rev"],
        options: &["--all --always --exclude=word --name-only --no-undefined --refs=word --tags"],
        takes: Takes::Anything,
        ..NONE
    },
    Subcommand {
        names: &["for-each-ref"],
        options: &[LIST, "--count=number --exclude=word --omit-empty"],
        takes: Takes::Anything,
        ..NONE
    },
    Subcommand {
        names: &["show-ref"],
        options: &["-dqs --abbrev?number --branches --dereference --exists --hash?number --head \
            --heads --quiet --tags --verify"],
        takes: Takes::Anything,
        ..NONE
    },
    Subcommand {
        names: &["symbolic-ref"],
        options: &["-q --quiet --short"],
        takes: Takes::One,
        ..NONE
    },
    Subcommand {
        names: &["cherry"],
        options: &["-v --abbrev?number"],
        takes: Takes::Anything,
        ..NONE
    },
    Subcommand { names: &["count-objects"], options: &["-Hv --human-readable --verbose"], ..NONE },
    Subcommand {
        names: &["check-ignore"],
        options: &["-nqvz --non-matching --quiet --verbose"],
        takes: Takes::Anything,
        looks: Looks::Files,
    },
    Subcommand {
        names: &["check-attr"],
        options: &["-az --all --cached"],
        takes: Takes::Anything,
        ..NONE
    },
];
