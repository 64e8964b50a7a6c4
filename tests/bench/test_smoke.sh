#!/usr/bin/env bash
# `runnel bench` runs all its tests over all its interfaces: each row is JSON as runnel-bench(1) describes it, none is missing, and nothing is
# left behind. Times are never judged: on a busy machine a row may be without a value.
# shellcheck source=tests/bench/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"

# sanitized builds take longer to start and to finish a round
timeout 150 "$runnel" bench --max-time 2 --json >"$out/rows" 2>"$out/stderr"
well $?
verdict "bench --json ends well" $? "$out/stderr"

cat >"$out/check.py" <<'EOF'
import json
import sys

UNITS = {"latency": "ns", "rate": "M/s", "bandwidth": "GB/s", "bandwidth-alone": "GB/s"}
SIZES = {"latency": [8], "rate": [8], "bandwidth": [65536, 1048576], "bandwidth-alone": [65536, 1048576]}
seen = {}
for line in sys.stdin:
    row = json.loads(line)
    assert row["transport"] == "shm" and row["unit"] == UNITS[row["test"]], row
    assert row["placement"] in ("near", "far", "one-core"), row
    figures = [row["value"], row["floor"], row["ratio"], row["probe_ns"]]
    if row["rounds"] == 0:
        assert row["value"] is None, row
    else:
        assert row["value"] > 0 and row["probe_ns"] > 0, row
        assert all(f is None or f > 0 for f in figures), row
    if row["api"] == "raw" and row["rounds"]:
        assert row["value"] == row["floor"] and row["ratio"] == 1, row
    if row["test"] == "latency" and row["rounds"]:
        assert 0 < row["p50"] <= row["p999"], row
    if row["test"] in ("latency", "rate"):
        assert row["cpu_ns"] > 0 if row["rounds"] else row["cpu_ns"] is None, row
    else:
        assert "cpu_ns" not in row, row
    key = (row["placement"], row["test"], row["api"], row["bytes"])
    assert key not in seen, row
    seen[key] = row
placements = {key[0] for key in seen}
assert placements in ({"near", "far"}, {"one-core"}), placements
expected = {(p, t, a, n) for p in placements for t in UNITS for a in ("raw", "native", "fm", "fm1") for n in SIZES[t]}
assert set(seen) == expected, set(seen) ^ expected
EOF
python3 "$out/check.py" <"$out/rows" >"$out/said" 2>&1
verdict "every row is there and is what the manual page says" $? "$out/said"

timeout 150 "$runnel" bench latency bandwidth --api fm1,native --size 8,100,2M --max-time 1 >"$out/table" 2>"$out/stderr"
well $?
verdict "bench prints a table" $? "$out/stderr"
awk 'length > 80 { print; bad = 1 } END { exit bad }' "$out/table" >"$out/said"
verdict "which fits 80 columns" $? "$out/said"
grep -q 'FM 1.1 was left out above 1M' "$out/table"
verdict "and says what FM 1.1 cannot send" $? "$out/table"

if command -v gnuplot >/dev/null; then
    timeout 150 "$runnel" bench bandwidth --api raw --size 64,1K,16K --max-time 1 --plot "$out/plots" >"$out/table" 2>"$out/stderr"
    well $?
    verdict "bench --plot ends well" $? "$out/stderr"
    # a round that flipped leaves nothing to draw
    if grep -q '^wrote ' "$out/table"; then
        [ "$(head -c 4 "$out/plots/bandwidth.png" | tail -c 3)" = PNG ] && [ -s "$out/plots/bandwidth.gp" ]
        verdict "and writes a picture with its script" $? "$out/table"
    fi
else
    echo "ok - bench --plot # SKIP gnuplot is not installed"
fi

# killed in the middle: the processes it started end too
"$runnel" bench --max-time 30 --api fm >"$out/table" 2>"$out/stderr" &
pid=$!
children() {
    local p
    for p in "$@"; do
        # shellcheck disable=SC2046 # a list of numbers
        echo "$p" $(children $(cat /proc/"$p"/task/*/children 2>/dev/null))
    done
}
for _ in $(seq 300); do
    # shellcheck disable=SC2046,SC2207
    family=($(children $pid))
    [ "${#family[@]}" -lt 3 ] || break
    sleep 0.1
done
kill -9 $pid
wait $pid 2>/dev/null
code=1
for _ in $(seq 300); do
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
[ "${#family[@]}" -ge 3 ] || code=1
verdict "killed with -9 it takes its processes along" $code "$out/said"
exit $status
