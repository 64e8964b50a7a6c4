#!/bin/sh
# shellcheck disable=SC2119 # functions of tests/vm/init
# Jobs by AF_XDP over cards of virtio, on a VLAN if VLAN is set, from machine a. ZERO_COPY: the cards can do without copies.
host || exit 1
network
await_other || exit 1
i=eth0${VLAN:+.$VLAN}
echo "# Linux $(uname -r)"
echo "# $(inside ip -brief address show dev "$i" 2>/dev/null | tr -s ' ')"
first=$(udp_arrivals)
on_both -n 2 "$BUILD/tests/multi-fm_beat" 100 20 / >/tmp/said 2>/tmp/err
udp=$(($(udp_arrivals) - first))
ok "messages arrive by UDP" $?
first=$(udp_arrivals)
(sleep 4; ip link show dev eth0 >/tmp/attached; pid=$(grep -lsx multi-fm_beat /proc/[0-9]*/comm | head -n 1)
 pid=${pid#/proc/}; inside "$BUILD/tools/runnel" info --pid "${pid%/comm}" >/tmp/info 2>&1) &
on_both -n 2 --transport xdp "$BUILD/tests/multi-fm_beat" 300 20 / >/tmp/said 2>/tmp/err
ok "messages arrive by AF_XDP, each once and whole" $?
wait
xdp=$(($(udp_arrivals) - first))
cat /tmp/said /tmp/err | sed 's/^/# /'
grep 'AF_XDP' /tmp/info | sed 's/^/# info: /'
if [ "$(uname -r | awk -F. '{print ($1 * 100 + $2 < 604)}')" = 1 ]; then # its rings are their binder's alone
    [ "$(grep -c 'does without AF_XDP.*it takes Linux 6.4' /tmp/err)" = 2 ]
    ok "an old kernel sends all of them, and the job says why" $?
    grep -q 'all datagrams go by the kernel: .*it takes Linux 6.4' /tmp/info
    ok "as does runnel info" $?
    on_both -n 2 --transport xdp "$BUILD/tests/multi-fm_alltoall" 1 10 >/tmp/said 2>/tmp/err
    ok "long messages arrive, too" $?
    end_other
    return
fi
echo "# the kernel delivered $udp datagrams of 100 beats, and $xdp beside the rings of 300"
grep -q 'AF_XDP: queue 0 of eth0, .*: rings to [1-9]' /tmp/info
ok "by the rings of the interface, and runnel info says so" $?
[ "$(sed -n 's/^beat .* frames \([0-9]*\).*/\1/p' /tmp/said | awk '$1 > 200' | wc -l)" = 2 ] && [ $xdp -lt 200 ]
ok "most of them past the kernel" $?
if [ -n "$ZERO_COPY" ]; then
    # The driver of 6.12 cannot yet, that of 7.3 can; which release between them is the first is not known here.
    case $(uname -r | awk -F. '{print $1 * 100 + $2}') in
    60* | 610 | 611 | 612) mode='native, copies' ;;
    6*) mode='native, .*' ;;
    *) mode='native, zero copy' ;;
    esac
    grep -q "AF_XDP: queue 0 of eth0, $mode:" /tmp/info
    ok "without copies where the driver can do that, and else with one" $?
fi
on_both -n 4 --transport xdp "$BUILD/tests/multi-fm_alltoall" 1 10 >/tmp/said 2>/tmp/err
ok "long messages do, too, from and to two ranks that share the queue" $?
end_other
