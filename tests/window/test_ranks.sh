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

is_apart() { # windows and messages have held each other up in nothing
    grep -qx 'behind half a message: landed' said && grep -qx 'puts whose notifications wait: RNL_TIMED_OUT' said &&
        grep -qx '6001 notifications, 1 long message' said
}
list=$name-1:1,$name-2:1 on_hosts -n 2 "$build/tests/multi-window_apart" >said 2>&1 </dev/null && is_apart
status=$?
ok 'half a message to a rank of another host holds up no put, nor do puts hold up messages' $status
grep -qx 'of its own user: RNL_ERR_REFUSED' said
ok 'a rank of another host is of no user that an offer could name' $?

timeout 100 "$runnel" sim -n 5 "$virtual" -c >said 2>&1 && is 5
ok 'ranks of the virtual cluster carry puts' $?
timeout 100 "$runnel" sim -n 6 --hosts 3 --loss 2% --seed 5 "$virtual" -c >said 2>&1 && is 6 && mv said first &&
    timeout 100 "$runnel" sim -n 6 --hosts 3 --loss 2% --seed 5 "$virtual" -c >said 2>&1 && cmp first said
ok 'on several virtual hosts with losses, the same each time' $?

worse=0 late=0
for count in 1 2; do
    for seed in 1 2 3 4; do
        timeout 60 "$runnel" sim -n 2 --hosts "$count" --loss 5% --seed $seed "$build/tests/vproc-window_apart.so" >said 2>&1 && is_apart || worse=1
        seconds=$(sed -n 's/^runnel: \(.*\) s, .*/\1/p' said) # 0.3 of them waits a quiet in vain
        awk -v s="$seconds" 'BEGIN { exit !(s > 0.3 && s < 0.34) }' || late=1
    done
done
ok 'nor on the virtual cluster, on one host and on two, with losses' $worse
ok 'who sleeps sends again in time what was lost of windows' $late

worse=0
for step in $(seq 20 37 760); do # who imports from it is told; who waits for its puts does so until the time is up
    echo "at 0ms crash 1 step $step" >step
    timeout 20 "$runnel" sim -n 4 --hosts 2 --keep-going --timeout 1 --scenario step --seed "$step" "$virtual" >said 2>&1
    [ $? = 1 ] && grep -q '^import: .* is gone' said && ! grep -q '^not so' said || worse=1
done
ok 'a rank that is killed at any step takes its windows with it, and disturbs no other' $worse

exit "$failed"
