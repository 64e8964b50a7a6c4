#!/usr/bin/env bash
# Programs that know nothing of Runnel, with and without librunnel-rpc: their prints are the same, whatever made the
# client, the server and its loop; and what the library promises besides: clients and servers without it, deaths,
# forks, limits, idle servers, clients that do harm. Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
# test_checks.sh has all checks of all ways. Prints "ok - name" or "not ok - name"; exits 77 if something is missing.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/head.sh"

# ---- the same prints ----

same both run clnttcp core
same both run clntudp core
same tli select tlitcp core
same tli epoll tliudp core
same vc epoll2 vc core
same dg poll dg core
same bufcreate select bufcreate core
same unix poll clntunix core
same both daemon clnttcp core

# ---- who has the library and who does not ----

begin_server without both run
call with clnttcp core && cmp -s <(grep -v checks expected) <(grep -v checks out) && grep -q 'runs without this library' client.err
ok 'a server without the library is left alone' $?
call with clntudp simple && grep -q 'runs without this library' client.err
ok 'so is one over UDP' $?
end_server
begin_server with both run
call without clnttcp core && ! grep -q upgraded server.err
ok 'a client without the library is served as ever' $?
call off clnttcp simple && ! grep -q upgraded server.err
ok 'RUNNEL_RPC=off does nothing' $?
call with clnttcp once && ! grep -q . server.err client.err
ok 'one call is not worth a greeting' $?
call now clnttcp once && ! grep -q 'stays' client.err
ok 'unless RUNNEL_RPC=now asks for it' $?
end_server

begin_server with both prefork
call with clnttcp core && upgraded 10
ok 'servers that forked share a port: each opens its own listener' $?
end_server

# ---- servers that fork for each call ----

for kind in clnttcp clntudp; do
    begin_server without both run
    call without $kind forking
    mv out expected
    end_server
    begin_server with both run
    call with $kind forking && cmp -s expected out && upgraded 1
    status=$?
    [ $status = 0 ] || diff expected out | head -n 20
    ok "a child that the server forks takes the arguments and replies, whatever its parent serves meanwhile ($kind)" $status
    call with $kind beside && upgraded 1
    ok "children of a server reply beside it ($kind)" $?
    end_server
done

# ---- deaths ----

for kind in clnttcp clntudp; do
    export CALLS_PORT=$((20000 + $$ % 20000))
    begin_server with both run
    set_how now
    timeout 60 "${how[@]}" "$client" $kind $CALLS_PORT death >out 2>client.err &
    calling=$!
    for _ in $(seq 250); do
        grep -q hanging out && break
        sleep 0.02
    done
    sleep 0.2
    end_server
    begin_server with both run
    wait $calling
    status=$?
    if [ $kind = clnttcp ]; then
        [ $status = 0 ] && grep -q 'Unable to receive' out && [ "$(sed -n 's/^told after \([0-9]*\) ms.*/\1/p' out)" -lt 3500 ]
        ok 'a TCP client learns of the death of its server during a call' $?
    else
        [ $status = 0 ] && grep -q 'and then: served' out &&
            [ "$(grep -c 'upgraded to shared memory$' client.err)" -ge 2 ]
        ok 'a UDP client goes on with the next server, and is upgraded again' $?
    fi
    end_server
    unset CALLS_PORT
done

begin_server with both run
kill -STOP "$serving_pid"
set_how now
timeout 60 "${how[@]}" "$client" clntudp "$(where clntudp)" patient >out 2>client.err &
calling=$!
for _ in $(seq 500); do
    grep -q 'is asked again 16 calls later' client.err && break
    sleep 0.02
done
kill -CONT "$serving_pid"
wait $calling && grep -q 'is asked again 16 calls later' client.err && ! grep -q 'again 128' client.err && upgraded 1
ok 'a server that has no time for a greeting is asked again' $?
end_server

# ---- one busy client, others, and idleness ----

begin_server with both run
set_how now
timeout 60 "${how[@]}" "$client" clnttcp "$(where clnttcp)" busy >busy.out 2>busy.err &
busy=$!
timeout 60 "$hostile" slow "$(where clnttcp)" >hostile.out 2>&1 &
slow=$!
sleep 0.3
call without clnttcp simple
ok 'a busy client over the link starves no other' $?
call with clntudp simple
ok 'nor a second one' $?
for _ in $(seq 500); do
    grep -q idle busy.out && break
    sleep 0.02
done
sleep 0.3
ticks() { awk '{ print $14 + $15 }' "/proc/$serving_pid/stat"; }
before=$(ticks)
sleep 1
after=$(ticks)
[ $((after - before)) -le 1 ]
ok "a server whose client is idle takes no processor time ($((after - before)) ticks in a second)" $?
wait $busy
ok 'the busy client was served each time' $?
wait $slow
status=$?
[ $status = 0 ] || cat hostile.out
ok 'who comes to the listener and says nothing is hung up on after five seconds' $status
end_server

# ---- limits ----

(
    ulimit -n 48
    begin_server with both run
    call with clnttcp handles && [ "$(grep -c 'was upgraded' server.err)" -ge 1 ] && [ "$(grep -c 'was upgraded' server.err)" -le 12 ]
    status=$?
    end_server
    exit $status
)
ok 'where descriptors are few, clients stay with libtirpc' $?

# ---- identity ----

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$dir"
    begin_server strict both run
    how=(setpriv --reuid 65534 env "RUNNEL_RPC=explain,now" "LD_PRELOAD=$library")
    timeout 60 "${how[@]}" "$client" clnttcp "$(where clnttcp)" who >out 2>client.err
    [ $? = 1 ] && grep -q 'wrong: who' out && grep -q 'uid of another user was refused' server.err
    ok 'RUNNEL_RPC=strict: nobody speaks as another user' $?
    end_server
    begin_server with both run
    timeout 60 "${how[@]}" "$client" clnttcp "$(where clnttcp)" who >out 2>client.err
    ok 'without it AUTH_SYS is as true as it was' $?
    end_server
else
    echo 'ok - RUNNEL_RPC=strict # SKIP needs root and setpriv'
fi

# ---- harm ----

begin_server with both run
for harm in 'scribble 1' 'scribble 2' 'cells 1' 'cells 2' token half silent bell stop; do
    # shellcheck disable=SC2086 # words
    set -- $harm
    timeout 60 "$hostile" "$1" "$(where clnttcp)" "${2:-1}" >hostile.out 2>&1
    status=$?
    [ $status = 0 ] && kill -0 "$serving_pid" && call with clnttcp simple && upgraded 1
    ok "a client that does harm ($harm) ends, and the next one is served" $?
done
grep -q 'AddressSanitizer\|runtime error' server.err && failed=1
end_server

# ---- kill -9 at each step of an introduction ----

descriptors() { find "/proc/$serving_pid/fd" -mindepth 1 2>/dev/null | wc -l; }

begin_server with both run
call with clnttcp simple
before=$(descriptors)
bad=
for step in 1 2 3 4 5 6 7; do
    timeout 60 "$dying" client $step "$(where clnttcp)" 2>dying.err
    [ $? = 137 ] && kill -0 "$serving_pid" && call with clnttcp simple && upgraded 1 || bad="$bad $step"
done
for _ in $(seq 250); do
    [ "$(descriptors)" -le "$before" ] && break
    sleep 0.02
done
[ -z "$bad" ] && [ "$(descriptors)" -le "$before" ]
ok "a client that is killed at a step of its introduction leaves nothing behind${bad:+, but after:$bad}" $?
end_server

begin_server with both run
call with clnttcp simple
before=$(descriptors)
set_how now
for i in $(seq 20); do
    [ $((i % 2)) = 0 ] && kind=clnttcp || kind=clntudp
    : >client.err
    "${how[@]}" "$client" "$kind" "$(where "$kind")" told < <(yes 'null 50') >out 2>client.err &
    calling=$!
    for _ in $(seq 3000); do
        grep -q 'upgraded to shared memory$' client.err && break
        sleep 0.02
    done
    kill -9 $calling
    wait $calling 2>/dev/null
done
for _ in $(seq 3000); do
    [ "$(descriptors)" -le "$before" ] && break
    sleep 0.02
done
[ "$(grep -c 'was upgraded' server.err)" -ge 21 ] && [ "$(descriptors)" -le "$before" ] && call with clnttcp simple
status=$?
ok "20 clients that are killed during their calls leave no descriptor behind ($before before, $(descriptors) after)" $status
end_server

bad=
set_how now
for step in 1 2 3 4 5 6 7; do
    : >served
    timeout 60 "$dying" server $step >served 2>dying.err &
    serving=$!
    for _ in $(seq 500); do
        [ -s served ] && break
        sleep 0.02
    done
    timeout 60 "${how[@]}" "$client" clnttcp "$(cat served)" simple >out 2>client.err
    told=$?
    wait $serving
    [ $? = 137 ] && [ $told = 1 ] && [ "$(grep -c . dying.err)" = 0 ] || bad="$bad $step"
done
serving=
ok "a client whose server is killed at a step of the introduction is told${bad:+, but not after:$bad}" "$([ -z "$bad" ]; echo $?)"

# ---- what a tool that makes one call pays ----

if nm -D "$library" | grep -q __asan_init; then
    echo 'ok - nothing of the library runs when it is loaded # SKIP a sanitizer does'
else
    # One function, of the compiler's own, is in each library. A second one was the question what the processor can do,
    # which made up a third of what loading the library costs.
    [ "$(readelf -dW "$library" | awk '/INIT_ARRAYSZ/ { print $3 }')" = 8 ]
    ok 'nothing of the library runs when it is loaded' $?
fi

# ---- the command ----

"$runnel" rpc >said 2>&1
[ $? = 64 ] && grep -q 'which program to start' said
ok 'runnel rpc without a command says what it takes' $?
"$runnel" rpc ./nowhere >said 2>&1
[ $? = 127 ] && grep -q "there is no program './nowhere'" said
ok 'a command that is not there' $?
[ "$("$runnel" rpc --print-library)" -ef "$library" ]
ok '--print-library' $?
if command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1; then
    "$runnel" rpc busybox true >said 2>&1
    [ $? = 126 ] && grep -q 'linked statically' said
    ok 'a static program' $?
fi
exit "$failed"
