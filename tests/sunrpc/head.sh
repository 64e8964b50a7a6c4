# shellcheck shell=bash
# What the tests of programs with and without librunnel-rpc begin with, sourced by them: the head of all scripts, a server
# and a client that begin and end, and the current folder, which is theirs.
# shellcheck source=tests/support/test.sh disable=SC2034 # for those who source this
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
set -o pipefail
shown='out client.err server.err hostile.out'

library=$build/adapters/sunrpc/librunnel-rpc.so
server=$build/tests/sunrpc-server client=$build/tests/sunrpc-client hostile=$build/tests/sunrpc-hostile dying=$build/tests/sunrpc-dying
if [ ! -e "$library" ]; then
    echo 'libtirpc is not installed (libtirpc-dev), so librunnel-rpc was left out'
    exit 77
fi
if nm -D "$library" | grep -q __tsan_init; then
    echo 'the thread sanitizer cannot be preloaded'
    exit 77
fi
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0:detect_leaks=0"

serving=
clean_up() {
    end_server
    rm -rf "$dir"
}
cd "$dir" || exit 1
export CALLS_PATH=$dir/socket

# begin_server WITH KIND LOOP: WITH is how to start it, "with", "without", or words for RUNNEL_RPC
how=()
set_how() {
    case $1 in
    without) how=() ;;
    with) how=(env RUNNEL_RPC=explain "$runnel" rpc) ;;
    *) how=(env "RUNNEL_RPC=explain,$1" "$runnel" rpc) ;;
    esac
}
begin_server() {
    rm -f "$CALLS_PATH" served
    : >served
    set_how "$1"
    "${how[@]}" "$server" "$2" "$3" >served 2>server.err &
    serving=$!
    for _ in $(seq 500); do
        grep -q '^ready' served && break
        sleep 0.02
    done
    serving_pid=$(awk '/^ready/ { print $2 }' served)
}
end_server() {
    [ -z "$serving" ] && return
    kill -9 "$serving" "${serving_pid:-$serving}" 2>/dev/null
    wait "$serving" 2>/dev/null
    serving=
}
where() { # KIND of the client
    case $1 in
    *udp* | dg | bufcreate) awk '/^udp/ { print $2 }' served ;;
    clntunix) echo "$CALLS_PATH" ;;
    *) awk '/^tcp/ { print $2 }' served ;;
    esac
}
call() { # WITH KIND PART, to out and client.err
    set_how "$1"
    timeout 100 "${how[@]}" "$client" "$2" "$(where "$2")" "$3" >out 2>client.err
}
upgraded() { # N: so many handles of the client, at least
    [ "$(grep -c 'upgraded to shared memory$' client.err)" -ge "$1" ] && grep -q 'was upgraded to shared memory$' server.err
}

# The prints of a client are the same without the library and with it.
same() { # SERVER LOOP CLIENT PART [CHECKS: how many it makes]
    begin_server without "$1" "$2"
    call without "$3" "$4"
    mv out expected
    end_server
    begin_server with "$1" "$2"
    call with "$3" "$4" && cmp -s expected out && upgraded 20 && { [ -z "${5:-}" ] || grep -qx "$5 checks, 0 wrong" out; }
    local status=$?
    [ $status = 0 ] || diff expected out | sed 's/^/    /' | head -n 20
    ok "server $1 in $2, client $3: the same, upgraded" $status
    end_server
}
