"""Ways out of the sandbox, by the numbers of the list in docs/SANDBOX.md, as scripts for bash.

Pure data. In a script `$OUT` is a directory outside that can be seen, `$WORK` the working
directory, `$SERVER` the server's process, `$PORT` its port, `$P` the port of listeners. Each script
must fail; one that begins with `~` may succeed at something harmless, and only what it did counts.
"""

# Each changes something below `$T`, in one way.
WRITES = [
    "echo x > $T/new", "echo x >> $T/canary", ": > $T/canary", "truncate -s 0 $T/canary",
    "rm -f $T/canary; [ ! -e $T/canary ]", "rm -r $T/directory", "mv $T/canary $T/moved",
    "mv $T/canary .", "echo x > mine; mv mine $T/canary", "mkdir $T/made", "ln -s x $T/link",
    "ln $T/canary $T/hard", "echo x > own; ln own $T/hard", "mkfifo $T/pipe",
    "chmod 777 $T/canary", "chmod 777 $T", "touch $T/canary", "touch -d 2001-01-01 $T/canary",
    "dd if=/dev/zero of=$T/canary count=1 conv=notrunc", "cp /bin/true $T/program",
    "tee $T/new < /dev/null", "sed -i s/a/b/ $T/canary", "tar c -C / bin | tar x -C $T",
    "perl -e 'open(F, \"+<\", \"$ENV{T}/canary\") or exit 1; print F \"x\"'",
    "setfattr -n user.x -v y $T/canary", "chattr +i $T/canary", "chown 1 $T/canary",
    "install /bin/true $T/program", "git init -q $T/repository", "mktemp -p $T",
]
PLACES = ["/etc", "/usr/bin", "/", "/root", "/home", "/var/lib", "/sys", "/proc", "/dev", "$HOME",
          "$OUT/..", "$START", "$WORK/.."]
S1 = [
    *[f"export T=$OUT; {write}" for write in WRITES],
    *[f"echo x > {place}/polyloop-canary" for place in PLACES],
    *[f"mkdir {place}/polyloop-canary" for place in PLACES],
    *[f"{change} {file}" for file in ("/etc/passwd", "/etc/hosts", "/bin/true")
      for change in ("chmod 777", "touch", "echo >>")],
    "echo 1 > /proc/sys/kernel/core_pattern", "echo 1 > /proc/sysrq-trigger",
    "echo x > /sys/kernel/uevent_helper", "echo $$ > /sys/fs/cgroup/cgroup.procs",
    "~mkdir -p $TEMPORARY; echo x > $TEMPORARY/canary; rm -rf $TEMPORARY",
    "~echo x > /var/tmp/polyloop-canary", "~echo x > /tmp/polyloop-canary",
    "~echo x > /dev/shm/polyloop-canary", "~echo x > /run/polyloop-canary",
]

WAYS = [
    "ln -s $OUT way; T=way", "ln -s $OUT /tmp/way; T=/tmp/way", "T=/proc/self/root/$OUT",
    "T=/proc/1/root/$OUT", "T=/proc/1/cwd/$OUT", "T=/proc/$$/cwd/../outside",
    "T=/proc/self/cwd/../outside", "cd $OUT && T=/proc/self/cwd", "cd $OUT && T=.",
    "exec 5<$OUT && T=/proc/self/fd/5", "exec 5<$OUT && T=/dev/fd/5", "T=/tmp/../$OUT",
    "mkdir -p a/b; T=a/b/../../../outside", "T=/proc/$PPID/cwd/../outside",
]
S2 = [
    *[f"rm -f way; {way}; export T; {write}" for way in WAYS
      for write in ("echo x > $T/new", "echo x > $T/canary", "chmod 777 $T",
                    "rm -f $T/canary; [ ! -e $OUT/canary ]")],
    "ln $OUT/canary hard && echo x > hard", "cp -l $OUT/canary hard && echo x > hard",
    "exec 5<$OUT/canary && echo x > /proc/self/fd/5",
    "exec 5<$OUT/canary; perl -e 'open(F, \"+>&=5\") && truncate(F, 0) or exit 1'",
    "mkdir -p there; mount --bind $OUT there && echo x > there/new",
    "mv $OUT taken && echo x > taken/canary",
    "echo x > there-already/new", "echo x > file-already", "rm there-already/canary",
    "chmod 777 file-already", "for n in 3 4 5 6 7 8 9 10 11 12; do echo x >&$n && exit 0; done; "
    "exit 1",
]

# What is there is not changed, what is not there is not made.
PROTECTED = [".git", ".git/hooks", ".git/config", ".env", ".envrc", "AGENTS.md", "SOUL.md",
             ".vscode", ".idea"]
S4 = [
    "echo x > .git/hooks/pre-commit", "echo x >> .git/hooks/post-checkout", "mkdir .git/hooks/x",
    "chmod +x .git/hooks/post-checkout", "touch .git/config", "git config core.pager evil",
    "git config core.hooksPath /tmp", "git commit --allow-empty -m x", "git tag x",
    "git update-ref refs/heads/evil HEAD", "rm -rf .git/hooks; [ ! -e .git/hooks ]",
    "ln -s /tmp/evil .git/hooks/pre-push", "echo x >> .env", "echo x > .env", "rm -f .env",
    "echo x > new; mv new .env", "echo x > new; mv -T new AGENTS.md", "chmod 777 .env",
    "sed -i s/o/0/ .env", "echo x >> AGENTS.md", "cp /bin/true AGENTS.md",
    "truncate -s 0 AGENTS.md", "ln -f new AGENTS.md",
    "perl -e 'rename(\"new\", \".env\") or exit 1'",
    "echo x > .envrc", "echo x > SOUL.md", "mkdir -p .vscode/x", "echo x > .vscode/tasks.json",
    "echo x > .idea/workspace.xml", "mkdir -p .idea/x", "ln -s /tmp/evil .envrc",
    "ln -s /tmp/evil SOUL.md", "mkdir evil; mv -T evil .vscode", "rm -rf .idea; mkdir .idea",
]
S5 = [
    "mv .git .git-away", "mv .git /tmp/away", "mv .env away", "mv AGENTS.md away",
    "mv .git away && mkdir -p .git/hooks", "mkdir new; mv -T new .git", "rmdir .git || rm -r .git",
    "rm -rf .git && git init -q", "cd .. && mv work work-away", "mv $WORK $WORK-away",
    "cd .. && mkdir other && mv -T other work",
    "perl -e 'rename(\".git\", \"away\") or exit 1'",
    "perl -e 'exit(syscall(316, -100, \".git\", -100, \"file\", 2) == 0 ? 0 : 1)'",  # An exchange.
]
S6 = [
    "cp /usr/bin/id id1; chmod u+s id1", "cp /usr/bin/id id2; chmod 4755 id2",
    "cp /usr/bin/id id3; chmod g+s id3", "install -m 4755 /usr/bin/id id4",
    "sudo -n true", "su -c true", "pkexec true", "unshare -r true", "unshare -Ur id",
    "unshare -m true", "unshare -n true", "unshare -p -f true", "mount -t tmpfs none /mnt",
    "mount --bind . /mnt", "mount -o remount,rw /", "umount /tmp", "umount -l /proc",
    "chroot . true", "nsenter -t 1 -m true", "nsenter -t $SERVER -m true", "chown 1 .",
    "setpriv --reuid=1 true", "hostname other", "date -s 2001-01-01", "renice -n -5 $$",
    "dmesg", "insmod x", "bwrap --bind / / true", "capsh --has-p=cap_sys_admin",
    "[ \"$(./setuid -u)\" != \"$(id -u)\" ]", "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status",
    "grep -q 'CapBnd:.*[1-9a-f]' /proc/self/status", "grep -q 'NoNewPrivs:.*0' /proc/self/status",
    "$PROGRAM doctor | grep -q '^ok .*sandbox'",
]
S7 = [
    "kill -0 $SERVER", "kill -KILL $SERVER", "kill -STOP $SERVER", "kill -KILL -$SERVER",
    "cat /proc/$SERVER/mem", "cat /proc/$SERVER/status", "ls /proc/$SERVER/fd",
    "gdb -batch -p $SERVER -ex 'info proc' 2>&1 | grep -q '^process'", "strace -p $SERVER",
    "perl -e 'exit(syscall(101, 16, $ENV{SERVER}, 0, 0) == 0 ? 0 : 1)'",  # ptrace
    "perl -e '$! = 0; syscall(311, $ENV{SERVER}, 0, 0, 0, 0, 0); exit($! == 1 ? 1 : 0)'",
    "perl -e 'exit(syscall(434, $ENV{SERVER}, 0) >= 0 ? 0 : 1)'",  # pidfd_open
    "renice -n 5 -p $SERVER", "taskset -p 1 $SERVER", "prlimit --pid $SERVER --nofile=1",
]


def unix(path):
    return ("perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 2; "
            f"connect(S, {path}) and exit 0; exit 1'")


S8 = [
    unix('sockaddr_un("$ENV{OUT}/agent.sock")'), unix('sockaddr_un("engine.sock")'),
    unix('sockaddr_un("$ENV{TEMPORARY}/ssh-agent")'), unix('sockaddr_un("/run/docker.sock")'),
    unix('sockaddr_un("/var/run/docker.sock")'),
    unix('sockaddr_un("/run/dbus/system_bus_socket")'),
    unix('pack("S a*", AF_UNIX, "\\0$ENV{ABSTRACT}")'),
    unix('pack("S a*", AF_UNIX, "\\0/tmp/.X11-unix/X0")'),
    "curl -sS -m 3 --unix-socket $OUT/agent.sock http://x/", "SSH_AUTH_SOCK=$OUT/agent.sock "
    "ssh-add -l", "docker -H unix://$OUT/agent.sock ps", "ln -s $OUT/agent.sock s; "
    "curl -sS -m 3 --unix-socket s http://x/",
    "timeout 2 bash -c 'echo x > $OUT/fifo'",
    "perl -e 'open(F, \"+<\", \"$ENV{OUT}/fifo\") or exit 1; syswrite(F, \"x\")'",
    "mknod device c 1 1", "mknod device b 8 0", "cat /dev/mem", "cat /dev/kmsg", "cat /dev/vda",
    "head -c 1 /dev/sda", "ls /dev/pts/[0-9]*",
]
S9 = [
    "~env; export -p; set", "cat /proc/$SERVER/environ", "cat /proc/$SERVER/cmdline",
    "~cat /proc/*/environ /proc/*/task/*/environ", "~ls -l /proc/*/fd /proc/*/cwd /proc/*/exe",
    "ls -l /proc/$SERVER/fd", "~ps auxe", "ls $STORE/other*", "cat $STORE/*.jsonl",
    "grep -r canary-text $STORE", "cat $START/.env", "~cat $START/.[e]nv $START/*",
    "~find $START $STORE -type f -exec cat {} +", "cd $STORE && cat *.jsonl", "cp $START/.env copy",
    "ln -s $START/.env link; cat link", "ln $START/.env hard; cat hard",
    "cat /proc/self/root/$START/.env", "exec 5<$START/.env; cat <&5",
    "tar c $START $STORE | strings | grep -a canary", "cat $RULES", "cat $HOME/.ssh/id_ed25519",
    "cat $HOME/.aws/credentials", "cat /etc/shadow", "cat $DATA/memory.db",
    "~cat $DATA/* $DATA/memory.db-wal $DATA/messages.db-wal", "cp $DATA/messages.db copy",
    "~strings /proc/kcore | head -c 1000",
]


def python(script):
    return f"/usr/bin/python3 -c '{script}'"


def methods(port):
    """Ways to send something to a port of this machine."""
    return [
        f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo x >&3", f"echo x > /dev/udp/127.0.0.1/{port}",
        f"exec 3<>/dev/tcp/::1/{port} && echo x >&3", f"echo x > /dev/udp/::1/{port}",
        f"curl -sS -m 3 http://127.0.0.1:{port}/", f"curl -sS -m 3 -g http://[::1]:{port}/",
        f"wget -q -T 3 -t 1 -O- http://localhost:{port}/",
        f"git ls-remote http://127.0.0.1:{port}/x",
        f"ssh -o BatchMode=yes -o ConnectTimeout=3 -p {port} 127.0.0.1 true",
        f"perl -MIO::Socket::INET -e 'IO::Socket::INET->new(\"127.0.0.1:{port}\") or exit 1'",
        f"perl -MIO::Socket::IP -e 'IO::Socket::IP->new(\"[::1]:{port}\") or exit 1'",
        "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) or exit 1'",
        python(f'import socket; socket.create_connection(("127.0.0.1", {port}), 3)'),
        python(f'import socket; socket.create_connection(("::1", {port}), 3)'),
        python('import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b"x", '
               f'("127.0.0.1", {port}))'),
        python('import socket as s; s.socket(s.AF_INET6, s.SOCK_DGRAM).sendto(b"x", '
               f'("::1", {port}))'),
    ]


S10 = [
    *methods("$P"), *methods("$PORT")[:6],
    "ping -c 1 -W 2 127.0.0.1", "getent ahosts example.com", "nc -w 3 127.0.0.1 $P < /dev/null",
    python('import socket as s; s.socket(s.AF_INET, s.SOCK_RAW, 1).sendto(b"x", ("127.0.0.1", 0))'),
    python('import socket as s; s.socket(s.AF_INET, s.SOCK_DGRAM, 1).sendto(b"x", '
           '("127.0.0.1", 0))'),
    python("import socket as s; s.socket(s.AF_PACKET, s.SOCK_RAW)"),
    python("import socket as s; s.socket(s.AF_NETLINK, s.SOCK_RAW, 0)"),
    python("import socket as s; s.socket(40, s.SOCK_STREAM)"),
    python("import socket as s; s.socket(s.AF_INET6, s.SOCK_STREAM, 132)"),
]
S12 = [
    "echo x > /dev/tty", "echo x > /dev/pts/0", "echo x > /dev/console", "ls /dev/pts/[0-9]*",
    "perl -e 'my $x = \"x\"; ioctl(STDIN, 0x5412, $x) and exit 0; exit($! == 1 ? 1 : 0)'",
    "perl -e 'my $x = \"\\x02\"; ioctl(STDIN, 0x541C, $x) and exit 0; exit($! == 1 ? 1 : 0)'",
    "perl -e 'open(F, \"+<\", \"/proc/$ENV{SERVER}/fd/0\") or exit 1'", "chvt 2",
    "setsid -c -w tty",
]
