#!/usr/bin/env bash
# Striping between hosts with two links each, whose rate the kernel limits: long messages go by both at once if
# RNL_STRIPE is set, and come once and in order whatever happens to a link. Hosts are network namespaces.
# shellcheck disable=SC1091,SC2154,SC2034 # hosts.sh sets, and uses, them
. "$(dirname "$0")/hosts.sh"
needs_commands tc
program=$build/tests/multi-stripe
needs_files "$program"

a=$name-1 b=$name-2
hosts=("$a" "$b")
list=$a,$b
ip netns add "$a"
ip netns add "$b"
for k in 0 1; do
    ip -n "$a" link add "eth$k" type veth peer name "eth$k" netns "$b"
    ip -n "$a" addr add "10.78.$k.1/24" dev "eth$k"
    ip -n "$b" addr add "10.78.$k.2/24" dev "eth$k"
done
for h in "$a" "$b"; do for l in lo eth0 eth1; do ip -n "$h" link set "$l" up; done; done

limit() { # LINK RATE: both directions
    local h
    for h in "$a" "$b"; do tc -n "$h" qdisc replace dev "$1" root tbf rate "$2" burst 256kb latency 50ms; done
}
if ! limit eth0 20mbit 2>said; then
    echo "the kernel limits no rates here: $(head -n 1 said)"
    exit 77
fi
limit eth1 20mbit
sent_by() { ip netns exec "$a" cat "/sys/class/net/$1/statistics/tx_bytes"; } # LINK
# play STRIPE KILOBYTES WHO: sets `took`, and `second`, the share of the first host's bytes that went by the second link.
play() {
    local zero=0 one=0
    zero=$(sent_by eth0) one=$(sent_by eth1)
    RNL_STRIPE=$1 on_hosts -n 2 "${wrapper[@]}" "$program" "$2" "$3" >said 2>err || return
    zero=$(($(sent_by eth0) - zero)) one=$(($(sent_by eth1) - one))
    took=$(sed -n 's/^rank .*: right, \([0-9]*\) us.*/\1/p' said | sort -n | tail -1)
    second=$((100 * one / (zero + one)))
    [ -n "$took" ] && echo "# RNL_STRIPE=$1, $2 kB from $3: $took us, $second % by the second link; $(grep -o 'at most.*' said | tr '\n' ' ')"
}

wrapper=()
play 0 6000 0 && alone=$took && [ "$second" -lt 5 ]
ok "without RNL_STRIPE one link has all of it" $?
cat >asked <<END
"\$@" &
pid=\$!
sleep 1
"$runnel" info --pid \$pid >$dir/info-\$RUNNEL_RANK
wait \$pid
END
wrapper=(sh "$dir/asked")
play 1 6000 0 && [ "$second" -gt 35 ] && [ "$second" -lt 65 ]
ok "with it two equal links have about the same" $?
echo "# two links take $((100 * alone / took)) % of what one takes"
grep '^  path to' "$dir"/info-* | sed 's/^/# /'
for k in 0 1; do
    grep -hE "^  path to rank 1 by 10.78.$k.2: (leads|helps), [1-9][0-9]* kB/s, [1-9][0-9]* bytes in [1-9][0-9]* packets, [0-9]+ lost" "$dir"/info-* >path
    ok "runnel info tells of the path by link $k" $?
done
wrapper=()
play 1 6000 both && [ "$second" -gt 30 ]
ok "both directions at once use both" $?
limit eth1 2mbit
play 1 6000 0 && [ "$second" -lt 35 ]
ok "a link of a tenth of the rate gets the less" $?
limit eth1 20mbit

for dies in "$a eth0" "$b eth1"; do
    (sleep 0.8 && ip -n "${dies% *}" link set "${dies#* }" down) &
    play 1 8000 both
    ok "${dies#* } dies in the middle of a stream: each message comes once, in order" $?
    wait $!
    ip -n "${dies% *}" link set "${dies#* }" up
done
# Where the kernel can delay packets, the second link is 2 ms longer.
if for h in "$a" "$b"; do tc -n "$h" qdisc replace dev eth1 root netem rate 20mbit delay 1ms; done 2>err; then
    play 1 6000 0
    ok "a second link that is 2 ms longer: each message comes once, in order" $?
    echo "# the shorter one alone took $alone us"
fi
! left_over
ok "nothing is left over" $?
exit "$failed"
