#!/usr/bin/env bash
# libamudp as a stranger sees it: its symbols, and programs that are compiled with the plain command line of amudp.h, as
# C and C++, in each configuration, against the shared and the static library alone.
# shellcheck disable=SC2317 # functions that are arguments
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
here=$tree/tests/amudp
check() { # NAME COMMAND...
    local name=$1
    shift
    "$@" >"$dir/out" 2>&1 </dev/null
    ok "$name" $?
}
same() { # FILE FILE: sets of lines
    diff "$1" "$2"
}
includes=(-I"$tree/include" -DAMUDP)
cc=${CC:-gcc}
cxx=${CXX:-g++}

nm -D --defined-only "$build/src/libamudp.so" |
    awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$dir/exported"
sed -nE '/global:/,/local:/s/^ *([A-Za-z0-9_]+);.*/\1/p' "$tree/src/api/amudp/amudp.map" | sort -u >"$dir/mapped"
grep -v '^#' "$here/symbols" | sort -u >"$dir/wanted"
check "the library exports what its map names" same "$dir/mapped" "$dir/exported"
comm -23 "$dir/wanted" "$dir/exported" >"$dir/missing"
check "each symbol that programs for AMUDP look for is there" test ! -s "$dir/missing"
sed -nE 's/^#define +[A-Za-z_]+ +(AMUDP_[A-Za-z]+)$/\1/p' "$tree/include/amudp.h" |
    grep -v 'AMX_\|_t$' | sort -u >"$dir/coexist"
comm -23 "$dir/coexist" "$dir/exported" >"$dir/missing"
check "... and the second names of AMUDP_COEXIST_WITH_AM" test ! -s "$dir/missing"
cat "$dir/wanted" "$dir/coexist" | sort -u >"$dir/allowed"
comm -13 "$dir/allowed" "$dir/exported" >"$dir/more"
check "nothing else is exported" test ! -s "$dir/more"
# w13: AMUDP needs a C++ compiler and its run-time.
check "w13: it needs no C++ run-time, and no other library of ours" \
    sh -c "! readelf -d '$build/src/libamudp.so' | grep -E 'NEEDED.*(stdc|librunnel)'"
check "the table of constants, as C" "$cc" -std=c11 "${includes[@]}" -DAMUDP_NDEBUG=1 -Wall -Wextra -Wpedantic -Werror \
    -c -o "$dir/constants.o" "$here/constants.c"
check "the table of constants, as C++" "$cxx" -std=c++11 "${includes[@]}" -DAMUDP_NDEBUG=1 -Wall -Wextra -Werror -x c++ \
    -c -o "$dir/constants++.o" "$here/constants.c"
if command -v clang >/dev/null; then
    check "the table of constants, with clang" clang -std=c11 "${includes[@]}" -DAMUDP_NDEBUG=1 -Wall -Wextra -Werror \
        -fsyntax-only "$here/constants.c"
fi
printf '#include <amudp_const.h>\n#ifdef AM_Request0\n#error\n#endif\nint x = AM_OK;\n' >"$dir/const.c"
check "amudp_const.h alone brings no calls" "$cc" "${includes[@]}" -DAMUDP_NDEBUG=1 -c -o "$dir/const.o" "$dir/const.c"
printf '#include <amudp.h>\n' >"$dir/both.c"
check "both configurations at once are refused" \
    sh -c "! $cc -I'$tree/include' -DAMUDP_DEBUG=1 -DAMUDP_NDEBUG=1 -c -o '$dir/both.o' '$dir/both.c'"
if grep -qE '__(asan|tsan)_init' "$build/src/libamudp.so"; then
    echo "ok - programs with a plain command line # SKIP the library has a sanitizer in it"
    exit "$failed"
fi

export PATH=$build/tools:$PATH LD_LIBRARY_PATH=$build/src
unset AMUDP_SPAWNFN GASNET_SPAWNFN SPAWNFN
privates=$(sed -nE 's/^Libs.private: *//p' "$build/meson-private/amudp.pc")
program=("$here/spmd.c" "$here/spmd_ends.c")
run() { timeout -k 5 60 "$@"; }
check "a program with the shared library" "$cc" "${includes[@]}" -DAMUDP_NDEBUG=1 -O2 "${program[@]}" -o "$dir/shared" \
    -L"$build/src" -lamudp
check "... runs" run "$dir/shared" 2 L messages
# shellcheck disable=SC2086 # words
check "a program with the static library alone" "$cc" "${includes[@]}" -DAMUDP_NDEBUG=1 -O2 "${program[@]}" \
    -o "$dir/static" "$build/src/libamudp.a" $privates
check "... runs" run "$dir/static" 2 L messages
check "a program in the debug configuration" "$cc" "${includes[@]}" -DAMUDP_DEBUG=1 -O0 "${program[@]}" -o "$dir/debug" \
    -L"$build/src" -lamudp
check "... runs" run "$dir/debug" 2 L messages
check "a program that leaves AM's names to others" "$cc" "${includes[@]}" -DAMUDP_COEXIST_WITH_AM -DAMUDP_NDEBUG=1 -O2 \
    "${program[@]}" -o "$dir/coexist-program" -L"$build/src" -lamudp
check "... runs" run "$dir/coexist-program" 2 L messages
check "... and has none of them" sh -c "! nm -u '$dir/coexist-program' | grep -E ' (AM_(Poll|Map|SetTag)|_AM_)'"
exit "$failed"
