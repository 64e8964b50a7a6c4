#!/bin/sh
# shellcheck disable=SC2046,SC2119 # words; functions of tests/vm/init
# Answers the other machine's questions.
host || exit 1
load uio_pci_generic
echo 8 >/proc/sys/vm/nr_hugepages
inside "$BUILD/tests/vm-cards" answer $(cards)
