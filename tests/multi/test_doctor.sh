#!/usr/bin/env bash
# `runnel doctor`: faults planted in network namespaces and in the limits of agents, each found, with its remedy and whom to ask.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
# shellcheck disable=SC2030,SC2031,SC2034,SC2317 # cases in the background, each with variables of its own
. "$(dirname "$0")/hosts.sh"
needs_commands nft python3

doctor() { # ARGUMENT...: leaves status, $dir/out as text and $dir/err
    timeout -k 5 100 "$runnel" doctor --time 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
}
hosts_json() { # [ARGUMENT...]: the same of the hosts, as JSON
    doctor --json --launcher netns --hosts "$list" "$@"
}
see() { # EXPRESSION of Python, about r, what was printed
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$dir/out" "$1"
}
# Whether a finding is there, of this severity and code, of these hosts, that has a remedy and somebody to ask.
finds() { # SEVERITY CODE [HOST [OTHER]]
    [ "$(see "any(f['severity'] == '$1' and f['code'] == '$2' and f['host'] in ('${3-}' or f['host'],)
        and f['other'] in ('${4-}' or f['other'],) and min(len(f['remedy']), len(f['ask'])) > 10 for f in r['findings'])")" = True ]
}
count() { # SEVERITY
    see "sum(f['severity'] == '$1' for f in r['findings'])"
}
is() { [ "$1" = "$2" ]; }
rules() { # HOST CHAIN RULE...
    local host=$1 chain=$2
    shift 2
    ip netns exec "$host" nft -f - <<END
table inet t {
    chain $chain {
        type filter hook $chain priority 0;
        $*
    }
}
END
}
# An agent that is started by this wrapper: the line is run on the host of that number.
wrapper() { # NUMBER LINE
    cat >"$dir/agent" <<END
#!/bin/sh
if [ "\$(ip netns identify \$\$)" = "$name-$1" ]; then
    $2
fi
exec "$runnel" "\$@"
END
    chmod +x "$dir/agent"
}
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

h() {
    hosts_json
    check 'healthy hosts: nothing is in the way' is "$status $(count stops) $(count hinders)" '0 0 0'
    check '... both directions were measured, without loss' is \
        "$(see "[(p['from'], p['to'], p['lost'], p['sent'] > 0, p['whole'], p['passes_bytes']) for p in r['paths']]")" \
        "[('$a', '$b', 0, True, True, 1472), ('$b', '$a', 0, True, True, 1472)]"
    doctor --launcher netns --hosts "$list"
    check '... for people, too' is "$(grep -cE "^host ($a|$b) |^path ($a -> $b|$b -> $a): .*round trip" "$dir/out")" 4
    local cores=$(($(nproc) + 1))
    doctor --json --launcher netns --hosts "$a:$cores,$b"
    check 'more ranks than cores' finds hinders cores "$a"
    check '... hinders' is "$status" 1
    doctor --json --launcher netns --hosts "$a,${name}nowhere"
    check 'a host that is not there' finds stops agent "${name}nowhere"
    check '... is told beside the others' is "$status $(see "[h['examined'] for h in r['hosts']]")" '2 [True, False]'
}
d() {
    rules "$b" input 'meta l4proto udp drop'
    hosts_json
    check 'UDP is dropped' finds stops firewall "$a" "$b"
    check '... stops' is "$status" 2
    check '... and says which firewall' grep -q "in the firewall of $b" "$dir/out"
}
r() {
    rules "$b" input 'meta l4proto udp reject'
    hosts_json
    check 'UDP is rejected' finds stops firewall "$a" "$b"
    check '... and that it was refused' grep -q 'refused (Connection refused)' "$dir/out"
}
o() {
    rules "$a" input 'meta l4proto udp drop'
    hosts_json
    check 'UDP is dropped one way' finds stops 'one way' "$a" "$b"
    check '... and says which way' grep -q "allow UDP from $b to $a in the firewall of $a" "$dir/out"
}
m() {
    ip -n "$name-0" link set p2 mtu 1400
    hosts_json
    check 'an MTU of 1400 behind a bridge' finds hinders mtu "$a" "$b"
    check '... hinders' is "$status" 1
    check '... with its size' grep -q 'packets of more than 1400 bytes' "$dir/out"
}
l() {
    rules "$b" input 'meta l4proto udp numgen random mod 100 < 5 drop'
    hosts_json
    check 'one datagram in twenty is lost' finds hinders loss "$a" "$b"
    check '... in this direction alone' is "$(see "sum(f['code'] == 'loss' for f in r['findings'])")" 1
}
u() {
    wrapper 2 'ulimit -n 24'
    hosts_json --agent "$dir/agent"
    check 'few descriptors' finds stops descriptors "$b"
    wrapper 1 'ulimit -v 40000; ulimit -l 0'
    hosts_json --agent "$dir/agent"
    check 'few addresses' finds stops addresses "$a"
    check 'no locked memory' finds note memlock "$a"
    check '... of that host alone' is "$(see "[f for f in r['findings'] if f['host'] == '$b' and f['severity'] != 'note']")" '[]'
}
v() {
    wrapper 2 'echo "runnel-agent 3.1 0.0.9"; exec sleep 5'
    hosts_json --agent "$dir/agent"
    check 'another release' finds stops version "$b"
    check '... with both numbers' grep -q '3.1 0.0.9, this command of ' "$dir/out"
    wrapper 2 'exec sleep 300'
    doctor --time 4 --json --launcher netns --hosts "$list" --agent "$dir/agent"
    check 'an agent that says nothing' finds stops agent "$b"
    check '... does not hold up what is said of the others' is "$(see "[h['examined'] for h in r['hosts']]")" '[True, False]'
}
e() {
    for x in "$a" "$b"; do
        ip -n "$x" link add br9 type bridge
        ip -n "$x" addr add 172.17.0.1/16 dev br9
        ip -n "$x" link set br9 up
    done
    hosts_json
    check 'an address that leads nowhere' finds note 'dead address' "$a" "$b"
    check '... is in nobody'"'"'s way' is "$status" 0
    ip -n "$b" link del br9
    ip -n "$b" link set eth0 down
    hosts_json
    check 'no address' finds stops 'no address' "$b"
}
s() {
    ip -n "$a" link set lo down
    timeout 60 ip netns exec "$a" "$runnel" doctor --json >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    check 'this machine alone: a loopback interface that is down' finds hinders loopback
    check '... hinders' is "$status" 1
    ip -n "$a" link set lo up
    timeout 60 ip netns exec "$a" "$runnel" doctor --json >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
    check '... and one that is up: nothing is in the way' is "$status $(count stops) $(count hinders)" '0 0 0'
    doctor --hosts 'a b'
    check 'a host that is no name is refused' is "$status" 64
    doctor --time never
    check 'a time that is none is refused' is "$status $(grep -c 'seconds from 1 to 3600' "$dir/err")" '64 1'
}
for one in h d r o m l u v e s; do
    beside "$one"
done
for pid in "${running[@]}"; do
    wait "$pid" || failed=1
done
cat "${logs[@]}"
exit "$failed"
