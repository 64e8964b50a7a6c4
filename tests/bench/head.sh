# shellcheck shell=bash
# What the tests of `runnel bench` begin with, sourced by them: the head of all scripts, and what bench prints and leaves.
# shellcheck source=tests/support/test.sh disable=SC2034 # for those who source this
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
shown='stdout stderr table said rows'

# 75: the machine left no repetition undisturbed, and bench said so. Everything but the figures must be there even then.
well() { [ "$1" = 0 ] || { [ "$1" = 75 ] && grep -q 'nothing was measured' "$dir/stderr"; }; }

# check_rows TRANSPORT EXPECTED <ROWS: each is JSON as runnel-bench(1) describes it, and they are those of EXPECTED, a list of (test,
# interfaces, numbers of ranks or None, sizes). On a busy machine a row may be without a value.
check_rows() {
    python3 -c '
import json, sys
UNITS = {"peers": "ns", "idle": "ms/s", "wake-wait": "us", "wake-poll": "us", "wake": "ns", "barrier": "us", "layered": "MB/s", "startup": "ms",
         "memory": "kB", "loss-stream": "GB/s", "loss-trip": "ns", "am-trip": "ns", "am-waiting": "ns", "am-rate": "M/s", "am-bulk": "GB/s",
         "am-par": "ns", "put": "ns", "put-import": "us", "rpc": "ns", "rpc-once": "us", "panda": "ns", "orca": "ns", "panda-stream": "GB/s", "am-loss-trip": "ns", "am-loss-rate": "M/s", "am-loss-bulk": "GB/s", "latency": "ns", "waiting": "ns", "rate": "M/s",
         "bandwidth": "GB/s", "bandwidth-alone": "GB/s", "fresh": "GB/s", "fresh-alone": "GB/s"}
seen = set()
for line in sys.stdin:
    row = json.loads(line)
    name = row["test"]
    assert row["transport"] == sys.argv[1] and row["placement"] in ("near", "far", "one-core"), row
    assert row["unit"] == UNITS[name if name in UNITS else name.split("-")[0]], row
    assert "error" not in row, row
    assert set(row) >= {"value", "baseline", "ratio", "trials", "probe_ns"}, row
    if row["trials"]: # a baseline is missing only where its repetitions were all disturbed
        assert row["value"] > 0 and row["probe_ns"] > 0 and (row["baseline"] is None or row["baseline"] > 0), row
        assert "p50" not in row or 0 < row["p50"] <= row["p999"], row
        assert row["api"] != "raw" or row["value"] == row["baseline"] and row["ratio"] == 1, row
    else:
        assert row["value"] is None and row["ratio"] is None, row
    seen.add((name, row["api"], row.get("n"), row["bytes"]))
expected = {(t, a, n, b) for t, apis, ns, sizes in eval(sys.argv[2]) for a in apis for n in ns for b in sizes}
assert seen == expected, seen ^ expected' "$@"
}

# rows NAME TRANSPORT EXPECTED ARGUMENTS...
rows() {
    local name=$1 transport=$2 expected=$3 code
    shift 3
    timeout 300 "$runnel" bench "$@" --json >"$dir/rows" 2>"$dir/stderr"
    well $?
    code=$?
    [ $code != 0 ] || check_rows "$transport" "$expected" <"$dir/rows" >"$dir/said" 2>&1 || code=1
    ok "$name: the rows that the manual page says" $code
}

children() {
    local p
    for p in "$@"; do
        # shellcheck disable=SC2046 # a list of numbers
        echo "$p" $(children $(cat /proc/"$p"/task/*/children 2>/dev/null))
    done
}

# killed SIGNAL LEAST ARGUMENTS...: bench has started that many processes when the signal comes; all of them end.
killed() {
    local signal=$1 least=$2 pid family left p
    shift 2
    setsid "$runnel" bench "$@" --max-time 60 >"$dir/table" 2>"$dir/stderr" &
    pid=$!
    for _ in $(seq 300); do
        # shellcheck disable=SC2046,SC2207
        family=($(children $pid))
        [ "${#family[@]}" -lt "$least" ] || break
        sleep 0.1
    done
    kill "-$signal" $pid
    wait $pid 2>/dev/null
    for _ in $(seq 600); do
        left=
        for p in "${family[@]}"; do
            if [ -e "/proc/$p" ] && ! grep -q '^State:.Z' "/proc/$p/status" 2>/dev/null; then left="$left $p"; fi
        done
        [ -n "$left" ] || break
        sleep 0.1
    done
    echo "${#family[@]} processes, left:$left" >"$dir/said"
    [ "${#family[@]}" -ge "$least" ] && [ -z "$left" ]
    ok "$signal ends all processes of bench $*" $?
}
