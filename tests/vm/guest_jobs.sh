#!/bin/sh
# shellcheck disable=SC2046,SC2086,SC2119 # words; functions of tests/vm/init
# Jobs of two machines whose ranks drive a card each, without any privilege, from machine a.
host || exit 1
network
await_other || exit 1
nobody="setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all"

on_both -n 2 --transport i8255x "$BUILD/tests/multi-fm_alltoall" 1 10 >/tmp/said 2>/tmp/err
ok "a job goes on where a machine has no card to hand out" $?
grep 'does without' /tmp/err
grep -q 'host a: does without .*uio_pci_generic' /tmp/err
ok "and says why" $?

offer_cards
lines="$TREE/man/runnel.7.scd $TREE/man/runnel-run.1.scd $TREE/man/runnel-bench.1.scd" # both machines see them
inside env LC_ALL=C sort -o /tmp/expected $lines
first=$(udp_arrivals)
on_both -n 2 --transport i8255x $nobody "$BUILD/tests/multi-fm_alltoall" 1 10 >/tmp/said 2>/tmp/err
ok "FM's messages arrive by cards that nobody's processes drive" $?
on_both -n 2 --transport i8255x $nobody "$BUILD/tests/am-beat" 60 5 >/tmp/said 2>/tmp/err
ok "requests and replies do" $?
on_both -n 2 --transport i8255x "$BUILD/examples/sort" $lines -o /tmp/result 2>/tmp/err && cmp /host/tmp/result /host/tmp/expected
ok "sort sorts by cards" $?
[ -s /tmp/err ] && cat /tmp/err
# shellcheck disable=SC2016 # that is for the shell of each rank
# What the first rank sends meanwhile waits in the second one's UDP socket, and is what they begin with.
on_both -n 2 --transport i8255x sh -c '[ "$(hostname)" = b ] && sleep 1.5; exec "$@"' sh "$BUILD/tests/multi-fm_beat" 100 20 >/tmp/said 2>&1
sed 's/^/# /' /tmp/said
[ "$(sed -n 's/^beat .* frames \([0-9]*\).*/\1/p' /tmp/said | awk '$1 > 50' | wc -l)" = 2 ]
ok "ranks go on by cards when one of them comes late" $?
udp=$(($(udp_arrivals) - first))
masters() { for slot in $(cards); do echo $(($(command_word "$slot") & 4)); done | awk '{n += $1 / 4} END {print n}'; }
on_both -n 2 --transport i8255x "$BUILD/tests/multi-fm_beat" 100 20 /tmp/enough >/tmp/other 2>&1 &
other=$!
for _ in $(seq 200); do [ "$(masters)" = 2 ] && break; sleep 0.1; done
sleep 1
on_both -n 2 --transport i8255x "$BUILD/tests/multi-fm_alltoall" 1 2 >/tmp/said 2>/tmp/err
grep -c 'does without the card .*another process has it' /tmp/err | grep -qx 4
ok "a job goes on without the cards that another one has" $?
kept=$(masters)
on_both -n 2 touch /tmp/enough
wait $other && [ "$kept" = 2 ]
ok "which keeps them" $?
sed 's/^/# /' /tmp/other
echo "# the kernel delivered $udp datagrams meanwhile"
[ $udp -lt 100 ]
ok "only the probes of agents go by the kernel" $?
masters=0
for slot in $(cards); do masters=$((masters + ($(command_word "$slot") & 4))); done
ok "no card is master of the bus when the jobs have ended" $masters
end_other
