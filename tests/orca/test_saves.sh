#!/usr/bin/env bash
# What each of the four savings of orcac(1) saves is counted, and comes back when it is left out: a message that takes another way
# than before, or an option that does nothing, changes a number here. Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
# shellcheck source=tests/orca/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"

# OPTION...: "SWITCHES LAYERS PIECES COPIES" of cpu 0 and of cpu 1.
counted() {
    timeout -k 5 $((limit + 20)) "$runnel" run --timeout $limit -n 2 ./saves -v "$@" >said 2>&1 </dev/null || return
    sed -n 's/^cpu [01]: \([0-9]*\) switches, \([0-9]*\) layers, \([0-9]*\) pieces, \([0-9]*\) bytes of copies$/&\t\1 \2 \3 \4/p' said |
        sort | cut -f 2 | paste -sd ' '
}
# NAME COUNTS OPTION...
is() {
    local name=$1 counts=$2 found
    shift 2
    found=$(counted "$@")
    [ "$found" = "$counts" ] || echo "# counted $found instead of $counts"
    [ "$found" = "$counts" ]
    ok "$name" $?
}

compiles "$tree/tests/orca/programs/saves.imp" -O1
is 'nothing is left out' '1 0 42 240 1 0 40 296'
# Each of the 41 invocations of cpu 1 waits; cpu 0 waits for its fork and for the end.
is 'each wait is a switch' '3 0 42 240 42 0 40 296' -without switches
# Of cpu 1: 20 calls with a reply and 20 multicasts, which it does not take in itself; the last call; the fork, and two ends.
is 'each body goes through a layer' '1 67 42 16560 1 66 40 7640' -without layers
# A row of 100 points has 200 fields. cpu 1 sends 20 and is given back 9; its own multicasts are not taken in.
is 'each field is a piece' '1 0 5811 240 1 0 5811 296' -without pieces
# A row takes 816 bytes with its bounds: cpu 0 takes 20, cpu 1 9 and its own 10.
is 'what is long is kept whole' '1 0 42 16560 1 0 40 15800' -without copies
grep -q '^cpu 1: object one (Points): remote, owned by cpu 0, 0 reads and 20 writes of this cpu, 0 blocked; Strategy says so$' said
ok 'each object is told in the end' $?
exit "$failed"
