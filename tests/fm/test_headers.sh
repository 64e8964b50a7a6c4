#!/usr/bin/env bash
# fm.h and fm1.h exclude each other in one file, in both orders, and say why; each alone compiles, with its names, also as C++.
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"

# compile NAME WANT LANGUAGE SOURCE: WANT is "good" or what the compiler must say
compile() {
    if [ "$3" = c++ ] && ! echo | "${CC:-cc}" -x c++ -fsyntax-only - 2>/dev/null; then
        echo "ok - $1 # SKIP no C++ compiler"
        return
    fi
    printf '%s\n' "$4" >"$dir/source"
    if "${CC:-cc}" -x "$3" -fsyntax-only -Wall -Werror -I "$tree/include" "$dir/source" 2>"$dir/said"; then
        [ "$2" = good ]
    else
        grep -qF -- "$2" "$dir/said"
    fi
    ok "$1" $?
}

why="fm.h and fm1.h share the name FM_extract: include one of them in a file"
compile "fm.h, then fm1.h is an error" "$why" c $'#include <runnel/fm.h>\n#include <runnel/fm1.h>'
compile "fm1.h, then fm.h is an error" "$why" c $'#include <runnel/fm1.h>\n#include <runnel/fm.h>'
fm=$'#include <runnel/fm.h>\n#include <runnel/fm.h>\nint (*e)(unsigned long) = FM_extract; FM_handler *h; void f(void); void f(void) { (void)FM_nodeid; (void)FM_numnodes; }'
fm1=$'#include <runnel/fm1.h>\n#include <runnel/fm1.h>\nint (*e)(void) = FM_extract; FM_handler *h; void f(void); void f(void) { FM_send_4(FM_numnodes, 1, 2, 3, 4, 5); }'
compile "fm.h alone, twice" good c "$fm"
compile "fm1.h alone, twice" good c "$fm1"
compile "fm.h as C++" good c++ "$fm"
compile "fm1.h as C++" good c++ "$fm1"
compile "both interfaces beside runnel.h" good c $'#include <runnel/runnel.h>\n#include <runnel/counters.h>\n#include <runnel/fm.h>\nint x;'
exit "$failed"
