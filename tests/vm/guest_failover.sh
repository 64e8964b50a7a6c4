#!/bin/sh
# shellcheck disable=SC2119 # functions of tests/vm/init
# A job by cards, from machine a, to whose cards things happen meanwhile, until both are pulled.
host || exit 1
network
await_other || exit 1
offer_cards
on_both -n 2 --transport i8255x "$BUILD/tests/multi-fm_beat" 100 20 /tmp/enough 2>&1 &
job=$!
while kill -0 $job && grep -qx 0x1209 /sys/bus/pci/devices/*/device; do sleep 0.1; done 2>/dev/null
sleep 1
on_both -n 2 touch /tmp/enough
wait $job
ok "each message arrives once, in order, whatever becomes of cards" $?
end_other
