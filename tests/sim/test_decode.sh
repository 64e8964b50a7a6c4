#!/usr/bin/env bash
# `runnel sim decode`: a trace becomes lines, all of them or those asked for; what is no trace is an error with a sentence.
# shellcheck disable=SC2317 # functions called through check
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
story=$(dirname "${BASH_SOURCE[0]}")/story.pcapng # three datagrams: one arrives, two are lost

# decode STATUS ARGUMENT...: output and errors in $dir/out
decode() {
    local status=$1
    shift
    timeout 60 "$runnel" sim decode "$@" >"$dir/out" 2>&1 </dev/null
    [ $? = "$status" ]
}
lines() { [ "$(wc -l <"$dir/out")" = "$1" ]; }
says() { grep -q -e "$1" "$dir/out"; }

check "each datagram is a line where it was sent and where it ended" decode 0 "$story"
check "six of them" lines 6
check "with virtual times" says '^ *1\.500002000 got  0:7000 > 1:7000 '
check "with frames in words" says 'bulk lane 0 at 64: 16 B; words granted\[0\] 900'
check "with where and why one was lost" says 'dropped at s0>2: lost by a fault, nth\]$'
check "--host picks those of a host" decode 0 --host 2 "$story"
check "two of them" lines 2
check "--lost picks what did not arrive" decode 0 --lost "$story"
check "two of these, too" lines 2
timeout 60 "$runnel" sim decode - <"$story" >"$dir/out" 2>&1
check "- is the standard input" lines 6
check "a file that is not there is an error" decode 71 "$dir/none"
check "that says so" says 'No such file'
check "what is no trace is an error" decode 71 "$runnel"
check "that says what is one" says 'runnel sim --trace FILE writes one'
head -c 500 "$story" >"$dir/half"
check "half a trace is an error" decode 71 "$dir/half"
check "after the lines that are whole" says ' sent 0:7000'
check "without a file there is nothing to do" decode 64
check "a host is a number" decode 64 --host x "$story"
exit "$failed"
