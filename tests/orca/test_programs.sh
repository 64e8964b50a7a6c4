#!/usr/bin/env bash
# The examples in Orca, compiled by orcac, give the known answers, for one cpu and for several, and leave no memory behind.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
build=${RUNNEL_BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
status=0

verdict() { # RESULT NAME [DETAIL]
    count=$((count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        [ -z "${3:-}" ] || printf '# %s\n' "${3//$'\n'/$'\n# '}"
        status=1
    fi
}

# PROGRAM PATTERN ARGUMENT...: the output holds the pattern for 1, 2, 3 and 8 cpus.
known() {
    local program=$1 pattern=$2 text
    shift 2
    [ -x "$work/$program" ] || return
    for cpus in 1 2 3 8; do
        text=$("$work/$program" -cpus $cpus "$@" 2>&1)
        grep -q -- "$pattern" <<<"$text"
        verdict $? "$program $* on $cpus cpus: $pattern" "$text"
    done
}

echo "1..37"
sanitizer=
if nm "$build/lang/liborca.a" 2>/dev/null | grep -q __asan_init; then sanitizer="-W -fsanitize=address,undefined"; fi
if nm "$build/lang/liborca.a" 2>/dev/null | grep -q __tsan_init; then sanitizer="-W -fsanitize=thread"; fi
for program in feat micro tsp asp leq sor water; do
    # shellcheck disable=SC2086 # words
    text=$("$build/lang/orcac" -O1 $sanitizer "examples/orca/$program.imp" -o "$work/$program" 2>&1)
    verdict $? "$program compiles" "$text"
done
known leq 'iterations 413 x1 0.00841149 ' 60
known tsp 'length 211 route 0 ' 13
known asp 'n 96 checksum 423294 ' 96
known sor 'iterations 152 ' 40 40
known water 'mols 64 kinetic 2.90163e-06 ' 64 10
known micro 'final 100 200' 100
text=$("$work/feat" 2>&1)
[ "$text" = "$(cat tests/orca/feat.out)" ]
verdict $? "feat prints what it has to" "$text"
text=$("$work/leq" 300 2>&1)
grep -q '^iterations 2070 ' <<<"$text"
verdict $? "300 equations take 2070 iterations" "$text"
text=$("$build/lang/orcac" --explain examples/orca/tsp.imp 2>&1)
grep -q 'operation Best.Offer: read and write, may block; guards: line 14 write line 19 read' <<<"$text" && grep -q 'operation Best.Len: read$' <<<"$text"
verdict $? "what --explain says of an operation with two guards" "$text"
[ -n "$sanitizer" ] || "$build/lang/orcac" --shared examples/orca/asp.imp -o "$work/asp.so" 2>/dev/null
verdict $? "a shared object is made"
text=$("$build/tools/runnel" sim -n 1 "$work/asp.so" 64 2>&1)
grep -q 'checksum 251501' <<<"$text" || [ -n "$sanitizer" ]
verdict $? "a program runs on the virtual cluster" "$text"
"$build/lang/orcac" examples/orca/nobody.imp >"$work/err" 2>&1
[ $? = 1 ] && grep -q "cannot be read" "$work/err"
verdict $? "a missing file is told"
exit $status
