#!/usr/bin/env bash
# The tests of `runnel bench` that are more than a pair over shared memory: over datagrams, between network namespaces, and of more
# processes. Each prints the rows that runnel-bench(1) says it has, and nothing is left behind. Times are never judged.
# shellcheck source=tests/bench/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
short=(--max-time 0.3)
n='[None]' bare='["raw", "tcp"], [None]'

rows peers shm '[("peers", ["native", "fm"], [1, 15, 63], [8])]' peers "${short[@]}"
rows idle shm '[("idle-wait", ["native", "fm"], [1, 63], [0]), ("idle-poll", ["native"], [1, 63], [0]),
    ("idle-extract", ["native"], [1, 63], [0])]' idle "${short[@]}"
rows wake shm '[("wake-wait", ["native"], [None], [8]), ("wake-poll", ["native"], [None], [8]),
    ("wake-unarmed", ["native"], [1, 64], [8]), ("wake-armed", ["native"], [1, 64], [8])]' wake "${short[@]}"
rows "barrier of five" shm '[("barrier", ["native"], [5], [8])]' barrier --ranks 5 "${short[@]}"
rows layered shm "[(t, ['fm', 'fm1'], $n, [1, 100]) for t in ('layered', 'layered-stream')]" layered --size 1,100 "${short[@]}"
rows startup shm '[("startup-run", ["native"], [1, 2, 16, 64], [0]), ("startup-job", ["native"], [1, 2, 16, 64], [0])]' \
    startup "${short[@]}"
rows am shm '[("am-trip", ["am"], [None], [8]), ("am-rate", ["am"], [1, 4, 16, 64, 128, 512], [8]),
    ("am-bulk", ["am"], [1, 2, 4, 8], [131072]), ("am-par", ["am"], [None], [0])]' am "${short[@]}"
rows panda shm '[("panda-call", ["panda"], [None], [8]), ("panda-group", ["panda"], [None], [8]), ("panda-stream", ["panda"], [None], [65536])]' \
    panda "${short[@]}"
if nm "$(dirname "$runnel")/../lang/liborca.a" 2>/dev/null | grep -qE '__[at]san_init'; then
    echo "ok - orca # SKIP its program is compiled without the sanitizer of the build"
else
    without='"orca", "no-switch", "no-layers", "no-pieces", "no-copies"'
    mkdir "$dir/it's \$HOME" # where its program is compiled
    TMPDIR="$dir/it's \$HOME" rows orca shm "([(t, [$without], [None], [8]) for t in ('orca-roi', 'orca-inc', 'orca-goi')] +
        [(t, [$without], [None], [65536]) for t in ('orca-put', 'orca-all')] + [('orca-read', ['orca'], [None], [8])])" orca "${short[@]}"
fi
rows memory shm '[("memory-peer", ["native"], [2, 16, 63], [0]), ("memory-all", ["native"], [2, 16, 63], [0])]' memory "${short[@]}"

copies="['native', 'memcpy']"
[ "$(uname -m)" != x86_64 ] || copies="['native', 'memcpy', 'movsb', 'nt']"
rows put shm "([(t, ['native'], $n, [8]) for t in ('put-landed', 'put-used', 'put-notify', 'put-add')] +
    [(t, $copies, $n, [4096, 65536, 1 << 20]) for t in ('put-landed', 'put-used')] +
    [('put-get', ['native'], $n, [8, 4096, 65536, 1 << 20]), ('put-import', ['native'], $n, [1 << 20])])" \
    put "${short[@]}"

# Its programs are compiled and preloaded here; the row of runnel rpc has no error only if its calls went through shared memory.
library=$(realpath "$("$runnel" rpc --print-library 2>/dev/null)" 2>/dev/null)
if [ ! -e "$library" ] || [ ! -e /usr/include/tirpc/rpc/rpc.h ] || nm -D "$library" | grep -qE '__(tsan|asan)_init'; then
    echo "ok - rpc # SKIP libtirpc-dev is not installed, or a sanitizer cannot be preloaded"
else
    rows rpc shm "[('rpc-null', ['rpc', 'tirpc-tcp', 'tirpc-udp', 'tirpc-unix'], $n, [0]),
        ('rpc-send', ['rpc', 'tirpc-tcp', 'tirpc-unix'], $n, [65536, 1 << 20]), ('rpc-once', ['rpc', 'tirpc-tcp'], $n, [0])]" rpc "${short[@]}"
    "$runnel" bench rpc --transport udp >"$dir/said" 2>&1
    [ $? = 64 ] && grep -q 'rpc is measured on one host' "$dir/said"
    ok "rpc over datagrams is refused" $?
fi

rows "bare sockets over loopback" udp "[('latency', $bare, [8]), ('waiting', $bare, [8]), ('rate', $bare, [8]),
    ('bandwidth', $bare, [65536, 1 << 20]), ('bandwidth-alone', $bare, [65536, 1 << 20])]" --transport udp --api tcp "${short[@]}"
rows "the library over loopback, odd lengths" udp "[(t, ['raw', 'native', 'fm', 'fm1'], $n, [1, 70000]) for t in ('latency', 'rate')]" \
    --transport udp --api native,fm,fm1 --size 1,70000 latency rate "${short[@]}"
rows encrypted udp "[(t, ['raw', 'fm'], $n, [65536]) for t in ('bandwidth', 'bandwidth-alone')]" \
    --transport udp --api fm --protect encrypt bandwidth --size 64K "${short[@]}"
rows "carried puts" udp "[(t, ['native'], $n, [8, 1 << 20]) for t in ('put-landed', 'put-get')] + [(t, ['native'], $n, [8]) for t in ('put-notify', 'put-add')]" \
    --transport udp put "${short[@]}"
rows sleepers udp "[('wake-wait', ['native'], $n, [8]), ('wake-poll', ['native'], $n, [8])]" --transport udp wake "${short[@]}"

# Other benchmarks may run beside this test: the name has the number of the process that made it.
spaces() { ip netns list 2>/dev/null | grep '^runnel-bench-'; }
if ip netns add "runnel-test-$$" 2>/dev/null; then
    ip netns delete "runnel-test-$$"
    rows "between namespaces" udp "[(t, ['raw', 'native'], $n, [8]) for t in ('latency', 'waiting')]" \
        --netns --api native latency waiting "${short[@]}"
    rows "large frames" udp "[(t, ['raw'], $n, [70000]) for t in ('bandwidth', 'bandwidth-alone')]" \
        --netns --mtu 9000 --api raw bandwidth --size 70000 "${short[@]}"
    rows "past the kernel" xdp "[('latency', ['raw', 'fm'], $n, [8])]" --transport xdp --api fm latency "${short[@]}"
    rows "AM-2 past the kernel, against depth and loss" xdp "([('am-trip', ['am'], $n, [8]), ('am-waiting', ['am'], $n, [8]),
        ('am-rate', ['am'], [1, 2, 4, 8, 16, 32, 64, 128, 256, 512], [8]), ('am-bulk', ['am'], [1, 2, 4, 8], [131072])] +
        [(t, ['am'], [1, 5, 10, 20, 50, 100, 200], [8]) for t in ('am-loss-trip', 'am-loss-rate')] +
        [('am-loss-bulk', ['am'], [1, 5, 10, 20, 50, 100, 200], [131072])])" --transport xdp sweep sweep-loss "${short[@]}"
    grep -q 'repetitions were ended before they were done, for --max-time' "$dir/stderr"
    ok "what losses make long is ended for the time that there is" $?
    rows "lost datagrams" udp "[('loss-stream', ['fm'], [1, 10, 50], [65536]), ('loss-trip', ['fm'], [1, 10, 50], [8])]" \
        --netns --api fm loss "${short[@]}"
    rows "a barrier of an odd number" udp '[("barrier", ["native"], [5], [8])]' --netns barrier --ranks 5 "${short[@]}"
    rows "AM-2, and what lost datagrams cost it" udp "[('am-trip', ['am'], $n, [8]), ('am-waiting', ['am'], $n, [8]),
        ('am-rate', ['am'], [1, 4, 16, 64, 128, 512], [8]), ('am-bulk', ['am'], [1, 2, 4, 8], [131072]),
        ('am-loss-trip', ['am'], [10, 50, 100, 150, 200, 250, 300], [8]), ('am-loss-rate', ['am'], [10], [8]),
        ('am-loss-bulk', ['am'], [10], [131072])]" --netns am "${short[@]}"
    killed KILL 3 --netns --api raw
    for _ in $(seq 100); do
        left=$(spaces | sed -n 's/^runnel-bench-\([0-9]*\)-.*/\1/p' | while read -r pid; do [ -d "/proc/$pid" ] || echo "$pid"; done)
        [ -n "$left" ] || break
        sleep 0.1
    done
    [ -z "$left" ]
    ok "no namespace is left behind, also when it is killed" $?
else
    echo "ok - between namespaces # SKIP they cannot be made here: it takes root and ip(8)"
fi
killed INT 20 barrier
exit "$failed"
