#!/usr/bin/env bash
# Random programs in Orca (tests/orca/generate) print the same with one rank, with one rank that plays several cpus, and with several
# ranks, however their objects are placed and their C is optimized: test_random.sh [FIRST-SEED [COUNT]].
# Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
# shellcheck source=tests/orca/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
needs_commands python3
first=${1:-1}
count=${2:-8}
[ -z "$sanitizer" ] || count=$(((count + 2) / 3))
modes=('' '-p 1' '-p 2' '-static' '-dynamic' '-p 1 -no-strategy' '-p 2 -no-strategy' '-dynamic -no-strategy'
    '-p 2 -no-strategy -without switches' '-p 1 -no-strategy -without layers' '-p 2 -no-strategy -without pieces' '-p 1 -no-strategy -without copies')

same() { # NAME COMMAND...: it ends well and prints what the first run did
    local name=$1
    shift
    timeout -k 5 $((limit + 20)) "$@" >said 2>&1 </dev/null && cmp -s said wanted
    ok "$name" $?
}

for seed in $(seq "$first" $((first + count - 1))); do
    "$tree/tests/orca/generate" "$seed" . >said 2>&1 && orcac -O0 m.imp -o m
    ok "program $seed compiles" $?
    timeout -k 5 $((limit + 20)) ./m >wanted 2>said </dev/null && [ "$(wc -l <wanted)" = 8 ]
    ok "program $seed ends" $?
    same "program $seed with 3 cpus" ./m -cpus 3
    orcac -O2 m.imp -o m
    ok "program $seed compiles, optimized" $?
    same "program $seed, optimized" ./m
    for n in 2 3 8; do
        mode=${modes[(seed + n) % ${#modes[@]}]}
        # shellcheck disable=SC2086 # words
        same "program $seed on $n ranks $mode" "$runnel" run --timeout $limit -n $n ./m $mode
    done
    mode=${modes[seed % ${#modes[@]}]}
    # shellcheck disable=SC2086 # words
    same "program $seed on 3 ranks, datagrams $mode" "$runnel" run --timeout $limit --transport udp -n 3 ./m $mode
done
exit "$failed"
