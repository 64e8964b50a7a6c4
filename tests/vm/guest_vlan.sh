#!/bin/sh
# shellcheck disable=SC2119 # functions of tests/vm/init
# The conformance suite of datagrams over AF_XDP on a VLAN between two namespaces of one machine.
host || exit 1
load veth 8021q
inside "$BUILD/tests/conform-xdp-vlan" 2 4 vlan
