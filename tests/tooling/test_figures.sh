#!/usr/bin/env bash
# scripts/figures: what the benchmark prints ends up between the marks, and in the pictures; or nothing is changed.
source_tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
ok() { # TEXT COMMAND...
    local text=$1
    shift
    if "$@"; then
        echo "ok - $text"
    else
        echo "not ok - $text"
        sed 's/^/    /' "$dir/out"
        status=1
    fi
}
# shellcheck disable=SC2317 # ok runs it
says() { grep -qF -- "$1" "$dir/README"; }

if ! command -v gnuplot >/dev/null || ! command -v cc >/dev/null; then
    echo "needs gnuplot and cc"
    exit 77
fi

# In place of the benchmark: four rows, and a plot script like its own.
mkdir -p "$dir/build/tools" "$dir/doc"
cat >"$dir/build/tools/runnel" <<'END'
#!/bin/sh
row() {
    printf '{"test":"%s","api":"%s","bytes":%s,"value":%s,"placement":"near","rounds":%s,"probe_ns":61.4}\n' "$@"
}
while [ $# -gt 0 ]; do
    [ "$1" = --plot ] && for name in latency bandwidth; do
        printf "set terminal pngcairo size 9,9\nset output '%s.png'\nplot x\n" $name >"$2/$name.gp"
    done
    [ "$1" = --json ] && { row latency raw 8 91.27 7; row latency fm 8 118.6 9; row rate native 8 1234.5 8; }
    shift
done
exit "${RUNNEL_FAKE_STATUS:-0}"
END
chmod +x "$dir/build/tools/runnel"
# shellcheck disable=SC2016 # the backquotes are the mark's
printf 'before\n<!-- figures: begin; written by `make figures` -->\nold\n<!-- figures: end -->\nafter\n' >"$dir/README"
cp "$dir/README" "$dir/was"
export RUNNEL_BUILD=$dir/build

RUNNEL_FAKE_STATUS=3 "$source_tree/scripts/figures" --readme "$dir/README" --doc "$dir/doc" >"$dir/out" 2>&1
ok "a benchmark that fails is told" grep -q 'ended with 3' "$dir/out"
ok "... and changes nothing" cmp -s "$dir/README" "$dir/was"

"$source_tree/scripts/figures" --readme "$dir/README" --doc "$dir/doc" >"$dir/out" 2>&1
ok "figures stand in their column, missing ones as a dash" says '| 8 bytes, one way, ns | 91.3 | - | 119 | - |'
ok "large ones are whole" says '| 8 bytes, million messages a second | - | 1234 | - | - |'
ok "what was there before is gone" test "$(grep -c '^old$' "$dir/README")" = 0
ok "what stands around the marks stays" test "$(head -n 1 "$dir/README") $(tail -n 1 "$dir/README")" = 'before after'
ok "rounds and placement are told" says 'Medians of 7 to 9 rounds, placement *near*: a bare line crosses in 61 ns.'
ok "a placement that was not seen is told" says 'Placement *far* did not occur.'
for name in latency bandwidth; do
    ok "doc/$name.svg is a picture" grep -q '<svg' "$dir/doc/$name.svg"
done
cp "$dir/README" "$dir/was"
"$source_tree/scripts/figures" --readme "$dir/README" --doc "$dir/doc" >"$dir/out" 2>&1
ok "written again, nothing changes" cmp -s "$dir/README" "$dir/was"

echo nothing >"$dir/README"
"$source_tree/scripts/figures" --readme "$dir/README" --doc "$dir/doc" >"$dir/out" 2>&1
ok "a file without marks is refused" grep -q 'has no lines' "$dir/out"
exit $status
