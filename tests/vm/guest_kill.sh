#!/bin/sh
# shellcheck disable=SC2046,SC2119 # words; functions of tests/vm/init
# Whoever drives a card is killed; the card must not be master of the bus any more, and can be driven again.
host || exit 1
load uio_pci_generic
echo 8 >/proc/sys/vm/nr_hugepages
set -- $(cards)
inside "$BUILD/tests/vm-cards" hold "$1" >/tmp/held 2>&1 &
for _ in $(seq 300); do grep -q held /tmp/held && break; sleep 0.1; done
cat /tmp/held
if ! grep -q held /tmp/held; then
    echo "not ok - a card is driven within 300 looks; command word $(command_word "$1"), and there run:"
    for p in $(pidof vm-cards); do cat "/proc/$p/stat" "/proc/$p/wchan" && kill -9 "$p"; done
    return 1
fi
alive=$(command_word "$1")
kill -9 "$(sed 's/held by //' /tmp/held)"
wait
dead=$(command_word "$1")
echo "command word: $alive alive, $dead killed"
[ $((alive & 4)) = 4 ] && echo "ok - a card that is driven is master of the bus" || echo "not ok - master while driven"
[ $((dead & 4)) = 0 ] && echo "ok - who is killed leaves no card that writes into memory" || echo "not ok - silent after a kill"
inside "$BUILD/tests/vm-cards" state "$1" >/tmp/state
cat /tmp/state
grep -q '^receive unit: 0$' /tmp/state && echo "ok - and when it may reach memory again its units stand still" || echo "not ok - its units stand still"
if inside "$BUILD/tests/conform-i8255x" uio "$1" "$2" >/tmp/again 2>&1; then
    echo "ok - the card works again"
else
    cat /tmp/again
    echo "not ok - the card works again"
fi
