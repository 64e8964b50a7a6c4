#!/usr/bin/env bash
# The transport over shared memory between processes. Finds the build in $RUNNEL_BUILD and the command in $RUNNEL.
set -u
build=${RUNNEL_BUILD:?the build directory}
runnel=${RUNNEL:?the runnel command}
failed=0
for ranks in 1 2 3 4; do
    for seed in 1 2; do
        name="packets between $ranks processes, seed $seed"
        if timeout 110 "$runnel" run --timeout 100 -n $ranks "$build/tests/conform-job_shm" $seed; then
            echo "ok - $name"
        else
            echo "not ok - $name"
            failed=1
        fi
    done
done
exit $failed
