# shellcheck shell=bash
# For the tests of an example, sourced by them: example NAME SECONDS TOOL... looks for the program and for what the test
# needs (exit 77 where something is missing), and changes to an empty folder that goes when the test ends. The build is
# in $RUNNEL_BUILD, the command in $RUNNEL. Afterwards: run, ok, and $failed at the end.
# shellcheck disable=SC2034 # what it sets is for them
build=${RUNNEL_BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build}
runnel=${RUNNEL:-$build/tools/runnel}
failed=0

example() {
    local needed
    program=$build/examples/$1
    seconds=$2
    shift 2
    for needed in "$runnel" "$program"; do
        if [ ! -x "$needed" ]; then
            echo "$needed is not built"
            exit 77
        fi
    done
    for needed in "$@"; do
        if ! command -v "$needed" >/dev/null; then
            echo "$needed is not installed"
            exit 77
        fi
    done
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    cd "$dir" || exit 1
}

ok() { # name status
    if [ "$2" = 0 ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        failed=1
    fi
}

run() { # ranks arguments...
    local ranks=$1
    shift
    timeout "$seconds" "$runnel" run -n "$ranks" "$program" "$@"
}
