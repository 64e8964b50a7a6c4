#!/usr/bin/env bash
# What the interface of Panda 2.0 promises (panda2.c), on one host, over datagrams and on the virtual cluster, where there are no threads;
# and the example. Prints "ok - name" or "not ok - name". Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
cd "$dir" || exit 1
program=$build/tests/panda2
limit=60
if grep -qE '__(asan|tsan)_init' "$program"; then
    limit=240
fi
run() { # ARGUMENT...
    timeout -k 5 $((limit + 20)) "$runnel" run --timeout $limit "$@" >said 2>&1 </dev/null
}
sim() { # PROGRAM MODE OPTION...
    local program=$build/tests/vproc-$1.so mode=$2
    shift 2
    timeout -k 5 $limit "$runnel" sim "$@" "$program" "$mode" >said 2>&1 </dev/null
}
right() { # MODE PROCESSES: so many say that they are right, and all have delivered the same
    [ "$(grep -c "^$1: process [0-9]* is right$" said)" = "$2" ] && [ "$(grep '^group: .* has ' said | sort -u -k5 | wc -l)" -le 1 ]
}

for mode in values system mp late rpc group threads; do
    run -n 3 "$program" $mode && right $mode 3
    ok "$mode, shared memory" $?
    run --transport udp -n 2 "$program" $mode && right $mode 2
    ok "$mode, datagrams" $?
done
for mode in values system mp late rpc group; do
    for faults in loss=0% "loss=3%,dup=2%,reorder=5%:50us,corrupt=1%"; do
        sim panda2 $mode -n 5 --hosts 3 --fault "$faults" --seed 3 && right $mode 5
        ok "$mode, on three virtual hosts, $faults" $?
    done
done
sim panda2 threads -n 2
[ "$(grep -c 'panda: process [01]: a thread could not be made: there are none on a virtual cluster' said)" -ge 1 ]
ok 'a virtual process asks for a thread' $?
! run -n 2 "$program" closed && grep -q 'sends to the group club, which is closed: it is not a member' said
ok 'a message of one who is no member ends the program' $?
run -n 4 "$build/examples/auction" && [ "$(grep -c ': the winner bid 104$' said)" = 4 ]
ok 'the example' $?
sim auction '' -n 4 --hosts 4 --fault loss=2% && [ "$(grep -c ': the winner bid 104$' said)" = 4 ]
ok 'the example, on four virtual hosts' $?
exit "$failed"
