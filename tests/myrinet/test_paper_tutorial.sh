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
status=$?

# Its tables: each call is one of the headers, and each register of the card is there.
page=$tree/man/runnel-paper-tutorial.7.scd
calls=$(sed 's/\\//g' "$page" | grep -oE '^\|  \*?myri_[a-z_]+' | sed 's/.*myri_/myri_/' | sort -u)
[ "$(wc -l <<<"$calls")" -ge 20 ] || { echo "not ok - the table has 20 calls"; status=1; }
for call in $calls; do
    grep -q "[ *]$call(" "$tree/sim/myrinet/hw/hw.h" || { echo "not ok - hw.h has no $call, which the page has"; status=1; }
done
while read -r register; do
    grep -q "^|.*\*$register\*" "$page" || { echo "not ok - the page has no register $register"; status=1; }
done < <(sed -n '/^ *ISR,$/,/^ *NIC_REGISTERS$/s/^ *\([A-Z]*\),$/\1/p' "$tree/sim/myrinet/hw/nic.h")
exit "$status"
