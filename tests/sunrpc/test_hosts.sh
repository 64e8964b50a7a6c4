#!/usr/bin/env bash
# SunRPC between two hosts, which are network namespaces here, each with a daemon: ordinary clients and servers whose
# calls go over Runnel's packets where the daemons have one key, and over TCP everywhere else; and what deaths cost.
# What a client's calls went over is counted by itself (RUNNEL_RPC=explain, when its handle ends).
# shellcheck disable=SC1091,SC2154,SC2317,SC2034,SC2086 # hosts.sh sets some; functions are called by traps and by name
. "$(dirname "${BASH_SOURCE[0]}")/../multi/hosts.sh"
library=$build/adapters/sunrpc/librunnel-rpc.so
if [ ! -e "$library" ]; then
    echo 'libtirpc is not installed (libtirpc-dev), so librunnel-rpc was left out'
    exit 77
fi
if nm -D "$library" | grep -q __tsan_init; then
    echo 'the thread sanitizer cannot be preloaded'
    exit 77
fi
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0:detect_leaks=0"
export RUNNEL_DAEMON=t$$ CALLS_HOST=10.77.0.2 CALLS_SECONDS=600
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
start() { # HOST FILE COMMAND...: in the background; what it says is in FILE and FILE.err; sets $started
    : >"$2" # what an earlier one has said is not to be taken for its word
    ip netns exec "$name-$1" "${@:3}" >"$2" 2>"$2.err" </dev/null &
    started=$!
    mine+=("$started")
}
end() { # PROCESS...
    local p
    for p in "$@"; do
        kill -9 "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
}
within() { # COMMAND...: is true within a minute
    local i
    for ((i = 0; i < 1200; i++)); do
        "$@" && return 0
        sleep 0.05
    done
    echo "never true: $*" >said
    return 1
}
says() { # FILE PATTERN [COUNT]
    [ "$(grep -cE -- "$2" "$1" 2>/dev/null)" -ge "${3:-1}" ]
}
listens() { # HOST
    ip netns exec "$name-$1" grep -q "@runnel-daemon-$RUNNEL_DAEMON" /proc/net/unix
}
daemon() { # HOST OPTION...: sets $started
    start "$1" "daemon$1" "$runnel" daemon --idle 600 "${@:2}"
    within listens "$1"
}
with=(env RUNNEL_RPC=explain "$runnel" rpc)
serve() { # KIND LOOP [COMMAND...]: on host 2; sets $serving and $port
    start 2 served "${@:3}" "$build/tests/sunrpc-server" "$1" "$2"
    serving=$started
    within says served '^ready'
    tcp=$(awk '/^tcp/ { print $2 }' served)
    udp=$(awk '/^udp/ { print $2 }' served)
}
call() { # KIND PORT PART COMMAND...: to out and err
    ip netns exec "$name-1" timeout -k 5 600 "${@:4}" "$build/tests/sunrpc-client" "$1" "$2" "$3" >out 2>err </dev/null
}
# A client on host 1 that does what it is told, one line after the other: begin NAME KIND PORT [COMMAND...]
declare -A lines fds pids
begin() {
    local fd
    mkfifo "$1.in"
    ip netns exec "$name-1" "${@:4}" "$build/tests/sunrpc-client" "$2" "$3" told >"$1" 2>"$1.err" <"$1.in" &
    pids[$1]=$!
    mine+=($!)
    exec {fd}>"$1.in"
    fds[$1]=$fd
    lines[$1]=0
}
answered() { # NAME: all lines
    [ "$(wc -l <"$1")" -ge "${lines[$1]}" ]
}
tell() { # NAME LINE: waits until it is done; sets $answer
    echo "$2" >&"${fds[$1]}"
    lines[$1]=$((lines[$1] + 1))
    within answered "$1"
    answer=$(sed -n "${lines[$1]}p" "$1")
}
# Calls until the calls go over the link, or it is said that they never will.
settle() { # NAME [COUNT of handles so far]
    local i
    for ((i = 0; i < 1200; i++)); do
        says "$1.err" 'upgraded to Runnel|stays with libtirpc' "${2:-1}" && return 0
        tell "$1" 'null 1'
        sleep 0.05
    done
    cp "$1.err" said
    return 1
}
finish() { # NAME: sets $far, how many calls of the last handle went over the link
    echo quit >&"${fds[$1]}"
    wait "${pids[$1]}"
    far=$(sed -n 's/.* \([0-9]*\) calls went over Runnel.*/\1/p' "$1.err" | tail -n 1)
    far=${far:-0}
}

hosts_up 2
"$runnel" key --file key --new >made && "$runnel" key --file other --new >/dev/null || exit 1

# ---- no key ----
serve both run "${with[@]}"
call clnttcp "$tcp" simple "${with[@]}" && grep -q 'this host has no key' err && ! grep -q upgraded err
ok 'without a key calls go over TCP, and it is said why' $?
daemon 1 --key key
daemon1=$started
call clnttcp "$tcp" simple "${with[@]}" && grep -q "its server's host has no key" err
ok 'so they do if only the client has one' $?

# ---- two keys ----
daemon 2 --key other
daemon2=$started
begin wrong clnttcp "$tcp" "${with[@]}"
settle wrong && grep -q 'daemons of the two hosts do not reach each other' wrong.err && tell wrong 'null 10' && [[ $answer == *Success* ]]
finish wrong
[ "$far" = 0 ] && ! grep -q upgraded wrong.err served.err
ok 'a host with another key is not believed: TCP goes on' $?
end "$daemon2"
daemon 2 --key key
daemon2=$started

# ---- one key ----
end "$serving"
for loop in run select poll epoll; do
    serve both "$loop" "${with[@]}"
    for kind in clnttcp clntudp; do
        [ $kind = clnttcp ] && port=$tcp || port=$udp
        status=0
        for part in simple strings shapes errors who batch threads fork handles bytes; do
            call $kind "$port" $part && mv out expected && call $kind "$port" $part "${with[@]}" && cmp -s expected out && continue
            status=1
            { echo "$part:"; diff expected out; cat err; } >said 2>&1
        done
        ok "$kind, $loop: all calls say what they say over libtirpc" $status
    done
    end "$serving"
done
start 2 idle.served "${with[@]}" "$build/tests/sunrpc-server" tcp run
within says idle.served '^ready'
begin idle clnttcp "$(awk '/^tcp/ { print $2 }' idle.served)" "${with[@]}"
settle idle
tell idle 'null 3'
since=$SECONDS
serve both run "${with[@]}"
call clnttcp "$tcp" once "${with[@]}" && ! grep -q . err
ok 'one call is not worth a greeting' $?

begin one clnttcp "$tcp" "${with[@]}"
settle one
done=${lines[one]}
tell one 'null 500'
tell one 'bytes 8000000'
[[ $answer == *Success* ]]
status=$?
finish one
[ $status = 0 ] && grep -q ' 0 wrong' one && [ "$far" -ge 501 ] && [ "$far" -lt $((501 + done)) ]
ok 'null and large calls are counted on the link' $?
begin many clnttcp "$tcp" "${with[@]}"
settle many
tell many 'batch 5000'
tell many 'destroy'
tell many 'total'
[[ $answer == 'total 0: RPC: Success, 5000' ]]
ok 'what nobody answers has arrived when the handle ends' $?
finish many
for kind in clnttcp clntudp; do
    [ $kind = clnttcp ] && port=$tcp || port=$udp
    call $kind "$port" forking "${with[@]}" && grep -q 'upgraded to Runnel' err
    ok "a child that the server forks takes the arguments and replies, whatever its parent serves meanwhile ($kind)" $?
done
call clnttcp "$tcp" beside "${with[@]}" && [ "$(sed -n 's/.* \([0-9]*\) calls went over Runnel.*/\1/p' err)" -ge 3000 ]
ok 'children of a server reply beside it' $?
names=(c1 c2 c3 c4 c5 c6 c7 c8)
for c in "${names[@]}"; do
    begin "$c" clnttcp "$tcp" "${with[@]}"
done
for c in "${names[@]}"; do
    settle "$c"
done
status=0
for c in "${names[@]}"; do
    echo 'bytes 300000' >&"${fds[$c]}"
    lines[$c]=$((lines[$c] + 1))
done
for c in "${names[@]}"; do
    within answered "$c"
    finish "$c"
    grep -q ' 0 wrong' "$c" && [ "$far" -ge 1 ] || status=1
done
ok 'several clients at once' $status
begin nobody clnttcp "$tcp" "${with[@]}"
settle nobody
tell nobody 'nobody 3000000' && [[ $answer == *'Procedure unavailable'* ]] && tell nobody 'null 3' && [[ $answer == *Success* ]]
status=$?
finish nobody
[ $status = 0 ] && [ "$far" -ge 4 ]
ok 'many bytes for nobody are taken in, and the link stays' $?
end "$serving"
serve both run
call clnttcp "$tcp" simple "${with[@]}" && grep -q 'runs without this library' err
ok 'a server without the library is left alone' $?
end "$serving"

# ---- deaths ----
serve both run "${with[@]}"
begin restarted clntudp "$udp" "${with[@]}"
settle restarted
end "$serving"
CALLS_PORT=$udp serve udp run "${with[@]}"
tell restarted 'null 3' && [[ $answer == *Success* ]] && settle restarted 2
status=$?
tell restarted 'null 3'
finish restarted
[ $status = 0 ] && [ "$far" -ge 3 ]
ok 'a server that is started again is found again by a client of UDP' $?
end "$serving"
serve both run "${with[@]}"
begin dying clnttcp "$tcp" "${with[@]}"
settle dying
begin staying clnttcp "$tcp" "${with[@]}"
settle staying
end "${pids[staying]}"
within says served.err 'a client on another host has gone' && ! says served.err 'a client on another host has gone' 2
ok 'a client that is killed is dead for its server, and for nobody else' $?
tell dying 'null 5'
end "$daemon1"
tell dying 'null 5' && [[ $answer == *Success* ]]
status=$?
end "$daemon2"
tell dying 'null 5' && [[ $answer == *Success* ]] && [ $status = 0 ]
ok 'a link outlives both daemons' $?
daemon 1 --key key
daemon1=$started
daemon 2 --key key
daemon2=$started
begin later clnttcp "$tcp" "${with[@]}"
settle later && tell later 'null 5' && [[ $answer == *Success* ]]
finish later
[ "$far" -ge 5 ]
ok 'daemons that are started again introduce again' $?
begin told clnttcp "$tcp" "${with[@]}"
settle told && tell told 'null 5'
end "$serving"
tell told 'null 5'
[[ $answer == *'Unable to receive'* ]]
ok 'a client of TCP is told that its server was killed' $?
tell dying 'null 5'
[[ $answer == *'Unable to receive'* ]]
ok 'so is one whose daemons had ended before' $?
finish told
finish dying

# ---- who is silent for longer than a peer may be ----
while ((SECONDS - since < 40)); do
    sleep 1
done
tell idle 'null 5'
[[ $answer == *Success* ]]
status=$?
finish idle
[ $status = 0 ] && [ "$far" -ge 8 ]
ok 'a link that was idle carries the next call' $?
exit $failed
