#!/usr/bin/env bash
# `runnel top`: what it shows of a job that moves, of one that waits and of one with a stopped rank; as text, JSON, metrics and on a
# live screen, which tmux shows and resizes. It waits for states; no time fails this test but a minute that brings none.
# shellcheck disable=SC2317 # functions called through check
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
program=$build/tests/multi-why
needs_files "$program"
needs_commands python3
launcher='' serving='' session=''
end_job() {
    if [ -n "$launcher" ]; then
        kill -9 "$launcher" 2>/dev/null # the kernel kills its ranks, the stopped ones, too
        { wait "$launcher"; } 2>/dev/null
    fi
    launcher=
}
clean_up() {
    [ -z "$serving" ] || kill "$serving" 2>/dev/null
    [ -z "$session" ] || tmux -L "$session" kill-server 2>/dev/null
    end_job
    rm -rf "$dir"
}
begin_job() { # WAY [RANKS]
    "$runnel" run --timeout 300 --keep-going -n "${2-3}" "$program" "$1" >"$dir/job" 2>&1 &
    launcher=$!
}
top() { # ARGUMENTS; leaves status, $dir/out, $dir/err
    timeout 60 "$runnel" top "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
}
see() { # EXPRESSION of Python, about r, what was printed
    python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval("(" + sys.argv[2] + ")"))' "$dir/out" "$1" 2>/dev/null
}
is() { [ "$1" = "$2" ]; }
# Asks until the expression holds.
until_sees() { # NAME EXPRESSION ARGUMENTS
    local name=$1 what=$2 until=$((SECONDS + 60))
    shift 2
    while top --json -i 0.2 "$launcher" "$@"; [ "$(see "$what")" != True ] && [ "$SECONDS" -lt "$until" ]; do :; done
    check "$name" is "$(see "$what")" True
}

begin_job streams
until_sees 'rank 0 sends and rank 1 takes in, at about the same rate' \
    'r["found"] == 3 and r["ranks"][0]["sent_per_s"] > 100 and r["ranks"][1]["received_per_s"] > 100
     and r["ranks"][2]["sent_per_s"] == r["ranks"][2]["received_per_s"] == 0'
check '... eight bytes a message' is "$(see 'abs(r["ranks"][0]["out_bytes_per_s"] / r["ranks"][0]["sent_per_s"] - 8) < 0.1')" True
check '... and the sums are those of the ranks' is \
    "$(see 'abs(r["total"]["sent_per_s"] - sum(k["sent_per_s"] for k in r["ranks"])) < 1 and r["total"]["cpu_percent"] > 1')" True
until_sees 'the third waits for a message' 'r["ranks"][2]["waits"] == "message" and r["waiting"] >= 1'
top --json --sort received -i 0.2 "$launcher"
check 'who receives most comes first' is "$(see 'r["ranks"][0]["rank"]')" 1
top --once -i 0.2 "$launcher"
check 'the table has a line for each rank' is "$(grep -cE '^ +[012] +[0-9]+ (running|sleeping) ' "$dir/out")" 3
check '... below a head' is "$(sed -n '1p;3p' "$dir/out" | grep -cE "^job $launcher, multi-why: 3 of 3 ranks here|^RANK +PID STATE")" 2
check '... and no line is wider than a terminal' is "$(awk 'length > 80' "$dir/out" | wc -l)" 0

# Metrics, in a file and by a port.
timeout 60 "$runnel" top --metrics "$dir/metrics" -i 0.2 "$launcher" 2>"$dir/err" &
serving=$!
until=$((SECONDS + 60))
until [ -s "$dir/metrics" ] || [ "$SECONDS" -ge "$until" ]; do sleep 0.05; done
check 'a file has all counters of each rank' is \
    "$(grep -cE "^runnel_messages_sent\\{job=\"$launcher\",rank=\"[012]\",program=\"multi-why\"\\} [0-9]+$" "$dir/metrics")" 3
check '... each under one head, with its kind' is "$(grep -cE '^# TYPE runnel_(messages_sent counter|wait_for gauge)$' "$dir/metrics")" 2
check '... in which every line is as Prometheus reads it' is \
    "$(grep -cvE '^# (HELP|TYPE) [a-z_0-9]+ .+$|^[a-z_0-9]+(\{([a-z]+="[^"]*",?)+\})? [0-9]+$' "$dir/metrics")" 0
check '... and each counter has one head' is "$(grep '^# TYPE' "$dir/metrics" | sort | uniq -d | wc -l)" 0
kill "$serving"
wait "$serving" 2>/dev/null
check '... until a signal ends it' is $? 0
port=$((20000 + RANDOM % 10000))
timeout 100 "$runnel" top --metrics "$port" "$launcher" 2>"$dir/err" &
serving=$!
ask() { # PATH [HOST]: what the server says, into $dir/out
    python3 - "$1" "${2-127.0.0.1}" "$port" >"$dir/out" 2>"$dir/said" <<'END'
import sys, time, urllib.request, urllib.error
for _ in range(600):
    try:
        print(urllib.request.urlopen('http://%s:%s%s' % (sys.argv[2], sys.argv[3], sys.argv[1]), timeout=20).read().decode())
        break
    except urllib.error.HTTPError as e:
        print(e.code)
        break
    except OSError:
        if sys.argv[2] != '127.0.0.1':
            print('refused')
            break
        time.sleep(0.1)
END
}
ask /metrics
check 'a port of the loopback interface serves them' is "$(grep -c '^runnel_messages_sent{' "$dir/out")" 3
ask /else
check '... and nothing else' is "$(cat "$dir/out")" 404
other=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -vE '^127\.|:' | head -n 1)
if [ -n "$other" ]; then
    ask /metrics "$other"
    check '... to nobody of another host' is "$(cat "$dir/out")" refused
fi
# Who says nothing, or nonsense, holds up nobody for long.
exec 7<>"/dev/tcp/127.0.0.1/$port" && printf 'NONSENSE / HTTP/1.1\r\n\r\n' >&7
exec 8<>"/dev/tcp/127.0.0.1/$port"
ask /
check '... while others say nothing' is "$(grep -c '^runnel_ranks{' "$dir/out")" 1
exec 7>&- 8>&-
end_job
wait "$serving"
check '... until the job ends' is $? 0
serving=

begin_job stopped
until_sees 'a rank that is stopped, and others that wait for the close' \
    'r["stopped"] == 1 and r["ranks"][1]["state"] == "stopped" and r["ranks"][0]["waits"] == r["ranks"][2]["waits"] == "close"'
end_job

# The live screen.
if command -v tmux >/dev/null; then
    session=rnl$$
    screen() { tmux -L "$session" capture-pane -p -t 0 2>/dev/null; }
    shows() { # NAME PATTERN: at last
        local until=$((SECONDS + 60))
        until screen | grep -qE "$2" || [ "$SECONDS" -ge "$until" ]; do sleep 0.1; done
        screen >"$dir/out"
        check "$1" grep -qE "$2" "$dir/out"
    }
    keys() { tmux -L "$session" send-keys -t 0 "$@"; }
    begin_job streams 40
    until_sees 'forty ranks' 'r["found"] == 40'
    tmux -L "$session" -f /dev/null new-session -d -x 80 -y 24 "$runnel top -i 0.2 $launcher; echo ended with \$?; sleep 100"
    shows 'the screen has the job' "^job $launcher, multi-why: 40 of 40 ranks here"
    shows '... its ranks, the first in the fourth line' '^ +19 +[0-9]+ (sleeping|running)'
    check '... and as many as the screen has room for' is "$(grep -cE '^ +[0-9]+ +[0-9]+ (sleeping|running)' "$dir/out")" 20
    check '... in 24 lines of at most 80 columns' is "$(wc -l <"$dir/out") $(awk 'length > 80' "$dir/out" | wc -l)" '24 0'
    check '... with the keys in the last one' grep -q '^q quit' <(tail -n 1 "$dir/out")
    keys Space
    shows 'the space bar turns the page' '^ +39 +[0-9]+ '
    keys g
    shows '... and g goes back' '^ +0 +[0-9]+ '
    keys s s
    shows 's sorts by the next column' 'by received$'
    until=$((SECONDS + 60))
    until [ "$(screen | sed -n 4p | awk '{print $1}')" = 1 ] || [ "$SECONDS" -ge "$until" ]; do sleep 0.1; done
    check '... so who receives most is first' is "$(screen | sed -n 4p | awk '{print $1}')" 1
    keys r
    until=$((SECONDS + 60))
    until [ "$(screen | sed -n 4p | awk '{print $1}')" != 1 ] || [ "$SECONDS" -ge "$until" ]; do sleep 0.1; done
    check 'r turns the order around' is "$([ "$(screen | sed -n 4p | awk '{print $1}')" != 1 ] && echo yes)" yes
    keys p
    shows 'p pauses' 'PAUSED'
    keys p
    tmux -L "$session" resize-window -t 0 -x 120 -y 50
    shows 'a larger window shows all' '^ +39 +[0-9]+ '
    tmux -L "$session" resize-window -t 0 -x 50 -y 10
    until=$((SECONDS + 60))
    until [ "$(screen | grep -cE '^ +[0-9]+ +[0-9]+ ')" = 6 ] || [ "$SECONDS" -ge "$until" ]; do sleep 0.1; done
    check '... and a smaller one less' is "$(screen | grep -cE '^ +[0-9]+ +[0-9]+ ')" 6
    keys q
    shows 'q ends it' '^ended with 0'
    check '... and leaves the terminal as it was' is "$(screen | grep -c 'RANK')" 0
    tmux -L "$session" kill-server
    session=rnl$$b # the first server may not be gone yet
    tmux -L "$session" -f /dev/null new-session -d -x 80 -y 24 "$runnel top -i 0.2 $launcher; echo ended with \$?; sleep 100"
    shows 'another screen' '^job '
    end_job
    shows '... ends with the job' 'job [0-9]+ has ended'
    tmux -L "$session" kill-server
    session=
fi

top 1
check 'a process that has no job is told apart' is "$status $(grep -c 'no rank with an endpoint' "$dir/err")" '69 1'
top
check 'a job has to be named' is "$status $(grep -c 'which job' "$dir/err")" '64 1'
top --sort beauty 1
check 'an order that is none is refused' is "$status $(grep -c 'takes rank, sent' "$dir/err")" '64 1'
top --interval 0 1
check 'an interval that is none is refused' is "$status" 64
begin_job streams
until_sees 'a job' 'r["found"] == 3'
top "$launcher"
check 'without a terminal there is no screen, and it says what there is' is "$status $(grep -c -- '--once' "$dir/err")" '64 1'
top --metrics "$dir/no/where" "$launcher"
check 'a file that cannot be written' is "$status $(grep -c 'cannot write' "$dir/err")" '73 1'
end_job
exit $failed
