#!/bin/sh
# shellcheck disable=SC2119 # functions of tests/vm/init
# Jobs over two cards of virtio, whose links go down one after the other while they run and of which the kernel says so,
# from machine a.
host || exit 1
network
await_other || exit 1
becomes() { for _ in $(seq 300); do [ "$(cat "/sys/class/net/$1/carrier")" = "$2" ] && return; sleep 0.1; done; } # CARD LINK
for by in udp xdp; do
    echo "links by $by"
    on_both -n 2 --transport $by "$BUILD/tests/multi-fm_beat" 20 20 /tmp/enough-$by 2>&1 &
    job=$!
    becomes eth0 0 && becomes eth0 1 && becomes eth1 0 && becomes eth1 1
    on_both -n 2 touch /tmp/enough-$by
    wait $job
    ok "each message arrives once, in order, when links go down, by $by" $?
done
end_other
