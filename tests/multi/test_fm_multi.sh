#!/usr/bin/env bash
# FM programs of several processes: what the interface promises, and what waiting costs. Each case has a deadline; prints
# "ok - name" or "not ok - name". The programs check every byte themselves. Finds the build in $RUNNEL_BUILD and the
# command in $RUNNEL.
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
limit=60
sanitized=no
if grep -qE '__(asan|tsan)_init' "$build/tests/multi-fm_semantics"; then
    sanitized=yes
    limit=240
fi

case_of() { # NAME COMMAND...
    local name=$1 status=0
    shift
    timeout -k 5 $((limit + 20)) "$@" >"$dir/out" 2>&1 </dev/null || status=$?
    sed 's/^/# /' "$dir/out" | cut -c1-300 | head -n 30
    if [ $status = 0 ]; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        echo "    status $status: $*"
        failed=1
    fi
}
run() { # NAME RANKS PROGRAM ARGUMENT...
    local name=$1 ranks=$2 program=$3
    shift 3
    case_of "$name" "$runnel" run --timeout $limit -n "$ranks" "$build/tests/multi-$program" "$@"
}
says() { # NAME STATUS PATTERN RANKS CASE: standard error has a line like PATTERN, or nothing if that is empty
    local name=$1 want=$2 pattern=$3 status=0 good
    timeout -k 5 $((limit + 20)) "$runnel" run --timeout $limit -n "$4" "$build/tests/multi-fm_wrong" "$5" \
        >"$dir/out" 2>"$dir/err" </dev/null || status=$?
    if [ -n "$pattern" ]; then
        good=$(grep -cE "$pattern" "$dir/err")
    else
        good=$([ -s "$dir/err" ] || echo 1)
    fi
    if [ $status = "$want" ] && [ "${good:-0}" != 0 ]; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        echo "    status $status: $5"
        sed 's/^/    /' "$dir/err" | head -n 10
        failed=1
    fi
}
on_one_core() { # as run, all ranks on one core
    local name=$1 ranks=$2 program=$3
    shift 3
    if command -v taskset >/dev/null; then
        case_of "$name" taskset -c 0 "$runnel" run --timeout $limit -n "$ranks" "$build/tests/multi-$program" "$@"
    else
        echo "ok - $name # SKIP there is no taskset"
    fi
}

run 'half a message is answered while others flow' 3 fm_semantics half
run 'half a message is answered while many others flow' 6 fm_semantics half
run 'handlers of all senders are suspended at once' 5 fm_semantics suspended
run 'handlers of 15 senders are suspended at once' 16 fm_semantics suspended
run 'who does not extract blocks its senders and loses nothing' 4 fm_semantics stall
run 'messages wait for their handler' 3 fm_semantics late
run 'messages without a handler are dropped at the end, and that is told' 3 fm_semantics missing
says 'the default error handler names its rank, and counts one message as one' 70 \
    '^runnel: rank 1: 1 message was dropped: .* number 4;' 2 dropped
says 'who leaves without FM_finalize what was sent to it: FM_finalize tells' 70 \
    '^runnel: rank 0: rank 1 has not said that it took in all .* exited with status 0 without closing its endpoint' 2 forgets
says 'who leaves without FM_finalize and owes nothing: the others finish' 0 '' 3 took
run 'a message that a suspended handler holds open is no error of the program' 3 fm_wrong held
if [ $sanitized = no ]; then # which tell of it themselves
    says 'a handler that runs over its stack is named, with its stack and a remedy' 139 \
        '^runnel: rank 0 on .* was killed by signal 11 \(.*\): its handler 1 ran over its stack of 64 KiB; keep large arrays' 2 deep
    says 'any other fault of a handler is called nothing else' 139 \
        '^runnel: rank 0 on .* was killed by signal 11 \([A-Za-z ]*\); ending' 2 astray
    says 'a program that handles SIGSEGV keeps it' 9 '^runnel: rank 0 on .* exited with status 9; ending' 2 signals
    says '... also if it does so later' 9 '^runnel: rank 0 on .* exited with status 9; ending' 2 signals_late
fi
run 'pieces of the two sides are independent' 2 fm_semantics pieces
run 'any thread may call after FM_THREADS' 2 fm_semantics threads
run 'any thread of four ranks may call' 4 fm_semantics threads
for seed in 1 2 3; do
    run "all to all, seed $seed" 4 fm_alltoall $seed 60
done
run 'all to all between two' 2 fm_alltoall 4 200
run 'all to all with oneself' 1 fm_alltoall 5 200
run 'all to all between eight times more processes than cores' $((8 * $(nproc))) fm_alltoall 6 8
on_one_core 'all to all of 16 on one core' 16 fm_alltoall 7 8
on_one_core 'all to all of three on one core' 3 fm_alltoall 8 40
run 'FM 1.1, mixed traffic' 4 fm1_traffic
run 'FM 1.1, mixed traffic, extracting while it sends' 3 fm1_traffic poll
run 'FM 1.1 with oneself' 1 fm1_traffic
run 'FM 1.1 of 16' 16 fm1_traffic
if [ $sanitized = no ]; then
    run 'handlers of 71 senders are suspended at once' 72 fm_semantics suspended
fi
run 'a rank asleep in FM_wait uses no processor' 4 fm_idle wait
run 'a rank asleep on FM_fd uses no processor' 4 fm_idle poll
exit "$failed"
