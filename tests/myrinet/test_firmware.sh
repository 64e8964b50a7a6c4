#!/usr/bin/env bash
# The committed objects of the papers' firmware are what clang-14 makes of the sources, to the byte.
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
needs_commands clang-14 llvm-objdump-14
check "the committed objects are those of the sources" "$tree/sim/myrinet/firmware" --check
exit "$failed"
