#!/usr/bin/env bash
# The provider for libfabric: two processes that use its interface, fi_info, fi_pingpong, and Open MPI, unmodified.
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "$0")/../support/test.sh"
if [ ! -e "$build/adapters/ofi/librnl-fi.so" ]; then
    echo 'built without libfabric (libfabric-dev)'
    exit 77
fi
cd "$dir" || exit 1
export TMPDIR=$dir FI_PROVIDER_PATH=$build/adapters/ofi FI_PROVIDER=rnl
# What libfabric and its providers do not give back is not ours.
printf 'leak:libfabric\nleak:librdmacm\nleak:libpsm\n' >leaks
export LSAN_OPTIONS=suppressions=$dir/leaks:print_suppressions=0
for program in two apart memory; do
    timeout -k 5 900 "$build"/tests/ofi-$program all || failed=1
done
timeout -k 5 400 "$build"/tests/ofi-hostile || failed=1

if grep -qE '__(asan|tsan)_init' "$build"/adapters/ofi/librnl-fi.so; then
    echo '# programs of others cannot load a provider with a sanitizer'
    exit "$failed"
fi
if ! command -v fi_info fi_pingpong >/dev/null; then
    echo '# fi_info and fi_pingpong are not installed (libfabric-bin)'
else
    timeout 60 fi_info -v -p rnl >said 2>&1 && grep -q 'type: FI_EP_RDM' said && grep -q 'caps:.*FI_RMA, FI_TAGGED, FI_ATOMIC' said
    ok 'fi_info lists the provider and what it can do' $?
    port=$((20000 + $$ % 20000))
    timeout 120 fi_pingpong -p rnl -e rdm -S all -I 3 -c -B $port >server 2>&1 &
    server=$!
    for _ in $(seq 200); do
        timeout 120 fi_pingpong -p rnl -e rdm -S all -I 3 -c -P $port 127.0.0.1 >said 2>&1
        status=$?
        [ "$status" = 0 ] || ! grep -qiE 'refused|connect' said && break
        sleep 0.1
    done
    wait "$server" && [ "$status" = 0 ] && grep -q '^6m' said
    ok 'fi_pingpong runs between two processes, in all sizes' $?
fi

if ! command -v mpicc mpirun >/dev/null || ! mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    echo '# Open MPI is not installed (openmpi-bin, libopenmpi-dev)'
    exit "$failed"
fi
unset FI_PROVIDER_PATH FI_PROVIDER
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpicc -O1 -o ring "$tree"/tests/ofi/ring.c >said 2>&1
ok 'a program for MPI compiles' $?
for n in 1 2 4; do
    timeout -k 5 120 "$runnel" mpi mpirun -np $n ./ring >said 2>&1 </dev/null && grep -qx "ring of $n" said
    ok "Open MPI runs a ring of $n ranks on the provider" $?
done
mpicc -O1 -o onesided "$tree"/tests/ofi/onesided.c >said 2>&1
for n in 2 4; do
    timeout -k 5 120 "$runnel" mpi mpirun -np $n ./onesided >said 2>&1 </dev/null && grep -qx "one-sided among $n" said
    ok "Open MPI puts, gets and accumulates between $n ranks" $?
done
mpicc -O1 -o threads "$tree"/tests/ofi/threads.c >said 2>&1
for n in 2 3; do
    timeout -k 5 120 "$runnel" mpi mpirun -np $n ./threads >said 2>&1 </dev/null && grep -qx "threads of $n" said
    ok "Open MPI: four threads of each of $n ranks send, put and reduce at once" $?
done
FI_RNL_AUTO_PROGRESS=1 timeout -k 5 120 "$runnel" mpi mpirun -np 2 ./threads >said 2>&1 </dev/null && grep -qx 'threads of 2' said
ok 'the same beside a thread that makes progress' $?
mpicc -O1 -o meets "$tree"/tests/ofi/meets.c >said 2>&1
timeout -k 5 120 "$runnel" mpi mpirun -np 4 ./meets within >said 2>&1 </dev/null && grep -qx '4 have met' said
ok 'Open MPI: ranks accept and connect' $?
timeout -k 5 120 "$runnel" mpi mpirun -np 2 ./meets spawn >said 2>&1 </dev/null && grep -qx '4 have met' said
ok 'Open MPI: ranks start two more' $?
if command -v ompi-server >/dev/null; then
    timeout 200 ompi-server --no-daemonize -r names >server 2>&1 </dev/null &
    server=$!
    for _ in $(seq 200); do
        [ ! -s names ] || break
        sleep 0.05
    done
    timeout -k 5 120 "$runnel" mpi mpirun --ompi-server file:names -np 2 ./meets accept port >said 2>&1 </dev/null &
    first=$!
    timeout -k 5 120 "$runnel" mpi mpirun --ompi-server file:names -np 2 ./meets connect port >other 2>&1 </dev/null
    status=$?
    wait $first && [ $status = 0 ] && [ "$(cat said other | grep -cx '4 have met')" = 1 ]
    ok 'Open MPI: two jobs meet' $?
    kill $server
    wait $server
fi
FI_RNL_AUTO_PROGRESS=1 timeout -k 5 120 "$runnel" mpi mpirun -np 2 ./onesided computes >said 2>&1 </dev/null &&
    grep -qx 'one-sided among 2' said
ok 'a rank that computes is reached meanwhile' $?
grep -q '^runnel mpi: FI_PROVIDER_PATH=.* FI_PROVIDER=rnl OMPI_MCA_pml=cm' said
ok 'runnel mpi says what it set' $?
eval "$("$runnel" mpi --print)"
timeout -k 5 120 mpirun -np 2 ./ring >said 2>&1 </dev/null && grep -qx 'ring of 2' said
ok 'what runnel mpi prints does the same' $?
! FI_PROVIDER_PATH=$dir timeout -k 5 60 mpirun -np 2 ./ring >said 2>&1 </dev/null && ! grep -q 'ring of 2' said
ok 'without the provider it does not run, so it was the provider' $?
cp "$runnel" lonely
./lonely mpi true >said 2>&1
[ $? = 69 ] && grep -q 'librnl-fi.so is neither' said
ok 'runnel mpi without the provider says so' $?
exit "$failed"
