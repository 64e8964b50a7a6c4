#!/usr/bin/env bash
# What Panda promises between processes (ranks.c), on one host and over datagrams. Prints "ok - name" or "not ok - name". Finds the
# build in $RUNNEL_BUILD and the command in $RUNNEL.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
cd "$dir" || exit 1
ranks=$build/tests/panda-ranks
limit=60
if grep -qE '__(asan|tsan)_init' "$ranks"; then
    limit=240
fi
run() { # ARGUMENT...
    timeout -k 5 $((limit + 20)) "$runnel" run --timeout $limit "$@" >said 2>&1 </dev/null
}
right() { # MODE RANKS: so many ranks say that they are right
    [ "$(grep -c "^$1: rank [0-9]* is right$" said)" = "$2" ]
}

for transport in auto udp; do
    for n in 2 3; do
        run --transport $transport -n $n "$ranks" rpc && right rpc $n
        ok "calls and replies, $n ranks, $transport" $?
        run --transport $transport -n $n "$ranks" threads && right threads $n
        ok "threads, $n ranks, $transport" $?
    done
    run --transport $transport -n 4 "$ranks" group && right group 4 && [ "$(grep agrees said | sort -u -k6 | wc -l)" = 1 ]
    ok "one order of messages to two ports, $transport" $?
    run --transport $transport --keep-going -n 3 "$ranks" death
    right death 2
    ok "callers of a rank that dies are told, $transport" $?
    run --transport $transport -n 3 "$ranks" hostile && right hostile 3
    ok "replies that nobody asked for are dropped, $transport" $?
    run --transport $transport -n 3 "$ranks" mute && right mute 3
    ok "callers of a process without a handler of requests are told, $transport" $?
    run --transport $transport -n 2 "$build/examples/bank" && grep -q '^the account holds 300 at rank 1$' said
    ok "the example, $transport" $?
done
run -n 1 "$ranks" alone && right alone 1
ok 'what is refused' $?
exit "$failed"
