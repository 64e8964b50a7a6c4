#!/usr/bin/env bash
# `runnel bench` over datagrams: the rows that runnel-bench(1) says it has, over loopback and between two network
# namespaces, which are gone afterwards however it ends. Times are never judged. Prints "ok - name" or "not ok - name".
# shellcheck source=tests/bench/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"

cat >"$out/check.py" <<'PY'
# Rows on standard input; as an argument, what is expected: a list of (test, interfaces, sizes).
import json
import sys

UNITS = {"loss-stream": "GB/s", "loss-trip": "ns", "wake-wait": "us", "wake-poll": "us", "barrier": "us", "idle-wait": "ms/s", "idle-poll": "ms/s", "idle-extract": "ms/s",
         "layered": "MB/s", "layered-stream": "MB/s", "am-trip": "ns", "am-waiting": "ns", "am-rate": "M/s", "am-bulk": "GB/s", "am-loss-trip": "ns",
         "am-loss-rate": "M/s", "am-loss-bulk": "GB/s", "latency": "ns", "waiting": "ns", "rate": "M/s", "bandwidth": "GB/s", "bandwidth-alone": "GB/s"}
expected = {(t, a, n) for t, apis, sizes in eval(sys.argv[1]) for a in apis for n in sizes}
seen = set()
for line in sys.stdin:
    row = json.loads(line)
    assert row["transport"] == "udp" and row["unit"] == UNITS[row["test"]], row
    assert row["value"] > 0 if row["rounds"] else row["value"] is None, row
    if row["test"] in ("latency", "waiting") and row["rounds"]:
        assert 0 < row["p50"] <= row["p999"] and row["cpu_ns"] > 0, row
    seen.add((row["test"], row["api"], row["bytes"]))
assert seen == expected, seen ^ expected
PY

# rows NAME EXPECTED ARGUMENTS...
rows() {
    local name=$1 expected=$2 code
    shift 2
    timeout 300 "$runnel" bench "$@" --json --max-time 0.5 >"$out/rows" 2>"$out/stderr"
    well $?
    code=$?
    [ $code != 0 ] || python3 "$out/check.py" "$expected" <"$out/rows" >"$out/stderr" 2>&1 || code=1
    verdict "$name: the rows that the manual page says" $code "$out/stderr"
}

bare='["raw", "tcp"]'
large='[65536, 1 << 20]'
every="[('latency', $bare, [8]), ('waiting', $bare, [8]), ('rate', $bare, [8]), ('bandwidth', $bare, $large), \
    ('bandwidth-alone', $bare, $large)]"
rows "bare sockets over loopback" "$every" --transport udp --api tcp
rows "odd lengths" "[(t, $bare, [1, 1400, 70000]) for t in ('latency', 'rate', 'bandwidth', 'bandwidth-alone')]" \
    --transport udp --api tcp --size 1,1400,70000 latency rate bandwidth
rows "the library over loopback" '[("latency", ["raw", "native", "fm", "fm1"], [8]), ("rate", ["raw", "native", "fm", "fm1"], [8])]' \
    --transport udp --api native,fm,fm1 latency rate
rows "encrypted" '[("bandwidth", ["raw", "fm"], [65536]), ("bandwidth-alone", ["raw", "fm"], [65536])]' \
    --transport udp --api fm --protect encrypt bandwidth --size 64K

rows "sleepers" '[("wake-wait", ["native"], [8]), ("wake-poll", ["native"], [8])]' --transport udp wake
rows "a layer" '[("layered", ["fm", "fm1"], [1024]), ("layered-stream", ["fm", "fm1"], [1024])]' --transport udp layered --size 1K
rows "a barrier" '[("barrier", ["native"], [8])]' --transport udp barrier --ranks 3
# A table has no column for it: it says above what carried its rows.
names() { # NAME TEXT ARGUMENTS...
    local name=$1 text=$2
    shift 2
    timeout 300 "$runnel" bench latency --api raw --max-time 0.3 "$@" >"$out/table" 2>"$out/stderr"
    well $? && [ "$(sed -n 3p "$out/table")" = "$text" ]
    verdict "$name" $? "$out/table" "$out/stderr"
}
names "the table says that datagrams carried it" "over udp, on the loopback interface" --transport udp
names "nothing is said of shared memory" "" --transport shm
# Other benchmarks may run beside this test: the name has the number of the process that made it.
spaces_of() { ip netns list 2>/dev/null | grep -c "^runnel-bench-$1-"; }
nobodys() {
    ip netns list 2>/dev/null | sed -n 's/^runnel-bench-\([0-9]*\)-.*/\1/p' | while read -r pid; do
        [ -d "/proc/$pid" ] || echo "$pid"
    done
}
if ! ip netns add "runnel-test-$$" 2>/dev/null; then
    echo "ok - between namespaces # SKIP they cannot be made here: it takes root and ip(8)"
    exit $status
fi
ip netns delete "runnel-test-$$"
before=$(nobodys)
rows "bare sockets between namespaces" "[('latency', $bare, [8]), ('rate', $bare, [8])]" --netns --api tcp latency rate
names "the table says that it was between namespaces" "over udp, between two network namespaces" --netns
rows "large frames" "[('bandwidth', ['raw'], [70000]), ('bandwidth-alone', ['raw'], [70000])]" \
    --netns --mtu 9000 --api raw bandwidth --size 70000
rows "the library between namespaces" '[("latency", ["raw", "native"], [8]), ("waiting", ["raw", "native"], [8])]' \
    --netns --api native latency waiting
rows "lost datagrams" '[("loss-stream", ["fm"], [65536]), ("loss-trip", ["fm"], [8])]' --netns --api fm loss
am='("am-trip", ["am"], [8]), ("am-waiting", ["am"], [8]), ("am-rate", ["am"], [8]), ("am-bulk", ["am"], [131072])'
rows "a barrier of an odd number" '[("barrier", ["native"], [8])]' --netns barrier --ranks 5
rows "AM-2, and what lost datagrams cost it" \
    "[$am, ('am-loss-trip', ['am'], [8]), ('am-loss-rate', ['am'], [8]), ('am-loss-bulk', ['am'], [131072])]" --netns am
[ "$(nobodys)" = "$before" ]
verdict "no namespace is left behind" $?
"$runnel" bench --netns --api raw --max-time 60 >"$out/table" 2>"$out/stderr" &
pid=$!
for _ in $(seq 300); do
    [ "$(spaces_of $pid)" -lt 2 ] || break
    sleep 0.1
done
[ "$(spaces_of $pid)" = 2 ]
code=$?
kill -9 $pid
{ wait $pid; } 2>/dev/null
for _ in $(seq 300); do
    [ "$(spaces_of $pid)" -gt 0 ] || break
    sleep 0.1
done
[ $code = 0 ] && [ "$(spaces_of $pid)" = 0 ]
verdict "nor when it is killed" $? "$out/stderr"
exit $status
