#!/usr/bin/env bash
# The example interface in a launched job: it works, and `runnel info`, which does not know it, shows its counter from
# outside.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
program=${RUNNEL_BUILD:?the build directory}/tests/iface-program
launcher=
# shellcheck disable=SC2317 # called by the trap
finish() {
    if [ -n "$launcher" ]; then
        kill -9 "$launcher" 2>/dev/null # the kernel kills its ranks
        { wait "$launcher"; } 2>/dev/null
    fi
    rm -rf "$dir"
}
trap finish EXIT

timeout 60 "$runnel" run -n 3 "$program" >"$dir/out" 2>&1 </dev/null
check "a job of three ranks adds up" [ "$?$(grep -c '^sum 15150, made 101$' "$dir/out")" = 03 ]
timeout 60 "$program" >"$dir/out" 2>&1 </dev/null
check "so does a job of one that nobody launched" [ "$?$(grep -c '^sum 5050, made 101$' "$dir/out")" = 01 ]

# shellcheck disable=SC2016 # for the other shell
"$runnel" run -n 2 sh -c 'echo $$ >"$0.$$"; exec "$1" wait' "$dir/rank" "$program" >/dev/null 2>&1 </dev/null &
launcher=$!
for ((i = 0; i < 200; i++)); do
    for file in "$dir"/rank.*; do
        [ -e "$file" ] && "$runnel" info --pid "${file##*.}" 2>/dev/null
    done >"$dir/out"
    [ "$(grep -cE '^  Tally.added +200  numbers added to the sum of this rank$' "$dir/out")" = 2 ] && break
    sleep 0.1
done
check "the counter of each rank shows, with its text" [ "$(grep -cE '^  Tally.added +200  numbers added to' "$dir/out")" = 2 ]
check "and no counter of an interface that the program does not use" [ "$(grep -cE '^  (FM|AM)\.' "$dir/out")" = 0 ]
if command -v python3 >/dev/null; then
    for file in "$dir"/rank.*; do
        "$runnel" info --json --pid "${file##*.}" >"$dir/out"
    done
    check "--json has it, too" python3 -c '
import json, sys
assert json.load(open(sys.argv[1]))["endpoints"][0]["counters"]["Tally.added"] == 200' "$dir/out"
fi
exit "$failed"
