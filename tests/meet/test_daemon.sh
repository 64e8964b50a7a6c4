#!/usr/bin/env bash
# Processes of several users meet by name: the daemon is started by the first of them, admits whom it is told to, outlives
# floods, and is outlived by the connections that it made. Names of users and their services do not mix.
# shellcheck disable=SC1091,SC2154,SC2034,SC2317 # test.sh sets them and uses shown; clean_up is called by the trap
. "$(dirname "$0")/../support/test.sh"
caller=$build/tests/meet-caller
board=$build/examples/board
store=$build/examples/store
python=/usr/bin/python3 # that which every user can execute
shown='*.out'
export RUNNEL_DAEMON=t$$
PATH=$(dirname "$runnel"):$PATH
mine=()
clean_up() {
    local p
    for p in "${mine[@]}"; do
        kill -9 "$p" 2>/dev/null
    done
    p=$(daemon_of "$(id -u)")
    [ -z "$p" ] || kill "$p" 2>/dev/null
    rm -rf "$dir"
}
cd "$dir" || exit 1
# Who listens at the daemon's name of that user (or "node"); nothing if nobody does.
daemon_of() {
    local inode p
    while read -r inode; do
        for p in $(pgrep -x runnel); do
            if find "/proc/$p/fd" -lname "socket:\[$inode\]" 2>/dev/null | grep -q .; then
                echo "$p"
                return 0
            fi
        done
    done < <(awk -v n="@runnel-daemon-$RUNNEL_DAEMON-$1" '($8 == n || index($8, n "-") == 1) && $4 == "00010000" { print $7 }' /proc/net/unix)
}
until_says() { # FILE PATTERN [COUNT]: within 20 s
    local i
    for ((i = 0; i < 400; i++)); do
        [ "$(grep -cE -- "$2" "$1" 2>/dev/null)" -ge "${3:-1}" ] && return 0
        sleep 0.05
    done
    return 1
}
serve() { # FILE ARGUMENT...: in the background; it says that it serves
    local file=$1
    shift
    "$caller" serve "$@" >"$file.out" 2>&1 </dev/null &
    server=$!
    mine+=("$server")
    until_says "$file.out" '^serving$'
}
end() { # PROCESS...
    local p
    for p in "$@"; do
        kill -9 "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
}
reach() { # ARGUMENT...
    timeout -k 5 60 "$caller" reach "$@" </dev/null
}

# ---- two processes, and the example ----
[ -z "$(daemon_of "$(id -u)")" ]
ok 'no daemon runs before somebody needs it' $?
serve first kv
ok 'the first process that serves starts it' $?
reach kv hello >client.out 2>&1 && grep -q '^heard hello$' client.out && grep -q "^reached uid $(id -u) pid $server$" client.out
ok 'an unrelated process reaches it and talks' $?
RNL_FAULT=lost=5% reach kv x >fault.out 2>&1
grep -q "^RNL_ERR_ARG: RNL_FAULT: faults: there is no 'lost'; there are: loss" fault.out
ok 'faults that there are not are named when it opens' $?
RNL_FAULT=loss=5% reach kv near >near.out 2>&1 && grep -q '^heard near$' near.out
ok 'faults that there are wait for a peer on another host' $?
until_says first.out '^gone 6$' && grep -q '^request uid' first.out
ok 'who leaves is gone for the server' $?
"$caller" serve kv >second.out 2>&1 </dev/null
[ $? = 1 ] && grep -q '^RNL_ERR_REFUSED' second.out
ok 'a name that is taken is refused' $?
reach nobody-serves-this x 0.3 >none.out 2>&1
grep -q '^RNL_TIMED_OUT' none.out
ok 'a service that nobody offers is waited for as long as asked' $?
reach late x 20 >late.out 2>&1 &
waiting=$!
sleep 0.3
serve late-server late && wait "$waiting" && grep -q '^heard x$' late.out
ok 'a service that is offered later is reached then' $?
end "$server"
serve denier no deny
reach no x >denied.out 2>&1
grep -q '^RNL_ERR_REFUSED' denied.out && grep -q '^request' denier.out
ok 'the server may refuse a request' $?
end "${mine[@]}"
mine=()
serve again kv
ok 'the name of a server that was killed is free' $?
"$board" >board.out 2>&1 &
mine+=($!)
until_says board.out up && "$board" 'first line' >lines.out && "$board" 'second line' >lines.out &&
    [ "$(cat lines.out)" = "$(printf 'user %s: first line\nuser %s: second line' "$(id -u)" "$(id -u)")" ]
ok 'the example: a notice board' $?
"$store" >store.out 2>&1 &
mine+=($!)
until_says store.out open && "$store" key 'a value' && [ "$("$store" key)" = 'a value' ] &&
    "$store" --times 3 key >times.out && grep -q '^3 reads, .* from mapped memory$' times.out &&
    "$store" key '' && ! "$store" key >none.out 2>&1 && [ "$(cat none.out)" = "store: there is no 'key'" ]
ok 'the example: a store whose clients write by requests and read by gets' $?
"$store" key 'another value' && "$caller" tear store key && ! "$store" key >torn.out 2>&1 && ! grep -q 'torn\|another value' torn.out
ok 'its readers take nothing whose sum is wrong' $?
"$store" other x && "$store" key again && [ "$("$store" key)" = again ]
ok 'and the daemon reads nothing that clients can write' $?

for how in window carried; do
    serve "apart-$how" apart $how
    timeout 60 "$caller" apart apart </dev/null >held.out 2>&1
    [ "$(grep -v '^heard' held.out)" = 'behind half a message: landed
puts whose notifications wait: RNL_TIMED_OUT
afterwards: RNL_OK' ] && grep -q '^landed 8 at 8, 0 wrong$' "apart-$how.out" &&
        grep -q '^long taken in$' "apart-$how.out"
    ok "half a message holds up no put, nor do puts hold up messages: $how" $?
    end "$server"
done

# ---- windows in runnel info ----
serve windows windows carried
windows_server=$server
counts() { # WORD NUMBER: the last runnel info has that counter of windows
    awk -v name="window.$1" -v n="$2" '$1 == name && $2 == n { found = 1 } END { exit !found }' info.out
}
declare -A waits=([put]='to take in a put' [get]='to answer a get' [atomic]='to answer an atomic'
    [quiet]='to take in what was put there (quiet)' [import]='to let an import in or refuse it')
for what in put get atomic quiet import; do
    mkfifo "feed-$what"
    "$caller" await windows "$what" <"feed-$what" >"await-$what.out" 2>&1 &
    client=$!
    mine+=("$client")
    exec 7>"feed-$what"
    until_says "await-$what.out" '^imported$' && "$runnel" info --pid "$client" >info.out &&
        counts imports 1 && ! grep -q '^  waiting for' info.out && kill -STOP "$windows_server"
    echo >&7
    for ((i = 0; i < 100; i++)); do
        "$runnel" info --pid "$client" >info.out 2>&1 && grep -qF "  waiting for rank 1 ${waits[$what]}" info.out && break
        sleep 0.05
    done
    [ $i -lt 100 ] && { [ "$what" != quiet ] || counts puts 1; } && kill -CONT "$windows_server" && wait "$client" && grep -q "^$what 0$" "await-$what.out"
    ok "runnel info --pid says that a call waits for a peer to answer: $what" $?
    kill -CONT "$windows_server"
    exec 7>&-
done
"$caller" import windows >import.out 2>&1 && "$runnel" info --pid "$windows_server" >info.out && counts offers 1 &&
    counts notifications 1 && "$runnel" info | grep -qE "$(id -u)/windows +process $windows_server\$"
ok 'runnel info shows the windows of a process, and the notifications that it ran' $?

# ---- deaths ----
mkfifo feed
"$caller" reach kv again <feed >staying.out 2>&1 &
client=$!
mine+=("$client")
exec 8>feed
until_says staying.out '^heard'
"$runnel" info >info.out && grep -qE "$(id -u)/kv +process $(sed -n 's/^reached uid .* pid //p' staying.out)\$" info.out
ok 'runnel info shows the services that the daemon keeps' $?
"$runnel" info --pid "$client" >peers.out && grep -q "^  peer 1 of the endpoint alone 0: user $(id -u), group $(id -g), process $(sed -n 's/^reached uid .* pid //p' staying.out), up$" peers.out
ok 'and the peers of an endpoint with their credentials' $?
d=$(daemon_of "$(id -u)")
kill -9 "$d"
echo >&8
until_says staying.out '^heard' 2
ok 'a connection outlives the daemon' $?
reach kv hello >after.out 2>&1 && grep -q '^heard hello$' after.out
ok 'another daemon is started, and hears of the services again' $?
[ "$(daemon_of "$(id -u)")" != "$d" ]
ok 'it is another process' $?
server_of_kv=$(sed -n 's/^reached uid .* pid //p' staying.out)
kill -9 "$server_of_kv"
echo >&8
until_says staying.out '^RNL_ERR_PEER_DEAD'
ok 'the death of a server is told to its client' $?
exec 8>&-
end "$client"
serve third kv
"$caller" reach kv bye <feed >staying2.out 2>&1 &
client=$!
exec 8>feed
until_says staying2.out '^heard'
kill -9 "$client"
until_says third.out '^gone 2$'
ok 'the death of a client is told to its server' $?
exec 8>&-
wait "$client" 2>/dev/null
for k in 1 2 3 4 5 6 7 8; do
    "$caller" reach kv "k$k" 20 >"kill-$k.out" 2>&1 </dev/null &
    one=$!
    sleep "0.00$k"
    kill -9 "$one" 2>/dev/null
    [ $((k % 4)) = 0 ] && kill -9 "$(daemon_of "$(id -u)")"
    wait "$one" 2>/dev/null
done
reach kv still >still.out 2>&1 && grep -q '^heard still$' still.out
ok 'clients and daemons that are killed on the way harm nobody' $?

# ---- at rest ----
serve many many names=1000
d=$(daemon_of "$(id -u)")
before=$(awk '{ print $14 + $15 }' "/proc/$d/stat")
sleep 2
after=$(awk '{ print $14 + $15 }' "/proc/$d/stat")
[ "$before" = "$after" ]
ok 'a daemon with 1,000 services uses no processor time at rest' $?
kb=$(awk '/^VmRSS/ { print $2 }' "/proc/$d/status")
[ "$kb" -le 4096 ]
ok "it has at most 4 MB of memory ($kb kB)" $?
reach many-999 x >x.out 2>&1 && grep -q '^heard x$' x.out
ok 'the last of them is reached' $?
kill -9 "$d"
reach many-998 x >x2.out 2>&1 && grep -q '^heard x$' x2.out
ok 'the next daemon hears of all of them' $?

# ---- floods ----
cat >flood.py <<'PYTHON'
import os, socket, struct, sys, time
own = sys.argv[1] == "own"
what = sys.argv[2]
name = "\0runnel-daemon-%s-%s" % (os.environ["RUNNEL_DAEMON"], sys.argv[3])
MAGIC, VERSION = 0x4d4c4e52, 3
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(1)
    s.connect(name)
    return s
def msg(kind, body): return struct.pack("HHI", kind, 0, 8 + len(body)) + body
GREET = msg(16, struct.pack("II", MAGIC, VERSION))
def serve(t, n): return msg(17, struct.pack("IIII64s256x", t, 0, 0, 0, n))
def reach(t, uid, n): return msg(19, struct.pack("II64s", t, uid, n))
held = []
if what == "silent":
    for i in range(3000):
        try: held.append(connect())
        except OSError: break
    print("held", len(held), flush=True)
elif what == "halves":
    import random
    random.seed(7)
    for i in range(2000):
        try:
            s = connect()
            whole = random.choice([GREET, serve(1, b"kv"), reach(1, 0, b"kv")])
            if random.random() < 0.5: s.send(GREET)
            n = random.randrange(len(whole))
            cut = bytearray(whole[:n] if random.random() < 0.5 else whole)
            if cut and random.random() < 0.7: cut[random.randrange(len(cut))] ^= 1 << random.randrange(8)
            if cut: s.send(bytes(cut))
            if random.random() < 0.2: held.append(s)
            else: s.close()
        except OSError: pass
    print("held", len(held), flush=True)
elif what == "waiting":  # sockets and files that nobody asked for, and services that nobody offers
    import array
    for i in range(20):
        try:
            s = connect()
            s.send(GREET)
            for k in range(200):
                fd = os.open("/dev/null", os.O_RDONLY) if k % 50 == 49 else socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[0].detach()
                s.sendmsg([reach(k, int(sys.argv[3]), b"nothing")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))], socket.MSG_DONTWAIT)
                os.close(fd)
            held.append(s)
        except OSError: pass
    print("held", len(held), flush=True)
elif what == "steal":  # tries to offer a service at the daemon of another user
    s = connect()
    s.send(GREET)
    s.send(serve(1, b"stolen"))
    kind, zero, n, request_id, status = struct.unpack("HHIIi", s.recv(100))
    print("status", status, flush=True)
    sys.exit(0)
elif what == "squat":
    for k in range(40):  # the name that can be known, and others like those that cannot
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.bind(name + ("-%016x" % k if k else ""))
        if k % 3 == 0: s.listen(k % 2)
        held.append(s)
    print("held", len(held), flush=True)
time.sleep(float(sys.argv[4]))
PYTHON
if [ -x "$python" ]; then
    for what in silent halves waiting; do
        "$python" flood.py own $what "$(id -u)" 4 >"flood-$what.out" 2>&1 &
        flood=$!
        until_says "flood-$what.out" '^held'
        reach kv flooded 30 >"flooded-$what.out" 2>&1 && grep -q '^heard flooded$' "flooded-$what.out"
        ok "a service is reached during a flood of the same user: $what" $?
        end "$flood"
    done
fi

# ---- other users: needs root, setpriv, and a user nobody ----
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && [ -x "$python" ]; then
    chmod 755 "$dir"
    other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    grouped=(setpriv --reuid=65534 --regid=65534 --groups=4242)
    if "${other[@]}" test -x "$caller" && "${other[@]}" "$python" -c ''; then
        "${other[@]}" timeout 60 "$caller" reach 0/kv hello </dev/null >foreign.out 2>&1
        grep -q '^RNL_ERR_REFUSED' foreign.out && ! grep -q 'uid 65534' third.out
        ok 'another user is not admitted unless it is said, and the server is not even asked' $?
        serve uid-server uids uid=65534
        "${other[@]}" timeout 60 "$caller" reach root/uids hello </dev/null >uid.out 2>&1 && grep -q '^heard hello$' uid.out &&
            grep -q '^request uid 65534 gid 65534' uid-server.out
        ok 'a user who is named is admitted, and seen as itself' $?
        serve gid-server gids gid=4242
        "${other[@]}" timeout 60 "$caller" reach 0/gids hello </dev/null >gid.out 2>&1
        grep -q '^RNL_ERR_REFUSED' gid.out && "${grouped[@]}" timeout 60 "$caller" reach 0/gids hello </dev/null >gid2.out 2>&1 &&
            grep -q '^heard hello$' gid2.out
        ok 'a supplementary group is a group' $?
        serve any-server all any
        "${other[@]}" timeout 60 "$caller" reach 0/all hello </dev/null >any.out 2>&1 && grep -q '^heard hello$' any.out
        ok 'anyone is anyone' $?
        "${other[@]}" timeout 60 "$caller" reach all hello 2 </dev/null >own.out 2>&1
        grep -q '^RNL_TIMED_OUT' own.out
        ok 'a name without a user is of the own user' $?
        "${other[@]}" "$caller" serve kv >foreign-server.out 2>&1 </dev/null &
        theirs=$!
        mine+=("$theirs")
        until_says foreign-server.out '^serving$' && reach 65534/kv hello >theirs.out 2>&1 && grep -q '^reached uid 65534' theirs.out
        ok 'the same name is another service of another user' $?
        "${other[@]}" "$python" flood.py other steal 0 0 >steal.out 2>&1
        grep -qx 'status -25' steal.out
        ok 'nobody offers services at the daemon of another user' $?
        for what in silent waiting; do
            "${other[@]}" "$python" flood.py other $what 0 6 >"foreign-flood-$what.out" 2>&1 &
            flood=$!
            until_says "foreign-flood-$what.out" '^held'
            reach kv flooded 30 >"foreign-flooded-$what.out" 2>&1 && grep -q '^heard flooded$' "foreign-flooded-$what.out"
            ok "a service is reached during a flood of another user: $what" $?
            end "$flood"
        done
        end "$theirs"
        p=$(daemon_of 65534)
        [ -z "$p" ] || kill "$p"
        # A stranger takes the name that can be known, and others, some without answering.
        export RUNNEL_DAEMON=s$$
        "${other[@]}" "$python" flood.py other squat 0 30 >squat.out 2>&1 &
        squatter=$!
        until_says squat.out '^held'
        serve squatted kv && reach kv hello >squatted2.out 2>&1 && grep -q "^reached uid 0 pid $server$" squatted2.out
        ok 'who takes the name of the daemon is passed over' $?
        end "$squatter"
        "$runnel" daemon --idle 1 2>second-daemon.out
        [ $? = 71 ] && grep -q 'runs already' second-daemon.out
        ok 'when the name is free again no second daemon takes it' $?
        reach kv hello >squatted3.out 2>&1 && grep -q "^reached uid 0 pid $server$" squatted3.out
        ok 'and who looks for the first one still finds it' $?
        end "$server"
        # One daemon for all.
        export RUNNEL_DAEMON=n$$
        "$runnel" daemon --node --idle 5 &
        node=$!
        for ((i = 0; i < 100; i++)); do
            [ -z "$(daemon_of node)" ] || break
            sleep 0.05
        done
        serve node-server kv any
        "${other[@]}" "$caller" serve kv any >node-theirs.out 2>&1 </dev/null &
        theirs=$!
        mine+=("$theirs")
        until_says node-theirs.out '^serving$'
        "${other[@]}" timeout 60 "$caller" reach 0/kv hello </dev/null >node.out 2>&1 && grep -q "^reached uid 0 pid $server$" node.out &&
            reach 65534/kv hello >node2.out 2>&1 && grep -q '^reached uid 65534' node2.out && [ -z "$(daemon_of 0)$(daemon_of 65534)" ]
        ok 'the daemon of the node keeps the services of all users apart' $?
        end "$theirs" "$server"
        for ((i = 0; i < 200; i++)); do
            kill -0 "$node" 2>/dev/null || break
            sleep 0.05
        done
        wait "$node"
        ok 'and ends when it has been idle for as long as it was told' $?
        export RUNNEL_DAEMON=t$$
    else
        echo 'ok - other users # SKIP the build is not readable for user 65534'
    fi
else
    echo 'ok - other users # SKIP needs root, setpriv and /usr/bin/python3'
fi

# ---- the end ----
end "${mine[@]}"
mine=()
for ((i = 0; i < 300; i++)); do
    [ -n "$(daemon_of "$(id -u)")" ] || break
    sleep 0.1
done
[ -z "$(daemon_of "$(id -u)")" ]
ok 'a daemon that nobody needs ends' $?
exit "$failed"
