#!/usr/bin/env bash
# Jobs that mpirun starts: programs find their place through PMIx. Prints "ok - name" or "not ok - name"; exits 77 where
# there is no mpirun that serves PMIx, or the build has no support for it.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
if ! command -v mpirun >/dev/null; then
    echo 'mpirun is not installed (openmpi-bin)'
    exit 77
fi
cd "$dir" || exit 1
export TMPDIR=$dir OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset RUNNEL_FD
# What libpmix and its plugins do not give back is not ours.
echo 'leak:libpmix' >leaks
export LSAN_OPTIONS=suppressions=$dir/leaks:print_suppressions=0
# shellcheck disable=SC2016 # the ranks' shell is to see it
if ! timeout 60 mpirun -np 1 sh -c 'test -n "$PMIX_RANK"' >said 2>&1 </dev/null; then
    echo "mpirun does not serve PMIx here: $(head -n 1 said)"
    exit 77
fi
if ! grep -q PMIx_Init "$build"/src/librunnel.a; then
    echo 'built without PMIx (libpmix-dev)'
    exit 77
fi
job() { # ranks program...
    local n=$1
    shift
    timeout -k 5 60 mpirun -np "$n" "$@"
}
# Ranks of jobs of this test: they have its directory in their environment.
ranks_left() {
    local i p n
    for ((i = 0; i < 400; i++)); do
        n=
        for p in $(pgrep -x 'hello|multi-.*'); do
            { tr '\0' '\n' <"/proc/$p/environ"; } 2>/dev/null | grep -qx "TMPDIR=$dir" && n+=" $p"
        done
        [ -z "$n" ] && return 1
        sleep 0.05
    done
    echo "ranks left: $n" >>said
    return 0
}
# await_ranks MPIRUN N: the array ranks, in the order of their ids.
await_ranks() {
    local i
    for ((i = 0; i < 1200; i++)); do
        mapfile -t ranks < <(pgrep -P "$(pgrep -P "$1" || echo 1)" -x multi-kill_rank)
        [ ${#ranks[@]} = "$2" ] && break
        sleep 0.05
    done
    sleep 0.5
}

job 3 "$build/examples/hello" >said 2>&1 </dev/null &&
    [ "$(grep -oE 'rank [0-9] of 3' said | sort | tr '\n' ' ')" = 'rank 0 of 3 rank 1 of 3 rank 2 of 3 ' ] && ! ranks_left
ok 'ranks find their places' $?
job 4 "$build/tests/multi-fm_alltoall" 1 20 >said 2>&1 </dev/null && ! ranks_left
ok 'messages' $?
job 1 "$build/examples/hello" >said 2>&1 </dev/null && grep -q 'rank 0 of 1' said && ! ranks_left
ok 'a job of one' $?
# shellcheck disable=SC2016 # the ranks' shell is to see it
job 3 sh -c 'if [ $PMIX_RANK = 1 ]; then sleep 0.5; fi; exec "$0"' "$build/examples/hello" >said 2>&1 </dev/null &&
    [ "$(grep -c 'of 3' said)" = 3 ] && ! ranks_left
ok 'one that comes late' $?

# mpirun ends a job in which a process is killed; what is left to us is that nothing stays.
timeout -k 5 60 mpirun -np 3 "$build/tests/multi-kill_rank" stuck 1 2 >said 2>&1 </dev/null &
mpirun=$!
await_ranks $mpirun 3
kill -KILL "${ranks[2]:-$mpirun}"
! wait $mpirun && ! ranks_left
ok 'a rank is killed: nothing is left' $?

# Where mpirun lets the others go on, they hear of it all the same, and the job is over for them.
timeout -k 5 60 mpirun --enable-recovery -np 3 "$build/tests/multi-kill_rank" wait 1 2 >said 2>&1 </dev/null &
mpirun=$!
await_ranks $mpirun 3
kill -KILL "${ranks[2]:-$mpirun}"
! ranks_left && [ "$(grep -c '^dead [01] 2 ' said)" -ge 1 ] && ! grep -q '^done' said
ok 'a rank is killed and mpirun goes on: those of its host are told, and lose the job' $?
kill -KILL "$(pgrep -P $mpirun || echo $mpirun)" 2>/dev/null
wait $mpirun 2>/dev/null

timeout -k 5 60 mpirun -np 3 "$build/tests/multi-kill_rank" wait 1 2 >said 2>&1 </dev/null &
mpirun=$!
await_ranks $mpirun 3
kill -KILL "$(pgrep -P $mpirun || echo $mpirun)" 2>/dev/null
! wait $mpirun && ! ranks_left
ok 'mpirun is killed: nothing is left' $?

job 3 "$build/tests/multi-fm_wrong" took >said 2>&1 </dev/null
! ranks_left
ok 'a rank ends before the others' $?

job 3 "$build/tests/multi-close_late" >said 2>&1 </dev/null && ! ranks_left
ok 'the close waits for what handlers send while others are in it' $?

job 2 "$build/tests/multi-close_late" "$build/examples/hello" >said 2>&1 </dev/null &&
    [ "$(grep -c 'rank 0 of 1' said)" = 2 ]
ok 'what a rank starts is no part of the job' $?
exit "$failed"
