#!/usr/bin/env bash
# `runnel bench` answers a wrong argument at once with a sentence that says what would be right, on standard error, and status 64.
set -u
runnel=${RUNNEL:?}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0

# refuses NAME TEXT ARGUMENTS...
refuses() {
    local name=$1 text=$2 code
    shift 2
    timeout 20 "$runnel" bench "$@" >"$out/stdout" 2>"$out/stderr"
    code=$?
    if [ $code = 64 ] && [ ! -s "$out/stdout" ] && grep -qF -- "$text" "$out/stderr"; then
        echo "ok - $name"
    else
        echo "not ok - $name: status $code"
        cat "$out/stdout" "$out/stderr"
        status=1
    fi
}

refuses "a test that does not exist" "latency, waiting, rate, bandwidth, peers, idle, wake, barrier, layered, startup, memory, loss, am or all" speed
refuses "an interface that does not exist" "fm, fm1, native, tcp, raw or all" --api mpi
refuses "an interface that does not exist, in a list" "there is no interface 'mpi'" --api fm,mpi
refuses "a size that is no number" "whole bytes from 1 to 16M" --size big
refuses "a size of nothing" "whole bytes from 1 to 16M" --size 0
refuses "a size that is too large" "whole bytes from 1 to 16M" --size 8,17M
refuses "an empty size in a list" "whole bytes from 1 to 16M" --size 8,
refuses "a time that is no number" "seconds from 0.1" --max-time soon
refuses "a time that is not a number" "seconds from 0.1" --max-time nan
refuses "no time at all" "seconds from 0.1" --max-time 0
refuses "a plot of what has none" "ask for one of them too" rate --plot "$out/plots"
refuses "a size for what has none" "--size is for" barrier startup --size 8
refuses "a number of ranks for what has none" "--ranks is for barrier" layered --ranks 4
refuses "one rank at a barrier" "2 to 256 processes" barrier --ranks 1
refuses "ranks that are no number" "2 to 256 processes" barrier --ranks some
refuses "too many ranks" "2 to 256 processes" barrier --ranks 257
for test in peers idle wake barrier startup memory; do
    refuses "$test over FM 1.1" "$test is not measured over the interfaces" $test --api fm1
done
refuses "layered over the native interface" "layered is not measured over the interfaces" layered --api native
refuses "a transport that does not exist" "this release has shm and udp" --transport pigeon
refuses "shared memory between namespaces" "give one of the two" latency --transport shm --netns --max-time 0.3
refuses "the same the other way round" "give one of the two" latency --netns --transport shm --max-time 0.3
refuses "an MTU over shared memory" "--mtu and --protect are for datagrams" --mtu 9000
refuses "an MTU of the loopback interface" "for the interfaces that --netns makes" --transport udp --mtu 9000
refuses "an MTU that is too small" "bytes from 1280 to 65535" --netns --mtu 576
refuses "a protection that does not exist" "off, auth or encrypt" --transport udp --protect some
refuses "TCP over shared memory" "--api tcp is for --transport udp" --api tcp
refuses "sleepers over shared memory" "waiting is for --transport udp" waiting
refuses "lost datagrams over shared memory" "loss is measured between namespaces" loss
refuses "an option that does not exist" "--help" --fast

if timeout 20 "$runnel" bench --help | grep -q -- --max-time; then
    echo "ok - --help lists the options on standard output"
else
    echo "not ok - --help lists the options on standard output"
    status=1
fi

mkdir "$out/bin"
PATH=$out/bin "$runnel" bench latency --plot "$out/plots" >"$out/stdout" 2>"$out/stderr"
if [ $? = 1 ] && grep -q 'needs gnuplot.*gnuplot-nox' "$out/stderr" && [ ! -e "$out/plots" ]; then
    echo "ok - without gnuplot --plot says so before it measures"
else
    echo "not ok - without gnuplot --plot says so before it measures"
    cat "$out/stderr"
    status=1
fi

printf '#!/bin/sh\n' >"$out/bin/gnuplot"
chmod +x "$out/bin/gnuplot"
: >"$out/file"
for folder in "$out/file" "$out/file/plots" "$out/no/such/plots"; do
    PATH=$out/bin "$runnel" bench latency --max-time 1 --plot "$folder" >"$out/stdout" 2>"$out/stderr"
    if [ $? = 1 ] && grep -q 'cannot .*folder' "$out/stderr" && [ ! -s "$out/stdout" ]; then
        echo "ok - a folder that cannot be is told before it measures: ${folder#"$out"/}"
    else
        echo "not ok - a folder that cannot be is told before it measures: ${folder#"$out"/}"
        cat "$out/stdout" "$out/stderr"
        status=1
    fi
done
exit $status
