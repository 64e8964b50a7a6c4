#!/usr/bin/env bash
# Open MPI on Runnel's provider, over two hosts, which are network namespaces with a daemon each: the ranks are introduced by the
# addresses that MPI exchanges. Datagrams are lost, ranks are killed and a host is cut off.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "$0")/../multi/hosts.sh"
source=${RUNNEL_SOURCE:?the source directory}
provider=$build/adapters/ofi/librnl-fi.so
if ! command -v mpicc.openmpi >/dev/null || [ ! -e "$provider" ] || grep -qE '__(asan|tsan)_init' "$provider" ||
    ! "$runnel" run -n 2 --mpi true 2>/dev/null; then
    echo 'the provider, Open MPI or PMIx is not here, or a sanitizer is in use'
    exit 77
fi
hosts_up 2
export TMPDIR=$dir RUNNEL_DAEMON=$name
daemons=()
daemon() { # HOST OPTION...: one begins to listen there
    local i
    ip netns exec "$name-$1" "$runnel" daemon --idle 600 "${@:2}" >"daemon$1" 2>&1 </dev/null &
    daemons+=($!)
    for ((i = 0; i < 1200; i++)); do
        ip netns exec "$name-$1" grep -q "@runnel-daemon-$RUNNEL_DAEMON" /proc/net/unix && return
        sleep 0.05
    done
}
end_daemons() {
    kill "${daemons[@]}"
    wait "${daemons[@]}"
    daemons=()
}
on_provider() { # OPTION... PROGRAM ARGUMENT...
    timeout -k 5 120 "$runnel" mpi -q "$runnel" run --timeout 95 --launcher netns --hosts "$list" "$@"
}
for program in ring onesided dies; do
    mpicc.openmpi -O1 -o $program "$source/tests/ofi/$program.c" >said 2>&1
    ok "$program compiles" $?
done
"$runnel" key --file one --new >said && "$runnel" key --file two --new >said
ok 'keys are made' $?
daemon 1 --key one
daemon 2 --key one
for n in 2 4; do
    on_provider -n $n ./ring >said 2>&1 </dev/null && grep -qx "ring of $n" said
    ok "a ring of $n ranks" $?
done
on_provider -n 2 ./onesided >said 2>&1 </dev/null
ok 'memory of a rank of the other host is written and read' $?
# ---- one datagram in twenty is lost, each way ----
if ! command -v nft >/dev/null || ! ip netns exec "$name-1" nft add table inet t 2>said; then
    echo '# nft, which loses datagrams, is not installed (nftables) or cannot be used here'
else
    for h in 1 2; do
        ip netns exec "$name-$h" nft -f - <<'END'
add table inet t
add chain inet t in { type filter hook input priority 0; }
add rule inet t in iifname "eth0" meta l4proto udp numgen random mod 20 < 1 counter drop
END
    done
    for n in 2 4; do
        on_provider -n $n ./ring >said 2>&1 </dev/null && grep -qx "ring of $n" said
        ok "with loss: a ring of $n ranks" $?
    done
    on_provider -n 2 ./onesided >said 2>&1 </dev/null
    ok 'with loss: memory of a rank of the other host is written and read' $?
    lost=0
    for h in 1 2; do
        ip netns exec "$name-$h" nft list chain inet t in | grep -q 'packets [1-9]' && lost=$((lost + 1))
        ip netns exec "$name-$h" nft delete table inet t
    done
    [ $lost = 2 ]
    ok 'with loss: both hosts lost some' $?
fi

# ---- a rank of the other host is killed: all others are told by the call in which they wait ----
for way in recv probe ssend long barrier flood; do
    on_provider -n 3 --keep-going ./dies $way kill >said 2>&1 </dev/null
    [ $? = 137 ] && [ "$(grep -c 'rank [01]: told of it' said)" = 2 ] && [ "$(grep -c 'rank 2 on .* was killed by signal 9' said)" = 1 ]
    ok "killed: who waits for it in $way is told" $?
done

# ---- the other host is cut off: who waits is told in the 60 seconds of runnel-run(1), and the job ends by its status ----
cut_off() { # once all have met
    local i
    for ((i = 0; i < 1200; i++)); do
        [ ! -e met ] || break
        sleep 0.05
    done
    sleep 0.3
    ip -n "$name-2" link set eth0 down
}
for way in recv ssend; do
    rm -f met
    cut_off &
    cutter=$!
    on_provider -n 2 ./dies $way cut met >said 2>&1 </dev/null
    [ $? = 3 ] && grep -q 'rank 0: told of it' said
    ok "cut off: who waits for it in $way is told" $?
    wait $cutter
    ip -n "$name-2" link set eth0 up
done
end_daemons
daemon 1 --key one
daemon 2 --key two
on_provider -n 2 ./ring >said 2>&1 </dev/null
[ $? = 17 ] && ! grep -q 'ring of' said
ok 'hosts whose daemons have different keys do not come together, and the job ends' $?
end_daemons
on_provider -n 2 ./ring >said 2>&1 </dev/null
[ $? -lt 128 ] && grep -q 'MPI_ERR' said
ok 'without daemons MPI says that it has failed' $?
! left_over
ok 'nothing is left on the hosts' $?
exit "$failed"
