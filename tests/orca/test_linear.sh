#!/usr/bin/env bash
# Random histories of one object, told by processes on several ranks, are those of an object on which one operation happens after
# another (tests/orca/linear): test_linear.sh [FIRST-SEED [COUNT]]. Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
# shellcheck source=tests/orca/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
needs_commands python3
first=${1:-1}
count=${2:-1}
each=40

compiles "$tree/tests/orca/programs/history.imp"
judged() { # NAME KIND PLACE SEED RANKS TRANSPORT
    timeout -k 5 $((limit + 20)) "$runnel" run --timeout $limit --transport "$6" -n "$5" ./history "$3" "$4" $each >said 2>&1 </dev/null &&
        "$tree/tests/orca/linear" "$2" said $((each * $5)) 2>err
    ok "$1, seed $4, $5 ranks, $6" $?
}
for seed in $(seq "$first" $((first + count - 1))); do
    for n in 2 3 8; do
        for transport in auto udp; do
            judged "a single copy" single $((seed % n)) "$seed" $n $transport
            judged "a replica at each" replicated -1 "$seed" $n $transport
        done
    done
done

# The judge finds what is wrong: a write that nobody saw, a read of the past.
printf 'swap 0 1 2 5 0 0\nswap 1 3 4 6 0 0\n' >said
! "$tree/tests/orca/linear" replicated said 2 2>err
ok "a lost write is found" $?
printf 'swap 0 1 2 5 0 0\nread 1 3 4 0 0 0\n' >said
! "$tree/tests/orca/linear" single said 2 2>err && "$tree/tests/orca/linear" replicated said 2
ok "a read of the past is found, of a single copy" $?
printf 'swap 0 1 2 5 0 0\nread 1 3 4 0 0 5\nread 1 5 6 0 0 0\n' >said
! "$tree/tests/orca/linear" replicated said 3 2>err
ok "a replica that goes back is found" $?
exit "$failed"
