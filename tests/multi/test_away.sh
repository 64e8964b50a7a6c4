#!/usr/bin/env bash
# What takes its time on several hosts: a rank that calls nothing for longer than a silence may last is answered for by
# its agent, one that is stopped is dead in a bounded time; a link that is down for 5 s costs those 5 s; a network
# namespace that loses its interface is a host that is gone. About a minute, of sleep.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "$0")/hosts.sh"
hosts_up 3
two=$name-1,$name-2

away() { # FILE arguments of runnel run...
    local file=$1
    shift
    timeout -k 5 150 "$runnel" run --timeout 140 --keep-going -n 3 "$@" "$build/tests/multi-fm_away" 50 >"$file" 2>&1 </dev/null
    echo "status $?" >>"$file"
}
away away.udp --transport udp &
udp=$!
away away.hosts --launcher netns --hosts "$name-1,$name-2,$name-3" &
apart=$!

# A link that is down for 5 s, under traffic.
list=$two on_hosts -n 2 "$build/tests/multi-fm_alltoall" 3 3000 >said 2>&1 </dev/null &
job=$!
sleep 1
ip -n "$name-2" link set eth0 down
sleep 5
ip -n "$name-2" link set eth0 up
ip -n "$name-2" addr add fd77::2/64 dev eth0 nodad 2>/dev/null # the kernel forgets it
wait $job
ok 'a link that is down for 5 s and comes back' $?

wait $udp $apart
cp away.udp said
grep -q '^dead 2' said && grep -q '^status 137' said && ! grep -q 'rank 1' said
ok 'on one host: who computes lives, who is stopped is dead' $?
cp away.hosts said
grep -q '^dead 2' said && grep -q '^status 137' said && ! grep -q 'rank 1' said && ! left_over
ok 'on three hosts: who computes lives, who is stopped is dead' $?

# A host whose network is gone for good, while its agent lives: whoever waits for it is told that it is dead. It is a
# member of the job, which ends together, until its process ends.
timeout -k 5 100 "$runnel" run --timeout 90 --keep-going --launcher netns --hosts "$name-1,$name-2,$name-3" -n 3 \
    "$build/tests/multi-kill_rank" stuck 1 2 >said 2>&1 </dev/null &
job=$!
sleep 1
ip -n "$name-3" link del eth0
for ((i = 0; i < 800; i++)); do
    [ "$(grep -c '^dead [01] 2 ' said)" = 2 ] && break
    sleep 0.1
done
ip netns pids "$name-3" | while read -r p; do
    [ "$(cat "/proc/$p/comm")" = multi-kill_rank ] && kill -KILL "$p"
done
wait $job
[ "$(grep -c '^dead [01] 2 ' said)" = 2 ] && [ "$(grep -c '^done [01] ' said)" = 2 ] && ! left_over
ok 'a host whose network vanishes' $?
exit "$failed"
