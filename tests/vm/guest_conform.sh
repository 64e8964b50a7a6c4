#!/bin/sh
# shellcheck disable=SC2046,SC2119 # words; functions of tests/vm/init
# The conformance suite of datagrams over two cards on one wire, bare and inside faults.
host || exit 1
load uio_pci_generic
echo 8 >/proc/sys/vm/nr_hugepages
set -- $(cards)
code=0
for faults in "" loss=2%,dup=2%,reorder=3%:40us,delay=1us..30us; do
    inside "$BUILD/tests/conform-i8255x" uio "$1" "$2" $faults || code=1
done
(exit $code)
