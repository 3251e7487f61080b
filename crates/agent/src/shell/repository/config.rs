//! The keys in a configuration of git. One that is not on the list might name a program, or a
//! place where git looks for more.

use super::super::show::brief;

/// Keys that name neither a program nor a file nor another repository to read. `*` is any name.
const HARMLESS: &str = "\
    advice.* apply.whitespace blame.blankboundary blame.coloring blame.date blame.showemail \
    blame.showroot branch.*.* branch.autosetupmerge branch.autosetuprebase branch.sort \
    checkout.defaultremote checkout.guess color.* color.*.* column.ui commit.cleanup \
    commit.gpgsign commit.verbose core.abbrev core.autocrlf core.bare core.bigfilethreshold \
    core.checkstat core.commentchar core.commitgraph core.compression core.createobject \
    core.deltabasecachelimit core.eol core.filemode core.hidedotfiles core.ignorecase \
    core.ignorestat core.logallrefupdates core.longpaths core.loosecompression \
    core.multipackindex core.packedgitlimit core.packedgitwindowsize core.precomposeunicode \
    core.preloadindex core.protecthfs core.protectntfs core.quotepath \
    core.repositoryformatversion core.safecrlf core.sharedrepository core.sparsecheckout \
    core.sparsecheckoutcone core.symlinks core.trustctime core.untrackedcache core.whitespace \
    diff.algorithm diff.colormoved diff.colormovedws diff.context diff.dirstat \
    diff.indentheuristic diff.interhunkcontext diff.mnemonicprefix diff.noprefix diff.relative \
    diff.renamelimit diff.renames diff.statgraphwidth diff.suppressblankempty \
    diff.wserrorhighlight extensions.objectformat extensions.preciousobjects \
    extensions.refstorage extensions.relativeworktrees extensions.worktreeconfig fetch.output \
    fetch.parallel fetch.prune fetch.prunetags gc.* grep.column grep.extendedregexp \
    grep.fallbacktonoindex grep.linenumber grep.patterntype gui.* index.threads index.version \
    init.defaultbranch lfs.*.access lfs.*.locksverify lfs.repositoryformatversion \
    log.abbrevcommit log.date log.decorate log.follow maintenance.auto maintenance.strategy \
    merge.conflictstyle merge.directoryrenames merge.ff merge.log merge.renamelimit \
    merge.renames merge.stat pack.* pull.ff pull.rebase pull.twohead push.autosetupremote \
    push.default push.followtags rebase.autosquash rebase.autostash rebase.updaterefs \
    receive.denycurrentbranch remote.*.fetch remote.*.gh-resolved remote.*.mirror remote.*.prune \
    remote.*.push remote.*.pushurl remote.*.tagopt remote.*.url remote.pushdefault \
    rerere.autoupdate rerere.enabled stash.showpatch stash.showstat status.aheadbehind \
    status.branch status.displaycommentprefix status.relativepaths status.renamelimit \
    status.renames status.short status.showstash status.showuntrackedfiles submodule.*.active \
    submodule.*.branch submodule.*.url submodule.active tag.forcesignannotated tag.gpgsign \
    tag.sort transfer.fsckobjects user.email user.name user.signingkey user.useconfigonly";

/// How objects are named, which says how long names are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha1,
    Sha256,
}

/// Whether every key is harmless.
pub(super) fn check(content: &[u8], hash: &mut Hash) -> Result<(), String> {
    let odd = || "the configuration of the git repository is not understood".to_owned();
    let text = std::str::from_utf8(content).map_err(|_| odd())?;
    let mut section = None;
    for line in text.split('\n') {
        let mut line = line.trim_matches([' ', '\t', '\r']);
        if let Some(header) = line.strip_prefix('[') {
            let (name, rest) = header_name(header).ok_or_else(odd)?;
            section = Some(name);
            line = rest.trim_start_matches([' ', '\t']);
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let section = section.as_ref().ok_or_else(odd)?;
        let (key, value) = variable(line).ok_or_else(odd)?;
        if !is_harmless(section, &key) {
            let name = brief(&section.with(&key));
            return Err(format!("the git repository sets `{name}`, which may run something"));
        }
        if section.with(&key) == "extensions.objectformat" {
            *hash = match value {
                "sha1" => Hash::Sha1,
                "sha256" => Hash::Sha256,
                _ => return Err(odd()),
            };
        }
    }
    Ok(())
}

struct Section {
    name: String,
    sub: Option<String>,
}

impl Section {
    fn with(&self, key: &str) -> String {
        match &self.sub {
            Some(sub) => format!("{}.{sub}.{key}", self.name),
            None => format!("{}.{key}", self.name),
        }
    }
}

fn is_harmless(section: &Section, key: &str) -> bool {
    let name = &section.name;
    let pattern = |key: &str| match section.sub {
        Some(_) => format!("{name}.*.{key}"),
        None => format!("{name}.{key}"),
    };
    let (exact, any) = (pattern(key), pattern("*"));
    HARMLESS.split_whitespace().any(|harmless| harmless == exact || harmless == any)
}

/// The name in `[section "sub"]`, and what follows in the line.
fn header_name(header: &str) -> Option<(Section, &str)> {
    let end = header.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.')))?;
    let (name, rest) = header.split_at(end);
    let name = name.to_ascii_lowercase();
    if let Some(rest) = rest.strip_prefix(']') {
        // As it was written once: `[section.sub]`.
        let section = match name.split_once('.') {
            Some((name, sub)) => Section { name: name.to_owned(), sub: Some(sub.to_owned()) },
            None => Section { name, sub: None },
        };
        return Some((section, rest));
    }
    let quoted = rest.trim_start_matches([' ', '\t']).strip_prefix('"')?;
    let (sub, rest) = quoted.split_once('"')?;
    if sub.contains('\\') || name.contains('.') || name.is_empty() {
        return None;
    }
    Some((Section { name, sub: Some(sub.to_owned()) }, rest.strip_prefix(']')?))
}

/// `key = value`; none if the value might go on in the next line.
fn variable(line: &str) -> Option<(String, &str)> {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches([' ', '\t']);
    let value = match rest.strip_prefix('=') {
        Some(value) => value.trim_start_matches([' ', '\t']),
        None if rest.is_empty() || rest.starts_with(['#', ';']) => "",
        None => return None,
    };
    let whole = !value.ends_with('\\') && value.matches('"').count() % 2 == 0;
    (whole && key.starts_with(|c: char| c.is_ascii_alphabetic()))
        .then(|| (key.to_ascii_lowercase(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Result<(), String> {
        check(text.as_bytes(), &mut Hash::Sha1)
    }

    #[test]
    fn what_git_and_people_write_is_harmless() {
        let texts = [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
            "[remote \"origin\"]\n\turl = git@host:a/b.git\n\tfetch = +refs/heads/*:refs/x/*\n",
            "[branch \"a.b\"]\n\tremote = origin\n\tmerge = refs/heads/a.b\n\tvscode-x = 1\n",
            "# comment\n; comment\n[user] name = A # b\n\temail=a@b\r\n",
            "[CORE]\nBare\n[color \"diff\"]\nmeta = yellow\n[color]ui=auto\n",
        ];
        for text in texts {
            assert_eq!(judged(text), Ok(()), "{text:?}");
        }
    }

    #[test]
    fn whatever_may_name_a_program_or_is_odd_is_not() {
        let texts = [
            "[core]\n\tfsmonitor = ./x\n",
            "[core] fsmonitor=./x",
            "[core]\nbare = false\n[core]fsmonitor = x",
            "[CoRe]\nFsMonitor=x",
            "[core]\npager = x",
            "[core]\nhooksPath = x",
            "[core]\nworktree = /",
            "[core]\nsshCommand = x",
            "[core]\nattributesFile = x",
            "[include]\npath = x",
            "[includeIf \"gitdir:/\"]\npath = x",
            "[diff]\nexternal = x",
            "[diff \"d\"]\ncommand = x",
            "[diff.d]\ntextconv = x",
            "[diff \"d\"]\nalgorithm = x",
            "[filter \"f\"]\nclean = x",
            "[gpg]\nprogram = x",
            "[log]\nshowSignature = true",
            "[alias]\nst = !x",
            "[remote \"o\"]\nuploadpack = x",
            "[remote \"o\"]\npromisor = true",
            "[extensions]\npartialClone = o",
            "[format]\npretty = %GG",
            "bare = false",
            "[core\nbare = false",
            "[core]]\nbare = false",
            "[core \"a\\\"]\nfsmonitor = x\n\"]",
            "[user]\nname = a\\\n[core]\nbare = x",
            "[user]\nname = \"a\n",
            "\u{feff}[core]\nbare = false",
            "[user]\n\u{b}name = a",
        ];
        for text in texts {
            assert!(judged(text).is_err(), "{text:?}");
        }
    }
}
