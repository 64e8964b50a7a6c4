#!/usr/bin/env bash
# `runnel bench` runs its tests of a pair over all its interfaces, refuses wrong arguments with a sentence and status 64, draws, and
# leaves nothing behind. Times are never judged.
# shellcheck source=tests/bench/head.sh
. "$(dirname "${BASH_SOURCE[0]}")/head.sh"

all='["raw", "native", "fm", "fm1"], [None]'
rows "shared memory" shm "[('latency', $all, [8]), ('rate', $all, [8]), ('bandwidth', $all, [65536, 1 << 20]),
    ('bandwidth-alone', $all, [65536, 1 << 20])]" --max-time 2
timeout 150 "$runnel" bench latency bandwidth --api fm1,native --size 8,2M --max-time 1 >"$out/table" 2>"$out/stderr"
well $? && ! awk 'length > 80 { bad = 1 } END { exit !bad }' "$out/table" && grep -q 'FM 1.1 was left out above 1M' "$out/table"
verdict "a table fits 80 columns, and says what was left out" $? "$out/stderr" "$out/table"

# refuses TEXT ARGUMENTS...
refuses() {
    local text=$1 code
    shift
    timeout 60 "$runnel" bench "$@" >"$out/stdout" 2>"$out/stderr"
    code=$?
    [ $code = 64 ] && [ ! -s "$out/stdout" ] && grep -qF -- "$text" "$out/stderr"
    verdict "refused: bench $*" $? "$out/stdout" "$out/stderr"
}
refuses "latency, waiting, rate, bandwidth, peers, idle, wake, barrier, layered, startup, memory, loss, am, put, rpc or all" speed
refuses "there is no interface 'mpi'" --api fm,mpi
refuses "whole bytes from 1 to 16M" --size 8,17M
refuses "seconds from 0.1" --max-time nan
refuses "--size is for" barrier startup --size 8
refuses "2 to 256 processes" barrier --ranks 257
refuses "startup is not measured over the interfaces" startup --api fm1
refuses "give one of the two" latency --transport shm --netns --max-time 0.3
refuses "bytes from 1280 to 65535" --netns --mtu 576
refuses "--api tcp is for --transport udp" --api tcp
refuses "there is no peer ''" --peer openmpi,
refuses "--help" --fast

mkdir "$out/bin"
PATH=$out/bin "$runnel" bench latency --plot "$out/plots" >"$out/stdout" 2>"$out/stderr"
[ $? = 1 ] && grep -q 'needs gnuplot.*gnuplot-nox' "$out/stderr" && [ ! -e "$out/plots" ]
verdict "without gnuplot --plot says so before it measures" $? "$out/stderr"
if command -v gnuplot >/dev/null; then
    timeout 150 "$runnel" bench bandwidth --api raw --size 64,1K,16K --max-time 1 --plot "$out/plots" >"$out/table" 2>"$out/stderr"
    # a trial that flipped leaves nothing to draw
    well $? && { ! grep -q '^wrote ' "$out/table" || [ "$(head -c 4 "$out/plots/bandwidth.png" | tail -c 3)" = PNG ]; }
    verdict "--plot writes a picture" $? "$out/stderr"
else
    echo "ok - --plot writes a picture # SKIP gnuplot is not installed"
fi
killed KILL 3 --api fm
exit $status
