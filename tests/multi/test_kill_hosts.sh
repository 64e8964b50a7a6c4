#!/usr/bin/env bash
# Ranks of jobs on three hosts are killed at random: test_kill_hosts.sh [KILLS [SEED]]. See kill_many.c.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "$0")/hosts.sh"
hosts_up 3 9000
kills=${1:-20}
[ -n "${ASAN_OPTIONS:-}${TSAN_OPTIONS:-}" ] && kills=$((kills / 4)) # each start costs several times as much
RNL_TEST_HOSTS=$list "$build/tests/multi-kill_many" "$kills" $((kills + 30)) "${@:2}" </dev/null || failed=1
: >said
! left_over
ok 'nothing is left on the hosts' $?
exit "$failed"
