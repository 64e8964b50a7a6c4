#!/usr/bin/env bash
# tests/run-summary counts what programs say: no failure is lost, no skip goes without its reason.
set -u
run=${RUNNEL_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}/tests/run-summary
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0

# expect NAME LAST-LINE SCRIPT: what the closing line is after a program that runs SCRIPT
expect() {
    local last
    rm -f "$folder/tally"
    "$run" one "$folder/tally" program sh -c "$3" >/dev/null 2>&1
    last=$("$run" total "$folder/tally" | tail -n 1)
    if [ "$last" = "$2" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1: $last"
        status=1
    fi
}

expect "status 0 is one pass" "1 passed, 0 failed, 0 skipped" 'echo fine'
expect "any other status is a failure" "0 passed, 1 failed, 0 skipped" 'exit 3'
expect "a signal is a failure" "0 passed, 1 failed, 0 skipped" "kill -9 \$\$"
expect "77 is a skip" "0 passed, 0 failed, 1 skipped" 'echo no network; exit 77'
expect "cases are counted" "2 passed, 1 failed, 1 skipped" \
    'echo "ok - a"; echo "not ok - b"; echo "ok 3 - c"; echo "ok - d # SKIP no device"; exit 1'
expect "a failed case counts with status 0" "1 passed, 1 failed, 0 skipped" 'echo "ok - a"; echo "not ok - b"'
expect "a bad status counts with no failed case" "1 passed, 1 failed, 0 skipped" 'echo "ok - a"; exit 1'
expect "cmocka's cases are counted" "1 passed, 0 failed, 1 skipped" \
    'echo "[ RUN      ] a"; echo "[       OK ] a"; echo "[ RUN      ] b"; echo "skip: why"; echo "[  SKIPPED ] b"'
expect "a cmocka case that never ended is a failure" "1 passed, 1 failed, 0 skipped" \
    'echo "[ RUN      ] a"; echo "[       OK ] a"; echo "[ RUN      ] b"; exit 1'
expect "77 failed cmocka cases are no skip" "0 passed, 1 failed, 0 skipped" \
    'echo "[ RUN      ] a"; echo "[  FAILED  ] a"; exit 77'
expect "a closing line is taken over" "5 passed, 1 failed, 2 skipped" 'echo "5 passed, 1 failed, 2 skipped"; exit 1'

"$run" one "$folder/t3" program sh -c 'echo "ok - a"; echo "not ok - b"; seq -f "    detail %.0f" 6; seq 100; exit 1' >"$folder/out"
if grep -qx 'not ok - b' "$folder/out" && grep -qx '    detail 5' "$folder/out" && ! grep -q 'detail 6\|ok - a' "$folder/out"; then
    echo "ok - of a long log the failures are shown"
else
    echo "not ok - of a long log the failures are shown"
    head -n 20 "$folder/out"
    status=1
fi
"$run" one "$folder/t2" program sh -c 'echo no network; exit 77' >/dev/null
if "$run" total "$folder/t2" >"$folder/out"; then
    echo "not ok - nothing but skips is a failure"
    status=1
else
    echo "ok - nothing but skips is a failure"
fi
"$run" one "$folder/cases" "tests: many" sh -c 'echo "ok - a: b # SKIP no root"; echo "ok - c # SKIP no root"; echo "ok - d # SKIP old"' >/dev/null
if "$run" total "$folder/cases" | head -n 2 | cmp -s - <(
    echo 'skipped: tests: many: no root (2: a: b; c)'
    echo 'skipped: tests: many: old (1: d)'
); then
    echo "ok - skips of one program for one reason are one line"
else
    echo "not ok - skips of one program for one reason are one line"
    status=1
fi
if grep -qx 'skipped: program: no network' "$folder/out"; then
    echo "ok - the reason of a skip is told"
else
    echo "not ok - the reason of a skip is told"
    status=1
fi
exit $status
