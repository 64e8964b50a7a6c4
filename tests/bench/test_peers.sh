#!/usr/bin/env bash
# `runnel bench --peer`: peers are measured in the same trials and stand in the same rows; one that is absent, does not compile, does not
# start, dies, lies or hangs is named with the reason while the others go on; nothing is left behind. Most of it with a stand-in for MPI
# (fake_mpi/mpi.h), so that it runs where none is installed; then with those that are.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/head.sh
. "$here/head.sh"
mkdir "$dir/tmp"
unset FAKE_MPI
export TMPDIR=$dir/tmp # supervisors work below it

mkdir "$dir/empty"
PATH=$dir/empty "$(command -v timeout)" 20 "$runnel" bench --peer openmpi,mpich >"$dir/stdout" 2>"$dir/stderr"
code=$?
[ $code = 1 ] && [ ! -s "$dir/stdout" ] && grep -q 'openmpi needs mpicc.openmpi; mpich needs mpicc.mpich' "$dir/stderr" &&
    grep -q 'scripts/setup peers.*openmpi-bin libopenmpi-dev mpich libmpich-dev' "$dir/stderr"
ok "absent peers are named with their packages, before anything is measured" $?

# stand_in NAME FAILURE MPICC MPIRUN: an installation below $dir/NAME
stand_in() {
    mkdir -p "$dir/$1/bin"
    printf '#!/bin/sh\n%s\n' "$3" >"$dir/$1/bin/mpicc"
    printf '#!/bin/sh\nexport FAKE_MPI=%s\n%s\n' "$2" "$4" >"$dir/$1/bin/mpirun"
    chmod +x "$dir/$1/bin/mpicc" "$dir/$1/bin/mpirun"
}
# shellcheck disable=SC2016 # for the scripts that are written
{
    # Once for all: a test of a peer's time must not wait for a compiler meanwhile.
    compile="while [ \"\$1\" != -o ]; do set -- \"\$@\" \"\$1\"; shift; done
program=\$2; shift 2
[ -x '$dir/compiled' ] || { cc -I '$here/fake_mpi' \"\$@\" -o \"\$program.new\" && mv \"\$program.new\" '$dir/compiled'; } || exit
exec cp '$dir/compiled' \"\$program\""
    launch='while [ $# -gt 0 ]; do case $1 in -n | --bind-to) shift 2 ;; -*) shift ;; *) break ;; esac; done
mkfifo "$TMPDIR/to-0" "$TMPDIR/to-1"
FAKE_RANK=0 "$@" & a=$!
FAKE_RANK=1 "$@" & b=$!
trap "kill $a $b; exit 1" TERM
wait $a || { s=$?; kill $b; exit $s; }
wait $b'
    stand_in good none "$compile" "$launch"
    stand_in nocompiler none 'echo "checking"; echo "mpi.c:9: error: nothing works today" >&2; exit 1' "$launch"
    stand_in nolaunch none "$compile" 'echo ------; echo "There are not enough slots on this machine."; exit 1'
    stand_in stubborn none "$compile" 'trap "" TERM; while :; do sleep 1; done'
    stand_in dies die "$compile" "$launch"
    stand_in hangs hang "$compile" "$launch"
    stand_in lies lie "$compile" "$launch"
}

nothing_left() { # NAME: folders of supervisors; processes are looked at below
    [ -z "$(ls -A "$dir/tmp")" ]
    ok "$1 leaves no file" $?
}

timeout 100 "$runnel" bench --peer openmpi --peer-prefix openmpi="$dir/good" --api fm --max-time 2 --json >"$dir/rows" 2>"$dir/stderr"
well $?
ok "bench with a stand-in ends well" $?
cat >"$dir/check.py" <<'EOF'
import json
import sys

rows = [json.loads(line) for line in sys.stdin]
seen = {}
for row in rows:
    seen.setdefault((row["test"], row["bytes"], row["api"]), []).append(row)
tests = [("latency", 8), ("rate", 8)] + [(t, n) for t in ("bandwidth", "bandwidth-alone") for n in (65536, 1048576)]
for test in tests:
    for api in ("raw", "fm", "openmpi", "ompi-ucx"):
        assert (*test, api) in seen, (test, api)
peers = [row for row in rows if row["api"] in ("openmpi", "ompi-ucx")]
for row in peers:
    assert row["peer"].startswith('Fake MPI "1.0", '), row
    assert "error" not in row, row
    assert row["trials"] == 0 or row["value"] > 0, row
for api in ("openmpi", "ompi-ucx"): # a busy machine may keep no trial of it, but it was measured
    assert any(row.get("tried") for row in peers if row["api"] == api), peers
assert not any("peer" in row or "error" in row for row in rows if row not in peers)
EOF
python3 "$dir/check.py" <"$dir/rows" >"$dir/said" 2>&1
ok "its rows stand beside ours" $?
nothing_left "a good run"

# panda_rows NAME PEER ARGUMENT...: the multicast has a row of that peer beside Panda's
cat >"$dir/panda.py" <<'EOF'
import json, sys
rows = [json.loads(line) for line in sys.stdin if line.startswith('{"')]
of = {api: [r for r in rows if r.get("test") == "panda-group" and r.get("api") == api] for api in ("panda", sys.argv[1])}
for api, found in of.items():
    print(api, found)
    assert found and any(r.get("tried") for r in found) and not any("error" in r for r in found), api
print("ratio", [r["value"] for r in of[sys.argv[1]] if r["value"]], [r["value"] for r in of["panda"] if r["value"]])
EOF
panda_rows() {
    local name=$1 peer=$2
    shift 2
    timeout 100 "$runnel" bench panda --peer "$peer" --max-time 3 --json "$@" >"$dir/rows" 2>"$dir/stderr"
    well $? && python3 "$dir/panda.py" "$peer" <"$dir/rows" >"$dir/said" 2>&1
    ok "$name" $?
    grep '^ratio' "$dir/said" | sed 's/^/# /'
    nothing_left "it"
}
panda_rows "a broadcast and a barrier beside a multicast" openmpi --peer-prefix openmpi="$dir/good"

# fails NAME PREFIX TEXT ARGUMENTS...: of one row of that peer; the others are measured, as far as the machine lets them
fails() {
    local name=$1 prefix=$2 text=$3 code
    shift 3
    timeout 100 "$runnel" bench --peer ompi-ucx --peer-prefix openmpi="$dir/$prefix" --api native --max-time 1 --peer-timeout 20 "$@" \
        >"$dir/table" 2>"$dir/stderr"
    code=$?
    tr '\n' ' ' <"$dir/table" | tr -s ' ' | grep -qF -- "$text" && well $code &&
        { [ $code != 0 ] || grep -qE '^[a-z-]*( [0-9]+)? *(raw|native|fm) .* [0-9]+$' "$dir/table"; } &&
        grep -q '^ompi-ucx failed: ' "$dir/table" && ! awk 'length > 80 { bad = 1 } END { exit !bad }' "$dir/table"
    ok "$name" $?
    nothing_left "it"
}
fails "a program that does not compile" nocompiler "the compiler ended with status 1: mpi.c:9: error: nothing works today" latency
fails "a launcher that refuses" nolaunch "ended with status 1: There are not enough slots on this machine." latency
fails "a peer that dies while it is measured" dies "ended with status 3: Fake MPI: the sky fell down" latency
fails "a peer that delivers wrong bytes" lies "bytes of a message of 65536 bytes differ from what was sent" bandwidth --size 64K
fails "a peer that hangs while it is measured" hangs "it gave no answer within 6 s" latency --peer-timeout 6
fails "a launcher that hangs and will not end" stubborn "it did not start within 2 s" latency --peer-timeout 2

# An MPI that takes another transport than the provider, as Debian's MPICH does, has no row that says it was the provider.
if [ -e "$build/adapters/ofi/librnl-fi.so" ]; then
    timeout 100 "$runnel" bench latency --peer ompi-rnl --peer-prefix openmpi="$dir/good" --api native --max-time 1 --peer-timeout 20 \
        >"$dir/table" 2>"$dir/stderr"
    tr '\n' ' ' <"$dir/table" | tr -s ' ' | grep -q 'ompi-rnl failed: this MPI does not use libfabric' &&
        ! grep -qE 'ompi-rnl .*[0-9]$' "$dir/table"
    ok "an MPI that does not take the provider is no row of it" $?
    nothing_left "it"
fi

# shellcheck disable=SC2016 # for the script that is written
stand_in slow none "sleep 4; $compile" "$launch"
timeout 100 "$runnel" bench --peer ompi-ucx,openmpi --peer-prefix openmpi="$dir/slow" --api native --max-time 1 --peer-timeout 2 latency \
    >"$dir/table" 2>"$dir/stderr"
! grep -q failed "$dir/table" && grep -q '^ompi-ucx: ' "$dir/table" && grep -q '^openmpi: ' "$dir/table"
ok "the time of a compiler is not that of a peer" $?

ended() { # PIDS: within 60 s
    local p left
    for _ in $(seq 600); do
        left=
        for p in "$@"; do
            if [ -e "/proc/$p" ] && ! grep -q '^State:.Z' "/proc/$p/status" 2>/dev/null; then left="$left $p"; fi
        done
        [ -n "$left" ] || return 0
        sleep 0.1
    done
    echo "left:$left" >"$dir/said"
    return 1
}
# interrupted SIGNAL ARGUMENTS...: in the middle; processes and folders are gone soon after
interrupted() {
    local signal=$1 pid family folder n
    shift
    # a shell's background job ignores Ctrl-C unless told otherwise
    python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
        "$runnel" bench --max-time 60 latency "$@" >"$dir/table" 2>"$dir/stderr" &
    pid=$!
    n=0
    while [ "$(find "$dir/tmp" -name peer -perm -u+x 2>/dev/null | wc -l)" -lt 1 ] && [ $n -lt 600 ]; do
        sleep 0.1
        n=$((n + 1))
    done
    for n in $(seq 300); do
        # shellcheck disable=SC2046,SC2207
        family=($(children $pid))
        [ "${#family[@]}" -lt 8 ] || break
        sleep 0.1
    done
    folder=$(for n in "${family[@]}"; do tr '\0' '\n' <"/proc/$n/environ"; done 2>/dev/null | sed -n 's/^UCX_POSIX_DIR=//p' | sort -u)
    kill "-$signal" $pid
    wait $pid 2>/dev/null
    echo "${#family[@]} processes" >"$dir/said"
    [ "${#family[@]}" -ge 8 ] && ended "${family[@]}"
    ok "$signal ends all processes of a peer" $?
    n=0
    while [ -n "$(ls -A "$dir/tmp")" ] && [ $n -lt 300 ]; do
        sleep 0.1
        n=$((n + 1))
    done
    # shellcheck disable=SC2086 # a list of folders
    [ -z "$(ls -A "$dir/tmp")" ] && [ -n "$folder" ] && ! ls -d $folder >"$dir/said" 2>/dev/null
    ok "and removes its files" $?
}
interrupted KILL --peer openmpi --peer-prefix openmpi="$dir/good"

# the real ones
cat >"$dir/check.py" <<'EOF'
import json
import sys

rows = [json.loads(line) for line in sys.stdin]
names = sys.argv[1].split(",")
for name in names:
    mine = [row for row in rows if row["api"] == name]
    assert mine, name
    errors = {row["error"] for row in mine if "error" in row}
    assert errors or any(row.get("tried") for row in mine), mine
    for error in errors:
        print(f"{name}: {error}")
EOF
for peer in openmpi:openmpi,ompi-ucx mpich:mpich ucx:ucx-am,ucx-tag libfabric:libfabric; do
    name=${peer%%:*}
    if [ -z "${RNL_REAL_PEERS:-}" ]; then # a minute or two
        echo "ok - $name # SKIP measured only with RNL_REAL_PEERS=1"
        continue
    fi
    # windows of many short messages may take a slowed machine longer than it may take a peer
    timeout 300 "$runnel" bench --peer "$name" --api native --max-time 2 --json >"$dir/rows" 2>"$dir/stderr"
    code=$?
    if [ $code = 1 ] && grep -q 'scripts/setup peers' "$dir/stderr"; then
        echo "ok - $name # SKIP not installed: scripts/setup peers"
        continue
    fi
    [ $code = 0 ] && python3 "$dir/check.py" "${peer##*:}" <"$dir/rows" >"$dir/said" 2>&1
    ok "$name is measured, or says why not" $?
    sed 's/^/# /' "$dir/said"
    nothing_left "$name"
    [ "$name" != openmpi ] || interrupted KILL --peer openmpi # the one with the most processes and files
done

if [ -n "${RNL_REAL_PEERS:-}" ] && [ -x /usr/sbin/corosync ] && [ -e /usr/include/corosync/cpg.h ] && unshare -rmn true 2>/dev/null; then
    panda_rows "corosync beside a multicast" corosync --peer-timeout 100
    ! pgrep -f 'corosync -f -c .*bench-peer-' >"$dir/said" && [ -z "$(find /dev/shm /run -maxdepth 1 -name '*corosync*' -newer "$dir/panda.py" 2>/dev/null)" ]
    ok "its daemon is gone, with its files" $?
else
    echo "ok - corosync beside a multicast # SKIP measured only with RNL_REAL_PEERS=1, where corosync and namespaces are"
fi

# Between namespaces each is measured, and nothing that short goes through memory.
cat >"$dir/far.py" <<'END'
import json, sys
rows = [json.loads(line) for line in sys.stdin if line.startswith('{"')]
for api in sys.argv[1:]:
    values = [r["value"] for r in rows if r.get("test") == "latency" and r.get("api") == api]
    print(api, values)
    if not values or any(v is not None and v < 1000 for v in values):
        sys.exit("%s: no row, or faster than a network" % api)
END
if [ -n "${RNL_REAL_PEERS:-}" ] && [ "$(id -u)" = 0 ]; then
    timeout 300 "$runnel" bench latency --netns --peer openmpi,mpich,ucx,libfabric --size 8 --max-time 12 \
        --peer-timeout 100 --json >"$dir/rows" 2>"$dir/stderr" &&
        python3 "$dir/far.py" openmpi ompi-ucx mpich ucx-am ucx-tag libfabric <"$dir/rows" >"$dir/said" 2>&1
    ok "peers between namespaces" $?
    nothing_left "peers between namespaces"
    ! ip netns list | grep -q runnel-bench
    ok "and their namespaces are gone" $?
else
    echo "ok - peers between namespaces # SKIP measured only with RNL_REAL_PEERS=1, as root"
fi
exit "$failed"
