#!/usr/bin/env bash
# Cards of Intel's 8255x, driven by processes of machines that QEMU emulates: test_cards.sh conform|machines|kill
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
shown='a.log b.log err out'
export RUNNEL_BUILD=$build VM_DIR=$dir VM_SECONDS=150
"$tree/scripts/vm" ready || exit 77
case $1 in
conform)
    "$tree/scripts/vm" one "$tree/tests/vm/guest_conform.sh" >"$dir/out" 2>&1
    ok "datagrams over cards keep the contract, bare and inside faults" $?
    ;;
machines)
    VM_ENV="QUESTIONS=3000" "$tree/scripts/vm" pair "$tree/tests/vm/guest_ask.sh" "$tree/tests/vm/guest_answer.sh" >"$dir/out" 2>&1
    ok "two machines talk over cards that processes without privileges drive" $?
    check "no frame came damaged" grep -q '3000 answers, 0 wrong' "$dir/out"
    grep -h 'answers' "$dir/out"
    ;;
kill)
    "$tree/scripts/vm" one "$tree/tests/vm/guest_kill.sh" >"$dir/out" 2>&1
    ok "the machine went through" $?
    tr -d '\r' <"$dir/out" | grep -E '^(not )?ok - '
    [ "$(tr -d '\r' <"$dir/out" | grep -c '^ok - ')" = 3 ]
    ok "a card survives who drove it" $?
    ;;
esac
exit "$failed"
