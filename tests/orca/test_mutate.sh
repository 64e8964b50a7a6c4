#!/usr/bin/env bash
# Whatever its text is, orcac ends a program by itself: with C that the C compiler takes, or with an error that has a place. The
# programs are ours with changes drawn from a seed (tests/orca/mutate): test_mutate.sh [FIRST-SEED [COUNT]].
# shellcheck source=tests/orca/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
needs_commands python3
first=${1:-1}
count=${2:-300}
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # its memory lives until it ends
export ORC_INCLUDE=$tree/lang/runtime
timeout -k 5 250 "$tree/tests/orca/mutate" "$build/lang/orcac" . "$first" "$count" \
    "$tree/examples/orca" "$tree/lang/units" "$tree/tests/orca/programs" "$tree/tests/orca/conform" >said 2>&1 &&
    ! grep -q '^seed' said && grep -qE "^$count programs, [1-9][0-9]* accepted$" said
ok "$count changed programs from seed $first on" $?
exit "$failed"
