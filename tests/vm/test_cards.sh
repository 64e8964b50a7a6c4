#!/usr/bin/env bash
# Cards of Intel's 8255x, driven by processes of machines that QEMU emulates: test_cards.sh conform|conform-vfio|jobs|strangers|failover|links|xdp|vlan|stripe|killed|killed-uio|tutorial|machines|e100|kill
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
shown='a.log b.log err out'
export RUNNEL_BUILD=$build VM_DIR=$dir VM_SECONDS=150
"$tree/scripts/vm" ready || exit 77
# cases N: a machine has told N cases, and all were good.
cases() {
    tr -d '\r' <"$dir/out" | sed -n 's/^\(a: \)\?\(\(not \)\?ok - .*\)/\2/p; s/^\(a: \)\?\(# .*\)/\2/p'
    [ "$(tr -d '\r' <"$dir/out" | grep -Ec '^(a: )?ok - ')" = "$1" ] && ! grep -q '^\(a: \)\?not ok' "$dir/out"
    ok "all $1 cases inside are good" $?
}
case $1 in
conform)
    "$tree/scripts/vm" one "$tree/tests/vm/guest_conform.sh" >"$dir/out" 2>&1
    ok "datagrams over cards keep the contract, bare and inside faults" $?
    check "a card's interrupt makes the descriptor readable, through uio too" grep -aq 'OK.*the descriptor tells of arrivals' "$dir/out"
    ;;
conform-vfio)
    VM_APPEND=intel_iommu=on "$tree/scripts/vm" one "$tree/tests/vm/guest_conform.sh" -device intel-iommu,caching-mode=on >"$dir/out" 2>&1
    ok "datagrams over cards that interrupt keep the contract" $?
    check "a card's interrupt makes the descriptor readable" grep -aq 'OK.*the descriptor tells of arrivals' "$dir/out"
    ;;
machines)
    VM_ENV="QUESTIONS=3000" "$tree/scripts/vm" pair "$tree/tests/vm/guest_ask.sh" "$tree/tests/vm/guest_answer.sh" >"$dir/out" 2>&1
    ok "two machines talk over cards that processes without privileges drive" $?
    check "no frame came damaged" grep -q '3000 answers, 0 wrong' "$dir/out"
    grep -h 'answers' "$dir/out"
    ;;
e100)
    # The kernel's driver may lose datagrams, so only round trips mean something, and those beside each other.
    "$tree/scripts/vm" pair "$tree/tests/vm/guest_e100.sh" "$tree/tests/vm/guest_e100.sh" >"$dir/out" 2>&1
    ok "both machines went through" $?
    cases 4
    took() { tr -d '\r' <"$dir/out" | sed -n "s/^a: # $1: *8 *\([0-9]*\) .*/\1/p" | head -n 1; } # TRANSPORT
    by_kernel=$(took udp) by_ranks=$(took i8255x)
    [ -n "$by_kernel" ] && [ -n "$by_ranks" ] && echo "# 8 bytes take $((100 * by_kernel / by_ranks)) % by the kernel of what they take without it"
    ;;
kill)
    "$tree/scripts/vm" one "$tree/tests/vm/guest_kill.sh" >"$dir/out" 2>&1
    ok "the machine went through" $?
    cases 4
    ;;
jobs)
    "$tree/scripts/vm" pair "$tree/tests/vm/guest_jobs.sh" "$tree/tests/vm/guest_serve.sh" >"$dir/out" 2>&1
    ok "both machines went through" $?
    cases 10
    ;;
failover)
    # Only the bus of an older machine lets a card be pulled.
    VM_MACHINE=pc "$tree/scripts/vm" pair "$tree/tests/vm/guest_failover.sh" "$tree/tests/vm/guest_serve.sh" >"$dir/out" 2>&1 &
    machines=$!
    # Waits until both ranks have moved N times, and tells how long that took.
    both_moved() { # N WHAT
        local began i
        began=$(date +%s%N)
        for ((i = 0; i < 600; i++)); do
            [ "$(tr -d '\r' <"$dir/a.log" | grep -c "^moves [01] $1 ")" = 2 ] && break
            kill -0 $machines 2>/dev/null || break
            sleep 0.05
        done
        echo "# $2: both have moved, known after $((($(date +%s%N) - began) / 1000000)) ms; in the machines:"
        tr -d '\r' <"$dir/a.log" | sed -n "s/^moves [01] $1 /# &/p"
    }
    happens() { "$tree/tests/vm/qmp" "$dir/$1.qmp" "${@:2}"; } # MACHINE COMMAND...
    for ((i = 0; i < 1200; i++)); do [ "$(grep -c '^beats' "$dir/a.log" 2>/dev/null)" = 2 ] && break; sleep 0.1; done
    happens a set_link name=c0 up=false
    ok "a link goes down" $?
    both_moved 1 "link off"
    happens a set_link name=c0 up=true && happens a device_del id=c1
    ok "the link is back and the other card is pulled" $?
    both_moved 2 "card pulled"
    happens b stop
    stopped=$(date +%s%N)
    sleep 0.4
    happens b cont
    ok "the other machine is stopped for 400 ms" $?
    echo "# it stood still for $((($(date +%s%N) - stopped) / 1000000)) ms"
    happens a device_del id=c0
    ok "the last card of a machine is pulled, and the kernel's is left" $?
    wait $machines
    ok "both machines went through" $?
    tr -d '\r' <"$dir/a.log" | grep -a '^beat '
    check "both have moved twice or more" test "$(tr -d '\r' <"$dir/a.log" | grep -c '^beat .* moved [2-9]')" = 2
    cases 1
    ;;
links)
    # A second card of virtio for each. Cards of virtio have no link when QEMU says so, and the kernel tells it.
    "$tree/scripts/vm" pair "$tree/tests/vm/guest_links.sh" "$tree/tests/vm/guest_serve.sh" \
        -netdev "dgram,id=v,local.type=unix,local.path=$dir/v%m,remote.type=unix,remote.path=$dir/v%o" \
        -device virtio-net-pci,id=second,netdev=v,romfile=,mac=52:54:00:00:11:0%m >"$dir/out" 2>&1 &
    machines=$!
    for by in udp xdp; do
        for ((i = 0; i < 1200; i++)); do
            [ "$(sed 's/\r//' "$dir/a.log" 2>/dev/null | sed -n "/^links by $by/,\$p" | grep -c '^beats')" = 2 ] && break
            kill -0 $machines 2>/dev/null || break
            sleep 0.1
        done
        # Not for long: the launcher's connection goes over the first, and what the other machine says.
        for card in kernel second; do
            "$tree/tests/vm/qmp" "$dir/a.qmp" set_link name=$card up=false && sleep 1.5 &&
                "$tree/tests/vm/qmp" "$dir/a.qmp" set_link name=$card up=true
            ok "the link of the $card card goes down, by $by, and comes back" $?
            sleep 1
        done
    done
    wait $machines
    ok "both machines went through" $?
    tr -d '\r' <"$dir/a.log" | sed -n '/^links by/s/^/# /p; /^moves/s/^/# /p; /^beat /s/^/# /p'
    check "each rank has moved, by UDP and by AF_XDP" test "$(tr -d '\r' <"$dir/a.log" | grep -c '^beat .* moved [1-9]')" = 4
    cases 2
    ;;
xdp | vlan)
    # With a tag of 802.1Q or without: the kernel of this machine may have no VLANs, that of QEMU's has.
    # A card of virtio that reads and writes memory through the kernel's interface for that can do without copies.
    vlan=5 zero_copy='' cards=() count=5
    [ "$1" = vlan ] || vlan='' zero_copy=1 cards=(-global virtio-net-pci.iommu_platform=on -global virtio-net-pci.disable-legacy=on) count=6
    VM_ENV="VLAN=$vlan ZERO_COPY=$zero_copy" "$tree/scripts/vm" pair "$tree/tests/vm/guest_xdp.sh" "$tree/tests/vm/guest_serve.sh" \
        "${cards[@]}" >"$dir/out" 2>&1
    ok "both machines went through" $?
    grep -aq 'an old kernel sends all of them' "$dir/out" && count=5 # it has no modes
    cases $count
    [ "$1" = xdp ] && exit "$failed"
    "$tree/scripts/vm" one "$tree/tests/vm/guest_vlan.sh" >"$dir/out" 2>&1
    status=$?
    [ $status = 77 ] && grep -a 'it takes Linux' "$dir/out" && exit "$failed"
    ok "datagrams on a VLAN keep the contract by AF_XDP" $status
    grep -a 'datagrams came by rings' "$dir/out" | sed 's/^/# /'
    ;;
stripe)
    # Two wires of 1.6 Mb/s. The second becomes 2 ms longer, and is cut later, when the machine says so.
    wires=
    for wire in 0 1; do
        "$build/tests/vm-wire" 200000 1000 "$dir/1$wire.out" "$dir/2$wire" "$dir/2$wire.out" "$dir/1$wire" >"$dir/wire$wire" 2>&1 &
        wires+=" $!"
    done
    VM_SECONDS=280 VM_WIRES=1 "$tree/scripts/vm" pair "$tree/tests/vm/guest_stripe.sh" "$tree/tests/vm/guest_serve.sh" >"$dir/out" 2>&1 &
    machines=$!
    on() { # WORD SIGNAL: sends it to the second wire when the machine says the word
        local i
        for ((i = 0; i < 2600; i++)); do grep -q "^$1" "$dir/a.log" 2>/dev/null && break; kill -0 $machines 2>/dev/null || break; sleep 0.1; done
        kill "-$2" "${wires##* }"
    }
    on 'longer now' USR1
    on 'cut now' USR2
    wait $machines
    ok "both machines went through" $?
    # shellcheck disable=SC2086 # words
    kill $wires && for wire in $wires; do wait "$wire" || failed=1; done
    sed 's/^/# /' "$dir"/wire?
    took() { tr -d '\r' <"$dir/out" | sed -n "s/.*# $1: rank 1: right, \([0-9]*\) us.*/\1/p" | head -n 1; } # STRIPE KILOBYTES
    alone=$(took '0 1000') both=$(took '1 2000') longer=$(took '1 1000')
    [ -n "$alone" ] && [ -n "$both" ] && [ -n "$longer" ] && echo "# two wires have $((200 * alone / both)) % of the rate of one," \
        "and $((100 * alone / longer)) % if the second is 2 ms longer"
    cases 4
    ;;
tutorial)
    # What runnel-cards(7) says, word for word, but for the folder: its files and its commands are taken from the page.
    sed "s|/tmp/|$dir/|g" "$tree/man/runnel-cards.7.scd" | awk -v dir="$dir" '
        /^```$/ { inside = !inside; first = 1; next }
        inside && first && /^# / { file = $2; first = 0; next }
        inside && first { file = dir "/command" ++n; first = 0 }
        inside { print > file }'
    [ "$(ls "$dir")" = "$(printf '%s\n' command1 command2 command3 command4 one.sh two.sh)" ]
    ok "the page has four commands and two files" $?
    shown='machines/?.log command?.out'
    store=${RUNNEL_VM:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/runnel-vm}
    mkdir "$dir/store" && ln -s "$store/vmlinux" "$store/tree" "$dir/store"
    unset VM_DIR VM_SECONDS
    given() { (cd "$tree" && bash -e "$dir/command$1") >"$dir/command$1.out" 2>&1; } # N
    RUNNEL_VM=$dir/store given 1
    ok "machines are prepared, with the kernel that was fetched before" $?
    export RUNNEL_VM=$dir/store
    given 2
    ok "one machine boots and measures" $?
    grep -a 'cards of 8255x' "$dir/command2.out" | grep -q yes
    ok "it says that it has cards" $?
    grep -aq '^latency  *fm\|nothing was measured' "$dir/command2.out" && ! grep -aq 'does without' "$dir/command2.out"
    ok "and what a message takes by them" $?
    given 3 &
    machines=$!
    for ((i = 0; i < 1400; i++)); do
        [ "$(grep -ac '^beats' "$dir/machines/a.log" 2>/dev/null)" = 2 ] && break
        kill -0 $machines 2>/dev/null || break
        sleep 0.1
    done
    given 4
    ok "a cable is pulled" $?
    wait $machines
    ok "two machines talk" $?
    grep -aq 'median ns' "$dir/machines/a.log" && [ "$(grep -ac '^beat .* moved [1-9].* frames' "$dir/machines/a.log")" = 2 ]
    ok "over cards, before and after that" $?
    ;;
killed | killed-uio)
    # Without an IOMMU it is the release of uio's device that takes the bus from a card.
    iommu=(-device "intel-iommu,caching-mode=on") way=vfio
    [ "$1" = killed ] || iommu=() way=uio
    VM_APPEND=intel_iommu=on "$tree/scripts/vm" pair "$tree/tests/vm/guest_killed.sh" "$tree/tests/vm/guest_serve.sh" \
        "${iommu[@]}" >"$dir/out" 2>&1
    ok "both machines went through" $?
    check "by $way" grep -q "drives both cards through $way" "$dir/out"
    cases 4
    ;;
strangers)
    # Frames are written to both wires between the machines while two jobs run: damaged ones first, forged ones later.
    dumps=()
    for wire in 0 1; do dumps+=(-object "filter-dump,id=d$wire,netdev=n$wire,file=$dir/%m$wire.pcap"); done
    "$tree/scripts/vm" pair "$tree/tests/vm/guest_strangers.sh" "$tree/tests/vm/guest_serve.sh" "${dumps[@]}" >"$dir/out" 2>&1 &
    machines=$!
    strangers=
    for ((i = 0; i < 600; i++)); do [ "$(cat "$dir"/?[01].pcap 2>/dev/null | wc -c)" -ge 96 ] && break; sleep 0.1; done
    for wire in 0 1; do
        "$build/tests/vm-strangers" "$dir/a$wire.pcap" "$dir/2$wire" 2 "7$wire" >"$dir/to-b$wire" 2>&1 &
        strangers+=" $!"
        "$build/tests/vm-strangers" "$dir/b$wire.pcap" "$dir/1$wire" 1 "8$wire" >"$dir/to-a$wire" 2>&1 &
        strangers+=" $!"
    done
    for ((i = 0; i < 1400; i++)); do grep -q 'forge now' "$dir/a.log" && break; kill -0 $machines 2>/dev/null || break; sleep 0.1; done
    # shellcheck disable=SC2086 # words
    kill -USR1 $strangers
    wait $machines
    ok "both machines went through" $?
    # shellcheck disable=SC2086
    kill $strangers && for stranger in $strangers; do wait "$stranger" || failed=1; done
    ok "strangers went through" $?
    sed 's/^/# /' "$dir"/to-??
    cases 5
    ;;
esac
exit "$failed"
