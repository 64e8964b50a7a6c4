#!/usr/bin/env bash
# Hosts with two addresses each, of which one dies while a job runs, and then the other once the first is back: no
# message is lost or comes twice, and none comes back. Hosts are network namespaces, joined by two links.
# shellcheck disable=SC1091,SC2154,SC2034 # hosts.sh sets, and uses, them
. "$(dirname "$0")/hosts.sh"

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
for h in "$a" "$b"; do
    for l in lo eth0 eth1; do
        ip -n "$h" link set "$l" up
    done
done

until_beats() { # both ranks have heard each other, or the job has ended
    while [ "$(grep -c '^beats [01]$' said)" -lt 2 ]; do
        kill -0 "$job" 2>/dev/null || return 1
        sleep 0.05
    done
}
changes() { # ONE-SIDE-OF-THE-FIRST-LINK: after it was down it comes up again, and then the second goes down at the other
    local first=$a second=$b
    [ "$1" = b ] && first=$b second=$a
    until_beats || return
    sleep 0.7
    ip -n "$first" link set eth0 down
    sleep 1.3
    ip -n "$first" link set eth0 up
    sleep 0.3
    ip -n "$second" link set eth1 down
    sleep 1
    touch enough
}
repair() {
    local h
    for h in "$a" "$b"; do
        ip -n "$h" link set eth0 up
        ip -n "$h" link set eth1 up
    done
}
# survives NAME SIDE PROGRAM...: the job ends well; its lines say how long it stood still at most
survives() {
    local what=$1 side=$2 job status
    shift 2
    rm -f enough
    on_hosts -n 2 "$@" 100 2 "$dir/enough" >said 2>&1 </dev/null &
    job=$!
    changes "$side"
    wait "$job"
    status=$?
    repair
    [ "$status" = 0 ] && [ "$(grep -c '^beat [01] gap' said)" = 2 ] && ! left_over
    ok "$what" $?
    sed -nE 's/^beat .*/# &/p' said
}
survives 'a stream of messages goes on when a link dies, and the other one' a "$build/tests/multi-fm_beat"
survives 'requests and replies do, with a move to another bundle and new mappings' b "$build/tests/am-beat"
grep -qE '^beat [01] gap [0-9]+ at [0-9]+ moved [1-9]' said
ok 'packets went to other addresses' $?
exit "$failed"
