#!/usr/bin/env bash
# Jobs that mpirun starts on several hosts, which are network namespaces: an agent script takes the place of ssh.
# test_mpirun.sh keepers: what becomes of them when an agent that the first rank of a host left behind is killed or is
# not heard; that takes as long as silence does.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
# shellcheck disable=SC2030,SC2031,SC2034,SC2317 # scenes in the background, each with variables of its own
. "$(dirname "$0")/hosts.sh"

if ! command -v mpirun >/dev/null; then
    echo 'mpirun is not installed (openmpi-bin)'
    exit 77
fi
if ! grep -q PMIx_Init "$build"/src/librunnel.a; then
    echo 'built without PMIx (libpmix-dev)'
    exit 77
fi
# mpirun's hosts are addresses; it calls the script as it would call ssh: HOST COMMAND. Each host has a name of its own.
up() { # N
    hosts_up "$1"
    a=$name-1 b=$name-2
    cat >reach <<END
#!/bin/sh
host=$name-\${1##*.}
shift
exec ip netns exec "\$host" unshare -u sh -c 'hostname "\$0" && exec sh -c "\$*"' "\$host" "\$@"
END
    chmod +x reach
}
up 3
export TMPDIR=$dir OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# What libpmix and its plugins do not give back is not ours.
echo 'leak:libpmix' >leaks
export LSAN_OPTIONS=suppressions=$dir/leaks:print_suppressions=0
unset RUNNEL_FD
job() { # HOSTS RANKS OPTION... PROGRAM ARGUMENT...
    local at=$1 n=$2
    shift 2
    # shellcheck disable=SC2016 # the inner shell is to see it
    timeout -k 5 150 ip netns exec "$name-1" unshare -u sh -c 'hostname "$0" && exec "$@"' "$name-1" \
        mpirun --mca plm rsh --mca plm_rsh_agent "$dir/reach" --mca oob_tcp_if_include eth0 --mca btl self,tcp \
        --mca orte_keep_fqdn_hostnames 1 --oversubscribe --host "$at" -np "$n" -x LSAN_OPTIONS "$@"
}
two=10.77.0.1:2,10.77.0.2:2
# shellcheck disable=SC2016 # the ranks' shell is to see it
if ! job $two 4 sh -c 'echo "$PMIX_RANK on $(hostname)"' >said 2>&1 </dev/null ||
    [ "$(grep -c "on $b" said)" != 2 ]; then
    echo "mpirun does not start jobs in namespaces here: $(grep . said | head -n 3 | tr '\n' ' ')"
    exit 77
fi

# ---- agents that are gone ----

# beside SCENE: in the background, with hosts of its own
running=()
logs=()
beside() {
    (
        trap clean_up EXIT
        name=$name$1 dir=$dir/$1 hosts=()
        mkdir "$dir" && cd "$dir" || exit 1
        up 2
        job $two 4 --enable-recovery "$build/tests/multi-kill_rank" wait 1 3 >said 2>&1 </dev/null &
        job=$!
        ranks_on "$a" 2 && ranks_on "$b" 2 && sleep 3
        SECONDS=0
        "$1"
        kill_on_hosts 'mpirun|orted'
        wait $job 2>/dev/null
        exit "$failed"
    ) >"$dir/$1.log" 2>&1 &
    running+=($!)
    logs+=("$dir/$1.log")
}
# until so many lines match, or the job has ended. Of an agent that is killed only the end of its connections can tell
# its ranks, and so that is what they were told by, however long it took
until_said() { # PATTERN COUNT
    while [ "$(grep -cE "$1" said)" -lt "$2" ]; do
        kill -0 "$job" 2>/dev/null || [ "$(grep -cE "$1" said)" -ge "$2" ] || return 1
        sleep 0.1
    done
}
agents_left() { # on a host, until they are gone or the job has ended
    while :; do
        ip netns pids "$1" | while read -r p; do
            grep -x runnel-agent "/proc/$p/comm" 2>/dev/null
        done >left
        [ -s left ] || return 1
        kill -0 "$job" 2>/dev/null || break
        sleep 0.05
    done
    echo "an agent is left on $1" >>said
}
lost='told -[0-9]+ about .* the launcher of this job is gone'
b_is_dead() { # it is told on a, and all goes on there
    until_said '^dead 0 [23] ' 1 && until_said '^dead 1 [23] ' 1 && until_said '^done [01] ' 2
}
{
    killed() {
        kill_agent "$b"
        until_said "^rank [23]: .*$lost" 2 && b_is_dead && ! agents_left "$a"
        ok "an agent is killed: its ranks lose the job, the others hear that they are gone ($SECONDS s)" $?
    }
    leads() {
        kill_agent "$a"
        until_said "^rank [01]: .*$lost" 2 && until_said "^rank [0-3]: .*$lost" 4 &&
            ! agents_left "$b"
        ok "the agent that leads is killed: all lose the job ($SECONDS s)" $?
    }
    silent() {
        drop_udp "$a"
        drop_udp "$b"
        b_is_dead && until_said "^rank [23]: .*$lost" 2 && ! agents_left "$a" && ! agents_left "$b"
        ok "a host falls silent while all are idle: each side ends, and nothing is left ($SECONDS s)" $?
    }
    unheard() {
        drop_udp "$a"
        b_is_dead && until_said "^rank [23]: .*$lost" 2 && ! agents_left "$a" && ! agents_left "$b"
        ok "a host is not heard: it is given up, and ends ($SECONDS s)" $?
    }
}
kill_agent() { # HOST: its agent
    ip netns pids "$1" | while read -r p; do
        grep -qx runnel-agent "/proc/$p/comm" 2>/dev/null && kill -KILL "$p"
    done
}
drop_udp() { # HOST: what comes in
    ip netns exec "$1" nft -f - <<'END'
table inet t {
    chain input { type filter hook input priority 0; meta l4proto udp drop; }
}
END
}
if [ "${1:-}" = keepers ]; then
    beside killed
    beside leads
    if command -v nft >/dev/null; then
        beside silent
        beside unheard
    else
        echo 'ok - hosts that are not heard # SKIP nft is not installed (nftables)'
    fi
    for pid in "${running[@]}"; do
        wait "$pid" || failed=1
    done
    cat "${logs[@]}"
    exit "$failed"
fi

# ---- jobs ----

job $two 4 "$build/examples/hello" >said 2>&1 </dev/null &&
    [ "$(grep -oE 'rank [0-9] of 4' said | sort | tr '\n' ' ')" = 'rank 0 of 4 rank 1 of 4 rank 2 of 4 rank 3 of 4 ' ] &&
    ! left_over
ok 'ranks on two hosts find their places, and the agents end with them' $?

job $two 4 "$build/tests/multi-fm_alltoall" 1 20 >said 2>&1 </dev/null && ! left_over
ok 'messages' $?

job $two 4 "$build/tests/multi-near" >said 2>&1 </dev/null && grep -q '2 by datagrams, 2 of them under one kernel' said
ok 'namespaces are of one kernel' $?

job 10.77.0.1:2,10.77.0.2:1,10.77.0.3:2 5 --map-by node "$build/tests/multi-fm_alltoall" 1 10 >said 2>&1 </dev/null &&
    ! left_over
ok 'three hosts, ranks dealt in turn' $?

# Rank 0 ends first: the agent that leads stays until the others have ended.
job $two 4 "$build/tests/multi-fm_wrong" took >said 2>&1 </dev/null
! left_over
ok 'a rank ends before the others' $?

# A process is killed, mpirun lets the others go on (and does not end by itself then): those of both hosts hear of it
# from the agents.
job $two 4 --enable-recovery "$build/tests/multi-kill_rank" wait 1 3 >said 2>&1 </dev/null &
job=$!
ranks_on "$b" 2
sleep 1
kill -KILL "${ranks[1]}"
until_said '^done [0123] ' 3
kill_on_hosts 'mpirun|orted'
wait $job 2>/dev/null
[ "$(grep -c '^dead [0123] [23] ' said)" = 3 ] && [ "$(grep -c '^done [0123] ' said)" = 3 ] && ! left_over
ok 'a rank is killed: it is dead for those of both hosts, and they go on' $?

# Host b has the library of another release: the same, under another number.
release=$("$runnel" --version | sed 's/runnel //')
mkdir other
LC_ALL=C sed "s/\x00$release\x00/\x009.9.9\x00/g" "$build/src/librunnel.so" >other/librunnel.so.0
# shellcheck disable=SC2016 # the ranks' shell is to see it
! job $two 4 sh -c 'case $(hostname) in *-2) export LD_LIBRARY_PATH=$1 ;; esac; exec "$0"' "$build/examples/hello" \
    "$dir/other" >said 2>&1 </dev/null &&
    [ "$(grep -cE "host ($a|$b) has protocol and release [0-9]+[.][0-9]+ (9.9.9|$release), and this one [0-9]+[.][0-9]+ (9.9.9|$release): install one release" said)" -ge 1 ] &&
    ! left_over
ok 'another release on one host: the ranks say which, and install one' $?

if command -v nft >/dev/null; then
    ip netns exec "$b" nft -f - <<'END'
table inet t {
    chain input { type filter hook input priority 0; meta l4proto udp drop; }
}
END
    ! job $two 4 "$build/examples/hello" >said 2>&1 </dev/null &&
        [ "$(grep -cE "host $a does not reach host $b at [0-9a-f.:]+ \\(eth0\\), UDP port [0-9]+: no answer; a fire" said)" -ge 1 ] &&
        ! left_over
    ok 'UDP is dropped: every rank says between whom' $?
    ip netns exec "$b" nft delete table inet t
fi
exit "$failed"
