#!/usr/bin/env bash
# Hosts with two addresses each, of which one dies while a job runs, and then the other once the first is back: no
# message is lost or comes twice, and none comes back. Hosts are network namespaces, joined by two links.
# shellcheck disable=SC1091,SC2154,SC2034 # hosts.sh sets, and uses, them
. "$(dirname "$0")/hosts.sh"

a=$name-1 b=$name-2
hosts=("$a" "$b")
list=$a,$b
ip netns add "$a"
ip netns add "$b"
for k in 0 1; do
    ip -n "$a" link add "eth$k" type veth peer name "eth$k" netns "$b"
    ip -n "$a" addr add "10.78.$k.1/24" dev "eth$k"
    ip -n "$b" addr add "10.78.$k.2/24" dev "eth$k"
done
for h in "$a" "$b"; do
    for l in lo eth0 eth1; do
        ip -n "$h" link set "$l" up
    done
done

# said_so COUNT EXPRESSION: so many lines of the job
said_so() {
    [ "$(grep -cE "$2" said)" -ge "$1" ]
}
# until_said COUNT EXPRESSION: ... are there, after 20 s at most; 1 = they are not, or the job ended before
until_said() {
    local k
    for ((k = 0; k < 400; k++)); do
        said_so "$1" "$2" && return
        kill -0 "$job" 2>/dev/null || break
        sleep 0.05
    done
    said_so "$1" "$2"
}
# both_moved N: packets of each rank went to another address for the N-th time, or once more
both_moved() {
    local r
    for r in 0 1; do
        until_said 1 "^moves $r ([$1-9]|[1-9][0-9]+)( gap|\$)" || return
    done
}
# changes ONE-SIDE-OF-THE-FIRST-LINK: it goes down there, and comes up again once both ranks have gone to the other link;
# then that goes down at the other side, until they have come back. 0 = they did, both times.
changes() {
    local first=$a second=$b all=0
    [ "$1" = b ] && first=$b second=$a
    if ! until_said 2 '^beats [01]$'; then
        touch enough
        return 1
    fi
    sleep 0.2 # the second link is in no use yet: packets go where they began
    ip -n "$first" link set eth0 down
    both_moved 1 || all=1
    ip -n "$first" link set eth0 up
    sleep 0.3
    ip -n "$second" link set eth1 down
    both_moved 2 || all=1
    sleep 0.2
    touch enough
    return $all
}
repair() {
    local h
    for h in "$a" "$b"; do
        ip -n "$h" link set eth0 up
        ip -n "$h" link set eth1 up
    done
}
# survives NAME SIDE PROGRAM...: the job ends well; its lines say how long it stood still at most
survives() {
    local what=$1 side=$2 job status moved
    shift 2
    rm -f enough
    on_hosts -n 2 "$@" 100 2 "$dir/enough" >said 2>&1 </dev/null &
    job=$!
    changes "$side"
    moved=$?
    wait "$job"
    status=$?
    repair
    [ "$status" = 0 ] && [ "$(grep -c '^beat [01] gap' said)" = 2 ] && ! left_over
    ok "$what" $?
    ok "$what: both ranks said that packets went elsewhere, and back" "$moved"
    [ "$(grep -cE '^beat [01] gap .*moved ([2-9]|[1-9][0-9])' said)" = 2 ]
    ok "$what: their counters say so, too, in the end" $?
    sed -nE 's/^beat .*/# &/p' said
}

# goes_on NAME LINKS COMMAND...: a job of four that were written for AMUDP, with custom spawning or without, whose packets
# find the address that is left: each rank says that it beats while a link is down. LINKS: the first, or both in turn.
all_beat() {
    local r k
    for r in 0 1 2 3; do
        until_said $(($(grep -c "^beats $r\$" said) + 3)) "^beats $r\$" || return
    done
}
goes_on() {
    local what=$1 links=$2 job status one=0 other=0
    shift 2
    rm -f enough
    : >said
    timeout -k 5 100 "$@" beat "$dir/enough" >said 2>&1 </dev/null &
    job=$!
    all_beat || one=1
    ip -n "$b" link set eth0 down
    all_beat || one=1
    ip -n "$b" link set eth0 up
    sleep 0.3
    if [ "$links" = both ]; then
        ip -n "$a" link set eth1 down
        all_beat || other=1
        ip -n "$a" link set eth1 up
    fi
    touch enough
    wait "$job"
    status=$?
    repair
    [ "$status" = 0 ] && ! left_over
    ok "$what" $?
    ok "$what: one link is down" "$one"
    [ "$links" = first ] || ok "$what: the other one is down" "$other"
}
survives 'a stream of messages goes on when a link dies, and the other one' a "$build/tests/multi-fm_beat"
survives 'requests and replies do, with a move to another bundle and new mappings' b "$build/tests/am-beat"
[ "${1:-}" != messages ] || exit "$failed"
export PATH=$build/tools:$PATH TMPDIR=$dir
cat >spawn <<'END'
#!/usr/bin/env bash
# spawn "HOST..." N COMMAND: N workers, on the hosts in turn
hosts=($1) n=$2
shift 2
for ((i = 0; i < n; i++)); do env -u RUNNEL_FD ip netns exec "${hosts[i % ${#hosts[@]}]}" "$@" & done
wait
END
chmod +x spawn
program=$build/tests/amudp-spmd
goes_on 'a program written for AMUDP, by runnel run' both "$runnel" run --timeout 80 --launcher netns --hosts "$list" -n 4 \
    "$program"
# The other link carries the launcher's own connections over TCP: whose connection is lost, that host is lost.
export CSPAWN_CMD="$dir/spawn '%M' %N %C" CSPAWN_ROUTE_OUTPUT=1 CSPAWN_SERVERS="$a $b"
goes_on 'a program written for AMUDP, by custom spawning' first env MASTERIP=10.78.1.1 ip netns exec "$a" "$program" 4 C
exit "$failed"
