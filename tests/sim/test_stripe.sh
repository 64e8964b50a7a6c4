#!/usr/bin/env bash
# Striping: two hosts with two cards each, whose wires have a rate. Long messages go by both at once if RNL_STRIPE is set,
# never slower than by the better one alone; and whatever happens to a wire, each message comes once, in order. Virtual
# time: the same on every machine.
# shellcheck source=tests/sim/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
program=$vprocs/vproc-stripe.so
needs "$program"

cat >wires <<'END'
addresses 2
switches 2
link 0 s0 0
link 1 s0 0
link 0 s1 1
link 1 s1 1
rate all 500Mb/s
delay all 10us
buffer all 256kB
algorithm all newreno
END
play() { # RNL_STRIPE, who sends, lines of the scenario: sets `took`, microseconds, and `gap`, the longest without a message
    { cat wires && printf '%s\n' "${@:3}"; } >scenario
    RNL_STRIPE=$1 timeout 100 "$runnel" sim -n 2 --hosts 2 --scenario scenario "$program" 12000 "$2" >said 2>&1 || {
        sed 's/^/# /' said
        took=1000000000 gap=1000000000
        return 1
    }
    took=$(sed -n 's/^rank .*: right, \([0-9]*\) us.*/\1/p' said | sort -n | tail -1)
    gap=$(sed -n 's/^rank .* at most \([0-9]*\) us .*/\1/p' said | sort -n | tail -1)
}
# at_least TIMES WHAT FROM LINES...: both wires together are so many times as quick as $alone, in tenths
at_least() {
    local tenths=$1 what=$2
    play 1 "${@:3}" && echo "# $what: alone $alone us, striped $took us" && [ $((10 * alone)) -ge $((tenths * took)) ]
    ok "$what" $?
}

play 0 0 && alone=$took better=$took
ok "by one wire" $?
at_least 17 "two wires take 1.7 times as much as one" 0
play 0 1 && alone=$took
at_least 17 "... also from the rank that does not choose the paths" 1
play 0 both && alone=$took
at_least 17 "... and in both directions at once" both
play 0 0 'rate all 200Mb/s' 'algorithm all dlf' && alone=$took
at_least 17 "... with the algorithm of congestion that is in use" 0 'rate all 200Mb/s' 'algorithm all dlf'
alone=$better
at_least 10 "a second wire that is 2 ms longer makes nothing slower" 0 'delay s1 1ms'
at_least 10 "nor does a first wire that is" 0 'delay s0 1ms'
at_least 10 "... from the other side" 1 'delay s0 1ms'
at_least 10 "nor a second wire of a tenth of the rate" 0 'rate s1 50Mb/s'
at_least 10 "nor one that loses packets" 0 'fault s1 loss=5%'
at_least 10 "nor a first wire that does" 0 'fault s0 loss=5%'

for wire in s0 s1; do
    for from in 0 1 both; do
        play 1 $from "at 50ms down $wire" && [ "$gap" -lt 50000 ]
        ok "wire $wire dies while rank $from sends: nothing is lost, nothing comes twice, and the pause is short" $?
        echo "# $gap us without a message"
    done
done
play 1 0 'at 50ms down s1' && dead=$took && play 1 0 'at 50ms down s1' 'at 80ms up s1' && [ "$took" -lt $((dead * 9 / 10)) ]
ok "a wire that works again is used again" $?
play 1 both 'fault all loss=2%,dup=1%,delay=1us..2ms' 'at 40ms down s0' 'at 80ms up s0' 'at 120ms down s1'
ok "packets are lost, come twice and overtake each other on wires that come and go" $?

play 0 0 && cp said off && play "" 0 && cmp -s said off
ok "without RNL_STRIPE there is one flow" $?
! play yes 0 && grep -q "RNL_STRIPE is 'yes': set it to 1" said
ok "RNL_STRIPE is 0 or 1" $?
exit "$failed"
