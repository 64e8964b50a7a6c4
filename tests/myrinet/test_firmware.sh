#!/usr/bin/env bash
# The committed objects of the papers' firmware are what clang-14 makes of the sources, to the byte.
set -u
if ! command -v clang-14 >/dev/null || ! command -v llvm-objdump-14 >/dev/null; then
    echo "skip: clang-14 or llvm-14 is missing; scripts/setup check-all installs them"
    exit 77
fi
"${RUNNEL_SOURCE:?}/sim/myrinet/firmware" --check
