#!/usr/bin/env bash
# The tests of `runnel bench` that are more than a pair of processes: each prints the rows that runnel-bench(1) says it has, and nothing is left
# behind, whether it ends well, a process of it dies, or Ctrl-C comes. Times are never judged.
# shellcheck source=tests/bench/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"

cat >"$out/check.py" <<'EOF'
# Rows on standard input; as an argument, what is expected: a list of (test, interfaces, n or None, sizes).
import json
import sys

UNITS = {"peers": "ns", "idle": "ms/s", "wake-wait": "us", "wake-poll": "us", "wake": "ns", "barrier": "us", "layered": "MB/s",
         "startup": "ms", "memory": "kB", "am-trip": "ns", "am-rate": "M/s", "am-bulk": "GB/s", "am-par": "ns"}
TAILS = ("peers", "wake-wait", "wake-poll", "barrier")
expected = {(t, a, n, b) for t, apis, ns, sizes in eval(sys.argv[1]) for a in apis for n in ns for b in sizes}
seen = set()
for line in sys.stdin:
    row = json.loads(line)
    name = row["test"]
    assert row["transport"] == "shm" and row["placement"] in ("near", "far", "one-core"), row
    assert row["unit"] == UNITS[name if name in UNITS else name.split("-")[0]], row
    assert set(row) >= {"value", "floor", "ratio", "rounds", "probe_ns"} and "cpu_ns" not in row, row
    assert ("p50" in row and "p999" in row) == (name in TAILS), row
    if row["rounds"]:
        # a floor is missing only where its repetitions were all disturbed
        assert row["value"] > 0 and row["probe_ns"] > 0 and (row["floor"] is None or row["floor"] > 0), row
        assert name not in TAILS or 0 < row["p50"] <= row["p999"], row
    else:
        assert row["value"] is None and row["ratio"] is None, row
    seen.add((name, row["api"], row.get("n"), row["bytes"]))
assert seen == expected, seen ^ expected
EOF

# rows NAME EXPECTED ARGUMENTS...
rows() {
    local name=$1 expected=$2 code
    shift 2
    timeout 200 "$runnel" bench "$@" --json --max-time 0.3 >"$out/rows" 2>"$out/stderr"
    well $?
    code=$?
    [ $code != 0 ] || python3 "$out/check.py" "$expected" <"$out/rows" >"$out/stderr" 2>&1 || code=1
    verdict "$name: the rows that the manual page says" $code "$out/stderr"
}

rows peers '[("peers", ["native", "fm"], [1, 15, 63], [8])]' peers
rows "peers, other sizes" '[("peers", ["fm"], [1, 15, 63], [64, 1024])]' peers --api fm --size 64,1K
rows idle '[("idle-wait", ["native", "fm"], [1, 63], [0]), ("idle-poll", ["native"], [1, 63], [0]),
    ("idle-extract", ["native"], [1, 63], [0])]' idle
rows wake '[("wake-wait", ["native"], [None], [8]), ("wake-poll", ["native"], [None], [8]),
    ("wake-unarmed", ["native"], [1, 64], [8]), ("wake-armed", ["native"], [1, 64], [8])]' wake
rows barrier '[("barrier", ["native"], [16], [8])]' barrier
rows "barrier of five" '[("barrier", ["native"], [5], [8])]' barrier --ranks 5
both='["fm", "fm1"], [None], [16, 1024, 65536]'
rows layered "[('layered', $both), ('layered-stream', $both)]" layered
fm='["fm"], [None], [1, 100, 2 << 20]' fm1='["fm1"], [None], [1, 100]'
rows "layered, other sizes" "[('layered', $fm), ('layered-stream', $fm), ('layered', $fm1), ('layered-stream', $fm1)]" \
    layered --size 1,100,2M
rows startup '[("startup-run", ["native"], [1, 2, 16, 64], [0]), ("startup-job", ["native"], [1, 2, 16, 64], [0])]' startup
rows am '[("am-trip", ["am"], [None], [8]), ("am-rate", ["am"], [1, 4, 16, 64, 128, 512], [8]),
    ("am-bulk", ["am"], [1, 2, 4, 8], [131072]), ("am-par", ["am"], [None], [0])]' am
rows memory '[("memory-peer", ["native"], [2, 16, 63], [0]), ("memory-all", ["native"], [2, 16, 63], [0])]' memory

timeout 300 "$runnel" bench idle wake barrier layered startup memory --max-time 1 >"$out/table" 2>"$out/stderr"
well $?
verdict "several in one table" $? "$out/stderr"
awk 'length > 80 { print; bad = 1 } END { exit bad }' "$out/table" >"$out/said"
verdict "which fits 80 columns" $? "$out/said"

if command -v gnuplot >/dev/null; then
    timeout 300 "$runnel" bench layered --size 64,1K,16K --max-time 1 --plot "$out/plots" >"$out/table" 2>"$out/stderr"
    well $?
    verdict "layered --plot ends well" $? "$out/stderr"
    # a round that flipped leaves nothing to draw
    if grep -q '^wrote ' "$out/table"; then
        [ "$(head -c 4 "$out/plots/layered.png" | tail -c 3)" = PNG ] && [ -s "$out/plots/layered.gp" ] && [ ! -s "$out/stderr" ]
        verdict "and writes a picture with its script" $? "$out/stderr"
    fi
else
    echo "ok - layered --plot # SKIP gnuplot is not installed"
fi

# ---- nothing is left behind ----

children() {
    local p
    for p in "$@"; do
        # shellcheck disable=SC2046 # a list of numbers
        echo "$p" $(children $(cat /proc/"$p"/task/*/children 2>/dev/null))
    done
}

# started LEAST ARGUMENTS...: in the background, in a process group of its own; waits until there are as many processes
started() {
    local least=$1
    shift
    setsid "$runnel" bench "$@" >"$out/table" 2>"$out/stderr" &
    pid=$!
    for _ in $(seq 300); do
        # shellcheck disable=SC2046,SC2207
        family=($(children $pid))
        [ "${#family[@]}" -lt "$least" ] || break
        sleep 0.1
    done
}

# all_gone NAME LEAST
all_gone() {
    local left code=1 p
    for _ in $(seq 600); do
        left=0
        for p in "${family[@]}"; do
            if [ -e "/proc/$p" ] && ! grep -q '^State:.Z' "/proc/$p/status" 2>/dev/null; then
                left=1
            fi
        done
        if [ $left = 0 ]; then
            code=0
            break
        fi
        sleep 0.1
    done
    echo "${#family[@]} processes" >"$out/said"
    [ "${#family[@]}" -ge "$2" ] || code=1
    verdict "$1" $code "$out/said"
}

started 20 barrier --max-time 60
kill -INT -- "-$pid"
wait "$pid"
all_gone "Ctrl-C at a barrier takes all processes along" 20

started 9 wake --max-time 60
kill -INT -- "-$pid"
wait "$pid"
all_gone "Ctrl-C takes the sleepers along" 9

started 20 barrier --max-time 60
kill -9 "${family[${#family[@]} - 1]}"
wait "$pid"
code=$?
[ $code = 1 ] && grep -q 'runnel bench: the processes for barrier' "$out/stderr"
verdict "a process that dies ends the run, with a sentence" $? "$out/stderr"
all_gone "and the others end too" 20
exit $status
