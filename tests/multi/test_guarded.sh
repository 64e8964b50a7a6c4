#!/usr/bin/env bash
# Handlers in C++ that throw (runnel/guarded.hpp), over shared memory and over UDP: the endpoint serves on. Prints "ok - name"
# or "not ok - name". Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
cxx=${CXX:-g++}
flags=(-std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$tree/include")

if ! command -v "$cxx" >/dev/null; then
    echo "ok - handlers that throw # SKIP no C++ compiler"
    exit 0
fi
if command -v clang++ >/dev/null; then
    clang++ "${flags[@]}" -fsyntax-only "$tree/tests/multi/guarded.cpp" 2>"$dir/said"
    ok "the header as clang reads it" $?
fi
if grep -qE '__(asan|tsan)_init' "$build/src/librunnel.so"; then
    echo "ok - handlers that throw # SKIP the library has a sanitizer in it"
    exit "$failed"
fi
"$cxx" "${flags[@]}" -O2 -o "$dir/guarded" "$tree/tests/multi/guarded.cpp" -L"$build/src" -lrunnel 2>"$dir/said"
ok "the program compiles" $?
export LD_LIBRARY_PATH=$build/src
for transport in auto udp; do
    timeout -k 5 60 "$runnel" run --timeout 50 --transport $transport -n 2 "$dir/guarded" >"$dir/out" 2>&1 </dev/null &&
        [ "$(cat "$dir/out")" = ok ]
    ok "400 exceptions over $transport are thrown again, and each message is handled" $?
done
ulimit -c 0
for handler in whole stream death; do
    timeout -k 5 60 "$runnel" run --timeout 50 --keep-going -n 2 "$dir/guarded" $handler >"$dir/out" 2>&1 </dev/null
    grep -q 'terminate called after throwing an instance of' "$dir/out" && grep -q 'rank 1 .* killed by signal 6' "$dir/out" &&
        ! grep -q 'not ok' "$dir/out"
    ok "an exception that leaves a handler that is not guarded ends the process, and it says what was thrown: $handler" $?
done
exit "$failed"
