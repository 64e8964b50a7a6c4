#!/usr/bin/env bash
# A rank is killed (SIGKILL) while others ask it: killed.c says what has to be so. Over shared memory and over datagrams,
# at different moments.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
limit=60 back=0

killed() { # MICROSECONDS LAUNCHER...: three survive
    local us=$1 status=0
    shift
    : >"$dir/handled"
    timeout -k 5 "$limit" "$runnel" run --keep-going "$@" -n 4 "$build/tests/am-killed" "$dir/handled" "$us" \
        >"$dir/out" 2>"$dir/err" </dev/null || status=$?
    back=$((back + $(sed -nE 's/.* ([0-9]+) back.*/\1+/p' "$dir/out" | tr -d '\n')0))
    [ "$status" = 137 ] && [ "$(grep -c ': right, ' "$dir/out")" = 3 ] && return 0
    echo "# status $status, killed after $us us"
    sed 's/^/# /' "$dir/out" "$dir/err" | cut -c1-300 | head -n 10
    return 1
}
for how in '' '--transport udp'; do
    worse=0
    for us in 0 100 3000 20000; do
        # shellcheck disable=SC2086 # two words, or none
        killed "$us" $how || worse=1
    done
    tail -n 3 "$dir/out" | sed 's/^/# /'
    ok "each request to a killed rank was handled, or came back${how:+ ($how)}" $worse
done
echo "# $back came back, 2,400 of them sent to one that was known to be dead"
exit "$failed"
