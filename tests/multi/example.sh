# shellcheck shell=bash
# For the tests of an example, sourced by them: example NAME SECONDS TOOL... looks for the program and for what the test
# needs (exit 77 where something is missing), and changes to an empty folder that goes when the test ends. The build is
# in $RUNNEL_BUILD, the command in $RUNNEL. Afterwards: run, ok, and $failed at the end.
# shellcheck disable=SC2034 # what it sets is for them
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"

example() {
    program=$build/examples/$1
    seconds=$2
    shift 2
    needs_files "$program"
    needs_commands "$@"
    cd "$dir" || exit 1
}

run() { # ranks arguments...
    local ranks=$1
    shift
    timeout "$seconds" "$runnel" run -n "$ranks" "$program" "$@"
}
