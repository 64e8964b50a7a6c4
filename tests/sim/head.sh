#!/usr/bin/env bash
# What the scripts of this folder begin with: the build in $RUNNEL_BUILD, the command in $RUNNEL, a folder of its own to
# work in, and how a case is told: "ok - name" or "not ok - name". Sourced, not run; ends the script with 77 if
# something is missing.
# shellcheck disable=SC2034 # for those who source it
set -uo pipefail

source=${RUNNEL_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${RUNNEL_BUILD:-$source/build}
runnel=${RUNNEL:-$build/tools/runnel}
vprocs=$build/tests
failed=0

needs() { # files...
    local file
    for file in "$runnel" "$@"; do
        if [ ! -e "$file" ]; then
            echo "$file is not built"
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
hash_of() { sed -n 's/^runnel: .* hash \([0-9a-f]\{16\}\)$/\1/p' "$1"; }
