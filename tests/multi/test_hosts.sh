#!/usr/bin/env bash
# Jobs on several hosts, which are network namespaces: everything as on one host, and nothing left behind.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "$0")/hosts.sh"
hosts_up 3
two=$name-1,$name-2

# ---- as on one host ----

on_hosts -n 6 --tag-output sh -c 'echo here' >out 2>said </dev/null && [ ! -s said ] &&
    [ "$(sort out | tr '\n' ' ')" = '[0] here [1] here [2] here [3] here [4] here [5] here ' ]
ok 'starts a program on every host' $?

list=$name-1:1,$name-2:3 on_hosts -n 4 --tag-output sh -c 'ip -o -4 addr show eth0 | grep -o "10[.]77[.]0[.][0-9]"' \
    >out 2>said </dev/null
[ "$(sort out | tr '\n' ' ')" = '[0] 10.77.0.1 [1] 10.77.0.2 [2] 10.77.0.2 [3] 10.77.0.2 ' ]
ok 'deals ranks in blocks, as many as a host has slots' $?

printf '# hosts\n%s slots=2\n\n%s:1\n' "$name-3" "$name-1" >file
timeout 60 "$runnel" run --launcher netns --hostfile file --tag-output \
    sh -c 'ip -o -4 addr show eth0 | grep -o "10[.]77[.]0[.][0-9]"' >out 2>said </dev/null
[ "$(sort out | tr '\n' ' ')" = '[0] 10.77.0.3 [1] 10.77.0.3 [2] 10.77.0.1 ' ]
ok 'reads hosts and slots from a file' $?

mkdir 'a folder' && cd 'a folder' || exit 1
# shellcheck disable=SC2016 # the ranks' shell is to see it
(cd . && list=$name-2 ODD=$'two\nlines' on_hosts -n 1 -x GIVEN=yes \
    sh -c 'printf "%s|" "$PWD" "$ODD" "$GIVEN" "$@"; echo' x 'a b' '' "it's" '$HOME' '*' >../out 2>../said </dev/null)
cd .. || exit 1
printf '%s|' "$dir/a folder" $'two\nlines' yes 'a b' '' "it's" "\$HOME" '*' >want
echo >>want
cmp want out >said 2>&1
ok 'folder, environment and arguments arrive as they are' $?

head -c 3000000 /dev/urandom | base64 >long
list=$two on_hosts -n 3 cat <long >out 2>said && cmp long out >said 2>&1
ok 'rank 0 reads all of the input, and all output arrives' $?

list=$two on_hosts -n 4 sh -c 'head -c 1 >/dev/null; exit 0' <long >said 2>&1
ok 'input that nobody wants does not stop the job' $?

# shellcheck disable=SC2016 # the ranks' shell is to see it
list=$two on_hosts -n 4 sh -c 'for i in $(seq 2000); do echo 0123456789012345678901234567890123456789 $i; done' \
    2>said </dev/null | (sleep 0.5 && cat) >out
[ "$(wc -l <out)" = 8000 ] && ! grep -vxE '[0-9]{40} [0-9]+' out >said
ok 'lines of different hosts are not mixed, with a slow reader' $?

list=$two on_hosts -n 4 sh -c 'while echo y; do :; done' 2>said </dev/null | head -n 1 >out
[ "$(cat out)" = y ] && ! left_over
ok 'ends when nobody reads the output' $?

list=$two on_hosts -n "$(nproc)" --bind core sh -c 'grep Cpus_allowed_list /proc/self/status' >out 2>said </dev/null
[ "$(sort -u out | wc -l)" = "$(nproc)" ]
ok '--bind core gives distinct cores to ranks of different hosts' $?

list=$two on_hosts -n 4 "$build/tests/multi-near" >said 2>&1 </dev/null && grep -qx '2 by datagrams, 2 of them under one kernel' said
ok 'namespaces are of one kernel' $?

# The rank of the second host forges what the first host's agent attests, with the key of the job, which it holds.
list=$two on_hosts -n 2 "$build/tests/multi-forge_alive" >said 2>&1 </dev/null
ok 'a rank that holds the key of the job cannot attest for another host' $?

on_hosts --fan-out 1 -n 3 "$build/tests/multi-fm_alltoall" 1 3 >said 2>&1 </dev/null
ok '--fan-out 1: agents are started one after the other' $?

# ---- ends ----

list=$two on_hosts -n 4 sh -c 'exit 7' >said 2>&1 </dev/null
[ $? = 7 ] && grep -qE "^runnel: rank [0-3] on $name-[12] exited with status 7; ending the job" said && ! left_over
ok 'the exit status of a rank on another host, with its host' $?

list=$two on_hosts -n 2 ./none >said 2>&1 </dev/null
[ $? = 127 ] && [ "$(grep -c "^runnel: host $name-[12]: there is no program './none'" said)" = 1 ] && ! left_over
ok 'a program that is not there: once, with the host' $?

# Both hosts have said it before either has said that it cannot go on: what an agent says ends late.
cat >late <<END
#!/bin/sh
"$runnel" "\$@" | exec python3 -c '
import os, time
while True:
    said = os.read(0, 65536)
    if not said:
        break
    os.write(1, said[:-12])
    time.sleep(0.3)
    os.write(1, said[-12:])'
END
printf '#!/no/interpreter\n' >mute
chmod +x late mute
list=$two on_hosts --agent "$PWD/late" -n 2 ./none >said 2>&1 </dev/null
[ $? = 127 ] && [ "$(grep -c "^runnel: host $name-[12]: there is no program './none'" said)" = 1 ] && ! left_over
ok 'a program that is not there: once, when both hosts say so at a time' $?
list=$two on_hosts --agent "$PWD/late" -n 2 ./mute >said 2>&1 </dev/null
[ $? = 127 ] && [ "$(grep -c "^runnel: host $name-[12]: cannot start './mute'" said)" = 1 ] && ! left_over
ok 'a program that cannot start: once, when both hosts say so at a time' $?

printf '#!/bin/sh\necho runnel 9.9.9\n' >other
chmod +x other
list=$two on_hosts --agent "$PWD/other" -n 2 true >said 2>&1 </dev/null
[ $? = 71 ] && grep -q "^runnel: host $name-[12]: $PWD/other did not become its agent: it ended (status 0) and said runnel 9.9.9; say with --agent where the runnel command is there$" said
ok 'an agent that is another program: its path, and what it said' $?

list=$name-1,$name-9 on_hosts -n 2 true >said 2>&1 </dev/null
[ $? = 71 ] && grep -q "host $name-9: there is no network namespace .*: .ip netns list. says which there are" said && ! left_over
ok 'a host that is not there' $?

started() { # until a line of the ranks is there
    local i
    for ((i = 0; i < 1200; i++)); do
        [ "$(grep -c "$1" said)" -ge "$2" ] && return 0
        sleep 0.05
    done
    return 1
}
# In the background of a script SIGINT is ignored, for the ranks, too.
for signal in TERM HUP KILL; do
    : >said # what the last ones said is not what is waited for
    "$runnel" run --launcher netns --hosts "$two" -n 4 \
        sh -c 'trap "echo heard; exit 3" TERM; echo ready; sleep 60 & wait' >said 2>&1 </dev/null &
    job=$!
    started ready 4
    kill -$signal $job
    wait $job 2>/dev/null
    status=$?
    case $signal in
    TERM) [ $status = 3 ] && [ "$(grep -c heard said)" = 4 ] ;;
    HUP) [ $status = 129 ] ;;
    KILL) [ $status = 137 ] ;;
    esac && ! left_over
    ok "the launcher gets SIG$signal: the ranks get it too, and nothing is left" $?
done

# ---- messages ----

on_hosts -n 6 "$build/tests/multi-fm_alltoall" 1 10 >said 2>&1 </dev/null
ok 'all to all of 6 on three hosts' $?
# Ranks of one host share memory, those of different hosts do not: the segment of a pair has both numbers in its name.
list=$two on_hosts --keep-going -n 4 "$build/tests/multi-kill_rank" wait 1 3 >said 2>&1 </dev/null &
job=$!
ranks_on "$name-1" 2
pids=("${ranks[@]}")
ranks_on "$name-2" 2
victims=("${ranks[@]}")
sleep 1
shared=$(cat "/proc/${pids[0]}/maps" "/proc/${pids[1]}/maps" "/proc/${victims[0]}/maps" "/proc/${victims[1]}/maps" |
    grep -oE 'runnel-[0-9]+-[0-9]+' | sort -u | grep -vE 'runnel-(0-1|2-3)')
kill -KILL "${victims[1]}"
wait $job
status=$?
echo "shared: $shared, status $status" >>said
[ -z "$shared" ]
ok 'ranks of different hosts share no memory' $?
[ $status = 137 ] && [ "$(grep -c '^dead [012] 3 ' said)" = 3 ] && [ "$(grep -c '^done [012] ' said)" = 3 ] && ! left_over
ok 'a rank that is killed is dead for those of all hosts, and they go on' $?

# ---- the agents ----

agents_of() {
    ip netns pids "$1" | while read -r p; do
        tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | grep -q 'runnel agent $' && echo "$p"
    done
}
: >said
list=$two on_hosts --keep-going -n 4 sh -c 'echo ready; while [ ! -e go ]; do sleep 0.05; done; echo over' >said 2>&1 </dev/null &
job=$!
started ready 4
agents_of "$name-2" | head -n 1 | xargs -r kill -KILL
started 'is lost' 1 # the others are still there then
touch go
wait $job
status=$?
[ $status = 71 ] && grep -q "host $name-2, with ranks 2 to 3, is lost: its agent was killed by signal 9" said &&
    [ "$(grep -c over said)" = 2 ] && ! left_over
ok 'an agent is killed: its ranks are, the others go on' $?

# As when its power goes: everything of it ends at once, and its network with it.
: >said
on_hosts --keep-going -n 3 "$build/tests/multi-kill_rank" wait 1 2 >said 2>&1 </dev/null &
job=$!
for k in 1 2 3; do
    ranks_on "$name-$k" 1
done
sleep 0.5
ip netns pids "$name-3" | xargs -r kill -KILL
ip netns del "$name-3"
wait $job
status=$?
[ $status = 71 ] && grep -q "host $name-3, with rank 2, is lost: its agent was killed by signal 9" said &&
    [ "$(grep -c '^dead [01] 2 ' said)" = 2 ] && [ "$(grep -c '^done [01] ' said)" = 2 ] &&
    [ "$(grep -cE '^dead [01] 2 [0-9]+ rank 2 is gone: its host is lost: ' said)" = 2 ] && ! left_over
ok 'a host vanishes with its namespace: its rank is dead for the others, and they go on' $?

exit "$failed"
