#!/bin/sh
# shellcheck disable=SC2119 # functions of tests/vm/init
# Two jobs by cards, from machine a, while strangers write to the wire.
host || exit 1
network
await_other || exit 1
offer_cards
# The sum over both ranks of the number behind a word of their last lines.
sum() { sed -n "s/^beat .* $1 \([0-9]*\).*/\1/p" /tmp/said | awk '{n += $1} END {print n + 0}'; }
beat() { on_both -n 2 --transport i8255x "$BUILD/tests/multi-fm_beat" 200 20 >/tmp/said 2>&1; }

beat
ok "each message arrives once and whole while frames of strangers come" $?
sed 's/^/# /' /tmp/said
[ "$(sum refused)" -gt 50 ] && [ "$(sum again)" -gt 20 ]
ok "most of them are refused as frames, those sent once more are known" $?
[ "$(sum forged)" = 0 ]
ok "no damaged frame, and none for another port, is opened" $?
echo "forge now"
sleep 1
beat
ok "each message arrives once and whole while datagrams are forged" $?
sed 's/^/# /' /tmp/said
[ "$(sum forged)" -gt 50 ]
ok "forged datagrams are counted as such" $?
end_other
