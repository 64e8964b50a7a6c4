#!/usr/bin/env bash
# Processes that no launcher started meet across hosts, which are network namespaces here, each with a daemon: who has
# the key of the hosts is introduced, and nobody else; a death, of a process or of a daemon, harms its own pair at most.
# shellcheck disable=SC1091,SC2154,SC2317,SC2016,SC2086 # hosts.sh sets some; clean_up_mine is called by the trap; awk's own $
set -u
. "$(dirname "${BASH_SOURCE[0]}")/../multi/hosts.sh"
caller=$build/tests/meet-caller
python=/usr/bin/python3
export RUNNEL_DAEMON=t$$
mine=()
clean_up_mine() {
    local p
    for p in "${mine[@]}"; do
        kill -9 "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
    clean_up
}
trap clean_up_mine EXIT
on() { # HOST COMMAND...
    ip netns exec "$name-$1" "${@:2}"
}
start() { # HOST FILE COMMAND...: in the background; sets $started
    ip netns exec "$name-$1" "${@:3}" >"$2" 2>&1 </dev/null &
    started=$!
    mine+=("$started")
}
until_says() { # FILE PATTERN [COUNT]: within 20 s
    local i
    for ((i = 0; i < 400; i++)); do
        [ "$(grep -cE -- "$2" "$1" 2>/dev/null)" -ge "${3:-1}" ] && return 0
        sleep 0.05
    done
    cp "$1" said
    return 1
}
listens() { # HOST: the daemon there has begun
    local i
    for ((i = 0; i < 400; i++)); do
        on "$1" grep -q "@runnel-daemon-$RUNNEL_DAEMON" /proc/net/unix && return 0
        sleep 0.05
    done
    return 1
}
end() { # PROCESS...
    local p
    for p in "$@"; do
        kill -9 "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
}
serve() { # HOST FILE ARGUMENT...: sets $started
    start "$1" "$2" "$caller" serve "${@:3}"
    until_says "$2" '^serving$'
}
reach() { # HOST ARGUMENT...
    on "$1" timeout -k 5 60 "$caller" reach "${@:2}" </dev/null
}
daemon() { # HOST OPTION...: sets $started
    start "$1" "daemon$1.out" "$runnel" daemon --idle 60 "${@:2}"
    listens "$1"
}

# ---- the key ----
"$runnel" key --file a/b/key --new >made.out && "$runnel" key --file a/b/key >shown.out && cmp -s made.out shown.out &&
    [ "$(stat -c %a a/b/key)" = 600 ] && grep -qE '^key ([0-9a-f]{4}-){7}[0-9a-f]{4}$' made.out
ok 'a key is made, and shows its fingerprint' $?
"$runnel" key --file a/b/key --new >again.out 2>&1
[ $? = 71 ] && grep -q 'there is a key' again.out && cmp -s made.out <("$runnel" key --file a/b/key)
ok 'a key that is there is not replaced' $?
"$runnel" key --file a/b/key --print | "$runnel" key --file key2 --install >installed.out &&
    [ "$(head -n 1 installed.out)" = "$(head -n 1 made.out)" ]
ok 'it is installed on another host' $?
chmod 640 key2
! "$runnel" key --file key2 >wide.out 2>&1 && grep -q 'mode 0600' wide.out
ok 'a key that others can read is not used' $?
chmod 600 key2
ln -s key2 link
! "$runnel" key --file link >link.out 2>&1
ok 'nor is a link' $?
! echo 'not a key' | "$runnel" key --file key3 --install >text.out 2>&1 && [ ! -e key3 ]
ok 'what is no key is not installed' $?
! grep -qF "$(cat key2)" made.out shown.out installed.out
ok 'nothing shows the key but --print' $?

# ---- two hosts ----
hosts_up 3
daemon 1 --key key2
daemon1=$started
daemon 2 --key a/b/key
daemon2=$started
serve 2 kv.out kv
server=$started
reach 1 kv@10.77.0.2 hello >client.out 2>&1 && grep -q '^heard hello$' client.out
ok 'a process reaches a service of another host, and talks' $?
until_says kv.out '^gone 6$' && grep -q "^request uid $(id -u) gid $(id -g) pid 0$" kv.out
ok 'the server is told who came, and that it left' $?
reach 1 "$(id -u)/kv@[fd77::2]:$(sed -n 's/^port \([0-9]*\) .*/\1/p' made.out)" six >six.out 2>&1 && grep -q '^heard six$' six.out
ok 'by another address, with the port and the user' $?
RNL_FAULT=delay=100ms reach 1 kv@10.77.0.2 slow >slow.out 2>&1 && grep -q '^heard slow$' slow.out &&
    awk '$1 == "took" && $2 >= 100000 { late = 1 } END { exit !late }' slow.out
ok 'RNL_FAULT befalls the packets between them' $?
reach 2 kv@10.77.0.2 self >self.out 2>&1 && grep -q '^heard self$' self.out
ok 'also from its own host' $?
on 1 timeout -k 5 60 "$caller" twice kv@10.77.0.2 </dev/null >twice.out 2>&1 && grep -q '^heard still there$' twice.out
ok 'two endpoints may be introduced more than once' $?
# Both hosts have one more address, the same, which comes first: so that of a window endpoint leads to the wrong host.
for host in 1 2; do
    ip -n "$name-$host" addr del "10.77.0.$host/24" dev eth0
    ip -n "$name-$host" addr add 10.88.0.1/24 dev eth0
    ip -n "$name-$host" addr add "10.77.0.$host/24" dev eth0
done
serve 2 astray.out astray window
[ "$(on 1 timeout -k 5 60 "$caller" import astray@10.77.0.2 2>&1)" = 'carried 1048576, counted 297, same' ]
ok 'windows of a host whose address is taken for another one are reached as its messages are' $?
end "$started"
ip -n "$name-1" addr del 10.88.0.1/24 dev eth0
ip -n "$name-2" addr del 10.88.0.1/24 dev eth0
serve 2 apart.out apart window
on 1 timeout -k 5 60 "$caller" apart apart@10.77.0.2 </dev/null >held.out 2>&1
cp held.out said
[ "$(grep -v '^heard' held.out)" = 'behind half a message: landed
puts whose notifications wait: RNL_TIMED_OUT
afterwards: RNL_OK' ] && grep -q '^landed 8 at 8, 0 wrong$' apart.out &&
    grep -q '^long taken in$' apart.out
ok 'half a message to a process of another host holds up no put, nor do puts hold up messages' $?
end "$started"
start 2 store.out "$build/examples/store"
until_says store.out open && on 1 "$build/examples/store" --at store@10.77.0.2 key 'far away' &&
    on 1 timeout 60 "$build/examples/store" --at store@10.77.0.2 --times 2 key >far.out 2>&1 </dev/null &&
    grep -q '^far away$' far.out && grep -q '^2 reads, .* by messages$' far.out
ok 'the example of a store is written and read there' $?
reach 1 kv@10.77.0.3 x 2 >nobody.out 2>&1
grep -qE '^RNL_(ERR_UNREACHABLE|TIMED_OUT)' nobody.out
ok 'a host without a daemon is not reached' $?
reach 1 none@10.77.0.2 x 0.3 >none.out 2>&1
grep -q '^RNL_TIMED_OUT' none.out
ok 'a service that nobody offers there is waited for' $?
reach 1 late@10.77.0.2 later 20 >late.out 2>&1 &
waiting=$!
sleep 0.3
serve 2 late.server late && wait "$waiting" && grep -q '^heard later$' late.out
ok 'one that is offered later is reached then' $?
end "$started"
serve 2 no.out no deny
reach 1 no@10.77.0.2 x >denied.out 2>&1
grep -q '^RNL_ERR_REFUSED' denied.out && grep -q '^request' no.out
ok 'the server may refuse a request' $?
end "$started"

RNL_FAULT=loss=5%,dup=2%,reorder=5%:1ms,corrupt=1%,cut=1% serve 2 worn.out worn
for ((i = 0; i < 20; i++)); do
    RNL_FAULT=loss=5%,seed=$i reach 1 worn@10.77.0.2 "worn$i" 60 || break
done >worn1.out 2>&1
[ "$(grep -c '^heard worn' worn1.out)" = 20 ] && until_says worn.out '^gone 6$' 20
ok 'peers that come one after another talk in spite of faults' $?
end "$started"

serve 2 window.out windows window
[ "$(on 1 timeout -k 5 60 "$caller" import windows@10.77.0.2 2>&1)" = 'carried 1048576, counted 297, same' ] &&
    until_says window.out '^landed 1044480 at 4096, 0 wrong$'
ok 'a window of a process of another host is imported, and accesses are carried' $?
[ "$(on 2 timeout -k 5 60 "$caller" import windows 2>&1)" = 'direct 1048576, counted 297, same' ]
ok 'while one of its own host maps it' $?
end "$started"

# ---- addresses ----
serve 2 at.out placed address
at=$(grep '^rnl1' at.out)
reach_at() { # HOST TEXT ADDRESS
    on "$1" timeout -k 5 60 "$caller" insert "$2" "$3" 2>&1 </dev/null
}
[ "$(reach_at 1 far "$at")" = 'heard far' ] && [ "$(reach_at 2 near "$at")" = 'heard near' ]
ok 'an address that was given out is inserted from another host, and from its own' $?
token=${at##*.}
[ "$(reach_at 1 x "${at/.$token/.${token/[0-9a-f]/$([ "${token:0:1}" = 0 ] && echo 1 || echo 0)}}")" = 'not inserted: dead' ]
ok 'who has not the secret part is refused' $?
[ "$(reach_at 1 x "${at%@*}")" = 'not inserted: RNL_ERR_UNREACHABLE' ]
ok 'one without a host is of its host only' $?
end "$started"
crossed=0
for ((i = 0; i < 10; i++)); do
    start 1 cross1.out "$caller" cross "one$i" "two$i"
    first=$started
    start 2 cross2.out "$caller" cross "two$i" "one$i"
    if wait "$first" && wait "$started"; then
        crossed=$((crossed + $(cat cross1.out cross2.out | grep -c '^heard across$')))
    fi
done
[ "$crossed" = 20 ]
ok 'two that insert each other are one peer of each other' $?

# ---- who has not the key ----
"$runnel" key --file other --new >/dev/null
port=$(sed -n 's/^port \([0-9]*\) .*/\1/p' made.out)
daemon 3 --key other
stranger=$started
requests=$(grep -c ^request kv.out)
reach 3 "kv@10.77.0.2:$port" x 3 >wrong.out 2>&1
grep -q '^RNL_ERR_UNREACHABLE' wrong.out && [ "$(grep -c ^request kv.out)" = "$requests" ]
ok 'a host with another key is not heard' $?
end "$stranger"
start 3 daemon3.out "$runnel" daemon --idle 60
keyless=$started
listens 3
reach 3 kv@10.77.0.2 x 3 >keyless.out 2>&1
grep -q '^RNL_ERR_UNREACHABLE' keyless.out
ok 'a host without a key asks nobody' $?
end "$keyless"
if [ -x "$python" ]; then
    cat >proxy.py <<'PY'
import socket, sys, threading
# Passes one call on to the daemon, records what the caller says, then says the same again.
target, port = sys.argv[1], int(sys.argv[2])
listener = socket.create_server(("10.77.0.1", port + 1))
print("ready", flush=True)
listener.settimeout(20)
near, _ = listener.accept()
far = socket.create_connection((target, port), 10)
said = []
def back():
    try:
        while data := far.recv(4096):
            near.sendall(data)
    except OSError:
        pass
threading.Thread(target=back, daemon=True).start()
near.settimeout(3)
try:
    while data := near.recv(4096):
        said.append(data)
        far.sendall(data)
except OSError:
    pass
far.close()
print("passed", len(said) > 1, flush=True)
again = socket.create_connection((target, port), 10)
again.settimeout(10)
got = 0
try:
    for data in said:
        again.sendall(data)
    while data := again.recv(4096):
        got += len(data)
except OSError:
    pass
print("answered", got, flush=True)
for junk in (b"", b"x", bytes(32), bytes(88), bytes(range(256)) * 400):
    s = socket.create_connection((target, port), 10)
    s.settimeout(10)
    try:
        s.sendall(junk)
        got = 0
        if len(junk) >= 88:
            while data := s.recv(4096):
                got += len(data)
            print("junk", got, flush=True)
    except OSError:
        print("junk", got, flush=True)
PY
    start 1 proxy.out "$python" proxy.py 10.77.0.2 "$port"
    proxy=$started
    until_says proxy.out ready
    requests=$(grep -c ^request kv.out)
    reach 1 "kv@10.77.0.1:$((port + 1))" x 1 >proxied.out 2>&1
    until_says proxy.out '^junk' 2
    wait "$proxy"
    grep -q '^passed True' proxy.out && [ "$(grep -c ^request kv.out)" = $((requests + 1)) ] && grep -q '^answered 32$' proxy.out
    ok 'what was recorded of a call counts once' $?
    [ "$(grep -c '^junk 32$' proxy.out)" = 2 ]
    ok 'who proves nothing is told a random number' $?
    cat >datagrams.py <<'PY'
import random, socket, sys
# Throws at every socket for datagrams of a host: greetings and packets that nobody has a key for.
random.seed(7)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in map(int, sys.argv[2:]):
    for i in range(2000):
        n = random.choice((0, 4, 40, 128, 128, 200))
        data = bytearray(random.randbytes(n))
        if n == 128:
            data[0:4] = bytes((0x14, 1, 128, 0))
            data[4:16] = bytes(12)
            data[16:24] = bytes((1 + i % 3, 0, 0, 0, 1 + i % 2, 0, 0, 0))
        s.sendto(data, (sys.argv[1], port))
PY
    mkfifo feed
    start 1 long.out bash -c "exec '$caller' reach kv@10.77.0.2 still <feed"
    exec 8>feed
    until_says long.out '^heard still$'
    mapfile -t ports < <(on 2 awk 'NR > 1 { split($2, at, ":"); print at[2] }' /proc/net/udp6 | while read -r hex; do echo $((16#$hex)); done)
    on 1 "$python" datagrams.py 10.77.0.2 "${ports[@]}"
    echo again >&8
    until_says long.out '^heard still$' 2
    ok 'forged greetings and packets harm no pair' $?
    exec 8>&-
else
    echo 'ok - strangers # SKIP needs /usr/bin/python3'
fi

# ---- deaths ----
mkfifo feed2
start 1 stay.out bash -c "exec '$caller' reach kv@10.77.0.2 stay <feed2"
client=$started
exec 9>feed2
until_says stay.out '^heard stay$'
end "$client"
until_says kv.out '^gone 2$'
ok 'a process that is killed is dead for its peer at once' $?
exec 9>&-
start 1 stay.out bash -c "exec '$caller' reach kv@10.77.0.2 stay <feed2"
client=$started
exec 9>feed2
until_says stay.out '^heard stay$'
serve 2 window.out windows window
mkfifo feed3
start 1 later.out bash -c "exec '$caller' import windows@10.77.0.2 20 later <feed3"
exec 7>feed3
until_says later.out '^reached$'
end "$daemon1" "$daemon2"
echo >&7
until_says later.out '^carried 1048576, counted 297, same$'
ok 'windows need no daemon between two that were introduced' $?
exec 7>&-
echo >&9
until_says stay.out '^heard stay$' 2
ok 'a pair outlives both daemons' $?
daemon 1 --key key2
daemon1=$started
daemon 2 --key a/b/key
daemon2=$started
for ((i = 0; i < 30; i++)); do
    reach 1 kv@10.77.0.2 new 20 || break
done >new.out 2>&1
[ "$(grep -c '^heard new$' new.out)" = 30 ]
ok 'daemons that are started again know the services, and introduce' $?
echo >&9
until_says stay.out '^heard stay$' 3
ok 'and the pair from before talks on' $?
end "$client"
exec 9>&-
end "$server"
start 1 gone.out "$caller" reach kv@10.77.0.2 x 20
waiting=$started
sleep 0.3
serve 2 kv2.out kv
server=$started
wait "$waiting" && grep -q '^heard x$' gone.out
ok 'a server that comes back is reached by who waits' $?

# ---- many ----
many=()
for ((i = 0; i < 100; i++)); do
    on 1 timeout -k 5 100 "$caller" reach kv@10.77.0.2 "n$i" 60 </dev/null >"many$i.out" 2>&1 &
    many+=($!)
done
wait "${many[@]}"
[ "$(cat many*.out | grep -c '^heard n')" = 100 ]
ok 'a hundred processes of another host at once' $?
until_says kv2.out '^gone' 101
ok 'who have all left' $?
for ((i = 0; i < 5; i++)); do
    reach 1 kv@10.77.0.2 "back$i" || break
done >back.out 2>&1
[ "$(grep -c '^heard back' back.out)" = 5 ]
ok 'numbers of peers are used again' $?
end "$server" "$daemon1" "$daemon2"

# ---- daemons of nodes ----
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 711 .
    daemon 1 --node --key key2
    daemon1=$started
    daemon 2 --node --key a/b/key
    daemon2=$started
    user=(setpriv --reuid=65533 --regid=65533 --clear-groups)
    start 2 u.out "${user[@]}" "$caller" serve kv
    until_says u.out '^serving$'
    on 1 "${user[@]}" timeout 60 "$caller" reach kv@10.77.0.2 mine </dev/null >u1.out 2>&1 &&
        grep -q '^heard mine$' u1.out && grep -q '^reached uid 65533' u1.out && grep -q '^request uid 65533 gid 65533' u.out
    ok 'between nodes a user is known by its number' $?
    serve 2 root.out kv
    on 1 "${user[@]}" timeout 60 "$caller" reach 0/kv@10.77.0.2 x 5 </dev/null >u2.out 2>&1
    grep -q '^RNL_ERR_REFUSED' u2.out && ! grep -q '^request' root.out
    ok 'who is not admitted makes no request' $?
    end "$daemon1"
    daemon 1 --key key2 --port "$port"
    daemon1=$started
    reach 1 "kv@10.77.0.2:$(sed -n 's/.* user.s daemon, \([0-9]*\) .*/\1/p' made.out)" x 3 >kinds.out 2>&1
    grep -q '^RNL_ERR_UNREACHABLE' kinds.out
    ok 'a daemon of a user is not believed by one of a node' $?
else
    echo 'ok - nodes # SKIP needs root and setpriv'
fi
exit "$failed"
