#!/usr/bin/env bash
# `runnel why`: jobs that hang, each diagnosed right, and jobs that go on, none of which is accused. Each is asked about until it is
# in the state that it is to be in; no time fails this test but a minute that brings no verdict.
# shellcheck disable=SC2317 # functions called through check
# shellcheck source=tests/support/test.sh
# shellcheck disable=SC2030,SC2031 # a job in the background has variables of its own
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
program=$build/tests/multi-why
needs_files "$program"
launcher=
end_job() {
    if [ -n "$launcher" ]; then
        kill -9 "$launcher" 2>/dev/null # the kernel kills its ranks, the stopped ones, too
        { wait "$launcher"; } 2>/dev/null
    fi
    launcher=
}
clean_up() {
    end_job
    rm -rf "$dir"
}
begin_job() { # WAY [OPTION...]
    local way=$1
    shift
    "$runnel" run --timeout 300 --keep-going -n 3 "$@" "$program" "$way" >"$dir/said" 2>&1 &
    launcher=$!
}
why() { # ARGUMENTS; leaves status, $dir/out, $dir/err
    timeout 60 "$runnel" why "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
}
field() { sed -nE "s/.*\"$1\":(\[[^]]*\]|\"[^\"]*\"|[^,}]*).*/\1/p" "$dir/out" | head -1; }
is() { [ "$1" = "$2" ]; }

# Asks until that is the verdict.
asks() { # WAY VERDICT HANGS CULPRITS
    local until=$((SECONDS + 60))
    begin_job "$1"
    while :; do
        why --json "$launcher"
        [ "$(field verdict)" = "\"$2\"" ] && [ "$(field culprits)" = "$4" ] && break
        [ "$SECONDS" -lt "$until" ] || break
    done
    check "$1: the verdict" is "$(field verdict) $(field hangs) $(field culprits) $status" "\"$2\" $3 $4 $([ "$3" = true ] && echo 1 || echo 0)"
}
says() { # WORD...: so does the answer that was checked last
    local word
    for word in "$@"; do
        check "... and it says $word" grep -q -- "$word" "$dir/out"
    done
}

asks stopped stopped true '[1]'
says 'rank 1 is stopped' 'kill -CONT' 'close the job'
why "$launcher"
check "... for people, too, with a line for each rank" is "$(grep -cE '^rank 1 is stopped|^  rank [012] +process ' "$dir/out")" 4
end_job
asks outside outside true '[1]'
says 'rank 1 sleeps outside' gdb
end_job
asks room outside true '[1]'
says 'wait for room there' 'room_at":1,'
end_job
asks silent silent true '[0,1,2]'
says 'all ranks' 'Let one rank send'
end_job
asks polls silent true '[0,1,2]'
says 'all ranks'
end_job
asks unsent unsent true '[1]'
says 'rank 1 waits for messages' FM_finalize
end_job
asks handler handler true '[1]'
says 'rank 1 has no handler of number 7' 'of rank 0' FM_register_handler
end_job
asks unfinished unfinished true '[0]'
says 'rank 0 began' FM_end_message
end_job
asks cycle cycle true '[0,1]'
says RNL_NO_RUN_IN_SEND 'room_at":0,' 'room_at":1,'
end_job
asks computes computes false '[1]'
says 'rank 1 computes' 'no hang if it ends'
end_job

# The picture has the ranks, the culprits in red, and who waits for whom.
begin_job cycle
until=$((SECONDS + 60))
while :; do
    why --dot "$launcher"
    if [ "$(grep -cE '^  r0 -> r1 |^  r1 -> r0 ' "$dir/out")" = 2 ] || [ "$SECONDS" -ge "$until" ]; then break; fi
done
check 'the picture has the circle' is "$(grep -cE '^  r0 -> r1 \[label="room"|^  r1 -> r0 \[label="room"' "$dir/out")" 2
check '... and who is in it in red' is "$(grep -cE '^  r[01] \[.*color=red' "$dir/out") $(grep -cE '^  r2 \[.*color=red' "$dir/out")" '2 0'
check '... and it is a graph' is "$(sed -n '1p;$p' "$dir/out" | tr -d '\n')" 'digraph job {}'
end_job

# More hangs, four at a time, each job with a folder of its own.
logs=()
running=()
beside() { # WAY COMMAND...: in the background
    local one
    while [ "$(jobs -rp | wc -l)" -ge 4 ]; do
        wait -n
    done
    one=$dir/job${#logs[@]}
    (
        dir=$one failed=0 launcher=
        mkdir "$dir"
        trap end_job EXIT
        "$@"
        exit "$failed"
    ) >"$one.log" 2>&1 &
    running+=($!)
    logs+=("$one.log")
}
for hang in 'two_stopped stopped true [1,2]' 'stopped_room stopped true [1]' 'stopped_sender stopped true [1]' \
    'reads outside true [1]' 'locks outside true [1]' 'sender_outside outside true [0]' 'two_rooms outside true [1]' \
    'cycle_of_three cycle true [0,1,2]' 'closes_early unsent true [1,2]' 'two_unsent unsent true [0,1]' \
    'handler_of_two handler true [2]' 'unfinished_and_polls unfinished true [2]' 'two_unfinished unfinished true [0]' \
    'handler_pauses outside true [1]' 'handler_loops computes false [2]'; do
    # shellcheck disable=SC2086 # words
    beside asks $hang
done

# Jobs that go on, over shared memory and over datagrams: three looks at each, and none is accused.
goes_on() { # WAY TRANSPORT
    local until=$((SECONDS + 60)) accused=0
    begin_job "$1" --transport "$2"
    until [ "$("$runnel" why --json "$launcher" 2>/dev/null | tr '{' '\n' | grep -c '"pid":[1-9]')" = 3 ] || [ "$SECONDS" -ge "$until" ]; do :; done
    for _ in 1 2 3; do
        why --json "$launcher"
        [ "$(field hangs)" = false ] || { accused=$((accused + 1)); cp "$dir/out" "$dir/said"; }
    done
    check "$1, $2: a job that goes on is not accused" is "$accused" 0
}
for way in throws streams timed ring fan naps works pieces long_ones polls_and_sends each_to_each timed_sends one_works; do
    beside goes_on "$way" auto
    beside goes_on "$way" udp
done
for pid in "${running[@]}"; do
    wait "$pid" || failed=1
done
cat "${logs[@]}"

why 1
check "a process that has no job is told apart" is "$status $(grep -c 'no rank with an endpoint' "$dir/err")" '69 1'
why
check "a job has to be named" is "$status $(grep -c 'which job' "$dir/err")" '64 1'
exit $failed
