#!/usr/bin/env bash
# Ranks of MPICH and Open MPI, each as Debian has it, below `runnel run`, which serves PMI-1 and PMIx: they find each other,
# with their own transports. What cannot be served is said; no rank is alone in silence.
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "$0")/../support/test.sh"
needs_files
cd "$dir" || exit 1
export TMPDIR=$dir OMPI_MCA_rmaps_base_oversubscribe=1
run() { timeout -k 5 120 "$runnel" run --timeout 100 "$@" >said 2>err </dev/null; }
# `status WANTED COMMAND...`
status() {
    local wanted=$1
    shift
    "$@"
    [ $? = "$wanted" ]
}

# ---- PMI-1, without any MPI ----
cat >speak.py <<'END'
import os, socket, sys
s = socket.socket(fileno=int(os.environ["PMI_FD"]))
f = s.makefile("rw")
def say(line):
    f.write(line + "\n")
    f.flush()
    return f.readline().strip()
name = say("cmd=get_my_kvsname").split("kvsname=")[1]
rank, size = int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])
if sys.argv[1] == "exchange":
    assert "rc=0" in say("cmd=put kvsname=%s key=k%d value=v%d" % (name, rank, rank))
    assert say("cmd=barrier_in") == "cmd=barrier_out"
    for r in range(size):
        assert say("cmd=get kvsname=%s key=k%d" % (name, r)).endswith("value=v%d" % r)
elif rank == 0 and sys.argv[1] == "long":
    s.sendall(b"x" * 3000)
    try:
        assert f.readline() == ""
    except OSError:
        pass
elif sys.argv[1] == "spawn":
    assert "rc=-1" in say("mcmd=spawn\nnprocs=1\nexecname=true\ntotspawns=1\nspawnssofar=1\nendcmd")
elif rank == 0 and sys.argv[1] == "deaf": # asks again and again, and reads nothing
    try:
        while True:
            s.sendall(b"cmd=get_maxes\n" * 50)
    except OSError:
        pass
elif sys.argv[1] == "leave": # the others do not wait for one that has ended
    if rank > 0:
        assert say("cmd=barrier_in") == "cmd=barrier_out"
print("done", rank)
END
for what in exchange long deaf leave spawn; do
    run -n 3 --mpi python3 speak.py "$what" && [ "$(grep -c 'done' said)" = 3 ]
    ok "PMI-1: three ranks, $what" $?
done
run -n 1 --mpi python3 speak.py exchange && grep -q 'done 0' said
ok 'PMI-1: a rank alone is served, too' $?
run -n 2 --mpi python3 speak.py long && grep -q 'rank 0 on .* is no PMI-1' err
ok 'PMI-1: a line that is none is told' $?
run -n 2 --mpi python3 speak.py spawn && grep -q 'rank 0 on .* wants to start more processes' err
ok 'PMI-1: who wants more processes is told why not' $?

# ---- MPIs ----
cases() { # NAME, compiled by mpicc.NAME, and what it says of processes that want to meet
    local n
    mpicc."$1" -O1 -o ring."$1" "$tree"/tests/ofi/ring.c >said 2>&1 && mpicc."$1" -O1 -o spawn."$1" "$tree"/tests/ofi/spawn.c >>said 2>&1
    ok "$1: programs compile" $?
    for n in 1 2 3 4; do
        run -n $n ./ring."$1" && grep -qx "ring of $n" said
        ok "$1: a ring of $n ranks" $?
    done
    run -n 2 ./spawn."$1" && [ "$(grep -c refused said)" = 2 ]
    ok "$1: more processes are refused" $?
    if [ "$1" = mpich ]; then # Open MPI has a way of its own to start more, if it is alone
        run -n 1 ./spawn."$1" && [ "$(grep -c refused said)" = 1 ]
        ok "$1: more processes are refused to a rank alone" $?
    fi
    status 7 run -n 3 ./spawn."$1" abort && grep -q 'runnel: rank 1 on .* exited with status 7' err
    ok "$1: an abort ends the job with its status" $?
    status 137 run -n 3 ./spawn."$1" die && [ "$(grep -c '^runnel: .*rank 1 on' err)" = 1 ]
    ok "$1: a death ends the job with a sentence that names the rank" $?
    mpicc."$1" -O1 -o meets."$1" "$tree"/tests/ofi/meets.c >said 2>&1
    ! run --timeout 60 -n 4 ./meets."$1" within && grep -qE "$2" err && ! grep -q 'met$' said && ! grep -q 'was not done' err
    ok "$1: ranks that accept and connect are refused at once" $?
    rm -f port
    ! run --timeout 60 -n 2 ./meets."$1" accept port && grep -qE "$2" err
    ok "$1: a job that accepts another is refused at once" $?
    run -n 2 --mpi sh -c "exec ./ring.$1" && grep -qx 'ring of 2' said
    ok "$1: behind a shell" $?
}
have() { command -v "mpicc.$1" >/dev/null; }
if have mpich; then
    cases mpich 'not supported with ucx'
    if ldd ring.mpich | grep -q libucp; then
        timeout 60 "$runnel" mpi "$runnel" run -n 2 ./ring.mpich >said 2>err </dev/null
        [ $? = 69 ] && grep -q 'ring.mpich uses an MPI that is built on UCX' err && [ ! -s said ]
        ok 'mpich: on UCX it cannot use the provider, and that is said' $?
    fi
else
    echo '# MPICH is not installed (mpich, libmpich-dev)'
fi
if ! have openmpi || ! "$runnel" run -n 2 --mpi true 2>/dev/null; then
    echo '# Open MPI is not installed (openmpi-bin, libopenmpi-dev), or there is no PMIx (libpmix-dev)'
    exit "$failed"
fi
cases openmpi 'does not support accept/connect'
if [ -e "$build/adapters/ofi/librnl-fi.so" ] && ! grep -qE '__(asan|tsan)_init' "$build/adapters/ofi/librnl-fi.so"; then
    for n in 2 3 4; do
        timeout -k 5 120 "$runnel" mpi "$runnel" run --timeout 100 -n $n ./ring.openmpi >said 2>err </dev/null && grep -qx "ring of $n" said
        ok "openmpi: a ring of $n ranks on the provider" $?
    done
    ! timeout -k 5 120 "$runnel" mpi "$runnel" run -x FI_PROVIDER_PATH="$dir" --timeout 100 -n 2 ./ring.openmpi >said 2>err </dev/null &&
        ! grep -q 'ring of' said
    ok 'openmpi: without the provider it does not run, so it was the provider' $?
fi
RUNNEL_SSH=false timeout 60 "$runnel" mpi "$runnel" run --hosts one,two -n 2 ./ring.openmpi >said 2>err </dev/null
[ -e /etc/runnel/key ] || [ -e "$HOME/.config/runnel/key" ] || grep -q 'needs a key to reach ranks on other hosts' err
ok 'openmpi: that several hosts need a key is said' $?
mkdir none
: >none/libpmix.so.2 # which cannot be loaded
LD_LIBRARY_PATH=$dir/none status 71 run -n 2 ./ring.openmpi && grep -q 'each would be alone: libpmix.so.2 cannot be loaded' err
ok 'openmpi: without libpmix no rank is alone in silence' $?
# shellcheck disable=SC2016 # for the shell of a rank
yields='echo "yields: ${OMPI_MCA_mpi_yield_when_idle:-no}"'
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
taskset -c "$cpu" timeout 60 "$runnel" run --mpi -n 2 sh -c "$yields" >said 2>err </dev/null && [ "$(grep -cx 'yields: 1' said)" = 2 ]
ok 'openmpi: ranks that are more than the processors yield' $?
OMPI_MCA_mpi_yield_when_idle=0 taskset -c "$cpu" timeout 60 "$runnel" run --mpi -n 2 sh -c "$yields" >said 2>err </dev/null &&
    [ "$(grep -cx 'yields: 0' said)" = 2 ]
ok 'openmpi: who says whether they yield is heard' $?
if [ "$(nproc)" -ge 2 ]; then
    run -n 2 --mpi sh -c "$yields" && [ "$(grep -cx 'yields: no' said)" = 2 ]
    ok 'openmpi: ranks with a processor each do not yield' $?
fi
LD_LIBRARY_PATH=$dir/none run -n 2 true
ok 'what is no program of Open MPI needs no libpmix' $?
! ls -d /tmp/pmix* /dev/shm/*runnel* >said 2>&1
ok 'nothing is left behind' $?
exit "$failed"
