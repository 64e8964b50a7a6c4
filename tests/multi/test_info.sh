#!/usr/bin/env bash
# `runnel info`: the facts are those of the system, the settings those that the code reads, and the counters of a program that hangs
# or is stopped can be read from outside.
# shellcheck disable=SC2016,SC2317 # scripts for other shells in single quotes; functions called through check
# shellcheck source=tests/support/test.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/test.sh"
pingpong=${RUNNEL_BUILD:?the build directory}/examples/pingpong
source_tree=${RUNNEL_SOURCE:-$(dirname "${BASH_SOURCE[0]}")/../..}
launcher=
finish() {
    if [ -n "$launcher" ]; then
        kill -9 "$launcher" 2>/dev/null # the kernel kills its ranks
        { wait "$launcher"; } 2>/dev/null
    fi
    rm -rf "$dir"
}
trap finish EXIT

info() { # ARGUMENTS; leaves status, $dir/out, $dir/err
    timeout 60 "$runnel" info "$@" >"$dir/out" 2>"$dir/err" </dev/null
    status=$?
}
is() { [ "$1" = "$2" ]; }
# value NAME: the first word behind the name of a row
value() { sed -nE "s/^  $1 +([^ ]+).*/\1/p" "$dir/out" | head -1; }
says() { # FILE REGEX: its only line matches
    [ "$(wc -l <"$1")" -eq 1 ] && grep -qE "$2" "$1"
}

# ---- the machine

info
check "it prints and succeeds, with no complaint" is "$status$(cat "$dir/err")" 0
check "the version is that of the command" is "runnel $(value version)" "$("$runnel" --version)"
for how in version -V; do
    check "runnel $how" is "$("$runnel" $how)" "$("$runnel" --version)"
done
check "runnel -h is its help" is "$("$runnel" -h)" "$("$runnel" --help)"
for sub in run bench sim paper info; do
    check "so is runnel $sub -h" is "$("$runnel" $sub -h)" "$("$runnel" $sub --help)"
    check "and runnel help $sub" is "$("$runnel" help $sub)" "$("$runnel" $sub --help)"
done
"$runnel" help nothing >/dev/null 2>"$dir/said"
check "runnel help of what is not" is "$? $(grep -c "no subcommand 'nothing'" "$dir/said")" "64 1"
check "the shared memory transport is usable" is "$(value shm)" yes
check "it says what shm needs and what of it is here" grep -qE '^  shm needs +sealed memory files: yes; ' "$dir/out"
check "processors as nproc counts them" is "$(value 'processors allowed')" "$(nproc)"
check "descriptors as ulimit has them" is "$(value descriptors)" "$(ulimit -Sn | sed 's/unlimited/no/')"
for name in membarrier pidfd 'sealed memory files' 'copies out' 'rep movsb' 'processor time' 'memory of the cgroup'; do
    check "it has a row for $name" test -n "$(value "$name")"
done
for section in Runnel Transports Features Network Topology Limits Settings 'Endpoint defaults' FM AM Running; do
    check "it has the section $section" grep -qx "$section" "$dir/out"
done
check "no line ends in blanks" is "$(grep -c ' $' "$dir/out")" 0

for name in udp ipv4 ipv6 'segmentation offload' 'receive coalescing' 'connected sockets' 'arrivals in memory' 'congestion marks' 'error queue'; do
    check "it says whether there is $name" grep -qE "^  $name +(yes|no)( |$)" "$dir/out"
done
# A kernel that lacks what it has otherwise.
if "$RUNNEL_BUILD/tests/multi-without_syscall" segment true 2>/dev/null; then
    info
    cp "$dir/out" "$dir/all"
    while read -r lack row; do
        had=$(value "$row")
        "$RUNNEL_BUILD/tests/multi-without_syscall" "$lack" "$runnel" info >"$dir/out" 2>"$dir/err"
        check "without $row it says so, and is silent" is "$?$(value "$row")$(cat "$dir/err")" 0no
        [ "$had" = no ] || check "... and what else there is, is there" is "$(sed -n '/^Network/,/^Features/p' "$dir/all" | grep -c ' yes')" \
            "$(($(sed -n '/^Network/,/^Features/p' "$dir/out" | grep -c ' yes') + 1))"
    done <<'END'
segment segmentation offload
merge receive coalescing
ecn congestion marks
errors error queue
probe path mtu probing
reuse connected sockets
io_uring arrivals in memory
ipv6 ipv6
END
else
    echo "ok - a kernel that lacks something # SKIP no filters of system calls here"
fi
(ulimit -Sn 300 && ulimit -Hn 512 && exec "$runnel" info) >"$dir/out" 2>"$dir/err"
check "a lower limit of descriptors shows" is "$(value descriptors)" 300
check "and how many ranks that is enough for" grep -q '512 .*enough for 60 ranks' "$dir/out"
(ulimit -Sn 40 && ulimit -Hn 40 && exec "$runnel" info) >"$dir/out" 2>"$dir/err"
check "one rank is one" grep -q '40 .*enough for 1 rank$' "$dir/out"
if unshare -m true 2>/dev/null; then
    # shellcheck disable=SC2016
    unshare -m sh -c 'mount -t tmpfs none /sys && "$0" info && "$0" run --bind core -n 1 env' "$runnel" >"$dir/out" 2>"$dir/err"
    check "without /sys it is told what there is, in silence" is "$?$(cat "$dir/err")" 0
    check "... of which the ranks inherit nothing" is "$(grep -c '^HWLOC' "$dir/out")" 0
else
    echo "ok - without /sys # SKIP no mount name space of our own"
fi
if command -v taskset >/dev/null && cpu=$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/') &&
    taskset -c "$cpu" "$runnel" info >"$dir/out" 2>"$dir/err"; then
    check "affinity limits the processors" is "$(value 'processors allowed') $(value which)" "1 $cpu"
else
    echo "ok - affinity limits the processors # SKIP no taskset"
fi

# ---- settings: at most a dozen, each that the code reads, each in a manual page

info
# bench/peers reads what is set for other libraries, base/bug.c only where bugs are built in
read_by_code=$(grep -rhoE --exclude-dir=peers --exclude=bug.c 'getenv\("[A-Z_]+"\)' "$source_tree"/src "$source_tree"/launcher "$source_tree"/tools "$source_tree"/bench "$source_tree"/examples |
    cut -d'"' -f2 | sort -u)
shown=$(sed -n '/^Settings$/,/^$/s/^  \([A-Z_]\{1,\}\) .*/\1/p' "$dir/out" | sort)
check "the settings shown are those that the code reads" is "$shown" "$read_by_code"
check "at most a dozen" test "$(wc -w <<<"$shown")" -le 12
for name in $shown; do
    check "$name is in a manual page" grep -qE "^\*$name\*|\b$name\b" "$source_tree"/man/runnel-info.1.scd
done
check "an unset one shows its default" grep -qE '^  RUNNEL_FD +a job of one  \(default\)$' "$dir/out"
RUNNEL_TERMINAL=$'1\033[2J' info
check "a set one shows where it comes from, and no control characters" grep -qE '^  RUNNEL_TERMINAL +1\?\[2J  \(environment\)$' "$dir/out"
"$runnel" info >"$dir/out" 2>&1
check "whether PMIx was built in shows" grep -qE '^  PMIx +(yes|no) ' "$dir/out"
check "what befalls packets shows" grep -qE '^  RNL_FAULT +nothing ' "$dir/out"
RNL_PROTECT=nothing-measure-only "$runnel" info >"$dir/out" 2>&1
check "packets that nothing protects show" grep -qE '^  RNL_PROTECT +nothing-measure-only  \(environment\)$' "$dir/out"

# ---- arguments

for bad in '--pid abc' '--pid 0' '--pid -3' '--pid 1x' '--pid 99999999999' '17' '--nonsense'; do
    # shellcheck disable=SC2086 # a list of words
    info $bad
    check "$bad is refused" is "$status$(cat "$dir/out")" 64
done
check "--help lists the options" sh -c '"$0" info --help | grep -q -- --pid' "$runnel"
"$runnel" info >/dev/full 2>"$dir/err"
check "a full disk is an error" is "$?" 74

# ---- processes that cannot be shown

sh -c 'exit 0' &
gone=$!
wait $gone
info --pid $gone
check "no such process: a sentence and what to do" says "$dir/err" "^runnel info: there is no process $gone: runnel info without --pid lists"
check "no such process: status 1, nothing on standard output" is "$status$(cat "$dir/out")" 1
info --pid $$
check "no endpoint: a sentence with the program" says "$dir/err" "^runnel info: process $$ \(.*\) has no endpoint: .* lists those"
check "no endpoint: status 1" is $status 1
if [ "$(id -u)" != 0 ]; then
    info --pid 1
    check "no permission: whose it is and what to do" says "$dir/err" "may not look into process 1 .*(as that user or as root|try as root)"
elif command -v setpriv >/dev/null && cp "$runnel" "$dir/runnel" && chmod 755 "$dir" "$dir/runnel" &&
    setpriv --reuid 65534 --clear-groups "$dir/runnel" --version >/dev/null 2>&1; then
    setpriv --reuid 65534 --clear-groups "$dir/runnel" info --pid $$ >"$dir/out" 2>"$dir/err"
    check "no permission: whose it is and what to do" says "$dir/err" "may not look into process $$ .*belongs to user 0: try as that user or as root"
else
    echo "ok - no permission # SKIP cannot become another user"
fi

# ---- a job that hangs: rank 1 stops before it joins, so rank 0 polls for an answer for ever

"$runnel" run -n 2 sh -c 'if [ "$RUNNEL_RANK" = 0 ]; then echo $$ >"$0/pid"; exec "$1"; fi; kill -STOP $$; exec "$1"' \
    "$dir" "$pingpong" >/dev/null 2>&1 </dev/null &
launcher=$!
pid=
for ((i = 0; i < 600; i++)); do
    [ -s "$dir/pid" ] && pid=$(cat "$dir/pid")
    if [ -n "$pid" ]; then
        info --pid "$pid"
        yields=$(value yields)
        [ $status = 0 ] && [ "$(value messages_sent)" = 1 ] && [ "${yields:-0}" -gt 0 ] && break
    fi
    sleep 0.05
done
fields=$(grep -cE '^ +X\(' "$source_tree/include/runnel/counters.h")
check "a program that hangs shows its place" grep -qE "^pingpong: rank 0 of 2, process $pid, (running|sleeping), open for [0-9.]+ s$" "$dir/out"
check "each counter has a line with its text" is "$(grep -cE '^  [a-z_0-9]+ +[0-9]+  [a-z0-9]' "$dir/out")" "$fields"
check "the values are in one column" is "$(sed -nE 's/^(  [a-z_0-9]+ +[0-9]+)  .*/\1/p' "$dir/out" | awk '{ print length }' | sort -u | wc -l)" 1
kill -STOP "$pid"
for ((i = 0; i < 600; i++)); do
    info --pid "$pid"
    grep -q ", stopped" "$dir/out" && break
    sleep 0.05
done
check "a stopped program shows that it is" grep -qE "process $pid, stopped, " "$dir/out"
cp "$dir/out" "$dir/first_look"
sent=$(value messages_sent) yields=$(value yields)
info --pid "$pid"
check "a stopped program's counters stand still" is "$(value messages_sent) $(value yields)" "$sent $yields"
check "they are what it did: it gave way while it waited" test "$yields" -gt 0
info
check "without --pid it is listed, with its job" grep -qE "^  $pid +rank 0 of 2 +pingpong, job $launcher$" "$dir/out"

if command -v python3 >/dev/null; then
    info --json
    check "--json is one object with these sections" python3 -c '
import json, re, sys
d = json.load(open(sys.argv[1]))
before = ["runnel", "transports", "features", "copies_into_bulk_areas", "network", "topology", "limits", "settings", "endpoint_defaults"]
behind = ["running", "services"]
built = re.findall(r"&rnl_(\w+)_iface", open(sys.argv[4]).read())
between = [name.lower() for name in list(d)[len(before):-len(behind)]]
assert list(d)[:len(before)] == before and list(d)[-len(behind):] == behind and between == built and "fm" in built, (list(d), built)
assert d["transports"]["shm"] is True and isinstance(d["limits"]["ranks_of_a_job"], int)
assert isinstance(d["network"]["segmentation_offload"], bool) and d["network"]["interfaces_and_mtu"] and d["network"]["ciphers"]
assert d["settings"]["RUNNEL_FD"] == {"value": "a job of one", "from": "default"}
assert d["running"][sys.argv[2]]["size"] == 2 and d["running"][sys.argv[2]]["job"] == int(sys.argv[3])
' "$dir/out" "$pid" "$launcher" "$build/src/ifaces.c"
    RUNNEL_TERMINAL=$'"\\\001\xff' info --json
    check "--json stays JSON whatever the environment holds" python3 -c '
import json, sys
assert json.load(open(sys.argv[1]))["settings"]["RUNNEL_TERMINAL"]["value"] == "\"\\\x01\xff"
' "$dir/out"
    info --json --pid "$pid"
    check "--json --pid has every counter" python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
assert d["pid"] == int(sys.argv[2]) and d["state"] == "stopped" and len(d["endpoints"]) == 1
e = d["endpoints"][0]
assert e["program"] == "pingpong" and e["size"] == 2 and e["open_ns"] > 0 and e["counters"]["FM.errors"] == 0
assert len([name for name in e["counters"] if "." not in name]) == int(sys.argv[3])
assert e["counters"]["messages_sent"] == int(sys.argv[4])
' "$dir/out" "$pid" "$fields" "$sent"
else
    echo "ok - --json # SKIP no python3"
fi

# ---- jobs that hang for a reason that can be named

# hangs NAME CASE PATTERN: of the two ranks that run CASE one shows a line like PATTERN, the other none
hangs() {
    local i p lines=
    kill -9 "$launcher"
    { wait "$launcher"; } 2>/dev/null
    rm -f "$dir"/rank.*
    "$runnel" run -n 2 sh -c 'echo $$ >"$0.$$"; exec "$@"' "$dir/rank" "$RUNNEL_BUILD/tests/multi-fm_wrong" "$2" >/dev/null 2>&1 </dev/null &
    launcher=$!
    for ((i = 0; i < 300; i++)); do
        lines=$(for p in "$dir"/rank.*; do "$runnel" info --pid "${p##*.}" 2>/dev/null; done | grep '^  waiting for ')
        grep -qE "^  waiting for $3" <<<"$lines" && break
        sleep 0.1
    done
    echo "$lines" >"$dir/out"
    check "$1" says "$dir/out" "^  waiting for $3"
}
hangs "a message for a number that nobody registered" number "handler 1 from rank 1: "
hangs "no room, and for how long by now" full "room at rank 1, for ([1-9][0-9]*\.[0-9]|0\.[1-9]) s now$"
exit "$failed"
