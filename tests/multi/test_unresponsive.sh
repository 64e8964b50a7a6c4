#!/usr/bin/env bash
# What takes its time on several hosts: a rank that calls nothing for longer than a silence may last is answered for by
# its agent, one that is stopped is dead in a bounded time; a link that is down for 5 s costs those 5 s; an address that
# belongs to a stranger for a while, who sends all back, delivers nothing wrong; a host whose interface is gone is dead
# for the others, who go on; who waits says nothing but that its host lives. The scenes are side by side: it is 40 s, of
# sleep.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
# shellcheck disable=SC2016,SC2317 # words of awk; functions called through scene
. "$(dirname "$0")/hosts.sh"
hosts_up 10

# job FILE OPTION... PROGRAM ARGUMENT...: in the background
job() {
    local file=$1
    shift
    (
        timeout -k 5 150 "$runnel" run --timeout 140 "$@" >"$file" 2>&1 </dev/null
        echo "status $?" >>"$file"
    ) &
    jobs+=($!)
}
jobs=()
# scene NAME FILE CONDITION...: what FILE holds is shown if the condition fails
scene() {
    local title=$1
    cp "$2" said
    shift 2
    "$@" >>said 2>&1
    ok "$title" $?
}
rank_of_host() { # HOST PROGRAM: the process of it
    local i p
    for ((i = 0; i < 1200; i++)); do
        for p in $(ip netns pids "$1"); do
            [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$2" ] && echo "$p" && return 0
        done
        sleep 0.05
    done
    return 1
}
datagrams() { # HOST: that it has taken in
    ip netns exec "$1" awk '$1 == "Udp:" && $2 != "InDatagrams" { print $2; exit }' /proc/net/snmp
}
flows() { # HOST N: until so many more datagrams have come, at most 20 s
    local i from
    from=$(datagrams "$1")
    for ((i = 0; i < 400; i++)); do
        [ "$(datagrams "$1")" -ge $((from + $2)) ] && return 0
        sleep 0.05
    done
    return 1
}

job away.udp --keep-going -n 3 --transport udp "$build/tests/multi-fm_unresponsive" 40
job away.hosts --keep-going -n 3 --launcher netns --hosts "$name-1,$name-2,$name-3" "$build/tests/multi-fm_unresponsive" 40
job away.idle --keep-going -n 3 --launcher netns --hosts "$name-1,$name-2,$name-3" "$build/tests/multi-fm_unresponsive" 40 idle

# Two hosts whose link will be down for 5 s, under a load and under a steady exchange.
four=$name-4,$name-5
job link.load -n 2 --launcher netns --hosts "$four" "$build/tests/multi-fm_alltoall" 3 1000
job link.beat -n 2 --launcher netns --hosts "$four" "$build/tests/multi-fm_beat" 1000 10
(
    flows "$name-5" 500
    ip -n "$name-5" link set eth0 down
    sleep 5
    ip -n "$name-5" link set eth0 up
    ip -n "$name-5" addr add fd77::5/64 dev eth0 nodad 2>/dev/null # the kernel forgets it
) &
jobs+=($!)

# A host whose network goes for good, while its agent lives. Whoever waits for it is told that it is dead, and the
# others go on; it is a member of the job, which ends together, until its processes end.
three=$name-1,$name-2,$name-6
job gone.stuck --keep-going -n 3 --launcher netns --hosts "$three" "$build/tests/multi-kill_rank" stuck 1 2
job gone.beat --keep-going -n 3 --launcher netns --hosts "$three" "$build/tests/multi-fm_beat" 800 50
(
    victim=$(rank_of_host "$name-6" multi-kill_rank)
    flows "$name-6" 100
    ip -n "$name-6" link del eth0
    for ((i = 0; i < 800; i++)); do
        [ "$(grep -c '^dead [01] 2 ' gone.stuck)" = 2 ] && break
        sleep 0.1
    done
    kill -KILL "$victim"
) &
jobs+=($!)

# An address that is a stranger's for 3 s, who sends back what he gets, from there (the host has no other: else its peers
# would go on there, test_ways.sh); and a rank that is stopped for 3 s.
ip -n "$name-7" addr del fd77::7/64 dev eth0
job moved -n 2 --launcher netns --hosts "$name-1,$name-7" "$build/tests/multi-fm_beat" 1000 10
job stopped -n 2 --launcher netns --hosts "$name-1,$name-3" "$build/tests/multi-fm_beat" 800 10
stopped=$(rank_of_host "$name-3" multi-fm_beat)
(
    sleep 1
    kill -STOP "$stopped"
    sleep 3
    kill -CONT "$stopped"
) &
jobs+=($!)
cat >reflect.pl <<'END'
use Socket;
my ($ip, $end, $n, %s) = (shift, time + 3, 0);
for my $port (@ARGV) {
    socket($s{$port}, AF_INET, SOCK_DGRAM, 0) && bind($s{$port}, pack_sockaddr_in($port, inet_aton($ip))) or die "$port: $!";
}
while (time < $end) {
    my $r = '';
    vec($r, fileno $_, 1) = 1 for values %s;
    next unless select($r, undef, undef, 0.1);
    for my $s (values %s) {
        next unless vec($r, fileno $s, 1);
        my $from = recv($s, my $data, 65536, 0);
        $n++;
        send($s, $data, 0, $from) for 1 .. 2;
    }
}
print "reflected $n\n";
END
move() { # FROM TO: the address, and everybody's knowledge of it
    ip -n "$1" addr del 10.77.0.7/24 dev eth0
    ip -n "$2" addr add 10.77.0.7/24 dev eth0
    ip -n "$name-1" neigh flush dev eth0
}
(
    rank_of_host "$name-7" multi-fm_beat >/dev/null
    flows "$name-7" 100
    # shellcheck disable=SC2046 # ports
    set -- $(ip netns exec "$name-7" awk 'FNR > 1 { split($2, a, ":"); print a[2] }' /proc/net/udp /proc/net/udp6 | sort -u |
        while read -r port; do echo $((16#$port)); done)
    move "$name-7" "$name-8"
    ip netns exec "$name-8" perl reflect.pl 10.77.0.7 "$@" >reflected 2>&1
    move "$name-8" "$name-7"
) &
jobs+=($!)

# Two hosts whose ranks, all connected, wait. The agents tell each other every 7 s that they live: at most 10 a minute.
silent_s=35
job silent -n 16 --launcher netns --hosts "$name-9,$name-10" "$build/tests/multi-fm_idle" silent $silent_s
said_in() { # FILE TEXT: waits for it, at most 100 s
    local i
    for ((i = 0; i < 2000; i++)); do
        grep -q "$2" "$1" && return 0
        sleep 0.05
    done
    return 1
}
(
    said_in silent 'silence begins'
    before_9=$(datagrams "$name-9") before_10=$(datagrams "$name-10")
    said_in silent 'silence ends'
    echo "came $(($(datagrams "$name-9") - before_9)) $(($(datagrams "$name-10") - before_10))" >came
) &
jobs+=($!)

wait "${jobs[@]}"
away() {
    grep -q '^dead 2' said && [ "$(grep -c '^closed [012]$' said)" = 3 ] && ! grep -q 'rank 1' said &&
        grep -q '^status 0' said
}
beats() { # RANKS: with all messages
    grep -q '^status 0' said && [ "$(grep -cE '^beat [0-9]+ gap [0-9]+$' said)" = "$1" ]
}
gap() { # MS: somebody was not heard for that long
    awk -v ms="$1" '$1 == "beat" && $4 >= ms { n++ } END { exit n > 0 ? 0 : 1 }' said
}
scene 'on one host: who computes lives, who is stopped is dead' away.udp away
scene 'on three hosts: who computes lives, who is stopped is dead' away.hosts away
scene '... also for who only waits' away.idle away
scene 'a link that is down for 5 s under load: nothing is lost' link.load grep -q '^status 0' link.load
down() { beats 2 && gap 4500; }
scene 'a link that is down for 5 s: messages flow again, each once' link.beat down
moved() { cat reflected && beats 2 && gap 2000 && grep -qE '^reflected [1-9]' reflected; }
scene 'an address that a stranger has for 3 s, who sends all back: messages flow again, each once' moved moved
stopped() { beats 2 && gap 2500; }
scene 'a rank that is stopped for 3 s: messages flow again, each once' stopped stopped
stuck() { [ "$(grep -c '^dead [01] 2 ' said)" = 2 ] && [ "$(grep -c '^done [01] ' said)" = 2 ]; }
scene 'a host whose network vanishes: who waits for it is told' gone.stuck stuck
others() { [ "$(grep -cE '^beat [01] gap [0-9]+ dead 2$' said)" = 2 ] && grep -q '^beat 2 gap 0 dead 0 dead 1$' said; }
scene '... and the others go on, each message once' gone.beat others
silent() { # and they did live: something came
    cat came
    grep -q '^status 0' said && [ "$(grep -c '^rank [0-9]*: .* of processor time' said)" = 16 ] &&
        awk -v most=$((10 * (silent_s + 5) / 60)) '{ exit !($2 > 0 && $2 <= most && $3 > 0 && $3 <= most) }' came
}
scene 'who waits is silent: at most 10 packets a minute between two hosts, hardly any processor time' silent silent
: >said
! left_over
ok 'nothing is left' $?
exit "$failed"
