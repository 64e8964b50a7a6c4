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
    run --transport $transport -n 3 "$ranks" astray && [ "$(sort said | paste -sd ' ')" = \
        'astray: rank 0 agrees on 2 astray: rank 1 agrees on 1 astray: rank 2 agrees on 2' ]
    ok "a member that gives another set, $transport" $?
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
    sim group time 5 0 -- -n "$1" --hosts "$1" --fault delay=5us..5us
    sed -n 's/^time: .* members, \([0-9]*\)\.\([0-9]\) us .*/\1\2/p' said
}
few=$(time_of 16) many=$(time_of 64) most=$(limit=$((limit * 4)) && time_of 256)
once=$((${many:-0} - ${few:-0})) twice=$((${most:-0} - ${many:-0}))
[ "$once" -gt 0 ] && [ $((twice * 10)) -le $((once * 12)) ] && [ $((twice * 10)) -ge $((once * 8)) ]
ok "four times the hosts add the same time to a message, from 16 to 64 to 256 ($few, $many, $most tenths of a us)" $?
# 40 messages of 1 KiB, with their heads, from the last host to the sequencer's and from there once to each of the others:
# that is the least.
sim group time 20 0 -- -n 32 --hosts 4 --trace trace
crossed=$("$runnel" sim decode trace | awk '$2 == "sent" { split($3, from, ":"); split($5, to, ":"); if (from[1] != to[1]) n += $6 } END { print n + 0 }')
least=$((40 * 4 * (1024 + 24)))
[ "$crossed" -ge $least ] && [ "$crossed" -le $((least * 2)) ]
ok "a message crosses the network once for each host: 40 to eight members on each of four hosts are $crossed bytes, at least $least" $?
# Half of a share of 64 KiB holds 124 messages of 264 bytes, and one more is on its way.
pace_of() { # US
    sim group pace 1000 "$1" -- -n 4 --hosts 4 --fault delay=5us..5us
    sed -n 's/^pace: \([0-9]*\) ahead, back after \([0-9]*\) us, then \([0-9]*\)\.\([0-9]\) us each$/\1 \2 \3\4/p' said
}
read -r ahead quick _ <<<"$(pace_of 0)"
for us in 100 400; do
    read -r slow_ahead slow_quick each <<<"$(pace_of $us)"
    [ "${slow_ahead:-0}" = 125 ] && [ "$ahead" = 125 ] && [ "$slow_quick" -le $((quick * 11 / 10)) ] &&
        [ "$each" -ge $((us * 10)) ] && [ "$each" -le $((us * 11)) ]
    ok "one that takes $us us a message costs the others nothing for $slow_ahead messages ($quick, $slow_quick us), then each takes $each tenths of a us" $?
done
for seed in 1 2 3; do # the sequencer's host falls silent: a silence time is 200 ms
    echo 'at 300ms off 0' >off
    sim group gap 200 0 -- -n 4 --hosts 4 --keep-going --scenario off --seed $seed
    [ "$(grep -cE '^gap: [0-9]+ us, 3 members, sequencer 1$' said)" = 3 ] && [ "$(sed -n 's/^gap: \([0-9]*\) .*/\1/p' said | sort -n | tail -n 1)" -le 600000 ]
    ok "the sequencer falls silent: at most 3 silence times without a delivery, seed $seed" $?
done
sim replica 100 -- -n 6 --hosts 3 --fault loss=2% --seed 3 && [ "$(grep '^rank' said | cut -d' ' -f4 | sort -u | wc -l)" = 1 ]
ok 'the example, on three virtual hosts' $?
sim latecomer 300 -- -n 4 --hosts 4 --fault loss=2% --seed 3 && one_ledger
ok 'the example that joins, on four virtual hosts' $?
exit "$failed"
