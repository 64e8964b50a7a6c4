#!/bin/sh
# shellcheck disable=SC2119 # functions of tests/vm/init
# A ping-pong of two machines over the same two cards, driven by the kernel and then by the ranks; runs on both.
host || exit 1
load virtio_pci virtio_net e100
use_only() { # MODEL: the interfaces with this vendor have the addresses of the machines
    n=0
    for i in /sys/class/net/eth*; do
        ip address flush dev "${i##*/}"
        ip link set "${i##*/}" down
        grep -qx "$1" "$i/device/vendor" || continue
        ip link set "${i##*/}" up
        ip address add "10.0.$n.$(hostname | tr ab 12)/24" dev "${i##*/}"
        n=$((n + 1))
    done
}
measure() { # TRANSPORT WHAT
    on_both -n 2 --transport "$1" "$BUILD/examples/pingpong" >/tmp/said 2>/tmp/err
    ok "a ping-pong $2" $?
    cat /tmp/said /tmp/err | sed "s/^/# $1: /"
    ! grep -q 'does without' /tmp/err
    ok "by nothing else" $?
}
use_only 0x8086
if [ "$(hostname)" = b ]; then
    serve_agents
else
    await_other
    measure udp "by UDP over the kernel's e100"
    end_other
fi
for card in $(cards); do echo "$card" >/sys/bus/pci/drivers/e100/unbind; done
use_only 0x1af4
offer_cards
if [ "$(hostname)" = b ]; then
    serve_agents
else
    await_other
    measure i8255x "by the same cards without the kernel"
    end_other
fi
