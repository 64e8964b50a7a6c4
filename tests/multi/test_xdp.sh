#!/usr/bin/env bash
# Jobs whose datagrams go by AF_XDP, as `runnel run --transport xdp` makes them: hosts are network namespaces.
# shellcheck disable=SC1091,SC2154,SC2034 # hosts.sh sets, and uses, them
. "$(dirname "$0")/hosts.sh"
needs_files "$build/tests/multi-fm_alltoall" "$build/examples/sort" "$build/examples/pingpong"

# Datagrams that the kernel's UDP has delivered on the first host.
by_kernel() { ip netns exec "$name-1" sh -c 'cat /proc/net/snmp /proc/net/snmp6' | awk '/^Udp: [0-9]/ {n += $2} /^Udp6InDatagrams/ {n += $2} END {print n}'; }
# run_both RANKS PROGRAM...: $udp and $xdp are the datagrams that the kernel has delivered to it, one way and the other
run_both() {
    local first n=$1
    shift
    first=$(by_kernel)
    on_hosts -n "$n" "$@" >said 2>err || return
    udp=$(($(by_kernel) - first))
    first=$(by_kernel)
    on_hosts -n "$n" --transport xdp "$@" >said 2>err || return
    xdp=$(($(by_kernel) - first))
    echo "# the kernel delivered $udp datagrams, and $xdp beside the rings"
}

hosts_up 2
on_hosts -n 2 --transport xdp true 2>err
if grep -q 'does without AF_XDP' err; then
    head -n 1 err
    exit 77
fi
run_both 4 "$build/tests/multi-fm_alltoall"
ok "FM's messages arrive by AF_XDP between two hosts with two ranks each" $?
run_both 2 "$build/examples/pingpong" # one datagram at a time, which the kernel cannot merge
ok "messages go to and fro by AF_XDP" $?
check "most of their datagrams do not pass the kernel" test "$xdp" -lt $((udp / 2))
for ((i = 0; i < 20000; i++)); do echo "$((i * 7919 % 20011)) a line"; done >lines
LC_ALL=C sort lines >expected
run_both 4 "$build/examples/sort" "$dir/lines" -o "$dir/result" && cmp result expected
ok "sort sorts by AF_XDP" $?

# One job has the queue; another says that it does without, and works all the same.
cat >hold <<END
ip link show dev eth0 | grep -c xdp >$dir/attached
touch $dir/held
while [ ! -e $dir/enough ]; do sleep 0.05; done
END
on_hosts -n 2 --transport xdp sh hold 2>err &
job=$!
for ((i = 0; i < 1200; i++)); do [ -e held ] && break; sleep 0.05; done
check "a filter is attached while the job runs" test "$(cat attached)" != 0
on_hosts -n 4 --transport xdp "$build/tests/multi-fm_alltoall" >said 2>err
ok "a job goes on without AF_XDP where another has the queue" $?
check "and says why" grep -q 'does without AF_XDP.*in use' err
cat >asked <<END
"$build/tests/multi-fm_beat" 30 100 &
beat=\$!
sleep 1.5
"$runnel" info --pid \$beat >>$dir/info-text
"$runnel" info --json --pid \$beat >>$dir/info-json
wait \$beat
END
on_hosts -n 2 --transport xdp sh asked >said 2>err &&
    [ "$(grep -c '^  AF_XDP: all datagrams go by the kernel: .*in use' info-text)" = 2 ] &&
    [ "$(grep -c '"notes":\["AF_XDP: all datagrams go by the kernel: ' info-json)" = 2 ]
ok "as does runnel info while it runs, for each rank" $?
touch enough
wait $job
ip -n "$name-1" link show dev eth0 | grep -q xdp
ok "nothing stays attached behind it" $((! $?))
hosts_down

run_options='--transport xdp' "$tree/tests/multi/test_ways.sh" messages
ok "a job goes on when the interface of its rings is down, and when it is back" $?
exit "$failed"
