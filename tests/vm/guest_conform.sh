#!/bin/sh
# shellcheck disable=SC2046,SC2119 # words; functions of tests/vm/init
# The conformance suite of datagrams over two cards on one wire, bare and inside faults; through vfio, where there is an
# IOMMU, with the descriptor that interrupts make readable.
host || exit 1
offer_cards
way=$([ -n "$(ls /sys/kernel/iommu_groups)" ] && echo vfio || echo uio)
set -- $(cards)
code=0
for faults in "" loss=2%,dup=2%,reorder=3%:40us,delay=1us..30us; do
    inside "$BUILD/tests/conform-i8255x" "$way" "$1" "$2" $faults || code=1
done
(exit $code)
