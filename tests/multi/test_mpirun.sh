#!/usr/bin/env bash
# Jobs that mpirun starts on several hosts, which are network namespaces: an agent script takes the place of ssh.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "$0")/hosts.sh"

if ! command -v mpirun >/dev/null; then
    echo 'mpirun is not installed (openmpi-bin)'
    exit 77
fi
if ! grep -q PMIx_Init "$build"/src/librunnel.a; then
    echo 'built without PMIx (libpmix-dev)'
    exit 77
fi
hosts_up 3
a=$name-1 b=$name-2
# mpirun's hosts are addresses; it calls the script as it would call ssh: HOST COMMAND. Each host has a name of its own.
cat >reach <<END
#!/bin/sh
host=$name-\${1##*.}
shift
exec ip netns exec "\$host" unshare -u sh -c 'hostname "\$0" && exec sh -c "\$*"' "\$host" "\$@"
END
chmod +x reach
export TMPDIR=$dir OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# What libpmix and its plugins do not give back is not ours.
echo 'leak:libpmix' >leaks
export LSAN_OPTIONS=suppressions=$dir/leaks:print_suppressions=0
unset RUNNEL_FD
job() { # HOSTS RANKS OPTION... PROGRAM ARGUMENT...
    local at=$1 n=$2
    shift 2
    # shellcheck disable=SC2016 # the inner shell is to see it
    timeout -k 5 60 ip netns exec "$name-1" unshare -u sh -c 'hostname "$0" && exec "$@"' "$name-1" \
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

job $two 4 "$build/examples/hello" >said 2>&1 </dev/null &&
    [ "$(grep -oE 'rank [0-9] of 4' said | sort | tr '\n' ' ')" = 'rank 0 of 4 rank 1 of 4 rank 2 of 4 rank 3 of 4 ' ] &&
    ! left_over
ok 'ranks on two hosts find their places, and the agents end with them' $?

job $two 4 "$build/tests/multi-fm_alltoall" 1 20 >said 2>&1 </dev/null && ! left_over
ok 'messages' $?

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
for ((i = 0; i < 200; i++)); do
    mapfile -t ranks < <(ip netns pids "$b" | while read -r p; do
        [ "$(cat "/proc/$p/comm" 2>/dev/null)" = multi-kill_rank ] && echo "$p"
    done)
    [ ${#ranks[@]} = 2 ] && break
    sleep 0.05
done
sleep 1
kill -KILL "${ranks[1]}"
for ((i = 0; i < 400; i++)); do
    [ "$(grep -c '^done [0123] ' said)" = 3 ] && break
    sleep 0.05
done
for h in "$a" "$b"; do
    ip netns pids "$h" | while read -r p; do
        grep -qxE 'mpirun|orted' "/proc/$p/comm" 2>/dev/null && kill -KILL "$p"
    done
done
wait $job 2>/dev/null
[ "$(grep -c '^dead [0123] [23] ' said)" = 3 ] && [ "$(grep -c '^done [0123] ' said)" = 3 ] && ! left_over
ok 'a rank is killed: it is dead for those of both hosts, and they go on' $?

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
