# shellcheck shell=bash
# What scripts of tests begin with, sourced by them: where the build ($build), the command ($runnel) and the sources ($tree)
# are, a folder of their own that goes when they end ($dir), and how a case is told. They end with `exit $failed`.
# shellcheck disable=SC2034,SC2317 # for those who source it
set -u
tree=${RUNNEL_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${RUNNEL_BUILD:-$tree/build}
runnel=${RUNNEL:-$build/tools/runnel}
dir=$(mktemp -d)
failed=0
clean_up() { rm -rf "$dir"; } # those who leave more behind have one of their own
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# A case that is wrong shows what was left in files of the folder.
shown='said out err'
ok() { # NAME STATUS
    local file
    if [ "$2" = 0 ]; then
        echo "ok - $1"
        return
    fi
    echo "not ok - $1"
    # shellcheck disable=SC2086 # words and patterns
    for file in $(cd "$dir" && echo $shown); do
        [ -s "$dir/$file" ] && sed "s/^/# $file: /" "$dir/$file" | cut -c1-300 | head -n 40
    done
    failed=1
}
check() { # NAME COMMAND...
    local name=$1 result=0 # and not $status, which a command may look at
    shift
    "$@" || result=$?
    [ "$result" = 0 ] || echo "# failed: $*"
    ok "$name" "$result"
}
needs_commands() { # NAME...: the test is skipped where one is not installed
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null || { echo "$name is not installed"; exit 77; }
    done
}
needs_files() { # FILE...
    local file
    for file in "$runnel" "$@"; do
        [ -e "$file" ] || { echo "$file is not built"; exit 77; }
    done
}
