#!/usr/bin/env bash
# VMMC between hosts that are network namespaces: what it promises, its example, and a death.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "${BASH_SOURCE[0]}")/../multi/hosts.sh"
hosts_up 2
all_end() { # CASE
    [ "$(grep -c "^$1: node [0-2] ends well\$" said)" = 3 ]
}
for name in import send order async notify block; do
    on_hosts -n 3 "$build/tests/vmmc-semantics" "$name" >said 2>&1 </dev/null && all_end "$name"
    ok "$name, on two hosts" $?
done
on_hosts -n 3 "$build/tests/vmmc-taken_back" unexport >said 2>&1 </dev/null && all_end unexport
ok "unexport, on two hosts" $?
for on in "$list" "${hosts[1]}:2,${hosts[2]}:1"; do # the node that dies is on the exporter's host, or not
    list=$on on_hosts --keep-going -n 3 "$build/tests/vmmc-taken_back" death >said 2>&1 </dev/null
    [ "$(grep -c '^death: node [01] ends well$' said)" = 2 ]
    ok "death, on two hosts: $on" $?
done
on_hosts -n 4 "$build/examples/vmmc_ring" 20 >said 2>&1 </dev/null && grep -qx '80 lines of 4 nodes, in order' said
ok "a ring of 4, on two hosts" $?
exit "$failed"
