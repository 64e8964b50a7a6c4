#!/bin/sh
# shellcheck disable=SC2046,SC2119 # words; functions of tests/vm/init
# Asks the other machine $QUESTIONS times, by cards that nobody drives.
host || exit 1
load uio_pci_generic
echo 8 >/proc/sys/vm/nr_hugepages
inside "$BUILD/tests/vm-cards" ask $(cards) "$QUESTIONS" 2
