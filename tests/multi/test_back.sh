#!/usr/bin/env bash
# Agents started over ssh whose connection dies, on hosts with two addresses: they come back by the other, and nothing
# of what the ranks say, nor their ends, is lost or comes twice. Hosts are network namespaces on two links, each with an
# sshd of the test's own; the launcher is in another.
# shellcheck disable=SC1091,SC2154,SC2034 # hosts.sh sets, and uses, them
. "$(dirname "$0")/hosts.sh"
if ! [ -x /usr/sbin/sshd ] || ! command -v ssh >/dev/null || ! command -v ssh-keygen >/dev/null; then
    echo 'openssh-server is not installed'
    exit 77
fi
hosts_up 3
a=$name-1
ip -n "${name}-0" link add br1 type bridge
ip -n "${name}-0" link set br1 up
for k in 1 2 3; do
    ip -n "$name-$k" link add eth1 type veth peer name "q$k" netns "${name}-0"
    ip -n "${name}-0" link set "q$k" master br1 up
    ip -n "$name-$k" addr add "10.88.0.$k/24" dev eth1
    ip -n "$name-$k" link set eth1 up
done
chmod 700 "$dir"
ssh-keygen -q -t ed25519 -N '' -f host_key && ssh-keygen -q -t ed25519 -N '' -f key && cp key.pub keys
mkdir -p /run/sshd 2>/dev/null # a root's sshd wants it, empty
cat >sshd_config <<END
Port 22
HostKey $dir/host_key
PidFile none
AuthorizedKeysFile $dir/keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
END
daemons=()
# shellcheck disable=SC2317 # called by trap
stop_daemons() {
    [ ${#daemons[@]} = 0 ] || kill "${daemons[@]}" 2>/dev/null
    kill_on_hosts '.*'
    clean_up
}
trap stop_daemons EXIT
for k in 2 3; do
    ip netns exec "$name-$k" /usr/sbin/sshd -D -e -f "$dir/sshd_config" 2>"sshd_said$k" &
    daemons+=($!)
done
cat >own-ssh <<END
#!/bin/sh
exec ssh -F none -oIdentityFile=$dir/key -oUserKnownHostsFile=$dir/known -oStrictHostKeyChecking=no "\$@"
END
cat >slow-ssh <<END
#!/bin/sh
# A command around ssh: it ends late, and says nothing of why.
$dir/own-ssh "\$@" 2>/dev/null
exec <&- >&- 2>&-
sleep 1
exit 255
END
chmod +x own-ssh slow-ssh
for ((i = 0; i < 200; i++)); do
    ip netns exec "$a" ./own-ssh -oBatchMode=yes 10.77.0.2 true >said 2>&1 </dev/null &&
        ip netns exec "$a" ./own-ssh -oBatchMode=yes 10.77.0.3 true >said 2>&1 </dev/null && break
    sleep 0.05
done
if [ $i = 200 ]; then
    echo "the sshd of the test does not let us in: $(tail -n 1 said)"
    exit 77
fi

cat >speak <<'END'
#!/bin/sh
# Numbered lines until told that it is enough; then an exit status.
i=0
while [ ! -e enough ]; do
    echo "says $i"
    i=$((i + 1))
    sleep 0.01
done
echo "last $i"
exit "$(cat enough)"
END
chmod +x speak
begin() { # OPTION... PROGRAM: in the background, as $job
    rm -f enough
    : >out
    : >said
    RUNNEL_SSH=$dir/${with:-own-ssh} ip netns exec "$a" timeout -k 5 150 "$runnel" run --timeout 140 \
        --hosts 10.77.0.2,10.77.0.3 -n 2 "$@" >out 2>said </dev/null &
    job=$!
    for ((i = 0; i < 400; i++)); do
        [ "$(grep -c ' says 1$' out)" = 2 ] && return 0
        kill -0 $job 2>/dev/null || return 1
        sleep 0.05
    done
    return 1
}
# Lines come again: of both ranks, beyond what has come so far.
go_on() { # SECONDS
    local r n k
    for r in 0 1; do
        n=$(($(grep -c "^\[$r\]" out) + 20))
        for ((k = 0; k < $1 * 20; k++)); do
            [ "$(grep -c "^\[$r\]" out)" -ge $n ] && break
            kill -0 $job 2>/dev/null || return 1
            sleep 0.05
        done
        [ "$(grep -c "^\[$r\]" out)" -ge $n ] || return 1
    done
}
finish() { # STATUS: says that it is enough; 0 = it ends with that, soon
    echo "$1" >status && mv status enough # never seen empty
    local start=$SECONDS
    wait $job
    [ $? = "$1" ] && [ $((SECONDS - start)) -lt 15 ]
}
whole() { # every line of each rank, once, in order, and the last
    local r
    for r in 0 1; do
        grep "^\[$r\] says" out | awk -v r=$r '$3 != NR - 1 {print "rank " r ": line " NR " says " $3; bad = 1} END {exit bad}' \
            >>said || return 1
        [ "$(grep -c "^\[$r\] last $(grep -c "^\[$r\] says" out)\$" out)" = 1 ] || return 1
    done
}
up() {
    local k
    for k in 1 2 3; do
        ip -n "$name-$k" link set eth0 up
        ip -n "$name-$k" link set eth1 up
        ip -n "$name-$k" addr replace "10.77.0.$k/24" dev eth0
        ip -n "$name-$k" addr replace "10.88.0.$k/24" dev eth1
    done
}
port_of() { # where the launcher listens
    ip netns exec "$a" ss -Hltnp 2>/dev/null | sed -n 's/.*:\([0-9]*\) .*"runnel".*/\1/p' | head -n 1
}

begin --tag-output ./speak && ip -n "$a" link set eth0 down && go_on 40 && finish 0 && whole
ok 'a link of the launcher goes down: no line is lost or comes twice' $?
up

begin --tag-output ./speak && ip -n "$a" link set eth0 down && go_on 40 && up && sleep 0.5 &&
    ip -n "$a" link set eth1 down && go_on 40 && finish 7 && [ "$(grep -c 'exited with status 7; ending' said)" = 1 ]
ok 'then up again, and the other goes down: the exit status of a rank arrives, once' $?
up

begin --tag-output ./speak && ip -n "$a" addr del 10.77.0.1/24 dev eth0 && go_on 40 && finish 0 && whole
ok 'an address of the launcher is removed' $?
up

begin --tag-output ./speak && ip -n "$name-2" link set eth0 down && go_on 40 && finish 0 && whole
ok 'a link of another host goes down' $?
up

# What serves its ssh is killed there: the agent hears it at once, and comes back at once.
begin --tag-output ./speak
for p in $(pgrep -P "${daemons[1]}"); do kill -KILL "$p"; done
go_on 8 && finish 0 && whole
ok 'a connection is cut, and no address is dead: back at once' $?

# Here the agents hear of it when the links are up again, two seconds later.
with=slow-ssh begin --tag-output ./speak && ip -n "$a" link set eth0 down && ip -n "$a" link set eth1 down
for p in $(pgrep -f "^ssh .*UserKnownHostsFile=$dir/known"); do kill -KILL "$p"; done
sleep 2
up
go_on 8 && finish 0 && whole
ok 'the command that carries a connection ends late, and says nothing: the agent is waited for' $?

begin --no-call-back --tag-output ./speak
start=-100
[ -z "$(port_of)" ] && start=$SECONDS
for p in $(pgrep -P "${daemons[1]}"); do kill -KILL "$p"; done
wait $job
[ $? = 71 ] && [ $((SECONDS - start)) -lt 8 ] && grep -q '^runnel: host 10[.]77[.]0[.]3, with rank 1, is lost: its agent has ended' said
ok 'with --no-call-back no port is open, and a connection that is cut is the end' $?

# A program that talks, with barriers; its lines come while the launcher's link is down.
begin_beat() {
    rm -f enough
    : >out
    RUNNEL_SSH=$dir/own-ssh ip netns exec "$a" timeout -k 5 150 "$runnel" run --timeout 140 \
        --hosts 10.77.0.2,10.77.0.3 -n 4 "$build/tests/amudp-spmd" beat "$dir/enough" >out 2>said </dev/null &
    job=$!
}
beats() { # all four, three times more
    local r k n
    for r in 0 1 2 3; do
        n=$(($(grep -c "^beats $r\$" out) + 3))
        for ((k = 0; k < 800; k++)); do
            [ "$(grep -c "^beats $r\$" out)" -ge $n ] && break
            kill -0 $job 2>/dev/null || return 1
            sleep 0.05
        done
        [ "$(grep -c "^beats $r\$" out)" -ge $n ] || return 1
    done
}
begin_beat
beats && ip -n "${name}-0" link set br0 down && beats && beats
wrong=$?
touch enough
wait $job && [ $wrong = 0 ]
ok 'a whole network goes down, under messages and output' $?
ip -n "${name}-0" link set br0 up

# Who cannot prove to be an agent of the job hears 32 bytes, and nothing changes; nor does what was recorded help.
begin --tag-output ./speak
port=$(port_of)
timeout 60 ip netns exec "$a" python3 - "${port:-0}" >strangers 2>&1 <<'END'
import os, socket, sys
port = int(sys.argv[1])
held = []
for i in range(200):
    s = socket.create_connection(('10.88.0.1', port), 5)
    s.settimeout(5)
    first = s.recv(64)
    if len(first) != 32:
        sys.exit('a stranger heard %d bytes' % len(first))
    if i % 2:
        s.sendall(os.urandom(88))
        s.shutdown(socket.SHUT_WR)
        if s.recv(64) != b'':
            sys.exit('a stranger was answered')
        s.close()
    else:
        held.append(s)
print('done')
END
grep -qx 'done' strangers && ip -n "$a" link set eth0 down && go_on 40 && finish 0 && whole
ok 'strangers, also while an agent comes back' $?
cat strangers >>said
up

begin --tag-output ./speak && start=$SECONDS && ip -n "$a" link set eth0 down && ip -n "$a" link set eth1 down
wait $job
[ $? = 71 ] && [ $((SECONDS - start)) -lt 45 ] &&
    grep -qE '^runnel: host 10[.]77[.]0[.][23], with rank [01], is lost: .*10[.]77[.]0[.]1.*10[.]88[.]0[.]1.*port' said
ok 'both links go down: the job ends within a bound, and says which addresses were tried' $?
up
exit "$failed"
