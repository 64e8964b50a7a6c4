#!/usr/bin/env bash
# What ranks of Open MPI on the provider take of memory: many on one host, each of which has talked with each other one, and few that
# send much before they receive. `test_many.sh` with 16 ranks, `test_many.sh all` with 256.
# shellcheck disable=SC1091,SC2154,SC2034,SC2317 # provider.sh sets and reads them; what case_of calls
limit=1200
. "$(dirname "$0")/provider.sh"
if ! command -v mpicc.openmpi >/dev/null || ! "$runnel" run -n 2 --mpi true 2>/dev/null; then
    echo 'Open MPI is not installed (openmpi-bin, libopenmpi-dev), or there is no PMIx (libpmix-dev)'
    exit 77
fi
for program in many flood; do
    mpicc.openmpi -O1 -o $program "$tree/tests/ofi/$program.c" >said 2>&1 || cat said
done
many() { # RANKS: each within 16 MB, when each page is counted once
    on_provider "$1" "$dir/many" && cat said && awk -v n="$1" '$1 == n { found = $6 > 0 && $6 * 1024 < 16e6 } END { exit !found }' said
}
flood() { # RANKS: 62.5 MiB come from each peer, and no more than 8 of them are held
    on_provider "$1" "$dir/flood" && cat said && awk -v n="$1:" '$3 == n { found = $6 < 8192 } END { exit !found }' said
}
fails() {
    # shellcheck disable=SC2016 # for that shell
    ! on_provider 1 sh -c 'exit 1' && ! on_provider 1 sh -c 'kill -9 $$' && ! limit=2 on_provider 1 sleep 60
}
case_of 'what ends with 1, is killed or hangs is red, here and in the suites' fails
ranks=16
[ "$what" != all ] || ranks=256
case_of "$ranks ranks on one host take 16 MB each at most" many $ranks
for n in 2 4; do
    case_of "what $n ranks send before they receive waits at the sender" flood $n
done
exit "$failed"
