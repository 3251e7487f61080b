//! Programs that list files and say what they are.
//!
//! Left out: `ls -L` and `tree -l` (follow links), `tree -o` and `-R` (write), `file -f`, `-m`,
//! `-C`, `-z` and `-p`, `objdump -S` (shows whatever source file a program names).

use super::{NOTHING, Operands, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule {
        programs: "ls dir vdir",
        options: "-1aAbBcCdfFgGhiklmnNopqQrRsStuUvxXZ -I=word -T=number -w=number --all \
            --almost-all --author --block-size=word --classify?word --color?always|auto|never \
            --context --directory --escape --file-type --format=word --full-time \
            --group-directories-first --hide=word --human-readable --ignore=word --ignore-backups \
            --indicator-style=word --inode --kibibytes --literal --no-group --numeric-uid-gid \
            --quote-name --quoting-style=word --recursive --reverse --show-control-chars --si \
            --size --sort=word --tabsize=number --time=word --time-style=word --width=number \
            --zero",
        operands: Operands::Names,
        recursive: "-R --recursive",
        echoes: "-1 -a -A -d -r -S -t -U -v -X",
        ..NOTHING
    },
    Rule {
        programs: "tree",
        options: "-a -A -c -C -d -D -f -F -g -h -i -J -n -N -p -q -Q -r -s -S -t -u -U -v -x -X \
            -I:word -L:number -P:word --charset?word --device --dirsfirst --du --filelimit?number \
            --filesfirst --gitignore --ignore-case --inodes --matchdirs --noreport --prune --si \
            --sort?word --timefmt?word",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "stat",
        options: "-fLt -c=word --dereference --file-system --format=word --printf=word --terse",
        operands: Operands::Names,
        ..NOTHING
    },
    Rule {
        programs: "file",
        options: "-0bEhikLNr -e=word -F=word --brief --dereference --exclude=word --extension \
            --keep-going --mime --mime-encoding --mime-type --no-buffer --no-dereference --no-pad \
            --print0 --raw --separator=word",
        operands: Operands::Names,
        ..NOTHING
    },
    Rule {
        programs: "du",
        options: "-0abchklmsSx -B=word -d=number -t=word --all --apparent-size --block-size=word \
            --bytes --count-links --exclude=word --human-readable --inodes --max-depth=number \
            --null --one-file-system --separate-dirs --si --summarize --threshold=word \
            --time?word --total",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "df",
        options: "-ahHiklPT -B=word -t=word -x=word --all --block-size=word --exclude-type=word \
            --human-readable --inodes --local --output?word --portability --print-type --si \
            --total --type=word",
        operands: Operands::Names,
        ..NOTHING
    },
    // None of their options does anything but change what is printed.
    Rule { programs: "basename dirname", operands: Operands::Anything, ..NOTHING },
    Rule {
        programs: "readlink",
        options: "-efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing \
            --no-newline --quiet --silent --verbose --zero",
        operands: Operands::Names,
        ..NOTHING
    },
    Rule {
        programs: "realpath",
        options: "-eLmPqsz --canonicalize-existing --canonicalize-missing --logical --no-symlinks \
            --physical --quiet --relative-base=path --relative-to=path --strip --zero",
        operands: Operands::Names,
        ..NOTHING
    },
    Rule {
        programs: "namei",
        options: "-lmovx --long --modes --owners --vertical",
        operands: Operands::Names,
        ..NOTHING
    },
    Rule {
        programs: "nm",
        options: "-AaCDgnopruS --demangle?word --defined-only --dynamic --extern-only \
            --numeric-sort --print-file-name --print-size --undefined-only",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "readelf",
        options: "-aAdeghIlnrsStuVW -p=word -x=word --all --dynamic --file-header \
            --program-headers --sections --section-headers --segments --symbols --syms --notes \
            --wide",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule {
        programs: "objdump",
        options: "-aCdDfhpRrstTwxz -j=word -M=word --disassemble --demangle?word --headers \
            --no-show-raw-insn --section=word --syms --dynamic-syms --wide",
        operands: Operands::Paths,
        ..NOTHING
    },
    Rule { programs: "size", options: "-ABdotx", operands: Operands::Paths, ..NOTHING },
];
