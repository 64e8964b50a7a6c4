#!/bin/sh
# shellcheck disable=SC2119 # functions of tests/vm/init
# Streams from machine a to machine b, whose two wires have a rate: by one, by both, by both when the second is longer, and
# when it is cut in the middle.
host || exit 1
network
await_other || exit 1
offer_cards
# The kernel's card is a path, too: it gets a twentieth of the rate of a wire.
load sch_tbf
inside tc qdisc add dev eth0 root tbf rate 80kbit burst 32kb latency 500ms
# shellcheck disable=SC2016 # that is for the shell of each rank
asks='"$@" & pid=$!; [ "$(hostname)" = b ] || { sleep 3; "$0" info --pid $pid | grep "path to"; }; wait $pid'
# play STRIPE KILOBYTES COMMAND...: the lines of the job in /tmp/said
play() {
    stripe=$1 kilobytes=$2
    shift 2
    RNL_STRIPE=$stripe on_both -n 2 --transport i8255x "$@" "$BUILD/tests/multi-stripe" "$kilobytes" 0 >/tmp/said 2>&1
    status=$?
    grep -v does.without /tmp/said | sed "s/^/# $stripe $kilobytes: /"
    [ $status = 0 ] && grep -q '^rank 1: right' /tmp/said
}
# The share of the bytes that went by the second wire, in per cent.
second() { sed -n 's/.* on wire \([12]\): .* \([0-9]*\) bytes in .*/\1 \2/p' /tmp/said | awk '{n[$1] = $2} END {print int(100 * n[2] / (n[1] + n[2] + 1))}'; }
play 0 1000
ok "a stream by one card" $?
play 1 2000 sh -c "$asks" "$BUILD/tools/runnel" && [ "$(second)" -gt 35 ] && [ "$(second)" -lt 65 ]
ok "two cards have about the same of it" $?
echo "longer now"
sleep 1
play 1 1000
ok "each message comes once and in order where a wire is 2 ms longer" $?
(sleep 5 && echo "cut now") &
play 1 2000
ok "each message comes once and in order when a wire is cut" $?
end_other
