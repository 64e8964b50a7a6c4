#!/usr/bin/env bash
# test_hostile.sh [JOBS] [SEED] - ranks that do harm (hostile.c): the others end well and in time, whatever it is.
# shellcheck disable=SC1091,SC2154 # test.sh sets them
. "$(dirname "$0")/../support/test.sh"
program=$build/tests/multi-hostile
jobs=${1:-4} seed=${2:-$(date +%s)}
needs_files "$program"

for mode in scribble lines credit files block stop; do
    bad='' broken=0 more=0
    # Of these two kinds somebody must be found out: in one job of two it ends before it has said what cannot be.
    case $mode in lines | credit) more=40 ;; esac
    for ((i = 0; i < jobs || (broken == 0 && i < jobs + more); i++)); do
        ms=$((20 + (seed + i) % 5 * 60))
        timeout 120 "$runnel" run --keep-going --timeout 100 -n 3 "$program" "$mode" $((seed + i)) "$ms" \
            >"$dir/out" 2>"$dir/err" </dev/null
        if [ "$(grep -c '^done [01]: ' "$dir/out")" != 2 ] || grep -qE 'Sanitizer|runtime error|^rank ' "$dir/err"; then
            bad="$bad $((seed + i))"
            sed 's/^/# /' "$dir/out" "$dir/err" | head -30
        fi
        broken=$((broken + $(grep -c broken "$dir/out")))
    done
    if [ $more != 0 ] && [ "$broken" = 0 ]; then
        echo "# nobody was found to break the protocol"
        bad="$bad all"
    fi
    if [ -z "$bad" ]; then
        echo "ok - who suffers from $mode ends well ($i jobs, $broken broken)"
    else
        echo "not ok - who suffers from $mode ends well (seeds$bad)"
        failed=1
    fi
done

# Who stops in a certain state: the others have no more to do with each other before it is killed, and then all end.
bad='' states=0
for state in $("$program" states); do
    : >"$dir/out" # what is in it is waited for
    "$runnel" run --keep-going --timeout 100 -n 3 "$program" "stop-$state" $((seed + states)) 0 \
        >"$dir/out" 2>"$dir/err" </dev/null &
    launcher=$!
    exchanged=0
    for ((i = 0; i < 600; i++)); do
        exchanged=$(grep -c '^exchanged [01]$' "$dir/out")
        if [ "$exchanged" = 2 ] && grep -q '^stopped ' "$dir/out"; then break; fi
        kill -0 $launcher 2>/dev/null || break
        sleep 0.1
    done
    victim=$(sed -n 's/^stopped //p' "$dir/out" | head -1)
    was=$(sed 's/.*) //' "/proc/${victim:-0}/stat" 2>/dev/null | cut -c1)
    if [ -n "$victim" ]; then kill -9 "$victim" 2>/dev/null; fi
    wait $launcher
    if [ "$exchanged$was" != 2T ] || [ "$(grep -c '^done [01]: ' "$dir/out")" != 2 ] ||
        grep -qE 'Sanitizer|runtime error|^rank ' "$dir/err"; then
        bad="$bad $state"
        echo "# $state with seed $((seed + states)), process $victim was '$was'"
        sed 's/^/# /' "$dir/out" "$dir/err" | head -30
    fi
    states=$((states + 1))
done
if [ -z "$bad" ] && [ $states -gt 10 ]; then
    echo "ok - who stops in one of $states states holds nobody up"
else
    echo "not ok - who stops holds nobody up:$bad"
    failed=1
fi
timeout 60 "$runnel" run --keep-going --timeout 1 -n 3 "$program" stop-half-sent "$seed" 0 >"$dir/out" 2>"$dir/err" </dev/null
ended=$?
if [ $ended = 124 ] && grep -q 'not done after 1 s' "$dir/err" && ! grep -q '^done' "$dir/out"; then
    echo "ok - who stops and is not killed is waited for in close, until --timeout ends the job"
else
    echo "not ok - who stops and is not killed is waited for, until --timeout ends the job (status $ended)"
    sed 's/^/# /' "$dir/out" "$dir/err" | head -30
    failed=1
fi
exit "$failed"
