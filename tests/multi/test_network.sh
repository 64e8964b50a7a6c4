#!/usr/bin/env bash
# How hosts find each other before the ranks start, and what is said when they cannot. Hosts are network namespaces.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
# shellcheck disable=SC2030,SC2031,SC2034,SC2317 # cases in the background, each with variables of its own
. "$(dirname "$0")/hosts.sh"

if ! command -v nft >/dev/null; then
    echo 'nft is not installed (nftables)'
    exit 77
fi
hosts_up 2
a=$name-1 b=$name-2
if ! ip netns exec "$a" nft add table inet t 2>said; then
    echo "nft cannot be used here: $(head -n 1 said)"
    exit 77
fi
ip netns exec "$a" nft delete table inet t
said=(on_hosts -n 2 --timeout 30)

rules() { # HOST RULE...: in its input chain, or output if a rule says so
    local host=$1 rule
    shift
    ip netns exec "$host" nft -f - <<END
table inet t {
    chain input { type filter hook input priority 0; }
    chain output { type filter hook output priority 0; }
}
END
    for rule in "$@"; do
        # shellcheck disable=SC2086 # words
        ip netns exec "$host" nft add rule inet t $rule
    done
}
no_rules() {
    ip netns exec "$1" nft delete table inet t
}
ends() { # NAME: with status 71, not that of the job's limit, and nothing is left
    local status=$1
    shift
    [ "$status" = 71 ] && ! left_over
}
# troubles NAME PATTERN: no job comes about, and a line says this, naming hosts, address, interface and port
troubles() {
    "${said[@]}" true >said 2>&1 </dev/null
    ends "$?" && grep -qE "^runnel: host $a does not reach host $b at [0-9a-f.:]+ \\(eth0\\), UDP port [0-9]+: .*$2" said &&
        [ "$(grep -c '^runnel' said)" -le 2 ]
    ok "$1" $?
}
talks() { # NAME
    on_hosts -n 4 "$build/tests/multi-fm_alltoall" 1 3 >said 2>&1 </dev/null
    ok "$1" $?
}
# beside CASE: in the background, on two hosts of its own: it is the hosts that wait until all has been tried, and not the
# processor, so the cases wait at the same time
logs=()
running=()
beside() {
    (
        trap clean_up EXIT
        name=$name$1 dir=$dir/$1 hosts=()
        mkdir "$dir" && cd "$dir" || exit 1
        hosts_up 2
        a=$name-1 b=$name-2
        "$1"
        exit "$failed"
    ) >"$dir/$1.log" 2>&1 &
    running+=($!)
    logs+=("$dir/$1.log")
}
dropped() {
    rules "$b" 'input meta l4proto udp drop'
    troubles 'UDP is dropped' "no answer; a firewall drops UDP from $a to $b"
}
rejected() {
    rules "$b" 'input meta l4proto udp reject'
    troubles 'UDP is rejected' 'refused [(]Connection refused[)]'
}
one_way() {
    rules "$a" 'input ip protocol udp drop' 'input meta nfproto ipv6 meta l4proto udp drop'
    troubles 'UDP is dropped one way' "$b hears $a, but its answers do not arrive; a firewall drops UDP from $b to $a"
}
kept_in() {
    rules "$a" 'output meta l4proto udp reject'
    troubles 'UDP may not leave' "the kernel of $a says: .*; "
}
long_dropped() {
    rules "$b" 'input meta l4proto udp meta length > 1000 drop'
    troubles 'long datagrams do not pass' 'datagrams of 64 bytes pass and those of 1200 do not'
}
# The MTU of one end is smaller than that of the other: what is longer is lost on its way without a word.
small_mtu() {
    for h in "$a" "$b"; do
        ip -n "$h" -6 addr flush dev eth0
    done
    ip -n "$b" link set eth0 mtu 600
    troubles 'an MTU that is too small' '1200 do not'
}
other_kind() {
    ip -n "$a" -6 addr flush dev eth0
    ip -n "$b" -4 addr flush dev eth0
    troubles 'one has only IPv4, the other only IPv6' "it has no route to there: give both hosts addresses of one network, and of one"
}
down() {
    for h in "$a" "$b"; do
        ip -n "$h" -6 addr flush dev eth0
    done
    ip -n "$b" link set eth0 down
    "${said[@]}" true >said 2>&1 </dev/null
    ends $? && grep -qE "^runnel: host $b has no address that host $a could reach|$a does not reach host $b at 10.77.0.2" said
    ok 'no interface is up' $?
}
# Addresses that mean nothing on another host: each interface has one of these.
link_local() {
    for h in "$a" "$b"; do
        ip -n "$h" -4 addr flush dev eth0
        ip -n "$h" -6 addr flush dev eth0 scope global
    done
    "${said[@]}" true >said 2>&1 </dev/null
    ends $? && grep -qE "^runnel: host $b has no address that host $a could reach: .* link-local" said
    ok 'only link-local addresses' $?
}
for one in dropped rejected one_way kept_in long_dropped small_mtu other_kind down link_local; do
    beside "$one"
done

rules "$b" 'input meta nfproto ipv6 meta l4proto udp drop'
talks 'IPv6 leads nowhere: IPv4 is used'
no_rules "$b"

rules "$b" 'input ip protocol udp drop'
talks 'IPv4 leads nowhere: IPv6 is used'
no_rules "$b"

# A bridge as container software makes them: the same address on each host, and nobody behind it.
for h in "$a" "$b"; do
    ip -n "$h" link add br9 type bridge
    ip -n "$h" addr add 172.17.0.1/16 dev br9
    ip -n "$h" link set br9 up
done
talks 'an interface that leads nowhere drops out'
for h in "$a" "$b"; do
    ip -n "$h" link del br9
done

# A port on the way takes less than the interfaces say. The kernel lets runs of datagrams pass there, and of single ones
# that are too long says that its queue is full.
ip -n "${name}-0" link set p2 mtu 1400
talks 'a smaller MTU in between'
on_hosts -n 2 "$build/tests/multi-fm_alltoall" 1 60 >said 2>&1 </dev/null
ok '... with more to say' $?
ip -n "${name}-0" link set p2 mtu 1500

for h in "$a" "$b"; do
    ip -n "$h" -4 addr flush dev eth0
    ip -n "$h" -4 addr flush dev lo
done
talks 'IPv6 alone'
timeout 60 ip netns exec "$a" "$runnel" run --timeout 50 --transport udp -n 3 "$build/tests/multi-fm_alltoall" 1 3 \
    >said 2>&1 </dev/null
ok 'IPv6 alone, within a host' $?

for pid in "${running[@]}"; do
    wait "$pid" || failed=1
done
cat "${logs[@]}"
exit "$failed"
