# shellcheck shell=bash disable=SC2317
# What the scripts that test runnel paper share: check, refuses, and a folder to work in.
set -u
: "${RUNNEL:?}" "${RUNNEL_SOURCE:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" >"$work/out" 2>"$work/err"; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        head -n 5 "$work/out" "$work/err"
        failed=1
    fi
}
refuses() { # NAME WORDS COMMAND...
    local name=$1 words=$2
    shift 2
    if ! "$@" >"$work/out" 2>"$work/err" && grep -q -e "$words" "$work/err"; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        head -n 5 "$work/out" "$work/err"
        failed=1
    fi
}
is_usage() { # NAME WORDS COMMAND...: refused as wrong arguments are, before anything is printed
    local name=$1 words=$2 status=0
    shift 2
    "$@" >"$work/out" 2>"$work/err" || status=$?
    if [ $status -eq 64 ] && [ ! -s "$work/out" ] && grep -q -e "$words" "$work/err"; then
        echo "ok - $name"
    else
        echo "not ok - $name (status $status)"
        head -n 5 "$work/out" "$work/err"
        failed=1
    fi
}
paper() { "$RUNNEL" paper "$@"; }
