#!/usr/bin/env bash
# What a stranger costs two ranks on two hosts whom he sends datagrams to, from a third: nothing is delivered and nothing
# stalls. How many messages a second they exchange meanwhile, beside what they do while he sends as many to a bystander on
# the same host, is printed and judged by nobody: test_flooded.sh [DATAGRAMS A MS [SECONDS]].
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
# shellcheck disable=SC2016 # words of awk
. "$(dirname "$0")/hosts.sh"
per_ms=${1:-30} seconds=${2:-4}
flooded=$build/tests/multi-fm_flooded
hosts_up 3
on_hosts=(timeout -k 5 100 "$runnel" run --timeout 80 -n 2 --launcher netns --hosts "$name-1,$name-2")
"${on_hosts[@]}" "$flooded" stream $((seconds + 2)) >said 2>&1 </dev/null &
job=$!
for ((i = 0; i < 1200; i++)); do
    ip netns pids "$name-2" | while read -r p; do cat "/proc/$p/comm" 2>/dev/null; done | grep -q multi-fm_flood && break
    sleep 0.05
done
sleep 0.5
# The agent's and the rank's.
mapfile -t ports < <(ip netns exec "$name-2" awk 'FNR > 1 { split($2, a, ":"); print a[2] }' /proc/net/udp /proc/net/udp6 |
    sort -u | while read -r port; do echo $((16#$port)); done)
ip netns exec "$name-2" "$flooded" sink 4999 "$seconds" >bystander 2>&1 &
sink=$!
ip netns exec "$name-3" "$flooded" flood "$per_ms" "$seconds" 4999 10.77.0.2 "${ports[@]}" >stranger 2>&1
wait $sink
wait $job
status=$?
cat bystander stranger >>said
sed 's/^/# /' said
[ $status = 0 ] && [ "$(grep -c ': [1-9][0-9]* messages a second' said)" = 3 ] &&
    grep -qE '^the stranger sent [1-9][0-9]* to the bystander, [1-9][0-9]* to the ranks' said && ! left_over
ok 'a stranger who floods stalls nobody, and is delivered to nobody' $?
exit "$failed"
