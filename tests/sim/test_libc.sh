#!/usr/bin/env bash
# What the virtual cluster's C library does is what the real one does: one program, run both ways, says the same.
# shellcheck source=tests/sim/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"
process=$vprocs/libc-process
vproc=$vprocs/vproc-libc.so
needs "$process" "$vproc"

both() { # arguments...: the same as a process and as a rank
    printf 'from standard input\n' | (exec -a prog "$process" "$@") >one 2>one.err
    local status=$?
    ln -sf "$vproc" prog
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
exit "$failed"
