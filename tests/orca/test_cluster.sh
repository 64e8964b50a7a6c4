#!/usr/bin/env bash
# The examples in Orca on a virtual cluster: the known answers on 8 hosts, also when packets are lost; the same run to the bit from
# the same seed; a host that dies ends the program; and speedups of virtual time, where a turn of a loop takes as many times less than
# an ordered multicast as on the machine of Bal et al. (1997), which has 5.9 for equations and 5.7 for water on 8 processors.
# shellcheck source=tests/orca/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
if [ -n "$sanitizer" ]; then
    echo "shared objects for the virtual cluster are made without sanitizers"
    exit 77
fi
for program in micro tsp asp leq sor water ida bodies; do
    orcac -O1 --shared "$tree/examples/orca/$program.imp" -o $program.so
    ok "$program compiles" $?
done
run() { timeout -k 5 120 "$runnel" sim "$@" >said 2>&1; }
for loss in 0% 2%; do
    says() { # PATTERN PROGRAM ARGUMENT...
        local pattern=$1
        shift
        run -n 8 --hosts 8 --loss $loss "$@" && grep -q -- "$pattern" said
        ok "$* on 8 hosts that lose $loss" $?
    }
    says '^iterations 413 x1 0.00841149 ' leq.so 60
    says '^length 211 route 0 ' tsp.so 13
    says '^n 96 checksum 423294 ' asp.so 96
    says '^iterations 152 ' sor.so 40 40
    says '^mols 64 kinetic 2.90163e-06 ' water.so 64 10
    says '^final 100 200' micro.so 100
    says '^moves 34 solutions 1 nodes 123500$' ida.so 60 1
    says 'energy -0.561622 first 0.210419 0.0341234$' bodies.so 200 20
done
run -n 4 --hosts 4 --loss 5% --seed 7 sor.so 20 20 && cp said first && run -n 4 --hosts 4 --loss 5% --seed 7 sor.so 20 20 && cmp -s said first
ok "one seed, one run" $?
printf 'at 300us crash 2\n' >scenario
! run -n 4 --hosts 4 --keep-going --scenario scenario sor.so 40 40 && grep -q 'cpu 2 died' said
ok "a host that dies ends the program, which says who" $?

speedup() { # AT-LEAST PROGRAM ARGUMENT...: tenths
    local least=$1 alone together
    shift
    run -n 1 "$@" && alone=$(grep -o 'msec [0-9]*' said | tr -dc 0-9) && run -n 8 --hosts 8 "$@" &&
        together=$(grep -o 'msec [0-9]*' said | tr -dc 0-9) && [ $((10 * alone)) -ge $((least * together)) ]
    ok "$*: $alone ms alone, $together ms on 8 hosts" $?
}
speedup 59 leq.so -turn-ns 40 300
speedup 57 water.so -turn-ns 400 100 10
exit "$failed"
