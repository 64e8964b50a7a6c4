#!/bin/sh
# shellcheck disable=SC2119 # functions of tests/vm/init
# A job by cards, from machine a, to whose cards things happen meanwhile.
host || exit 1
network
await_other || exit 1
offer_cards
on_both -n 2 --transport i8255x "$BUILD/tests/multi-fm_beat" 700 20 / 2>&1
ok "each message arrives once, in order, whatever becomes of cards" $?
end_other
