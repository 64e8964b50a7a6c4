#!/usr/bin/env bash
# The examples in Orca, compiled by orcac, give the known answers, for one cpu and for several, and leave no memory behind.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
cd "$tree" || exit 1

# PROGRAM PATTERN ARGUMENT...: the output holds the pattern for 1, 2, 3 and 8 cpus.
known() {
    local program=$1 pattern=$2 cpus
    shift 2
    [ -x "$dir/$program" ] || return
    for cpus in 1 2 3 8; do
        "$dir/$program" -cpus "$cpus" "$@" >"$dir/said" 2>&1
        grep -q -- "$pattern" "$dir/said"
        ok "$program $* on $cpus cpus: $pattern" $?
    done
}

sanitizer=
if nm "$build/lang/liborca.a" 2>/dev/null | grep -q __asan_init; then sanitizer="-W -fsanitize=address,undefined"; fi
if nm "$build/lang/liborca.a" 2>/dev/null | grep -q __tsan_init; then sanitizer="-W -fsanitize=thread"; fi
for program in feat micro tsp asp leq sor water ida bodies; do
    # shellcheck disable=SC2086 # words
    "$build/lang/orcac" -O1 $sanitizer "examples/orca/$program.imp" -o "$dir/$program" >"$dir/said" 2>&1
    ok "$program compiles" $?
done
known leq 'iterations 413 x1 0.00841149 ' 60
known tsp 'length 211 route 0 ' 13
known asp 'n 96 checksum 423294 ' 96
known sor 'iterations 152 ' 40 40
known water 'mols 64 kinetic 2.90163e-06 ' 64 10
known micro 'final 100 200' 100
known ida 'moves 34 solutions 1 nodes 123500$' 60 1
known bodies 'energy -0.561622 first 0.210419 0.0341234$' 200 20
"$dir/feat" >"$dir/said" 2>&1
[ "$(cat "$dir/said")" = "$(cat tests/orca/feat.out)" ]
ok "feat prints what it has to" $?
"$dir/leq" 300 >"$dir/said" 2>&1
grep -q '^iterations 2070 ' "$dir/said"
ok "300 equations take 2070 iterations" $?
"$build/lang/orcac" --explain examples/orca/tsp.imp >"$dir/said" 2>&1
grep -q 'operation Best.Offer: read and write, may block; guards: line 14 write line 19 read' "$dir/said" && grep -q 'operation Best.Len: read$' "$dir/said"
ok "what --explain says of an operation with two guards" $?
[ -n "$sanitizer" ] || "$build/lang/orcac" --shared examples/orca/asp.imp -o "$dir/asp.so" 2>/dev/null
ok "a shared object is made" $?
"$build/tools/runnel" sim -n 1 "$dir/asp.so" 64 >"$dir/said" 2>&1
grep -q 'checksum 251501' "$dir/said" || [ -n "$sanitizer" ]
ok "a program runs on the virtual cluster" $?
"$build/lang/orcac" examples/orca/nobody.imp >"$dir/said" 2>&1
[ $? = 1 ] && grep -q "cannot be read" "$dir/said"
ok "a missing file is told" $?
exit "$failed"
