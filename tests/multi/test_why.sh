#!/usr/bin/env bash
# `runnel why`: jobs that hang, each diagnosed right, and jobs that go on, none of which is accused. Each is asked about until it is
# in the state that it is to be in; no time fails this test but a minute that brings no verdict.
# shellcheck disable=SC2317 # functions called through check
# shellcheck source=tests/support/test.sh
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
begin_job() { # WAY
    "$runnel" run --timeout 300 --keep-going -n 3 "$program" "$1" >"$dir/said" 2>&1 &
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

# Jobs that go on: five looks at each, and none is accused.
for way in throws streams timed; do
    begin_job "$way"
    until=$((SECONDS + 60))
    until [ "$(grep -c '"pid":[1-9]' <<<"$("$runnel" why --json "$launcher" 2>/dev/null | tr '{' '\n')")" = 3 ] || [ "$SECONDS" -ge "$until" ]; do :; done
    accused=0
    for _ in 1 2 3 4 5; do
        why --json "$launcher"
        [ "$(field hangs)" = false ] || { accused=$((accused + 1)); cp "$dir/out" "$dir/said"; }
    done
    check "$way: a job that goes on is not accused" is "$accused" 0
    end_job
done

why 1
check "a process that has no job is told apart" is "$status $(grep -c 'no rank with an endpoint' "$dir/err")" '69 1'
why
check "a job has to be named" is "$status $(grep -c 'which job' "$dir/err")" '64 1'
exit $failed
