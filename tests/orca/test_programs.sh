#!/usr/bin/env bash
# The examples in Orca, compiled by orcac, give the known answers, for one cpu and for several, and leave no memory behind.
# shellcheck source=tests/orca/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"

# PROGRAM PATTERN ARGUMENT...: the output holds the pattern for 1, 2, 3 and 8 cpus.
known() {
    local program=$1 pattern=$2 cpus
    shift 2
    [ -x "$program" ] || return
    for cpus in 1 2 3 8; do
        "./$program" -cpus "$cpus" "$@" >said 2>&1 && grep -q -- "$pattern" said
        ok "$program $* on $cpus cpus: $pattern" $?
    done
}

for program in feat micro tsp asp leq sor water ida bodies; do
    compiles "$tree/examples/orca/$program.imp" -O1
done
known leq 'iterations 413 x1 0.00841149 ' 60
known tsp 'length 211 route 0 ' 13
known asp 'n 96 checksum 423294 ' 96
known sor 'iterations 152 ' 40 40
known water 'mols 64 kinetic 2.90163e-06 ' 64 10
known micro 'final 100 200' 100
known ida 'moves 34 solutions 1 nodes 123500$' 60 1
known bodies 'energy -0.561622 first 0.210419 0.0341234$' 200 20
./feat >said 2>&1 && [ "$(cat said)" = "$(cat "$tree/tests/orca/feat.out")" ]
ok "feat prints what it has to" $?
./leq 300 >said 2>&1 && grep -q '^iterations 2070 ' said
ok "300 equations take 2070 iterations" $?
orcac --explain "$tree/examples/orca/tsp.imp"
grep -q 'operation Best.Offer: read and write, may block; guards: line 14 write line 19 read' said && grep -q 'operation Best.Len: read$' said
ok "what --explain says of an operation with two guards" $?
[ -n "$sanitizer" ] || orcac --shared "$tree/examples/orca/asp.imp" -o asp.so
ok "a shared object is made" $?
"$runnel" sim -n 1 asp.so 64 >said 2>&1
grep -q 'checksum 251501' said || [ -n "$sanitizer" ]
ok "a program runs on the virtual cluster" $?
orcac nobody.imp
[ $? = 1 ] && grep -q "cannot be read" said
ok "a missing file is told" $?
exit "$failed"
