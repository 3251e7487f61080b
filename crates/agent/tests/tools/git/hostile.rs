//! Repositories that try to make git run something, each in its own way.

use std::fs;

use super::run;
use crate::Ground;

/// Gives the last commit a signature, which is none.
const SIGN: &str = r#"new=$(git cat-file commit HEAD | awk '/^$/ && !done { done = 1
    print "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----" }
    { print }' | git hash-object -t commit -w --stdin) && git update-ref HEAD "$new""#;

pub type Set = fn(&Ground, &str);

fn config(ground: &Ground, key: &str, value: &str) {
    run(ground, &format!("git config '{key}' '{value}'"));
}

/// What a repository may hold, and whether one of the reads closes the trap when allowed.
pub const HOSTILE: &[(&str, Set, bool)] = &[
    ("core.fsmonitor", |ground, trap| config(ground, "core.fsmonitor", trap), true),
    ("core.pager", |ground, trap| config(ground, "core.pager", trap), false),
    ("diff.external", |ground, trap| config(ground, "diff.external", trap), true),
    (
        "diff.d.command",
        |ground, trap| {
            config(ground, "diff.d.command", trap);
            ground.write(".gitattributes", "* diff=d\n");
        },
        true,
    ),
    (
        "diff.d.textconv",
        |ground, trap| {
            config(ground, "diff.d.textconv", trap);
            ground.write(".gitattributes", "* diff=d\n");
        },
        true,
    ),
    (
        "filter.f.clean",
        |ground, trap| {
            config(ground, "filter.f.clean", trap);
            config(ground, "filter.f.smudge", trap);
            ground.write(".gitattributes", "* filter=f\n");
        },
        true,
    ),
    (
        "gpg.program",
        |ground, trap| {
            config(ground, "gpg.program", trap);
            config(ground, "log.showSignature", "true");
            run(ground, SIGN);
        },
        true,
    ),
    ("alias.status", |ground, trap| config(ground, "alias.st", &format!("!{trap}")), false),
    (
        "core.hooksPath",
        |ground, trap| {
            let hooks = ground.cwd().join("hooks");
            fs::create_dir(&hooks).unwrap();
            for hook in ["post-index-change", "fsmonitor-watchman", "pre-auto-gc"] {
                fs::copy(trap, hooks.join(hook)).unwrap();
            }
            config(ground, "core.hooksPath", &hooks.display().to_string());
        },
        false,
    ),
    (
        "include.path",
        |ground, trap| {
            ground.write("more", &format!("[core]\n\tfsmonitor = {trap}\n"));
            config(ground, "include.path", "../more");
        },
        true,
    ),
    (
        "config.worktree",
        |ground, trap| {
            config(ground, "extensions.worktreeConfig", "true");
            ground.write(".git/config.worktree", &format!("[core]\n\tfsmonitor = {trap}\n"));
        },
        true,
    ),
    (
        "a bare repository around the files",
        |ground, trap| {
            run(ground, "mv .git sub/x && mv sub/x/* . && rm -r sub/x");
            let config = fs::read_to_string(ground.cwd().join("config")).unwrap();
            let config = config.replace("bare = false", "bare = false\n\tworktree = .");
            ground.write("config", &format!("{config}\n\tfsmonitor = {trap}\n"));
        },
        true,
    ),
    ("a repository inside", repository_inside, true),
    (
        "a repository inside, in a packed index",
        |ground, trap| {
            run(ground, "git update-index --index-version 4");
            repository_inside(ground, trap);
        },
        true,
    ),
    (
        "a link instead of .git",
        |ground, trap| {
            config(ground, "core.fsmonitor", trap);
            run(ground, "mv .git ../out/git && ln -s ../out/git .git");
        },
        true,
    ),
    (
        "a file instead of .git",
        |ground, trap| {
            config(ground, "core.fsmonitor", trap);
            run(ground, "mv .git ../out/git && echo 'gitdir: ../out/git' > .git");
        },
        true,
    ),
    (
        "a common directory elsewhere",
        |ground, trap| {
            run(ground, "cp -r .git common && echo ../common > .git/commondir");
            run(ground, &format!("git --git-dir=common config diff.external '{trap}'"));
        },
        true,
    ),
    (
        "includeIf",
        |ground, trap| {
            ground.write("more", &format!("[diff]\n\texternal = {trap}\n"));
            config(ground, "includeIf.gitdir:**.path", "../more");
        },
        true,
    ),
    (
        "attributes inside of .git",
        |ground, trap| {
            config(ground, "diff.d.textconv", trap);
            ground.write(".git/info/attributes", "* diff=d\n");
        },
        true,
    ),
    (
        "core.attributesFile",
        |ground, trap| {
            config(ground, "core.attributesFile", "attributes");
            config(ground, "diff.d.textconv", trap);
            ground.write("attributes", "* diff=d\n");
        },
        true,
    ),
    (
        "a repository to take objects from",
        |ground, trap| {
            config(ground, "core.alternateRefsCommand", trap);
            run(
                ground,
                "cp -r .git/objects more && echo ../../more > .git/objects/info/alternates",
            );
        },
        false,
    ),
    (
        "only objects that are taken from elsewhere",
        |ground, _| {
            run(ground, "mv .git/objects/?? . && echo \"$PWD\" > .git/objects/info/alternates");
        },
        false,
    ),
    ("core.sshCommand", |ground, trap| config(ground, "core.sshCommand", trap), false),
    ("credential.helper", |ground, trap| config(ground, "credential.helper", trap), false),
    (
        "uploadpack.packObjectsHook",
        |ground, trap| config(ground, "uploadpack.packObjectsHook", trap),
        false,
    ),
    (
        "a promise to fetch what is missing",
        |ground, trap| {
            config(ground, "remote.o.url", &format!("ext::{trap} /dev/null"));
            config(ground, "remote.o.promisor", "true");
            config(ground, "extensions.partialClone", "o");
            config(ground, "protocol.ext.allow", "always");
            run(ground, "rm -f .git/objects/$(git rev-parse HEAD:a.txt | sed 's|..|&/|')");
        },
        true,
    ),
    (
        "a repository inside, as a submodule with settings",
        |ground, trap| {
            repository_inside(ground, trap);
            run(ground, "git config -f .gitmodules submodule.sub.path sub");
            run(ground, "git config -f .gitmodules submodule.sub.url ./sub");
            config(ground, "submodule.sub.active", "true");
            config(ground, "diff.submodule", "diff");
            run(ground, &format!("git -C sub config diff.external '{trap}'"));
        },
        true,
    ),
];

fn repository_inside(ground: &Ground, trap: &str) {
    let commit = "git -c user.name=A -c user.email=a@b commit -qm one";
    run(ground, &format!("cd sub && git init -q . && git add b.txt && {commit}"));
    run(ground, "git rm -qr --cached sub; git add sub");
    run(ground, &format!("git -C sub config core.fsmonitor '{trap}'; touch sub/b.txt"));
}
