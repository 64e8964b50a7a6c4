#!/usr/bin/env bash
# Agents that start agents: jobs on five hosts, which are network namespaces, two or one of them reached by each process.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "$0")/hosts.sh"
hosts_up 5
h() { echo "$name-$1"; }
agent_of() { # HOST: the process of its agent
    ip netns pids "$1" | while read -r p; do
        tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | grep -q 'runnel agent $' && echo "$p" && break
    done
}
parent_of() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f2; }
told() { # TEXT N: until it is in so many lines
    local i
    for ((i = 0; i < 1200; i++)); do
        [ "$(grep -c "$1" said)" -ge "$2" ] && return 0
        sleep 0.05
    done
    return 1
}
started() { told ready "$1"; } # N: so many ranks

# ---- as without a tree ----

"$runnel" run --launcher netns --hosts "$list" --fan-out 2 -n 5 sh -c 'echo ready; exec sleep 60' >said 2>&1 </dev/null &
job=$!
started 5
# 1 to 3 and 4 to 5 are the branches; 2, 3 and 5 are started by the first of their branch
shape=
for k in 1 2 3 4 5; do
    parent=$(parent_of "$(agent_of "$(h $k)")")
    for p in 1 4; do
        [ "$parent" = "$(agent_of "$(h $p)")" ] && shape+="$p<$k "
    done
done
kill -TERM $job
wait $job
status=$?
echo "shape $shape, status $status" >>said
[ "$shape" = '1<2 1<3 4<5 ' ] && [ $status = 143 ] && ! left_over
ok 'two are started from here, which start the others; SIGTERM reaches all' $?

head -c 1000000 /dev/urandom | base64 >long
on_hosts --fan-out 1 -n 5 cat <long >out 2>said && cmp long out >said 2>&1
ok 'rank 0 reads all of the input, through a chain all output arrives' $?

# shellcheck disable=SC2016 # the ranks' shell is to see it
on_hosts --fan-out 1 -n 5 sh -c 'for i in $(seq 2000); do echo 0123456789012345678901234567890123456789 $i; done' \
    2>said </dev/null | (sleep 0.3 && cat) >out
[ "$(wc -l <out)" = 10000 ] && ! grep -vxE '[0-9]{40} [0-9]+' out >said
ok '... in whole lines, with a slow reader' $?

on_hosts --fan-out 2 -n 10 "$build/tests/multi-fm_alltoall" 1 3 >said 2>&1 </dev/null
ok 'all to all of 10' $?

# shellcheck disable=SC2016 # the ranks' shell is to see it
on_hosts --fan-out 1 -n 5 sh -c 'ip -o -4 addr show eth0 | grep -q "10[.]77[.]0[.]5" && exit 7; exec sleep 30' \
    >said 2>&1 </dev/null
[ $? = 7 ] && grep -q "^runnel: rank 4 on $(h 5) exited with status 7" said && ! left_over
ok 'the exit status of a rank at the end of a chain' $?

on_hosts --fan-out 1 -n 5 ./none >said 2>&1 </dev/null
[ $? = 127 ] && [ "$(grep -c "^runnel: host $name-[1-5]: there is no program './none'" said)" = 1 ] && ! left_over
ok 'a program that is not there: once, with a host' $?

list=$(h 1),$(h 2),$name-9 on_hosts --fan-out 1 -n 3 true >said 2>&1 </dev/null
[ $? = 71 ] && grep -q "host $name-9: there is no network namespace .*(seen from host $(h 2))" said && ! left_over
ok 'a host that cannot be reached: from where' $?

# ---- agents that die ----

# cut FAN VICTIM LOST OVER: the agent of that host is killed; so many ranks are with it, so many go on
cut() {
    rm -f go
    : >said
    on_hosts --keep-going --fan-out "$1" -n 5 sh -c 'echo ready; while [ ! -e go ]; do sleep 0.05; done; echo over' >said 2>&1 </dev/null &
    job=$!
    started 5
    kill -KILL "$(agent_of "$(h "$2")")"
    told 'is lost' "$3" # the others are still there then
    touch go
    wait $job
    status=$?
    grep -q "host $(h "$2"), with rank.*, is lost: its agent was killed by signal 9" said && [ $status = 71 ] &&
        [ "$(grep -c 'is lost' said)" = "$3" ] && [ "$(grep -c over said)" = "$4" ] && ! left_over
}
cut 2 1 3 2
ok 'an agent with others behind it is killed: their ranks are, too, the others go on' $?
cut 1 3 3 2
ok '... in a chain' $?
cut 2 5 1 4
ok 'an agent behind another is killed: its ranks are, the others go on' $?

# The others' messages do not go through agents.
on_hosts --keep-going --fan-out 2 -n 5 "$build/tests/multi-fm_beat" 100 20 >said 2>&1 </dev/null &
job=$!
for ((i = 0; i < 1200; i++)); do
    [ "$(for k in 1 2 3 4 5; do ip netns pids "$(h $k)"; done | while read -r p; do
        cat "/proc/$p/comm" 2>/dev/null
    done | grep -c multi-fm_beat)" = 5 ] && break
    sleep 0.05
done
sleep 0.5
kill -KILL "$(agent_of "$(h 4)")"
wait $job
status=$?
[ $status = 71 ] && [ "$(grep -cE '^beat [012] gap [0-9]+ dead 3 dead 4$' said)" = 3 ] && ! left_over
ok '... and who exchanges messages is told of the dead and loses none of the others' $?

"$runnel" run --launcher netns --fan-out 1 --hosts "$list" -n 5 sh -c 'echo ready; exec sleep 60' >said 2>&1 </dev/null &
job=$!
started 5
kill -KILL $job
wait $job 2>/dev/null
! left_over
ok 'the launcher is killed: nothing is left at the end of a chain' $?
exit "$failed"
