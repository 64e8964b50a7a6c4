#!/usr/bin/env bash
# The calls of runnel/adapter.h between processes: over shared memory, over UDP, and in the virtual cluster. Prints "ok - name"
# or "not ok - name". Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"

try() { # NAME COMMAND...: each rank prints a line for each promise
    local name=$1 said
    shift
    if said=$(timeout -k 5 100 "$@" 2>&1 </dev/null) && ! grep -q '^not ok' <<<"$said" && grep -q '^ok' <<<"$said"; then
        echo "ok - $name: $(grep -c '^ok' <<<"$said") promises"
    else
        echo "not ok - $name"
        grep -v '^ok' <<<"$said" | sed 's/^/# /' | cut -c1-300 | head -n 20
        failed=1
    fi
}
for ranks in 1 2 4; do
    try "$ranks ranks over shared memory" "$runnel" run --timeout 80 -n $ranks "$build/tests/adapter-program"
done
job_of() { # the identity of a new job
    "$runnel" run --timeout 80 -n 2 "$build/tests/adapter-program" </dev/null | grep '^# job'
}
one=$(job_of)
other=$(job_of)
if [ -n "$one" ] && [ -n "$other" ] && [ "$one" != "$other" ]; then
    echo "ok - two jobs have two identities"
else
    echo "not ok - two jobs have two identities: '$one' and '$other'"
    failed=1
fi
if command -v mpirun >/dev/null && grep -q PMIx_Init "$build"/src/librunnel.a; then
    export LSAN_OPTIONS=detect_leaks=0 # what libpmix does not give back is not ours
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    try "3 ranks below PMIx" mpirun -np 3 "$build/tests/adapter-program"
fi
for ranks in 2 3; do
    try "$ranks ranks over UDP" "$runnel" run --timeout 80 --transport udp -n $ranks "$build/tests/adapter-program"
    try "$ranks ranks in the virtual cluster" "$runnel" sim -n $ranks --hosts $ranks "$build/tests/vproc-adapter.so"
done
exit "$failed"
