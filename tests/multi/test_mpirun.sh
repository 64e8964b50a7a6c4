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

job $two 4 "$build/examples/hello" >said 2>&1 </dev/null &&
    [ "$(grep -oE 'rank [0-9] of 4' said | sort | tr '\n' ' ')" = 'rank 0 of 4 rank 1 of 4 rank 2 of 4 rank 3 of 4 ' ] &&
    ! left_over
ok 'ranks on two hosts find their places' $?

job $two 4 "$build/tests/multi-fm_alltoall" 1 20 >said 2>&1 </dev/null && ! left_over
ok 'messages' $?

job $two 4 "$build/tests/multi-near" >said 2>&1 </dev/null && grep -q '2 by datagrams, 2 of them under one kernel' said
ok 'namespaces are of one kernel' $?

job 10.77.0.1:2,10.77.0.2:1,10.77.0.3:2 5 --map-by node "$build/tests/multi-fm_alltoall" 1 10 >said 2>&1 </dev/null &&
    ! left_over
ok 'three hosts, ranks dealt in turn' $?

job $two 4 "$build/tests/multi-fm_wrong" took >said 2>&1 </dev/null
! left_over
ok 'a rank ends before the others' $?

# mpirun ends a job in which a process is killed, on all hosts.
job $two 4 "$build/tests/multi-kill_rank" wait 1 3 >said 2>&1 </dev/null &
job=$!
ranks_on "$b" 2
sleep 1
kill -KILL "${ranks[1]}"
! wait $job && ! left_over
ok 'a rank is killed: nothing is left' $?

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
        [ "$(grep -cE "host $a does not reach host $b at [0-9a-f.:]+ \\(eth0\\), UDP port [0-9]+: [^;]*; a firewall drops UDP" said)" -ge 1 ] &&
        ! left_over
    ok 'UDP is dropped: every rank says between whom' $?
    ip netns exec "$b" nft delete table inet t
fi
exit "$failed"
