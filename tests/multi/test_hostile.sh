#!/usr/bin/env bash
# test_hostile.sh [JOBS] [SEED] - ranks that do harm (hostile.c): the others end well and in time, whatever it is.
set -u
runnel=${RUNNEL:?} program=${RUNNEL_BUILD:?}/tests/multi-hostile
jobs=${1:-4} seed=${2:-$(date +%s)}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
[ -x "$program" ] || { echo "$program is not built"; exit 77; }

status=0
for mode in scribble lines credit files stop; do
    bad='' broken=0
    for ((i = 0; i < jobs; i++)); do
        ms=$((20 + (seed + i) % 5 * 60))
        timeout 120 "$runnel" run --keep-going --timeout 100 -n 3 "$program" "$mode" $((seed + i)) "$ms" \
            >"$dir/out" 2>"$dir/err" </dev/null
        if [ "$(grep -c '^done [01]: ' "$dir/out")" != 2 ] || grep -qE 'Sanitizer|runtime error|^rank ' "$dir/err"; then
            bad="$bad $((seed + i))"
            sed 's/^/# /' "$dir/out" "$dir/err" | head -30
        fi
        broken=$((broken + $(grep -c broken "$dir/out")))
    done
    case $mode in
    lines | credit)
        if [ "$broken" = 0 ]; then
            echo "# nobody was found to break the protocol"
            bad="$bad all"
        fi
        ;;
    esac
    if [ -z "$bad" ]; then
        echo "ok - who suffers from $mode ends well ($jobs jobs, $broken broken)"
    else
        echo "not ok - who suffers from $mode ends well (seeds$bad)"
        status=1
    fi
done
exit $status
