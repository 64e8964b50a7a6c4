#!/usr/bin/env bash
# What the virtual cluster's C library does is what the real one does: one program, run both ways, says the same.
# Finds the build in $RUNNEL_BUILD and the command in $RUNNEL. Prints "ok - name" or "not ok - name"; exits 77 if
# something is missing.
set -uo pipefail

build=${RUNNEL_BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build}
runnel=${RUNNEL:-$build/tools/runnel}
process=$build/tests/libc-process
guest=$build/tests/guest-libc.so
for needed in "$runnel" "$process" "$guest"; do
    if [ ! -e "$needed" ]; then
        echo "$needed is not built"
        exit 77
    fi
done

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0

both() { # arguments...: the same as a process and as a rank
    printf 'from standard input\n' | (exec -a prog "$process" "$@") >one 2>one.err
    local status=$?
    ln -sf "$guest" prog
    printf 'from standard input\n' | "$runnel" sim -n 1 prog "$@" >two 2>two.err
    local other=$?
    sed -i '$d' two
    grep -v '^runnel: ' two.err >two.own
    if [ $status = $other ] && cmp -s one two && cmp -s one.err two.own; then
        echo "ok - arguments: $*"
    else
        echo "not ok - arguments: $*"
        echo "# status $status and $other"
        diff one two | head -n 5 | sed 's/^/# /'
        diff one.err two.own | head -n 5 | sed 's/^/# /'
        failed=1
    fi
}

both
both -a x -b one y --alpha z
both x y -ab one -gtwo -g three
both --beta=1 --beta 2 --gamma --gamma=3 --flag w
both --al --fla --fl --nothing -z
both -b
both x --beta
both a -- -a b
both - -a -- --alpha
both --alpha=3 x
both -a -a - -b-a
exit $failed
