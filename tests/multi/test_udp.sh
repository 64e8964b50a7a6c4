#!/usr/bin/env bash
# runnel run --transport udp: programs unchanged, with datagrams between all of their processes. Prints "ok - name" or
# "not ok - name". Finds the build in $RUNNEL_BUILD and the command in $RUNNEL; exits 77 if something is missing.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
needs_commands perl sort cmp
cd "$dir" || exit 1

udp() { # ranks program...
    local ranks=$1
    shift
    timeout -k 5 100 "$runnel" run --timeout 80 --transport udp -n "$ranks" "$@" </dev/null
}
run() { # NAME RANKS PROGRAM ARGUMENT...
    local name=$1 ranks=$2 program=$3
    shift 3
    udp "$ranks" "$build/tests/multi-$program" "$@" >said 2>&1
    ok "$name" $?
}
datagrams() { # that this namespace has taken in
    awk '$1 == "Udp:" && $2 != "InDatagrams" { print $2; exit }' /proc/net/snmp
}

before=$(datagrams)
run 'all to all of three' 3 fm_alltoall 1 20
went=$(($(datagrams) - before))
echo "# $went datagrams" >said
[ $went -ge 60 ]
ok 'by datagrams' $?
run 'half a message is answered while others flow' 3 fm_semantics half
run 'who does not extract blocks its senders and loses nothing' 3 fm_semantics stall
run 'FM 1.1, mixed traffic' 3 fm1_traffic

# What befalls packets can be asked for, and programs end as without it.
RNL_FAULT=loss=5%,dup=2%,reorder=5%:1ms,corrupt=1% udp 3 "$build/examples/table" 3000 >said 2>&1 &&
    [ "$(grep -c ' 3000 stored, 3000 found, 0 missing, 0 lost$' said)" = 3 ]
ok 'a live job with faults on the way' $?
RNL_FAULT=delay=20ms udp 2 "$build/examples/pingpong" 5 >said 2>&1 && awk '{ for (i = 1; i <= NF; i++) if ($i + 0 >= 20000) found = 1 } END { exit !found }' said
ok 'the faults are there: a trip takes as long as they say' $?
! RNL_FAULT=lost=5% udp 2 "$build/examples/pingpong" 5 >said 2>&1 &&
    grep -q "RNL_FAULT: faults: there is no 'lost'; there are: loss" said
ok 'a fault that there is not is named' $?
! RNL_FAULT=loss=5% timeout 60 "$runnel" run -n 2 "$build/examples/pingpong" 5 >said 2>&1 &&
    grep -q "RNL_FAULT is 'loss=5%', and there are no packets .*--transport udp" said
ok 'where no packets are, none can be lost' $?

udp 3 "$build/tests/multi-near" >said 2>&1 && grep -qx '2 by datagrams, 2 of them under one kernel' said
ok 'all run under one kernel' $?

# What the kernel lacks is done without, also between processes of which only some lack it.
if "$build/tests/multi-without_syscall" segment true 2>said; then
    for lack in segment merge segment,merge,ecn,errors,probe,reuse ipv6 io_uring membarrier; do
        udp 3 "$build/tests/multi-without_syscall" "$lack" "$build/tests/multi-fm_alltoall" 1 20 >said 2>&1
        ok "a kernel without $lack" $?
    done
    # shellcheck disable=SC2016 # the ranks' shell is to see it
    udp 3 sh -c 'if [ "$RUNNEL_RANK" = 1 ]; then exec "$0/multi-without_syscall" segment,merge,reuse "$0/multi-fm_alltoall" 1 20; fi
        exec "$0/multi-fm_alltoall" 1 20' "$build/tests" >said 2>&1
    ok 'one rank whose kernel lacks most' $?
else
    echo "ok - a kernel that lacks something # SKIP $(cat said)"
fi

if [ -x "$build/examples/sort" ]; then
    perl -e 'srand 7; print int(rand 1e9), "\n" for 1 .. 20000' >numbers
    LC_ALL=C sort numbers >expected
    udp 3 "$build/examples/sort" numbers -o sorted >said 2>&1 && [ ! -s said ] && cmp sorted expected >said 2>&1
    ok 'sorts' $?
fi
# The others are told of a death by the launcher: they need not wait until they miss an answer.
timeout 60 "$runnel" run --timeout 40 --transport udp --keep-going -n 3 "$build/tests/multi-kill_rank" wait 1 2 \
    >said 2>&1 </dev/null &
job=$!
for ((i = 0; i < 500; i++)); do # the process of the last rank sleeps in FM_wait once it has joined
    launcher=$(pgrep -P "$(pgrep -P $job -x runnel || echo 0)" -x runnel-agent)
    victim=
    for pid in $(pgrep -P "${launcher:-0}" -x multi-kill_rank); do
        if tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qx RUNNEL_RANK=2; then victim=$pid; fi
    done
    [ -n "$victim" ] && [ "$(pgrep -P "${launcher:-0}" -x multi-kill_rank | wc -l)" = 3 ] && break
    sleep 0.05
done
sleep 0.7
kill -KILL "$victim"
wait $job
status=$?
[ $status = 137 ] && [ "$(grep -c '^dead [01] 2 ' said)" = 2 ] && [ "$(grep -c '^done [01] ' said)" = 2 ]
ok 'who was killed is dead for the others, and they go on' $?
exit "$failed"
