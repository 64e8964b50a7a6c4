#!/usr/bin/env bash
# Ranks of MPICH and Open MPI on two hosts, which are network namespaces: what they tell each other at their start goes by
# the launcher, and a host that is lost ends the job with one sentence that names its ranks.
# shellcheck disable=SC1091,SC2154 # hosts.sh sets them
. "$(dirname "$0")/../multi/hosts.sh"
source=${RUNNEL_SOURCE:?the source directory}
hosts_up 2
export TMPDIR=$dir
export OMPI_MCA_btl=tcp,self # its shared memory has names that are the hosts', who share one /dev/shm here
for mpi in mpich openmpi; do
    if ! command -v mpicc.$mpi >/dev/null || { [ $mpi = openmpi ] && ! "$runnel" run -n 2 --mpi true 2>/dev/null; }; then
        echo "# there is no $mpi, or no PMIx for it"
        continue
    fi
    mpicc.$mpi -O1 -o ring "$source"/tests/ofi/ring.c >said 2>&1 && mpicc.$mpi -O1 -o spawn "$source"/tests/ofi/spawn.c >>said 2>&1
    ok "$mpi: programs compile" $?
    for n in 2 3 4; do
        on_hosts -n $n ./ring >said 2>&1 </dev/null && grep -qx "ring of $n" said
        ok "$mpi: a ring of $n ranks on two hosts" $?
    done
    on_hosts -n 4 ./spawn die >said 2>&1 </dev/null
    [ $? = 137 ] && [ "$(grep -c '^runnel: .*rank 1 on' said)" = 1 ]
    ok "$mpi: a death ends the job with a sentence that names the rank" $?
    # shellcheck disable=SC2016 # for the shell of a rank
    on_hosts -n 4 sh -c '[ "$RUNNEL_RANK" != 2 ] || { sleep 2; kill -KILL $PPID; }; exec ./ring; sleep 60' >said 2>&1 </dev/null
    [ $? = 71 ] && [ "$(grep -c "^runnel: host $name-2, with ranks 2 to 3, is lost" said)" = 1 ]
    ok "$mpi: a host that is lost ends the job with a sentence that names its ranks" $?
    ! left_over
    ok "$mpi: nothing is left on the hosts" $?
done
exit "$failed"
