#!/usr/bin/env bash
# The examples in Orca give the known answers on 64 ranks, far more than there are processors.
# shellcheck source=tests/orca/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
says() { # PATTERN PROGRAM ARGUMENT...
    local pattern=$1 program=$2
    shift 2
    orcac -O1 "$tree/examples/orca/$program.imp" -o "$program" &&
        timeout -k 5 320 "$runnel" run --timeout 300 -n 64 "./$program" "$@" >said 2>&1 </dev/null && grep -q -- "$pattern" said
    ok "$program on 64 ranks" $?
}
says '^iterations 413 x1 0.00841149 ' leq 60
says '^length 211 route 0 ' tsp 13
says '^n 96 checksum 423294 ' asp 96
says '^iterations 152 ' sor 40 40
says '^mols 64 kinetic 2.90163e-06 ' water 64 10
says '^final 100 200' micro 100
says '^moves 34 solutions 1 nodes 123500$' ida 60 1
says 'energy -0.561622 first 0.210419 0.0341234$' bodies 200 20
exit "$failed"
