#!/usr/bin/env bash
# What VMMC promises between processes (semantics.c, taken_back.c, forked.c), on one host, over datagrams, on hosts of their own and on the virtual
# cluster; and the example vmmc_ring everywhere. Prints "ok - name" or "not ok - name". Finds the build in $RUNNEL_BUILD and the
# command in $RUNNEL.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
cd "$dir" || exit 1
limit=60
if grep -qE '__(asan|tsan)_init' "$build/tests/vmmc-semantics"; then
    limit=240
fi
cases='errors import send order async notify block importers'

run() { # ARGUMENT...
    timeout -k 5 $((limit + 20)) "$runnel" run --timeout $limit "$@" >said 2>&1 </dev/null
}
all_end() { # CASE
    [ "$(grep -c "^$1: node [0-2] ends well\$" said)" = 3 ]
}

for transport in auto udp; do
    for name in $cases; do
        run --transport $transport -n 3 "$build/tests/vmmc-semantics" "$name" && all_end "$name"
        ok "$name, $transport" $?
    done
    for name in unexport memory; do
        run --transport $transport -n 3 "$build/tests/vmmc-taken_back" "$name" && all_end "$name"
        ok "$name, $transport" $?
    done
    run --transport $transport -n 3 "$build/tests/vmmc-forked" fork && all_end fork
    ok "fork, $transport" $?
    run --transport $transport --keep-going -n 3 "$build/tests/vmmc-taken_back" death
    [ "$(grep -c '^death: node [01] ends well$' said)" = 2 ]
    ok "death, $transport" $?
done
sim() { # PROGRAM ARGUMENT... -- OPTION...
    local program=$build/tests/vproc-$1.so
    local -a arguments=()
    shift
    while [ "$1" != -- ]; do
        arguments+=("$1")
        shift
    done
    shift
    timeout -k 5 $limit "$runnel" sim "$@" "$program" "${arguments[@]}" >said 2>&1 </dev/null
}
for name in $cases; do
    sim vmmc "$name" -- -n 3 --hosts 2 && all_end "$name"
    ok "$name, on two virtual hosts" $?
done
sim vmmc_taken unexport -- -n 3 --hosts 2 && all_end unexport
ok "unexport, on two virtual hosts" $?
for faults in loss=0% "loss=3%,dup=2%,reorder=5%:50us,corrupt=1%"; do
    sim vmmc order -- -n 3 --hosts 3 --fault "$faults" --seed 7 && all_end order
    ok "order, on three virtual hosts, $faults" $?
done

whole() { # LAPS NODES
    grep -qx "$(($1 * $2)) lines of $2 nodes, in order" said && grep -q '^node 0 notifies: 4008 bytes are in buffer 1$' said
}
for nodes in 1 2 4; do
    run -n $nodes "$build/examples/vmmc_ring" 20 && whole 20 $nodes
    ok "a ring of $nodes, on one host" $?
done
run --transport udp -n 3 "$build/examples/vmmc_ring" 20 && whole 20 3
ok "a ring of 3, over datagrams" $?
sim vmmc_ring 20 -- -n 6 --hosts 3 && whole 20 6
ok "a ring of 6, on three virtual hosts" $?
grep hash said >first
sim vmmc_ring 20 -- -n 6 --hosts 3 && grep hash said | cmp -s - first
ok "and a second time it is the same" $?
exit "$failed"
