#!/usr/bin/env bash
# `runnel sim decode`: a trace becomes lines, all of them or those asked for; what is no trace is an error with a sentence.
# shellcheck disable=SC2317 # functions called through ok
set -u
runnel=${RUNNEL:?the runnel command}
story=$(dirname "${BASH_SOURCE[0]}")/story.pcapng # three datagrams: one arrives, two are lost
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

ok() { # NAME CONDITION...
    local name=$1
    shift
    if "$@"; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        sed 's/^/    /' "$dir/out" | cut -c1-200 | head -20
        failed=1
    fi
}
# decode STATUS ARGUMENT...: output and errors in $dir/out
decode() {
    local status=$1
    shift
    timeout 20 "$runnel" sim decode "$@" >"$dir/out" 2>&1 </dev/null
    [ $? = "$status" ]
}
lines() { [ "$(wc -l <"$dir/out")" = "$1" ]; }
says() { grep -q -e "$1" "$dir/out"; }

ok "each datagram is a line where it was sent and where it ended" decode 0 "$story"
ok "six of them" lines 6
ok "with virtual times" says '^ *1\.500002000 got  0:7000 > 1:7000 '
ok "with frames in words" says 'bulk lane 0 at 64: 16 B; words granted\[0\] 900'
ok "with where and why one was lost" says 'dropped at s0>2: lost by a fault, nth\]$'
ok "--host picks those of a host" decode 0 --host 2 "$story"
ok "two of them" lines 2
ok "--lost picks what did not arrive" decode 0 --lost "$story"
ok "two of these, too" lines 2
timeout 20 "$runnel" sim decode - <"$story" >"$dir/out" 2>&1
ok "- is the standard input" lines 6
ok "a file that is not there is an error" decode 71 "$dir/none"
ok "that says so" says 'No such file'
ok "what is no trace is an error" decode 71 "$runnel"
ok "that says what is one" says 'runnel sim --trace FILE writes one'
head -c 500 "$story" >"$dir/half"
ok "half a trace is an error" decode 71 "$dir/half"
ok "after the lines that are whole" says ' sent 0:7000'
ok "without a file there is nothing to do" decode 64
ok "a host is a number" decode 64 --host x "$story"
exit $failed
