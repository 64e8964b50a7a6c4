#!/usr/bin/env bash
# The examples in Orca give the known answers on several ranks, on one host and over datagrams, however their objects are placed; and
# what a program says when a rank dies or a process waits in vain. Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
cd "$dir" || exit 1
limit=60
sanitizer=
if nm "$build/lang/liborca.a" 2>/dev/null | grep -q __asan_init; then sanitizer="-W -fsanitize=address,undefined"; fi
if nm "$build/lang/liborca.a" 2>/dev/null | grep -q __tsan_init; then sanitizer="-W -fsanitize=thread"; fi
if [ -n "$sanitizer" ]; then limit=240; fi

run() { # ARGUMENT...
    timeout -k 5 $((limit + 20)) "$runnel" run --timeout $limit "$@" >said 2>&1 </dev/null
}
compile() { # FILE
    # shellcheck disable=SC2086 # words
    "$build/lang/orcac" -O1 $sanitizer "$1" -o "$(basename "$1" .imp)" >said 2>&1
    ok "$(basename "$1") compiles" $?
}
# NAME PATTERN ARGUMENT...: a job that ends well and says the pattern.
says() {
    local name=$1 pattern=$2
    shift 2
    run "$@" && grep -q -- "$pattern" said
    ok "$name" $?
}

for program in micro tsp asp leq sor water; do
    compile "$tree/examples/orca/$program.imp"
done
for transport in auto udp; do
    for n in 1 2 3 8; do
        says "leq on $n ranks, $transport" '^iterations 413 x1 0.00841149 ' --transport $transport -n $n ./leq 60
        says "tsp on $n ranks, $transport" '^length 211 route 0 ' --transport $transport -n $n ./tsp 13
        says "asp on $n ranks, $transport" '^n 96 checksum 423294 ' --transport $transport -n $n ./asp 96
        says "sor on $n ranks, $transport" '^iterations 152 ' --transport $transport -n $n ./sor 40 40
        says "water on $n ranks, $transport" '^mols 64 kinetic 2.90163e-06 ' --transport $transport -n $n ./water 64 10
        says "micro on $n ranks, $transport" '^final 100 200' --transport $transport -n $n ./micro 100
    done
done
says '300 equations take 2070 iterations on 2 ranks' '^iterations 2070 ' -n 2 ./leq 300
for mode in '-p 1' '-p 2' '-static' '-dynamic' '-p 2 -no-strategy' '-p 1 -no-strategy' '-dynamic -no-strategy'; do
    # shellcheck disable=SC2086 # words
    {
        says "leq, $mode" '^iterations 413 x1 0.00841149 ' -n 3 ./leq $mode 60
        says "tsp, $mode" '^length ' -n 3 ./tsp $mode 11
        says "sor, $mode" '^iterations 152 ' -n 3 ./sor $mode 40 40
        says "water, $mode" '^mols 64 kinetic 2.90163e-06 ' -n 3 ./water $mode 64 10
        says "micro, $mode" '^final 100 200' -n 3 ./micro $mode 100
    }
done
exit "$failed"
