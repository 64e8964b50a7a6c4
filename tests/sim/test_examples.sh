#!/usr/bin/env bash
# The examples, unchanged, on the virtual cluster: they do what they do on real processes, and each run is the same.
# shellcheck source=tests/sim/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
needs "$vprocs/vproc-hello.so" "$vprocs/vproc-sort.so" "$vprocs/vproc-heat.so"

"$runnel" sim -n 4 "$vprocs/vproc-hello.so" >hello.1
ok "hello ends with status 0" $?
[ "$(grep -c '^hello from rank [0-3] of 4' hello.1)" = 4 ]
ok "each rank of hello greets" $?
tail -n 1 hello.1 | grep -qE '^runnel: [0-9.]+ s, [0-9]+ events, hash [0-9a-f]{16}$'
ok "the last line has the hash" $?
"$runnel" sim -n 4 "$vprocs/vproc-hello.so" >hello.2
cmp -s hello.1 hello.2
ok "a second run is the same" $?
"$runnel" sim -n 4 --seed 2 "$vprocs/vproc-hello.so" >hello.3
[ "$(hash_of hello.1)" != "$(hash_of hello.3)" ]
ok "another seed is another run" $?
if setarch -R true 2>/dev/null; then
    setarch -R "$runnel" sim -n 4 "$vprocs/vproc-hello.so" >hello.4
    cmp -s hello.1 hello.4
    ok "where this process lies makes no difference" $?
else
    echo "ok - where this process lies makes no difference # SKIP setarch -R is not allowed here"
fi

awk 'BEGIN { x = 1; for (i = 0; i < 20000; i++) { x = (x * 16807) % 2147483647; print x, i % 7 } }' >input
LC_ALL=C sort input >expected
for ranks in 1 3 8; do
    rm -f output
    "$runnel" sim -n $ranks "$vprocs/vproc-sort.so" input -o output >sort.$ranks && cmp -s output expected
    ok "sort sorts on $ranks ranks" $?
done
"$runnel" sim -n 8 "$vprocs/vproc-sort.so" input -o output >sort.again
[ "$(hash_of sort.8)" = "$(hash_of sort.again)" ]
ok "two sorts have one hash" $?
"$runnel" sim -n 3 "$vprocs/vproc-sort.so" nothing-here -o output >/dev/null 2>said
status=$?
[ $status = 1 ] && grep -q '^sort: cannot read nothing-here: ' said
ok "a failure has the program's status and words" $?

"$runnel" sim -n 1 "$vprocs/vproc-heat.so" --make 64x48 start.pgm >/dev/null && [ -s start.pgm ]
ok "heat draws a picture" $?
for ranks in 1 5; do
    "$runnel" sim -n $ranks "$vprocs/vproc-heat.so" start.pgm -n 200 -o heat.$ranks.pgm >/dev/null
    ok "heat computes on $ranks ranks" $?
done
cmp -s heat.1.pgm heat.5.pgm
ok "heat on 5 ranks is heat on one" $?
exit "$failed"
