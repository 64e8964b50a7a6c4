# shellcheck shell=bash
# For the tests of jobs on several hosts, which are network namespaces: sourced by them. Needs root and ip(8); names
# are unique to the test, and all of it goes when the test ends.
# shellcheck disable=SC2034 # what it sets is for them
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
hosts=()
name=rt$$

clean_up() {
    local h
    for h in "${hosts[@]}"; do
        ip netns del "$h" 2>/dev/null
    done
    rm -rf "$dir"
}
cd "$dir" || exit 1

needs_commands ip
if ! ip netns add "${name}z" 2>said; then
    echo "network namespaces cannot be made here: $(head -n 1 said)"
    exit 77
fi
ip netns del "${name}z"

# hosts_up N [MTU]: namespaces $name-1 .. on one bridge in $name-0, with 10.77.0.K and fd77::K on eth0. $list names them.
hosts_up() {
    local n=$1 mtu=${2:-1500} k h
    hosts=("${name}-0")
    ip netns add "${name}-0"
    ip -n "${name}-0" link add br0 type bridge
    ip -n "${name}-0" link set br0 up
    list=
    for ((k = 1; k <= n; k++)); do
        h="${name}-$k"
        hosts+=("$h")
        ip netns add "$h"
        ip -n "$h" link add eth0 mtu "$mtu" type veth peer name "p$k" mtu "$mtu" netns "${name}-0"
        ip -n "${name}-0" link set "p$k" master br0 up
        ip -n "$h" link set lo up
        ip -n "$h" addr add "10.77.0.$k/24" dev eth0
        ip -n "$h" addr add "fd77::$k/64" dev eth0 nodad
        ip -n "$h" link set eth0 up
        list=${list:+$list,}$h
    done
}
hosts_down() {
    local h
    for h in "${hosts[@]}"; do
        ip netns del "$h" 2>/dev/null
    done
    hosts=()
}
# run_options: more of `runnel run`, for all of a test.
on_hosts() { # OPTION... PROGRAM ARGUMENT...
    # shellcheck disable=SC2086 # words
    timeout -k 5 100 "$runnel" run --timeout 80 ${run_options:-} --launcher netns --hosts "$list" "$@"
}
# Waits until N processes of the program multi-kill_rank are on a host: the array ranks, in the order of their ids.
ranks_on() { # HOST N
    local i
    for ((i = 0; i < 1200; i++)); do
        mapfile -t ranks < <(ip netns pids "$1" | while read -r p; do
            [ "$(cat "/proc/$p/comm" 2>/dev/null)" = multi-kill_rank ] && echo "$p"
        done)
        [ ${#ranks[@]} = "$2" ] && return 0
        sleep 0.05
    done
    return 1
}
# Kills processes of these names on the hosts.
kill_on_hosts() { # NAME (a regular expression)
    local h
    for h in "${hosts[@]}"; do
        ip netns pids "$h" | while read -r p; do
            grep -qxE "$1" "/proc/$p/comm" 2>/dev/null && kill -KILL "$p"
        done
    done
}
# What of a job still runs in the namespaces, for at most 20 s.
left_over() {
    local i h n
    for ((i = 0; i < 400; i++)); do
        n=
        for h in "${hosts[@]}"; do
            n+=$(ip netns pids "$h" 2>/dev/null)
        done
        [ -z "$n" ] && return 1
        sleep 0.05
    done
    echo "left over: $n" >>said
    return 0
}
