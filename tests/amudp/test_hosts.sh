#!/usr/bin/env bash
# Programs written for AMUDP on several hosts, which are network namespaces: custom spawning, ssh with its settings,
# runnel run and mpirun; with IPv4, and with nothing but IPv6.
# shellcheck disable=SC1091,SC2154,SC2016 # hosts.sh sets them; commands for other shells
. "$(dirname "$0")/../multi/hosts.sh"
program=$build/tests/amudp-spmd
hosts_up 3
export PATH=$build/tools:$PATH TMPDIR=$dir
for it in SPAWNFN NETWORKDEPTH FAULT_RATE CSPAWN_CMD MASTERIP WORKERIP WORKER_RANK; do
    unset "$it" "AMUDP_$it" "GASNET_$it"
done
limit=60
grep -qE '__(asan|tsan)_init' "$program" && limit=200

cat >spawn <<'END'
#!/usr/bin/env bash
# spawn "HOST..." N COMMAND: N workers, on the hosts in turn; RANKS says which ranks they ask for.
hosts=($1) n=$2 ranks=($RANKS)
shift 2
for ((i = 0; i < n; i++)); do
    AMUDP_WORKER_RANK=${ranks[i]-} ip netns exec "${hosts[i % ${#hosts[@]}]}" env -u RUNNEL_FD "$@" &
done
wait
END
cat >ssh <<'END'
#!/usr/bin/env bash
# In the place of ssh: a host is a namespace. Notes its options.
seen=
while [ "$1" != -- ]; do
    seen="$seen<$1>"
    shift
done
echo "$seen" >>"${0%/*}/ssh.options"
exec ip netns exec "$2" env -i PATH="$PATH" sh -c "$3"
END
chmod +x spawn ssh
export CSPAWN_CMD="$dir/spawn '%M' %N %C" CSPAWN_ROUTE_OUTPUT=1
all="$name-1 $name-2 $name-3"
run() { # COMMAND...: on the first host, which is the master's; leaves said and $status
    status=0
    timeout -k 5 "$limit" ip netns exec "$name-1" "$@" >said 2>&1 </dev/null || status=$?
}
is() { # NAME STATUS
    [ "$status" = "$2" ] && ! left_over
    ok "$1" $?
}
see() { # NAME HOSTS WORKERS
    [ "$status" = 0 ] && [ "$(grep -cxE "rank [0-9]+ of $3 sees $2 hosts" said)" = "$3" ] && ! left_over
    ok "$1" $?
}
every_way() { # TITLE
    local title=$1
    CSPAWN_SERVERS=$all run "$program" 5 C hosts
    see "$title: custom, 5 workers on 3 hosts, each kind of message" 3 5
    CSPAWN_SERVERS="$name-2 $name-3" run "$program" 4 C hosts
    see "$title: custom, none of them on the master's host" 2 4
    CSPAWN_SERVERS=$all run "$program" 3 C exit 6
    is "$title: custom, exit codes" 6
    rm -f ssh.options
    SSH_SERVERS=$all SSH_CMD=$dir/ssh SSH_OPTIONS="-p 2222 -o 'ProxyCommand=a b'" run "$program" 3 S hosts
    see "$title: ssh" 3 3
    [ "$(grep -cF '<-p><2222><-o><ProxyCommand=a b><-T>' ssh.options)" = 3 ]
    ok "$title: ssh gets SSH_OPTIONS, words as a shell sees them" $?
    run "$runnel" run --launcher netns --hosts "$list" -n 3 "$program" hosts
    see "$title: runnel run" 3 3
}

every_way IPv4
if [ -x "$build/examples/table" ]; then
    run "$runnel" run --launcher netns --hosts "$list" -n 6 "$build/examples/table" 2000
    [ "$status" = 0 ] && [ "$(grep -c '^rank [0-5] of 6: 2000 stored, 2000 found, 0 missing, 0 lost$' said)" = 6 ]
    ok 'the distributed hash table over three hosts finds what it stored' $?
fi
CSPAWN_SERVERS="$name-3 $name-2 $name-1" RANKS='0 2 4 1 3 5' run "$program" 6 C hosts
see 'custom: workers choose their ranks, in blocks' 3 6
CSPAWN_SERVERS="$name-1 $name-2" RANKS='0 1 2 3' run "$program" 4 C hosts
[ "$status" = 1 ] && ! left_over && [ "$(grep -c 'wants rank 2, but this host has ranks 0 to 1' said)" = 5 ]
ok 'custom: ... ranks in turn are an error, and the master and each worker say why' $?
CSPAWN_SERVERS=$all CSPAWN_ROUTE_OUTPUT=1 WHAT_THE_MASTER_HAS=there run "$program" 3 C print
[ "$(grep -cx 'rank [012] of 3 has there and 2 arguments' said)" = 3 ]
ok 'custom: output and environment go by the master' $?
CSPAWN_SERVERS=$all run "$program" 3 C killed
is 'custom: a worker that is killed ends the job' 1
MASTERIP=10.77.0.99 CSPAWN_SERVERS=$all run "$program" 3 C print
[ "$status" != 0 ] && grep -q 'cannot listen for workers at MASTERIP, 10.77.0.99' said
ok 'custom: a MASTERIP that this host does not have is an error' $?

# Three workers on three hosts, who talk until something ends them: the job is $job, its master $master.
talk() {
    touch talks
    : >said # else the last job's ranks seem to talk
    CSPAWN_SERVERS=$all timeout -k 5 "$limit" ip netns exec "$name-1" "$program" 3 C talk "$dir/talks" >said 2>&1 \
        </dev/null &
    job=$!
    for ((i = 0; i < 1200; i++)); do
        [ "$(grep -cx 'rank [012] talks' said)" = 3 ] && break
        sleep 0.05
    done
    master=$(pgrep -of "^$program 3 C talk $dir/talks")
}
ended() {
    status=0
    { wait "$job"; } 2>/dev/null || status=$?
    rm talks
}
agent_of() { # HOST
    local p
    ip netns pids "$1" | while read -r p; do
        tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | grep -q 'runnel agent $' && echo "$p"
    done | head -n 1
}
talk
[ -n "$master" ] && kill -KILL "$master"
killed=$?
ended
[ "$killed" = 0 ] && [ "$status" = 137 ] && ! left_over
ok 'custom: when the master is killed nothing stays' $?
for k in 1 2; do
    talk
    doors=$(ip netns exec "$name-2" cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == "0A" { print $2 }')
    agent=$(agent_of "$name-$k")
    [ -n "$agent" ] && kill -KILL "$agent"
    killed=$?
    ended
    [ "$killed" = 0 ] && [ "$status" = 71 ] && grep -q 'is lost: its agent ' said && ! left_over
    ok "custom: the agent of host $k is killed: the job says so" $?
done
[ -z "$doors" ]
ok "custom: nobody listens on the workers' hosts" $?

# A worker that cannot reach the master looks again; where nobody listens it says so.
cat >late <<'END'
#!/usr/bin/env bash
# late HOST COMMAND: a worker on a host that has no way to the master's in its first second.
host=$1
shift
ip -n "$host" route add unreachable 10.77.0.1
env -u RUNNEL_FD ip netns exec "$host" "$@" &
sleep 1
ip -n "$host" route del unreachable 10.77.0.1
wait
END
cat >nowhere <<'END'
#!/usr/bin/env bash
# nowhere HOST N COMMAND: ... N of them, when the file with the key names a port at which nobody listens
LC_ALL=C sed -i -E 's/(master [^ ]+) [0-9]+$/\1 1/' "$TMPDIR"/amudp-key*
host=$1 n=$2
shift 2
for ((i = 0; i < n; i++)); do env -u RUNNEL_FD ip netns exec "$host" "$@" & done
wait
exit 3
END
chmod +x late nowhere
MASTERIP=10.77.0.1 CSPAWN_CMD="$dir/late '$name-2' %C" run "$program" 1 C hosts
see 'custom: a worker whose master is away for a second finds it' 1 1
MASTERIP=10.77.0.1 CSPAWN_CMD="$dir/nowhere '$name-2' %N %C" run "$program" 40 C hosts
[ "$status" = 1 ] && ! left_over &&
    [ "$(grep -c 'the master cannot be reached at 10.77.0.1, port 1 (Connection refused): MASTERIP' said)" = 40 ]
forty=$?
if [ $forty != 0 ]; then # the lines that differ, not the last twenty
    sort said | uniq -c >counted
    { echo "status $status" && cat counted; } >said
fi
ok 'custom: 40 workers without a master: each says why' $forty

if command -v mpirun >/dev/null && grep -q PMIx_Init "$build"/src/libamudp.a; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LSAN_OPTIONS=detect_leaks=0
    run mpirun --oversubscribe -np 3 "$program" hosts
    see 'mpirun' 1 3
    run mpirun --oversubscribe -np 3 "$program" exit 5
    is 'mpirun: exit codes' 5
else
    echo 'ok - mpirun # SKIP it, or PMIx, is not installed'
fi

for k in 1 2 3; do
    ip -n "$name-$k" addr flush dev eth0 scope global
    ip -n "$name-$k" addr add "fd77::$k/64" dev eth0 nodad
done
every_way IPv6
MASTERIP=fd77::1 CSPAWN_SERVERS=$all run "$program" 3 C hosts
see 'IPv6: custom, with MASTERIP' 3 3
exit "$failed"
