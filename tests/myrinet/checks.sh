# shellcheck shell=bash disable=SC2317
# What the scripts that test runnel paper share: the head of all scripts, and what a command prints and refuses.
# shellcheck source=tests/support/test.sh disable=SC2034 # for those who source this
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
export RUNNEL=$runnel RUNNEL_SOURCE=$tree
work=$dir
check() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >"$dir/out" 2>"$dir/err"
    ok "$name" $?
}
refuses() { # NAME WORDS COMMAND...
    local name=$1 words=$2
    shift 2
    ! "$@" >"$dir/out" 2>"$dir/err" && grep -q -e "$words" "$dir/err"
    ok "$name" $?
}
is_usage() { # NAME WORDS COMMAND...: refused as wrong arguments are, before anything is printed
    local name=$1 words=$2 status=0
    shift 2
    "$@" >"$dir/out" 2>"$dir/err" || status=$?
    [ $status -eq 64 ] && [ ! -s "$dir/out" ] && grep -q -e "$words" "$dir/err"
    ok "$name" $?
}
paper() { "$RUNNEL" paper "$@"; }
systems() { paper list | sed -n '/^Systems:/,/^Machines:/s/^  \([^ ]*\) .*/\1/p'; } # all that there are
