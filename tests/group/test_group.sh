#!/usr/bin/env bash
# What groups promise between processes (ranks.c), on one host, over datagrams and on the virtual cluster, and the examples
# replica and latecomer everywhere. Prints "ok - name" or "not ok - name". Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
cd "$dir" || exit 1
limit=60
if grep -qE '__(asan|tsan)_init' "$build/tests/group-ranks"; then
    limit=240
fi

run() { # ARGUMENT...
    timeout -k 5 $((limit + 20)) "$runnel" run --timeout $limit "$@" >said 2>&1 </dev/null
}
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
agree() { # MODE RANKS: so many ranks say that they agree, all on the same
    [ "$(grep -c "^$1: rank [0-9]* agrees on " said)" = "$2" ] && [ "$(grep "^$1: .* agrees on" said | sort -u -k6 | wc -l)" = 1 ]
}
one_ledger() { # four ranks have it, of which one joined in the middle
    [ "$(grep -c '^rank [0-3] of [1-4]: 1200 commands' said)" = 4 ] && [ "$(grep '^rank' said | sed 's/.*ledger//' | sort -u | wc -l)" = 1 ] &&
        grep -qE '^joins after [0-9]{3} commands' said
}
ranks=$build/tests/group-ranks

for transport in auto udp; do
    for method in 0 1 2 3; do # as suggested, PB, BB, GSB
        run --transport $transport -n 3 "$ranks" order $method && agree order 3
        ok "order by method $method, $transport" $?
    done
    run --transport $transport -n 5 "$ranks" order 4 20 && agree order 5
    ok "order along a tree of 5, $transport" $?
    run --transport $transport -n 4 "$ranks" part && agree part 4 && agree odd 2
    ok "two groups, $transport" $?
    rm -f go
    run --transport $transport -n 3 "$ranks" slow && agree slow 3 && grep -qx 'held back: 1, 1' said
    ok "a member that is late, $transport" $?
    for victim in 0 1; do # the sequencer, another one
        run --transport $transport --keep-going -n 4 "$ranks" death $victim 30
        agree death 3
        ok "rank $victim dies, $transport" $?
    done
    run --transport $transport --keep-going -n 6 "$ranks" death 1 20 4 # in the middle of the tree
    agree death 5
    ok "rank 1 dies in a tree, $transport" $?
    for method in 0 2 3 4; do # as suggested, BB, GSB, along a tree
        run --transport $transport -n 4 "$ranks" join 99 20 $method && agree join 4 && [ "$(grep -c 'joins after' said)" = 2 ]
        ok "two ranks join, method $method, $transport" $?
    done
    for victim in 2 3 1; do # the sequencer, another member, one that joins
        run --transport $transport --keep-going -n 4 "$ranks" join $victim 20
        agree join 3
        ok "rank $victim dies while others join, $transport" $?
    done
    run --transport $transport -n 3 "$ranks" hostile
    [ "$(grep -c 'goes on without rank 1' said)" = 2 ]
    ok "a hostile member, $transport" $?
    run --transport $transport -n 3 "$build/examples/replica" 500 && [ "$(cut -d' ' -f4 said | sort -u | wc -l)" = 1 ]
    ok "the example, $transport" $?
    run --transport $transport -n 4 "$build/examples/latecomer" 300 && one_ledger
    ok "the example that joins, $transport" $?
done
run -n 1 "$ranks" order 0 && agree order 1
ok 'a group of one' $?

for faults in loss=0% "loss=3%,dup=2%,reorder=5%:50us,corrupt=1%"; do
    for method in 0 3 4; do
        sim group order $method 15 -- -n 5 --hosts 5 --fault "$faults" --seed 7 && agree order 5
        ok "order by method $method, on five virtual hosts, $faults" $?
    done
done
sim group order 0 3 -- -n 32 --hosts 8 && agree order 32
ok 'order, 32 ranks on eight virtual hosts' $?
for seed in 1 2 3; do
    for victim in 0 2; do # the sequencer, one in the middle of the tree
        printf 'at %dms crash %d\n' $((seed + 4)) $victim >crash
        sim group death 99 60 4 -- -n 6 --hosts 6 --keep-going --scenario crash --fault loss=1% --seed $seed
        agree death 5
        ok "rank $victim dies, on six virtual hosts, seed $seed" $?
    done
done
for seed in 1 2 3 4 5 6; do
    for victim in 3 4 1; do # the sequencer, another member, one that joins: before, while and after others join
        printf 'at %dms crash %d\n' $((seed + 1)) $victim >crash
        sim group join $victim 40 $((seed % 2 * 4)) -- -n 6 --hosts 6 --keep-going --scenario crash --fault loss=1% --seed $seed
        agree join 5
        ok "rank $victim dies while others join, on six virtual hosts, seed $seed" $?
    done
done
sim group join 99 5 4 -- -n 32 --hosts 32 && agree join 32
ok 'sixteen ranks join, on 32 virtual hosts' $?
# The time that a message takes grows with the depth of the tree: from 16 to 64 members by two levels.
time_of() { # MEMBERS: tenths of a us
    sim group time 10 0 -- -n "$1" --hosts "$1" --fault delay=5us..5us
    sed -n 's/^time: .* members, \([0-9]*\)\.\([0-9]\) us .*/\1\2/p' said
}
few=$(time_of 16) many=$(time_of 64)
[ "${few:-0}" -gt 0 ] && [ "${many:-0}" -gt 0 ] && [ "$many" -lt $((few * 2)) ]
ok "a message to 64 members takes less than twice as long as to 16 (${few}, ${many} tenths of a us)" $?
sim replica 100 -- -n 6 --hosts 3 --fault loss=2% --seed 3 && [ "$(grep '^rank' said | cut -d' ' -f4 | sort -u | wc -l)" = 1 ]
ok 'the example, on three virtual hosts' $?
sim latecomer 300 -- -n 4 --hosts 4 --fault loss=2% --seed 3 && one_ledger
ok 'the example that joins, on four virtual hosts' $?
exit "$failed"
