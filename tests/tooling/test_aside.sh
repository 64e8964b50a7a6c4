#!/usr/bin/env bash
# Parts of `make check-all` that run beside others: what they count arrives, and one that dies counts as a failure.
cd "$(dirname "$0")/../.." || exit 1
source=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
ok() { # NAME STATUS
    if [ "$2" = 0 ]; then echo "ok - $1"; else echo "not ok - $1" && failed=1; fi
}
{
    echo 'set -euo pipefail'
    echo "cd '$source' && dir='$work' && tally=\$dir/all.tally && : >\"\$tally\""
    grep '^one()' scripts/check-all
    sed -n '/^# aside FUNCTION/,/^if has style/p' scripts/check-all | sed '$d'
    cat <<'END'
good() { one good true || true; }
fine() { one fine true || true; }
bad() { one bad false || true; }
dead() { one before true || true; kill -KILL "$BASHPID"; }
wrong() { one early true || true; false; one late true || true; }
for f in "$@"; do aside "$f"; done
gather
tests/run-summary total "$tally"
END
} >"$work/run"
run() { bash "$work/run" "$@" >"$work/said" 2>&1; }
run good fine && grep -qx '2 passed, 0 failed, 0 skipped' "$work/said"
ok 'parts that end well' $?
run good bad fine
[ $? = 1 ] && grep -qx '2 passed, 1 failed, 0 skipped' "$work/said"
ok 'a part in which something fails' $?
run good dead fine
[ $? = 1 ] && grep -qx '3 passed, 1 failed, 0 skipped' "$work/said" && grep -q '^failed: dead' "$work/said" && grep -q 'status 137' "$work/said"
ok 'a part that is killed counts as a failure, and the others are counted' $?
run wrong fine
[ $? = 1 ] && grep -qx '2 passed, 1 failed, 0 skipped' "$work/said" && grep -q '^failed: wrong' "$work/said"
ok 'a part that ends on an error counts as a failure' $?
[ $failed = 0 ] || cat "$work/said"
exit $failed
