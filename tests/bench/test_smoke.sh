#!/usr/bin/env bash
# `runnel bench` runs its tests of a pair over all its interfaces, refuses wrong arguments with a sentence and status 64, draws, and
# leaves nothing behind. Times are never judged.
# shellcheck source=tests/bench/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"

all='["raw", "native", "fm", "fm1"], [None]'
rows "shared memory" shm "[('latency', $all, [8]), ('rate', $all, [8]), ('bandwidth', $all, [65536, 1 << 20]),
    ('bandwidth-alone', $all, [65536, 1 << 20])]" --max-time 2
rows "fresh" shm "[(t, ['raw', 'native', 'fm'], [None], [4096, 65536]) for t in ('fresh', 'fresh-alone')]" \
    fresh --api native,fm --size 4K,64K --max-time 1
timeout 150 "$runnel" bench latency bandwidth --api fm1,native --size 8,2M --max-time 1 >"$dir/table" 2>"$dir/stderr"
well $? && ! awk 'length > 80 { bad = 1 } END { exit !bad }' "$dir/table" && grep -q 'FM 1.1 was left out above 1M' "$dir/table"
ok "a table fits 80 columns, and says what was left out" $?

# refuses TEXT ARGUMENTS...
refuses() {
    local text=$1 code
    shift
    timeout 60 "$runnel" bench "$@" >"$dir/stdout" 2>"$dir/stderr"
    code=$?
    [ $code = 64 ] && [ ! -s "$dir/stdout" ] && grep -qF -- "$text" "$dir/stderr"
    ok "refused: bench $*" $?
}
refuses "latency, waiting, rate, bandwidth, fresh, mpi, peers, idle, wake, barrier, layered, startup, memory, loss, am, sweep, sweep-loss, put, rpc, panda, orca or all" speed
refuses "there is no interface 'mpi'" --api fm,mpi
refuses "whole bytes from 1 to 16M" --size 8,17M
refuses "seconds from 0.1" --max-time nan
refuses "--size is for" barrier startup --size 8
refuses "2 to 256 processes" barrier --ranks 257
refuses "startup is not measured over the interfaces" startup --api fm1
refuses "give one of the two" latency --transport shm --netns --max-time 0.3
refuses "is for pairs of one interface" --transport xdp latency
refuses "is for pairs of one interface" --transport xdp latency sweep
refuses "is for pairs of one interface" --transport xdp sweep am
refuses "sweep is measured past the kernel" --netns sweep
refuses "is for pairs of one interface" --transport i8255x --api am am
refuses "bytes from 1280 to 65535" --netns --mtu 576
refuses "--api tcp is for --transport udp" --api tcp
refuses "there is no peer ''" --peer openmpi,
refuses "--help" --fast

mkdir "$dir/bin"
PATH=$dir/bin "$runnel" bench latency --plot "$dir/plots" >"$dir/stdout" 2>"$dir/stderr"
[ $? = 1 ] && grep -q 'needs gnuplot.*gnuplot-nox' "$dir/stderr" && [ ! -e "$dir/plots" ]
ok "without gnuplot --plot says so before it measures" $?
if command -v gnuplot >/dev/null; then
    timeout 150 "$runnel" bench bandwidth --api raw --size 64,1K,16K --max-time 1 --plot "$dir/plots" >"$dir/table" 2>"$dir/stderr"
    # a trial that flipped leaves nothing to draw
    well $? && { ! grep -q '^wrote ' "$dir/table" || [ "$(head -c 4 "$dir/plots/bandwidth.png" | tail -c 3)" = PNG ]; }
    ok "--plot writes a picture" $?
else
    echo "ok - --plot writes a picture # SKIP gnuplot is not installed"
fi
killed KILL 3 --api fm
exit "$failed"
