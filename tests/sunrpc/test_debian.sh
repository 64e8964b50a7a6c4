#!/usr/bin/env bash
# Programs of Debian as they are, with and without librunnel-rpc, behind an rpcbind of this test, in namespaces of its
# own: what the client prints is the same, and its calls were upgraded. Also our test program with what needs rpcbind:
# svc_create, clnt_create, clnt_tp_create, clnt_create_vers. A program that is not installed is skipped.
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "$0")/../support/test.sh"
set -o pipefail
library=$build/adapters/sunrpc/librunnel-rpc.so
export PATH=$PATH:/usr/sbin:/sbin
if [ ! -e "$library" ]; then
    echo 'libtirpc is not installed (libtirpc-dev), so librunnel-rpc was left out'
    exit 77
fi
if nm -D "$library" | grep -qE '__(tsan|asan)_init'; then
    echo 'a sanitizer cannot be preloaded into programs of others'
    exit 77
fi
needs_commands rpcbind rpcinfo unshare ip
if [ "${1:-}" != inside ]; then
    if [ "$(id -u)" != 0 ] || ! unshare --net --mount --pid --fork true 2>/dev/null; then
        echo 'namespaces of its own take root'
        exit 77
    fi
    rm -rf "$dir" # an exec runs no trap
    exec unshare --net --mount --pid --fork --kill-child --mount-proc "$0" inside
fi

# All processes end with this one, and what is mounted goes with them.
cd "$dir" || exit 1
ip link set lo up
mount -t tmpfs tmpfs /run && mkdir -p /run/rpcbind /run/sendsigs.omit.d
mount -t tmpfs tmpfs /var && mkdir -p /var/lib/nfs/{sm,sm.bak,v4recovery} /var/yp/somewhere "$dir"/state/{sm,sm.bak}
if [ -x /usr/lib/yp/makedbm ]; then
    echo 'root root:x:0:0:root:/root:/bin/sh' | /usr/lib/yp/makedbm - /var/yp/somewhere/passwd.byname
fi
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
ln -s /run /var/run

registered() { # PROGRAM [gone]
    for _ in $(seq 250); do
        if rpcinfo -p 127.0.0.1 2>/dev/null | awk '{ print $1 }' | grep -qx "$1"; then
            [ -z "${2:-}" ] && return 0
        elif [ -n "${2:-}" ]; then
            return 0
        fi
        sleep 0.02
    done
    return 1
}

rpcbind -f -w 2>rpcbind.err &
binding=$!
registered 100000
status=$?
[ $status = 0 ] || sed 's/^/    /' rpcbind.err
ok 'rpcbind answers' $status
[ $status = 0 ] || exit 1

upgraded() { # NUMBER UPGRADES
    grep -q "program $1 version .*: upgraded to shared memory" errors.1 ||
        { [ "$2" = 1 ] && grep -q 'was upgraded to shared memory' server.1 errors.1; }
}

# pair NAME PROGRAM UPGRADES SERVER... -- CLIENT...: UPGRADES 0 = the client's calls are too few, or not made by libtirpc; 1 = one side says
# that it was upgraded; 2 = the client says so, and has calls left, which then go through shared memory
pair() {
    local name=$1 number=$2 upgrades=$3 serve=() status pid with program
    shift 3
    while [ "$1" != -- ]; do
        serve+=("$1")
        shift
    done
    shift
    for program in "${serve[0]}" "$1"; do
        if ! command -v "$program" >/dev/null; then
            echo "ok - $name # SKIP $program is not installed"
            return
        fi
        if ldd "$(command -v "$program")" 2>/dev/null | grep -q 'not found'; then
            echo "ok - $name # SKIP a library of $program is not installed"
            return
        fi
    done
    for with in 0 1; do
        local how=()
        [ $with = 1 ] && how=(env "RUNNEL_RPC=explain,now" "$runnel" rpc)
        "${how[@]}" "${serve[@]}" >"server.$with" 2>&1 &
        pid=$!
        if ! registered "$number"; then
            kill "$pid" 2>/dev/null
            wait "$pid" 2>/dev/null
            if [ $with = 0 ]; then
                echo "ok - $name # SKIP ${serve[0]} does not start here, with or without: $(head -n 1 server.0)"
                return
            fi
        fi
        # Servers register their versions and transports one by one. A client of few calls may end, and its server be
        # ended, before a busy server has said that it was upgraded.
        for _ in $(seq 20); do
            if timeout 60 "${how[@]}" "$@" >"client.$with" 2>"errors.$with"; then
                if [ $with = 0 ] || [ "$upgrades" = 0 ] || upgraded "$number" "$upgrades"; then break; fi
            fi
            sleep 0.2
        done
        kill "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
        # Those that became daemons: nobody else has this program here.
        program=$(readlink -f "$(command -v "${serve[0]}")")
        for p in /proc/[0-9]*; do
            [ "$(readlink "$p/exe")" = "$program" ] && kill -9 "${p#/proc/}" 2>/dev/null
        done
        for v in 1 2 3 4 5; do
            rpcinfo -d "$number" $v 2>/dev/null
        done
        registered "$number" gone
    done
    cmp -s <(sed 's/[0-9][0-9:.]*/N/g' client.0) <(sed 's/[0-9][0-9:.]*/N/g' client.1) && [ -s client.1 ]
    status=$?
    [ $status = 0 ] || diff client.0 client.1 | sed 's/^/    /' | head
    ok "$name: the same with and without" $status
    if [ "$upgrades" != 0 ]; then
        upgraded "$number" "$upgrades"
        status=$?
        [ $status = 0 ] || sed 's/^/    /' server.1 errors.1 | tail -n 6
        ok "$name: upgraded" $status
    fi
}

pair 'rpc.rstatd and rsysinfo' 100001 0 rpc.rstatd -- rsysinfo 127.0.0.1
# rpc.rstatd answers a null call twice, which confuses libtirpc's client of several calls.
pair 'rpc.rstatd and rpcinfo' 100001 1 rpc.rstatd -- rpcinfo -T udp 127.0.0.1 100001 1
pair 'rpc.rquotad and rpcinfo' 100011 1 rpc.rquotad -F -- rpcinfo -T tcp 127.0.0.1 100011
pair 'rpc.statd and rpcinfo' 100024 1 rpc.statd -F --no-notify -P "$dir/state" -- rpcinfo -T tcp 127.0.0.1 100024
# showmount makes one call, which goes the old way, and may end before mountd has answered its greeting. rpcinfo calls each version.
pair 'rpc.mountd and showmount' 100005 0 rpc.mountd -F -- showmount -e 127.0.0.1
pair 'rpc.mountd and rpcinfo' 100005 2 rpc.mountd -F -- rpcinfo -T tcp 127.0.0.1 100005
pair 'rpc.rusersd and rpcinfo' 100002 1 rpc.rusersd -- rpcinfo -T udp 127.0.0.1 100002
pair 'ypserv and rpcinfo' 100004 1 ypserv -f -- rpcinfo -T tcp 127.0.0.1 100004
pair 'ypserv and yppoll' 100004 1 ypserv -f -- yppoll -h 127.0.0.1 -d somewhere passwd.byname
pair 'ypserv and ypcat' 100004 1 ypserv -f -- ypcat -h 127.0.0.1 -d somewhere passwd.byname

# What goes through rpcbind in our own test program.
for kind in tcp udp tptcp tpudp vers; do
    for with in 0 1; do
        how=()
        [ $with = 1 ] && how=(env RUNNEL_RPC=explain "$runnel" rpc)
        "${how[@]}" "$build/tests/sunrpc-server" bind run >served 2>"server.$with" &
        pid=$!
        registered $((0x20000642))
        sleep 0.2
        timeout 60 "${how[@]}" "$build/tests/sunrpc-client" $kind 127.0.0.1 simple >"out.$with" 2>"errors.$with"
        kill "$pid"
        wait "$pid" 2>/dev/null
        rpcinfo -d $((0x20000642)) 1
        rpcinfo -d $((0x20000642)) 3
    done
    cmp -s out.0 out.1 && grep -q ' 0 wrong' out.1 && grep -q 'upgraded to shared memory$' errors.1
    status=$?
    [ $status = 0 ] || sed 's/^/    /' out.0 out.1 errors.1 server.1 | tail
    ok "svc_create, client by rpcbind, $kind: the same, upgraded" $status
done
kill $binding
wait $binding 2>/dev/null
exit "$failed"
