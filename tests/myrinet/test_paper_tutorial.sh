#!/usr/bin/env bash
# runnel-paper-tutorial(7): each of its commands is run, and prints what stands there.
# shellcheck disable=SC2154 # variables of test.sh
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
needs_commands clang-14 llvm-objcopy-14 llvm-dwarfdump-14 cc python3
cd "$dir" || exit 1
mkdir bin
ln -s "$(realpath "$runnel")" bin/runnel
PATH=$dir/bin:$PATH python3 "$tree/tests/myrinet/tutorial.py" "$tree/man/runnel-paper-tutorial.7.scd"
