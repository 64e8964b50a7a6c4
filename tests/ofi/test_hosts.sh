#!/usr/bin/env bash
# Open MPI on Runnel's provider, over two hosts, which are network namespaces with a daemon each: the ranks are introduced by the
# addresses that MPI exchanges.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "$0")/../multi/hosts.sh"
source=${RUNNEL_SOURCE:?the source directory}
provider=$build/adapters/ofi/librnl-fi.so
if ! command -v mpicc.openmpi >/dev/null || [ ! -e "$provider" ] || grep -qE '__(asan|tsan)_init' "$provider" ||
    ! "$runnel" run -n 2 --mpi true 2>/dev/null; then
    echo 'the provider, Open MPI or PMIx is not here, or a sanitizer is in use'
    exit 77
fi
hosts_up 2
export TMPDIR=$dir RUNNEL_DAEMON=$name
daemons=()
daemon() { # HOST OPTION...: one begins to listen there
    local i
    ip netns exec "$name-$1" "$runnel" daemon --idle 600 "${@:2}" >"daemon$1" 2>&1 </dev/null &
    daemons+=($!)
    for ((i = 0; i < 1200; i++)); do
        ip netns exec "$name-$1" grep -q "@runnel-daemon-$RUNNEL_DAEMON" /proc/net/unix && return
        sleep 0.05
    done
}
end_daemons() {
    kill "${daemons[@]}"
    wait "${daemons[@]}"
    daemons=()
}
on_provider() { # OPTION... PROGRAM ARGUMENT...
    timeout -k 5 100 "$runnel" mpi -q "$runnel" run --timeout 80 --launcher netns --hosts "$list" "$@"
}
for program in ring onesided; do
    mpicc.openmpi -O1 -o $program "$source/tests/ofi/$program.c" >said 2>&1
    ok "$program compiles" $?
done
"$runnel" key --file one --new >said && "$runnel" key --file two --new >said
ok 'keys are made' $?
daemon 1 --key one
daemon 2 --key one
for n in 2 4; do
    on_provider -n $n ./ring >said 2>&1 </dev/null && grep -qx "ring of $n" said
    ok "a ring of $n ranks" $?
done
on_provider -n 2 ./onesided >said 2>&1 </dev/null
ok 'memory of a rank of the other host is written and read' $?
end_daemons
daemon 1 --key one
daemon 2 --key two
on_provider -n 2 ./ring >said 2>&1 </dev/null
[ $? = 17 ] && ! grep -q 'ring of' said
ok 'hosts whose daemons have different keys do not come together, and the job ends' $?
end_daemons
on_provider -n 2 ./ring >said 2>&1 </dev/null
[ $? -lt 128 ] && grep -q 'MPI_ERR' said
ok 'without daemons MPI says that it has failed' $?
! left_over
ok 'nothing is left on the hosts' $?
exit "$failed"
