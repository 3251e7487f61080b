//! What is known about programs by their names: for risk, and for what "always" may cover.
//!
//! Nothing here makes a command safe; a name that is missing costs a label, or a question more.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What a program is for, where that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Gets the rights of somebody else.
    Escalates,
    /// Talks to other machines.
    Leaves,
    /// Changes the machine itself.
    System,
    Deletes,
    /// Changes files, or could.
    Overwrites,
    /// Changes who may do what.
    Rights,
    Kills,
    /// Runs code that it is given, or finds.
    Runs,
    /// Runs the command that follows in its words.
    Wraps,
    /// Only ever reads.
    Reads,
}

const CLASSES: &[(Class, &str)] = &[
    (Class::Escalates, "doas pkexec run0 runuser su sudo sudoedit"),
    (
        Class::Leaves,
        "aria2c aws az curl dig ftp gcloud gsutil host http https lftp mail nc ncat netcat nmap \
            nslookup ping rclone rsync scp sendmail sftp socat ssh telnet tracepath traceroute \
            wget whois xh",
    ),
    (
        Class::System,
        "chroot cryptsetup fdisk halt insmod iptables losetup mkfs mkswap modprobe mount nft \
            parted passwd poweroff reboot rmmod service shutdown sysctl systemctl umount \
            useradd userdel usermod visudo",
    ),
    (Class::Deletes, "rm rmdir shred srm trash unlink"),
    (
        Class::Overwrites,
        "cp dd ed ex gunzip gzip install ln mv patch sed split tar tee truncate unzip xz zip",
    ),
    (Class::Rights, "chattr chgrp chmod chown setcap setfacl"),
    (Class::Kills, "fuser kill killall pkill skill"),
    (
        Class::Runs,
        ". ansible ash at awk bash batch bun bunx cmake crontab csh dash deno docker-compose \
            emacs eval expect fd find fish gawk gdb gradle irb java just ksh less lua make man \
            mawk meson more mvn nano ninja node nodejs npx parallel perl php pipx pnpx \
            powershell psql pwsh python python2 python3 rg ruby script sh source sqlite3 strace \
            tcsh tmux trap ts-node tsx uvx vi view vim xonsh zsh",
    ),
    (
        Class::Wraps,
        "builtin busybox command env exec ionice nice nohup setarch setsid stdbuf time timeout \
            watch xargs",
    ),
    (
        Class::Reads,
        "arch basename cat cmp comm cut date df diff dirname du echo egrep false fgrep file \
            grep groups head id ls nl nproc printf pwd readlink realpath stat tail test tr true \
            type uname wc which whoami",
    ),
];

/// What a pipe into it turns data into code for.
const INTERPRETERS: &str = "ash bash csh dash deno fish ksh lua node nodejs perl php powershell \
    pwsh python python2 python3 ruby sh source tcsh zsh";

/// The name without the directories before it.
pub(super) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a word is in a list of words, which stand there with blanks between them.
pub(super) fn listed(list: &str, word: &str) -> bool {
    list.split(' ').any(|name| name == word)
}

/// The tables by name: every word of a script may be looked up in them.
static BY_NAME: LazyLock<HashMap<&'static str, Class>> = LazyLock::new(|| {
    let names = CLASSES.iter().flat_map(|(class, names)| names.split(' ').map(|n| (n, *class)));
    names.collect()
});

pub(super) fn class(program: &str) -> Option<Class> {
    BY_NAME.get(unversioned(base(program))).copied()
}

pub(super) fn is_interpreter(program: &str) -> bool {
    class(program).is_some() && listed(INTERPRETERS, unversioned(base(program)))
}

/// `python3.12` is `python3`, and `mkfs.ext4` is `mkfs`.
fn unversioned(base: &str) -> &str {
    match base.split_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => base,
    }
}

/// A program whose first word says what it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) program: &'static str,
    /// What "always" covers word by word only: it deletes, overwrites or runs what it is given.
    pub(super) exact: &'static str,
    pub(super) leaves: Leaves,
    /// Whose next word, too, says what is done.
    pub(super) nested: &'static str,
}

/// Which of a family talk to other machines.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leaves {
    All,
    Some(&'static str),
}

const NODE: Family = Family {
    program: "npm",
    exact: "dlx exec explore publish unpublish x",
    leaves: Leaves::Some(
        "add audit ci dlx exec i install login outdated publish unpublish up \
        update upgrade view x",
    ),
    nested: "run run-script",
};

const CONTAINERS: Family = Family {
    program: "docker",
    exact: "commit cp exec kill load login prune rm rmi run start",
    leaves: Leaves::Some("login pull push search"),
    nested: "builder buildx compose container context image network system volume",
};

const PIP: Family = Family {
    program: "pip",
    exact: "config uninstall",
    leaves: Leaves::Some("download index install search wheel"),
    nested: "",
};

const APT: Family = Family {
    program: "apt",
    exact: "autoremove edit-sources purge remove",
    leaves: Leaves::Some("dist-upgrade full-upgrade install update upgrade"),
    nested: "",
};

const FAMILIES: &[Family] = &[
    Family {
        program: "git",
        exact: "bisect checkout clean clear config delete difftool drop expire fast-import \
            filter-branch filter-repo foreach gc mergetool prune rebase remove reset restore rm \
            send-email set-url switch update-index update-ref",
        leaves: Leaves::Some("clone fetch ls-remote pull push request-pull send-email send-pack"),
        nested: "bundle lfs maintenance notes reflog remote sparse-checkout stash submodule \
            subtree worktree",
    },
    Family {
        program: "cargo",
        exact: "publish run r uninstall yank",
        leaves: Leaves::Some("add fetch install login owner publish search update yank"),
        nested: "xtask",
    },
    NODE,
    Family { program: "pnpm", ..NODE },
    Family { program: "yarn", ..NODE },
    CONTAINERS,
    Family { program: "podman", ..CONTAINERS },
    Family {
        program: "kubectl",
        exact: "apply attach cp create debug delete drain edit exec patch proxy replace run \
            scale",
        leaves: Leaves::All,
        nested: "auth config rollout set top",
    },
    Family {
        program: "helm",
        exact: "delete install rollback uninstall upgrade",
        leaves: Leaves::All,
        nested: "get plugin repo show",
    },
    Family {
        program: "terraform",
        exact: "apply console destroy import rm taint",
        leaves: Leaves::All,
        nested: "state workspace",
    },
    Family {
        program: "gh",
        exact: "alias api auth delete extension merge secret ssh-key",
        leaves: Leaves::All,
        nested: "gist issue pr release repo run workflow",
    },
    Family {
        program: "go",
        exact: "clean generate run tool",
        leaves: Leaves::Some("get install"),
        nested: "mod work",
    },
    PIP,
    Family { program: "pip3", ..PIP },
    Family { program: "uv", exact: "run tool uninstall", nested: "pip", ..PIP },
    APT,
    Family { program: "apt-get", ..APT },
    Family { program: "brew", exact: "uninstall remove services", ..APT },
    Family {
        program: "dotnet",
        exact: "exec nuget run",
        leaves: Leaves::Some("add nuget restore"),
        nested: "tool",
    },
    Family {
        program: "rustup",
        exact: "remove run self uninstall",
        leaves: Leaves::Some("install update"),
        nested: "component target toolchain",
    },
    Family {
        program: "poetry",
        exact: "publish remove run",
        leaves: Leaves::Some("add install publish update"),
        nested: "env self",
    },
    Family {
        program: "bundle",
        exact: "exec",
        leaves: Leaves::Some("add install update"),
        nested: "",
    },
    Family {
        program: "gem",
        exact: "push uninstall yank",
        leaves: Leaves::Some("fetch install push search update"),
        nested: "",
    },
];

pub(super) fn family(program: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.program == program)
}
