//! Programs that print, count, sort, compare and cut text.
//!
//! Left out: `tail -f` (waits), `sort -o` and `--compress-program` (writes, runs), `-S`, `-T` and
//! `--files0-from`, `bat --pager`, `diff -l` (runs `pr`), `split`, `csplit`, `tee` (write), `xxd -r`.

use super::{Lines, NOTHING, Operands, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule {
        programs: "cat",
        options: "-AbeEnstTuv --number --number-nonblank --show-all --show-ends \
            --show-nonprinting --show-tabs --squeeze-blank",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "head tail",
        options: "-qvz -n=number -c=number -# --lines=number --bytes=number --quiet --silent \
            --verbose --zero-terminated",
        operands: Operands::Paths,
        lines: Lines::Passes("-c -v --bytes --verbose"),
        ..NOTHING
    },
    Rule {
        programs: "tac",
        options: "-br -s=word --before --regex --separator=word",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule { programs: "rev", operands: Operands::Paths, ..NOTHING },
    // Where nobody looks at a terminal it only prints.
    Rule {
        programs: "bat batcat",
        options: "-AnpPu -H=word -l=word -r=word --color=always|auto|never --decorations=word \
            --highlight-line=word --language=word --line-range=word --number --paging=never \
            --plain --show-all --style=word --tabs=number --theme=word --wrap=word",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "nl",
        options: "-p -b=word -d=word -f=word -h=word -i=number -l=number -n=ln|rn|rz -s=word \
            -v=number -w=number --body-numbering=word --number-format=ln|rn|rz \
            --number-separator=word --number-width=number --starting-line-number=number",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "wc",
        options: "-clLmw --bytes --chars --lines --max-line-length --words \
            --total=auto|always|only|never",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "sort",
        options: "-bcCdfghiMmnrRsuVz -k=word -t=word --key=word --field-separator=word \
            --numeric-sort --reverse --unique --ignore-case --general-numeric-sort \
            --human-numeric-sort --version-sort --month-sort --random-sort --stable --merge \
            --zero-terminated --check --dictionary-order --ignore-leading-blanks \
            --ignore-nonprinting --parallel=number --debug \
            --sort=general-numeric|human-numeric|month|numeric|random|version",
        operands: Operands::Paths,
        lines: Lines::Passes("--debug"),
        ..NOTHING
    },
    Rule {
        programs: "uniq",
        options: "-cdDiuz -f=number -s=number -w=number --count --repeated --all-repeated?word \
            --group?word --ignore-case --skip-fields=number --skip-chars=number --unique \
            --check-chars=number --zero-terminated",
        operands: Operands::OnePath,
        ..NOTHING
    },
    Rule {
        programs: "cut",
        options: "-nsz -b=word -c=word -d=word -f=word --bytes=word --characters=word \
            --fields=word --delimiter=word --complement --only-delimited \
            --output-delimiter=word --zero-terminated",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "tr",
        options: "-cCdst --complement --delete --squeeze-repeats --truncate-set1",
        operands: Operands::Words,
        ..NOTHING
    },
    Rule {
        programs: "paste",
        options: "-sz -d=word --delimiters=word --serial --zero-terminated",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "join",
        options: "-iz -a=number -e=word -j=word -o=word -t=word -v=number -1=number -2=number \
            --check-order --nocheck-order --header --ignore-case --zero-terminated",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "comm",
        options: "-123z --check-order --nocheck-order --output-delimiter=word --total \
            --zero-terminated",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "cmp",
        options: "-bls -i=word -n=number --bytes=number --ignore-initial=word --print-bytes \
            --quiet --silent --verbose",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "diff",
        options: "-abBcdeEinNpqrstTuwyZ -C=number -F=word -I=word -L=word -U=number -W=number \
            -x=word -X=path --brief --color?always|auto|never --context?number --ed --exclude=word \
            --exclude-from=path --expand-tabs --ignore-all-space --ignore-blank-lines \
            --ignore-case --ignore-file-name-case --ignore-matching-lines=word \
            --ignore-space-change --ignore-tab-expansion --ignore-trailing-space --label=word \
            --left-column --minimal --new-file --no-dereference --normal --recursive \
            --report-identical-files --show-c-function --show-function-line=word --side-by-side \
            --speed-large-files --strip-trailing-cr --suppress-common-lines --tabsize=number \
            --text --unidirectional-new-file --unified?number --width=number",
        operands: Operands::Paths,
        // Also without `-r` it goes through links, in directories that it is given.
        recursive: "always",
        follows: "always",
        ..NOTHING
    },
    Rule {
        programs: "fold",
        options: "-bs -w=number -# --bytes --spaces --width=number",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "fmt",
        options: "-cstu -g=number -p=word -w=number -# --crown-margin --prefix=word \
            --split-only --tagged-paragraph --uniform-spacing --width=number",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "expand unexpand",
        options: "-ai -t=word --all --first-only --initial --tabs=word",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "column",
        options: "-tx -c=number -s=word -o=word -N=word -R=word -H=word -J --columns=number \
            --json --output-separator=word --separator=word --table --table-columns=word \
            --table-right=word",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "od",
        options: "-abcdfilosvx -A=word -j=word -N=word -t=word -w?number \
            --address-radix=word --format=word --output-duplicates --read-bytes=word \
            --skip-bytes=word --width?number",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "hexdump hd",
        options: "-bcCdovx -n=word -s=word -e=word",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "xxd",
        options: "-a -b -e -i -p -u -c:number -g:number -l:number -s:number",
        operands: Operands::OnePath,
        ..NOTHING
    },
    Rule {
        programs: "strings",
        options: "-afow -e=word -n=number -t=d|o|x -# --all --bytes=number --encoding=word \
            --print-file-name --radix=d|o|x",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "base32 base64",
        options: "-di -w=number --decode --ignore-garbage --wrap=number",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "b2sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum",
        options: "-btz --binary --tag --text --zero",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "cksum",
        options: "-a=word --algorithm=word --untagged",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule { programs: "sum", options: "-rs --sysv", operands: Operands::Paths, ..NOTHING },
    Rule { programs: "tsort", operands: Operands::OnePath, ..NOTHING },
    Rule {
        programs: "shuf",
        options: "-erz -i=word -n=number --echo --head-count=number --input-range=word --repeat \
            --zero-terminated",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "pr",
        options: "-adfFJmrtT -h=word -l=number -n? -o=number -w=number -W=number -#",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "look",
        options: "-adf -t=word",
        operands: Operands::TextThenPaths,
        ..NOTHING
    },
];
