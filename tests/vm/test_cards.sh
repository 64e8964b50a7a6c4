#!/usr/bin/env bash
# Cards of Intel's 8255x, driven by processes of machines that QEMU emulates: test_cards.sh conform|machines|kill|jobs
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
shown='a.log b.log err out'
export RUNNEL_BUILD=$build VM_DIR=$dir VM_SECONDS=150
"$tree/scripts/vm" ready || exit 77
# cases N: a machine has told N cases, and all were good.
cases() {
    tr -d '\r' <"$dir/out" | sed -n 's/^\(a: \)\?\(\(not \)\?ok - .*\)/\2/p; s/^\(a: \)\?\(# .*\)/\2/p'
    [ "$(tr -d '\r' <"$dir/out" | grep -Ec '^(a: )?ok - ')" = "$1" ] && ! grep -q '^\(a: \)\?not ok' "$dir/out"
    ok "all $1 cases inside are good" $?
}
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
    cases 3
    ;;
jobs)
    "$tree/scripts/vm" pair "$tree/tests/vm/guest_jobs.sh" "$tree/tests/vm/guest_serve.sh" >"$dir/out" 2>&1
    ok "both machines went through" $?
    cases 7
    ;;
esac
exit "$failed"
