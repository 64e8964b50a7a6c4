#!/usr/bin/env bash
# Ranks that put into each other's windows, all to all: jobs on one host by shared memory and by datagrams, jobs on several hosts,
# which are network namespaces, and the virtual cluster.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "$0")/../multi/hosts.sh"
ranks=$build/tests/multi-window_ranks
virtual=$build/tests/vproc-window.so

is() { # ranks: what the job has said is that of so many
    grep -qx "$1 ranks, $(($1 * 12)) notifications" said
}

timeout 100 "$runnel" run -n 4 "$ranks" -d >said 2>&1 </dev/null && is 4
ok 'ranks of one host map windows of each other' $?
timeout 100 "$runnel" run --transport udp -n 3 "$ranks" -d >said 2>&1 </dev/null && is 3
ok 'so do those of one host that exchange datagrams' $?

hosts_up 2
list=$name-1:1,$name-2:1 on_hosts -n 2 "$ranks" -c >said 2>&1 </dev/null && is 2
ok 'puts are carried to ranks of other hosts' $?
list=$name-1:2,$name-2:2 on_hosts -n 4 "$ranks" >said 2>&1 </dev/null && is 4
ok 'both at once' $?
RNL_FAULT='loss=2%,dup=1%,reorder=2%:50us' list=$name-1:1,$name-2:1 on_hosts -x RNL_FAULT -n 2 "$ranks" -c >said 2>&1 </dev/null && is 2
ok 'packets that are lost and repeated change nothing' $?

list=$name-1:1,$name-2:1 on_hosts -n 2 "$build/tests/multi-window_apart" >said 2>&1 </dev/null
cat said
grep -qx 'behind half a message: landed' said && grep -qx 'puts whose notifications wait: RNL_TIMED_OUT' said &&
    grep -qx '6001 notifications, 1 long message' said
ok 'half a message to a rank of another host holds up no put, nor do puts hold up messages' $?

timeout 100 "$runnel" sim -n 5 "$virtual" -c >said 2>&1 && is 5
ok 'ranks of the virtual cluster carry puts' $?
timeout 100 "$runnel" sim -n 6 --hosts 3 --loss 2% --seed 5 "$virtual" -c >said 2>&1 && is 6 && mv said first &&
    timeout 100 "$runnel" sim -n 6 --hosts 3 --loss 2% --seed 5 "$virtual" -c >said 2>&1 && cmp first said
ok 'on several virtual hosts with losses, the same each time' $?

exit "$failed"
