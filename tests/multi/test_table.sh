#!/usr/bin/env bash
# examples/table on real processes and on the virtual cluster: everything stored is found, over one host and several, with
# faults; when a rank is killed or crashes what was asked of it comes back, and the others go on.
# Finds the build in $RUNNEL_BUILD and the command in $RUNNEL. Prints "ok - name" or "not ok - name"; exits 77 if
# something is missing.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
set -o pipefail

program=$build/examples/table
vproc=$build/tests/vproc-table.so
needs_files "$program" "$vproc"

cd "$dir" || exit 1

whole() { # file ranks keys: each rank found all
    [ "$(grep -c "^rank [0-9]* of $2: $3 stored, $3 found, 0 missing, 0 lost\$" "$1")" = "$2" ]
}

for ranks in 1 2 4; do
    "$runnel" run -n $ranks "$program" 3000 >out
    ok "$ranks ranks end with status 0" $?
    whole out $ranks 3000
    ok "$ranks ranks find what they stored" $?
done

"$runnel" run --transport udp -n 3 "$program" 3000 >out && whole out 3 3000
ok "3 ranks with datagrams between them find what they stored" $?

# faults on the way, hosts of two ranks
for faults in loss=0% "loss=3%,dup=2%,reorder=5%:50us,corrupt=1%"; do
    "$runnel" sim -n 6 --hosts 3 --fault "$faults" --seed 5 "$vproc" 400 >out 2>err
    status=$?
    [ $status = 0 ] || sed 's/^/    /' err
    ok "3 virtual hosts, $faults: status 0" $status
    whole out 6 400
    ok "3 virtual hosts, $faults: all is found" $?
done
"$runnel" sim -n 6 --hosts 3 --fault "$faults" --seed 5 "$vproc" 400 >again 2>err
cmp -s out again
ok "a second run is the same" $?

# a rank crashes: the others end, and what they asked is answered or lost, all of it
for at in 20us 60us 200us 1ms; do
    printf 'at %s crash 3\n' $at >disaster
    "$runnel" sim -n 6 --hosts 3 --keep-going --fault loss=1% --scenario disaster --seed 5 "$vproc" 2000 >out 2>err
    others=$(awk '/^rank [01245] of 6:/ { sub(":", ""); ends += $5 + $7 + $9 + $11 == 4000 } END { print ends + 0 }' out)
    [ "$others" = 5 ]
    ok "a crash after $at: the five others end, with nothing unanswered" $?
done

# what it had read of their requests was said, and the answers got lost with it: these requests come back, too
printf 'at 500us crash 3\n' >disaster
for seed in 4 10 14; do
    "$runnel" sim -n 6 --hosts 3 --keep-going --fault loss=1% --scenario disaster --seed $seed "$vproc" 2000 >out 2>err
    others=$(awk '/^rank [01245] of 6:/ { sub(":", ""); ends += $5 + $7 + $9 + $11 == 4000 } END { print ends + 0 }' out)
    [ "$others" = 5 ]
    ok "a crash with answers under way, seed $seed: the five others end, with nothing unanswered" $?
done

exit "$failed"
