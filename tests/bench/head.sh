# shellcheck shell=bash
# What the tests of `runnel bench` begin with, sourced by them: the command in $RUNNEL, a folder of their own, $out, and
# how a case is told: "ok - name" or "not ok - name". They end with `exit $status`.
# shellcheck disable=SC2034 # for those who source it
set -u
runnel=${RUNNEL:?the runnel command}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0

verdict() { # NAME CODE [FILES TO SHOW]
    local name=$1 code=$2
    shift 2
    if [ "$code" = 0 ]; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        [ $# = 0 ] || head -c 4000 "$@"
        status=1
    fi
}

# 75: the machine left no repetition undisturbed, and bench said so. Everything but the figures must be there even then.
well() { [ "$1" = 0 ] || { [ "$1" = 75 ] && grep -q 'nothing was measured' "$out/stderr"; }; }
