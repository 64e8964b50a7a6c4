#!/usr/bin/env bash
# Groups, Panda and Orca between two hosts, which are network namespaces whose ranks share memory within and lose packets between:
# the known answers, one order, and an end that says who died. Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "${BASH_SOURCE[0]}")/../multi/hosts.sh"
# shellcheck source=tests/orca/head.sh
. "$tree/tests/orca/head.sh"
for program in leq tsp micro; do
    compiles "$tree/examples/orca/$program.imp" -O1
done
compiles "$tree/tests/orca/programs/dies.imp" -O1
hosts_up 2
says() { # NAME COUNT PATTERN ARGUMENT...: a job that ends well with so many such lines
    local name=$1 count=$2 pattern=$3
    shift 3
    on_hosts "$@" >said 2>&1 </dev/null && [ "$(grep -c -- "$pattern" said)" = "$count" ] && ! left_over
    ok "$name" $?
}
! on_hosts -x RNL_FAULT=lost=5% -n 2 ./micro 10 >said 2>&1 </dev/null && grep -q "there is no 'lost'" said
ok "ranks on hosts read what befalls their packets" $?
for fault in loss=0% loss=5%,dup=1%,reorder=2%:1ms; do
    for n in 2 4; do
        says "leq, $n ranks, $fault" 1 '^iterations 413 x1 0.00841149 ' -x RNL_FAULT=$fault -n $n ./leq 60
        says "tsp, $n ranks, $fault" 1 '^length 211 route 0 ' -x RNL_FAULT=$fault -n $n ./tsp 13
        says "micro, $n ranks, $fault" 1 '^final 100 200' -x RNL_FAULT=$fault -n $n ./micro 100
        for method in 0 1 2 3; do # as suggested, PB, BB, GSB
            says "order by method $method, $n ranks, $fault" $n '^order: rank [0-9]* agrees on ' -x RNL_FAULT=$fault -n $n \
                "$build/tests/group-ranks" order $method
            [ "$(grep '^order: .* agrees on' said | sort -u -k6 | wc -l)" = 1 ]
            ok "order by method $method, $n ranks, $fault: it is one" $?
        done
        says "calls of Panda, $n ranks, $fault" $n '^rpc: rank [0-9]* is right$' -x RNL_FAULT=$fault -n $n "$build/tests/panda-ranks" rpc
    done
    for victim in 0 2; do # the sequencer, the first rank of the other host
        on_hosts -x RNL_FAULT=$fault --keep-going -n 4 "$build/tests/group-ranks" death $victim 30 >said 2>&1 </dev/null
        [ "$(grep -c '^death: rank [0-9]* agrees on ' said)" = 3 ] && [ "$(grep '^death: .* agrees on' said | sort -u -k6 | wc -l)" = 1 ] && ! left_over
        ok "rank $victim dies, the others agree, $fault" $?
    done
done

: >said
on_hosts --keep-going -x RNL_FAULT=loss=5% -n 3 ./dies >said 2>&1 </dev/null &
job=$!
while ! grep -q '^ready' said && kill -0 $job 2>/dev/null; do sleep 0.05; done
for pid in $(ip netns pids "$name-2"); do # it has the last rank alone, or with another
    if [ "$(readlink "/proc/$pid/exe")" = "$dir/dies" ] && tr '\0' '\n' <"/proc/$pid/environ" | grep -qx RUNNEL_RANK=2; then kill -9 "$pid"; fi
done
wait $job
grep -q '^cpu 2 died of signal 9, and the program ends: lost with it are the objects o (IntObject), row\[6\] (IntObject)$' said && ! left_over
ok "the death of a rank on the other host is told" $?
exit "$failed"
