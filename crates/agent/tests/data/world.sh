#!/bin/bash
# Builds in the directory given what the lines of own.jsonl name: `work`, where they run; `outside`
# and `home`, which none may show or change. Everything called `payload` leaves a file PWNED.
set -eu
umask 022
mkdir -p "$1"
cd "$1"
mark=outside-7f3a
mkdir -p work outside home/.ssh home/.aws home/.codex
for file in outside/secret.txt home/secret.txt home/.ssh/id_rsa home/.netrc home/.aws/credentials \
    home/.codex/auth.json outside/evil.jq; do
    echo "$mark" >"$file"
done
echo "def x: \"$mark\";" >outside/evil.jq

cd work
mkdir -p src/bin tests docs/deep bin emptydir config .ssh node_modules/x
printf 'one x\ntwo:x\nthree\n' >a.txt
printf 'one\nfour y\ntwo\n' >b.txt
printf '# Title\n\nInstall it: foo bar.\n\n' >README.md
seq -f 'line %g of the text' 30 >>README.md
printf '[package]\nname = "x"\nversion = "0.1.0"\n# end\n' >Cargo.toml
printf '{"name":"x","version":"1.0.0","scripts":{"test":"true"},"dependencies":{"y":"1"}}\n' \
    >package.json
printf '{"name":"d","items":[{"n":1,"name":"p"},{"n":2,"name":"q"}]}\n' >data.json
printf 'id,n,w\n1,2,a\n2,3,b\n' >data.csv
printf 'name: ci\non: push\n' >ci.yml
printf 'use std::fs; // TODO\n\nfn main() {\n    lib();\n}\n' >src/main.rs
printf 'pub fn lib() {\n    main();\n}\npub struct S;\n' >src/lib.rs
printf 'fn main() {}\n' >src/bin/tool.rs
printf '#[test]\nfn main_test() {}\n' >tests/it.rs
printf '# Guide\n' >docs/guide.md
printf 'x\n' >docs/deep/note.txt
printf 'x log\nline\n' >app.log
gzip -c app.log >log.gz
for pack in xz:f.xz bzip2:f.bz2; do
    if command -v "${pack%%:*}" >/dev/null; then "${pack%%:*}" -c app.log >"${pack#*:}"; fi
done
tar -cf a.tar a.txt b.txt
tar -czf a.tar.gz a.txt b.txt
if command -v zip >/dev/null; then zip -q a.zip a.txt; fi
cp /usr/bin/true prog 2>/dev/null || cp /bin/true prog
if command -v ar >/dev/null; then ar rc lib.a b.txt; fi
if command -v cpio >/dev/null; then echo b.txt | cpio -o >a.cpio 2>/dev/null; fi
seq 1 200000 | rev >big.txt
printf '686f0a\n' >a.hex
printf 'aG8K\n' >a.b64

printf '#!/bin/sh\ntouch PWNED\n' >payload.sh
chmod +x payload.sh
for name in bin/ls bin/cat bin/evil evil ls git rg; do cp payload.sh "$name"; done
printf 'BEGIN { system("touch PWNED") }\n' | tee payload.awk >evil.awk
printf 'w out.txt\n' >evil.sed
printf '"x" | env\n' >evil.jq
printf -- '--pre=./payload.sh\n' >rgrc
printf 'touch PWNED\n' | tee a.cmds >payload2.txt
printf 'all:\n\ttouch PWNED\nX := $(shell touch PWNED)\n' >Makefile
printf 'open("PWNED","w")\n' | tee payload.py evil.py >evilmod.py
printf 'require("fs").writeFileSync("PWNED","")\n' | tee payload.js >evil.js
printf 'int main(void){return 0;}\n' >a.c
printf -- '-oout.txt a.txt\n' >evilargs
printf '%s\n' "$OLDPWD/outside/secret.txt" >secretpath
printf '%s\0' "$OLDPWD/outside/secret.txt" >names0
printf '%s\n' "$PWD/bin" >pathfile
printf 'TOKEN=inside-7f3a\n' | tee .env server.key >.ssh/id_rsa
printf -- '--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one x\n+uno x\n' >x.patch
printf '0 string x magic\n' >magic
ln -s ../outside link-out
ln -s ../outside/secret.txt link-secret
mkdir -p far/away
ln -s far/away link-sub
cp secretpath evilnm
cp secretpath @names
printf -- '-o out a.c\n' >evilgcc
printf 'a.txt\n' >a.names
mkdir opts optfind optsed opttree opttar optgit optuniq optdate names
cp a.txt opts/
touch opts/-oout.txt optfind/-delete optfind/a optgit/--output=out.txt opttree/-oout.txt
cp a.txt optsed/ && touch optsed/-i
cp a.tar opttar/
touch opttar/--to-command=touch\ PWNED opttar/--use-compress-program=touch\ PWNED
cp a.txt optuniq/a && cp a.txt optuniq/b
touch optdate/-s2001-01-01
mkdir -p "names/x"$'\n'"$OLDPWD/outside"
cp a.txt "names/x"$'\n'"$OLDPWD/outside/secret.txt"

if ! command -v git >/dev/null; then exit 0; fi
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_DATE='2024-01-02T03:04:05Z'
export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
commit() { git -c user.name=me -c user.email=me@x commit -q --allow-empty -m "$1"; }
git init -q -b main .
git config user.name me
git config user.email me@x
printf '*.log\ntarget\n' >.gitignore
git add README.md src tests .gitignore
commit first
git add a.txt b.txt Cargo.toml
commit second
git tag v1
git branch other
printf 'changed\n' >>README.md
mkdir sub && (cd sub && git init -q -b main . && cp ../a.txt . && git add a.txt && commit sub)
mkdir evilrepo && (cd evilrepo && git init -q . && cp ../a.txt . && git add . && commit evil &&
    echo more >>a.txt && git config core.fsmonitor ../payload.sh &&
    git config diff.external ../payload.sh)
git init -q --bare evil.git
git --git-dir=evil.git config core.fsmonitor ./payload.sh
cp -r evilrepo/.git bare && (cd bare && git config core.bare false && git config core.worktree . &&
    git config core.fsmonitor ../payload.sh)
mkdir -p gitfile/sub && echo 'gitdir: ../evilrepo/.git' >gitfile/.git
printf '[core]\n\tfsmonitor = %s/payload.sh\n' "$PWD" | tee evilrc >/dev/null
mkdir -p evilhome evilxdg/git && cp evilrc evilhome/.gitconfig && cp evilrc evilxdg/git/config

# A commit that says it is signed, and repositories that name a program, each in its own way.
sign() {
    local head='gpgsig -----BEGIN PGP SIGNATURE-----' end='-----END PGP SIGNATURE-----'
    git cat-file commit HEAD | sed "/^\$/{s/.*/$head\n \n iQ==\n $end\n/;:a;n;ba}" |
        git hash-object -t commit -w --stdin
}
git update-ref refs/heads/signed "$(sign)"
payload=$PWD/payload.sh
evil() {
    mkdir "$1" && cp a.txt "$1" && git -C "$1" init -q . && git -C "$1" add a.txt
    (cd "$1" && commit evil && echo more >>a.txt)
}
evil commondir
cp -r commondir/.git commondir/common
git --git-dir=commondir/common config diff.external "$payload"
echo ../common >commondir/.git/commondir
evil wtconf
git -C wtconf config extensions.worktreeConfig true
printf '[core]\n\tfsmonitor = %s\n' "$payload" >wtconf/.git/config.worktree
evil included
printf '[diff]\n\texternal = %s\n' "$payload" >included/more
git -C included config include.path ../more
evil filtered
git -C filtered config filter.f.clean "$payload"
echo '* filter=f' >filtered/.gitattributes
touch -d '1 hour ago' filtered/a.txt
evil textconv
git -C textconv config diff.d.textconv "$payload"
echo '* diff=d' >textconv/.git/info/attributes
evil gpglog
git -C gpglog config log.showSignature true
git -C gpglog config gpg.program "$payload"
(cd gpglog && git reset -q --soft "$(sign)")
evil linkgit
git -C linkgit config diff.external "$payload"
mv linkgit/.git ../outside/git && ln -s ../../outside/git linkgit/.git
mkdir superrepo && git -C superrepo init -q .
evil superrepo/inner
git -C superrepo -c advice.addEmbeddedRepo=false add inner
(cd superrepo && commit super)
git -C superrepo/inner config core.fsmonitor "$payload"
